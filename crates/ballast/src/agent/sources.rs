//! What an agent watches.

use super::Settings;
use edge::kubernetes::{Change, Listing, Read, Source, Told};
use health::{Fact, Leaving, NodeFact, Part, object};
use model::{Group, ServiceName};
use observe::intern::Interner;
use observe::kubernetes::{RawEndpointSlice, node_from_value, raw::Metadata, slice};
use serde::Deserialize;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};

/// As kube-proxy asks for them.
const OF_SERVICES: &str = "kubernetes.io/service-name,!service.kubernetes.io/headless";
/// The label with a node's resource group. The agent's node is in its cluster's, whatever that is.
const GROUP_LABEL: &str = "/metadata/labels/kubernetes.azure.com~1resource-group";
/// How the kubelet says in its Ready condition that the machine is shut down: there is no code.
const SHUTTING_DOWN: &str = "node is shutting down";

/// A fact that a watch tells.
pub(super) struct Watched(Fact);

impl Told for Watched {
    type Event = Fact;
    type Kind = Part;

    fn begin(kind: Part) -> Self {
        Self(Fact::Begin(kind))
    }

    fn end(kind: Part, _revision: &str) -> Self {
        Self(Fact::End(kind))
    }

    fn event(self) -> Fact {
        self.0
    }

    fn list(_kind: Part) -> Listing {
        Listing::Cached
    }
}

/// The watches of an agent.
pub(super) fn sources(settings: &Settings) -> [Source<Watched>; 3] {
    let named = |name: &str| Some(format!("metadata.name={name}"));
    [
        Source {
            kind: Part::Node,
            path: "/api/v1/nodes".to_owned(),
            selector: None,
            fields: named(settings.node.as_str()),
            read: Arc::new(|change, json| read_node(change, json).map(Watched)),
        },
        Source {
            kind: Part::Slices,
            path: "/apis/discovery.k8s.io/v1/endpointslices".to_owned(),
            selector: Some(OF_SERVICES.to_owned()),
            fields: None,
            read: slices(),
        },
        Source {
            kind: Part::Verdict,
            path: object::config_maps(&settings.namespace),
            selector: None,
            fields: named(object::VERDICT),
            read: Arc::new(|change, _| {
                Ok(Watched(match change {
                    Change::Present => Fact::Verdict,
                    Change::Gone => Fact::VerdictGone,
                }))
            }),
        },
    ]
}

fn read_node(change: Change, json: &str) -> Result<Fact, String> {
    if change == Change::Gone {
        return Ok(Fact::NodeGone);
    }
    let value: Value = serde_json::from_str(json).map_err(|e| e.to_string())?;
    let group = value.pointer(GROUP_LABEL).and_then(Value::as_str).unwrap_or_default();
    let node = node_from_value(&value, &Group::new(group), &mut Interner::default());
    let node = node.map_err(|e| e.to_string())?;
    let conditions = value.pointer("/status/conditions").and_then(Value::as_array);
    let ending = conditions.into_iter().flatten().any(|condition| {
        let message = condition["message"].as_str().unwrap_or_default();
        condition["type"] == "Ready"
            && condition["status"] == "False"
            && message.contains(SHUTTING_DOWN)
    });
    let shutdown = ending.then_some(Leaving::ShuttingDown);
    let uid = value.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
    Ok(Fact::Node(NodeFact {
        uid: uid.to_owned(),
        leaving: Leaving::of(node.membership).or(shutdown),
    }))
}

#[derive(Deserialize)]
struct Named {
    metadata: Metadata,
}

fn slices() -> Read<Watched> {
    let pool = Mutex::new(Interner::default());
    Arc::new(move |change, json| {
        if change == Change::Gone {
            let raw: Named = serde_json::from_str(json).map_err(|e| e.to_string())?;
            let name = ServiceName::new(&raw.metadata.namespace, &raw.metadata.name);
            return Ok(Watched(Fact::SliceGone(name)));
        }
        let raw: RawEndpointSlice = serde_json::from_str(json).map_err(|e| e.to_string())?;
        let mut interner = pool.lock().unwrap_or_else(PoisonError::into_inner);
        let slice = slice(&raw, &mut interner).map_err(|e| e.to_string())?;
        Ok(Watched(Fact::Slice(slice)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn leaving(node: &Value) -> Option<Leaving> {
        match read_node(Change::Present, &node.to_string()) {
            Ok(Fact::Node(node)) => node.leaving,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_node_leaves_for_every_reason_that_the_controller_knows_and_when_it_is_shut_down() {
        let labels =
            |key: &str, value: &str| json!({"metadata": {"name": "a", "labels": {key: value}}});
        let ready = |status: &str, message: &str| {
            json!({"metadata": {"name": "a"}, "status": {"conditions": [
                {"type": "Ready", "status": status, "message": message}]}})
        };
        let taint = json!({"metadata": {"name": "a"}, "spec": {"taints":
            [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]}});
        let deleted =
            json!({"metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        let excluded = "node.kubernetes.io/exclude-from-external-load-balancers";
        for (node, wanted) in [
            (labels("x", "y"), None),
            (labels("kubernetes.azure.com/resource-group", "Other"), None),
            (labels(excluded, ""), Some(Leaving::Excluded)),
            (taint, Some(Leaving::Draining)),
            (deleted, Some(Leaving::Draining)),
            (ready("False", "[container runtime is down]"), None),
            (ready("False", "node is shutting down"), Some(Leaving::ShuttingDown)),
            (ready("True", "kubelet is posting ready status"), None),
            // Cordoned is not drained: its Pods serve on.
            (json!({"metadata": {"name": "a"}, "spec": {"unschedulable": true}}), None),
        ] {
            assert_eq!(leaving(&node), wanted, "{node}");
        }
        assert_eq!(read_node(Change::Gone, "{}"), Ok(Fact::NodeGone));
    }

    #[test]
    fn a_slice_and_its_end_have_one_name() {
        let json = r#"{"metadata":{"name":"web-1","namespace":"s","resourceVersion":"1",
            "labels":{"kubernetes.io/service-name":"web"}}}"#;
        let read = slices();
        let Ok(Watched(Fact::Slice(slice))) = read(Change::Present, json) else { panic!("{json}") };
        let Ok(Watched(Fact::SliceGone(name))) = read(Change::Gone, json) else { panic!("{json}") };
        assert_eq!(slice.name, name);
        assert!(read(Change::Present, "7").is_err());
    }
}
