//! Services of every kind at once, for a phase in which nothing goes wrong: what is built is
//! judged, and the storm is too rough for all that can be asked.

use super::values::{self, key};
use super::wishes::{self, FIELDS, SHIFT, Wish};
use super::{Company, merge, neighbour};
use crate::check::azure::{UNKNOWN, memberships};
use crate::check::form::parts;
use crate::random::Random;
use crate::scene::machines::is_nic;
use crate::scene::objects::is_theirs;
use crate::scene::second::is_second;
use crate::scene::{Layout, objects};
use crate::stage::Stage;
use azure_emulator::{Fault as AzureFault, FaultKind};
use kube_emulator::{ObjectRef, Part, Patch};
use plan::ask::annotation::TABLE;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Their numbers: the same kinds as the owners of the storm, who have the first ones.
pub(super) const OWNERS: Range<u64> = 20..26;

const DENY: &str = "azure-deny-all-except-load-balancer-source-ranges";

/// Numbers of pods beside those of the storm.
const PODS: Range<u32> = 20..26;

/// Annotations that say something only beside each other.
const TOGETHER: [&[&str]; 18] = [
    &[],
    &[DENY, key::SOURCES],
    &[DENY, key::RANGES, key::PIP],
    &[DENY, key::RANGES, "azure-additional-public-ips"],
    &[key::LINK, "azure-pls-fqdns", "azure-pls-visibility", "azure-pls-auto-approval"],
    &[key::LINK, "azure-pls-proxy-protocol", key::LINK_ADDRESS],
    &[key::SUBNET, key::IPV4],
    &["azure-load-balancer-health-probe-protocol", "azure-load-balancer-health-probe-request-path"],
    &["port_{port}_health-probe_protocol", "port_{port}_health-probe_request-path"],
    &[key::LABEL, "azure-pip-tags"],
    &[key::LABEL, key::PIP],
    &[key::TAGS, key::RANGES],
    &[key::NO_FLOATING_IP, key::SOURCES],
    &[key::INTERNAL, key::ALL_PORTS],
    &["azure-pip-tags", "azure-pip-ip-tags"],
    &[key::PIP, key::PIP_IPV6],
    &["azure-additional-public-ips", key::PREFIX],
    &[key::LINK, key::LINK_ADDRESS, "azure-pls-ip-configuration-ip-address-count"],
];

/// Its first port and its source range are those of a security rule that another cluster has in
/// our group, too: both share it.
const SHARER: u64 = 22;

impl Wish {
    /// What leads to the security rule of another cluster.
    fn of_another_clusters_rule() -> Self {
        Self { ports: vec![0], fields: BTreeMap::from([("ranges", 0)]), ..Self::default() }
    }

    /// Sets an annotation to a value of its row.
    fn annotate(&mut self, key: &'static str, owner: u64, random: &mut Random) {
        if let Some(row) = TABLE.iter().find(|row| row.key == key) {
            self.annotations.insert(key, random.pick(&values::values(row, owner)).clone());
        }
    }

    /// What was asked for changes, goes, or is joined by something else.
    fn change(&mut self, owner: u64, random: &mut Random) {
        let keys: Vec<&'static str> = self.annotations.keys().copied().collect();
        for key in keys {
            match random.below(8) {
                0..=2 => self.annotate(key, owner, random),
                3 => drop(self.annotations.remove(key)),
                _ => {}
            }
        }
        if random.permille(500) {
            let (key, value) = values::draw(owner, random);
            self.annotations.insert(key, value);
        }
        if random.permille(400) {
            let field = *random.pick(&FIELDS);
            if self.fields.remove(field).is_none() {
                self.fields.insert(field, random.below(4));
            }
        }
        if random.permille(400) {
            self.fields.insert(SHIFT, random.below(3));
        }
        if random.permille(300) {
            self.ports = wishes::ports(random);
        }
        self.internal ^= random.permille(150);
        self.off = random.permille(150);
    }
}

/// Labels of a pod: whom it serves and where it leaves. Gateways of Azure have names without letter
/// case, labels have one.
fn labels(random: &mut Random) -> Value {
    let serves = format!("web-{}", random.below(4));
    let number = random.below(3);
    let (leaves, spelled) = (format!("team-{number}"), format!("Team-{number}"));
    let egress = "kubernetes.azure.com/service-egress-gateway";
    match random.below(4) {
        0 => json!({ "app": serves }),
        1 => json!({egress: leaves}),
        2 => json!({"app": serves, egress: spelled}),
        _ => json!({"rank": "none"}),
    }
}

