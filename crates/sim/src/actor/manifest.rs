//! The Service that an owner's wish makes.

use super::values::{self, WRONG, key};
use super::wishes::{KINDS, ONE_FAMILY, PORTS, Port, SHIFT, Wish, is_dual, name};
use super::{families, merge};
use crate::scene::{Layout, Scene};
use plan::ask::annotation::{self, PAUSE, PORT};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The first node port of the first owner.
const NODE_PORTS: u64 = 31_000;

/// The same for Services whose node ports have moved.
const MOVED_NODE_PORTS: u64 = 31_500;

/// A `spec.loadBalancerIP` beside an annotation that says another address.
const OUTDONE: &str = "10.224.9.250";

impl Wish {
    fn ports(&self, owner: u64, internal: bool, scene: &Scene) -> Vec<Value> {
        let containers = scene.layout == Layout::Containers;
        let standard = !matches!(scene.layout, Layout::PerSet | Layout::Containers);
        let sctp = internal && standard;
        let suits = |(_, port): &(u64, &Port)| sctp || port.0 != "SCTP";
        let mut wanted: Vec<(u64, &Port)> =
            self.ports.iter().map(|at| (*at as u64, &PORTS[*at])).filter(suits).collect();
        if wanted.is_empty() {
            wanted.push((0, &PORTS[0]));
        }
        let shift = self.fields.get(SHIFT).copied().unwrap_or(0);
        // Node ports move as well, once: nothing but what leads to them says so.
        let node_ports = if shift > 1 { MOVED_NODE_PORTS } else { NODE_PORTS };
        let ports = wanted.into_iter().map(|(at, (protocol, name, number, app))| {
            let named = !containers && at % 2 == 1;
            let mut port = json!({"name": name, "protocol": protocol,
                "port": 1_000 * (owner + 2) + number,
                "targetPort": if named { json!(name) } else { json!(8_000 + at + 100 * shift) },
                "nodePort": node_ports + owner * 10 + at});
            if let Some(app) = app {
                port["appProtocol"] = json!(app);
            }
            if self.has_no_node_ports(owner, scene)
                && let Some(port) = port.as_object_mut()
            {
                port.shift_remove("nodePort");
                // The API server gives a port that keeps its name the node port it had.
                port.insert("name".to_owned(), json!(format!("{name}-direct")));
            }
            port
        });
        ports.collect()
    }

    /// Backends without floating IP, among them those of IPv6 inside, are reached on node ports.
    fn has_no_node_ports(&self, owner: u64, scene: &Scene) -> bool {
        let set = self.settled(owner, scene);
        let ipv6_inside = is_dual(owner, scene) && set.contains_key(key::INTERNAL);
        self.fields.contains_key("no node ports")
            && !set.contains_key(key::NO_FLOATING_IP)
            && !ipv6_inside
    }

    /// The Service.
    pub(super) fn service(&self, owner: u64, scene: &Scene) -> Value {
        let set = self.settled(owner, scene);
        let internal = set.contains_key(key::INTERNAL);
        let ports = self.ports(owner, internal, scene);
        let mut annotations = Map::new();
        let value = |key: &str| if key == PAUSE { "true" } else { WRONG };
        let wrong = self.wrong.iter().map(|key| (key, value(key)));
        for (key, value) in set.iter().map(|(key, value)| (key, value.as_str())).chain(wrong) {
            if let Some(key) = with_port(key, value, &ports) {
                // A port that is probed by its name is probed at its node port.
                let probed = ports.iter().find(|port| !port["nodePort"].is_null());
                let name = probed.and_then(|port| port["name"].as_str()).unwrap_or("10256");
                annotations.insert(key, json!(value.replace(values::NAME, name)));
            }
        }
        let containers = scene.layout == Layout::Containers;
        if self.off {
            let mut service = inside(owner, &ports, &annotations);
            if is_dual(owner, scene) {
                merge(&mut service["spec"], &self.families(internal, scene));
            }
            return service;
        }
        let mut spec = json!({"type": "LoadBalancer",
            "selector": {"app": format!("web-{}", owner % KINDS)}, "ports": ports,
            "allocateLoadBalancerNodePorts": !self.has_no_node_ports(owner, scene)});
        if self.fields.contains_key("affinity") && !containers {
            spec["sessionAffinity"] = json!("ClientIP");
        } else {
            spec["sessionAffinity"] = json!("None");
        }
        let local = self.fields.contains_key("local");
        spec["externalTrafficPolicy"] = json!(if local { "Local" } else { "Cluster" });
        if local {
            spec["healthCheckNodePort"] = json!(32_300 + owner);
        }
        if self.fields.contains_key("ranges") {
            // What limits its sources is refused there; what does not is not.
            let ranges = if containers { "0.0.0.0/0" } else { "203.0.113.0/24" };
            spec["loadBalancerSourceRanges"] = json!([ranges]);
        }
        if is_dual(owner, scene) {
            merge(&mut spec, &self.families(internal, scene));
        }
        if let Some(address) = self.address(owner, scene, &set).filter(|_| !containers) {
            spec["loadBalancerIP"] = json!(address);
        }
        json!({"apiVersion": "v1", "kind": "Service", "spec": spec, "metadata": {
            "name": name(owner), "namespace": "default", "annotations": annotations}})
    }

