//! The status document: each Service, how far it is and what it waits on.

pub mod backends;

use crate::listing::unlisted;
use backends::BackendsStatus;
use control::{Controller, DriftOutcome, DriftRecord};
use edge::lease::leader::{Leader, Standing};
use model::kubernetes::Service;
use model::obstacle::{Attempts, ObstacleKind};
use model::report::{ServiceReport, Wait};
use model::{Obstacle, Policy, Report, ResourceId, ServiceUid, World};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What `/status` of a running controller answers, and `ballast status -o json` prints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusDocument {
    /// The cluster's name.
    pub cluster: String,
    /// When it was made, in milliseconds since the Unix epoch.
    pub now_ms: u64,
    /// Who writes; absent where processes do not take turns, and where no controller was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<LeaderStatus>,
    /// By namespace and name.
    pub services: Vec<ServiceStatus>,
    /// Addresses of nodes that drain before they leave pools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub draining: Vec<String>,
    /// What holds up more than one Service, one line each.
    pub troubles: Vec<String>,
    /// Everything that stands in the way: calls that fail or are not answered, and refusals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub obstacles: Vec<ObstacleStatus>,
    /// What others changed in our parts of Azure: what stands now, then what is over, the last
    /// first.
    #[serde(default)]
    pub drift: Vec<DriftStatus>,
    /// Why it is not known which backends answer health probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend_trouble: Option<String>,
    /// Azure writes sent since the start; absent where no controller was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes: Option<u64>,
    /// Azure reads sent since the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads: Option<u64>,
}

/// Which of several processes writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaderStatus {
    /// Whether it is the process that was asked.
    pub this_process: bool,
    /// The leader's name in the Lease; absent where nobody is known to lead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// The name of the process that was asked.
    pub identity: String,
    /// The Lease, as `namespace/name`.
    pub lease: String,
    /// Why nobody is known to lead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

impl LeaderStatus {
    /// As the election sees it now.
    #[must_use]
    pub fn of(leader: &Leader, now_ms: u64) -> Self {
        let standing = leader.standing(now_ms);
        let this_process = standing == Standing::Ours;
        let (holder, trouble) = match standing {
            Standing::Ours => (Some(leader.identity().to_owned()), None),
            Standing::Theirs(holder) => (Some(holder), None),
            Standing::Nobody(why) => (None, Some(why)),
        };
        let (identity, lease) = (leader.identity().to_owned(), leader.lease().to_owned());
        Self { this_process, holder, identity, lease, trouble }
    }

    /// In one line.
    #[must_use]
    pub fn line(&self) -> String {
        let Self { this_process, holder, identity, lease, trouble } = self;
        match holder {
            Some(holder) if *this_process => format!("Leader: this process, {holder}"),
            Some(holder) => format!("Leader: {holder}; this process, {identity}, stands by"),
            None => {
                let why = trouble.as_deref().unwrap_or("it is free");
                format!("Leader: unknown; this process, {identity}, wants Lease {lease}: {why}")
            }
        }
    }
}

/// One Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceStatus {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// `programmed`, `waiting`, `refused`, `refused_serving`, `held`, `rejected` or `removing`.
    pub state: String,
    /// Since when it is so, in milliseconds since the Unix epoch, as far as known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// Its load balancer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<String>,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// What it waits on.
    pub waits: Vec<String>,
    /// What is wrong with it, the last first.
    pub errors: Vec<String>,
    /// When it is tried again after an error, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_ms: Option<u64>,
    /// Which of its backends answer health probes; absent where that is not read, and before Azure
    /// has a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backends: Option<BackendsStatus>,
}

/// One thing that stands in the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObstacleStatus {
    /// `refused`, `held`, `paused`, `rejected`, `unreadable`, `backed_off`, `throttled`,
    /// `no_answer` or `kubernetes`.
    pub kind: String,
    /// What was attempted, as in `PUT publicIPAddresses/kubernetes-a00`.
    pub operation: String,
    /// Azure's error code, the API server's status, or the rule that is broken.
    pub code: String,
    /// What was attempted and why it failed, in words that stay the same from one attempt to the
    /// next.
    pub cause: String,
    /// The number of the last attempt; 0 where nothing is attempted again.
    pub attempt: u32,
    /// Since when it stands in the way, in milliseconds since the Unix epoch; absent for refusals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// When the next attempt follows, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_ms: Option<u64>,
    /// The Services that it holds up, by namespace and name.
    pub services: Vec<String>,
}

