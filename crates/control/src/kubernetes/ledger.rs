//! Calls about the ledger ([`model::ledger`]): one at a time, and how they look.

use crate::contested::Contested;
use crate::effect::{CallId, KubernetesCall};
use crate::gone::Gone;
use crate::retry::Retry;
use crate::trouble::{Failure, Trouble};
use model::ServiceName;
use model::ledger::{LedgerWrite, SetTags, encode};
use observe::kubernetes::{
    LEDGER_DESTINATIONS, LEDGER_NOTES_ALONE, LEDGER_PLANNED_ON, LEDGER_TAGS,
};
use plan_drift::Kept;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The key of the drift that is left.
pub(crate) const DRIFT: &str = "drift";
/// The key of the Services that went without being released.
pub(crate) const GONE: &str = "gone";
/// The key of the addresses that several namespaces list.
pub(crate) const CONTESTED: &str = "contested";
/// The shortest time between a note and the next one that no plan waits for.
pub(crate) const PACE_MS: u64 = 5_000;

/// What the ledger has beside the destinations, for the next process.
///
/// # Guarantees
/// Notes and destinations are written apart, destinations first. A note that a write to Azure waits
/// for takes turns with destinations: else it would wait while Services are created, or while the
/// API server refuses destinations. The back-off of a failed note delays no write of destinations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// Drift that is left.
    pub drift: Kept,
    /// Names of Services that went without being released.
    pub gone: Gone,
    /// Tags that annotations have set.
    pub tags: SetTags,
    /// Addresses that several namespaces list, each with its holder.
    pub contested: Contested,
}

impl Notes {
    /// Reads the notes of a ConfigMap's data; what is none of ours is nothing.
    pub fn read(data: Option<&Value>) -> Self {
        let text = |key: &str| data.and_then(|data| data.get(key)?.as_str());
        Self {
            drift: text(DRIFT).map(Kept::read).unwrap_or_default(),
            gone: text(GONE).map(Gone::read).unwrap_or_default(),
            tags: text(LEDGER_TAGS).map(SetTags::decode).unwrap_or_default(),
            contested: text(CONTESTED).map(Contested::read).unwrap_or_default(),
        }
    }

    /// As the ConfigMap's data, by key; `None` for an empty note.
    fn data(&self) -> BTreeMap<&'static str, Option<String>> {
        let all = [
            (DRIFT, self.drift.encode()),
            (GONE, self.gone.encode()),
            (LEDGER_TAGS, self.tags.encode()),
            (CONTESTED, self.contested.encode()),
        ];
        all.map(|(key, text)| (key, Some(text).filter(|text| !text.is_empty()))).into()
    }
}

/// Calls about the ledger.
#[derive(Debug, Default)]
pub(crate) struct LedgerLane {
    /// The call under way.
    pub call: Option<CallId>,
    /// When it was last read, or written with success; `None`: it has to be read.
    pub read_ms: Option<u64>,
    reads: Failed,
    pub writes: Failed,
    /// The API server has asked for no call before.
    pub quiet_until_ms: Option<u64>,
    /// The notes, as the ledger had them when it was last read or written.
    pub noted: Notes,
    /// Names of Services in a note that was sent, until it is known whether the ledger has them.
    pub noting: Gone,
    /// Notes that failed: their pauses are their own.
    pub notes: Failed,
    /// Whether the last write that was sent was one of destinations, successful or not.
    pub wrote: bool,
    /// The earliest time of the next note that no plan waits for.
    pub paced_ms: Option<u64>,
}

/// Calls of one kind that failed in a row. A read that succeeds between two writes that fail is no
/// success of theirs, and reads that failed before say nothing of a write.
#[derive(Debug, Default)]
pub(crate) struct Failed {
    pub retry: Retry,
    /// Why the last one did.
    trouble: Option<Trouble>,
}

impl Failed {
    /// None is due: what comes later has nothing to do with those that failed.
    pub fn forget(&mut self) {
        self.retry.succeeded();
        self.trouble = None;
    }
}

/// What is done to the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LedgerCall {
    /// It is read.
    Read,
    /// It is written.
    Write(Arc<LedgerWrite>),
    /// The notes in it become these.
    Note(Notes),
}

impl LedgerLane {
    /// Whether nothing is under way and nothing has to be read.
    pub fn is_idle(&self) -> bool {
        self.call.is_none() && self.read_ms.is_some()
    }

    /// Whether the ledger has a name of a Service that went, or may come to have it.
    pub fn may_have(&self, name: &str) -> bool {
        self.noted.gone.has(name) || self.noting.has(name)
    }

    /// A call succeeded. How often writes have failed is kept until one succeeds, or none is due;
    /// so it is with notes. What the ledger has stays known.
    pub fn rest(&mut self, call: &LedgerCall, now_ms: u64) {
        let Self { mut writes, noted, notes, wrote, paced_ms, .. } = std::mem::take(self);
        (self.read_ms, self.noted, self.wrote) = (Some(now_ms), noted, wrote);
        self.paced_ms = paced_ms;
        if !matches!(call, LedgerCall::Write(_)) {
            writes.retry.resume();
            self.writes = writes;
        }
        match call {
            LedgerCall::Note(_) => self.paced_ms = Some(now_ms + PACE_MS),
            LedgerCall::Read | LedgerCall::Write(_) => self.notes = notes,
        }
    }

