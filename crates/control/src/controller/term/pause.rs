//! An operator stops writes to Azure for the whole cluster, by an annotation of the Lease.
//!
//! # Guarantees
//! - From the step that hears of it on no write of a resource begins that is paused; one under way
//!   is followed to its end. Planning, reads and writes to Kubernetes go on.
//! - A process hears of it before it hears that it leads: a restart sends nothing.

use crate::controller::Controller;
use crate::effect::NoticeKind;
use crate::term::Paused;
use model::obstacle::Subject;
use model::{Obstacle, ObstacleKind, Pause, ResourceId, ServiceUid};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Controller {
    /// What an operator has paused.
    pub(crate) fn pause(&self) -> Option<&Pause> {
        self.term.paused.as_ref().map(|paused| &paused.pause)
    }

    /// Whether an operator has paused writes of a resource.
    pub(crate) fn is_paused(&self, id: &ResourceId) -> bool {
        self.pause().is_some_and(|pause| pause.stops(id))
    }

    /// The Lease says what is paused from now on.
    pub(crate) fn hear_of_pause(&mut self, pause: Option<Pause>, now_ms: u64) {
        if self.pause() == pause.as_ref() {
            return;
        }
        let text = match &pause {
            Some(pause) => format!("{pause} are paused by an operator; what is under way ends"),
            None => "writes to Azure go on: the operator's pause has ended".to_owned(),
        };
        self.say(now_ms, NoticeKind::Planned, &BTreeSet::new(), text, None);
        self.term.paused = pause.map(|pause| Paused { pause, since_ms: now_ms });
        self.planning.dirty = true;
    }

    /// The pause as what stands in the way, with the Services whose changes wait for its end.
    pub(crate) fn pause_obstacle(&self) -> Option<Obstacle> {
        let Paused { pause, since_ms } = self.term.paused.as_ref()?;
        let changes = self.planning.plan.changes.iter();
        let kept = changes.filter(|change| pause.stops(&change.target));
        let services: BTreeSet<ServiceUid> = kept.flat_map(|c| &c.causes).cloned().collect();
        let message = format!(
            "{}: {pause} are paused by an operator; `ballast resume --all` ends the pause",
            model::pause::PAUSE
        );
        Some(Obstacle {
            about: Subject::Cluster,
            services,
            kind: ObstacleKind::Paused,
            operation: Arc::from("writes to Azure"),
            code: Arc::from("Paused"),
            message: Arc::from(message),
            attempt: 0,
            since_ms: *since_ms,
            next_ms: None,
        })
    }
}
