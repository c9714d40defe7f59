//! What is really so in the cluster, and since which revision: what checks compare with.

use crate::scene::{CLASS, CONTROL_PLANE, MANAGED, NODE_GROUP, OLD_CONTROL_PLANE, machines};
use kube_emulator::{EventType, Store};
use model::ServiceUid;
use model::kubernetes::{DRAIN_LABEL, GATEWAY_FINALIZER, SERVICE_FINALIZER};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// A Service, also after it is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceTruth {
    /// `namespace/name`.
    pub name: String,
    /// Its parts' names begin with this.
    pub base: String,
    /// Whether it asks for a load balancer.
    pub wants: bool,
    /// Whether our finalizer is on it.
    pub claimed: bool,
    /// When somebody last took our finalizer off.
    pub unclaimed_at: Option<u64>,
    /// When its owner last changed what it asks for.
    pub edited_at: u64,
    /// When its owner last changed what its address follows from.
    pub placed_at: u64,
    /// Whether only nodes with its Pods take its traffic.
    pub local: bool,
    /// Whether somebody took our finalizer off by hand.
    pub stripped: bool,
    /// When it went.
    pub gone_at: Option<u64>,
    /// Addresses that its annotation has ever listed beside those of its frontends.
    pub additional: BTreeSet<String>,
    /// Node ports that it has ever had.
    pub node_ports: BTreeSet<u64>,
    /// What its owner decides on.
    asks: Value,
    /// What of that its address follows from.
    place: Value,
}

impl ServiceTruth {
    /// Whether it leaves to its Pods which numbers its ports lead to.
    #[must_use]
    pub fn asks_pods(&self) -> bool {
        let ports = self.asks[0]["ports"].as_array();
        ports.into_iter().flatten().any(|port| port["targetPort"].is_string())
    }

    /// Whether our finalizer is on it, or was when somebody knew this revision.
    #[must_use]
    pub fn was_claimed(&self, seen: u64) -> bool {
        self.claimed || self.unclaimed_at.is_some_and(|at| at > seen)
    }
}

/// The cluster's history as far as checks look.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    revision: u64,
    /// What owners of Services, nodes and Pods have done so far.
    pub(crate) inputs: u64,
    /// By UID.
    pub services: BTreeMap<String, ServiceTruth>,
    /// Base names and UIDs, lower case, to UIDs.
    pub bases: BTreeMap<String, String>,
    /// Addresses of nodes that may be in pools, and since which revision.
    pub members: BTreeMap<String, u64>,
    /// Node names to their addresses.
    nodes: BTreeMap<String, String>,
    /// Pod addresses that are ready, by slice.
    pub(crate) slices: BTreeMap<String, SliceTruth>,
    /// When Pods of a Service last said other numbers for its ports, or others said them.
    pub(crate) numbered: BTreeMap<String, u64>,
    /// UIDs of Services whose finalizer a process took off, and did not write again.
    pub(crate) released: BTreeSet<String>,
    /// Ids of machines, lower case, to the addresses of their nodes.
    pub(crate) machines: BTreeMap<String, String>,
    /// Names of all nodes to their addresses, and since which revision they have had them.
    pub(crate) hosts: BTreeMap<String, (String, u64)>,
    /// Addresses of nodes that are there and going.
    pub(crate) going: BTreeSet<String>,
    /// Addresses of nodes that are going or gone.
    pub(crate) leaving: BTreeMap<String, Leaving>,
    /// Whether a Service's labels say where it is placed.
    pub(crate) placed_by_labels: bool,
}

/// A node that is going or gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaving {
    /// Since which revision it has been so.
    pub since: u64,
    /// When it began to go.
    pub began_ms: u64,
    /// Whether it is still there, and to be in pools.
    pub stay: Stay,
    /// Whether it was to be in pools until then.
    pub joined: bool,
}

/// Whether a node that is going is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stay {
    /// It is.
    There,
    /// It is not.
    Gone,
}

