//! Tags, DNS labels and IP tags.
//!
//! What is promised:
//! - The tags of the cloud config are on every load balancer, public IP and Private Link Service of
//!   this cluster and on its security group; they win over annotations. Where the config says which
//!   keys others may set (`systemTags`), other tags go: from load balancers and the security group
//!   only if the config has tags.
//! - A public IP of this cluster names exactly the Services on it, and the cluster. In a resource
//!   group that only a Service names it carries the cluster's UID as well; what stood there before
//!   the tag was known may do without. In the groups of the cloud config nothing carries another's.
//! - Label and tags of a public IP are those of the first Service on it: the one that its frontend
//!   is named after. Whose label it is says a tag, which goes with that Service.
//! - A BYO public IP gets a label, and never a tag of ours.

use crate::Broken;
use crate::asks::{Asks, Family};
use crate::case::{Case, Fate, Service};
use crate::estate::{group_of, items, last, same, text, told};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const PROMISE: &str = "tags";
pub(crate) const SERVICE: &str = "k8s-azure-service";
pub(crate) const CLUSTER: &str = "k8s-azure-cluster-name";
pub(crate) const LABEL: &str = "k8s-azure-dns-label-service";
pub(crate) const OWNER: &str = "k8s-azure-owner-service";
pub(crate) const UID: &str = "ballast-cluster-uid";
/// What older releases of the Go cloud provider wrote in place of the first three.
const LEGACY: [(&str, &str); 3] = [
    (SERVICE, "service"),
    (CLUSTER, "kubernetes-cluster-name"),
    (LABEL, "kubernetes-dns-label-service"),
];

/// Judges them.
pub(crate) fn judge(case: &Case<'_>, broken: &mut Vec<Broken>) {
    let mut found = Vec::new();
    let mut balancers: BTreeMap<String, &Value> = BTreeMap::new();
    let mut ips: BTreeMap<String, &Value> = BTreeMap::new();
    for (service, asks) in case.served() {
        for place in asks.families.iter().filter_map(|family| case.place(service, *family)) {
            balancers.insert(text(&place.balancer["id"]).to_lowercase(), place.balancer);
            let id = text(&place.frontend["properties"]["publicIPAddress"]["id"]);
            if let Some(ip) = case.estate.get(id) {
                ips.insert(id.to_lowercase(), ip);
            }
        }
    }
    let group = case.estate.get(&case.site.security_group).filter(|_| case.served().count() > 0);
    let shared = balancers.values().copied().chain(group);
    for resource in shared.filter(|_| !case.site.tags.is_empty()) {
        configured(case, resource, &[], &mut found);
    }
    for (id, ip) in &ips {
        judge_ip(case, id, ip, &mut found);
    }
    broken.extend(found.into_iter().map(|text| Broken { service: None, promise: PROMISE, text }));
}

/// A tag by its key in any letters.
pub(crate) fn tag<'v>(resource: &'v Value, key: &str) -> Option<&'v str> {
    let tags = resource["tags"].as_object().into_iter().flatten();
    tags.filter(|(name, _)| same(name, key)).find_map(|(_, value)| value.as_str())
}

/// A tag of ours, by the key of today or that of older releases.
fn ours<'v>(resource: &'v Value, key: &str) -> Option<&'v str> {
    let legacy = LEGACY.iter().find(|(today, _)| *today == key).map(|(_, legacy)| *legacy);
    let older = || tag(resource, legacy?).filter(|value| key != SERVICE || value.contains('/'));
    tag(resource, key).or_else(older)
}

/// The tags of the cloud config, and no others where it says so.
pub(crate) fn configured(case: &Case<'_>, resource: &Value, own: &[&str], found: &mut Vec<String>) {
    let name = last(text(&resource["id"]));
    let config = || case.site.tags.iter().filter(|(key, _)| !same(key, UID));
    for (key, value) in config() {
        if tag(resource, key) != Some(value) {
            let has = tag(resource, key);
            found.push(format!("tag {key} of {name} is {has:?}; the cloud config says {value:?}"));
        }
    }
    if case.site.system_tags.is_empty() {
        return;
    }
    for (key, _) in resource["tags"].as_object().into_iter().flatten() {
        let lower = key.to_lowercase();
        let spared = case.site.system_tags.iter().any(|p| lower.starts_with(&p.to_lowercase()));
        let wanted = config().any(|(wanted, _)| same(wanted, key))
            || own.iter().any(|own| same(own, key))
            || same(key, UID);
        if !spared && !wanted {
            found.push(format!("tag {key} of {name} is neither wanted nor a system tag"));
        }
    }
}

