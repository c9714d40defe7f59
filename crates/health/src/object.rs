//! The Kubernetes objects by which agents and the controller tell each other.
//!
//! A report is a Lease that stands for exactly as long as the proxy of its node is ill: a healthy
//! cluster has none, writes none and watches nothing. The verdict is a ConfigMap that stands for as
//! long as nodes with an ill proxy stay in rotation.

use model::NodeName;
use serde_json::{Value, json};

/// The namespace of reports and verdict where nothing is said. They have one to themselves: agents
/// create and delete Leases, and elsewhere there are Leases of others.
pub const NAMESPACE: &str = "ballast-agents";
/// The label of reports, by which the controller watches them.
pub const REPORT_LABEL: &str = "ballast.dev/report";
/// Its value.
pub const REPORT: &str = "proxy-ill";
/// What a report's name begins with; the node's name follows.
const PREFIX: &str = "ballast-proxy-ill.";
/// The name of the verdict.
pub const VERDICT: &str = "ballast-majority";
/// Longest reason, in characters.
const LONGEST: usize = 200;

/// Where Leases of a namespace are.
#[must_use]
pub fn leases(namespace: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")
}

/// Where ConfigMaps of a namespace are.
#[must_use]
pub fn config_maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

/// The path of a node's report.
#[must_use]
pub fn report_path(namespace: &str, node: &NodeName) -> String {
    format!("{}/{PREFIX}{node}", leases(namespace))
}

/// The path of the verdict.
#[must_use]
pub fn verdict_path(namespace: &str) -> String {
    format!("{}/{VERDICT}", config_maps(namespace))
}

/// A node's report. It goes with its Node.
#[must_use]
pub fn report(node: &NodeName, uid: &str, why: &str, now: &str) -> Value {
    let why: String = why.chars().take(LONGEST).collect();
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": format!("{PREFIX}{node}"),
            "labels": { REPORT_LABEL: REPORT },
            "annotations": { "ballast.dev/reason": why },
            "ownerReferences": [
                { "apiVersion": "v1", "kind": "Node", "name": node.as_str(), "uid": uid },
            ],
        },
        "spec": { "holderIdentity": node.as_str(), "acquireTime": now },
    })
}

/// The node that a Lease of this name reports about.
#[must_use]
pub fn reported(lease: &str) -> Option<NodeName> {
    let node = lease.strip_prefix(PREFIX).filter(|node| !node.is_empty());
    node.map(NodeName::new)
}

/// What the verdict is about, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Nodes whose proxy is ill.
    pub ill: usize,
    /// Nodes that take traffic.
    pub nodes: usize,
    /// The share that is allowed.
    pub share_percent: u8,
}

/// The verdict.
#[must_use]
pub fn verdict(count: Count, now: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": VERDICT },
        "data": {
            "ill": count.ill.to_string(),
            "nodes": count.nodes.to_string(),
            "sharePercent": count.share_percent.to_string(),
            "since": now,
        },
    })
}

/// Why an Event is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The verdict came into force.
    Raised,
    /// It is over.
    Lifted,
}

/// The Event about the verdict, which names the ConfigMap. `instance` differs between processes.
#[must_use]
pub fn event(
    occasion: Occasion,
    count: Count,
    (namespace, instance): (&str, &str),
    (now, now_ms): (&str, u64),
) -> Value {
    let Count { ill, nodes, share_percent } = count;
    let (kind, reason, message) = match occasion {
        Occasion::Raised => (
            "Warning",
            "MostProxiesIll",
            format!(
                "the service proxy is ill on {ill} of {nodes} nodes, which is more than \
                 {share_percent} %: a bad roll-out and not bad nodes; their nodes stay in rotation \
                 until no more than half of that share is ill"
            ),
        ),
        Occasion::Lifted => (
            "Normal",
            "FewProxiesIll",
            format!(
                "the service proxy is ill on {ill} of {nodes} nodes: nodes with an ill proxy leave \
                 rotation again"
            ),
        ),
    };
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "namespace": namespace,
            "name": format!("{VERDICT}.{instance}{now_ms:x}"),
        },
        "involvedObject": {
            "apiVersion": "v1", "kind": "ConfigMap", "namespace": namespace, "name": VERDICT,
        },
        "type": kind,
        "reason": reason,
        "message": message,
        "source": { "component": "ballast" },
        "reportingComponent": "ballast",
        "reportingInstance": instance,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_its_node_by_its_name_and_goes_with_it() {
        let node = NodeName::new("vmss000007");
        let report = report(&node, "u7", &"x".repeat(500), "now");
        assert_eq!(report["metadata"]["ownerReferences"][0]["uid"], "u7");
        let reason = report["metadata"]["annotations"]["ballast.dev/reason"].as_str();
        assert_eq!(reason.map(str::len), Some(LONGEST));
        let name = report["metadata"]["name"].as_str().unwrap();
        assert_eq!(reported(name), Some(node));
        for other in ["ballast", "ballast-proxy-ill.", ""] {
            assert_eq!(reported(other), None, "{other:?}");
        }
    }

    #[test]
    fn the_event_tells_how_many_of_how_many() {
        let count = Count { ill: 12, nodes: 20, share_percent: 50 };
        let event = event(Occasion::Raised, count, (NAMESPACE, "i"), ("now", 255));
        assert_eq!(event["metadata"]["name"], "ballast-majority.iff");
        let message = event["message"].as_str().unwrap();
        assert!(message.starts_with("the service proxy is ill on 12 of 20 nodes"), "{message}");
    }
}