/// An EndpointSlice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SliceTruth {
    /// UID of the Service that it belongs to.
    pub owner: String,
    /// Addresses that are ready to their nodes, and since which revision that has been so.
    pub ready: BTreeMap<String, (String, u64)>,
    /// The numbers of ports.
    pub ports: Value,
    /// Whether it has any, ready or not.
    pub filled: bool,
    /// When it was last written.
    pub written_at: u64,
}

impl Truth {
    /// Takes in what happened since the last time.
    pub fn follow(&mut self, store: &Store, now_ms: u64) {
        let revision = store.revision();
        if revision == self.revision {
            return;
        }
        for event in store.events_since("services", self.revision).unwrap_or_default() {
            let gone = event.event == EventType::Deleted;
            self.note_service(&event.object, gone, event.revision);
        }
        for event in store.events_since("nodes", self.revision).unwrap_or_default() {
            self.inputs += 1;
            let gone = event.event == EventType::Deleted;
            self.note_leaving(&event.object, gone, event.revision, now_ms);
            self.note_node(&event.object, gone, event.revision);
        }
        for event in store.events_since("endpointslices", self.revision).unwrap_or_default() {
            self.inputs += 1;
            self.note_slice(&event.object, event.event == EventType::Deleted, event.revision);
        }
        self.revision = revision;
    }

    fn note_slice(&mut self, object: &Value, gone: bool, revision: u64) {
        let meta = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let key = format!("{}/{}", text(&meta["namespace"]), text(&meta["name"]));
        let before = self.slices.remove(&key).unwrap_or_default();
        if gone {
            self.numbered.insert(before.owner, revision);
            return;
        }
        let owner = self.owner_of_slice(object);
        // A slice is one of its own namespace's Service.
        let whose = self.services.get(&owner).and_then(|service| service.name.split('/').next());
        if whose.is_some_and(|namespace| meta["namespace"] != namespace) {
            return;
        }
        let mut ready = BTreeMap::new();
        for endpoint in object["endpoints"].as_array().into_iter().flatten() {
            if endpoint["conditions"]["ready"] == false || is_foreign(object, endpoint) {
                continue;
            }
            let node = text(&endpoint["nodeName"]);
            for address in endpoint["addresses"].as_array().into_iter().flatten().map(text) {
                let known = before.ready.get(&address).filter(|known| known.0 == node);
                let since = known.filter(|_| before.owner == owner).map_or(revision, |k| k.1);
                ready.insert(address, (node.clone(), since));
            }
        }
        let ports = object["ports"].clone();
        // Where no Pod is ready the others tell the numbers.
        let filled = object["endpoints"].as_array().is_some_and(|all| !all.is_empty());
        let others = before.filled != filled || before.ready.is_empty() != ready.is_empty();
        if before.ports != ports || others {
            self.numbered.insert(owner.clone(), revision);
        }
        self.slices.insert(key, SliceTruth { owner, ready, ports, filled, written_at: revision });
    }

    /// The UID of the Service that a slice is of: its owner's, else that of its label. Where both
    /// are there and differ it is of none.
    pub(crate) fn owner_of_slice(&self, slice: &Value) -> String {
        let meta = &slice["metadata"];
        let owners = meta["ownerReferences"].as_array().into_iter().flatten();
        let mut owners = owners.filter(|owner| owner["kind"] == "Service");
        let owner = owners.find_map(|owner| owner["uid"].as_str());
        let name = meta["labels"]["kubernetes.io/service-name"].as_str();
        let namespace = meta["namespace"].as_str().unwrap_or("");
        let name = name.map(|name| format!("{namespace}/{name}"));
        let is_named = |service: &ServiceTruth| name.as_ref().is_none_or(|n| service.name == *n);
        match owner {
            Some(uid) if self.services.get(uid).is_none_or(is_named) => uid.to_owned(),
            None if name.is_some() => {
                let mut all = self.services.iter().filter(|(_, s)| s.gone_at.is_none());
                all.find(|(_, s)| is_named(s)).map_or(String::new(), |(uid, _)| uid.clone())
            }
            Some(_) | None => String::new(),
        }
    }

