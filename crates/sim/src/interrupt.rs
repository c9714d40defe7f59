//! Watches that break on purpose, and lists that take their place.

use crate::process::plural;
use crate::stage::{Happening, Stage};
use kube_emulator::EventType;
use model::world::Kind;

/// How late a watch is that follows a list of an earlier revision.
pub(crate) const LATE_MS: u64 = 20_000;

/// What takes the place of a watch that breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// A list of now: what went meanwhile is not named.
    Missed,
    /// A list of this revision, as a server's cache may give it, and a watch that goes on there
    /// late.
    Old(u64),
}

impl Stage {
    /// With its next delivery every watch breaks.
    pub(crate) fn break_watches(&mut self) {
        for process in &mut self.processes {
            for stream in process.streams.values_mut() {
                stream.interrupted = Some(Interruption::Missed);
            }
        }
    }

    /// Lists of a revision take the place of all watches. Not of those whose objects have gone
    /// since: a list would say that they are there. Namespaces have no revision to go by.
    pub(crate) fn list_from(&mut self, revision: u64) {
        let mut due = Vec::new();
        for (number, process) in self.processes.iter_mut().enumerate() {
            for (kind, stream) in &mut process.streams {
                let events = self.kubernetes.events_since(plural(*kind), revision);
                let gone =
                    events.is_ok_and(|all| all.iter().any(|e| e.event == EventType::Deleted));
                if gone || *kind == Kind::Namespaces {
                    continue;
                }
                stream.interrupted = Some(Interruption::Old(revision));
                if !std::mem::replace(&mut stream.queued, true) {
                    due.push((number, process.epoch, *kind));
                }
            }
        }
        for (number, epoch, kind) in due {
            self.queue_at(self.now_ms + 1, Happening::Watch(number, epoch, kind));
        }
    }

    /// What a watch brings next comes late.
    pub(crate) fn delay_watch(&mut self, number: usize, kind: Kind) {
        let process = &mut self.processes[number];
        let epoch = process.epoch;
        let Some(stream) = process.streams.get_mut(&kind) else { return };
        if !std::mem::replace(&mut stream.queued, true) {
            self.queue_at(self.now_ms + LATE_MS, Happening::Watch(number, epoch, kind));
        }
    }
}
