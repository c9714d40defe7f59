//! S9: what a Service has is changed for its own sake only. Once everything is settled, what each
//! Service has is written down; from then on no write made for others may change it.

use super::azure::{Write, memberships, pools};
use super::form::{bare, is_in, parts, same};
use crate::stage::{Sent, Stage};
use crate::tally::count;
use kube_emulator::ObjectRef;
use model::kubernetes::SERVICE_CONDITION;
use model::policy::PoolKind;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const BALANCERS: &str = "Microsoft.Network/loadBalancers";
const LINKS: &str = "Microsoft.Network/privateLinkServices";
/// What is in pools of NICs.
pub(super) const MACHINES: [&str; 2] = [
    "Microsoft.Compute/virtualMachineScaleSets/virtualMachines",
    "Microsoft.Network/networkInterfaces",
];
const COLLECTIONS: [&str; 3] = ["frontendIPConfigurations", "loadBalancingRules", "probes"];

/// What a Service had when all was settled.
#[derive(Clone, Debug, Default)]
pub struct Settled {
    /// The revision that its owner had last edited it at.
    edited_at: u64,
    /// The revision at which its Pods had last said other numbers for its ports.
    numbered_at: u64,
    /// Load balancers to collections and names of parts to the parts.
    parts: BTreeMap<String, BTreeMap<(&'static str, String), Value>>,
    /// What its status said.
    told: Value,
    /// Additional addresses that it asked for. Azure may give such an address to another Service,
    /// and then it leaves the status.
    beside: BTreeSet<String>,
    /// Public IPs of its addresses whose tag names it.
    tagged: BTreeSet<String>,
    /// What the security group let in, or kept out, at addresses that were the Service's alone.
    opened: BTreeSet<(String, String)>,
}

impl Settled {
    /// Whether a status still has all addresses of `told`, but for additional ones.
    fn is_kept(&self, status: &Value) -> bool {
        let mut left = self.told.clone();
        let told = status["ingress"].as_array().into_iter().flatten();
        let told: BTreeSet<&str> = told.filter_map(|entry| entry["ip"].as_str()).collect();
        if let Some(list) = left["ingress"].as_array_mut() {
            list.retain(|entry| {
                let ip = entry["ip"].as_str().unwrap_or("");
                told.contains(ip) || !self.beside.contains(ip)
            });
        }
        *status == left
    }
}

/// The Services that the tag of a public IP names.
pub(super) fn users(ip: &Value) -> BTreeSet<&str> {
    let tags = ["k8s-azure-service", "service"].iter().filter_map(|key| ip["tags"][*key].as_str());
    tags.flat_map(|list| list.split(',').map(str::trim)).collect()
}

impl Stage {
    /// Writes down what each Service has, if all is settled. What people have changed of a Service
    /// is not what it is to have, and is put right once it is seen; one that moves to the other
    /// kind of load balancers leaves what it has, though it may have to wait.
    pub(crate) fn note_settled(&mut self) {
        if !self.is_quiet() {
            return;
        }
        self.note_moves_over();
        let unsure = &self.touched_services() | &self.leaving();
        // Whoever tells an address by now that had gone has it again.
        self.ledger.freed.retain(|(uid, _)| unsure.contains(uid));
        // One that asks for what cannot be keeps what it had when it last asked for what can.
        let told = self.told_by_programmed(&unsure);
        for ((balancer, name), (_, asked_at)) in &mut self.ledger.addresses {
            let own = balancer.rsplit('/').next().unwrap_or("");
            let owner = self.truth.owner_of(name).or_else(|| self.truth.owner_of(own));
            let owner = owner.filter(|uid| told.contains_key(*uid));
            if let Some(service) = owner.and_then(|uid| self.truth.services.get(uid)) {
                *asked_at = service.placed_at;
            }
        }
        let mut settled: BTreeMap<String, Settled> = BTreeMap::new();
        for balancer in self.azure.resources_of(BALANCERS) {
            let id = balancer["id"].as_str().unwrap_or("").to_lowercase();
            let turns = self.awaits_addresses(&balancer);
            for collection in COLLECTIONS {
                if turns && collection == "loadBalancingRules" {
                    continue;
                }
                for (name, part) in parts(&balancer, collection) {
                    let Some(uid) = self.owner_of_part(&id, &name) else { continue };
                    // Azure takes no load balancer whose rules lead to a frontend that it lacks: a
                    // frontend that its Service left stays for the Services whose rules lead there,
                    // and goes with the last of these rules. The Service after which it is named is
                    // not reached there any more, and loses nothing.
                    let is_frontend = collection == "frontendIPConfigurations";
                    if is_frontend && !self.is_led_to(&balancer, &name, &uid) {
                        continue;
                    }
                    // A frontend is named after its first holder and goes with it: Services that
                    // share its address get another frontend then, and their rules lead there.
                    let shared = &part["properties"]["frontendIPConfiguration"]["id"];
                    let shared = shared.as_str().map(|id| id.rsplit('/').next().unwrap_or(""));
                    let holder = shared.and_then(|name| self.owner_of_part(&id, name));
                    if holder.is_some_and(|holder| holder != uid) {
                        continue;
                    }
                    let owner = self.truth.services.get(&uid).map(|service| service.name.as_str());
                    if owner.is_some_and(|name| self.wants_other_side(name, &id)) {
                        continue;
                    }
                    if !told.contains_key(&uid) {
                        continue;
                    }
                    let known = settled.entry(uid).or_default();
                    let there = known.parts.entry(id.clone()).or_default();
                    there.insert((collection, name), bare(part));
                }
            }
        }
        for (uid, known) in &mut settled {
            known.opened = self.opened(&self.addresses_alone(uid, &told[uid]));
        }
        // Who is on another's frontend has no parts that stay in any case; what it tells does, and
        // that it is named.
        for (uid, told) in &told {
            let known = settled.entry(uid.clone()).or_default();
            known.told = told.clone();
            if let Some(service) = self.truth.services.get(uid) {
                known.edited_at = service.edited_at;
                known.beside = service.additional.clone();
            }
            known.numbered_at = self.truth.numbered.get(uid).copied().unwrap_or(0);
            known.tagged = self.tagged(uid, told);
        }
        self.ledger.settled = settled;
    }

