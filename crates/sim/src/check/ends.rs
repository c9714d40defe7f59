//! What must hold once faults and inputs have stopped: L1, L2, L4 and the differential.

use super::api::PROGRAMMED;
use super::azure::memberships;
use super::form::{drop_field, drop_tags_of_ours, is_in, parts, told};
use super::stripped::close;
use crate::actor::doubts::is_doubtful;
use crate::scene::machines::is_nic;
use crate::scene::objects::{OTHER_CLUSTERS, is_brought, is_theirs};
use crate::scene::{self, Layout, Outbound};
use crate::stage::Stage;
use crate::truth::{additional, wants};
use plan::ask::annotation::PROTECT;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What differs between two runs that come to the same: what Azure hands out, orders, marks.
const BY_CHANCE: [&str; 17] = [
    "etag",
    "provisioningstate",
    "resourceguid",
    "priority",
    "futureproperty",
    "backendipconfigurations",
    "ipconfiguration",
    "ipconfigurations",
    "loadbalancerfrontendipconfigurations",
    "defaultsecurityrules",
    "privateipallocationmethod",
    "fqdn",
    // Somebody connects to what stands at that moment.
    "privateendpointconnections",
    // A subnet keeps what was once done to it for a Private Link Service.
    "privatelinkservicenetworkpolicies",
    // Tags are never taken off again, so those of an earlier wish may or may not be there.
    "team",
    "owner",
    "\u{1b}[2j",
];

/// Everything as it is, in a form that is the same for two runs that come to the same.
pub type Form = BTreeMap<String, String>;

fn tidy(value: &Value) -> Option<Value> {
    Some(match value {
        Value::Null => return None,
        Value::Object(fields) => {
            // What has an id is called by it.
            let called = fields.contains_key("id");
            let mut kept: Vec<(String, Value)> = fields
                .iter()
                .filter(|(key, _)| *key != "name" || !called)
                .filter(|(key, _)| !BY_CHANCE.contains(&key.as_str()))
                .filter(|(key, value)| *key != "destinationaddressprefix" || !is_node(value))
                .filter(|(key, value)| *key != "enableproxyprotocol" || **value == true)
                .filter_map(|(key, value)| Some(single(key, tidy(value)?)))
                .collect();
            kept.sort_by(|a, b| a.0.cmp(&b.0));
            if kept.is_empty() {
                return None;
            }
            Value::Object(kept.into_iter().collect())
        }
        Value::Array(items) => {
            let mut kept: Vec<Value> = items.iter().filter_map(tidy).collect();
            if kept.is_empty() {
                return None;
            }
            // A node that drains stays in a pool it was in, and does not join one it was not in.
            kept.retain(|item| item["properties"]["adminstate"] != "down");
            // Nor does a rule that leads to nodes forget one of them.
            kept.retain(|item| !is_node(item));
            if kept.is_empty() {
                return None;
            }
            kept.sort_by_key(ToString::to_string);
            Value::Array(kept)
        }
        other => other.clone(),
    })
}

/// A list of one means the same as the one: a rule that had more for a while is written as a list.
fn single(key: &str, value: Value) -> (String, Value) {
    let one = match key {
        "destinationaddressprefixes" => "destinationaddressprefix",
        "sourceaddressprefixes" => "sourceaddressprefix",
        "destinationportranges" => "destinationportrange",
        "sourceportranges" => "sourceportrange",
        _ => return (key.to_owned(), value),
    };
    match value {
        Value::Array(mut items) if items.len() == 1 => (one.to_owned(), items.remove(0)),
        other => (key.to_owned(), other),
    }
}

/// Takes out rules that lead to nothing but nodes: to which nodes, if any, depends on the load
/// balancer that a Service was placed on.
fn drop_rules_to_nodes(group: &mut Value) {
    let rules = group.pointer_mut("/properties/securityrules").and_then(Value::as_array_mut);
    if let Some(rules) = rules {
        rules.retain_mut(|rule| {
            let Some(inside) = rule["properties"].as_object_mut() else { return false };
            let list = inside.shift_remove("destinationaddressprefixes");
            let one = inside.shift_remove("destinationaddressprefix");
            let all = list.as_ref().and_then(Value::as_array).into_iter().flatten().chain(&one);
            let led: Vec<Value> = all.filter(|to| !is_ipv6_node(to)).cloned().collect();
            let leads = !led.is_empty();
            inside.insert("destinationaddressprefixes".to_owned(), Value::Array(led));
            leads
        });
    }
}

