//! Reads a cluster and a subscription once, without writing.

use crate::engine::{Engine, kinds, options};
use crate::exit::{Exit, Failure};
use crate::pages::unready;
use control::{Controller, Effect, Event, Leadership};
use edge::lease::Held;
use edge::runner::{Step, channel};
use model::Policy;
use model::world::Kind;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long reading goes on after a first failure: long enough for one more try.
const PATIENCE: Duration = Duration::from_secs(3);

/// A controller that ends when everything is read.
struct Reader {
    controller: Controller,
    kinds: Vec<Kind>,
    done: CancellationToken,
    failed: CancellationToken,
}

impl Reader {
    fn is_complete(&self) -> bool {
        let needs = &self.controller.report().needs;
        self.controller.world().is_complete(&self.kinds) && needs.is_empty()
    }
}

impl Step for Reader {
    fn step(&mut self, events: Vec<Event>, now_ms: u64) -> Vec<Effect> {
        let effects = self.controller.step(events, now_ms);
        if self.is_complete() {
            self.done.cancel();
        } else if self.controller.unread().next().is_some() {
            self.failed.cancel();
        }
        effects
    }

    fn next_wake_ms(&self) -> Option<u64> {
        self.controller.next_wake_ms()
    }
}

/// Reads everything planning needs.
///
/// # Errors
/// Something could not be read within `limit`.
pub async fn read(
    engine: &Engine,
    policy: Policy,
    classes: &BTreeSet<String>,
    limit: Duration,
) -> Result<Controller, Failure> {
    let (sender, receiver) = channel();
    let stop = CancellationToken::new();
    let failed = CancellationToken::new();
    let mut options = options(classes.clone());
    options.leadership = Leadership::Lost;
    engine.watch(&policy, classes, &sender, &stop);
    let reader = Reader {
        kinds: kinds(&policy),
        controller: Controller::new(policy, options),
        done: stop.clone(),
        failed: failed.clone(),
    };
    let ended = stop.clone();
    tokio::spawn(async move {
        let impatience = async {
            failed.cancelled().await;
            tokio::time::sleep(PATIENCE).await;
        };
        tokio::select! {
            () = ended.cancelled() => {}
            () = tokio::time::sleep(limit) => ended.cancel(),
            () = impatience => ended.cancel(),
        }
    });
    let reader = engine.runner(Held::never()).run(reader, sender, receiver, stop).await;
    if reader.is_complete() {
        return Ok(reader.controller);
    }
    Err(unread(&reader.controller, limit))
}

fn unread(controller: &Controller, limit: Duration) -> Failure {
    let mut reasons: Vec<String> = unready(controller);
    if reasons.is_empty() {
        let needs = controller.report().needs.iter();
        reasons.extend(needs.map(|need| format!("{need} were not read in time")));
    }
    let rejected = reasons.iter().any(|r| {
        ["no access token", "Authorization", "Authentication", "InvalidToken", "401"]
            .iter()
            .any(|sign| r.contains(sign))
    });
    let exit = if rejected { Exit::Credential } else { Exit::Unavailable };
    let lines: String = reasons.iter().map(|r| format!("\n  {r}")).collect();
    let limit = limit.as_secs();
    let advice = "Check resourceManagerEndpoint, the credential and the network, or give more time \
                  with --timeout";
    Failure::new(exit, format!("not everything could be read within {limit} s:{lines}\n{advice}"))
}