    /// What Services say in their status that are as they ask, by their UIDs, but for these.
    fn told_by_programmed(&self, unsure: &BTreeSet<String>) -> BTreeMap<String, Value> {
        let services = self.kubernetes.list("services", None);
        let programmed = services.iter().filter(|service| is_programmed(service));
        let told = programmed.map(|service| {
            let uid = service["metadata"]["uid"].as_str().unwrap_or("").to_owned();
            (uid, service["status"]["loadBalancer"].clone())
        });
        told.filter(|(uid, _)| !unsure.contains(uid)).collect()
    }

    /// Whether the operator has asked for pools of addresses, and a load balancer keeps those of
    /// NICs for as long as a Private Link Service stands before it: Azure takes no address there
    /// (PrivateLinkServiceIsNotSupportedForIPBasedLoadBalancer). Whoever takes that one away, the
    /// operator's wish is carried out then, and all rules lead over another pool meanwhile.
    fn awaits_addresses(&self, balancer: &Value) -> bool {
        let below = format!("{}/", balancer["id"].as_str().unwrap_or("").to_lowercase());
        let before = |link: &Value| {
            let all = link["properties"]["loadBalancerFrontendIpConfigurations"].as_array();
            let mut ids = all.into_iter().flatten().filter_map(|frontend| frontend["id"].as_str());
            ids.any(|id| id.to_lowercase().starts_with(&below))
        };
        self.config.pools == PoolKind::NodeIp
            && pools(balancer).values().all(Vec::is_empty)
            && self.azure.resources_of(LINKS).iter().any(|link| before(link))
    }

    /// What a Service had when all was settled, where nobody has asked for anything else since and
    /// the sender knew so. A write that was sent by an earlier life or under an earlier term is
    /// fenced off by nothing but its ETag.
    fn had(&self, uid: &str, sent: &Sent) -> Option<&Settled> {
        let service = self.truth.services.get(uid)?;
        let known = self.ledger.settled.get(uid)?;
        let outlived = self.processes[sent.process].epoch != sent.epoch || self.is_late(sent);
        let unchanged = service.wants && service.edited_at == known.edited_at;
        // What ports with names lead to is its Pods' to say.
        let numbered_at = self.truth.numbered.get(uid).copied().unwrap_or(0);
        let same_numbers = numbered_at == known.numbered_at && numbered_at <= sent.slices;
        let unchanged = unchanged && (same_numbers || !service.asks_pods());
        (unchanged && service.edited_at <= sent.services && !outlived).then_some(known)
    }

