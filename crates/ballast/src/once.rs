//! Reads a cluster and a subscription once, without writing.

use crate::cluster;
use crate::engine::{Engine, options};
use crate::exit::{Exit, Failure};
use crate::lease::LeaseName;
use crate::listing::{kinds, unlisted};
use crate::progress;
use control::{Controller, Effect, Event, Leadership};
use edge::kubernetes::sources::{SourceSettings, sources};
use edge::lease::Held;
use edge::runner::{Step, channel};
use edge::vital::Vital;
use explain::forecast::forecast;
use model::obstacle::Subject;
use model::world::{Kind, Need};
use model::{Obstacle, ObstacleKind, Policy, ServiceName};
use observe::KubernetesFact;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How long reading goes on after a first failure at least: long enough for one more try.
const PATIENCE: Duration = Duration::from_secs(3);
/// With a longer limit it goes on for this part of it: who gives more time wants more tries.
const PATIENT_PART: u32 = 20;
/// In Azure's code, lower case: the identity was refused, not what was asked. Messages are no place
/// to look for that, for they have ids and names in them.
const IDENTITY: [&str; 4] = ["authorization", "authentication", "invalidtoken", "http401"];
/// How the message of a call begins that had no token to go with.
const NO_TOKEN: &str = "no access token";

/// A controller that ends when everything is read.
struct Reader {
    controller: Controller,
    kinds: Vec<Kind>,
    /// What is to be taken for true once the cluster has been read.
    as_if: Vec<KubernetesFact>,
    /// What the plans after the first one need.
    ahead: BTreeSet<Need>,
    done: CancellationToken,
    failed: CancellationToken,
}

impl Reader {
    fn is_complete(&self) -> bool {
        self.is_begun() && self.ahead.is_empty()
    }

    /// Whether the first plan can be made.
    fn is_begun(&self) -> bool {
        let Self { controller, kinds, .. } = self;
        let read = controller.world().is_complete(kinds) && controller.report().needs.is_empty();
        read && !controller.awaits_ledger() && !controller.awaits_holders()
    }

    /// Asks for what the plans after the first one need: a forecast ends where it knows no more.
    fn look_ahead(&mut self, now_ms: u64) -> Vec<Effect> {
        if !self.is_begun() || self.done.is_cancelled() {
            return Vec::new();
        }
        self.ahead = forecast(self.controller.world(), self.controller.policy()).last.needs;
        self.controller.read_ahead(self.ahead.iter().cloned());
        self.controller.step([], now_ms)
    }

    /// Has the facts that are to be taken for true replace those of the cluster.
    fn suppose(&mut self, now_ms: u64) -> Vec<Effect> {
        let listed = &self.controller.world().kubernetes.complete;
        if self.as_if.is_empty() || !self.kinds.iter().all(|kind| listed.contains(kind)) {
            return Vec::new();
        }
        let facts = std::mem::take(&mut self.as_if);
        self.controller.step(facts.into_iter().map(Event::Kubernetes), now_ms)
    }
}

impl Step for Reader {
    fn step(&mut self, events: Vec<Event>, now_ms: u64) -> Vec<Effect> {
        let mut effects = self.controller.step(events, now_ms);
        effects.extend(self.suppose(now_ms));
        effects.extend(self.look_ahead(now_ms));
        if self.is_complete() {
            self.done.cancel();
        } else if self.controller.obstacles().iter().any(is_failed_read) {
            self.failed.cancel();
        }
        effects
    }

    fn next_wake_ms(&self) -> Option<u64> {
        self.controller.next_wake_ms()
    }
}

/// Whether a read failed for a reason that may not pass. Of a limit on calls Azure says when it
/// does: that is waited for as long as there is time. So are refusals of the zones, which planning
/// does without after a few of them.
fn is_failed_read(obstacle: &Obstacle) -> bool {
    let Subject::Read(need) = &obstacle.about else { return false };
    let spared = *need == Need::Zones && is_rejected(obstacle);
    obstacle.kind == ObstacleKind::Unreadable && !spared
}

/// Whether Azure refused the credential.
fn is_rejected(obstacle: &Obstacle) -> bool {
    let code = obstacle.code.to_lowercase();
    IDENTITY.iter().any(|sign| code.contains(sign)) || obstacle.message.starts_with(NO_TOKEN)
}

/// What is read, and for how long, as arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct ReadingArgs {
    /// Also include Services of this loadBalancerClass, as `ballast run` does with the same flag
    /// (repeatable)
    #[arg(long, value_name = "CLASS")]
    pub load_balancer_class: Vec<String>,
    /// Time limit for reading the cluster and Azure, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub timeout: u64,
    /// The lease of the controller.
    #[command(flatten)]
    pub lease_name: LeaseName,
}

impl ReadingArgs {
    /// The options that these flags stand for.
    #[must_use]
    pub fn reading(&self) -> Reading {
        Reading {
            classes: self.load_balancer_class.iter().cloned().collect(),
            ledger: self.lease_name.ledger(),
            limit: Duration::from_secs(self.timeout),
        }
    }
}

