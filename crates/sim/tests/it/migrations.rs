//! Switches of pool kinds, of the number of load balancers and of the SKU, on an estate of 30
//! Services. Each is recorded in `scenarios/migrations`; `UPDATE_SCENARIOS=1` writes what happens
//! now.

use crate::support::container::refusing;
use crate::support::*;
use azure_emulator::Azure;
use serde_json::{Value, json};
use sim::{Config, Laboratory};
use std::collections::BTreeMap;
use std::fmt::Write;

const LIMIT_MS: u64 = 1_000_000;
const NODES: u32 = 4;

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value["properties"][key].as_array().map_or(&[], Vec::as_slice)
}

/// Pools that a rule leads to and that nobody is in.
fn empty_pools(azure: &Azure) -> Vec<String> {
    let mut found = Vec::new();
    for balancer in azure.resources() {
        if balancer["type"] != "Microsoft.Network/loadBalancers" {
            continue;
        }
        let mut empty: BTreeMap<String, usize> = BTreeMap::new();
        for rule in list(&balancer, "loadBalancingRules") {
            let id = &rule["properties"]["backendAddressPool"]["id"];
            let pools = list(&balancer, "backendAddressPools");
            let pool = pools.iter().find(|p| p["id"] == *id).expect("rules lead to pools");
            let members = list(pool, "loadBalancerBackendAddresses").len()
                + list(pool, "backendIPConfigurations").len();
            if members == 0 {
                *empty.entry(pool["name"].to_string()).or_default() += 1;
            }
        }
        let name = &balancer["name"];
        found.extend(empty.iter().map(|(pool, n)| format!("{name}: {n} rules to empty {pool}")));
    }
    found
}

fn labelled(index: u32) -> Value {
    let mut service = service(index);
    if index % 3 == 2 {
        service["metadata"]["annotations"] = json!({INTERNAL: "true"});
    }
    let team = if index.is_multiple_of(2) { "even" } else { "odd" };
    service["metadata"]["labels"] = json!({"team": team});
    if index % 5 == 4 {
        service["spec"]["externalTrafficPolicy"] = json!("Local");
    }
    service
}

/// Two scale sets of two machines each, and 30 Services: 20 public, 10 internal, 6 of them Local.
fn estate_of_thirty(policy: Config) -> Laboratory {
    estate_of(30, policy)
}

fn estate_of(services: u32, policy: Config) -> Laboratory {
    let mut lab = laboratory(&json!({}));
    lab.restart_with(policy);
    for set in ["vmss", "pool"] {
        lab.azure.seed(scale_set(set, 2));
    }
    (2..NODES).for_each(|n| {
        let mut other = node(n);
        let machine = n - 2;
        let root = format!("{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/pool");
        other["metadata"]["name"] = json!(format!("pool{machine:06}"));
        other["spec"]["providerID"] = json!(format!("azure://{root}/virtualMachines/{machine}"));
        if n == 2 {
            remove(&mut lab, "nodes", "", "vmss000002");
        }
        create(&mut lab, other);
    });
    (0..services).for_each(|n| create(&mut lab, labelled(n)));
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    assert_eq!(addressed(&lab), (services as usize, 0));
    lab
}

fn addresses(lab: &Laboratory) -> BTreeMap<String, Value> {
    let services = lab.kubernetes.list("services", None);
    let pair = |s: &std::sync::Arc<Value>| {
        let name = s["metadata"]["name"].as_str().expect("it has a name").to_owned();
        (name, s["status"]["loadBalancer"]["ingress"].clone())
    };
    services.iter().map(pair).collect()
}

/// A write as the record shows it; public IPs and instances are counted.
fn short(call: &azure_emulator::Call) -> String {
    let path = call.path.rsplit_once("/providers/").map_or(&*call.path, |(_, path)| path);
    let parts: Vec<&str> = path.split('/').collect();
    let name = match parts[1] {
        "publicIPAddresses" => "of a Service",
        _ => parts.last().copied().unwrap_or(""),
    };
    let kind = if parts.len() > 3 { parts[parts.len() - 2] } else { parts[1] };
    let failed = if call.status >= 400 { format!(" -> {}", call.status) } else { String::new() };
    match kind {
        "virtualMachines" => format!("{} an instance of {}{failed}", call.method, parts[2]),
        _ => format!("{} {kind} {name}{failed}", call.method),
    }
}