/// The UID of the cluster: that of its Namespace `kube-system`.
pub(crate) fn cluster_uid<'a>(case: &Case<'a>) -> Option<&'a str> {
    let mut all = case.scene.namespaces.iter();
    let system = all.find(|namespace| text(&namespace["metadata"]["name"]) == "kube-system")?;
    system["metadata"]["uid"].as_str()
}

/// Whether a resource is this cluster's: by its UID; in the group of the cloud config by the name
/// of the cluster, where it carries none.
pub(crate) fn is_of_cluster(case: &Case<'_>, resource: &Value, own: &str) -> bool {
    match tag(resource, UID) {
        Some(uid) => cluster_uid(case) == Some(uid),
        None => {
            let named = tag(resource, CLUSTER).is_some_and(|name| same(name, &case.site.cluster));
            named && same(group_of(text(&resource["id"])), own)
        }
    }
}

/// Which cluster's a resource is. In the groups of the cloud config it may do without the UID, and
/// so may what stood before: the tag goes along with a write that is due anyway.
pub(crate) fn signed(case: &Case<'_>, resource: &Value, own: &str, found: &mut Vec<String>) {
    let id = text(&resource["id"]);
    let Some(uid) = cluster_uid(case) else { return };
    let stood = case.before(id).is_some();
    let may_lack = stood || same(group_of(id), own);
    let has = tag(resource, UID);
    if has != Some(uid) && !(may_lack && has.is_none()) {
        found.push(format!("tag {UID} of {} is {has:?}; the cluster is {uid}", last(id)));
    }
}

