//! The order of events does not matter: the same Services, reached through different creations,
//! edits and deletions, leave the same in Azure.
//!
//! What does depend on the order, and is left out of the comparison or of what is drawn:
//! - addresses and UIDs, which Azure and Kubernetes give out in the order in which they are asked;
//! - priorities of security rules, of which each new rule takes the lowest that is free: a rule
//!   that stands is never moved, as Azure would refuse two at one priority meanwhile;
//! - on one address that several Services name, who came first has the frontend; a DNS label and a
//!   Private Link Service's name are also the first one's: nobody loses what already works;
//! - with several load balancers, which one a Service was placed on: it does not move because
//!   others came or went;
//! - what an annotation once set and an absent one leaves alone: tags, IP tags, DNS labels; the
//!   config's tags on a load balancer or a security group of others, after our Services left it;
//!   and an address that stays with its Service after it is no longer pinned, so that clients keep
//!   it;
//! - a Service that is refused, or that its owner holds back, keeps what it had before the edit;
//! - the cluster's own pools, which stay while their load balancer does, and a subnet's policy for
//!   Private Link Services.
//!
//! `PROPERTY_CASES` asks for more cases than the few that run each time.

use crate::support::{create, delete, patch, scale_set};
use crate::wishes::*;
use kube_emulator::ObjectRef;
use model::report::State;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};
use sim::Laboratory;
use std::collections::BTreeMap;

const LIMIT_MS: u64 = 60_000;
/// Annotations with a memory, and those by which Services compete.
const LEFT_OUT: [&str; 14] = [
    "azure-pip-name",
    "azure-pip-name-ipv6",
    "azure-pip-tags",
    "azure-pip-ip-tags",
    "azure-dns-label-name",
    "azure-load-balancer-ipv4",
    "azure-load-balancer-ipv6",
    "azure-load-balancer-mode",
    "azure-load-balancer-configurations",
    "azure-pls-name",
    "azure-pls-ip-configuration-ip-address",
    "azure-load-balancer-resource-group",
    "ballast.dev/pause",
    "ballast.dev/deletion-protection",
];

fn free() -> impl Strategy<Value = Wish> {
    wish().prop_map(|mut wish| {
        wish.annotations.retain(|(key, _)| !LEFT_OUT.contains(key));
        Wish { address: None, node_ports: true, ..wish }
    })
}

/// How one Service comes to be what it is to be.
#[derive(Clone, Debug)]
struct Way {
    wish: Wish,
    /// What it is at first.
    detour: Option<Wish>,
    /// Whether everything settles before it becomes what it is to be.
    settles: bool,
    place: u32,
}

prop_compose! {
    fn way()(
        wish in free(),
        detour in proptest::option::of(free()),
        settles in any::<bool>(),
        place in any::<u32>(),
    ) -> Way {
        let families = wish.families;
        let detour = detour.map(|detour| Wish { families, ..detour });
        Way { wish, detour, settles, place }
    }
}

/// Node ports are in the names of security rules, so both worlds have the same. Those that the
/// cluster gives out by itself follow the last one taken: there is room for them in between.
fn pinned_ports(mut ports: Value, index: usize) -> Value {
    let known = ["tcp-80", "tcp-443", "udp-53", "tcp-53", "sctp-5000", "tcp-8080", "udp-80"];
    for port in ports.as_array_mut().into_iter().flatten() {
        let at = known.iter().position(|name| port["name"] == **name).expect("a port of a wish");
        port["nodePort"] = json!(31_000 + (index * known.len() + at) * 20);
    }
    ports
}

fn make(lab: &mut Laboratory, wish: &Wish, index: usize) {
    let mut service = wish.service(index);
    service["spec"]["ports"] = pinned_ports(service["spec"]["ports"].clone(), index);
    create(lab, service);
}

fn become_it(lab: &mut Laboratory, wish: &Wish, index: usize) {
    wish.replace(lab, index);
    let ports = pinned_ports(wish.service(index)["spec"]["ports"].clone(), index);
    patch(lab, "services", "default", &name(index), json!({"spec": {"ports": ports}}));
}

