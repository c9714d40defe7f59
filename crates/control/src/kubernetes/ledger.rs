//! Calls about the ledger ([`model::ledger`]): one at a time, and how they look.

use crate::effect::{CallId, KubernetesCall};
use crate::retry::Retry;
use crate::trouble::{Failure, Trouble};
use model::ServiceName;
use model::ledger::{LedgerWrite, encode};
use observe::kubernetes::{LEDGER_DESTINATIONS, LEDGER_PLANNED_ON};
use plan::drift::Kept;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The key of the drift that is left.
pub(crate) const DRIFT: &str = "drift";

/// Calls about the ledger.
#[derive(Debug, Default)]
pub(crate) struct LedgerLane {
    /// The call under way.
    pub call: Option<CallId>,
    /// When it was last read, or written with success; `None`: it has to be read.
    pub read_ms: Option<u64>,
    /// Reads that failed.
    reads: Failed,
    /// Writes that failed.
    pub writes: Failed,
    /// The API server has asked for no call before.
    pub quiet_until_ms: Option<u64>,
    /// Drift that is left, as the ledger had it when it was last read or written.
    pub kept: Kept,
    /// Notes of drift that failed: no write of destinations waits for them.
    pub notes: Failed,
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
    /// The drift that is left is noted in it.
    Note(Kept),
}

impl LedgerLane {
    /// Whether nothing is under way and nothing has to be read.
    pub fn is_idle(&self) -> bool {
        self.call.is_none() && self.read_ms.is_some()
    }

    /// A call succeeded. How often writes have failed is kept until one succeeds, or none is due;
    /// so it is with notes. What the ledger has stays known.
    pub fn rest(&mut self, call: &LedgerCall, now_ms: u64) {
        let Self { mut writes, kept, notes, .. } = std::mem::take(self);
        (self.read_ms, self.kept) = (Some(now_ms), kept);
        if !matches!(call, LedgerCall::Write(_)) {
            writes.retry.resume();
            self.writes = writes;
        }
        if !matches!(call, LedgerCall::Note(_)) {
            self.notes = notes;
        }
    }

    /// When it needs attention without an answer.
    pub fn wake_ms(&self, interval_ms: u64) -> Option<u64> {
        if self.call.is_some() {
            return None;
        }
        let read_ms = self.read_ms.map(|at| at + interval_ms);
        let note_ms = self.notes.retry.next_ms();
        self.next_ms().or_else(|| read_ms.into_iter().chain(note_ms).min())
    }

    /// Whether it has to be read again.
    pub fn is_old(&self, interval_ms: u64, now_ms: u64) -> bool {
        self.read_ms.is_none_or(|at| at + interval_ms <= now_ms)
    }

    /// Waits that are over are waited no longer.
    pub fn pass(&mut self, now_ms: u64) {
        self.quiet_until_ms = self.quiet_until_ms.filter(|at| *at > now_ms);
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
    let all = format!("/api/v1/namespaces/{}/configmaps", name.namespace);
    let one = format!("{all}/{}", name.name);
    let write = match call {
        LedgerCall::Read => return get(one),
        LedgerCall::Note(kept) => return note(one, revision, kept),
        LedgerCall::Write(write) => write,
    };
    let etag = write.planned_on.as_ref().map_or("", |etag| etag.as_str());
    let data = json!({ LEDGER_DESTINATIONS: encode(&write.destinations),
        LEDGER_PLANNED_ON: etag });
    match &write.revision {
        Some(revision) => KubernetesCall {
            method: "PATCH",
            path: one,
            content_type: "application/merge-patch+json",
            body: json!({ "metadata": { "resourceVersion": &**revision }, "data": data }),
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

/// Writes the drift that is left. An empty note takes it out.
fn note(path: String, revision: Option<&str>, kept: &Kept) -> KubernetesCall {
    let text = Some(kept.encode()).filter(|text| !text.is_empty());
    KubernetesCall {
        method: "PATCH",
        path,
        content_type: "application/merge-patch+json",
        body: json!({ "metadata": { "resourceVersion": revision }, "data": { DRIFT: text } }),
    }
}

fn get(path: String) -> KubernetesCall {
    KubernetesCall { method: "GET", path, content_type: "application/json", body: Value::Null }
}