/// What is left of IPv6 addresses in the nodes' form, once those of frontends have been renamed.
fn is_ipv6_node(value: &Value) -> bool {
    let number = value.as_str().and_then(|address| address.strip_prefix("fd00::"));
    number.is_some_and(|number| !number.contains([':', '/']))
}

/// A frontend on a BYO public IP is called after the first of the Services that share it, which
/// depends on when they came: here it is called after the public IP.
fn on_brought(balancer: &str, frontend: &str, value: &Value) -> Option<(String, String)> {
    let id = text(&value["properties"]["publicIPAddress"]["id"]).to_lowercase();
    let ip = id.rsplit('/').next().filter(|ip| is_brought(ip))?;
    let form = |name: &str| format!("loadbalancers/{balancer}/frontendipconfigurations/{name}\"");
    Some((form(&frontend.to_lowercase()), form(&format!("<on {ip}>"))))
}

/// The id of the load balancer that a pool is on.
fn balancer_of(pool: &str) -> &str {
    pool.split("/backendaddresspools/").next().unwrap_or("")
}

fn is_node(value: &Value) -> bool {
    value.as_str().is_some_and(|address| address.starts_with("10.224."))
}

/// Pools of ours, lower case, that no rule leads to: they are as they were when the last Service
/// went, or the last one of their family.
fn idle(resources: &[Arc<Value>]) -> BTreeSet<String> {
    let balancers = resources.iter().filter(|r| is_in(text(&r["id"]), "loadBalancers"));
    let idle = balancers.flat_map(|balancer| {
        let id = text(&balancer["id"]).to_lowercase();
        let rules = parts(balancer, "loadBalancingRules").into_values();
        let rules = rules.map(|rule| rule.to_string().to_lowercase());
        let led_to = rules.collect::<String>();
        let pools = parts(balancer, "backendAddressPools").into_keys();
        let ours = pools.filter(|name| !is_theirs(name));
        let ids = ours.map(move |name| format!("{id}/backendaddresspools/{}", name.to_lowercase()));
        ids.filter(move |pool| !led_to.contains(&format!("\"{pool}\"")))
    });
    idle.collect()
}

/// Takes out the pools of a load balancer that no rule leads to: whether one was ever made there
/// depends on when.
fn drop_pools(balancer: &mut Value, idle: &BTreeSet<String>) {
    let pools = balancer.pointer_mut("/properties/backendaddresspools");
    if let Some(pools) = pools.and_then(Value::as_array_mut) {
        pools.retain(|pool| !idle.contains(text(&pool["id"])));
    }
}

/// A machine by the pools it is in: the rest is not ours.
fn pools_of(machine: &Value, idle: &BTreeSet<String>) -> Value {
    let text = machine.to_string();
    let ids = text.split('"').filter(|part| part.contains("/backendaddresspools/"));
    let ids: BTreeSet<&str> = ids.filter(|id| !idle.contains(*id)).collect();
    serde_json::json!({ "pools": ids })
}