/// How a pod fares.
fn status(random: &mut Random) -> Value {
    let (phase, ready) = match random.below(6) {
        0 => ("Succeeded", "False"),
        1 => ("Failed", "False"),
        2 => ("Pending", "False"),
        3 => ("Running", "False"),
        _ => ("Running", "True"),
    };
    json!({"phase": phase, "conditions": [{"type": "Ready", "status": ready}]})
}

/// The outbound rule of another client on a frontend of ours.
const LENT: &str = "theirs-lent";

/// Tags of the Go cloud provider, and the keys that its older releases wrote instead.
const OLD_TAGS: [(&str, &str); 3] = [
    ("k8s-azure-service", "service"),
    ("k8s-azure-cluster-name", "kubernetes-cluster-name"),
    ("k8s-azure-dns-label-service", "kubernetes-dns-label-service"),
];

/// A finalizer of somebody else's, who takes it off last.
const BACKUP: &str = "example.com/backup";

impl Company {
    /// Others have a hand in what is ours: a write of theirs fails, so that a resource is Failed,
    /// and a rule gets a property that nobody asks for by annotation.
    pub(crate) fn meddle(random: &mut Random, stage: &mut Stage) {
        let cluster = stage.scene.cluster_name();
        let ours = |kind: &str| -> Vec<String> {
            let all = stage.azure.resources_of(&format!("Microsoft.Network/{kind}"));
            let ids = all.iter().filter_map(|r| r["id"].as_str().map(str::to_owned));
            let name = |id: &str| id.rsplit('/').next().unwrap_or("").to_owned();
            ids.filter(|id| name(id).starts_with(cluster) && !is_second(&name(id))).collect()
        };
        let balancers = ours("loadBalancers");
        let mut all = balancers.clone();
        all.extend(ours("publicIPAddresses"));
        if let Some(id) = random.choose(&all) {
            fail(stage, id);
        }
        if let Some(id) = random.choose(&balancers) {
            neighbour::edit(stage, id, |balancer| {
                let rules = balancer["properties"]["loadBalancingRules"].as_array_mut();
                let own = |rule: &&mut Value| !is_theirs(rule["name"].as_str().unwrap_or(""));
                for rule in rules.into_iter().flatten().filter(own) {
                    rule["properties"][UNKNOWN] = json!(true);
                }
            });
        }
    }

    /// Another client's write of the security group fails.
    pub(crate) fn fail_group(random: &mut Random, stage: &mut Stage) {
        let group = stage.scene.security_group();
        let nodes = stage.scene.layout != Layout::Containers;
        if random.permille(300) && nodes && stage.azure.shown_by_id(&group).is_some() {
            fail(stage, &group);
        }
    }

    /// Another client's write of a NIC that is in a pool of ours fails: a NIC that is in none is
    /// left to whoever wrote it, this one is not.
    pub(crate) fn fail_member(random: &mut Random, stage: &mut Stage) {
        let all = stage.azure.resources_of("Microsoft.Network/networkInterfaces");
        let joined = all.iter().filter(|nic| !memberships(nic).is_empty());
        let ids = joined.filter_map(|nic| nic["id"].as_str());
        // Those of a scale set's machines are written with their machines.
        let ids: Vec<String> = ids.filter(|id| is_nic(id)).map(str::to_owned).collect();
        if let Some(id) = random.choose(&ids) {
            fail(stage, id);
        }
    }

