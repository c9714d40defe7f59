//! The differential: an end with faults against the end of the same inputs without, in a form in
//! which two runs that come to the same are the same.

use super::form::{drop_field, drop_tags_of_ours, is_in, parts, text};
use super::stripped::close;
use crate::scene::machines::is_nic;
use crate::scene::objects::{is_brought, is_theirs};
use crate::scene::{self, Layout};
use crate::stage::Stage;
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
    // Clients connect to what stands at that moment.
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

/// Nodes of which it depends on when writes came whether pools have them and security rules lead to
/// them.
enum ByTime {
    /// Every node: load balancers divide the nodes, and which one a Service was placed on depends
    /// on what was there when it came. Without a node in good order a pool stays as it is, and what
    /// is open for a refused Service, which keeps what it had, leads to the nodes of that time.
    All,
    /// Those that are about to be deleted, by their addresses: each stays in the pools that it was
    /// in, and joins none.
    These(BTreeSet<String>),
}

impl ByTime {
    /// Whether a value is the address of such a node, or a pool's member that drains.
    fn has(&self, value: &Value) -> bool {
        let address = value.as_str().unwrap_or("");
        match self {
            Self::All => {
                address.starts_with("10.224.") || value["properties"]["adminstate"] == "down"
            }
            Self::These(all) => all.contains(address),
        }
    }
}

fn tidy(value: &Value, nodes: &ByTime) -> Option<Value> {
    Some(match value {
        Value::Null => return None,
        Value::Object(fields) => {
            // What has an id is called by it.
            let called = fields.contains_key("id");
            let mut kept: Vec<(String, Value)> = fields
                .iter()
                .filter(|(key, _)| *key != "name" || !called)
                .filter(|(key, _)| !BY_CHANCE.contains(&key.as_str()))
                .filter(|(key, value)| *key != "destinationaddressprefix" || !nodes.has(value))
                .filter(|(key, value)| *key != "enableproxyprotocol" || **value == true)
                .filter_map(|(key, value)| Some(single(key, tidy(value, nodes)?)))
                .collect();
            kept.sort_by(|a, b| a.0.cmp(&b.0));
            if kept.is_empty() {
                return None;
            }
            Value::Object(kept.into_iter().collect())
        }
        Value::Array(items) => {
            let items = items.iter().filter(|item| !nodes.has(item));
            let mut kept: Vec<Value> = items.filter_map(|item| tidy(item, nodes)).collect();
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

/// Takes nodes that are about to be deleted out of the pools of a load balancer: one stays in a
/// pool that it was in, and joins none (see [`crate::truth`]), so it depends on when it was in
/// which. Where no node may be in a pool, all members are left out: the last member stays until
/// another node comes, and which node that is depends on when. The
/// network of a pool without addresses says nothing: Azure keeps it when the last one goes.
fn drop_members(balancer: &mut Value, going: &BTreeSet<&str>, deserted: bool) {
    let pools = balancer.pointer_mut("/properties/backendaddresspools");
    for pool in pools.and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(inside) = pool["properties"].as_object_mut() else { continue };
        let members = inside.get_mut("loadbalancerbackendaddresses").and_then(Value::as_array_mut);
        let left = members.is_some_and(|all| {
            all.retain(|member| !deserted && !going.contains(text(&member["name"])));
            !all.is_empty()
        });
        if !left {
            inside.shift_remove("loadbalancerbackendaddresses");
            inside.shift_remove("virtualnetwork");
        }
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
        let nodes = self.nodes_by_time();
        let renamed = |value: &Value| -> Option<Value> {
            let text = rename(value.to_string());
            tidy(&serde_json::from_str(&text).unwrap_or(Value::String(text)), &nodes)
        };
        let mut form = Form::new();
        let (idle, going) = (idle(&resources), self.truth.going_nodes());
        for resource in &resources {
            let id = resource["id"].as_str().unwrap_or("");
            // Where a Service is placed depends on what was there when it came.
            let placed = self.scene.has_choice()
                && ["loadBalancers", "virtualMachines"].iter().any(|kind| is_in(id, kind));
            let nic = is_in(id, "virtualMachines") && is_in(id, "networkInterfaces");
            // A node that is about to be deleted stays in pools that it was in, and joins none.
            if placed || nic || self.truth.is_machine_going(id) {
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
                    drop_members(&mut tidied, &going, self.truth.members.is_empty());
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

    /// The nodes that are left out.
    fn nodes_by_time(&self) -> ByTime {
        let stays = || self.truth.members.is_empty() || !self.refused().is_empty();
        if self.scene.has_choice() || stays() {
            return ByTime::All;
        }
        let going = self.truth.going_nodes();
        let nodes = self.kubernetes.list("nodes", None);
        let nodes = nodes.iter().filter(|node| going.contains(text(&node["metadata"]["name"])));
        let addresses = nodes.flat_map(|node| node["status"]["addresses"].as_array());
        let addresses = addresses.flatten().map(|address| text(&address["address"]).to_lowercase());
        ByTime::These(addresses.collect())
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nodes_are_compared_but_those_of_which_it_depends_on_time() {
        let rule = json!({"name": "r", "destinationaddressprefixes": ["10.224.0.4", "10.224.0.5"]});
        let going = ByTime::These(BTreeSet::from(["10.224.0.4".to_owned()]));
        let one = json!({"destinationaddressprefix": "10.224.0.5", "name": "r"});
        assert_eq!(tidy(&rule, &going), Some(one));
        assert_eq!(tidy(&rule, &ByTime::All), Some(json!({"name": "r"})));
        let pool = json!({"members": [{"name": "n", "properties": {"adminstate": "down"}}]});
        assert_eq!(tidy(&pool, &ByTime::All), None);
        assert_eq!(tidy(&pool, &going), Some(pool));
    }
}
