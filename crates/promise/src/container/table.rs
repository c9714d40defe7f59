//! The Service Gateway's table of addresses: below the address of each node the addresses of the
//! Pods on it, each with the services that it stands for.
//!
//! What is promised (docs/container-load-balancer.md, "Endpoints" and "Addresses"):
//! - An EndpointSlice counts for the Service of its own namespace that its label names and whose
//!   UID its owner reference repeats; one of the two suffices. Where they differ it counts for
//!   neither.
//! - An address is listed while its condition `ready` is true or absent and its node is known. A
//!   Pod that waits for nothing but our readiness gate counts as ready.
//! - A node that is going drains, unless `nodeDrainSeconds` is 0: of Services with a ready endpoint
//!   on a node that stays its addresses are not listed.
//! - Where none of a Service's endpoints is ready, those that terminate and serve are listed.
//! - An endpoint whose `targetRef` names a Pod of another namespace does not count, nor does an
//!   address that no Pod can have.
//! - Where slices of two namespaces list one address, Services of one of them have it. Addresses of
//!   nodes are shared by all, at their node.
//! - Where slices of a namespace list one address on two nodes, the slice that was written last is
//!   right: Kubernetes gives the address of a Pod that has gone to another, and a slice that says
//!   where it was lags behind. Versions of one kind of object grow with each write (KEP-5504).
//! - A Pod with an egress label that is pending or running is listed for its egress gateway, at the
//!   node that has its host's address of the same family, or below that address where none has. An
//!   address is at one place, and a slice that lists it says the node.

use super::{Registered, is_watched, uid_of, waits_for_our_gate};
use crate::case::Case;
use crate::estate::{items, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// What is asked for one address, on account of one namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Claim {
    /// The nodes at which it may be listed.
    locations: BTreeSet<IpAddr>,
    services: BTreeSet<String>,
}

/// What slices of one namespace list of one address.
#[derive(Clone, Debug, Default)]
struct Listing {
    /// The Services whose best endpoints have it at each node.
    at: BTreeMap<IpAddr, BTreeSet<String>>,
    /// The version of the slice that was written last, and the nodes that this one says.
    last: (u64, BTreeSet<IpAddr>),
}

impl Listing {
    fn take(&mut self, uid: String, at: IpAddr, version: u64) {
        self.at.entry(at).or_default().insert(uid);
        if version > self.last.0 {
            self.last = (version, BTreeSet::new());
        }
        if version == self.last.0 {
            self.last.1.insert(at);
        }
    }

    /// What the address may be listed as.
    fn claims(&self) -> Vec<Claim> {
        let claim = |at: &IpAddr| Claim {
            locations: BTreeSet::from([*at]),
            services: self.at.get(at).cloned().unwrap_or_default(),
        };
        match self.last.1.is_empty() {
            true => vec![Claim::default()],
            false => self.last.1.iter().map(claim).collect(),
        }
    }
}

/// What is asked for each address: by namespace, and of egress gateways.
#[derive(Debug, Default)]
struct Asked {
    claims: BTreeMap<IpAddr, BTreeMap<String, Listing>>,
    egress: BTreeMap<IpAddr, Claim>,
    /// Namespaces whose Pods are watched and have the address.
    vouched: BTreeMap<IpAddr, BTreeSet<String>>,
    /// The best endpoints of each Service, by UID.
    best: BTreeMap<String, Rank>,
}

/// Nodes and their addresses.
pub(super) struct Hosts {
    by_name: BTreeMap<String, BTreeSet<IpAddr>>,
}

impl Hosts {
    pub(super) fn of(case: &Case<'_>) -> Self {
        let nodes = case.scene.nodes.iter();
        let by_name = nodes.map(|node| (text(&node["metadata"]["name"]).to_owned(), inner(node)));
        Self { by_name: by_name.collect() }
    }

    /// The location of a node for a family: the first of its addresses in the order of letters.
    fn location(&self, node: &str, like: IpAddr) -> Option<IpAddr> {
        first_of(self.by_name.get(node)?, like)
    }