    /// S9: parts of load balancers.
    pub(super) fn check_tenants(&mut self, write: &Write<'_>) {
        let (Some(before), Some(after)) = (write.before, write.after) else { return };
        let balancer = write.path.to_lowercase();
        let was = COLLECTIONS.map(|collection| parts(before, collection));
        let is = COLLECTIONS.map(|collection| parts(after, collection));
        let mut broken = None;
        let mut judged = 0;
        for uid in self.ledger.settled.keys() {
            let Some(known) = self.had(uid, write.sent) else { continue };
            let Some(there) = known.parts.get(&balancer) else { continue };
            judged += 1;
            for ((collection, name), part) in there {
                let at = COLLECTIONS.iter().position(|known| known == collection).unwrap_or(0);
                let stood = was[at].get(name).is_some_and(|was| same(was, part));
                let stands = is[at].get(name).is_some_and(|is| same(is, part));
                if stood && !stands {
                    broken = Some((uid.clone(), name.clone()));
                }
            }
        }
        for _ in 0..judged {
            count(&mut self.tally.checks, "S9");
        }
        if let Some((uid, part)) = broken {
            let name = self.truth.services.get(&uid).map_or("", |service| service.name.as_str());
            let text = format!("{part} of {name} was changed, and {name} did not ask for it");
            self.fail("S9", text);
        }
    }

    /// Public IPs whose address a status tells and whose tag names the Service.
    fn tagged(&self, uid: &str, told: &Value) -> BTreeSet<String> {
        let name = self.truth.services.get(uid).map_or("", |service| service.name.as_str());
        let told = told.to_string();
        let all = self.azure.resources_of("Microsoft.Network/publicIPAddresses").into_iter();
        let own = all.filter(|ip| {
            let address = ip["properties"]["ipAddress"].as_str();
            address.is_some_and(|ip| told.contains(&format!("\"{ip}\"")))
                && users(ip).contains(name)
        });
        own.map(|ip| ip["id"].as_str().unwrap_or("").to_lowercase()).collect()
    }

    /// S9: the tag of a public IP goes on naming each Service that uses it.
    pub(super) fn check_users(&mut self, write: &Write<'_>) {
        let (Some(before), Some(after)) = (write.before, write.after) else { return };
        let id = write.path.to_lowercase();
        let (was, is) = (users(before), users(after));
        // What is not a public IP has no such tag, and one that keeps its users loses none.
        if !is_in(write.path, "publicIPAddresses") || was == is {
            return;
        }
        let lost = self.ledger.settled.keys().find_map(|uid| {
            self.had(uid, write.sent).filter(|known| known.tagged.contains(&id))?;
            let name = &self.truth.services.get(uid)?.name;
            (was.contains(name.as_str()) && !is.contains(name.as_str())).then(|| name.clone())
        });
        count(&mut self.tally.checks, "S9");
        if let Some(name) = lost {
            let ip = id.rsplit('/').next().unwrap_or("");
            self.fail("S9", format!("the tag of {ip} forgets {name}, which uses it"));
        }
    }

    /// S9: what status says.
    pub(super) fn check_told(&mut self, sent: &Sent, before: &Value, after: &Value) {
        let uid = before["metadata"]["uid"].as_str().unwrap_or("");
        let Some(known) = self.had(uid, sent) else { return };
        let was = &before["status"]["loadBalancer"];
        let changed = *was == known.told && after["status"]["loadBalancer"] != known.told;
        count(&mut self.tally.checks, "S9");
        if changed {
            let name = before["metadata"]["name"].as_str().unwrap_or("");
            let text = format!("status of {name} was changed, and {name} did not ask for it");
            self.fail("S9", text);
        }
    }

    /// L1: Services that were in order and by now are refused, or held back by their owners, and
    /// lack something of what they had: such a Service keeps it all until it can have what it asks
    /// for.
    pub(crate) fn unkept_holds(&self) -> Option<String> {
        for (uid, known) in &self.ledger.settled {
            let Some(service) = self.truth.services.get(uid) else { continue };
            let (namespace, name) = service.name.split_once('/')?;
            let object = ObjectRef::new("services", namespace, name);
            let Ok(object) = self.kubernetes.get(object) else { continue };
            let edited = service.edited_at != known.edited_at;
            if object["metadata"]["uid"] != **uid || !edited || !is_refused(&object) {
                continue;
            }
            let name = &service.name;
            if !known.is_kept(&object["status"]["loadBalancer"]) {
                return Some(format!("{name} is refused, and its status has changed"));
            }
            for (id, there) in &known.parts {
                let balancer = self.azure.shown_by_id(id);
                let stands = |collection: &str, part: &str, was: &Value| {
                    let standing = balancer.as_ref().map(|b| parts(b, collection));
                    standing.is_some_and(|all| all.get(part).is_some_and(|is| same(is, was)))
                };
                let mut lost = there.iter().filter(|((at, part), was)| !stands(at, part, was));
                if let Some(((_, part), _)) = lost.next() {
                    return Some(format!("{name} is refused, and {part} has changed"));
                }
            }
            let addresses = known.opened.iter().map(|(_, address)| address.clone()).collect();
            let opened = self.opened(&addresses);
            if let Some((rule, to)) = known.opened.difference(&opened).next() {
                return Some(format!("{name} is refused, and lacks security rule {rule} to {to}"));
            }
        }
        None
    }