impl Stage {
    /// The end of a run, to be compared with another's.
    #[must_use]
    pub fn form(&self) -> Form {
        let forgotten = self.forgotten();
        let resources = self.azure.shown().map(|r| close(&r, &forgotten));
        let resources: Vec<_> = resources.filter_map(|r| self.without_stripped(&r)).collect();
        let mut words = self.names_by_chance(&resources);
        words.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
        let rename = |text: String| {
            let mut text = text.to_lowercase();
            for (word, name) in &words {
                text = text.replace(word, name);
            }
            text
        };
        let renamed = |value: &Value| -> Option<Value> {
            let text = rename(value.to_string());
            tidy(&serde_json::from_str(&text).unwrap_or(Value::String(text)))
        };
        let mut form = Form::new();
        let idle = idle(&resources);
        for resource in &resources {
            let id = resource["id"].as_str().unwrap_or("");
            // Where a Service is placed depends on what was there when it came.
            let placed = self.scene.has_choice()
                && ["loadBalancers", "virtualMachines"].iter().any(|kind| is_in(id, kind));
            let nic = is_in(id, "virtualMachines") && is_in(id, "networkInterfaces");
            if placed || nic {
                continue;
            }
            if let Some(mut tidied) = renamed(resource) {
                if is_in(id, "networkSecurityGroups") && self.scene.layout == Layout::Containers {
                    drop_tags_of_ours(&mut tidied);
                }
                if is_in(id, "publicIPAddresses") {
                    self.drop_unasked(resource, &mut tidied);
                }
                if is_in(id, "virtualMachines") || is_nic(id) {
                    tidied = pools_of(&tidied, &idle);
                }
                if is_in(id, "loadBalancers") {
                    drop_pools(&mut tidied, &idle);
                }
                if self.scene.has_choice() {
                    drop_rules_to_nodes(&mut tidied);
                }
                form.insert(rename(id.to_owned()), tidied.to_string());
            }
        }
        if let Some(tables) = self.azure.gateway(&scene::gateway()).as_ref().and_then(renamed) {
            form.insert("service gateway".to_owned(), tables.to_string());
        }
        for service in self.kubernetes.list("services", None) {
            let meta = &service["metadata"];
            let mut finalizers = meta["finalizers"].clone();
            if let Some(list) = finalizers.as_array_mut() {
                list.sort_by_key(ToString::to_string);
            }
            let key = format!("service {}/{}", text(&meta["namespace"]), text(&meta["name"]));
            let ingress = &service["status"]["loadBalancer"]["ingress"];
            // A Service that another controller has is not written, whether or not we had let it
            // go before it changed hands.
            if service["spec"]["loadBalancerClass"] == scene::OTHER_CLASS {
                finalizers = Value::Null;
            }
            if self.is_name_stripped(key.trim_start_matches("service ")) {
                continue;
            }
            form.insert(key, rename(format!("{finalizers} {ingress}")));
        }
        form
    }

    /// What a public IP keeps of an annotation that is gone depends on when it was made: a label
    /// stays, and IP tags are given when it is made only.
    fn drop_unasked(&self, resource: &Value, ip: &mut Value) {
        if !self.has_asked_for(resource, "azure-dns-label-name") {
            drop_field(ip, "/properties", "dnssettings");
            drop_field(ip, "/tags", "k8s-azure-dns-label-service");
        }
        if !self.has_asked_for(resource, "azure-pip-ip-tags") {
            drop_field(ip, "/properties", "iptags");
        }
    }

    /// Whether a Service that has a public IP has the annotation.
    fn has_asked_for(&self, ip: &Value, key: &str) -> bool {
        let users = text(&ip["tags"]["k8s-azure-service"]);
        let key = format!("service.beta.kubernetes.io/{key}");
        self.kubernetes.list("services", None).iter().any(|service| {
            let meta = &service["metadata"];
            let name = format!("{}/{}", text(&meta["namespace"]), text(&meta["name"]));
            let asks = meta["annotations"][&key].is_string();
            asks && users.split(',').any(|user| user == name)
        })
    }

    /// UIDs and addresses with the names that stand for them.
    fn names_by_chance(&self, resources: &[Arc<Value>]) -> Vec<(String, String)> {
        let mut words = Vec::new();
        for (uid, service) in &self.truth.services {
            let name = service.name.replace('/', ".");
            words.push((service.base.clone(), format!("<{name}>")));
            words.push((uid.to_lowercase(), format!("<{name}>")));
        }
        for service in self.kubernetes.list("services", None) {
            let (meta, spec) = (&service["metadata"], &service["spec"]);
            let name = format!("{}.{}", text(&meta["namespace"]), text(&meta["name"]));
            for port in spec["ports"].as_array().into_iter().flatten() {
                let word = format!(":{}", port["nodePort"]);
                words.push((word, format!(":\"<port {} of {name}>\"", port["port"])));
            }
            let word = format!(":{}", spec["healthCheckNodePort"]);
            words.push((word, format!(":\"<health port of {name}>\"")));
        }
        words.retain(|(word, _)| word != ":null");
        for resource in resources {
            let id = text(&resource["id"]);
            let last = id.rsplit('/').next().unwrap_or("").to_lowercase();
            if let Some(address) = resource["properties"]["ipAddress"].as_str() {
                words.push((format!("\"{address}\""), format!("\"<address of {last}>\"")));
            }
            for (name, frontend) in parts(resource, "frontendIPConfigurations") {
                words.extend(on_brought(&last, &name, frontend));
                if let Some(address) = frontend["properties"]["privateIPAddress"].as_str() {
                    let name = format!("\"<address of frontend {}>\"", name.to_lowercase());
                    words.push((format!("\"{address}\""), name));
                }
            }
        }
        // An address is called after a part, which is called after a Service.
        let services: Vec<(String, String)> =
            words.iter().filter(|(word, _)| !word.starts_with('"')).cloned().collect();
        for (_, name) in words.iter_mut().filter(|(word, _)| word.starts_with('"')) {
            for (word, service) in &services {
                *name = name.replace(word, service);
            }
        }
        words
    }