/// Changes the config, restarts, lets everything happen and records it, under a title and with
/// what was asked.
fn switch(lab: &mut Laboratory, (title, asked): (&str, &str), to: Config, record: &mut String) {
    let before = addresses(lab);
    let forecast = explain::forecast::forecast(&lab.read_under(&to), &to);
    lab.azure.clear_calls();
    lab.seen.clear();
    lab.inspect = Some(empty_pools);
    lab.restart_with(to);
    assert!(
        lab.settle(LIMIT_MS),
        "{}\n{:#?}\n{:#?}",
        lab.controller().plan().is_empty(),
        lab.controller().report(),
        lab.notices.iter().rev().take(5).collect::<Vec<_>>()
    );
    assert_eq!(addresses(lab), before, "every address is kept");
    let failed = lab.azure.calls().iter().filter(|c| c.status >= 400);
    let failed: Vec<String> = failed.map(|c| format!("{} {:?}", short(c), c.code)).collect();
    assert_eq!(failed, Vec::<String>::new(), "Azure refuses nothing");
    let writes: Vec<String> =
        lab.azure.calls().iter().filter(|c| c.is_write()).map(short).collect();
    writeln!(record, "# {title}\nasked: {asked}").expect("text");
    writeln!(record, "writes: {}", writes.len()).expect("text");
    let mut at = 0;
    while at < writes.len() {
        let same = writes[at..].iter().take_while(|w| **w == writes[at]).count();
        let times = if same > 1 { format!("{same} x ") } else { String::new() };
        writeln!(record, "  {times}{}", writes[at]).expect("text");
        at += same;
    }
    let cut: usize = forecast.steps.iter().map(|s| s.cut.len()).sum();
    let restored: usize = forecast.steps.iter().map(|s| s.restored.len()).sum();
    writeln!(
        record,
        "foretold: {} calls, {cut} addresses cut off and {restored} restored",
        forecast.calls
    )
    .expect("text");
    let mut gaps: Vec<&String> = lab.seen.iter().map(|(_, what)| what).collect();
    gaps.sort();
    gaps.dedup();
    writeln!(record, "empty pools seen: {}", gaps.len()).expect("text");
    gaps.iter().for_each(|gap| writeln!(record, "  {gap}").expect("text"));
    writeln!(record).expect("text");
    assert_eq!(cut, restored, "{record}");
    assert_eq!(empty_pools(&lab.azure), Vec::<String>::new(), "{record}");
    lab.azure.clear_calls();
    lab.restart();
    assert!(lab.settle(LIMIT_MS));
    assert_eq!(lab.calls().0, 0, "nothing is left to do");
}

/// The same where every pool that a rule leads to has members all the time.
fn gapless(lab: &mut Laboratory, said: (&str, &str), to: Config, record: &mut String) {
    switch(lab, said, to, record);
    assert_eq!(lab.seen, [], "no pool is empty");
}

