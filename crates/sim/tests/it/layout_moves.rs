//! Services move between load balancers over nodes and container load balancers, live: at every
//! moment each is served at an address that its status tells, and nothing is left over.

use crate::support::container::*;
use crate::support::*;
use azure_emulator::{Azure, Fault, FaultKind};
use kube_emulator::Store;
use model::kubernetes::READINESS_GATE;
use serde_json::{Value, json};
use sim::{Config, Laboratory, Moment, Witness};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

const NODES: u32 = 3;

fn nodes() -> Config {
    nodes_by("nodeIP")
}

fn nodes_by(pools: &str) -> Config {
    policy(&json!({"layoutMigration": {"keepBoth": "10m"},
        "loadBalancerBackendPoolConfigurationType": pools}))
}

fn pods() -> Config {
    let mut keys = keys();
    keys["layoutMigration"] = json!({"keepBoth": "10m"});
    policy(&keys)
}

/// Whether Azure's data path leads from an address to backends.
fn is_served(azure: &Azure, address: &str) -> bool {
    azure.traffic(address, "Tcp", 80).is_some_and(|traffic| !traffic.backends.is_empty())
}

fn services(store: &Store) -> Vec<Value> {
    let all = store.list("services", None);
    let wanted = all.iter().filter(|service| service["spec"]["type"] == "LoadBalancer");
    wanted.map(|service| Value::clone(service)).collect()
}

fn told(service: &Value) -> Vec<String> {
    let entries = service["status"]["loadBalancer"]["ingress"].as_array();
    let ips = entries.into_iter().flatten().filter_map(|entry| entry["ip"].as_str());
    ips.map(str::to_owned).collect()
}

/// What is wrong at one moment: a Service that tells an address which leads nowhere, or none.
fn faults(store: &Store, azure: &Azure) -> Vec<String> {
    let mut faults = Vec::new();
    for service in services(store) {
        let told = told(&service);
        let name = service["metadata"]["name"].as_str().unwrap_or_default();
        if told.is_empty() {
            faults.push(format!("{name} tells no address"));
        }
        let dead = told.iter().filter(|address| !is_served(azure, address));
        faults.extend(dead.map(|address| format!("{name} tells {address}, which leads nowhere")));
    }
    faults
}

/// What was wrong, each once.
type Seen = Rc<RefCell<Vec<String>>>;

/// Watches every write from now on; what was wrong, each once. An address is served as long as a
/// status tells it, and for a minute after.
fn watched(lab: &mut Laboratory) -> Seen {
    let seen = Seen::default();
    let into = Rc::clone(&seen);
    let mut told_ms: BTreeMap<String, u64> = BTreeMap::new();
    lab.witness = Some(Witness::new(move |store, azure, now_ms| {
        let mut wrong = faults(store, azure);
        let addresses = services(store).iter().flat_map(told).collect::<Vec<_>>();
        told_ms.extend(addresses.into_iter().map(|address| (address, now_ms)));
        let early = told_ms
            .iter()
            .filter(|(address, at)| now_ms < *at + 60_000 && !is_served(azure, address));
        wrong.extend(early.map(|(address, _)| format!("{address} goes within a minute")));
        let mut seen = into.borrow_mut();
        wrong.retain(|fault| !seen.contains(fault));
        seen.extend(wrong);
    }));
    seen
}

/// Services with two Pods each, one of them Local, on load balancers over nodes.
fn over_nodes(services: u32) -> Laboratory {
    over_nodes_by("nodeIP", services)
}

fn over_nodes_by(pools: &str, services: u32) -> Laboratory {
    let mut lab = container_laboratory(NODES);
    lab.azure.seed(scale_set("vmss", NODES));
    lab.restart_with(policy(&json!({"loadBalancerBackendPoolConfigurationType": pools})));
    for index in 0..services {
        create(&mut lab, web(index));
        set_slice(&mut lab, &web_name(index), 0, ready(&[(2 * index, 0), (2 * index + 1, 1)]));
    }
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    assert_eq!(addressed(&lab), (services as usize, 0));
    lab
}

fn addresses(lab: &Laboratory) -> Vec<Vec<String>> {
    services(&lab.kubernetes).iter().map(told).collect()
}