    /// The location of an address that is a node's own.
    fn own(&self, address: IpAddr) -> Option<IpAddr> {
        let mut nodes = self.by_name.values();
        nodes.find(|own| own.contains(&address)).and_then(|own| first_of(own, address))
    }

    /// Whether any node has an IPv6 address.
    pub(super) fn have_ipv6(&self) -> bool {
        self.by_name.values().flatten().any(IpAddr::is_ipv6)
    }
}

fn inner(node: &Value) -> BTreeSet<IpAddr> {
    let addresses = items(&node["status"]["addresses"]);
    let inner = addresses.filter(|address| address["type"] == "InternalIP");
    inner.filter_map(|address| text(&address["address"]).parse().ok()).collect()
}

fn first_of(own: &BTreeSet<IpAddr>, like: IpAddr) -> Option<IpAddr> {
    let alike = own.iter().filter(|address| address.is_ipv4() == like.is_ipv4());
    alike.min_by_key(|address| address.to_string()).copied()
}

/// Whether a Pod can have an address.
pub(super) fn is_possible(address: IpAddr) -> bool {
    let own = match address {
        IpAddr::V4(four) => {
            four.is_link_local() || four.is_broadcast() || text_of(address) == "168.63.129.16"
        }
        IpAddr::V6(six) => six.is_unicast_link_local(),
    };
    !(own || address.is_unspecified() || address.is_loopback() || address.is_multicast())
}

fn text_of(address: IpAddr) -> String {
    address.to_string()
}

/// Judges the table of addresses.
pub(super) fn judge(case: &Case<'_>, registered: &Registered, wrong: &mut Vec<String>) {
    let hosts = Hosts::of(case);
    let mut asked = Asked::default();
    for slice in &case.scene.slices {
        for (uid, listed) in listed(case, &hosts, registered, slice) {
            let Some(rank) = listed.rank else { continue };
            let best = asked.best.entry(uid).or_insert(rank);
            *best = rank.min(*best);
        }
    }
    for slice in &case.scene.slices {
        let meta = &slice["metadata"];
        let version: u64 = text(&meta["resourceVersion"]).parse().unwrap_or(0);
        for (uid, listed) in listed(case, &hosts, registered, slice) {
            asked.take(uid, (text(&meta["namespace"]), version), listed);
        }
    }
    for pod in &case.scene.pods {
        asked.take_pod(&hosts, registered, pod);
    }
    let held = held(case, registered, wrong);
    let all: BTreeSet<IpAddr> =
        held.keys().chain(asked.claims.keys()).chain(asked.egress.keys()).copied().collect();
    for address in all {
        let has = held.get(&address).cloned().unwrap_or_default();
        if !asked.possible(&hosts, address).iter().any(|want| is_met(want, &has)) {
            let want = asked.possible(&hosts, address);
            wrong.push(format!(
                "the Service Gateway lists {address} as {}; it must be {}",
                say(&has),
                want.iter().map(say).collect::<Vec<_>>().join(" or ")
            ));
        }
    }
}

fn say(claim: &Claim) -> String {
    if claim.services.is_empty() {
        return "nothing".to_owned();
    }
    let services: Vec<&str> = claim.services.iter().map(String::as_str).collect();
    let at: Vec<String> = claim.locations.iter().map(ToString::to_string).collect();
    format!("{} at {}", services.join(","), at.join("|"))
}

/// An address is listed at one node, and for all services that it stands for.
fn is_met(want: &Claim, has: &Claim) -> bool {
    let at_one = has.locations.len() == 1 && has.locations.is_subset(&want.locations);
    want.services == has.services && (want.services.is_empty() || at_one)
}

