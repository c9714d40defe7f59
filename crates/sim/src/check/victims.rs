//! S9: what Services have stays as it is, whatever another tenant claims of it.

use super::form::{self, bare, destinations, is_in, parts, text, told};
use crate::actor::hostile::consents;
use crate::config::without_cluster;
use crate::entries::entries;
use crate::scene::objects::is_theirs;
use crate::scene::{self, TENANT};
use crate::stage::Stage;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

impl Stage {
    /// The addresses of a status that no other Service tells, and no annotation lists.
    pub(super) fn addresses_alone(&self, uid: &str, told: &Value) -> BTreeSet<String> {
        let services = self.kubernetes.list("services", None);
        let others = services.iter().filter(|other| other["metadata"]["uid"] != uid);
        let others: Vec<&str> = others.flat_map(|other| form::told(other)).collect();
        let listed = self.truth.services.get(uid).map(|service| &service.additional);
        let told = told["ingress"].as_array().into_iter().flatten();
        let own = told.filter_map(|entry| entry["ip"].as_str()).filter(|ip| {
            !others.contains(ip) && listed.is_some_and(|listed| !listed.contains(*ip))
        });
        own.map(str::to_owned).collect()
    }

    /// Security rules that lead to addresses, each with its address.
    pub(super) fn opened(&self, addresses: &BTreeSet<String>) -> BTreeSet<(String, String)> {
        let group = self.azure.shown_by_id(&self.scene.security_group());
        let mut opened = BTreeSet::new();
        for (name, rule) in group.iter().flat_map(|group| parts(group, "securityRules")) {
            let to = destinations(rule).filter(|to| addresses.contains(*to) && !is_theirs(&name));
            opened.extend(to.map(|to| (name.clone(), to.to_owned())));
        }
        opened
    }

    /// S9: an address of another namespace's Service that the tenant has, and that this Service
    /// does not let it share.
    #[must_use]
    pub fn shared_unasked(&self) -> Option<String> {
        let strict = self.config.written["tenancy"] == "strict";
        let services = self.kubernetes.list("services", None);
        let is_tenants = |service: &Value| service["metadata"]["namespace"] == TENANT;
        let (own, others): (Vec<_>, Vec<_>) = services.iter().partition(|s| is_tenants(s));
        // Whose name the frontend has holds its address first, and speaks for all on it.
        let names = self.azure.resources_of("Microsoft.Network/loadBalancers");
        let names = names.iter().flat_map(|balancer| parts(balancer, "frontendIPConfigurations"));
        let names = names.map(|(name, _)| self.truth.owner_of(without_cluster(&name)));
        let first: BTreeSet<&str> = names.flatten().collect();
        let holds = |service: &Value| first.contains(text(&service["metadata"]["uid"]));
        let (lent, kept): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|service| !strict && consents(service));
        let lent = lent.into_iter().filter(|service| holds(service));
        let lent: BTreeSet<&str> = lent.flat_map(|service| told(service)).collect();
        let theirs = kept.iter().flat_map(|service| told(service));
        let theirs: BTreeSet<&str> = theirs.filter(|address| !lent.contains(address)).collect();
        own.iter().find_map(|service| {
            let address = told(service).find(|address| theirs.contains(address))?;
            let name = text(&service["metadata"]["name"]);
            Some(format!("{TENANT}/{name} has {address} without its holder's consent"))
        })
    }

    /// What Services of all namespaces but the hostile tenant's have, by what it is.
    #[must_use]
    pub fn of_victims(&self) -> BTreeMap<String, String> {
        let mut held = BTreeMap::new();
        let mut uids = BTreeSet::new();
        let mut addresses = BTreeSet::new();
        for service in self.kubernetes.list("services", None) {
            let meta = &service["metadata"];
            if meta["namespace"] == TENANT {
                continue;
            }
            uids.insert(text(&meta["uid"]).to_lowercase());
            let status = &service["status"]["loadBalancer"];
            addresses.extend(told(&service).map(str::to_owned));
            let name = format!("status of {}/{}", text(&meta["namespace"]), text(&meta["name"]));
            held.insert(name, status.to_string());
        }
        let is_theirs = |part: &str| {
            let uid = self.truth.owner_of(without_cluster(part));
            uid.is_some_and(|uid| uids.contains(&uid.to_lowercase()))
        };
        for resource in self.azure.shown() {
            let id = text(&resource["id"]);
            let last = id.rsplit('/').next().unwrap_or("");
            let whole = scene::objects::is_brought(last)
                || is_in(id, "privateLinkServices")
                || (is_in(id, "publicIPAddresses") && is_theirs(last));
            if whole {
                held.insert(id.to_owned(), still(&bare(&resource)).to_string());
            }
            for collection in ["frontendIPConfigurations", "loadBalancingRules", "probes"] {
                for (name, part) in parts(&resource, collection) {
                    if is_theirs(&name) {
                        held.insert(
                            format!("{id} {collection} {name}"),
                            still(&bare(part)).to_string(),
                        );
                    }
                }
            }
            for (name, rule) in parts(&resource, "securityRules") {
                open(&name, rule, &addresses, &mut held);
            }
        }
        let tables = self.azure.gateway(&scene::gateway()).unwrap_or_default();
        for (location, address, name) in entries(&tables) {
            if uids.contains(&name) {
                held.insert(format!("{address} of {name}"), location);
            }
        }
        held
    }
}

/// Without what Azure puts in at will, in one order.
fn still(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(key, _)| *key != "futureProperty");
            let sorted: BTreeMap<&String, Value> = fields.map(|(k, v)| (k, still(v))).collect();
            Value::Object(sorted.into_iter().map(|(key, value)| (key.clone(), value)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(still).collect()),
        other => other.clone(),
    }
}

/// What a security rule says of each of these addresses.
fn open(
    name: &str,
    rule: &Value,
    addresses: &BTreeSet<String>,
    held: &mut BTreeMap<String, String>,
) {
    let inside = &rule["properties"];
    let says = |key: &str| format!("{} {}", inside[key], inside[format!("{key}s")]);
    for address in destinations(rule).filter(|address| addresses.contains(*address)) {
        let what = [
            inside["access"].to_string(),
            inside["protocol"].to_string(),
            says("sourceAddressPrefix"),
            says("destinationPortRange"),
        ];
        held.insert(format!("{address} by {name}"), what.join(" "));
    }
}