    fn note_service(&mut self, object: &Value, gone: bool, revision: u64) {
        let meta = &object["metadata"];
        let text = |key: &str| meta[key].as_str().unwrap_or("");
        let uid = text("uid").to_owned();
        let finalizers = meta["finalizers"].as_array();
        let claimed = finalizers.into_iter().flatten().filter_map(Value::as_str).any(is_ours);
        let lives = meta["deletionTimestamp"].is_null() && !gone;
        let wants = !gone && wants(object);
        let labels = self.placed_by_labels.then_some(&meta["labels"]);
        let asks = serde_json::json!([object["spec"], meta["annotations"], lives, labels]);
        let place = place(object, lives, labels);
        let base = ServiceUid::new(&uid).base_name().to_lowercase();
        let known = self.services.entry(uid.clone()).or_insert_with(|| ServiceTruth {
            name: format!("{}/{}", text("namespace"), text("name")),
            base: base.clone(),
            wants,
            claimed,
            unclaimed_at: None,
            edited_at: revision,
            placed_at: revision,
            local: false,
            stripped: false,
            gone_at: None,
            additional: BTreeSet::new(),
            node_ports: BTreeSet::new(),
            asks: asks.clone(),
            place: place.clone(),
        });
        known.local = object["spec"]["externalTrafficPolicy"] == "Local";
        self.bases.entry(base).or_insert_with(|| uid.clone());
        self.bases.entry(uid.to_lowercase()).or_insert_with(|| uid.clone());
        known.additional.extend(additional(object));
        let ports = object["spec"]["ports"].as_array().into_iter().flatten();
        known.node_ports.extend(ports.filter_map(|port| port["nodePort"].as_u64()));
        if claimed && !gone && !known.claimed {
            self.released.remove(&uid);
        }
        if known.claimed && (!claimed || gone) {
            known.unclaimed_at = Some(revision);
            known.stripped |= !self.released.contains(&uid);
        }
        if known.place != place {
            known.place = place;
            known.placed_at = revision;
        }
        if known.asks != asks {
            known.asks = asks;
            known.edited_at = revision;
            self.inputs += 1;
        }
        known.wants = wants;
        known.claimed = claimed && !gone;
        if gone {
            known.gone_at = Some(revision);
            self.inputs += 1;
        }
    }

    /// Follows who is going: before what is known of the node itself is renewed.
    fn note_leaving(&mut self, object: &Value, gone: bool, revision: u64, now_ms: u64) {
        let meta = &object["metadata"];
        let name = meta["name"].as_str().unwrap_or("");
        let Some((address, _)) = self.hosts.get(name) else {
            // An added Node object is another node to Kubernetes than the one deleted before, and
            // Azure gives addresses of a subnet out again: the new node has not begun to drain.
            if let Some(address) = internal_address(object) {
                self.leaving.remove(address);
            }
            return;
        };
        let address = address.clone();
        let known = self.leaving.remove(&address);
        let was_in = known.is_some() || self.members.contains_key(&address);
        let going = is_going(object) || gone;
        // One that is left out as well leaves when it has drained, as one that is gone; one of the
        // control plane was never in.
        let out = gone || is_excluded(object);
        if !going || (out && !was_in) || (!gone && is_control_plane(object)) {
            return;
        }
        let joined = known.map_or(was_in, |known| known.joined);
        let stay = if out { Stay::Gone } else { Stay::There };
        let since = known.filter(|known| known.stay == stay).map_or(revision, |known| known.since);
        let began_ms = known.map_or(now_ms, |known| known.began_ms);
        self.leaving.insert(address, Leaving { since, began_ms, stay, joined });
    }