/// Annotates the first Service.
fn annotate(lab: &mut Laboratory, key: &str, value: &str) {
    let body = json!({"metadata": {"annotations": {key: value}}});
    patch(lab, "services", "default", &web_name(0), body);
}

fn conditions(lab: &Laboratory) -> Vec<String> {
    let mut found = Vec::new();
    for service in services(&lab.kubernetes) {
        let all = service["status"]["conditions"].as_array().cloned().unwrap_or_default();
        found.extend(all.iter().map(|c| format!("{} {}", c["type"], c["status"])));
    }
    found
}

fn assert_moved(lab: &Laboratory, sku: &str, point: &str) {
    let all = lab.azure.resources();
    let balancers = all.iter().filter(|r| r["type"] == "Microsoft.Network/loadBalancers");
    let (own, others): (Vec<&Value>, _) = balancers.partition(|b| b["sku"]["name"] == sku);
    let ids: Vec<&Value> = others.iter().map(|balancer| &balancer["id"]).collect();
    assert!(
        !own.is_empty() && others.is_empty(),
        "{point}: {ids:?} {:?} {:?} {:#?}",
        addresses(lab),
        conditions(lab),
        lab.controller().report()
    );
    assert_eq!(faults(&lab.kubernetes, &lab.azure), Vec::<String>::new());
    assert!(addresses(lab).iter().all(|told| told.len() == 1), "{:?}", addresses(lab));
    let moving = |text: &String| text.contains("Migrated") || text.contains("False");
    let left: Vec<String> = conditions(lab).into_iter().filter(moving).collect();
    assert_eq!(left, Vec::<String>::new());
}

/// All come to rest on load balancers of this SKU, and nothing was wrong on the way.
fn ends_on(lab: &mut Laboratory, sku: &str, seen: &Seen) {
    comes_to_rest(lab, sku, seen, "in the end");
}

fn comes_to_rest(lab: &mut Laboratory, sku: &str, seen: &Seen, point: &str) {
    assert!(lab.settle(DAY_MS), "{point}: {:#?}", lab.controller().report());
    assert_eq!(*seen.borrow(), Vec::<String>::new(), "{point}");
    assert_moved(lab, sku, point);
}

/// Two Services stand where they are to leave; each write is watched from now on.
fn about_to_move(to_pods: bool) -> (Laboratory, Seen) {
    let mut lab = over_nodes(2);
    if !to_pods {
        lab.restart_with(pods());
        assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    }
    let seen = watched(&mut lab);
    (lab, seen)
}

/// The config they move by, and the SKU they end on.
fn target(to_pods: bool) -> (Config, &'static str) {
    if to_pods { (pods(), "Service") } else { (nodes(), "Standard") }
}

/// There and back: both addresses for the time that the config says, never none, and nothing of the
/// former load balancers is left.
#[test]
fn services_move_there_and_back() {
    for (pools, services) in [("nodeIP", 50), ("nodeIPConfiguration", 5)] {
        there_and_back(pools, services);
    }
}

fn there_and_back(pools: &str, services: u32) {
    let mut lab = over_nodes_by(pools, services);
    let before = addresses(&lab);
    let seen = watched(&mut lab);
    lab.restart_with(pods());
    lab.pass(300_000);
    let both = addresses(&lab);
    assert!(both.iter().all(|told| told.len() == 2), "{both:?}");
    let keeps = |(both, old): (&Vec<String>, &Vec<String>)| both.contains(&old[0]);
    assert!(both.iter().zip(&before).all(keeps), "{both:?} keeps {before:?}");
    ends_on(&mut lab, "Service", &seen);
    create_pod(&mut lab, egress_pod("leaving", "team-a", &[&pod_ip(900)], 1));
    assert!(lab.settle(DAY_MS));
    let others = 2; // an egress gateway and the cluster's own way out
    assert_eq!(registered(&lab).len(), services as usize + others);
    lab.restart_with(nodes_by(pools));
    ends_on(&mut lab, "Standard", &seen);
    assert_eq!((registered(&lab).len(), table(&lab).len()), (1, 0), "the cluster's own way out");
    (0..services).for_each(|n| delete(&mut lab, "default", &web_name(n)));
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    let machines = |id: &String| id.contains("microsoft.compute");
    let left: Vec<String> = leftovers(&lab).into_iter().filter(|id| !machines(id)).collect();
    assert_eq!(left, container_base(&lab));
}