/// Services on a public IP: those whose frontend stands on it, and those that keep it because they
/// are refused.
struct Users<'c, 'a> {
    served: Vec<(&'c Service<'a>, &'c Asks, Family)>,
    kept: BTreeSet<&'c str>,
    /// The first Service.
    first: Option<&'c str>,
}

fn users<'c, 'a>(case: &'c Case<'a>, id: &str, ip: &Value) -> Users<'c, 'a> {
    let mut users = Users { served: Vec::new(), kept: BTreeSet::new(), first: None };
    let address = text(&ip["properties"]["ipAddress"]);
    for service in &case.services {
        let has = || told(service.object).any(|ip| ip == address);
        let kept = match &service.fate {
            Fate::Refused(_) => has(),
            // The Go cloud provider, too, binds a public IP to who asks for it before it makes
            // rules, so that it names a Service whose port another has.
            Fate::Denied(asks, _) => has() || names(asks, id, address),
            Fate::Unwanted | Fate::Served(_) => false,
        };
        if kept {
            users.kept.insert(&service.key);
        }
        let Some(asks) = service.served() else { continue };
        for family in asks.families.iter().copied() {
            let Some(place) = case.place(service, family) else { continue };
            if !same(text(&place.frontend["properties"]["publicIPAddress"]["id"]), id) {
                continue;
            }
            users.served.push((service, asks, family));
            let named = text(&place.frontend["name"]).to_lowercase();
            if named.starts_with(&service.base.to_lowercase()) {
                users.first = Some(&service.key);
            }
        }
    }
    users
}

/// Whether a Service names a public IP that is there, by its name or by its address.
fn names(asks: &Asks, id: &str, address: &str) -> bool {
    let mut pinned = asks.pinned.values();
    pinned.any(|pinned| address.parse() == Ok(*pinned))
        || asks.public_ip.name.values().any(|name| same(name, last(id)))
}

/// Whether a public IP has a name that is given to those that are made for Services.
fn is_made(case: &Case<'_>, id: &str) -> bool {
    let prefix = format!("{}-a", case.site.cluster).to_lowercase();
    let rest = last(id).to_lowercase();
    let rest = rest.strip_prefix(&prefix).unwrap_or("");
    rest.len() >= 31 && rest.chars().take(31).all(|c| c.is_ascii_hexdigit())
}

fn judge_ip(case: &Case<'_>, id: &str, ip: &Value, found: &mut Vec<String>) {
    let users = users(case, id, ip);
    let before = case.before(id);
    let managed = ours(ip, SERVICE).is_some_and(|names| !names.is_empty());
    let first = users.served.iter().find(|(service, ..)| Some(&*service.key) == users.first);
    if let Some((service, asks, _)) = first {
        judge_label(ip, service, asks, managed, found);
    }
    let name = last(id);
    if !managed {
        // Whose label a BYO public IP has cannot be known: it is never taken away.
        let label = |ip: &Value| !label_of(ip).is_empty();
        if before.is_some_and(label) && !label(ip) {
            found.push(format!("BYO public IP {name} has lost its DNS label"));
        }
        if is_made(case, id) {
            found.push(format!("public IP {name} names no Service in its tag {SERVICE}"));
        }
        return;
    }
    let cluster = ours(ip, CLUSTER).unwrap_or("");
    let others = before.is_some_and(|b| !same(ours(b, CLUSTER).unwrap_or(""), &case.site.cluster));
    if before.is_some_and(|before| ours(before, SERVICE).is_none()) {
        found.push(format!("BYO public IP {name} carries the tag {SERVICE}"));
        return;
    }
    if others {
        return;
    }
    if !same(cluster, &case.site.cluster) {
        found.push(format!("public IP {name} is of cluster {cluster:?} by its tag {CLUSTER}"));
    }
    signed(case, ip, &case.site.group, found);
    let listed: BTreeSet<String> = ours(ip, SERVICE)
        .unwrap_or("")
        .split(',')
        .map(|name| name.trim().to_lowercase())
        .filter(|name| !name.is_empty())
        .collect();
    let must: BTreeSet<String> = users.served.iter().map(|(s, ..)| s.key.to_lowercase()).collect();
    let may: BTreeSet<String> = users.kept.iter().map(|key| key.to_lowercase()).collect();
    if !must.is_subset(&listed) || !listed.iter().all(|l| must.contains(l) || may.contains(l)) {
        found.push(format!("tag {SERVICE} of {name} names {listed:?}; on it are {must:?}"));
    }
    let labelled = ours(ip, LABEL).unwrap_or("").to_lowercase();
    if !labelled.is_empty() && !listed.contains(&labelled) {
        found.push(format!("tag {LABEL} of {name} names {labelled}; on it are {listed:?}"));
    }
    configured(case, ip, &owned_keys(first.map(|(_, asks, _)| *asks)), found);
    if let Some((service, asks, family)) = first {
        let made = !asks.public_ip.name.contains_key(family) && !asks.pinned.contains_key(family);
        judge_wishes(case, ip, service, asks, made && users.served.len() == 1, found);
    }
}

fn owned_keys(asks: Option<&Asks>) -> Vec<&str> {
    let wished = asks.into_iter().flat_map(|asks| asks.public_ip.tags.keys());
    [SERVICE, CLUSTER, LABEL].into_iter().chain(wished.map(String::as_str)).collect()
}

fn label_of(ip: &Value) -> &str {
    text(&ip["properties"]["dnsSettings"]["domainNameLabel"])
}

fn judge_label(
    ip: &Value,
    service: &Service<'_>,
    asks: &Asks,
    managed: bool,
    found: &mut Vec<String>,
) {
    let Some(label) = &asks.public_ip.label else { return };
    let name = last(text(&ip["id"]));
    let has = label_of(ip);
    let stays = label.is_empty() && !managed;
    if !same(has, label) && !stays {
        let key = &service.key;
        found.push(format!("public IP {name} has the label {has:?}; {key} asks for {label:?}"));
    }
    if managed && !label.is_empty() && ours(ip, LABEL) != Some(&service.key) {
        let has = ours(ip, LABEL);
        found.push(format!("tag {LABEL} of {name} is {has:?}; the label is of {}", service.key));
    }
}

/// Tags and IP tags that the first Service asks for. IP tags of a public IP cannot be changed while
/// others use it.
fn judge_wishes(
    case: &Case<'_>,
    ip: &Value,
    service: &Service<'_>,
    asks: &Asks,
    alone: bool,
    found: &mut Vec<String>,
) {
    let (name, key) = (last(text(&ip["id"])), &service.key);
    for (wished, value) in &asks.public_ip.tags {
        let wins = case.site.tags.keys().any(|config| same(config, wished));
        if !wins && tag(ip, wished) != Some(value) {
            let has = tag(ip, wished);
            found.push(format!("tag {wished} of {name} is {has:?}; {key} asks for {value:?}"));
        }
    }
    let Some(wanted) = asks.public_ip.ip_tags.as_ref().filter(|_| alone) else { return };
    let folded = |kind: &str, value: &str| (kind.to_lowercase(), value.to_lowercase());
    let has: BTreeSet<(String, String)> = items(&ip["properties"]["ipTags"])
        .map(|tag| folded(text(&tag["ipTagType"]), text(&tag["tag"])))
        .collect();
    let wanted: BTreeSet<(String, String)> = wanted.iter().map(|(k, v)| folded(k, v)).collect();
    if has != wanted {
        found.push(format!("public IP {name} has the IP tags {has:?}; {key} asks for {wanted:?}"));
    }
}