    /// S3: machines in pools of NICs, and nodes in pools of several load balancers: one that is in
    /// order stays in a pool that a Service needs which nobody has changed.
    pub(super) fn check_members(&mut self, write: &Write<'_>) {
        let (Some(before), Some(asked)) = (write.before, write.body) else { return };
        if self.is_rebuilding() {
            return;
        }
        let mut left: Vec<(String, String)> = Vec::new();
        if is_in(write.path, "loadBalancers") {
            let is = pools(asked);
            for (name, was) in pools(before) {
                let Some(is) = is.get(&name) else { continue };
                let gone = was.into_iter().filter(|address| !is.contains(address));
                let id = format!("{}/backendaddresspools/{name}", write.path).to_lowercase();
                left.extend(gone.map(|address| (id.clone(), address)));
            }
        } else if let Some(address) = self.truth.machines.get(&write.path.to_lowercase()) {
            let is = memberships(asked);
            let gone = memberships(before).into_iter().filter(|pool| !is.contains(pool));
            left.extend(gone.map(|pool| (pool, address.clone())));
        } else {
            return;
        }
        count(&mut self.tally.checks, "S3");
        for (pool, address) in left {
            if self.is_last_in(&pool, write.path)
                && let Some(name) = self.needs_member(write.sent, &pool, &address)
            {
                let pool = pool.rsplit('/').next().unwrap_or("");
                self.fail(
                    "S3",
                    format!("pool {pool} of {name} is emptied: {address} was the last"),
                );
                return;
            }
            // With several load balancers a node belongs to that of its own set, once there is one.
            if !self.scene.is_at_home(&write.path.to_lowercase(), &address) {
                continue;
            }
            let since = self.truth.members.get(&address).copied();
            if since.is_some_and(|since| since <= write.sent.nodes)
                && let Some(name) = self.needs_member(write.sent, &pool, &address)
            {
                let pool = pool.rsplit('/').next().unwrap_or("");
                let text = format!("{address} left pool {pool} of {name} and is in good order");
                self.fail("S3", text);
                return;
            }
        }
    }

    /// Whether no other machine is in a pool of NICs that one leaves, and rules lead there: they
    /// may go over another pool by now. Where people take machines out of it a process that has not
    /// seen it counts on them.
    fn is_last_in(&self, pool: &str, machine: &str) -> bool {
        let machine = machine.to_lowercase();
        if !self.truth.machines.contains_key(&machine) || self.was_pool_touched(pool) {
            return false;
        }
        let balancer = pool.split_once("/backendaddresspools/").map(|(balancer, _)| balancer);
        let balancer = balancer.and_then(|id| self.azure.shown_by_id(id));
        let rules = balancer.as_ref().map(|balancer| parts(balancer, "loadBalancingRules"));
        let led = rules.into_iter().flat_map(BTreeMap::into_values).any(|rule| {
            let to = rule["properties"]["backendAddressPool"]["id"].as_str().unwrap_or("");
            to.eq_ignore_ascii_case(pool)
        });
        if !led {
            return false;
        }
        let others = MACHINES.iter().flat_map(|kind| self.azure.resources_of(kind));
        let mut others = others
            .filter(|other| !other["id"].as_str().unwrap_or("").eq_ignore_ascii_case(&machine));
        !others.any(|other| memberships(&other).contains(pool))
    }

    /// A Service that needs a node in a pool, and that nobody has changed.
    fn needs_member(&self, sent: &Sent, pool: &str, address: &str) -> Option<String> {
        let (balancer, _) = pool.split_once("/backendaddresspools/")?;
        self.ledger.settled.keys().find_map(|uid| {
            let known = self.had(uid, sent)?;
            let rules = known.parts.get(balancer)?.iter();
            let mut rules = rules.filter(|((collection, _), _)| *collection == COLLECTIONS[1]);
            let leads = rules.any(|(_, rule)| {
                let to = rule["properties"]["backendAddressPool"]["id"].as_str().unwrap_or("");
                to.eq_ignore_ascii_case(pool)
            });
            let service = self.truth.services.get(uid)?;
            // A pool of one Service may hold only the nodes that its Pods are on.
            let own = service.local
                && pool.rsplit('/').next()? == service.name.replace('/', "-").to_lowercase();
            (leads && (!own || self.has_ready_pod(sent, uid, address)))
                .then(|| service.name.clone())
        })
    }