/// What the estate has without any Service.
fn container_base(_: &Laboratory) -> Vec<String> {
    let lab = container_laboratory(NODES);
    leftovers(&lab)
}

/// A controller that is killed at any call goes on where it was.
#[test]
fn a_kill_at_any_call_loses_nothing() {
    for to_pods in [true, false] {
        for moment in [Moment::Before, Moment::After] {
            for calls in 0.. {
                let (mut lab, seen) = about_to_move(to_pods);
                let (config, sku) = target(to_pods);
                lab.restart_with(config);
                lab.crash_after(calls, moment);
                let point = format!("to pods {to_pods}, {moment:?} call {calls}");
                comes_to_rest(&mut lab, sku, &seen, &point);
                if lab.awaits_crash() {
                    assert!(calls > 20, "a move takes more calls than {calls}");
                    break;
                }
            }
        }
    }
}

/// A Service that container load balancers refuse stays where it is, and says why.
#[test]
fn a_service_that_is_refused_stays() {
    let mut lab = over_nodes(2);
    let mut service = web(2);
    service["metadata"]["annotations"] = json!({INTERNAL: "true"});
    create(&mut lab, service);
    assert!(lab.settle(DAY_MS));
    let before = addresses(&lab)[2].clone();
    let seen = watched(&mut lab);
    lab.restart_with(pods());
    lab.pass(3_600_000);
    assert_eq!(addresses(&lab)[2], before);
    assert_eq!(*seen.borrow(), Vec::<String>::new());
    let service = service_of(&lab, &web_name(2)).expect("it is there");
    let conditions = service["status"]["conditions"].to_string();
    assert!(conditions.contains("internal"), "{conditions}");
}

/// An edit that the new load balancer refuses, while a Service has both: neither is changed, and
/// the Service goes on once its owner has taken the edit back.
#[test]
fn a_refused_edit_changes_neither_load_balancer() {
    let interval = format!("{PREFIX}azure-load-balancer-health-probe-interval");
    for (to_pods, key, value) in [(true, INTERNAL, "true"), (false, &*interval, "3")] {
        for restart in [false, true] {
            let (mut lab, seen) = about_to_move(to_pods);
            let (config, sku) = target(to_pods);
            lab.restart_with(config);
            lab.pass(300_000);
            let both = addresses(&lab);
            assert!(both.iter().all(|told| told.len() == 2), "{both:?}");
            let standing = balancers(&lab);
            let more = json!([{"name": "http", "port": 80, "targetPort": 8080, "nodePort": 30_080},
                {"name": "more", "port": 81, "targetPort": 8081, "nodePort": 30_999}]);
            let edit = |annotation: Value, ports: &Value| {
                let annotations = json!({key: annotation});
                json!({"metadata": {"annotations": annotations}, "spec": {"ports": ports}})
            };
            let service = service_of(&lab, &web_name(0)).expect("it is there");
            let body = edit(json!(value), &more);
            patch(&mut lab, "services", "default", &web_name(0), body);
            lab.pass(60_000);
            if restart {
                lab.restart();
            }
            lab.pass(60_000);
            assert_eq!(addresses(&lab)[0], both[0], "to pods {to_pods}");
            assert_eq!(balancers(&lab), standing, "to pods {to_pods}");
            assert!(conditions(&lab).contains(&"\"ballast.dev/Programmed\" \"False\"".to_owned()));
            let body = edit(Value::Null, &service["spec"]["ports"]);
            patch(&mut lab, "services", "default", &web_name(0), body);
            ends_on(&mut lab, sku, &seen);
        }
    }
}

/// The frontends and rules of all load balancers.
fn balancers(lab: &Laboratory) -> Vec<Value> {
    let all = lab.azure.resources().into_iter();
    let all = all.filter(|r| r["type"] == "Microsoft.Network/loadBalancers");
    let parts = ["frontendIPConfigurations", "loadBalancingRules"];
    let named = |of: &Value| json!({"name": of["name"], "properties": of["properties"]});
    let shown = |balancer: &Value| {
        let inside = &balancer["properties"];
        let lists = parts.map(|part| inside[part].as_array().cloned().unwrap_or_default());
        json!(lists.map(|list| list.iter().map(named).collect::<Vec<_>>()))
    };
    all.map(|balancer| shown(&balancer)).collect()
}