/// Compares a record with the file, or writes it.
fn check(name: &str, record: &str) {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/migrations");
    let path = folder.join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_SCENARIOS").is_some() {
        std::fs::create_dir_all(&folder).expect("the folder is made");
        std::fs::write(&path, record).expect("the record is written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(record, expected, "UPDATE_SCENARIOS=1 takes what is left as right");
}

fn kind(pools: &str) -> Config {
    policy(&json!({"loadBalancerBackendPoolConfigurationType": pools}))
}

fn all_gone(lab: &mut Laboratory) {
    let count = u32::try_from(addressed(lab).0).expect("a few");
    (0..count).for_each(|n| delete(lab, "default", &format!("web-{n:04}")));
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    let machines = |id: &String| id.contains("microsoft.compute");
    let left: Vec<String> = leftovers(lab).into_iter().filter(|id| !machines(id)).collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn pool_kinds() {
    let mut lab = estate_of_thirty(kind("nodeIPConfiguration"));
    let mut record = String::new();
    let said = (
        "Pools of NICs become pools of addresses",
        "loadBalancerBackendPoolConfigurationType: nodeIP",
    );
    gapless(&mut lab, said, kind("nodeIP"), &mut record);
    let said = (
        "Pools of addresses become pools of NICs",
        "loadBalancerBackendPoolConfigurationType: nodeIPConfiguration",
    );
    gapless(&mut lab, said, kind("nodeIPConfiguration"), &mut record);
    let said = (
        "Pools of NICs become pools of addresses, through Azure's own action",
        "loadBalancerBackendPoolConfigurationType: nodeIP, \
                enableMigrateToIPBasedBackendPoolAPI: true",
    );
    gapless(
        &mut lab,
        said,
        policy(&json!({"enableMigrateToIPBasedBackendPoolAPI": true})),
        &mut record,
    );
    check("pool-kinds", &record);
    all_gone(&mut lab);
}

fn several() -> Config {
    policy(&json!({"multipleStandardLoadBalancerConfigurations": [
        {"name": "kubernetes", "primaryVMSet": "vmss", "allowServicePlacement": true},
        {"name": "odd", "primaryVMSet": "pool", "allowServicePlacement": true,
            "serviceLabelSelector": {"matchLabels": {"team": "odd"}}}]}))
}

#[test]
fn load_balancer_counts() {
    let mut lab = estate_of_thirty(kind("nodeIP"));
    let mut record = String::new();
    let said = (
        "One load balancer becomes two",
        "multipleStandardLoadBalancerConfigurations: kubernetes, and odd for team=odd",
    );
    gapless(&mut lab, said, several(), &mut record);
    let said = ("Two load balancers become one", "no multipleStandardLoadBalancerConfigurations");
    gapless(&mut lab, said, kind("nodeIP"), &mut record);
    check("load-balancer-counts", &record);
    all_gone(&mut lab);
}

fn name_of(number: u32) -> String {
    format!("default/web-{number:04}")
}

fn basic() -> Config {
    policy(&json!({"loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration",
        "loadBalancerSku": "basic", "disableOutboundSNAT": false}))
}

#[test]
fn basic_to_standard_with_nics() {
    let mut lab = estate_of_thirty(basic());
    let mut record = String::new();
    let said = ("Basic load balancers become Standard", "loadBalancerSku: standard");
    switch(&mut lab, said, kind("nodeIPConfiguration"), &mut record);
    check("basic-to-standard-nics", &record);
    all_gone(&mut lab);
}

#[test]
fn basic_to_standard_with_addresses() {
    let mut lab = estate_of_thirty(basic());
    let mut record = String::new();
    let said = (
        "Basic load balancers become Standard, their pools pools of addresses",
        "loadBalancerSku: standard, loadBalancerBackendPoolConfigurationType: nodeIP",
    );
    switch(&mut lab, said, kind("nodeIP"), &mut record);
    check("basic-to-standard-addresses", &record);
    all_gone(&mut lab);
}

/// Kills the controller at many moments of a switch, then starts it with the one or the other
/// config: addresses stay, and no rule leads to an empty pool where `gapless`.
fn cut_short(from: &Config, to: &Config, gapless: bool) {
    for moment in 0..7u64 {
        let mut lab = estate_of(6, from.clone());
        let before = addresses(&lab);
        lab.azure_latency_ms = 20;
        lab.azure.options_mut().lro_ms = 50;
        lab.inspect = Some(empty_pools);
        lab.restart_with(to.clone());
        lab.pass(moment * 131);
        match moment % 3 {
            0 if gapless => {
                lab.restart_with(from.clone());
                lab.pass(moment * 61);
                lab.restart_with(to.clone());
            }
            _ => lab.restart(),
        }
        assert!(lab.settle(LIMIT_MS), "moment {moment}: {:#?}", lab.controller().report());
        assert_eq!(addresses(&lab), before, "moment {moment}");
        if gapless {
            assert_eq!(lab.seen, [], "moment {moment}");
        }
        assert_eq!(empty_pools(&lab.azure), Vec::<String>::new());
        all_gone(&mut lab);
    }
}

#[test]
fn pool_kinds_cut_short() {
    cut_short(&kind("nodeIPConfiguration"), &kind("nodeIP"), true);
    cut_short(&kind("nodeIP"), &kind("nodeIPConfiguration"), true);
}

#[test]
fn load_balancer_counts_cut_short() {
    cut_short(&kind("nodeIP"), &several(), true);
    cut_short(&several(), &kind("nodeIP"), true);
}

#[test]
fn basic_to_standard_cut_short() {
    cut_short(&basic(), &kind("nodeIPConfiguration"), false);
    cut_short(&basic(), &kind("nodeIP"), false);
}

fn balancer_of(lab: &Laboratory, name: &str) -> Option<Value> {
    lab.azure.resource(&network(&format!("loadBalancers/{name}")))
}

#[test]
fn dynamic_addresses_become_static_before_their_basic_load_balancer_goes() {
    let mut lab = estate_of(3, basic());
    let before = addresses(&lab);
    for mut ip in lab.azure.resources() {
        if ip["type"] == "Microsoft.Network/publicIPAddresses" && ip["sku"]["name"] == "Basic" {
            ip["properties"]["publicIPAllocationMethod"] = json!("Dynamic");
            lab.azure.seed(vec![ip]);
        }
    }
    lab.azure.clear_calls();
    lab.restart_with(kind("nodeIP"));
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    assert_eq!(addresses(&lab), before);
    let writes: Vec<String> =
        lab.azure.calls().iter().filter(|c| c.is_write()).map(short).collect();
    let ip = "PUT publicIPAddresses of a Service";
    assert_eq!(writes[..2], [ip, ip], "they become static first");
    assert_eq!(writes.iter().filter(|w| *w == ip).count(), 4, "then Standard");
    assert!(writes.iter().all(|w| !w.contains("->")), "{writes:?}");
}

/// Azure gives a dynamic public IP its address with the frontend that is put on it.
#[test]
fn a_dynamic_address_is_told_once_azure_has_given_it() {
    let mut lab = estate_of(1, basic());
    let id = network("publicIPAddresses/loose");
    lab.azure.seed(vec![json!({"id": id, "sku": {"name": "Basic"}, "properties": {
        "publicIPAllocationMethod": "Dynamic", "publicIPAddressVersion": "IPv4"}})]);
    lab.azure.options_mut().lro_ms = 50;
    lab.restart();
    let mut web = labelled(1);
    web["metadata"]["annotations"] = json!({PIP_NAME: "loose"});
    create(&mut lab, web);
    // Its Service waits, and nothing is left to be written: that counts as settled.
    lab.pass(30_000);
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    let address = |lab: &Laboratory| {
        lab.azure.resource(&id).expect("it stays")["properties"]["ipAddress"].clone()
    };
    let given = address(&lab);
    assert!(given.is_string());
    assert_eq!(addresses(&lab)["web-0001"][0]["ip"], given);
    delete(&mut lab, "default", "web-0001");
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    assert_eq!(address(&lab), Value::Null);
}

#[test]
fn a_basic_load_balancer_with_parts_of_others_stays_and_it_is_said_why() {
    let mut lab = estate_of(3, basic());
    let before = addresses(&lab);
    let mut balancer = resource(&lab, "loadBalancers/kubernetes");
    let frontend = balancer["properties"]["frontendIPConfigurations"][0]["id"].clone();
    balancer["properties"]["inboundNatRules"] = json!([{"name": "ssh", "properties": {
        "frontendIPConfiguration": {"id": frontend}, "protocol": "Tcp", "frontendPort": 2222,
        "backendPort": 22, "enableFloatingIP": false}}]);
    lab.azure.seed(vec![balancer]);
    lab.azure.clear_calls();
    lab.restart_with(kind("nodeIP"));
    create(&mut lab, labelled(3));
    (0..4).for_each(|n| lab.is_refused(&name_of(n), "the Basic load balancer stays"));
    lab.settle(LIMIT_MS);
    let writes: Vec<String> =
        lab.azure.calls().iter().filter(|c| c.is_write()).map(short).collect();
    assert_eq!(writes, Vec::<String>::new(), "nothing is begun");
    let service = |name: &str| addresses(&lab)[name].clone();
    assert_eq!(service("web-0000"), before["web-0000"]);
    assert_eq!(service("web-0003"), Value::Null);
    let said = lab.controller().report().findings.iter().map(ToString::to_string);
    assert!(said.into_iter().any(|text| text.contains("has NAT or outbound rules")));
    let mut balancer = resource(&lab, "loadBalancers/kubernetes");
    balancer["properties"]["inboundNatRules"] = json!([]);
    lab.azure.seed(vec![balancer]);
    (0..4).for_each(|n| lab.is_served(&name_of(n)));
    lab.restart();
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    assert_eq!(addressed(&lab), (4, 0));
    assert_eq!(resource(&lab, "loadBalancers/kubernetes")["sku"]["name"], "Standard");
}

#[test]
fn a_standard_load_balancer_does_not_become_basic() {
    let mut lab = estate_of(3, kind("nodeIPConfiguration"));
    let before = addresses(&lab);
    lab.azure.clear_calls();
    lab.restart_with(basic());
    (0..3).for_each(|n| lab.is_refused(&name_of(n), "the Standard load balancer stays"));
    lab.settle(LIMIT_MS);
    assert_eq!((lab.calls().0, addresses(&lab)), (0, before));
    let rules: Vec<&str> = lab.controller().report().findings.iter().map(|f| f.rule).collect();
    assert_eq!(rules, ["StandardCannotBecomeBasic"]);
}

#[test]
fn basic_load_balancers_of_node_sets_are_replaced_by_one() {
    let mut lab = estate_of(3, basic());
    let mut other = labelled(3);
    other["metadata"]["annotations"] = json!({format!("{PREFIX}azure-load-balancer-mode"): "pool"});
    create(&mut lab, other);
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    let before = addresses(&lab);
    assert_eq!(resource(&lab, "loadBalancers/pool")["sku"]["name"], "Basic");
    lab.restart_with(kind("nodeIPConfiguration"));
    assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
    assert_eq!(addresses(&lab), before);
    assert_eq!(balancer_of(&lab, "pool"), None);
    assert_eq!(empty_pools(&lab.azure), Vec::<String>::new());
    let ours = resource(&lab, "loadBalancers/kubernetes");
    assert_eq!(list(&ours, "frontendIPConfigurations").len(), 3);
}

#[test]
fn a_machine_that_cannot_join_does_not_hold_the_switch_up() {
    let mut lab = estate_of(3, kind("nodeIP"));
    let before = addresses(&lab);
    lab.azure
        .add_fault(refusing(400, "InvalidParameter", "PUT", "pool/virtualMachines/1$").always());
    lab.inspect = Some(empty_pools);
    lab.restart_with(kind("nodeIPConfiguration"));
    lab.pass(60_000);
    let names = |lab: &Laboratory| {
        let balancer = resource(lab, "loadBalancers/kubernetes");
        let pools = list(&balancer, "backendAddressPools").to_vec();
        pools
            .iter()
            .map(|p| (p["name"].clone(), list(p, "backendIPConfigurations").len()))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&lab), [(json!("kubernetes"), 3)], "three of four are in, nothing is left");
    assert_eq!((addresses(&lab), lab.seen.len()), (before, 0));
    lab.azure.clear_faults();
    assert!(lab.settle(LIMIT_MS));
    assert_eq!(names(&lab), [(json!("kubernetes"), 4)]);
}

#[test]
fn several_changes_at_once() {
    for from in [kind("nodeIPConfiguration"), basic()] {
        let mut lab = estate_of(6, from.clone());
        let before = addresses(&lab);
        lab.azure.clear_calls();
        lab.inspect = Some(empty_pools);
        lab.restart_with(several());
        assert!(lab.settle(LIMIT_MS), "{:#?}", lab.controller().report());
        assert_eq!(addresses(&lab), before);
        let refused = lab.azure.calls().iter().filter(|c| c.status >= 400).count();
        assert_eq!(refused, 0, "Azure refuses nothing");
        if from.sku == model::policy::BalancerSku::Standard {
            assert_eq!(lab.seen, [], "no pool is empty");
        }
        let odd = resource(&lab, "loadBalancers/odd");
        assert_eq!(list(&odd, "frontendIPConfigurations").len(), 2);
        let pool = &list(&odd, "backendAddressPools")[0];
        assert_eq!(list(pool, "loadBalancerBackendAddresses").len(), 2);
        all_gone(&mut lab);
    }
}
