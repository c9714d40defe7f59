//! Writes of finalizers, status and conditions to Kubernetes objects: one at a time for each
//! object, and how they look.

use crate::backoff;
use crate::clock::timestamp;
use crate::effect::{CallId, KubernetesCall};
use crate::kubernetes::gates;
use crate::retry::Retry;
use crate::trouble::{Failure, Trouble};
use model::kubernetes::{
    Condition, EGRESS_MARKS, Ingress, MIGRATION_CONDITION, MoveStage, SERVICE_CONDITION, Truth,
};
use model::plan::{ConditionEdit, Edit, KubernetesWrite, MoveEdit, Object};
use model::{ServiceName, ServiceUid};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

/// The state of one object's writes.
#[derive(Debug, Default)]
pub(crate) struct ObjectLane {
    /// The write under way.
    pub call: Option<CallId>,
    pub retry: Retry,
    /// Why the last writes failed.
    pub trouble: Option<Trouble>,
    /// When the last of them did.
    failed_ms: u64,
    /// What the call under way writes, or what the last failed call wrote; `None`: it reads.
    sent: Option<Edit>,
    /// What was last acknowledged, for as long as it is not seen that it is kept.
    pub acknowledged: Option<Edit>,
    /// The write under way was sent before the right to write was another's: what is answered
    /// says nothing of now.
    pub outlived: bool,
}

impl ObjectLane {
    /// Whether a write may be sent now.
    pub fn is_free(&self, now_ms: u64) -> bool {
        self.call.is_none() && self.retry.is_due(now_ms)
    }

    /// Whether nothing is under way or waits to be sent again.
    pub fn is_idle(&self) -> bool {
        self.call.is_none() && !self.retry.is_put_off()
    }

    /// A call is made that writes this; `None`: it reads.
    pub fn begin(&mut self, call: CallId, edit: Option<Edit>) {
        self.call = Some(call);
        self.outlived = false;
        self.sent = edit;
    }

    /// Whether this is what the call under way writes, or what the last failed call wrote.
    pub fn has_sent(&self, edit: &Edit) -> bool {
        self.sent.as_ref() == Some(edit)
    }

    /// The addresses that the write under way sets in a Service's status.
    pub fn tells(&self) -> Option<&Vec<Ingress>> {
        match self.sent.as_ref().filter(|_| self.call.is_some())? {
            Edit::Status { ingress, .. } => ingress.as_ref(),
            Edit::Finalizers { .. } | Edit::Gate { .. } => None,
        }
    }

    /// Whether the call under way is a read.
    pub fn is_read(&self) -> bool {
        self.call.is_some() && self.sent.is_none()
    }

    /// A write was acknowledged. True when the same was acknowledged before and had to be written
    /// again: it is not kept.
    pub fn acknowledge(&mut self) -> bool {
        let (before, sent) = (self.acknowledged.take(), self.sent.take());
        let lost = before.zip(sent.as_ref()).is_some_and(|(before, sent)| is_same(&before, sent));
        if !lost {
            *self = Self::default();
        }
        self.acknowledged = sent;
        lost
    }

    /// A call failed; gives the pause before the next.
    pub fn fail(
        &mut self,
        failure: Failure<'_>,
        causes: &BTreeSet<ServiceUid>,
        asked_ms: Option<u64>,
        now_ms: u64,
    ) -> u64 {
        self.call = None;
        self.failed_ms = now_ms;
        self.trouble = Some(Trouble::after(self.trouble.take(), failure, causes, now_ms));
        self.retry.conflicted(asked_ms, now_ms)
    }

    /// Nothing is to be written any more. Whether failures are remembered: another wish is no
    /// reason to call sooner an API server that has just refused.
    pub fn rest(&mut self, now_ms: u64) -> bool {
        self.trouble = None;
        self.acknowledged = None;
        now_ms < self.failed_ms + backoff::LONGEST_MS
    }
}

/// A write of a Kubernetes object as an operation.
pub(crate) fn operation_on(object: &Object) -> String {
    match object {
        Object::Service { name, .. } => format!("PATCH Service {name}"),
        Object::Pod { name, .. } => format!("PATCH Pod {name}"),
    }
}

/// The Service that a Kubernetes object is.
pub(crate) fn services_of(object: &Object) -> BTreeSet<ServiceUid> {
    match object {
        Object::Service { uid, .. } => BTreeSet::from([uid.clone()]),
        Object::Pod { .. } => BTreeSet::new(),
    }
}

/// Whether two writes ask for the same, whichever version of the object they were planned on.
fn is_same(one: &Edit, other: &Edit) -> bool {
    match (one, other) {
        (
            Edit::Finalizers { list, marks, .. },
            Edit::Finalizers { list: others, marks: other_marks, .. },
        ) => list == others && marks == other_marks,
        (one, other) => one == other,
    }
}

/// Reads one Pod. The ClusterRole has `list` for Pods, and not `get`.
pub(crate) fn read_pod(name: &ServiceName) -> KubernetesCall {
    let ServiceName { namespace, name } = name;
    let query = format!("fieldSelector=metadata.name%3D{name}");
    let path = format!("/api/v1/namespaces/{namespace}/pods?{query}");
    KubernetesCall { method: "GET", path, content_type: "application/json", body: Value::Null }
}