    fn has_ready_pod(&self, sent: &Sent, uid: &str, address: &str) -> bool {
        let at_home = |node: &str| self.truth.hosts.get(node).is_some_and(|(a, _)| a == address);
        let mut slices = self.truth.slices.values().filter(|slice| slice.owner == uid);
        slices.any(|slice| {
            slice.ready.values().any(|(node, since)| at_home(node) && *since <= sent.slices)
        })
    }

    /// The Service that a part of a load balancer is of.
    /// Whether a rule of a Service leads to a frontend.
    pub(super) fn is_led_to(&self, balancer: &Value, frontend: &str, uid: &str) -> bool {
        let id = balancer["id"].as_str().unwrap_or("").to_lowercase();
        parts(balancer, "loadBalancingRules").into_iter().any(|(rule, body)| {
            let to = body["properties"]["frontendIPConfiguration"]["id"].as_str().unwrap_or("");
            let here = to.rsplit('/').next().is_some_and(|to| to.eq_ignore_ascii_case(frontend));
            here && self.owner_of_part(&id, &rule).as_deref() == Some(uid)
        })
    }
}

/// Whether a Service says itself that Azure is as it asks.
fn is_programmed(service: &Value) -> bool {
    says(service, "True")
}

/// Whether a Service says itself that it is refused, or held back. `promise` judges whether it is
/// right to say so.
pub(crate) fn is_refused(service: &Value) -> bool {
    says(service, "False")
}

fn says(service: &Value, status: &str) -> bool {
    let conditions = service["status"]["conditions"].as_array().into_iter().flatten();
    let mut own = conditions.filter(|condition| condition["type"] == SERVICE_CONDITION);
    own.any(|condition| condition["status"] == status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{self, Layout, Scene, objects};
    use crate::swarm::Pace;
    use crate::weather::Weather;
    use kube_emulator::{Part, Patch};
    use serde_json::json;

    const DAY_MS: u64 = 86_400_000;
    const CREATE: &str = "service.beta.kubernetes.io/azure-pls-create";

    /// What stands on the internal load balancer.
    fn inside(stage: &Stage) -> Value {
        let id = scene::network("loadBalancers/kubernetes-internal");
        stage.azure.resource(&id).expect("it is there")
    }

    #[test]
    fn pools_that_were_kept_by_a_private_link_service_are_turned_for_the_operator() {
        let pace = Pace { azure_ms: 5, api_ms: 2, watch_ms: 5, operation_ms: 50 };
        let scene = Scene::plain(Layout::Nics, 3, 7);
        let mut stage = Stage::new(scene.clone(), pace, Weather::Fair, 1);
        for index in 0..2 {
            let mut web = objects::service("default", index);
            let annotations = &mut web["metadata"]["annotations"];
            annotations["service.beta.kubernetes.io/azure-load-balancer-internal"] = json!("true");
            if index == 0 {
                annotations[CREATE] = json!("true");
            }
            stage.kubernetes.create(web, stage.now_ms).expect("a new Service");
        }
        stage.follow();
        assert!(stage.settle(DAY_MS), "{:?}", stage.breach);
        let addresses = Layout::Nics.other_pools().expect("it has others");
        stage.reconfigure(scene.config(&addresses));
        assert!(stage.settle(DAY_MS), "{:?}", stage.breach);
        assert!(pools(&inside(&stage)).values().all(Vec::is_empty), "no pool is turned");
        stage.note_settled();
        // Its neighbour goes on having its frontend and its probe.
        let known = stage.ledger.settled.values().flat_map(|known| known.parts.values());
        let kinds: Vec<&str> = known.flat_map(BTreeMap::keys).map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, ["frontendIPConfigurations", "probes"]);
        let web = ObjectRef::new("services", "default", "web-0");
        let body = json!({"metadata": {"annotations": {CREATE: null}}});
        let now_ms = stage.now_ms;
        let patch = Patch::Merge(body);
        stage.kubernetes.patch(web, Part::Main, &patch, now_ms).expect("it is patched");
        stage.follow();
        assert!(stage.settle(DAY_MS), "{:?}", stage.breach);
        let held: Vec<usize> = pools(&inside(&stage)).values().map(Vec::len).collect();
        assert_eq!(held, [3], "{:?}", inside(&stage));
    }
}