fn settle(lab: &mut Laboratory) {
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report().services);
}

fn refused(lab: &Laboratory) -> Vec<String> {
    let services = lab.controller().report().services.values();
    let refused = services.filter(|s| s.state != State::Programmed);
    refused.map(|s| s.name.to_string()).collect()
}

/// Names that both worlds have instead of those that each gave out by itself.
struct Words {
    bases: BTreeMap<String, String>,
    checks: BTreeMap<u64, String>,
    addresses: BTreeMap<String, String>,
}

impl Words {
    fn of(lab: &Laboratory, count: usize) -> Self {
        let mut words =
            Self { bases: BTreeMap::new(), checks: BTreeMap::new(), addresses: BTreeMap::new() };
        for index in 0..count {
            let named = name(index);
            let object = ObjectRef::new("services", "default", &named);
            let Ok(service) = lab.kubernetes.get(object) else { continue };
            let uid = service["metadata"]["uid"].as_str().unwrap_or("");
            words.bases.insert(model::ServiceUid::new(uid).base_name(), format!("<{named}>"));
            if let Some(port) = service["spec"]["healthCheckNodePort"].as_u64() {
                words.checks.insert(port, format!("<check {named}>"));
            }
        }
        for resource in lab.azure.resources() {
            let name = resource["name"].as_str().unwrap_or("").to_owned();
            let properties = &resource["properties"];
            if let Some(address) = properties["ipAddress"].as_str()
                && name.starts_with("kubernetes-")
            {
                let word = format!("<of {}>", words.text(&name));
                words.addresses.insert(address.to_owned(), word);
            }
            for part in properties["frontendIPConfigurations"].as_array().into_iter().flatten() {
                let at = part["name"].as_str().unwrap_or("");
                if let Some(address) = part["properties"]["privateIPAddress"].as_str() {
                    let word = format!("<of {}>", words.text(at));
                    words.addresses.insert(address.to_owned(), word);
                }
            }
        }
        words
    }

    fn text(&self, text: &str) -> String {
        if let Some(word) = self.addresses.get(text) {
            return word.clone();
        }
        let mut out = text.to_owned();
        for (base, word) in &self.bases {
            out = out.replace(base, word).replace(&base.to_lowercase(), word);
        }
        for (port, word) in &self.checks {
            out = out.replace(&format!("-TCP-{port}"), &format!("-TCP-{word}"));
        }
        out
    }

    fn value(&self, value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let theirs = fields.get("name").and_then(Value::as_str).unwrap_or("");
                let security = theirs.starts_with("k8s-azure-lb_");
                let drop = |key: &str| {
                    let given = ["etag", "resourceGuid", "provisioningState", "alias"];
                    given.contains(&key) || key == "privateIPAllocationMethod"
                };
                let mut out = Map::new();
                for (key, value) in fields.iter().filter(|(key, _)| !drop(key)) {
                    out.insert(key.clone(), self.value(value));
                }
                if security && let Some(inside) = out["properties"].as_object_mut() {
                    inside.shift_remove("priority");
                }
                out.sort_keys();
                Value::Object(out)
            }
            Value::Array(items) => {
                let mut items: Vec<Value> = items.iter().map(|v| self.value(v)).collect();
                items.sort_by_key(ToString::to_string);
                Value::Array(items)
            }
            Value::String(text) => Value::String(self.text(text)),
            Value::Number(number) => match number.as_u64().and_then(|n| self.checks.get(&n)) {
                Some(word) => Value::String(word.clone()),
                None => value.clone(),
            },
            other => other.clone(),
        }
    }
}