    /// Whether its only family is IPv6: Azure wants a frontend of IPv4 beside it.
    pub(super) fn is_ipv6_alone(&self, internal: bool, scene: &Scene) -> bool {
        let may = !internal && families::has_ipv4_beside(scene);
        self.ipv6_first && self.fields.contains_key(ONE_FAMILY) && may
    }

    /// Fields of a Service that may have two families; the first one stays.
    fn families(&self, internal: bool, scene: &Scene) -> Value {
        let (first, second) = if self.ipv6_first { ("IPv6", "IPv4") } else { ("IPv4", "IPv6") };
        let may = !self.ipv6_first || self.is_ipv6_alone(internal, scene);
        if self.fields.contains_key(ONE_FAMILY) && may {
            return json!({"ipFamilies": [first], "ipFamilyPolicy": "SingleStack"});
        }
        json!({"ipFamilies": [first, second], "ipFamilyPolicy": "PreferDualStack"})
    }

    /// `spec.loadBalancerIP`: in a Service of the default subnet that pins nothing by annotation,
    /// and beside an annotation, which counts.
    fn address(
        &self,
        owner: u64,
        scene: &Scene,
        set: &BTreeMap<&'static str, String>,
    ) -> Option<String> {
        if !self.fields.contains_key("address") {
            return None;
        }
        if set.contains_key(key::IPV4) {
            return Some(OUTDONE.to_owned());
        }
        let rivals = [key::SUBNET, key::PIP, key::GROUP, key::PLACED_ON, key::LABEL];
        if rivals.iter().any(|key| set.contains_key(key)) {
            return None;
        }
        let public = "20.50.0.14".to_owned();
        let all_ports = set.contains_key(key::ALL_PORTS);
        let internal = set.contains_key(key::INTERNAL);
        if is_dual(owner, scene) && self.ipv6_first {
            return None;
        }
        match internal {
            true if !all_ports => Some(format!("10.224.9.{}", 20 + owner)),
            true => None,
            false if scene.layout == Layout::Several => None,
            false => Some(public),
        }
    }
}

/// The whole key, where one of these ports suits it.
fn with_port(key: &str, value: &str, ports: &[Value]) -> Option<String> {
    let number = |port: &Value| port["port"].to_string();
    let at = if key == key::NO_RULE {
        // A Service whose ports all lack rules has an address to which no rule leads.
        ports.iter().map(number).find(|other| *other != number(&ports[0]))?
    } else {
        number(&ports[value.len() % ports.len()])
    };
    Some(annotation::full(&key.replace(PORT, &at)))
}

/// The Service while it is reached from inside the cluster only.
fn inside(owner: u64, ports: &[Value], annotations: &Map<String, Value>) -> Value {
    let mut ports = ports.to_vec();
    for port in ports.iter_mut().filter_map(Value::as_object_mut) {
        port.shift_remove("nodePort");
    }
    json!({"apiVersion": "v1", "kind": "Service",
        "spec": {"type": "ClusterIP", "selector": {"app": format!("web-{}", owner % KINDS)},
            "ports": ports, "sessionAffinity": "None"},
        "metadata": {"name": name(owner), "namespace": "default", "annotations": annotations}})
}