    /// Names of nodes that are there and going.
    pub(crate) fn going_nodes(&self) -> BTreeSet<&str> {
        let going = self.hosts.iter().filter(|(_, (address, _))| self.going.contains(address));
        going.map(|(name, _)| name.as_str()).collect()
    }

    /// Whether a machine, or the NIC of one, is such a node's, by its id.
    pub(crate) fn is_machine_going(&self, id: &str) -> bool {
        let address = self.machines.get(&id.to_lowercase());
        address.is_some_and(|address| self.going.contains(address))
    }

    fn note_node(&mut self, object: &Value, gone: bool, revision: u64) {
        let name = object["metadata"]["name"].as_str().unwrap_or("").to_owned();
        let address = internal_address(object);
        let member = !gone
            && !is_out(object)
            && !is_going(object)
            && !object["spec"]["providerID"].is_null();
        let going = !gone && is_going(object);
        let turned = address.is_some_and(|address| match going {
            true => {
                self.going.insert(address.to_owned());
                false
            }
            // Who has not seen that it stays may still do without it.
            false => self.going.remove(address),
        });
        match address.filter(|_| !gone) {
            None => drop(self.hosts.remove(&name)),
            Some(address)
                if !turned && self.hosts.get(&name).is_some_and(|(known, _)| known == address) => {}
            Some(address) => {
                self.hosts.insert(name.clone(), (address.to_owned(), revision));
            }
        }
        let machine = object["spec"]["providerID"].as_str().unwrap_or("");
        let machine = machine.trim_start_matches("azure://").to_lowercase();
        if let Some(address) = address {
            if let Some(nic) = machines::nic_of(&machine) {
                self.machines.insert(nic, address.to_owned());
            }
            self.machines.insert(machine, address.to_owned());
        }
        let before = self.nodes.remove(&name);
        if before.as_deref() != address || !member {
            before.and_then(|before| self.members.remove(&before));
        }
        if let Some(address) = address.filter(|_| member) {
            self.members.entry(address.to_owned()).or_insert(revision);
            self.nodes.insert(name, address.to_owned());
        }
    }

    /// Whether an object of a while ago is still there and one that load balancers are about.
    #[must_use]
    pub fn still_matters(&self, old: &Value) -> bool {
        let meta = &old["metadata"];
        let name = meta["name"].as_str().unwrap_or("");
        let service = meta["uid"].as_str().and_then(|uid| self.services.get(uid));
        self.nodes.contains_key(name) || service.is_some_and(|s| s.claimed)
    }

    /// The UID that a part's name belongs to, by its form.
    #[must_use]
    pub fn owner_of(&self, part: &str) -> Option<&str> {
        let part = part.to_lowercase();
        let short = part.get(..32).and_then(|base| self.bases.get(base));
        let whole = || part.get(..36).and_then(|uid| self.bases.get(uid));
        short.or_else(whole).map(String::as_str)
    }
}

/// Whether an endpoint of a slice names a Pod of another namespace: it gets no traffic from a
/// container load balancer (docs/container-load-balancer.md).
pub(crate) fn is_foreign(slice: &Value, endpoint: &Value) -> bool {
    let namespace = &endpoint["targetRef"]["namespace"];
    !namespace.is_null() && *namespace != slice["metadata"]["namespace"]
}

/// The first internal IPv4 address of a node.
fn internal_address(node: &Value) -> Option<&str> {
    let addresses = node["status"]["addresses"].as_array();
    let internal = addresses.into_iter().flatten().filter(|a| a["type"] == "InternalIP");
    internal.filter_map(|a| a["address"].as_str()).find(|a| a.contains('.'))
}

/// Annotations that the address of a Service follows from, by how their names end.
const PLACES: [&str; 12] = [
    "azure-load-balancer-internal",
    "azure-load-balancer-internal-subnet",
    "azure-load-balancer-ipv4",
    "azure-load-balancer-ipv6",
    "azure-load-balancer-configurations",
    "azure-load-balancer-mode",
    "azure-load-balancer-resource-group",
    "azure-pip-name",
    "azure-pip-name-ipv6",
    "azure-pip-prefix-id",
    "azure-pip-prefix-id-ipv6",
    "azure-pip-ip-tags",
];