/// A Pod is selected by a Service whose load balancer leads to nodes, because it has moved there or
/// stays there: nothing is waited for, and the gate does not say that no Service selects the Pod.
#[test]
fn a_gate_says_that_the_load_balancer_of_its_service_leads_to_nodes() {
    let mut lab = over_nodes(3);
    for n in 0..3 {
        let selector = json!({"spec": {"selector": {"app": web_name(n)}}});
        patch(&mut lab, "services", "default", &web_name(n), selector);
    }
    annotate(&mut lab, INTERNAL, "true");
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    lab.restart_with(pods());
    lab.pass(DAY_MS);
    let gate = |lab: &mut Laboratory, pod: u32, app: &str| {
        let name = format!("gated-{pod}");
        let mut gated = egress_pod(&name, "", &[&pod_ip(900 + pod)], 0);
        gated["metadata"]["labels"] = json!({"app": app, READINESS_GATE: "enabled"});
        gated["spec"]["readinessGates"] = json!([{"conditionType": READINESS_GATE}]);
        gated["status"]["conditions"] = json!([{"type": "ContainersReady", "status": "True"}]);
        create_pod(lab, gated);
        lab.pass(1_000);
        let pod = pod_of(lab, &name).expect("it is there");
        let all = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let own = all.into_iter().find(|condition| condition["type"] == READINESS_GATE);
        own.map(|own| own["reason"].as_str().unwrap_or_default().to_owned())
    };
    let is_listed = |lab: &Laboratory, pod: u32| {
        table(lab).keys().any(|(_, address)| *address == pod_ip(900 + pod))
    };
    let words = |reason: &str| Some(reason.to_owned());
    assert_eq!(gate(&mut lab, 0, &web_name(0)), words("NodeBackends"), "it is refused by Pods'");
    assert_eq!(gate(&mut lab, 1, &web_name(1)), words("Programmed"), "it is led to");
    assert!(is_listed(&lab, 1), "{:?}", table(&lab));
    assert_eq!(gate(&mut lab, 2, "none"), words("NoService"));
    let mut keys = json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"});
    keys["layoutMigration"] =
        json!({"keepBoth": "0s", "services": format!("default/{}", web_name(1))});
    lab.restart_with(policy(&keys));
    lab.pass(DAY_MS);
    assert_eq!(gate(&mut lab, 3, &web_name(1)), words("NodeBackends"), "it has moved");
    assert_eq!(gate(&mut lab, 4, &web_name(2)), words("Programmed"), "it stays");
    assert!(is_listed(&lab, 4), "{:?}", table(&lab));
    assert_eq!(gate(&mut lab, 5, "none"), words("NoService"));
}

/// Private endpoints are connected to the Private Link Service before the former address: the
/// former load balancer stays for them, and the Service says why until its owner lets it go.
#[test]
fn what_others_are_connected_to_outlives_the_move() {
    let mut lab = over_nodes_by("nodeIPConfiguration", 1);
    for key in ["azure-disable-load-balancer-floating-ip", "azure-pls-create"] {
        annotate(&mut lab, &format!("{PREFIX}{key}"), "true");
    }
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    let link = |lab: &Laboratory| {
        let mut all = lab.azure.resources().into_iter();
        all.find(|r| r["type"] == "Microsoft.Network/privateLinkServices")
    };
    let mut connected = link(&lab).expect("it is made");
    let id = connected["id"].as_str().expect("it has an id").to_owned();
    connected["properties"]["privateEndpointConnections"] = json!([{"name": "somebody",
        "id": format!("{id}/privateEndpointConnections/somebody"), "properties": {
            "privateLinkServiceConnectionState": {"status": "Approved"}}}]);
    lab.azure.seed(vec![connected]);
    let before = addresses(&lab);
    lab.restart_with(pods());
    lab.pass(DAY_MS);
    let now = addresses(&lab);
    assert!(now[0].len() == 1 && now != before, "{now:?}");
    assert!(link(&lab).is_some(), "consumers keep what they are connected to");
    assert!(is_served(&lab.azure, &before[0][0]), "and reach the Pods");
    let said = service_of(&lab, &web_name(0)).expect("it is there")["status"].to_string();
    assert!(said.contains("PrivateLinkConnected"), "{said}");
    annotate(&mut lab, "ballast.dev/disconnect-private-endpoints", "true");
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    assert_eq!(link(&lab), None);
    assert_moved(&lab, "Service", "in the end");
}