    /// What of ours is in Azure, beside what was there in the beginning.
    #[must_use]
    pub fn left_over(&self, before: &BTreeSet<String>) -> Vec<String> {
        let mut left = Vec::new();
        let (forgotten, held) = (self.forgotten(), self.held_by_stripped());
        for resource in self.azure.shown() {
            let Some(resource) = self.without_stripped(&close(&resource, &forgotten)) else {
                continue;
            };
            let id = text(&resource["id"]).to_owned();
            // The NICs of a scale set's machine come to light with its first write.
            if is_in(&id, "virtualMachines") && is_in(&id, "networkInterfaces") {
                continue;
            }
            if !before.contains(&id.to_lowercase()) {
                left.push(id);
                continue;
            }
            for collection in
                ["frontendIPConfigurations", "loadBalancingRules", "probes", "securityRules"]
            {
                let names = parts(&resource, collection).into_keys();
                let ours = names.filter(|name| !is_theirs(name) && name != OTHER_CLUSTERS);
                left.extend(ours.map(|name| format!("{id}/{collection}/{name}")));
            }
            if self.scene.outbound == Outbound::None
                && (is_in(&id, "virtualMachines") || is_nic(&id))
                && memberships(&resource).iter().any(|pool| !held.contains(balancer_of(pool)))
            {
                left.push(format!("{id} is in a pool"));
            }
        }
        if let Some(tables) = self.azure.gateway(&scene::gateway()) {
            for name in tables["services"].as_object().into_iter().flatten().map(|(name, _)| name) {
                if !is_theirs(name) {
                    left.push(format!("service {name} of the Service Gateway"));
                }
            }
            if tables["locations"].as_object().is_some_and(|all| !all.is_empty()) {
                left.push(format!("addresses of the Service Gateway: {}", tables["locations"]));
            }
        }
        left
    }

    /// Resources that Azure has not finished with, or failed to make: written once more they are
    /// as they should be. A NIC in no pool whose last write failed is left to whoever wrote it, as
    /// the Go cloud provider leaves it.
    #[must_use]
    pub(crate) fn unfinished(&self) -> Vec<String> {
        let is_asked_for = |r: &Arc<Value>| {
            let id = text(&r["id"]).to_lowercase();
            id.contains("/microsoft.network/") && self.without_stripped(r).is_some()
        };
        let all: Vec<_> = self.azure.shown().filter(is_asked_for).collect();
        let open = all.iter().filter(|r| match text(&r["properties"]["provisioningState"]) {
            "Succeeded" | "" => false,
            "Failed" if is_nic(text(&r["id"])) => !memberships(r).is_empty(),
            _ => true,
        });
        open.map(|r| format!("{} is {}", text(&r["name"]), r["properties"]["provisioningState"]))
            .collect()
    }

    /// Whether Azure works at a write, whoever sent it.
    #[must_use]
    pub fn is_azure_busy(&self) -> bool {
        self.azure.shown().any(|r| r["properties"]["provisioningState"] == "Updating")
    }