impl ObstacleStatus {
    fn of(obstacle: &Obstacle, report: &Report) -> Self {
        let services = obstacle.services.iter().filter_map(|uid| report.services.get(uid));
        Self {
            kind: obstacle.kind.word().to_owned(),
            operation: obstacle.operation.to_string(),
            code: obstacle.code.to_string(),
            cause: obstacle.cause(),
            attempt: obstacle.attempt,
            since_ms: Some(obstacle.since_ms).filter(|since_ms| *since_ms > 0),
            next_ms: obstacle.next_ms,
            services: services.map(|service| service.name.to_string()).collect(),
        }
    }

    /// What follows the cause: the attempts so far, and when the next one follows.
    #[must_use]
    pub fn attempts(&self, now_ms: u64) -> String {
        let kind = ObstacleKind::ALL.into_iter().find(|kind| kind.word() == self.kind);
        let kind = kind.unwrap_or(ObstacleKind::BackedOff);
        let since_ms = self.since_ms.unwrap_or(now_ms);
        Attempts { kind, attempt: self.attempt, since_ms, next_ms: self.next_ms }.text(now_ms)
    }
}

/// One part of Azure that somebody else changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriftStatus {
    /// The resource, as in `loadBalancers/kubernetes`.
    pub resource: String,
    /// What happened, as in `rule a-TCP-80 is gone`.
    pub what: String,
    /// The Services it concerns, by namespace and name.
    pub services: Vec<String>,
    /// `repairing`, `reported` or `over`.
    pub outcome: String,
    /// When it was noticed, in milliseconds since the Unix epoch.
    pub noticed_ms: u64,
    /// When it was over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
}

impl DriftStatus {
    /// Of what the controller remembers.
    #[must_use]
    pub fn of(world: &World, record: &DriftRecord) -> Self {
        let DriftRecord { drift, noticed_ms, ended_ms, outcome } = record;
        let services = &world.kubernetes.services;
        let names = drift.services.iter().filter_map(|uid| services.get(uid));
        let outcome = match outcome {
            DriftOutcome::Repairing => "repairing",
            DriftOutcome::Reported => "reported",
            DriftOutcome::Paused => "paused",
            DriftOutcome::Over => "over",
        };
        Self {
            resource: drift.resource().to_owned(),
            what: drift.deed(),
            services: names.map(|service| service.name.to_string()).collect(),
            outcome: outcome.to_owned(),
            noticed_ms: *noticed_ms,
            ended_ms: *ended_ms,
        }
    }
}

impl StatusDocument {
    /// Of a running controller.
    #[must_use]
    pub fn of_controller(controller: &Controller, now_ms: u64) -> Self {
        let report = controller.report_with_budget();
        let (world, policy) = (controller.world(), controller.policy());
        let writing = controller.writing().map(|(id, since)| (id.clone(), since)).collect();
        let mut document = Self::compose(world, policy, &report, &writing, now_ms);
        for service in &mut document.services {
            service.since_ms = controller.since_ms(&ServiceUid::new(&service.uid));
        }
        document.troubles.splice(0..0, unlisted(controller));
        let drift = controller.drift();
        document.drift = drift.map(|r| DriftStatus::of(controller.world(), r)).collect();
        document.writes = Some(controller.counts().writes);
        document.reads = Some(controller.counts().reads);
        document
    }

    /// Of what was read once.
    #[must_use]
    pub fn of_report(world: &World, policy: &Policy, report: &Report, now_ms: u64) -> Self {
        Self::compose(world, policy, report, &Writing::new(), now_ms)
    }

