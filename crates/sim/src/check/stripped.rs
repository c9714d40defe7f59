//! Services whose finalizer somebody took off by hand, and that went: what they had may stay, and
//! stand in the way of a later one of the same name, which its public IP's tag names, too. Nothing
//! else is left out. A process that did not see one go knows of it only from the ledger, where one
//! that did has noted it: Kubernetes tells of the end of an object only those who watch at that
//! time.

use super::form::parts;
use crate::config::without_cluster;
use crate::stage::Stage;
use crate::truth::ServiceTruth;
use control::Controller;
use model::plan::{Change, Object};
use model::report::{ServiceReport, Wait};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What nothing tells any more whose it was.
#[derive(Debug)]
pub(super) struct Forgotten {
    addresses: BTreeSet<String>,
    /// Of nodes.
    ports: BTreeSet<String>,
}

/// Takes out of a security group what nothing tells any more whose it was.
pub(super) fn close(resource: &Arc<Value>, forgotten: &Forgotten) -> Arc<Value> {
    let none = forgotten.addresses.is_empty() && forgotten.ports.is_empty();
    if none || !resource["properties"]["securityRules"].is_array() {
        return Arc::clone(resource);
    }
    let is_forgotten = |value: &Value| forgotten.addresses.contains(value.as_str().unwrap_or(""));
    let leads_there = |rule: &Value| {
        let inside = &rule["properties"];
        let many = inside["destinationPortRanges"].as_array().into_iter().flatten();
        let one = [&inside["destinationPortRange"]].into_iter().filter(|one| !one.is_null());
        let mut ports = many.chain(one).map(|port| port.as_str().unwrap_or("")).peekable();
        ports.peek().is_some() && ports.all(|port| forgotten.ports.contains(port))
    };
    let mut resource = Value::clone(resource);
    if let Some(rules) = resource["properties"]["securityRules"].as_array_mut() {
        rules.retain(|rule| !leads_there(rule));
        rules.retain_mut(|rule| {
            let inside = &mut rule["properties"];
            let all = inside["destinationAddressPrefixes"].as_array_mut();
            let some = all.is_some_and(|all| {
                all.retain(|address| !is_forgotten(address));
                !all.is_empty()
            });
            let one = &inside["destinationAddressPrefix"];
            some || (!one.is_null() && !is_forgotten(one))
        });
    }
    Arc::new(resource)
}

impl Stage {
    /// What nothing tells any more whose it was, and is no other Service's.
    pub(super) fn forgotten(&self) -> Forgotten {
        Forgotten { addresses: self.own_addresses(), ports: self.stripped_ports() }
    }

    /// Node ports of which nothing tells any more whose they were, and no address.
    pub(super) fn forgotten_ports(&self) -> Forgotten {
        Forgotten { addresses: BTreeSet::new(), ports: self.stripped_ports() }
    }

    /// Addresses to which a security rule may lead of which nothing tells whose it was, whoever has
    /// them now.
    pub(super) fn unsure_addresses(&self) -> BTreeSet<String> {
        self.stripped_addresses()
    }

    /// Services that went, or gave up their load balancer, without our finalizer: it had been taken
    /// off by hand.
    fn stripped(&self) -> impl Iterator<Item = &ServiceTruth> {
        self.truth.services.values().filter(|s| s.stripped && !s.wants && !s.claimed)
    }

    /// Their names.
    pub(crate) fn stripped_names(&self) -> BTreeSet<&str> {
        self.stripped().map(|service| service.name.as_str()).collect()
    }

    /// Whether such a Service had this name.
    pub(crate) fn is_name_stripped(&self, name: &str) -> bool {
        self.stripped().any(|service| service.name == name)
    }

    /// Whether a Service has the name of such a Service.
    fn is_stripped(&self, uid: &str) -> bool {
        let service = self.truth.services.get(uid);
        service.is_some_and(|service| self.is_name_stripped(&service.name))
    }

    /// Addresses that such Services had: nothing in a security rule to one says whose it is, also
    /// where Azure has given the address to another Service since.
    fn stripped_addresses(&self) -> BTreeSet<String> {
        let gone = self.truth.services.iter().filter(|(uid, _)| self.is_stripped(uid));
        let all = gone.flat_map(|(uid, service)| {
            // Several Services may list an address beside those of their frontends.
            self.ledger.opened.get(uid).into_iter().flatten().chain(&service.additional)
        });
        all.cloned().collect()
    }