    /// A cluster is taken over from an older release of the Go cloud provider: a new process finds
    /// a public IP whose tags have the keys of then. It is ours all the same.
    pub(crate) fn age(random: &mut Random, stage: &mut Stage) {
        let cluster = stage.scene.cluster_name();
        let all = stage.azure.resources_of("Microsoft.Network/publicIPAddresses");
        let ours = all.iter().filter(|ip| {
            let name = ip["name"].as_str().unwrap_or("");
            name.starts_with(cluster) && !is_second(name) && !ip["tags"][OLD_TAGS[0].0].is_null()
        });
        let ids: Vec<String> = ours.filter_map(|ip| ip["id"].as_str().map(str::to_owned)).collect();
        let Some(id) = random.choose(&ids).filter(|_| random.permille(500)) else { return };
        let aged = neighbour::edit(stage, id, |ip| {
            let Some(tags) = ip["tags"].as_object_mut() else { return };
            for (key, old) in OLD_TAGS {
                if let Some(value) = tags.shift_remove(key) {
                    tags.insert(old.to_owned(), value);
                }
            }
        });
        // One that knew them as they were would write them back.
        for number in (0..stage.processes.len()).filter(|_| aged) {
            stage.kill(number, "taken over");
        }
    }

    /// Somebody else has a finalizer on the Services, too.
    fn back_up(&self, stage: &mut Stage) {
        for owner in OWNERS.filter(|owner| owner % 2 == 0) {
            let name = wishes::name(owner);
            let object = ObjectRef::new("services", "default", &name);
            let patch = Patch::Merge(json!({"metadata": {"finalizers": [BACKUP]}}));
            let _ = stage.kubernetes.patch(object, Part::Main, &patch, stage.now_ms);
        }
    }

    /// Who has the finalizer takes it off where nobody else has one.
    pub(super) fn release_backups(&self, stage: &mut Stage) {
        for service in stage.kubernetes.list("services", None) {
            let meta = &service["metadata"];
            let last = meta["finalizers"] == json!([BACKUP]);
            if last && !meta["deletionTimestamp"].is_null() {
                let object =
                    ObjectRef::new("services", "default", meta["name"].as_str().unwrap_or(""));
                let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                let _ = stage.kubernetes.patch(object, Part::Main, &patch, stage.now_ms);
            }
        }
    }

    /// All of them come.
    pub(crate) fn show(&mut self, random: &mut Random, stage: &mut Stage) {
        for owner in OWNERS {
            let mut wish = Wish::draw(owner, random);
            let group = *random.pick(&TOGETHER);
            for key in group {
                wish.annotate(key, owner, random);
            }
            if group.contains(&key::ALL_PORTS) {
                wish.internal = true;
                wish.annotations.insert(key::ALL_PORTS, "true".to_owned());
            }
            if group.contains(&key::LINK) {
                wish.internal = true;
                wish.fields.insert("local", 0);
            }
            // Where they stand is Ballast's to choose for some.
            if self.scene.layout == Layout::PerSet && random.permille(500) {
                wish.annotations.insert(key::MODE, "__auto__".to_owned());
            }
            if owner == SHARER && random.permille(500) {
                wish = Wish::of_another_clusters_rule();
            }
            let place = ("default".to_owned(), wishes::name(owner));
            self.services.insert(place, wish.service(owner, &self.scene));
            self.wishes.insert(owner, wish);
        }
        if matches!(self.scene.layout, Layout::Containers | Layout::Several) {
            for number in PODS {
                self.add_pod(number, random);
            }
        }
        self.tend(stage);
        self.back_up(stage);
    }

    fn add_pod(&mut self, number: u32, random: &mut Random) {
        let nodes: Vec<u32> = self.nodes.keys().copied().collect();
        let Some(node) = random.choose(&nodes).copied() else { return };
        let name = format!("pod-{number}");
        let mut pod = objects::pod(&name, &labels(random), node, &format!("10.244.1.{number}"));
        merge(&mut pod["status"], &status(random));
        if random.permille(500) {
            // Of two families, and so is its node.
            let (second, host) = (format!("fd10::{number}"), format!("fd00::{:x}", 4 + node));
            pod["status"]["podIPs"] = json!([pod["status"]["podIPs"][0], {"ip": second}]);
            pod["status"]["hostIPs"] = json!([pod["status"]["hostIPs"][0], {"ip": host}]);
        }
        self.pods.insert(name, pod);
    }

    /// Each wants something else.
    pub(crate) fn change_all(&mut self, random: &mut Random, stage: &mut Stage) {
        for owner in OWNERS {
            let Some(mut wish) = self.wishes.get(&owner).cloned() else { continue };
            wish.change(owner, random);
            self.grant(owner, wish, stage);
        }
        self.node(random, stage);
        for number in PODS {
            let name = self.name_of(format!("pod-{number}"));
            self.change_pod(&name, random, stage);
        }
    }