    fn compose(
        world: &World,
        policy: &Policy,
        report: &Report,
        writing: &Writing,
        now_ms: u64,
    ) -> Self {
        let held_up = held_up(report);
        let services = report.services.iter().map(|(uid, service)| ServiceStatus {
            waits: waits(service, writing, now_ms),
            ..status(world, uid, service, held_up.get(uid).map_or(&[], Vec::as_slice))
        });
        let mut services: Vec<ServiceStatus> = services.collect();
        services.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        let obstacles = report.in_the_way();
        let obstacles: Vec<ObstacleStatus> =
            obstacles.map(|obstacle| ObstacleStatus::of(&obstacle, report)).collect();
        // A pause is the operator's, however many Services wait for its end.
        let is_shared = |o: &&Obstacle| o.services.len() != 1 || o.kind == ObstacleKind::Paused;
        let shared = report.obstacles.iter().filter(is_shared);
        let mut troubles: Vec<String> = shared.map(Obstacle::cause).collect();
        troubles.extend(report.findings.iter().map(ToString::to_string));
        Self {
            cluster: policy.cluster.to_string(),
            now_ms,
            leader: None,
            services,
            draining: report.draining.iter().flatten().map(ToString::to_string).collect(),
            troubles,
            obstacles,
            drift: Vec::new(),
            backend_trouble: None,
            writes: None,
            reads: None,
        }
    }
}

/// What holds up each Service, that which is attempted again first.
fn held_up(report: &Report) -> BTreeMap<&ServiceUid, Vec<&Obstacle>> {
    let mut held_up: BTreeMap<&ServiceUid, Vec<&Obstacle>> = BTreeMap::new();
    for obstacle in &report.obstacles {
        obstacle.services.iter().for_each(|uid| held_up.entry(uid).or_default().push(obstacle));
    }
    held_up
}

fn status(
    world: &World,
    uid: &ServiceUid,
    report: &ServiceReport,
    obstacles: &[&Obstacle],
) -> ServiceStatus {
    let mut errors: Vec<String> = obstacles.iter().map(|obstacle| obstacle.cause()).collect();
    errors.extend(report.findings.iter().map(ToString::to_string));
    let said = world.kubernetes.services.get(uid).map(|s| standing(s)).unwrap_or_default();
    let found: Vec<String> = report.addresses.iter().map(ToString::to_string).collect();
    ServiceStatus {
        namespace: report.name.namespace.to_string(),
        name: report.name.name.to_string(),
        uid: uid.to_string(),
        state: report.state.word().to_owned(),
        since_ms: None,
        load_balancer: report.balancer.as_ref().map(ToString::to_string),
        addresses: if found.is_empty() { said } else { found },
        waits: Vec::new(),
        errors,
        retry_ms: obstacles.iter().filter_map(|obstacle| obstacle.next_ms).min(),
        backends: None,
    }
}

/// Resources that are being written, and since when.
type Writing = BTreeMap<ResourceId, u64>;

/// A write that takes longer than this is shown with its age.
const LONG_MS: u64 = 10_000;

/// What a Service waits on, in words, with since or until when where that is known.
fn waits(report: &ServiceReport, writing: &Writing, now_ms: u64) -> Vec<String> {
    let words = |wait: &Wait| match wait {
        // It stands among the errors.
        Wait::SetAside { .. } => None,
        Wait::Budget { until_ms, .. } => {
            let seconds = until_ms.saturating_sub(now_ms).div_ceil(1_000);
            Some(format!("{wait}, next in {seconds} s"))
        }
        Wait::Writing(id) | Wait::Resource { id, .. } => {
            let took_ms = writing.get(id).map_or(0, |since| now_ms.saturating_sub(*since));
            let seconds = took_ms / 1_000;
            let long = took_ms >= LONG_MS;
            Some(if long { format!("{wait}, written for {seconds} s") } else { wait.to_string() })
        }
        _ => Some(wait.to_string()),
    };
    report.waits.iter().filter_map(words).collect()
}

/// Addresses in a Service's status.
fn standing(service: &Service) -> Vec<String> {
    let texts = service.ingress.iter().filter_map(|i| i.ip.as_ref().or(i.hostname.as_ref()));
    texts.map(ToString::to_string).collect()
}