/// What the address of a Service follows from: no change of anything else may change it.
fn place(object: &Value, lives: bool, labels: Option<&Value>) -> Value {
    let spec = &object["spec"];
    let annotations = object["metadata"]["annotations"].as_object();
    let annotations = annotations
        .into_iter()
        .flatten()
        .filter(|(key, _)| key.rsplit('/').next().is_some_and(|name| PLACES.contains(&name)));
    let annotations: serde_json::Map<String, Value> =
        annotations.map(|(key, value)| (key.clone(), value.clone())).collect();
    let fields = ["type", "loadBalancerIP", "loadBalancerClass", "ipFamilies", "ipFamilyPolicy"];
    serde_json::json!([fields.map(|field| &spec[field]), annotations, lives, labels])
}

/// Addresses that a Service's annotation lists beside those of its frontends, spelled as a status
/// spells them: an IPv6 address has several spellings.
pub(crate) fn additional(service: &Value) -> BTreeSet<String> {
    let key = "service.beta.kubernetes.io/azure-additional-public-ips";
    let listed = service["metadata"]["annotations"][key].as_str().unwrap_or("").split(',');
    let spelled = |address: &str| {
        address.parse::<IpAddr>().map_or_else(|_| address.to_owned(), |ip| ip.to_string())
    };
    listed.map(|address| spelled(address.trim())).collect()
}

fn is_ours(finalizer: &str) -> bool {
    finalizer == SERVICE_FINALIZER || finalizer == GATEWAY_FINALIZER
}

/// Whether a label keeps a node out of all load balancers.
fn is_excluded(node: &Value) -> bool {
    let labels = &node["metadata"]["labels"];
    let says = |key: &str, what: &str| {
        labels[key].as_str().is_some_and(|value| value.eq_ignore_ascii_case(what))
    };
    let elsewhere = !labels[NODE_GROUP].is_null() && !says(NODE_GROUP, "rg");
    let label = "node.kubernetes.io/exclude-from-external-load-balancers";
    !labels[label].is_null() || says(MANAGED, "false") || elsewhere
}

/// Whether a node is to be in no pool of addresses.
pub(crate) fn is_out(node: &Value) -> bool {
    is_excluded(node) || is_control_plane(node)
}

fn is_control_plane(node: &Value) -> bool {
    let labels = &node["metadata"]["labels"];
    [CONTROL_PLANE, OLD_CONTROL_PLANE].iter().any(|key| !labels[*key].is_null())
}

/// Whether a Service asks us for a load balancer.
pub(crate) fn wants(service: &Value) -> bool {
    let class = &service["spec"]["loadBalancerClass"];
    service["spec"]["type"] == "LoadBalancer"
        && service["metadata"]["deletionTimestamp"].is_null()
        && (class.is_null() || class == CLASS)
}

/// Whether a node is about to be deleted, or to drain for planned work.
pub(crate) fn is_going(node: &Value) -> bool {
    let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
    taints.any(|taint| taint["key"] == "ToBeDeletedByClusterAutoscaler")
        || !node["metadata"]["deletionTimestamp"].is_null()
        || !node["metadata"]["labels"][DRAIN_LABEL].is_null()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_address_is_known_however_it_is_spelled() {
        let key = "service.beta.kubernetes.io/azure-additional-public-ips";
        let listed = "20.9.0.4, 2603:1030:9:0::1,2603:1030:9::B";
        let service = json!({"metadata": {"annotations": {(key): listed}}});
        let found: Vec<String> = additional(&service).into_iter().collect();
        assert_eq!(found, ["20.9.0.4", "2603:1030:9::1", "2603:1030:9::b"]);
    }
}