    /// A pod gets other labels, fares otherwise, or goes.
    fn change_pod(&mut self, name: &str, random: &mut Random, stage: &mut Stage) {
        let Some(pod) = self.pods.get_mut(name) else { return };
        // What has ended stays so.
        let ended = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        let (part, patch) = match random.below(6) {
            0 => {
                self.pods.remove(name);
                self.remove_pod(stage, name);
                return;
            }
            1 | 2 => {
                pod["metadata"]["labels"] = labels(random);
                let patch = json!([{"op": "replace", "path": "/metadata/labels",
                    "value": pod["metadata"]["labels"]}]);
                (Part::Main, Patch::Json(patch))
            }
            3 | 4 if !ended => {
                let patch = json!({"status": status(random)});
                merge(pod, &patch);
                (Part::Status, Patch::Merge(patch))
            }
            _ => return,
        };
        let object = ObjectRef::new("pods", "default", name);
        let _ = stage.kubernetes.patch(object, part, &patch, stage.now_ms);
        stage.follow();
    }

    /// Another client adds an outbound rule from a pool of ours through a frontend of ours. Returns
    /// the load balancer, where Azure takes such a rule.
    pub(crate) fn lend(&self, random: &mut Random, stage: &mut Stage) -> Option<String> {
        let all = stage.azure.resources_of("Microsoft.Network/loadBalancers");
        let suits = |balancer: &&Arc<Value>| {
            let id = balancer["id"].as_str().unwrap_or("").to_lowercase();
            let name = id.rsplit('/').next().unwrap_or("");
            balancer["sku"]["name"] == "Standard" && !is_theirs(name) && !is_second(name)
        };
        let mut choices = Vec::new();
        for balancer in all.iter().filter(suits) {
            let id = balancer["id"].as_str().unwrap_or("").to_owned();
            let public = |frontend: &Value| !frontend["properties"]["publicIPAddress"].is_null();
            for (name, rule) in parts(balancer, "loadBalancingRules") {
                let (pool, front) = (
                    &rule["properties"]["backendAddressPool"]["id"],
                    &rule["properties"]["frontendIPConfiguration"]["id"],
                );
                let own = parts(balancer, "frontendIPConfigurations").into_values();
                let mut own = own.filter(|f| public(f) && f["id"] == *front);
                if own.next().is_some() && !is_theirs(&name) {
                    choices.push((id.clone(), pool.clone(), front.clone()));
                }
            }
        }
        let (id, pool, front) = random.choose(&choices)?.clone();
        let rule = json!({"name": LENT, "properties": {"frontendIPConfigurations": [{"id": front}],
            "backendAddressPool": {"id": pool}, "protocol": "All", "idleTimeoutInMinutes": 30}});
        let taken = neighbour::edit(stage, &id, |balancer| {
            let rules = &mut balancer["properties"]["outboundRules"];
            let mut all = rules.as_array().cloned().unwrap_or_default();
            all.push(rule);
            *rules = Value::Array(all);
        });
        taken.then_some(id)
    }

    /// The rule goes again.
    pub(crate) fn take_back(balancer: &str, stage: &mut Stage) {
        for _ in 0..30 {
            let done = neighbour::edit(stage, balancer, |balancer| {
                let rules = balancer["properties"]["outboundRules"].as_array_mut();
                if let Some(rules) = rules {
                    rules.retain(|rule| rule["name"] != LENT);
                }
            });
            if done || stage.azure.resource(balancer).is_none() {
                return;
            }
            stage.advance(stage.now_ms + 10_000);
        }
    }

    /// Some go.
    pub(crate) fn dismiss(&mut self, random: &mut Random, stage: &mut Stage) {
        for owner in OWNERS {
            if random.permille(500) {
                let place = ("default".to_owned(), wishes::name(owner));
                self.wishes.remove(&owner);
                self.services.remove(&place);
                self.delete(stage, &place);
            }
        }
        stage.follow();
    }
}

/// Another client writes a resource as it is, and that fails.
fn fail(stage: &mut Stage, id: &str) {
    let code = "InternalServerError".to_owned();
    stage.azure.add_fault(AzureFault::new(FaultKind::OperationFails { code }));
    neighbour::edit(stage, id, |_| {});
    stage.azure.clear_faults();
}