/// A Service whose owner confirms interruptions has both addresses until then; others move.
#[test]
fn whose_owner_confirms_interruptions_keeps_both_addresses_until_then() {
    let mut lab = over_nodes(2);
    let before = addresses(&lab);
    annotate(&mut lab, "ballast.dev/confirm", "true");
    let seen = watched(&mut lab);
    lab.restart_with(pods());
    lab.pass(DAY_MS);
    let now = addresses(&lab);
    assert!(now[0].len() == 2 && now[0].contains(&before[0][0]), "{now:?}");
    assert!(now[1].len() == 1 && now[1] != before[1], "{now:?}");
    let service = service_of(&lab, &web_name(0)).expect("it is there");
    let all = service["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let due = all.iter().find(|c| c["reason"] == "ConfirmationDue").expect("it waits");
    let list = plan::ask::hold::to_confirm(due["message"].as_str().unwrap_or_default());
    assert_eq!(list, Some(&*before[0][0]));
    lab.restart();
    lab.pass(DAY_MS);
    assert_eq!(addresses(&lab), now, "a new process waits, too");
    annotate(&mut lab, "ballast.dev/confirmed", &before[0][0]);
    ends_on(&mut lab, "Service", &seen);
}

/// kube-proxy leads to an endpoint outside of the cluster, and no container load balancer does.
#[test]
fn a_service_that_only_nodes_can_serve_stays_until_pods_do() {
    let mut lab = over_nodes(2);
    let mut outside = endpoint("10.99.0.1", 0, true);
    outside.as_object_mut().expect("it is an object").remove("nodeName");
    set_slice(&mut lab, &web_name(0), 0, vec![outside]);
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    let before = addresses(&lab);
    let seen = watched(&mut lab);
    lab.restart_with(pods());
    lab.pass(DAY_MS);
    let now = addresses(&lab);
    assert_eq!(now[0], before[0]);
    assert!(now[1].len() == 1 && now[1] != before[1], "{now:?}");
    let stays = |text: &String| text.contains("Programmed") && text.contains("False");
    assert!(conditions(&lab).iter().any(stays), "{:?}", conditions(&lab));
    set_slice(&mut lab, &web_name(0), 0, ready(&[(9, 0)]));
    ends_on(&mut lab, "Service", &seen);
}

/// Half-way the config is turned back: each Service returns to the address that it had.
#[test]
fn a_move_turns_around() {
    let mut lab = over_nodes(3);
    let before = addresses(&lab);
    let seen = watched(&mut lab);
    lab.restart_with(pods());
    lab.pass(300_000);
    assert!(addresses(&lab).iter().all(|told| told.len() == 2));
    lab.restart_with(nodes());
    ends_on(&mut lab, "Standard", &seen);
    assert_eq!(addresses(&lab), before);
}

/// One Service first: the others stay until the config names them all.
#[test]
fn services_move_one_by_one() {
    let mut lab = over_nodes(3);
    let before = addresses(&lab);
    let mut keys = keys();
    keys["layoutMigration"] =
        json!({"keepBoth": "0s", "services": format!("default/{}", web_name(1))});
    let seen = watched(&mut lab);
    lab.restart_with(policy(&keys));
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    let now = addresses(&lab);
    assert_eq!((&now[0], &now[2]), (&before[0], &before[2]));
    assert_ne!(now[1], before[1]);
    lab.restart_with(pods());
    ends_on(&mut lab, "Service", &seen);
}

/// Both addresses stay until the config says a time.
#[test]
fn both_addresses_stay_until_told() {
    let mut lab = over_nodes(2);
    let mut keys = keys();
    keys["layoutMigration"] = json!({"keepBoth": "untilTold"});
    let seen = watched(&mut lab);
    lab.restart_with(policy(&keys));
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    lab.pass(10 * DAY_MS);
    assert!(addresses(&lab).iter().all(|told| told.len() == 2));
    lab.restart_with(pods());
    ends_on(&mut lab, "Service", &seen);
}

/// A Service wants no load balancer any more while it has both: it keeps nothing of either.
#[test]
fn a_service_that_wants_none_any_more_says_nothing() {
    for wait_ms in [0, 300_000, 620_000] {
        let mut lab = over_nodes(2);
        lab.restart_with(pods());
        lab.pass(wait_ms);
        for n in 0..2 {
            let plain = json!({"spec": {"type": "ClusterIP"}});
            patch(&mut lab, "services", "default", &web_name(n), plain);
        }
        assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
        for n in 0..2 {
            let service = service_of(&lab, &web_name(n)).expect("it is there");
            assert_eq!(told(&service), Vec::<String>::new(), "after {wait_ms} ms");
            let said = service["status"]["conditions"].as_array().map_or(0, Vec::len);
            assert_eq!((said, &service["metadata"]["finalizers"]), (0, &Value::Null));
        }
        assert_eq!((registered(&lab).len(), table(&lab).len()), (1, 0), "after {wait_ms} ms");
    }
}

/// A Service is deleted while it has both: nothing is left of either.
#[test]
fn a_service_that_is_deleted_on_its_way_leaves_nothing() {
    for wait_ms in [0, 300_000, 620_000] {
        let mut lab = over_nodes(2);
        lab.restart_with(pods());
        lab.pass(wait_ms);
        (0..2).for_each(|n| delete(&mut lab, "default", &web_name(n)));
        assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
        assert_eq!(services(&lab.kubernetes), Vec::<Value>::new(), "after {wait_ms} ms");
        assert_eq!((registered(&lab).len(), table(&lab).len()), (1, 0), "after {wait_ms} ms");
        let estate: Vec<Value> = gateway_estate().iter().map(|r| r["id"].clone()).collect();
        let all = lab.azure.resources().into_iter();
        let own =
            |r: &Value| r["type"].as_str().is_some_and(|t| t.starts_with("Microsoft.Network"));
        let left: Vec<Value> =
            all.filter(own).map(|r| r["id"].clone()).filter(|id| !estate.contains(id)).collect();
        assert_eq!(left, Vec::<Value>::new(), "after {wait_ms} ms");
    }
}

/// A call that fails, in whatever way, is made good; nothing is unserved meanwhile.
#[test]
fn a_call_that_fails_loses_nothing() {
    let refused = refusal(500, "InternalServerError", None);
    let code = || "InternalServerError".to_owned();
    let kinds = [
        refused,
        FaultKind::AppliedThenReset,
        FaultKind::OperationFails { code: code() },
        FaultKind::OperationCanceled { code: code() },
    ];
    for (to_pods, kind) in [true, false].into_iter().flat_map(|to| kinds.clone().map(|k| (to, k))) {
        for call in 0.. {
            let (mut lab, seen) = about_to_move(to_pods);
            let (config, sku) = target(to_pods);
            lab.azure.clear_calls();
            lab.restart_with(config);
            lab.azure.add_fault(Fault::new(kind.clone()).skip(call));
            let point = format!("to pods {to_pods}, {kind:?} at call {call}");
            comes_to_rest(&mut lab, sku, &seen, &point);
            if lab.azure.calls().len() as u64 <= call {
                assert!(call > 20, "a move takes more calls than {call}");
                break;
            }
        }
    }
}

/// Where no node takes traffic the former load balancer stays until one does.
#[test]
fn a_service_waits_for_backends() {
    let mut lab = over_nodes(2);
    lab.restart_with(pods());
    assert!(lab.settle(DAY_MS), "{:#?}", lab.controller().report());
    let before = addresses(&lab);
    let label = "node.kubernetes.io/exclude-from-external-load-balancers";
    let exclude = |lab: &mut Laboratory, excluded: Value| {
        for n in 0..NODES {
            let labels = json!({"metadata": {"labels": {label: excluded}}});
            patch(lab, "nodes", "", &node_name(n), labels);
        }
    };
    exclude(&mut lab, json!("true"));
    let seen = watched(&mut lab);
    lab.restart_with(nodes());
    lab.pass(3_600_000);
    assert_eq!(addresses(&lab), before);
    exclude(&mut lab, Value::Null);
    ends_on(&mut lab, "Standard", &seen);
}
