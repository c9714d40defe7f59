//! The recorded cases, in one process: the same Service gives the same Azure resources.
//!
//! A case is a file of `cases/`: Services, changes, and what the reference controller left in
//! Azure for them. Not compared: ETags, provisioning states, the order in sets, names of pool
//! addresses, letter case of ids, the public IP's default idle timeout. Names made from UIDs are
//! replaced by the recorded ones.

use crate::support::replay::{Case, Run, cases};
use crate::support::*;
use kube_emulator::ObjectRef;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Besides what the recordings leave out: what a real Azure fills in and the stand-in did not.
const READ_ONLY: [&str; 6] =
    ["etag", "resourceGuid", "provisioningState", "alias", "tier", "defaultSecurityRules"];
const COLLECTIONS: [&str; 6] = [
    "frontendIPConfigurations",
    "backendAddressPools",
    "loadBalancingRules",
    "probes",
    "inboundNatRules",
    "outboundRules",
];

/// A resource without what Azure makes up by itself, lists in a fixed order.
fn tidy(resource: &Value) -> Value {
    let mut r = resource.clone();
    let kind = r["type"].as_str().unwrap_or("").to_lowercase();
    if kind.ends_with("/loadbalancers") {
        tidy_balancer(&mut r["properties"]);
    }
    if kind.ends_with("/publicipaddresses")
        && let Some(p) = r["properties"].as_object_mut()
    {
        for key in ["ipConfiguration", "natGateway", "idleTimeoutInMinutes"] {
            p.shift_remove(key);
        }
        if let Some(dns) = p.get_mut("dnsSettings").and_then(Value::as_object_mut) {
            dns.shift_remove("fqdn");
        }
    }
    if kind.ends_with("/natgateways") {
        remove(&mut r["properties"], &["idleTimeoutInMinutes"]);
    }
    if kind.ends_with("/subnets") {
        remove(&mut r["properties"], &["ipConfigurations"]);
    }
    if kind.ends_with("/virtualnetworks") {
        remove(&mut r["properties"], &["subnets"]);
    }
    if kind.ends_with("/networksecuritygroups")
        && let Some(rules) = r["properties"]["securityRules"].as_array_mut()
    {
        for rule in rules.iter_mut() {
            remove(rule, &["id", "type"]);
            for key in
                ["destinationAddressPrefixes", "sourceAddressPrefixes", "destinationPortRanges"]
            {
                sort_by(&mut rule["properties"][key], ToString::to_string);
            }
        }
        rules.sort_by_key(|x| {
            let p = &x["properties"];
            (p["direction"].to_string(), p["priority"].as_u64())
        });
    }
    strip(&mut r);
    r
}

fn remove(object: &mut Value, keys: &[&str]) {
    if let Some(fields) = object.as_object_mut() {
        keys.iter().for_each(|key| {
            fields.shift_remove(*key);
        });
    }
}

fn sort_by(list: &mut Value, key: impl Fn(&Value) -> String) {
    if let Some(list) = list.as_array_mut() {
        list.sort_by_key(key);
    }
}

fn tidy_balancer(p: &mut Value) {
    for collection in COLLECTIONS {
        for x in p[collection].as_array_mut().into_iter().flatten() {
            remove(x, &["id", "type"]);
            let back = ["loadBalancingRules", "backendIPConfigurations", "outboundRules"];
            remove(&mut x["properties"], &back);
            remove(&mut x["properties"], &["backendAddressPools"]);
            if x["properties"]["privateIPAddressVersion"] == "IPv4" {
                remove(&mut x["properties"], &["privateIPAddressVersion"]);
            }
            let addresses = &mut x["properties"]["loadBalancerBackendAddresses"];
            sort_by(addresses, |a| a["properties"]["ipAddress"].to_string());
            addresses.as_array_mut().into_iter().flatten().for_each(|a| remove(a, &["name", "id"]));
        }
        sort_by(&mut p[collection], |x| x["name"].to_string());
    }
}

