//! Fields that nobody has told us about survive Services that come, change and go around them, in
//! every resource and in every part of one, ours and others'. A part of ours that goes takes its
//! own with it.

use crate::support::delete;
use crate::wishes::*;
use azure_emulator::Azure;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use sim::{Laboratory, Witness};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

const LIMIT_MS: u64 = 60_000;
const HOUR_MS: u64 = 3_600_000;
const FIELD: &str = "fieldOfTomorrow";

/// Lists of resources that have parts with names of their own.
const PARTS: [&str; 10] = [
    "frontendIPConfigurations",
    "backendAddressPools",
    "loadBalancingRules",
    "probes",
    "outboundRules",
    "securityRules",
    "ipConfigurations",
    "networkInterfaceConfigurations",
    "privateEndpointConnections",
    "loadBalancerBackendAddresses",
];

/// Puts a field into a resource and into each of its parts.
fn mark(value: &mut Value) {
    if let Some(properties) = value.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert(FIELD.to_owned(), json!({"deep": [1, {"er": null}]}));
    }
    mark_parts(value);
}

fn mark_parts(value: &mut Value) {
    let Value::Object(fields) = value else { return };
    for (key, inside) in fields.iter_mut() {
        if PARTS.contains(&key.as_str()) {
            inside.as_array_mut().into_iter().flatten().filter(|p| named(p)).for_each(mark);
        } else if inside.is_object() {
            mark_parts(inside);
        }
    }
}

/// References are ids and nothing more.
fn named(part: &Value) -> bool {
    part["name"].is_string() && part["properties"].is_object()
}

/// Ids of resources and parts: all there are, and those that have the field.
fn marked(azure: &Azure) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut all, mut with) = (BTreeSet::new(), BTreeSet::new());
    for resource in azure.resources() {
        let id = resource["id"].as_str().unwrap_or("").to_lowercase();
        look(&resource, id, &mut all, &mut with);
    }
    (all, with)
}

fn look(value: &Value, at: String, all: &mut BTreeSet<String>, with: &mut BTreeSet<String>) {
    if value["properties"].get(FIELD).is_some() {
        with.insert(at.clone());
    }
    look_inside(value.as_object(), &at, all, with);
    all.insert(at);
}

fn look_inside(
    fields: Option<&Map<String, Value>>,
    at: &str,
    all: &mut BTreeSet<String>,
    with: &mut BTreeSet<String>,
) {
    for (key, inside) in fields.into_iter().flatten() {
        if PARTS.contains(&key.as_str()) {
            for part in inside.as_array().into_iter().flatten().filter(|p| named(p)) {
                let name = part["name"].as_str().unwrap_or("").to_lowercase();
                look(part, format!("{at}/{key}/{name}"), all, with);
            }
        } else if inside.is_object() {
            look_inside(inside.as_object(), at, all, with);
        }
    }
}

/// Looks after each write which of these ids are still there: what goes and comes back under the
/// same id, even at once, has been made anew.
fn watch(lab: &mut Laboratory) -> Rc<RefCell<BTreeSet<String>>> {
    let stood = Rc::new(RefCell::new(BTreeSet::new()));
    let seen = Rc::clone(&stood);
    lab.witness = Some(Witness::new(move |_, azure, _| {
        let (all, _) = marked(azure);
        seen.borrow_mut().retain(|id| all.contains(id));
    }));
    stood
}

proptest! {
    #![proptest_config(cases(8))]

    #[test]
    fn unknown_fields_survive_services_around_them(
        shape in shapes(),
        wishes in vec(wish(), 1..6),
        steps in vec(vec(step(), 1..4), 1..5),
    ) {
        let mut lab = world(shape);
        lab.settle(HOUR_MS);
        let mut alive = create_all(&mut lab, &wishes);
        prop_assert!(lab.settle(LIMIT_MS));
        let mut estate = lab.azure.resources();
        estate.iter_mut().for_each(mark);
        lab.azure.seed(estate);
        lab.restart();
        prop_assert!(lab.settle(HOUR_MS));
        let (mut before, mut with) = marked(&lab.azure);
        prop_assert!(with.len() > 10, "{with:#?}");
        let stood = watch(&mut lab);
        let mut rounds = steps.into_iter();
        loop {
            stood.replace(before);
            match rounds.next() {
                Some(some) => some.iter().for_each(|step| step.take(&mut lab, &mut alive)),
                None if alive.is_empty() => break,
                None => {
                    for index in std::mem::take(&mut alive) {
                        delete(&mut lab, "default", &name(index));
                    }
                }
            }
            prop_assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report().services);
            let (all, now) = marked(&lab.azure);
            let stood = stood.borrow();
            let lost: Vec<&String> =
                with.iter().filter(|id| stood.contains(*id) && !now.contains(*id)).collect();
            prop_assert!(lost.is_empty(), "{lost:#?}");
            (before, with) = (all, now);
        }
    }
}