    /// Those of them that no other Service has had, and those that such a Service has now: Azure
    /// may have taken these from another before.
    fn own_addresses(&self) -> BTreeSet<String> {
        let all = self.stripped_addresses();
        if all.is_empty() {
            return all;
        }
        let others = self.ledger.opened.iter().filter(|(uid, _)| !self.is_stripped(uid));
        let others: BTreeSet<&String> = others.flat_map(|(_, all)| all).collect();
        let held = self.addresses_held();
        let own = |ip: &String| held.contains(ip) || !others.contains(ip);
        all.into_iter().filter(own).collect()
    }

    /// Addresses of what stands for such Services alone.
    fn addresses_held(&self) -> BTreeSet<String> {
        let mut held = BTreeSet::new();
        for resource in self.azure.shown() {
            let kept = self.without_stripped_parts(&resource);
            if let (None, Some(ip)) = (&kept, resource["properties"]["ipAddress"].as_str()) {
                held.insert(ip.to_owned());
            }
            let left =
                kept.map(|kept| parts(&kept, "frontendIPConfigurations").into_keys().collect());
            let left: BTreeSet<String> = left.unwrap_or_default();
            for (name, frontend) in parts(&resource, "frontendIPConfigurations") {
                let ip = frontend["properties"]["privateIPAddress"].as_str();
                held.extend(ip.filter(|_| !left.contains(&name)).map(str::to_owned));
            }
        }
        held
    }

    /// Node ports that only such Services had: with floating IP disabled a security rule leads to
    /// them on every node, and nothing else in it says whose it is.
    fn stripped_ports(&self) -> BTreeSet<String> {
        let of = |stripped: bool| {
            let all = self.truth.services.iter();
            let all = all.filter(move |(uid, _)| self.is_stripped(uid) == stripped);
            all.flat_map(|(_, service)| &service.node_ports)
        };
        let others: BTreeSet<&u64> = of(false).collect();
        of(true).filter(|port| !others.contains(port)).map(ToString::to_string).collect()
    }

    /// A resource without the parts of stripped Services; nothing where it is theirs, or stands
    /// for their parts alone.
    pub(super) fn without_stripped(&self, resource: &Arc<Value>) -> Option<Arc<Value>> {
        let kept = self.without_stripped_parts(resource)?;
        // With a rule or a probe alone, too: nothing tells any more that it may go.
        let count = |balancer: &Value| -> usize {
            let all = ["frontendIPConfigurations", "loadBalancingRules", "probes"];
            all.iter().map(|collection| parts(balancer, collection).len()).sum()
        };
        (count(resource) == 0 || count(&kept) > 0).then_some(kept)
    }

    /// The same, but a load balancer stands, whoever's parts are on it: nodes are behind it.
    pub(super) fn without_stripped_parts(&self, resource: &Arc<Value>) -> Option<Arc<Value>> {
        if self.stripped().next().is_none() {
            return Some(Arc::clone(resource));
        }
        let shared = self.frontends_of_others();
        let is_one = |name: &str| {
            let name = without_cluster(name);
            self.is_part_of_stripped(name) && !shared.contains(&name.to_lowercase())
        };
        if is_one(name_of(resource)) {
            return None;
        }
        let mut kept = Value::clone(resource);
        let was = [used(&kept, "probe"), used(&kept, "backendAddressPool")];
        for collection in ["frontendIPConfigurations", "loadBalancingRules", "probes"] {
            if let Some(items) = kept["properties"][collection].as_array_mut() {
                items.retain(|item| !is_one(name_of(item)));
            }
        }
        forget_references(&mut kept, &is_one);
        // A Private Link Service is theirs where it stands before nothing else.
        let before = |link: &Value| {
            let all = link["properties"]["loadBalancerFrontendIpConfigurations"].as_array();
            all.map_or(0, Vec::len)
        };
        if before(resource) > 0 && before(&kept) == 0 {
            return None;
        }
        // The shared probe and the pool of a Local Service stand for their rules alone.
        let [probes, mut pools] = was;
        pools.retain(|pool| self.is_pool_of_stripped(pool));
        for (collection, kind, was) in
            [("probes", "probe", probes), ("backendAddressPools", "backendAddressPool", pools)]
        {
            let idle: BTreeSet<String> = was.difference(&used(&kept, kind)).cloned().collect();
            if let Some(items) = kept["properties"][collection].as_array_mut() {
                items.retain(|item| !idle.contains(&name_of(item).to_lowercase()));
            }
        }
        Some(Arc::new(kept))
    }

