//! What the emulated nodes' service proxies let through: the ports that health probes find open
//! follow the emulated cluster's Services, Pods and nodes, as kube-proxy has them.

use data_path::{Host, Hosts};
use kube_emulator::{Shared, Store};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The sample's nodes, as they are when all their ports are open.
#[derive(Clone, Debug, Default)]
pub(super) struct Machines {
    /// By node: its addresses and where it really is.
    pub nodes: BTreeMap<String, (Vec<std::net::IpAddr>, Host)>,
    /// Where all other addresses are.
    pub anybody: Option<Host>,
    /// A port of loopback that refuses connections.
    pub closed: u16,
}

/// Where nodes and Pods are now, and which ports of nodes are shut.
pub(super) fn hosts(store: &Shared, machines: &Machines) -> Hosts {
    let cluster = store.with(|store, _| Cluster::of(store));
    let doors = cluster.doors();
    let mut hosts = Hosts { anybody: machines.anybody.clone(), ..Hosts::default() };
    for (node, (addresses, host)) in &machines.nodes {
        let mut host = host.clone();
        if cluster.is_ready(node) {
            let shut = doors.iter().filter(|door| !door.is_open_at(node));
            host.ports.extend(shut.flat_map(|d| &d.ports).map(|port| (*port, machines.closed)));
        } else {
            host.others = Some(machines.closed);
        }
        hosts.hosts.extend(addresses.iter().map(|address| (*address, host.clone())));
    }
    hosts
}

/// What proxies look at.
struct Cluster {
    nodes: Vec<Arc<Value>>,
    services: Vec<Arc<Value>>,
    pods: Vec<Arc<Value>>,
}

impl Cluster {
    fn of(store: &Store) -> Self {
        let list = |plural| store.list(plural, None);
        Self { nodes: list("nodes"), services: list("services"), pods: list("pods") }
    }

    /// A node that says that it is not ready does not answer.
    fn is_ready(&self, name: &str) -> bool {
        let own = self.nodes.iter().find(|node| node["metadata"]["name"] == name);
        own.is_none_or(|node| condition(node) != Some("False"))
    }

    /// The ports of each Service on nodes.
    fn doors(&self) -> Vec<Door> {
        // There may be thousands of both: a Service looks at the Pods that share a label with it.
        let mut labelled: BTreeMap<(&str, &str, &str), Vec<&Value>> = BTreeMap::new();
        for pod in self.pods.iter().map(|pod| &**pod) {
            let ready = condition(pod) == Some("True");
            if ready && pod["metadata"]["deletionTimestamp"].is_null() {
                let labels = pod["metadata"]["labels"].as_object().into_iter().flatten();
                for (key, value) in labels {
                    let key = (namespace(pod), key.as_str(), value.as_str().unwrap_or_default());
                    labelled.entry(key).or_default().push(pod);
                }
            }
        }
        let door = |service: &Arc<Value>| {
            let first = service["spec"]["selector"].as_object().and_then(|all| all.iter().next());
            let some = first.and_then(|(key, value)| {
                labelled.get(&(namespace(service), key.as_str(), value.as_str()?))
            });
            let some = some.into_iter().flatten().filter(|pod| selects(service, pod));
            let node = |pod: &&Value| pod["spec"]["nodeName"].as_str().map(str::to_owned);
            let ports = service["spec"]["ports"].as_array().into_iter().flatten();
            let ports = ports.map(|port| &port["nodePort"]);
            let check = std::iter::once(&service["spec"]["healthCheckNodePort"]);
            Door {
                local: service["spec"]["externalTrafficPolicy"] == "Local",
                nodes: some.filter_map(node).collect(),
                ports: ports.chain(check).filter_map(port).collect(),
            }
        };
        self.services.iter().map(door).collect()
    }
}

/// A Service's ports on nodes.
struct Door {
    local: bool,
    /// Nodes with a ready Pod behind it.
    nodes: BTreeSet<String>,
    ports: Vec<u16>,
}

impl Door {
    fn is_open_at(&self, node: &str) -> bool {
        if self.local { self.nodes.contains(node) } else { !self.nodes.is_empty() }
    }
}

fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}

fn port(value: &Value) -> Option<u16> {
    u16::try_from(value.as_u64()?).ok()
}

/// The status of the condition Ready.
fn condition(object: &Value) -> Option<&str> {
    let mut all = object["status"]["conditions"].as_array()?.iter();
    all.find(|one| one["type"] == "Ready")?["status"].as_str()
}

/// Whether a Service's selector takes a Pod of its namespace.
fn selects(service: &Value, pod: &Value) -> bool {
    let Some(selector) = service["spec"]["selector"].as_object() else { return false };
    selector.iter().all(|(key, value)| pod["metadata"]["labels"][key] == *value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(node: &str, ready: &str) -> Arc<Value> {
        Arc::new(json!({"metadata": {"namespace": "d", "labels": {"app": "web"}},
            "spec": {"nodeName": node},
            "status": {"conditions": [{"type": "Ready", "status": ready}]}}))
    }

    fn service(policy: &str) -> Arc<Value> {
        Arc::new(json!({"metadata": {"namespace": "d"}, "spec": {"selector": {"app": "web"},
            "externalTrafficPolicy": policy, "healthCheckNodePort": 31_000,
            "ports": [{"nodePort": 30_080}]}}))
    }

    fn cluster(policy: &str, pods: Vec<Arc<Value>>) -> Cluster {
        let node = json!({"metadata": {"name": "b"},
            "status": {"conditions": [{"type": "Ready", "status": "False"}]}});
        Cluster { nodes: vec![Arc::new(node)], services: vec![service(policy)], pods }
    }

    #[test]
    fn ports_are_open_where_a_ready_pod_is_behind_them() {
        let open = |policy: &str, pods: &[Arc<Value>]| {
            let cluster = cluster(policy, pods.to_vec());
            let door = cluster.doors().remove(0);
            assert_eq!(door.ports, [30_080, 31_000]);
            (door.is_open_at("a"), door.is_open_at("b"))
        };
        let pods = [pod("a", "True"), pod("b", "False")];
        assert_eq!(open("Cluster", &pods), (true, true));
        assert_eq!(open("Local", &pods), (true, false));
        assert_eq!(open("Cluster", &pods[1..]), (false, false));
        let cluster = cluster("Cluster", Vec::new());
        assert!(!cluster.is_ready("b") && cluster.is_ready("a"));
    }
}