    /// When it needs attention without an answer.
    pub fn wake_ms(&self, interval_ms: u64) -> Option<u64> {
        if self.call.is_some() {
            return None;
        }
        let read_ms = self.read_ms.map(|at| at + interval_ms);
        let note_ms = self.notes.retry.next_ms().into_iter().chain(self.paced_ms);
        self.next_ms().or_else(|| read_ms.into_iter().chain(note_ms).min())
    }

    /// Whether it has to be read again.
    pub fn is_old(&self, interval_ms: u64, now_ms: u64) -> bool {
        self.read_ms.is_none_or(|at| at + interval_ms <= now_ms)
    }

    /// Waits that are over are waited no longer.
    pub fn pass(&mut self, now_ms: u64) {
        self.quiet_until_ms = self.quiet_until_ms.filter(|at| *at > now_ms);
        self.paced_ms = self.paced_ms.filter(|at| *at > now_ms);
        for failed in [&mut self.reads, &mut self.writes, &mut self.notes] {
            failed.retry.pass(now_ms);
        }
    }

    /// A call failed; gives the time before which none like it is sent.
    pub fn fail(
        &mut self,
        call: &LedgerCall,
        failure: Failure<'_>,
        asked_ms: Option<u64>,
        now_ms: u64,
    ) -> u64 {
        // Whether it was carried out is not known.
        self.read_ms = self.read_ms.filter(|_| *call == LedgerCall::Read);
        let failed = match call {
            LedgerCall::Read => &mut self.reads,
            LedgerCall::Write(_) => &mut self.writes,
            LedgerCall::Note(_) => &mut self.notes,
        };
        let until_ms = now_ms + failed.retry.conflicted(asked_ms, now_ms);
        let before = failed.trouble.take();
        failed.trouble = Some(Trouble::after(before, failure, &BTreeSet::new(), now_ms));
        match call {
            LedgerCall::Read | LedgerCall::Write(_) => self.next_ms().unwrap_or(until_ms),
            LedgerCall::Note(_) => until_ms,
        }
    }

    /// When it is called again, if that has been put off. A note waits for its own time, too.
    pub fn next_ms(&self) -> Option<u64> {
        let calls = self.reads.retry.next_ms().max(self.writes.retry.next_ms());
        calls.max(self.quiet_until_ms)
    }

    /// When a failed call is attempted again.
    pub fn attempt_ms(&self) -> Option<u64> {
        self.next_ms().or(self.notes.retry.next_ms())
    }

    /// Why calls fail.
    pub fn trouble(&self) -> Option<&Trouble> {
        let all = [&self.reads, &self.writes, &self.notes];
        all.into_iter().find_map(|failed| failed.trouble.as_ref())
    }
}

/// The request of a call about the ledger of a name, of which this revision is known.
pub(crate) fn request(
    name: &ServiceName,
    revision: Option<&str>,
    call: &LedgerCall,
) -> KubernetesCall {
    let write = match call {
        LedgerCall::Read => return get(format!("{}/{}", all_of(name), name.name)),
        LedgerCall::Note(notes) => {
            let mut data = notes.data();
            if revision.is_none() {
                data.insert(LEDGER_NOTES_ALONE, Some("true".to_owned()));
                data.retain(|_, text| text.is_some());
            }
            return write_of(name, revision, json!(data));
        }
        LedgerCall::Write(write) => write,
    };
    let etag = write.planned_on.as_ref().map_or("", |etag| etag.as_str());
    let data = json!({ LEDGER_DESTINATIONS: encode(&write.destinations),
        LEDGER_PLANNED_ON: etag });
    write_of(name, write.revision.as_deref(), data)
}

/// A write of these data: of the ConfigMap with this revision, or of a new one.
fn write_of(name: &ServiceName, revision: Option<&str>, data: Value) -> KubernetesCall {
    let all = all_of(name);
    match revision {
        Some(revision) => KubernetesCall {
            method: "PATCH",
            path: format!("{all}/{}", name.name),
            content_type: "application/merge-patch+json",
            body: json!({ "metadata": { "resourceVersion": revision }, "data": data }),
        },
        None => KubernetesCall {
            method: "POST",
            path: all,
            content_type: "application/json",
            body: json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {
                "namespace": &*name.namespace, "name": &*name.name,
                "labels": { "app.kubernetes.io/name": "ballast" } }, "data": data }),
        },
    }
}

/// The path of the ConfigMaps in the same namespace.
fn all_of(name: &ServiceName) -> String {
    format!("/api/v1/namespaces/{}/configmaps", name.namespace)
}

fn get(path: String) -> KubernetesCall {
    KubernetesCall { method: "GET", path, content_type: "application/json", body: Value::Null }
}