/// The request that carries out a write.
pub(crate) fn request(write: &KubernetesWrite, now_ms: u64) -> KubernetesCall {
    let (path, uid) = match &write.object {
        Object::Service { name, uid } => {
            (format!("/api/v1/namespaces/{}/services/{}", name.namespace, name.name), uid.as_str())
        }
        Object::Pod { name, uid } => {
            (format!("/api/v1/namespaces/{}/pods/{}", name.namespace, name.name), &**uid)
        }
    };
    let mut content_type = MERGE_PATCH;
    let (path, body) = match &write.edit {
        Edit::Finalizers { list, revision, marks, .. } => {
            let list: Vec<&str> = list.iter().map(AsRef::as_ref).collect();
            let list = if list.is_empty() { Value::Null } else { json!(list) };
            let mut metadata =
                json!({ "uid": uid, "resourceVersion": &**revision, "finalizers": list });
            if let Some(marks) = marks {
                let names: Vec<&str> = marks.iter().map(AsRef::as_ref).collect();
                let text = if names.is_empty() { Value::Null } else { json!(names.join(",")) };
                metadata["annotations"] = json!({ EGRESS_MARKS: text });
            }
            (path, json!({ "metadata": metadata }))
        }
        Edit::Status { ingress, condition, moving } => {
            // Merged by type: the other conditions are other controllers'.
            content_type = STRATEGIC_PATCH;
            let status = status(ingress.as_deref(), condition, *moving, now_ms);
            (format!("{path}/status"), json!({ "metadata": { "uid": uid }, "status": status }))
        }
        Edit::Gate { gate, reason, message } => {
            // Merged by type: the other conditions are the kubelet's.
            content_type = STRATEGIC_PATCH;
            let condition = gates::condition(*gate, *reason, message, now_ms);
            let status = json!({ "conditions": [condition] });
            (format!("{path}/status"), json!({ "metadata": { "uid": uid }, "status": status }))
        }
    };
    KubernetesCall { method: "PATCH", path, content_type, body }
}

fn status(
    list: Option<&[Ingress]>,
    condition: &ConditionEdit,
    moving: MoveEdit,
    now_ms: u64,
) -> Value {
    let mut status = serde_json::Map::new();
    if let Some(list) = list {
        let list: Vec<Value> = list.iter().map(ingress).collect();
        let list = if list.is_empty() { Value::Null } else { Value::Array(list) };
        status.insert("loadBalancer".to_owned(), json!({ "ingress": list }));
    }
    let condition = match condition {
        ConditionEdit::Keep => None,
        ConditionEdit::Remove => Some(json!({ "type": SERVICE_CONDITION, "$patch": "delete" })),
        ConditionEdit::Set(Condition { truth, reason, message, since }) => Some(json!({
            "type": SERVICE_CONDITION,
            "status": truth.name(),
            "reason": &**reason,
            "message": &**message,
            "lastTransitionTime":
                since.as_ref().map_or_else(|| timestamp(now_ms), ToString::to_string),
        })),
    };
    let conditions: Vec<Value> = condition.into_iter().chain(moved(moving, now_ms)).collect();
    if !conditions.is_empty() {
        status.insert("conditions".to_owned(), Value::Array(conditions));
    }
    Value::Object(status)
}

/// The condition about a move to other backends.
fn moved(moving: MoveEdit, now_ms: u64) -> Option<Value> {
    let (to, stage) = match moving {
        MoveEdit::Keep => return None,
        MoveEdit::Remove => {
            return Some(json!({ "type": MIGRATION_CONDITION, "$patch": "delete" }));
        }
        MoveEdit::Set { to, stage } => (to, stage),
    };
    let (truth, message) = match stage {
        MoveStage::Both => {
            (Truth::False, "The status has the addresses of the former load balancer and the new.")
        }
        MoveStage::Draining => (
            Truth::True,
            "The status has the new addresses; the former load balancer drains, then goes.",
        ),
    };
    Some(json!({
        "type": MIGRATION_CONDITION,
        "status": truth.name(),
        "reason": to.reason(),
        "message": message,
        "lastTransitionTime": timestamp(now_ms),
    }))
}

fn ingress(entry: &Ingress) -> Value {
    let mut object = serde_json::Map::new();
    if let Some(ip) = &entry.ip {
        object.insert("ip".to_owned(), json!(&**ip));
    }
    if let Some(hostname) = &entry.hostname {
        object.insert("hostname".to_owned(), json!(&**hostname));
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::kubernetes::{Gate, GateReason};
    use model::plan::FinalizerPurpose;

    /// The API server refuses a patch with another UID: what is meant for an object never reaches
    /// one of the same name that took its place.
    #[test]
    fn every_patch_names_the_object_that_it_is_for() {
        let name = ServiceName::new("default", "web");
        let service = Object::Service { name: name.clone(), uid: ServiceUid::new("uid-1") };
        let pod = Object::Pod { name, uid: "uid-1".into() };
        let finalizers = Edit::Finalizers {
            list: Vec::new(),
            revision: "7".into(),
            purpose: FinalizerPurpose::Release,
            marks: None,
        };
        let status = Edit::Status {
            ingress: Some(Vec::new()),
            condition: ConditionEdit::Keep,
            moving: MoveEdit::Keep,
        };
        let gate = Edit::Gate {
            gate: Gate::Open,
            reason: GateReason::Programmed,
            message: "it is listed".into(),
        };
        let all = [
            (service.clone(), finalizers.clone()),
            (service, status),
            (pod.clone(), finalizers),
            (pod, gate),
        ];
        for (object, edit) in all {
            let write = KubernetesWrite { object, edit };
            let body = request(&write, 0).body;
            assert_eq!(body["metadata"]["uid"], "uid-1", "{write:?}");
        }
    }
}
