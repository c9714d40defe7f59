//! Any combination of valid annotations comes right: the plan is clean, Azure takes it, nothing
//! is left to do; and so after any change from there.
//!
//! `PROPERTY_CASES` asks for more cases than the few that run each time.

use crate::wishes::*;
use model::report::{Severity, State};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;
use sim::Laboratory;
use std::collections::{BTreeMap, BTreeSet};

const HOUR_MS: u64 = 3_600_000;
/// Without faults everything is done in seconds.
const LIMIT_MS: u64 = 60_000;

/// Services in a case, at most.
fn most() -> usize {
    asked_for("PROPERTY_SERVICES", 20) as usize + 1
}

/// Lets everything happen; then all Services stand or say what is wrong with them, Azure has
/// refused nothing, and neither a second look nor a restart finds anything to write.
fn comes_right(lab: &mut Laboratory) {
    let settled = lab.settle(LIMIT_MS);
    refused_nothing(lab);
    assert!(settled, "it does not settle: {:#?}", lab.controller().report().services);
    assert!(lab.controller().plan().is_empty(), "{:#?}", lab.controller().plan());
    for report in lab.controller().report().services.values() {
        let refused = report.findings.iter().any(|f| f.severity == Severity::Refusal);
        let right = match report.state {
            State::Programmed => !report.addresses.is_empty() && !refused,
            State::Refused | State::RefusedServing => refused,
            State::Held => report.findings.iter().any(|f| f.severity == Severity::Hold),
            State::Waiting | State::Rejected | State::Removing => false,
        };
        assert!(right, "{report:#?}");
    }
    let before = estate(lab);
    lab.azure.clear_calls();
    lab.restart();
    assert!(lab.settle(HOUR_MS), "it does not settle after a restart");
    let writes = lab.azure.calls().iter().filter(|c| c.is_write());
    let writes: Vec<String> = writes.map(|c| format!("{} {}", c.method, c.path)).collect();
    let changed = differences(&before, &estate(lab));
    assert!(writes.is_empty(), "a restart writes: {writes:#?}; {changed:#?}");
}

fn refused_nothing(lab: &Laboratory) {
    // 412: the ETag had changed with something that refers to the resource; that is what it is for.
    let wrong = |c: &&azure_emulator::Call| {
        c.status >= 400 && c.status != 412 && (c.is_write() || c.status != 404)
    };
    let refused: BTreeSet<String> = lab
        .azure
        .calls()
        .iter()
        .filter(wrong)
        .map(|c| format!("{} {} {} {:?}", c.method, c.path, c.status, c.code))
        .collect();
    let report = lab.controller().report().services.values().map(|s| &s.waits);
    let waits: Vec<_> = report.collect();
    assert!(refused.is_empty(), "Azure refuses: {refused:#?}; {waits:#?}");
}

/// Everything in Azure, without what Azure counts by itself.
fn estate(lab: &Laboratory) -> BTreeMap<String, Value> {
    let id = |r: &Value| r["id"].as_str().unwrap_or("").to_lowercase();
    lab.azure.resources().into_iter().map(|r| (id(&r), plain(&r))).collect()
}

fn plain(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let own = ["etag", "resourceGuid", "provisioningState"];
            let kept = fields.iter().filter(|(key, _)| !own.contains(&key.as_str()));
            Value::Object(kept.map(|(key, value)| (key.clone(), plain(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(plain).collect()),
        other => other.clone(),
    }
}

/// Without what was asked for: nodes and a pool that stays on a load balancer of others, a DNS
/// label on an address that was brought, the subnet's word for Private Link Services, a tag of the
/// config.
fn without_wishes(mut all: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    all.retain(|id, _| !id.contains("/microsoft.compute/") && !id.ends_with("/vnet"));
    for resource in all.values_mut() {
        resource["tags"].as_object_mut().into_iter().for_each(|tags| {
            tags.shift_remove("owner");
            tags.shift_remove("cost");
        });
        if resource["tags"].as_object().is_none_or(serde_json::Map::is_empty)
            && let Some(fields) = resource.as_object_mut()
        {
            fields.shift_remove("tags");
        }
        let Some(properties) = resource["properties"].as_object_mut() else { continue };
        properties.shift_remove("dnsSettings");
        properties.shift_remove("privateLinkServiceNetworkPolicies");
        properties.shift_remove("ipConfiguration");
        properties.shift_remove("ipConfigurations");
        if let Some(Value::Array(pools)) = properties.get_mut("backendAddressPools") {
            pools.retain(|p| !p["name"].as_str().is_some_and(|n| n.starts_with("kubernetes")));
        }
    }
    all
}

/// Paths at which two estates differ, with what stands there.
fn differences(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) -> Vec<String> {
    let mut out = Vec::new();
    let none = Value::Null;
    let ids: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for id in ids {
        differ(before.get(id).unwrap_or(&none), after.get(id).unwrap_or(&none), id, &mut out);
    }
    out
}

fn differ(before: &Value, after: &Value, at: &str, out: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(b), Value::Object(a)) => {
            let keys: BTreeSet<&String> = b.keys().chain(a.keys()).collect();
            for key in keys {
                let none = &Value::Null;
                let (b, a) = (b.get(key).unwrap_or(none), a.get(key).unwrap_or(none));
                differ(b, a, &format!("{at}.{key}"), out);
            }
        }
        (Value::Array(b), Value::Array(a)) if b.len() == a.len() => {
            for (index, (b, a)) in b.iter().zip(a).enumerate() {
                differ(b, a, &format!("{at}[{index}]"), out);
            }
        }
        _ if before != after => out.push(format!("{at}: was {before}, is {after}")),
        _ => {}
    }
}

proptest! {
    #![proptest_config(cases(16))]

    #[test]
    fn any_wishes_and_any_changes_come_right_and_leave_nothing(
        shape in shapes(),
        wishes in vec(wish(), 1..most()),
        steps in vec(vec(step(), 1..6), 0..4),
    ) {
        let mut lab = world(shape);
        lab.settle(HOUR_MS);
        let before = without_wishes(estate(&lab));
        let mut alive = create_all(&mut lab, &wishes);
        comes_right(&mut lab);
        for some in &steps {
            some.iter().for_each(|step| step.take(&mut lab, &mut alive));
            comes_right(&mut lab);
        }
        for index in alive {
            let_go(&mut lab, index);
        }
        comes_right(&mut lab);
        let left = lab.kubernetes.list("services", None);
        let ours = left.iter().filter(|s| s["metadata"]["name"] != "kubernetes").count();
        prop_assert_eq!(ours, 0, "{:?}", left);
        let changed = differences(&before, &without_wishes(estate(&lab)));
        prop_assert!(changed.is_empty(), "{changed:#?}");
    }
}

#[test]
fn every_annotation_is_drawn() {
    for entry in plan::ask::annotation::TABLE {
        let is_flag = matches!(entry.kind, plan::ask::annotation::Kind::Flag(_));
        // What waits for its owner depends on what stood before: it is only drawn as off.
        let off = entry.key == plan::ask::annotation::CONFIRM && values(entry.key) == ["false"];
        let has_flag = off || values(entry.key) == ["true", "false"];
        assert_eq!(is_flag, has_flag, "{}: give it values in wishes/mod.rs", entry.key);
    }
}