    /// Why it has not come right, in the controller's own words.
    #[must_use]
    pub fn unsettled(&self) -> String {
        let mut text = String::from("it does not come right:");
        if !self.rests() {
            text.push_str(" something is under way;");
            self.queued().iter().for_each(|line| text.push_str(&format!(" {line};")));
        }
        self.unfinished().iter().for_each(|line| text.push_str(&format!(" {line};")));
        for process in self.processes.iter().filter(|p| p.may_write(self.now_ms)) {
            let controller = &process.controller;
            for (id, why, _) in controller.waiting() {
                text.push_str(&format!(" {}: {why};", id.name()));
            }
            for service in controller.report().services.values() {
                for wait in &service.waits {
                    text.push_str(&format!(" {} waits for {wait};", service.name));
                }
            }
            for need in controller.readings() {
                text.push_str(&format!(" reading {need} again and again;"));
            }
            for (need, why, _) in controller.unread() {
                text.push_str(&format!(" {need}: {why};"));
            }
            for (uid, hold) in &controller.world().holds {
                text.push_str(&format!(" {uid} is set aside: {};", hold.reason));
            }
            for change in &controller.plan().changes {
                text.push_str(&format!(" to be written: {};", change.target.name()));
            }
            for write in &controller.plan().writes {
                text.push_str(&format!(" to be written: {:?};", write.object));
            }
            let needs = &controller.report().needs;
            needs.iter().for_each(|need| text.push_str(&format!(" reading {need};")));
        }
        text
    }

    /// L4 at the end: Services whose status does not say what stands.
    #[must_use]
    pub fn untrue(&self) -> Vec<String> {
        let standing = self.standing_addresses();
        // Where no port leads anywhere yet, only the Pods can change that.
        let (unanswered, refused) = (self.unanswered(), self.refused());
        let waits = |name: &String| unanswered.contains(name);
        let mut wrong = Vec::new();
        for service in self.kubernetes.list("services", None) {
            let meta = &service["metadata"];
            let name = format!("{}/{}", text(&meta["namespace"]), text(&meta["name"]));
            let told: Vec<&str> = told(&service).collect();
            if self.is_name_stripped(&name) {
                continue;
            }
            let wants = wants(&service);
            if wants && told.is_empty() && !refused.contains(&name) && !waits(&name) {
                wrong.push(format!("{name} has no address"));
            }
            let known = self.truth.services.get(text(&meta["uid"]));
            for ip in &told {
                // A Service that is refused keeps what its status had. Azure shows nothing of an
                // additional address: kube-proxy on the nodes takes what comes there for as long
                // as the status has it.
                let once = known.is_some_and(|known| known.additional.contains(*ip));
                let kept = (once || is_doubtful(&name)) && refused.contains(&name);
                let listed = additional(&service).contains(*ip) || kept || waits(&name);
                if !listed && !standing.iter().any(|address| address == ip) {
                    wrong.push(format!("{name} says {ip}, and no rule leads there"));
                }
            }
            let protected = meta["annotations"][PROTECT] == "true";
            if let Some(ip) = told.first().filter(|_| !wants && !protected) {
                wrong.push(format!("{name} still says {ip}"));
            }
            let own = service["status"]["conditions"].as_array().into_iter().flatten();
            let own = own.filter(|c| c["type"] == PROGRAMMED).count();
            if service["spec"]["type"] != "LoadBalancer" && own > 0 {
                wrong.push(format!("{name} still has our condition"));
            }
        }
        wrong
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// Two texts from where they differ, shortened.
pub(crate) fn apart(one: &str, two: &str) -> (String, String) {
    let same = one.chars().zip(two.chars()).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(60);
    let cut = |text: &str| text.chars().skip(from).take(240).collect();
    (cut(one), cut(two))
}

/// The lines in which two ends differ.
#[must_use]
pub fn difference(with: &Form, without: &Form) -> Vec<String> {
    let keys: BTreeSet<&String> = with.keys().chain(without.keys()).collect();
    let mut lines = Vec::new();
    for key in keys {
        let (one, two) = (with.get(key), without.get(key));
        if one != two {
            let show = |side: Option<&String>| side.map_or("nothing", String::as_str).to_owned();
            let (one, two) = apart(&show(one), &show(two));
            let name = key.rsplit('/').next().unwrap_or(key);
            lines.push(format!("{name}\n  with faults:    …{one}\n  without faults: …{two}"));
        }
    }
    lines
}