    /// Whether a part has the name of such a Service's.
    fn is_part_of_stripped(&self, name: &str) -> bool {
        self.truth.owner_of(name).is_some_and(|uid| self.is_stripped(uid))
    }

    /// Names, lower case, of frontends to which rules of other Services lead: they stand for these,
    /// whoever has made them.
    fn frontends_of_others(&self) -> BTreeSet<String> {
        let mut shared = BTreeSet::new();
        for balancer in self.azure.resources_of("Microsoft.Network/loadBalancers") {
            let rules = parts(&balancer, "loadBalancingRules").into_iter();
            for (_, rule) in rules.filter(|(name, _)| !self.is_part_of_stripped(name)) {
                let to = rule["properties"]["frontendIPConfiguration"]["id"].as_str();
                let name = to.and_then(|to| to.rsplit('/').next());
                shared.extend(name.map(str::to_lowercase));
            }
        }
        shared
    }

    /// Whether a pool, by its name in lower case, is such a Service's own.
    fn is_pool_of_stripped(&self, pool: &str) -> bool {
        let pool = pool.strip_suffix("-ipv6").unwrap_or(pool);
        self.stripped().any(|service| service.name.replace('/', "-") == pool)
    }

    /// Whether a controller wants nothing more, but for what such Services and later ones of their
    /// names cannot have or get rid of: parts stand in the way whose owner nobody knows.
    pub(crate) fn is_settled(&self, controller: &Controller) -> bool {
        let (plan, world) = (controller.plan(), controller.world());
        let is_theirs = |object: &Object| match object {
            Object::Service { uid, .. } => self.is_stripped(uid.as_str()),
            Object::Pod { .. } => false,
        };
        let waits = |change: &Arc<Change>| {
            let mut causes = change.causes.iter();
            !change.waits.is_empty() && causes.all(|uid| self.is_stripped(uid.as_str()))
        };
        // What a new leader's lists lack may stand all the same.
        let listing = |report: &Arc<ServiceReport>| report.waits.contains(&Wait::Listing);
        let listed = world.unseen.is_empty() && !controller.report().services.values().any(listing);
        controller.is_settled()
            || (listed
                && self.stripped().next().is_some()
                && plan.changes.iter().all(waits)
                && plan.writes.iter().all(|write| is_theirs(&write.object))
                && world.in_flight.is_empty()
                && world.holds.is_empty()
                && controller.report().needs.is_empty()
                && controller.readings().next().is_none()
                && controller.waiting().next().is_none()
                && !controller.owes_names())
    }

    /// Ids of load balancers, lower case, on which parts of such Services stand: Azure deletes none
    /// of them, and machines stay in their pools.
    pub(super) fn held_by_stripped(&self) -> BTreeSet<String> {
        let all = self.azure.resources_of("Microsoft.Network/loadBalancers").into_iter();
        let held = all.filter(|balancer| {
            self.without_stripped(balancer).is_none_or(|kept| kept != *balancer)
        });
        held.filter_map(|balancer| Some(balancer["id"].as_str()?.to_lowercase())).collect()
    }
}

/// Names, lower case, of what rules of a load balancer refer to in a field.
fn used(balancer: &Value, field: &str) -> BTreeSet<String> {
    let rules = parts(balancer, "loadBalancingRules").into_values();
    let ids = rules.filter_map(|rule| rule["properties"][field]["id"].as_str());
    ids.filter_map(|id| id.rsplit('/').next()).map(str::to_lowercase).collect()
}

fn name_of(part: &Value) -> &str {
    part["name"].as_str().unwrap_or("")
}

/// Takes out of every list the references to parts of these names: Azure fills in what refers to a
/// part.
fn forget_references(value: &mut Value, is_one: &dyn Fn(&str) -> bool) {
    match value {
        Value::Array(items) => {
            items.retain(|item| {
                let refers = item.as_object().is_some_and(|fields| fields.len() == 1);
                let id = item["id"].as_str().filter(|_| refers);
                !id.is_some_and(|id| is_one(id.rsplit('/').next().unwrap_or("")))
            });
            items.iter_mut().for_each(|item| forget_references(item, is_one));
        }
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| forget_references(field, is_one));
        }
        _ => {}
    }
}