/// What the table lists, without rows of services that are not this cluster's.
fn held(
    case: &Case<'_>,
    registered: &Registered,
    wrong: &mut Vec<String>,
) -> BTreeMap<IpAddr, Claim> {
    let mut held: BTreeMap<IpAddr, Claim> = BTreeMap::new();
    let locations = case.scene.gateway.as_ref().and_then(|tables| tables["locations"].as_object());
    for (location, rows) in locations.into_iter().flatten() {
        for (address, names) in rows.as_object().into_iter().flatten() {
            let (Ok(at), Ok(parsed)) = (location.parse(), address.parse()) else {
                wrong.push(format!("the Service Gateway lists {address} at {location}"));
                continue;
            };
            let names = items(names).map(|name| text(name).to_lowercase());
            for name in names.filter(|name| !registered.others.contains(name)) {
                let row = held.entry(parsed).or_default();
                row.locations.insert(at);
                row.services.insert(name);
            }
        }
    }
    held
}

impl Asked {
    /// Everything that an address may be listed as.
    fn possible(&self, hosts: &Hosts, address: IpAddr) -> Vec<Claim> {
        let none = BTreeMap::new();
        let claims = self.claims.get(&address).unwrap_or(&none);
        let egress = self.egress.get(&address).cloned().unwrap_or_default();
        if let Some(own) = hosts.own(address) {
            // Every Pod with `hostNetwork` has the address of its node: all namespaces share it.
            let mut all = egress;
            let listings = claims.values().flat_map(|listing| listing.at.values());
            all.services.extend(listings.flatten().cloned());
            all.locations = BTreeSet::from([own]);
            return vec![all];
        }
        let vouched = self.vouched.get(&address);
        let holders = claims.iter().filter(|(namespace, _)| {
            vouched.is_none_or(|pods| pods.is_empty() || pods.contains(*namespace))
        });
        let joined = |mut all: Claim| {
            all.locations.extend(&egress.locations);
            all.services.extend(egress.services.iter().cloned());
            all
        };
        let claims = holders.flat_map(|(_, listing)| listing.claims());
        let mut possible: Vec<Claim> = claims.map(joined).collect();
        if possible.is_empty() {
            possible.push(egress.clone());
        }
        possible
    }

    fn take(&mut self, uid: String, (namespace, version): (&str, u64), listed: Listed) {
        let claims = self.claims.entry(listed.address).or_default();
        let listing = claims.entry(namespace.to_owned()).or_default();
        if listed.rank.is_some() && listed.rank.as_ref() == self.best.get(&uid) {
            listing.take(uid, listed.at, version);
        }
    }

    fn take_pod(&mut self, hosts: &Hosts, registered: &Registered, pod: &Value) {
        let namespace = text(&pod["metadata"]["namespace"]);
        let addresses = || pod_addresses(pod);
        let alive = matches!(text(&pod["status"]["phase"]), "Pending" | "Running" | "");
        if alive && is_watched(pod) {
            for address in addresses() {
                self.vouched.entry(address).or_default().insert(namespace.to_owned());
            }
        }
        let name = registered.egress_of(pod).filter(|name| registered.outbound.contains(name));
        let Some(name) = name else { return };
        for address in addresses() {
            let Some(host) = host_of(pod, address).filter(|_| is_possible(address)) else {
                continue;
            };
            let claim = self.egress.entry(address).or_default();
            claim.locations.insert(hosts.own(host).unwrap_or(host));
            claim.services.insert(name.clone());
        }
    }
}

/// How well an endpoint can take traffic: a Service's best ones do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// It is ready.
    Ready,
    /// It is ready, on a node that is going.
    OnGoingNode,
    /// It terminates and serves.
    Lingers,
}

/// An address that a slice lists.
struct Listed {
    address: IpAddr,
    at: IpAddr,
    /// `None`: it takes no traffic.
    rank: Option<Rank>,
}