/// Drops what is empty or read only; folds ids.
fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let empty = |v: &Value| {
                v.is_null()
                    || v.as_array().is_some_and(Vec::is_empty)
                    || v.as_object().is_some_and(Map::is_empty)
            };
            fields.retain(|k, v| !READ_ONLY.contains(&k.as_str()) && !empty(v));
            for (key, value) in fields.iter_mut() {
                if key == "id"
                    && let Value::String(id) = value
                {
                    *id = id.to_lowercase();
                } else if ["subnet", "publicIPAddress", "virtualNetwork"].contains(&key.as_str())
                    && value.get("id").is_some()
                {
                    *value = json!({"id": value["id"].as_str().unwrap_or("").to_lowercase()});
                } else {
                    strip(value);
                }
            }
            fields.sort_keys();
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

fn by_id(resources: &[Value]) -> BTreeMap<String, Value> {
    resources.iter().map(|r| (r["id"].as_str().unwrap_or("").to_lowercase(), tidy(r))).collect()
}

/// What the runner of the recordings calls the state of a Service.
fn state(run: &Run, key: &str) -> Value {
    let (namespace, name) = key.split_once('/').expect("namespace/name");
    let Ok(service) = run.lab.kubernetes.get(ObjectRef::new("services", namespace, name)) else {
        return json!({"gone": true});
    };
    let ingress = service["status"]["loadBalancer"]["ingress"].as_array().cloned();
    let ingress = ingress.unwrap_or_default();
    let refused = run.lab.kubernetes.list("events", None).iter().any(|e| {
        e["type"] == "Warning"
            && e["reason"] == "SyncLoadBalancerFailed"
            && e["involvedObject"]["name"] == name
    });
    if refused && ingress.is_empty() {
        return json!({"refused": true});
    }
    let mut finalizers = service["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    finalizers.sort_by_key(ToString::to_string);
    json!({"ingress": ingress, "finalizers": finalizers})
}

/// The Service Gateway's two tables in the form of the recordings.
fn gateway(run: &Run) -> Value {
    let mut out = Map::new();
    let id = network("serviceGateways/servicegateway");
    let Some(tables) = run.lab.azure.gateway(&id) else { return Value::Object(out) };
    for (name, service) in tables["services"].as_object().into_iter().flatten() {
        let p = &service["properties"];
        let folded = |v: &Value| v.as_str().unwrap_or("").to_lowercase();
        let pools = p["loadBalancerBackendPools"].as_array().cloned().unwrap_or_default();
        let mut pools: Vec<String> = pools.iter().map(|pool| folded(&pool["id"])).collect();
        pools.sort();
        let row = json!({"type": p["serviceType"], "pools": pools,
            "natGateway": folded(&p["publicNatGatewayId"])});
        out.insert(format!("service {name}"), row);
    }
    for (location, addresses) in tables["locations"].as_object().into_iter().flatten() {
        out.insert(format!("location {location}"), addresses.clone());
    }
    Value::Object(out)
}

fn outcome(run: &Run, before: &BTreeMap<String, Value>, services: &BTreeSet<String>) -> Value {
    let after = by_id(&run.lab.azure.resources());
    let mut changed = Map::new();
    for (id, resource) in &after {
        if before.get(id) != Some(resource) {
            changed.insert(id.clone(), resource.clone());
        }
    }
    for id in before.keys().filter(|id| !after.contains_key(*id)) {
        changed.insert(id.clone(), Value::Null);
    }
    let states: Map<String, Value> =
        services.iter().map(|key| (key.clone(), state(run, key))).collect();
    let gateway = gateway(run);
    let seen = json!({"resources": changed, "services": states, "gateway": gateway});
    let mut text = seen.to_string();
    for (live, recorded) in &run.uids {
        let base = |uid: &str| model::ServiceUid::new(uid).base_name();
        text = text.replace(&base(live), &base(recorded)).replace(live, recorded);
    }
    serde_json::from_str(&text).expect("still JSON")
}

fn differences(want: &Value, got: &Value, at: &str, out: &mut Vec<String>) {
    match (want, got) {
        (Value::Object(w), Value::Object(g)) => {
            let keys: BTreeSet<&String> = w.keys().chain(g.keys()).collect();
            for key in keys {
                let none = &Value::Null;
                let (w, g) = (w.get(key).unwrap_or(none), g.get(key).unwrap_or(none));
                differences(w, g, &format!("{at}.{key}"), out);
            }
        }
        (Value::Array(w), Value::Array(g)) if w.len() == g.len() => {
            for (index, (w, g)) in w.iter().zip(g).enumerate() {
                differences(w, g, &format!("{at}[{index}]"), out);
            }
        }
        _ if want != got => out.push(format!("{at}: recorded {want}, got {got}")),
        _ => {}
    }
}

fn run(case: &Case) -> Vec<String> {
    let mut run = Run::start(case);
    let before = by_id(&run.before);
    run.lab.azure.clear_calls();
    run.play(case);
    let services: BTreeSet<String> = run.live.keys().cloned().collect();
    let got = outcome(&run, &before, &services);
    let mut want = case.data["expect"].clone();
    as_azure_says(&case.name, &mut want);
    let mut tidied = Map::new();
    for (id, resource) in want["resources"].as_object().into_iter().flatten() {
        let resource = if resource.is_null() { Value::Null } else { tidy(resource) };
        tidied.insert(id.clone(), resource);
    }
    want["resources"] = Value::Object(tidied);
    let mut found = Vec::new();
    differences(&want["resources"], &got["resources"], "resources", &mut found);
    // Compute writes are partial: a real Azure keeps the fields that the recording's stand-in lost.
    found.retain(|f| !(f.contains("/microsoft.compute/") && f.contains(": recorded null")));
    differences(&want["services"], &got["services"], "services", &mut found);
    let tables = |of: &Value| {
        let mut tables = of["gateway"].clone();
        for (_, row) in tables.as_object_mut().into_iter().flatten() {
            for (_, names) in row.as_object_mut().into_iter().flatten() {
                sort_by(names, ToString::to_string);
            }
        }
        if tables.is_null() { json!({}) } else { tables }
    };
    differences(&tables(&want), &tables(&got), "gateway", &mut found);
    let writes = run.lab.calls().0 as u64;
    let most = want["writes"].as_u64().unwrap_or(0);
    if writes > most {
        found.push(format!("{writes} writes to Azure, at most {most} expected"));
    }
    found
}

/// What a real Azure says otherwise than the stand-in that the cases were recorded against, and the
/// emulator with it.
fn as_azure_says(case: &str, want: &mut Value) {
    let resource = |kind: &str| network(kind).to_lowercase();
    match case {
        // An address from a prefix is one of the prefix's, which knows who has it.
        "pip-prefix" => {
            let text = want.to_string().replace("20.0.0.1", "20.99.0.0");
            *want = serde_json::from_str(&text).expect("still JSON");
            let id = network("publicIPPrefixes/prefix");
            let ip =
                network("publicIPAddresses/kubernetes-a000000011111422283330123456789a-prefix");
            want["resources"][id.to_lowercase()] = json!({"id": id, "name": "prefix",
                "type": "Microsoft.Network/publicIPPrefixes", "location": "eastus",
                "sku": {"name": "Standard"}, "properties": {"ipPrefix": "20.99.0.0/28",
                    "prefixLength": 28, "publicIPAddressVersion": "IPv4",
                    "publicIPAddresses": [{"id": ip}]}});
        }
        // A Private Link Service has a private address of its own, and a subnet says of private
        // endpoints as well what it does about them.
        "pls" => {
            let link = resource("privateLinkServices/pls-a000000011111422283330123456789a");
            let address = &mut want["resources"][link]["properties"]["ipConfigurations"][0];
            address["properties"]["privateIPAddress"] = json!("10.224.0.7");
            // A machine that is written by itself is not upgraded to its scale set's model.
            for machine in
                want["resources"].as_object_mut().into_iter().flat_map(|r| r.values_mut())
            {
                if let Some(latest) = machine.pointer_mut("/properties/latestModelApplied") {
                    *latest = json!(false);
                }
            }
            let subnet = resource("virtualNetworks/vnet/subnets/nodes");
            want["resources"][subnet]["properties"]["privateEndpointNetworkPolicies"] =
                json!("Disabled");
        }
        _ => {}
    }
}

#[test]
fn the_same_service_gives_the_same_azure_resources() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in &cases() {
        count += 1;
        let found = run(case);
        if !found.is_empty() {
            wrong.push(format!("{}\n    {}", case.name, found.join("\n    ")));
        }
    }
    assert!(count >= 73, "only {count} cases were found");
    assert!(wrong.is_empty(), "{} of {count} cases differ:\n{}", wrong.len(), wrong.join("\n"));
}