/// What is in Azure, in words that both worlds share.
fn estate(lab: &Laboratory, count: usize) -> BTreeMap<String, Value> {
    let words = Words::of(lab, count);
    let mut out = BTreeMap::new();
    for mut resource in lab.azure.resources() {
        let kind = resource["type"].as_str().unwrap_or("").to_lowercase();
        if kind.starts_with("microsoft.compute/") || kind.contains("virtualnetworks") {
            continue;
        }
        if let Some(pools) = resource["properties"]["backendAddressPools"].as_array_mut() {
            let led = |p: &Value| {
                let rules = &p["properties"]["loadBalancingRules"];
                rules.as_array().is_some_and(|all| !all.is_empty())
            };
            pools.retain(led);
        }
        // The address of a Private Link Service is the next that is free, and may be one that a
        // machine of a scale set has: those have no NICs of their own here.
        for part in resource["properties"]["ipConfigurations"].as_array_mut().into_iter().flatten()
        {
            part["properties"]["privateIPAddress"] = json!("<given>");
        }
        if !has_rules_of_ours(&kind, &resource["properties"]) {
            let kept = resource["tags"]["whose"].clone();
            resource["tags"] = json!({ "whose": kept });
        }
        let id = words.text(&resource["id"].as_str().unwrap_or("").to_lowercase());
        out.insert(id, words.value(&resource));
    }
    out
}

/// Whether anything of ours is on a resource that may be somebody else's.
fn has_rules_of_ours(kind: &str, properties: &Value) -> bool {
    if kind.ends_with("/loadbalancers") {
        return properties["loadBalancingRules"].as_array().is_some_and(|all| !all.is_empty());
    }
    let rules = properties["securityRules"].as_array();
    // One stands there from the start that only has a name like ours.
    let ours = |rule: &Value| {
        let name = rule["name"].as_str().unwrap_or("");
        name.starts_with("k8s-azure-lb_") && name != "k8s-azure-lb_theirs"
    };
    !kind.ends_with("/networksecuritygroups") || rules.is_some_and(|all| all.iter().any(ours))
}

fn shape() -> impl Strategy<Value = Shape> {
    select(vec![Shape::Addresses, Shape::Nics, Shape::Shared])
}

/// Machines have their nodes' addresses, so that Azure gives them to nobody else.
fn fresh(shape: Shape) -> Laboratory {
    let mut lab = world(shape);
    lab.azure.seed(scale_set("vmss", 3));
    settle(&mut lab);
    lab
}

proptest! {
    #![proptest_config(cases(8))]

    #[test]
    fn the_order_of_events_does_not_matter(
        shape in shape(),
        ways in vec(way(), 1..7),
        passing in vec((free(), any::<u32>()), 0..3),
    ) {
        let count = ways.len();
        let mut straight = fresh(shape);
        (0..count).for_each(|index| make(&mut straight, &ways[index].wish, index));
        settle(&mut straight);
        let out = refused(&straight);
        let wanted: Vec<usize> =
            (0..count).filter(|i| !out.contains(&format!("default/{}", name(*i)))).collect();
        for index in (0..count).filter(|index| !wanted.contains(index)) {
            delete(&mut straight, "default", &name(index));
        }
        settle(&mut straight);

        let mut crooked = fresh(shape);
        let mut order = wanted.clone();
        order.sort_by_key(|index| ways[*index].place);
        // Some are there for a while only.
        for (at, (wish, _)) in passing.iter().enumerate() {
            make(&mut crooked, wish, count + at);
        }
        for index in &order {
            make(&mut crooked, ways[*index].detour.as_ref().unwrap_or(&ways[*index].wish), *index);
            if ways[*index].settles {
                settle(&mut crooked);
            }
        }
        order.sort_by_key(|index| ways[*index].place.rotate_left(16));
        for index in &order {
            if ways[*index].detour.is_some() {
                become_it(&mut crooked, &ways[*index].wish, *index);
            }
            if ways[*index].place % 3 == 0 {
                settle(&mut crooked);
            }
        }
        for (at, (_, place)) in passing.iter().enumerate() {
            delete(&mut crooked, "default", &name(count + at));
            if place % 2 == 0 {
                settle(&mut crooked);
            }
        }
        settle(&mut crooked);
        let (a, b) = (estate(&straight, count), estate(&crooked, count));
        let keys: Vec<&String> = a.keys().chain(b.keys()).collect();
        for key in keys {
            prop_assert_eq!(a.get(key), b.get(key), "{}", key);
        }
    }
}