/// The addresses that a slice lists for a Service, with the Service's UID.
fn listed(
    case: &Case<'_>,
    hosts: &Hosts,
    registered: &Registered,
    slice: &Value,
) -> Vec<(String, Listed)> {
    let meta = &slice["metadata"];
    let namespace = text(&meta["namespace"]);
    let uid = owner(case, slice).filter(|uid| registered.inbound.contains(uid));
    let Some(uid) = uid.filter(|_| meta["deletionTimestamp"].is_null()) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for endpoint in items(&slice["endpoints"]) {
        let target = &endpoint["targetRef"];
        if is_foreign(endpoint, namespace) {
            continue;
        }
        let conditions = &endpoint["conditions"];
        let ready = conditions["ready"] != Value::Bool(false)
            || waits_for_our_gate(case, namespace, text(&target["name"]));
        let lingers = conditions["serving"] == true && conditions["terminating"] == true;
        let rank = match (ready, lingers) {
            (true, _) if is_on_going_node(case, endpoint) => Some(Rank::OnGoingNode),
            (true, _) => Some(Rank::Ready),
            (false, true) => Some(Rank::Lingers),
            (false, false) => None,
        };
        let addresses = items(&endpoint["addresses"]);
        for address in addresses.filter_map(|address| text(address).parse::<IpAddr>().ok()) {
            let at = hosts.location(text(&endpoint["nodeName"]), address);
            if let Some(at) = at.filter(|_| is_possible(address)) {
                all.push((uid.clone(), Listed { address, at, rank }));
            }
        }
    }
    all
}

/// Whether an endpoint of a slice names a Pod of another namespace.
pub(super) fn is_foreign(endpoint: &Value, namespace: &str) -> bool {
    let target = &endpoint["targetRef"];
    let named = text(&target["namespace"]);
    target["kind"] == "Pod" && !named.is_empty() && named != namespace
}

/// Whether the node of an endpoint is going.
fn is_on_going_node(case: &Case<'_>, endpoint: &Value) -> bool {
    let name = text(&endpoint["nodeName"]);
    let mut nodes = case.nodes.iter();
    case.site.drain_seconds > 0 && nodes.any(|node| node.name == name && node.leaving)
}

/// The UID, lower case, of the Service that a slice counts for.
pub(super) fn owner(case: &Case<'_>, slice: &Value) -> Option<String> {
    let meta = &slice["metadata"];
    let namespace = text(&meta["namespace"]);
    let uids = items(&meta["ownerReferences"]).filter(|owner| owner["kind"] == "Service");
    let by_uid = uids.map(|owner| text(&owner["uid"]).to_lowercase()).next();
    let named = meta["labels"]["kubernetes.io/service-name"].as_str();
    let find = |matches: &dyn Fn(&Value) -> bool| {
        let mut own = case.scene.services.iter();
        let found = own.find(|s| text(&s["metadata"]["namespace"]) == namespace && matches(s));
        found.map(|service| uid_of(service))
    };
    let by_uid_here = || by_uid.as_ref().and_then(|uid| find(&|s| uid_of(s) == *uid));
    let by_name = || named.and_then(|name| find(&|s| text(&s["metadata"]["name"]) == name));
    match (&by_uid, named) {
        (Some(_), Some(_)) => by_uid_here().filter(|uid| by_name().as_ref() == Some(uid)),
        (Some(_), None) => by_uid_here(),
        (None, _) => by_name(),
    }
}

/// The addresses of a Pod.
pub(super) fn pod_addresses(pod: &Value) -> Vec<IpAddr> {
    let status = &pod["status"];
    let listed = items(&status["podIPs"]).map(|entry| text(&entry["ip"]));
    let all: BTreeSet<IpAddr> =
        listed.chain([text(&status["podIP"])]).filter_map(|ip| ip.parse().ok()).collect();
    all.into_iter().collect()
}

/// The address of a Pod's host that goes with an address of the Pod.
pub(super) fn host_of(pod: &Value, address: IpAddr) -> Option<IpAddr> {
    let status = &pod["status"];
    let listed = items(&status["hostIPs"]).map(|entry| text(&entry["ip"]));
    let all = listed.chain([text(&status["hostIP"])]).filter_map(|ip| ip.parse::<IpAddr>().ok());
    let mut alike = all.filter(|host| host.is_ipv4() == address.is_ipv4());
    alike.next()
}
