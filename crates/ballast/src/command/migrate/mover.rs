//! The controller while it migrates: each write is in the journal before it is sent.

use super::journal::Journal;
use crate::exit::Failure;
use crate::listing::{kinds, unlisted};
use arm::Body;
use control::{Controller, Effect, Event, NoticeKind};
use edge::runner::Step;
use model::plan::{Action, Change};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use tokio_util::sync::CancellationToken;

/// A controller that ends when nothing is left to do.
#[derive(Debug)]
pub struct Mover {
    controller: Controller,
    /// Where each write is noted.
    pub journal: Journal,
    done: CancellationToken,
    /// Correlation ids of writes whose outcome is not noted yet.
    open: BTreeSet<String>,
    writes: usize,
    broken: Option<Failure>,
}

impl Mover {
    /// Takes a controller that knows nothing yet; `done` is cancelled at the end.
    #[must_use]
    pub fn new(controller: Controller, journal: Journal, done: CancellationToken) -> Self {
        let open = BTreeSet::new();
        Self { controller, journal, done, open, writes: 0, broken: None }
    }

    /// Whether everything is as the cloud config wants it.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let kinds = kinds(self.controller.policy());
        self.controller.world().is_complete(&kinds) && self.controller.is_settled()
    }

    /// Azure writes sent.
    #[must_use]
    pub fn writes(&self) -> usize {
        self.writes
    }

    /// Why it was given up.
    #[must_use]
    pub fn broken(&self) -> Option<&Failure> {
        self.broken.as_ref()
    }

    /// What it waits on.
    #[must_use]
    pub fn waits(&self) -> Vec<String> {
        let now_ms = self.controller.now_ms();
        let mut waits = unlisted(&self.controller);
        waits.extend(self.controller.report().in_the_way().map(|obstacle| obstacle.text(now_ms)));
        for service in self.controller.report_with_budget().services.values() {
            waits.extend(service.waits.iter().map(|w| format!("{} waits on {w}", service.name)));
        }
        waits.truncate(20);
        if waits.is_empty() {
            waits.push("another controller holds the Lease: stop it".to_owned());
        }
        waits
    }

    /// Notes what is about to be sent and what came of what was sent.
    fn note(&mut self, effects: &[Effect]) -> Result<(), Failure> {
        for effect in effects {
            match effect {
                Effect::Azure { request, .. } if request.method.is_write() => {
                    let correlation = request.correlation.clone();
                    let change = self.controller.under_way(&correlation);
                    let fields = json!({
                        "method": request.method.name(),
                        "target": change.map(|c| c.target.to_string()),
                        "services": change.map(|c| self.services(c)),
                        "correlation": correlation,
                        "before": change.and_then(before),
                        "body": request.body.as_ref().map(Body::tree),
                    });
                    self.journal.note("write", fields)?;
                    self.open.insert(correlation);
                    self.writes += 1;
                }
                Effect::Say(notice) => {
                    let outcome = match notice.kind {
                        NoticeKind::Answered => "answered",
                        NoticeKind::Failed => "failed",
                        _ => continue,
                    };
                    tell(outcome, &notice.text);
                    let Some(correlation) = &notice.correlation else { continue };
                    if self.open.remove(correlation) {
                        let fields = json!({"correlation": correlation, "text": notice.text});
                        self.journal.note(outcome, fields)?;
                    }
                }
                Effect::Azure { .. } | Effect::Kubernetes { .. } => {}
            }
        }
        Ok(())
    }

    fn services(&self, change: &Change) -> Vec<String> {
        let all = &self.controller.world().kubernetes.services;
        change.causes.iter().filter_map(|uid| all.get(uid)).map(|s| s.name.to_string()).collect()
    }
}

/// The resource as it was read.
fn before(change: &Change) -> Option<Value> {
    match &change.action {
        Action::Put { before, .. } => before.as_ref().map(arm::body::write_resource),
        Action::Delete { before } => Some(arm::body::write_resource(before)),
        _ => None,
    }
}

/// One line of progress; a reader that is gone stops nothing.
fn tell(outcome: &str, text: &str) {
    let _ = writeln!(std::io::stderr(), "  {outcome}: {text}");
}

impl Step for Mover {
    fn step(&mut self, events: Vec<Event>, now_ms: u64) -> Vec<Effect> {
        let effects = self.controller.step(events, now_ms);
        if let Err(failure) = self.note(&effects) {
            // What cannot be noted is not done.
            self.broken = Some(failure);
            self.done.cancel();
            return Vec::new();
        }
        if self.is_done() {
            self.done.cancel();
        }
        effects
    }

    fn next_wake_ms(&self) -> Option<u64> {
        self.controller.next_wake_ms()
    }
}
