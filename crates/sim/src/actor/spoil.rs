//! An operator who changes one property of what is ours to another value that Azure takes as well:
//! the next look for drift finds it, and it is put back. A comparison that leaves a property out is
//! seen by nothing else, unless an owner asks for two values of it one after the other.

use super::{Company, neighbour};
use crate::random::Random;
use crate::scene::objects::{OTHER_CLUSTERS, is_theirs};
use crate::stage::Stage;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const BALANCERS: &str = "Microsoft.Network/loadBalancers";
const LINKS: &str = "Microsoft.Network/privateLinkServices";
const MACHINES: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";

/// How many properties of each load balancer are changed.
const EACH: u64 = 3;

/// Properties of load-balancing rules, with values for them.
fn of_rule(key: &str) -> Vec<Value> {
    match key {
        "idleTimeoutInMinutes" => vec![json!(9), json!(11)],
        "loadDistribution" => vec![json!("Default"), json!("SourceIP"), json!("SourceIPProtocol")],
        "enableTcpReset" | "disableOutboundSnat" | "enableFloatingIP" => {
            vec![json!(true), json!(false)]
        }
        "frontendPort" | "backendPort" => vec![json!(7_001), json!(7_002)],
        "protocol" => vec![json!("Tcp"), json!("Udp")],
        "probe" => vec![Value::Null],
        _ => Vec::new(),
    }
}

/// Properties of probes, with values for them.
fn of_probe(key: &str) -> Vec<Value> {
    match key {
        "protocol" => vec![json!("Http"), json!("Https")],
        "port" => vec![json!(7_001), json!(7_002)],
        "requestPath" => vec![json!("/spoilt")],
        "intervalInSeconds" => vec![json!(7), json!(8)],
        "numberOfProbes" | "probeThreshold" => vec![json!(4), json!(6)],
        _ => Vec::new(),
    }
}

/// Properties of security rules, with values for them. A priority says nothing of its own.
fn of_security_rule(key: &str) -> Vec<Value> {
    match key {
        "access" => vec![json!("Allow"), json!("Deny")],
        "protocol" => vec![json!("Tcp"), json!("Udp")],
        "sourceAddressPrefixes" => vec![json!(["203.0.113.99/32"])],
        "sourceAddressPrefix" => vec![json!("203.0.113.99/32")],
        "destinationPortRanges" => vec![json!(["7001"])],
        "sourcePortRange" => vec![json!("7001")],
        _ => Vec::new(),
    }
}

/// Properties of Private Link Services, with values for them.
fn of_link(key: &str) -> Vec<Value> {
    match key {
        "visibility" | "autoApproval" => vec![json!({"subscriptions": ["spoilt"]})],
        "fqdns" => vec![json!(["spoilt.example"])],
        "enableProxyProtocol" => vec![json!(true), json!(false)],
        _ => Vec::new(),
    }
}

/// Gives one property of an object another value.
fn change(inside: &mut Value, values: fn(&str) -> Vec<Value>, random: &mut Random) {
    let Some(fields) = inside.as_object_mut() else { return };
    let mut choices: Vec<(String, Value)> = Vec::new();
    for (key, has) in fields.iter() {
        let others = values(key).into_iter().filter(|value| value != has);
        choices.extend(others.map(|value| (key.clone(), value)));
    }
    let keys: BTreeSet<String> = choices.iter().map(|(key, _)| key.clone()).collect();
    let keys: Vec<String> = keys.into_iter().collect();
    let Some(key) = random.choose(&keys) else { return };
    choices.retain(|(of, _)| of == key);
    if let Some((key, value)) = random.choose(&choices).cloned() {
        fields.insert(key, value);
    }
}

/// One part of ours of a collection, to be changed.
fn one<'v>(
    resource: &'v mut Value,
    collection: &str,
    random: &mut Random,
) -> Option<&'v mut Value> {
    let items = resource["properties"][collection].as_array_mut()?;
    let ours = |part: &Value| {
        let name = part["name"].as_str().unwrap_or("");
        !is_theirs(name) && name != OTHER_CLUSTERS
    };
    let all: Vec<usize> = (0..items.len()).filter(|at| ours(&items[*at])).collect();
    let at = *random.choose(&all)?;
    items.get_mut(at).map(|part| &mut part["properties"])
}

/// Ids of our resources of a kind.
fn ours(stage: &Stage, kind: &str) -> Vec<String> {
    let all = stage.azure.resources_of(kind);
    let ids = all.iter().filter_map(|r| r["id"].as_str().map(str::to_owned));
    ids.filter(|id| !is_theirs(id.rsplit('/').next().unwrap_or(""))).collect()
}

/// A member of a pool of addresses goes, or gets no new connections.
fn change_pool(balancer: &mut Value, random: &mut Random) {
    let Some(pool) = one(balancer, "backendAddressPools", random) else { return };
    let Some(members) = pool["loadBalancerBackendAddresses"].as_array_mut() else { return };
    if members.len() < 2 {
        return;
    }
    let at = usize::try_from(random.below(members.len() as u64)).unwrap_or(0);
    if random.permille(500) {
        members.remove(at);
    } else {
        members[at]["properties"]["adminState"] = json!("Down");
    }
}

/// The IP configurations of a machine, or of the model of a scale set, leave all pools.
fn leave_pools(profile: &mut Value) {
    let nics = profile["networkInterfaceConfigurations"].as_array_mut().into_iter().flatten();
    for nic in nics {
        let all = nic["properties"]["ipConfigurations"].as_array_mut().into_iter().flatten();
        for configuration in all {
            if let Some(inside) = configuration["properties"].as_object_mut() {
                inside.shift_remove("loadBalancerBackendAddressPools");
            }
        }
    }
}

impl Company {
    /// Single properties of what is ours are changed by hand.
    pub(crate) fn spoil(random: &mut Random, stage: &mut Stage) {
        for id in ours(stage, BALANCERS) {
            for _ in 0..EACH {
                neighbour::edit(stage, &id, |balancer| match random.below(5) {
                    0 => change_pool(balancer, random),
                    1 | 2 => {
                        if let Some(probe) = one(balancer, "probes", random) {
                            change(probe, of_probe, random);
                        }
                    }
                    _ => {
                        if let Some(rule) = one(balancer, "loadBalancingRules", random) {
                            change(rule, of_rule, random);
                        }
                    }
                });
            }
        }
        let group = stage.scene.security_group();
        neighbour::edit(stage, &group, |group| {
            if let Some(rule) = one(group, "securityRules", random) {
                change(rule, of_security_rule, random);
            }
        });
        if let Some(id) = random.choose(&ours(stage, LINKS)) {
            neighbour::edit(stage, id, |link| change(&mut link["properties"], of_link, random));
        }
        if let Some(id) = random.choose(&ours(stage, MACHINES)) {
            neighbour::edit(stage, id, |machine| {
                leave_pools(&mut machine["properties"]["networkProfileConfiguration"]);
            });
        }
    }
}