/// What is read, and for how long.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Values of spec.loadBalancerClass that are ours beside none.
    pub classes: BTreeSet<String>,
    /// The ledger of the cluster's controller.
    pub ledger: ServiceName,
    /// How long it may take.
    pub limit: Duration,
}

/// Reads everything planning needs; what stands in `as_if` is taken for true instead of what the
/// cluster says of the same.
///
/// # Errors
/// Something could not be read in time.
pub async fn read(
    engine: &Engine,
    policy: Policy,
    reading: &Reading,
    as_if: Vec<KubernetesFact>,
) -> Result<Controller, Failure> {
    let Reading { classes, ledger, limit } = reading;
    let limit = *limit;
    let (sender, receiver) = channel();
    let stop = CancellationToken::new();
    let failed = CancellationToken::new();
    let mut options = options(classes.clone());
    options.leadership = Leadership::Lost;
    options.ledger = ledger.clone();
    options.cluster_uid = cluster::uid(&engine.client).await?;
    check_lists(engine, &policy, classes).await?;
    let mut tasks = Vital::default();
    engine.watch(&policy, classes, &sender, &stop, &mut tasks);
    let reader = Reader {
        kinds: kinds(&policy),
        controller: Controller::new(policy, options),
        as_if,
        ahead: BTreeSet::new(),
        done: stop.clone(),
        failed: failed.clone(),
    };
    let ended = stop.clone();
    let begun = Instant::now();
    tokio::spawn(async move {
        let impatience = async {
            failed.cancelled().await;
            tokio::time::sleep(PATIENCE.max(limit / PATIENT_PART)).await;
        };
        tokio::select! {
            () = ended.cancelled() => {}
            () = tokio::time::sleep(limit) => ended.cancel(),
            () = impatience => ended.cancel(),
        }
    });
    let bar = progress::follow("the cluster and Azure to be read".to_owned(), limit);
    let runner = engine.runner(Held::never());
    let running = runner.run(reader, sender, receiver, stop.clone());
    let (reader, whole) = tasks.guard(running, &stop).await;
    bar.end().await;
    whole.map_err(|broken| Failure::new(Exit::Internal, broken))?;
    if reader.is_complete() {
        return Ok(reader.controller);
    }
    Err(unread(&reader.controller, begun.elapsed()))
}

/// A watch asks until it is stopped, and tells only the log, which commands that look do not have.
/// A user who may not list something learns it here, at once and by name.
///
/// # Errors
/// The API server refuses a list, or cannot be reached.
async fn check_lists(
    engine: &Engine,
    policy: &Policy,
    classes: &BTreeSet<String>,
) -> Result<(), Failure> {
    let settings = SourceSettings { classes: classes.clone(), group: policy.group.clone() };
    let sources = sources(&kinds(policy), &settings);
    let paths: BTreeSet<String> = sources.into_iter().map(|source| source.path).collect();
    for path in paths {
        cluster::get(&engine.client, &format!("{path}?limit=1")).await?;
    }
    Ok(())
}

fn unread(controller: &Controller, took: Duration) -> Failure {
    let now_ms = controller.now_ms();
    let mut reasons: Vec<String> = unlisted(controller);
    let obstacles: Vec<Obstacle> = controller.report().in_the_way().collect();
    reasons.extend(obstacles.iter().map(|obstacle| obstacle.text(now_ms)));
    if reasons.is_empty() {
        let needs = controller.report().needs.iter();
        reasons.extend(needs.map(|need| format!("{need} were not read in time")));
    }
    let rejected = obstacles.iter().any(is_rejected);
    let exit = if rejected { Exit::Credential } else { Exit::Unavailable };
    let lines: String = reasons.iter().map(|r| format!("\n  {r}")).collect();
    let seconds = took.as_secs();
    let advice = "Check resourceManagerEndpoint, the credential and the network, or give more time \
                  with --timeout";
    let text = format!("not everything could be read within {seconds} s:{lines}\n{advice}");
    Failure::new(exit, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn obstacle(code: &str, message: &str) -> Obstacle {
        Obstacle {
            operation: "GET publicIPAddresses of resource group team-401".into(),
            code: code.into(),
            message: message.into(),
            ..fixture::obstacle(Subject::Read(Need::Balancers), ObstacleKind::Unreadable)
        }
    }

    #[test]
    fn a_refused_identity_is_told_by_the_code_and_not_by_what_else_stands_there() {
        for (code, message) in [
            ("AuthorizationFailed", "The client has no authorization"),
            ("ExpiredAuthenticationToken", ""),
            ("Http401", ""),
            ("NotSent", "no access token: getting a token failed"),
        ] {
            assert!(is_rejected(&obstacle(code, message)), "{code}");
        }
        for (code, message) in [
            ("InternalServerError", "Correlation id 7401b0c2-1111-4222-8333-000000000401"),
            ("ServiceUnavailable", "Authorization service is busy"),
            ("NotSent", "GET https://127.0.0.1:4401/: connection refused"),
        ] {
            assert!(!is_rejected(&obstacle(code, message)), "{code}");
        }
    }
}
