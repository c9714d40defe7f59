use super::stage::{Stage, ip, node_ip, pod, pod_ip, port, service, uid};
use fixture::{hold, public_ips_mut};
use model::azure::{NatGateway, Provisioning, PublicIp, Sku};
use model::gateway::{DefaultService, Direction, GatewayService, UpdateAction};
use model::kubernetes::{
    Affinity, Deletion, GATEWAY_FINALIZER, LoadBalancerType, Membership, POD_FINALIZER, Pod,
    PodPhase, Readiness, SERVICE_FINALIZER, Truth, Wish,
};
use model::plan::{Action, Change, Edit, KubernetesWrite, Object, Resource};
use model::report::{State, Wait};
use model::world::Fact;
use model::{Family, NodeName, Protocol, ResourceId, ServiceName, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

const WEB: &str = "00000001-1111-4222-8333-0123456789ab";

fn leave(stage: &mut Stage, n: u8) {
    stage.edit(n, |s| {
        s.wish = Wish::Nothing;
        s.deletion = Deletion::Requested;
    });
}

/// Changes the public IP of Service 1 behind our back.
fn edit_ip(stage: &mut Stage, edit: impl FnOnce(&mut PublicIp)) -> ResourceId {
    let id = stage.policy.public_ip_id(&stage.policy.group, &format!("{WEB}-pip"));
    edit(Arc::make_mut(public_ips_mut(&mut stage.world).get_mut(&id).expect("known")));
    id
}

#[test]
fn a_service_with_pods_takes_four_calls() {
    let mut stage = Stage::serving(&[(10, 1), (11, 1), (20, 2)]);
    let pip = format!("PUT {WEB}-pip");
    let balancer = format!("PUT {WEB}");
    assert_eq!(stage.calls, [&*pip, &*balancer, "POST services", "POST addressLocations"]);
    assert_eq!(
        stage.table(),
        [
            "10.224.0.1 10.244.0.10 00000001",
            "10.224.0.1 10.244.0.11 00000001",
            "10.224.0.2 10.244.0.20 00000001",
        ]
    );
    let service = &stage.world.kubernetes.services[&uid(1)];
    assert_eq!(service.ingress[0].ip.as_deref(), Some("20.0.0.1"));
    assert!(service.has_finalizer(SERVICE_FINALIZER) && service.has_finalizer(GATEWAY_FINALIZER));
    let (_, report) = stage.plan();
    assert_eq!(report.services[&uid(1)].state, State::Programmed);
}

#[test]
fn the_load_balancer_has_the_recorded_shape() {
    let mut stage = Stage::new();
    let mut web = service(1);
    web.ports.push(model::kubernetes::ServicePort { protocol: Protocol::Udp, ..port(53, 5353) });
    stage.put(web);
    stage.settle();
    let balancer = stage.balancers().values().next().expect("it was made");
    assert_eq!(balancer.sku, Sku::Service);
    assert_eq!(balancer.scope.as_deref(), Some("Public"));
    assert_eq!(&*balancer.frontends[0].name, "frontend");
    assert_eq!(&*balancer.pools[0].name, WEB);
    assert!(balancer.pools[0].addresses.is_empty() && balancer.probes.is_empty());
    let rules: Vec<_> = balancer
        .rules
        .iter()
        .map(|r| (&*r.name, r.frontend_port, r.backend_port, r.tcp_reset, r.distribution))
        .collect();
    assert_eq!(
        rules,
        [("rule-tcp-80", 80, 8080, Some(true), None), ("rule-udp-53", 53, 5353, None, None)]
    );
    let ip = stage.ips().values().next().expect("it was made");
    assert_eq!(ip.sku, Sku::StandardV2);
}

#[test]
fn defaults_that_azure_fills_in_are_no_difference() {
    let mut stage = Stage::serving(&[]);
    let all = stage.world.azure.balancers.known_mut().expect("known");
    for balancer in all.values_mut() {
        let balancer = Arc::make_mut(balancer);
        balancer.rules[0].distribution = Some(model::azure::Distribution::Default);
        balancer.rules[0].disable_outbound_snat = Some(false);
        balancer.rules[0].floating_ip = None;
        balancer.provisioning = Provisioning::Busy;
    }
    assert!(stage.plan().0.is_empty());
}

#[test]
fn an_address_is_told_once_azure_has_ended_the_write_that_leads_there() {
    let mut stage = Stage::serving(&[]);
    let show = |stage: &mut Stage, state: Provisioning| {
        let all = stage.world.azure.balancers.known_mut().expect("known");
        all.values_mut().for_each(|balancer| Arc::make_mut(balancer).provisioning = state);
    };
    // A write of a process that is gone made it; its address is in no status yet.
    let mut untold = service(1);
    untold.finalizers = stage.world.kubernetes.services[&uid(1)].finalizers.clone();
    stage.put(untold);
    show(&mut stage, Provisioning::Busy);
    let (plan, report) = stage.plan();
    assert!(plan.is_empty(), "{plan:#?}");
    let waits = &report.services[&uid(1)].waits;
    assert!(matches!(waits[..], [Wait::Writing(_)]), "{waits:?}");
    show(&mut stage, Provisioning::Succeeded);
    stage.settle();
    assert_eq!(stage.world.kubernetes.services[&uid(1)].ingress.len(), 1);
    // Whoever was told is not unsettled by a later write.
    show(&mut stage, Provisioning::Busy);
    assert!(stage.plan().1.services[&uid(1)].waits.is_empty());
}

#[test]
fn an_address_is_told_once_nothing_more_is_to_be_written() {
    let mut stage = Stage::serving(&[]);
    // Its load balancer stands, no status tells that yet, and its owner asks for another port.
    let mut untold = service(1);
    untold.finalizers = stage.world.kubernetes.services[&uid(1)].finalizers.clone();
    untold.ports = vec![port(443, 8443)];
    stage.put(untold);
    let (plan, report) = stage.plan();
    assert_eq!((plan.changes.len(), plan.writes.len()), (1, 0), "{plan:#?}");
    let waits = &report.services[&uid(1)].waits;
    assert!(matches!(waits[..], [Wait::Writing(_)]), "{waits:?}");
    // Azure refuses that.
    let hold = hold(plan.changes[0].target.clone(), "BadRequest");
    stage.world.holds.insert(uid(1), hold);
    assert!(stage.plan().0.is_empty());
    stage.world.holds.clear();
    stage.settle();
    let service = &stage.world.kubernetes.services[&uid(1)];
    let condition = service.condition.as_ref().expect("it comes with the address");
    assert_eq!((service.ingress.len(), condition.truth), (1, Truth::True));
}

/// The Go cloud provider writes an address in the text that Azure gives it.
#[test]
fn an_address_in_a_longer_text_is_not_told_twice() {
    let mut stage = Stage::new();
    let mut web = service(1);
    web.families = vec![Family::V6];
    stage.put(web);
    stage.settle();
    let told = |stage: &Stage| stage.world.kubernetes.services[&uid(1)].ingress.clone();
    assert_eq!(told(&stage)[0].ip.as_deref(), Some("2603::1"));
    stage.edit(1, |s| s.ingress[0].ip = Some("2603:0:0:0:0:0:0:1".into()));
    let before = told(&stage);
    stage.settle();
    assert_eq!(told(&stage), before, "it is the same address");
}

#[test]
fn fifty_services_made_together_share_a_registration_and_an_address_call() {
    let mut stage = Stage::new();
    for n in 1..=50 {
        stage.put(service(n));
        stage.slice(&format!("s{n}"), n, &[(n, 1 + n % 3)]);
    }
    stage.settle();
    let count = |verb: &str| stage.calls.iter().filter(|c| c.starts_with(verb)).count();
    assert_eq!((count("PUT"), count("POST services"), count("POST address")), (100, 1, 1));
    for n in 1..=50 {
        leave(&mut stage, n);
    }
    stage.calls.clear();
    stage.settle();
    let count = |verb: &str| stage.calls.iter().filter(|c| c.starts_with(verb)).count();
    assert_eq!((count("DELETE"), count("POST services"), count("POST address")), (100, 2, 1));
    assert!(stage.world.kubernetes.services.is_empty());
}

#[test]
fn a_registration_waits_for_services_that_are_on_their_way() {
    let mut stage = Stage::asked(1);
    for _ in 0..3 {
        stage.round();
    }
    stage.put(service(2));
    let (plan, _) = stage.plan();
    let table = plan.changes.iter().find(|c| matches!(c.action, Action::UpdateServices(_)));
    let waits = &table.expect("the first one is ready").waits;
    assert_eq!(*waits, [Wait::Gathering { others: 1 }]);
}

#[test]
fn a_deleted_service_is_drained_before_anything_goes() {
    let mut stage = Stage::serving(&[(10, 1)]);
    stage.calls.clear();
    leave(&mut stage, 1);
    stage.settle();
    let pip = format!("DELETE {WEB}-pip");
    let balancer = format!("DELETE {WEB}");
    let wanted = ["POST addressLocations", "POST services", &*balancer, &*pip, "POST services"];
    assert_eq!(stage.calls, wanted);
    assert!(stage.world.kubernetes.services.is_empty());
}

#[test]
fn a_retyped_service_loses_its_address_and_comes_back() {
    let mut stage = Stage::serving(&[(10, 1)]);
    stage.edit(1, |s| {
        s.wish = Wish::Nothing;
        s.load_balancer_type = LoadBalancerType::Other;
    });
    // Half way through its owner changes his mind.
    for _ in 0..3 {
        stage.round();
    }
    stage.edit(1, |s| {
        s.wish = Wish::LoadBalancer;
        s.load_balancer_type = LoadBalancerType::Ours;
    });
    stage.settle();
    assert_eq!(stage.table(), ["10.224.0.1 10.244.0.10 00000001"]);
    let ingress = &stage.world.kubernetes.services[&uid(1)].ingress;
    assert_eq!(ingress.len(), 1);
}

/// By way of the type `ExternalName` a Service may come back with another family, before or while
/// what it had is taken away. Azure changes the family of no public IP.
#[test]
fn a_service_that_comes_back_with_another_family_gets_an_address_of_that_family() {
    for rounds in [0, 1, 3] {
        let mut stage = Stage::serving(&[(10, 1)]);
        stage.edit(1, |s| {
            s.wish = Wish::Nothing;
            s.ingress.clear();
        });
        for _ in 0..rounds {
            stage.round();
        }
        stage.slice("web-a", 1, &[]);
        stage.edit(1, |s| {
            s.wish = Wish::LoadBalancer;
            s.families = vec![Family::V6];
        });
        stage.settle();
        let families: Vec<Family> = stage.ips().values().map(|ip| ip.family).collect();
        assert_eq!(families, [Family::V6], "after {rounds} rounds");
        let service = &stage.world.kubernetes.services[&uid(1)];
        let told: Vec<Option<&str>> = service.ingress.iter().map(|i| i.ip.as_deref()).collect();
        assert_eq!(told, [Some("2603::2")], "after {rounds} rounds");
        assert!(service.has_finalizer(GATEWAY_FINALIZER));
        assert!(stage.services()[WEB].pools.len() == 1 && stage.balancers().len() == 1);
    }
    // A list may show for a while what another process has replaced.
    let mut stage = Stage::serving(&[(10, 1)]);
    stage.edit(1, |s| s.families = vec![Family::V6]);
    stage.world.inherited.insert(uid(1));
    let (plan, report) = stage.plan();
    assert_eq!((plan.changes.as_slice(), plan.writes.as_slice()), (&[][..], &[][..]));
    assert_eq!(report.services[&uid(1)].waits, [Wait::Listing]);
    stage.world.inherited.clear();
    stage.settle();
    assert!(stage.ips().values().all(|ip| ip.family == Family::V6));
}

#[test]
fn an_edit_that_is_refused_keeps_the_load_balancer_and_its_endpoints_moving() {
    let mut stage = Stage::serving(&[(10, 1)]);
    stage.calls.clear();
    stage.edit(1, |s| s.affinity = Affinity::ClientIp);
    stage.slice("web-a", 1, &[(11, 2)]);
    stage.settle();
    assert_eq!(stage.calls, ["POST addressLocations"]);
    assert_eq!(stage.table(), ["10.224.0.2 10.244.0.11 00000001"]);
    let (_, report) = stage.plan();
    assert_eq!(report.services[&uid(1)].state, State::RefusedServing);
}

fn set(stage: &mut Stage, slice: &str, readiness: Readiness) {
    stage.edit_slice(slice, |s| s.endpoints.iter_mut().for_each(|e| e.readiness = readiness));
}

#[test]
fn the_last_pods_that_still_serve_stay_until_another_is_ready() {
    let mut stage = Stage::asked(1);
    stage.slice("web-a", 1, &[(10, 1)]);
    stage.slice("web-b", 1, &[(11, 2)]);
    stage.settle();
    let both = ["10.224.0.1 10.244.0.10 00000001", "10.224.0.2 10.244.0.11 00000001"];
    assert_eq!(stage.table(), both);
    // The other is ready: connections go there.
    set(&mut stage, "web-a", Readiness::Terminating);
    stage.settle();
    assert_eq!(stage.table(), both[1..]);
    // None is: who still serves is better than nobody, in whichever slice.
    set(&mut stage, "web-b", Readiness::Terminating);
    stage.settle();
    assert_eq!(stage.table(), both);
    // One that does not serve is no help.
    set(&mut stage, "web-b", Readiness::NotReady);
    stage.settle();
    assert_eq!(stage.table(), both[..1]);
    stage.slice("web-c", 1, &[(12, 2)]);
    stage.settle();
    assert_eq!(stage.table(), ["10.224.0.2 10.244.0.12 00000001"]);
}

fn turn(stage: &mut Stage, node: u8, membership: Membership) {
    let name = NodeName::new(format!("node-{node}"));
    let node = stage.world.kubernetes.nodes.get_mut(&name).expect("it is there");
    Arc::make_mut(node).membership = membership;
}

/// Azure refuses an address of the Service's: it gets no other either, and what goes stays.
#[test]
fn who_is_going_stays_while_azure_refuses_whoever_takes_over() {
    let mut stage = Stage::serving(&[(10, 1)]);
    let hold = hold(crate::own::pod_names::locations_table(&stage.policy), "BadRequest");
    stage.world.holds.insert(uid(1), hold);
    stage.slice("web-b", 1, &[(11, 2)]);
    turn(&mut stage, 1, Membership::Draining);
    stage.settle();
    let before = ["10.224.0.1 10.244.0.10 00000001"];
    assert_eq!(stage.table(), before);
    turn(&mut stage, 1, Membership::Member);
    set(&mut stage, "web-a", Readiness::Terminating);
    stage.settle();
    assert_eq!(stage.table(), before);
    stage.world.holds.clear();
    stage.settle();
    assert_eq!(stage.table(), ["10.224.0.2 10.244.0.11 00000001"]);
}

#[test]
fn a_service_whose_last_slice_goes_as_a_node_changes_says_so() {
    let mut stage = Stage::serving(&[(10, 1)]);
    stage.world.kubernetes.slices.clear();
    stage.node(2, vec![node_ip(12)]);
    stage.settle();
    let (_, report) = stage.plan();
    let rules: Vec<&str> = report.services[&uid(1)].findings.iter().map(|f| f.rule).collect();
    assert_eq!(rules, ["NoBackends"]);
}

#[test]
fn pods_on_a_node_that_is_going_leave_while_others_take_the_traffic() {
    let mut stage = Stage::serving(&[(10, 1), (11, 2)]);
    let both = ["10.224.0.1 10.244.0.10 00000001", "10.224.0.2 10.244.0.11 00000001"];
    assert_eq!(stage.table(), both);
    stage.calls.clear();
    turn(&mut stage, 1, Membership::Draining);
    stage.settle();
    assert_eq!(stage.table(), both[1..]);
    assert_eq!(stage.calls.len(), 1, "{:?}", stage.calls);
    // All are going: that is better than nobody, and nobody is told that none is ready.
    turn(&mut stage, 2, Membership::Draining);
    stage.settle();
    assert_eq!(stage.table(), both);
    let (_, report) = stage.plan();
    assert_eq!(report.services[&uid(1)].findings, []);
    turn(&mut stage, 2, Membership::Member);
    stage.settle();
    assert_eq!(stage.table(), both[1..]);
    turn(&mut stage, 1, Membership::Member);
    stage.settle();
    assert_eq!(stage.table(), both);
    // A node that a label leaves out keeps its Pods in the table, unless it goes as well.
    turn(&mut stage, 1, Membership::Excluded);
    stage.settle();
    assert_eq!(stage.table(), both);
    turn(&mut stage, 1, Membership::Leaving);
    stage.settle();
    assert_eq!(stage.table(), both[1..]);
}

#[test]
fn what_is_made_has_the_tags_of_the_config() {
    let tagged = |stage: &Stage, team: &str| {
        let azure = &stage.world.azure;
        let balancers = azure.balancers.known().expect("known").values().map(|b| b.tags.as_ref());
        let ips = azure.public_ips[&stage.policy.group].known().expect("known");
        let ips = ips.values().map(|ip| ip.tags.as_ref());
        let all: Vec<_> = balancers.chain(ips).collect();
        assert_eq!(all.len(), 2);
        all.iter().all(|tags| tags.is_some_and(|tags| tags["team"].as_ref() == team))
    };
    let mut stage = Stage::new();
    stage.policy.tags = [("team".into(), "net".into())].into();
    stage.put(service(1));
    stage.settle();
    assert!(tagged(&stage, "net"));
    // Another value, after a restart, is written once.
    stage.planner = crate::Planner::default();
    stage.policy.tags = [("team".into(), "ops".into())].into();
    stage.settle();
    assert!(tagged(&stage, "ops"));
    assert_eq!(stage.plan().0.changes, []);
}

/// The config says something else after a restart, and an operation on a public IP has failed.
#[test]
fn public_ips_of_a_standing_egress_gateway_follow_the_config_and_are_mended() {
    let mut stage = Stage::new();
    stage.node(9, vec![node_ip(9), ip("fd00::9")]);
    stage.policy.tags = [("team".into(), "net".into())].into();
    stage.put_pod(pod(1, "team-a", 1));
    stage.settle();
    stage.planner = crate::Planner::default();
    stage.policy.tags = [("team".into(), "ops".into())].into();
    stage.calls.clear();
    stage.settle();
    stage.calls.sort();
    assert_eq!(stage.calls, ["PUT team-a", "PUT team-a-pip", "PUT team-a-pip-v6"]);
    let tagged = |ip: &Arc<PublicIp>| ip.tags.as_ref().is_some_and(|t| &*t["team"] == "ops");
    assert!(stage.ips().values().all(tagged));
    let id = stage.policy.public_ip_id(&stage.policy.group, "team-a-pip");
    let failed = public_ips_mut(&mut stage.world).get_mut(&id).expect("it was made");
    Arc::make_mut(failed).provisioning = Provisioning::Failed;
    let (plan, _) = stage.plan();
    let [change] = &plan.changes[..] else { panic!("one change: {plan:#?}") };
    assert_eq!((&change.target, change.waits.len()), (&id, 0));
}

/// Tags of other clients are no difference that the config asks to mend, unless `systemTags` does.
#[test]
fn tags_that_the_config_does_not_name_need_no_write() {
    let tags_of = |stage: &mut Stage| {
        let mut keys = Vec::new();
        edit_ip(stage, |ip| keys.extend(ip.tags.iter().flat_map(|t| t.keys().cloned())));
        keys.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let mut stage = Stage::serving(&[]);
    edit_ip(&mut stage, |ip| {
        ip.tags = Some([("aks-kept".into(), "x".into()), ("cost".into(), "x".into())].into());
    });
    stage.planner = crate::Planner::default();
    assert_eq!(stage.plan().0.changes, []);
    // The letters of a key that is there stay.
    stage.policy.tags = [("COST".into(), "x".into())].into();
    stage.planner = crate::Planner::default();
    stage.settle();
    assert_eq!(tags_of(&mut stage), ["aks-kept", "cost"]);
    stage.policy.tags.clear();
    stage.policy.system_tags = Some(vec!["AKS-".into()]);
    stage.planner = crate::Planner::default();
    stage.settle();
    assert_eq!(tags_of(&mut stage), ["aks-kept"]);
}

/// An address is taken away where it is before it is listed where it is to be.
#[test]
fn who_goes_stays_until_who_stays_is_listed() {
    let mut stage = Stage::serving(&[(10, 1), (11, 2)]);
    turn(&mut stage, 1, Membership::Draining);
    turn(&mut stage, 2, Membership::Draining);
    stage.settle();
    stage.slice("web-a", 1, &[(10, 3), (11, 2)]);
    let leads = |stage: &Stage| !stage.table().is_empty();
    for _ in 0..10 {
        stage.round();
        assert!(leads(&stage), "nobody takes the traffic");
    }
    assert_eq!(stage.table(), ["10.224.0.3 10.244.0.10 00000001"]);
}

#[test]
fn a_service_without_a_ready_pod_says_so() {
    let mut stage = Stage::serving(&[]);
    let said = |stage: &mut Stage| -> Vec<String> {
        let (_, report) = stage.plan();
        let findings = &report.services[&uid(1)].findings;
        findings.iter().map(|f| format!("{}: {}", f.rule, f.message)).collect()
    };
    let none = ["NoBackends: no Pod of the Service is ready; connections fail until one is"];
    assert_eq!(said(&mut stage), none);
    stage.slice("web-a", 1, &[(10, 1)]);
    stage.settle();
    assert_eq!(said(&mut stage), [""; 0]);
    set(&mut stage, "web-a", Readiness::Terminating);
    stage.settle();
    assert_eq!(said(&mut stage), none);
    // A Pod on a node that is not there gets no traffic.
    stage.edit_slice("web-a", |s| {
        s.endpoints[0].readiness = Readiness::Ready;
        s.endpoints[0].node = Some(NodeName::new("elsewhere"));
    });
    stage.settle();
    let said = said(&mut stage);
    assert_eq!((said.len(), said[0].as_str()), (2, none[0]), "{said:?}");
    assert!(said[1].starts_with("ServiceGatewayUnknownNode"), "{said:?}");
}

#[test]
fn a_port_edit_is_one_call() {
    let mut stage = Stage::serving(&[]);
    stage.calls.clear();
    stage.edit(1, |s| s.ports = vec![port(443, 8443)]);
    stage.settle();
    assert_eq!(stage.calls, [format!("PUT {WEB}")]);
}

#[test]
fn an_address_that_moves_is_taken_away_before_it_is_added() {
    let mut stage = Stage::asked(2);
    stage.slice("a", 1, &[(10, 1), (11, 1)]);
    stage.settle();
    // The address of Service 1's Pod is now that of a Pod of Service 2 on another node.
    stage.slice("a", 1, &[(11, 1)]);
    stage.slice("b", 2, &[(10, 2)]);
    stage.round();
    assert_eq!(stage.table(), ["10.224.0.1 10.244.0.11 00000001"]);
    stage.round();
    assert_eq!(
        stage.table(),
        ["10.224.0.1 10.244.0.11 00000001", "10.224.0.2 10.244.0.10 00000002"]
    );
}

#[test]
fn of_two_slices_with_one_address_the_newer_is_right() {
    let mut stage = Stage::asked(2);
    stage.slice("a", 1, &[(10, 1)]);
    stage.settle();
    stage.slice("b", 2, &[(10, 2)]);
    stage.settle();
    assert_eq!(stage.table(), ["10.224.0.2 10.244.0.10 00000002"]);
    // And back again: it is the time that decides, and not where the Pod is.
    stage.slice("a", 1, &[(10, 1)]);
    stage.settle();
    assert_eq!(stage.table(), ["10.224.0.1 10.244.0.10 00000001"]);
}

#[test]
fn two_slices_of_a_service_may_share_an_address() {
    let mut stage = Stage::asked(1);
    stage.slice("a", 1, &[(10, 1)]);
    stage.slice("b", 1, &[(10, 1)]);
    stage.settle();
    stage.slice("a", 1, &[]);
    stage.settle();
    assert_eq!(stage.table(), ["10.224.0.1 10.244.0.10 00000001"]);
}

#[test]
fn the_two_level_difference_is_as_small_as_it_can_be() {
    let mut stage = Stage::asked(1);
    stage.slice("a", 1, &[(10, 1), (11, 1), (20, 2)]);
    stage.settle();
    stage.slice("a", 1, &[(11, 1), (12, 1), (30, 3)]);
    let (plan, _) = stage.plan();
    let [change] = &plan.changes[..] else { panic!("one change: {plan:#?}") };
    let Action::UpdateLocations(update) = &change.action else { panic!("addresses change") };
    assert_eq!(update.action, UpdateAction::PartialUpdate);
    let lines: Vec<_> = update
        .locations
        .iter()
        .map(|l| {
            let addresses: Vec<(IpAddr, usize)> =
                l.addresses.iter().map(|(a, s)| (*a, s.len())).collect();
            (l.location, l.action, addresses)
        })
        .collect();
    let partial = UpdateAction::PartialUpdate;
    assert_eq!(
        lines,
        [
            (node_ip(1), partial, vec![(pod_ip(10), 0), (pod_ip(12), 1)]),
            (node_ip(2), partial, vec![]),
            (node_ip(3), UpdateAction::FullUpdate, vec![(pod_ip(30), 1)]),
        ]
    );
}

#[test]
fn a_node_that_is_gone_takes_its_addresses_along() {
    let mut stage = Stage::asked(1);
    stage.slice("a", 1, &[(10, 1), (20, 2)]);
    stage.settle();
    stage.world.kubernetes.nodes.remove(&NodeName::new("node-1"));
    stage.settle();
    assert_eq!(stage.table(), ["10.224.0.2 10.244.0.20 00000001"]);
    stage.node(1, vec![ip("10.224.0.9")]);
    stage.settle();
    assert_eq!(stage.table().len(), 2);
}

#[test]
fn refused_addresses_hold_back_additions_and_nothing_else() {
    let mut stage = Stage::asked(2);
    stage.slice("a", 1, &[(10, 1)]);
    stage.settle();
    let hold = hold(crate::own::pod_names::locations_table(&stage.policy), "BadRequest");
    stage.world.holds.insert(uid(1), hold);
    stage.slice("a", 1, &[(11, 2)]);
    stage.slice("b", 2, &[(12, 2)]);
    stage.edit(1, |s| s.ports = vec![port(443, 8443)]);
    stage.round();
    stage.round();
    assert_eq!(stage.table(), ["10.224.0.2 10.244.0.12 00000002"]);
    assert!(
        stage.calls.ends_with(&[])
            && stage.balancers().values().next().expect("it is there").rules[0].frontend_port
                == 443
    );
}

#[test]
fn what_a_lost_service_left_is_found_by_its_registration() {
    let mut stage = Stage::asked(1);
    stage.slice("a", 1, &[(10, 1)]);
    stage.settle();
    stage.world.kubernetes.services.clear();
    stage.settle();
    assert!(stage.balancers().is_empty() && stage.ips().is_empty());
    assert_eq!(stage.services().len(), 1);
    assert!(stage.table().is_empty());
}

#[test]
fn what_others_have_stays() {
    let mut stage = Stage::new();
    let id = stage.policy.public_ip_id(&stage.policy.group, "byo-pip");
    stage.put(service(1));
    stage.settle();
    let ours = stage.ips().values().next().expect("it was made");
    let byo = PublicIp { id: id.clone(), ..PublicIp::clone(ours) };
    public_ips_mut(&mut stage.world).insert(id, Arc::new(byo));
    leave(&mut stage, 1);
    stage.settle();
    assert_eq!(stage.ips().len(), 1);
    assert!(stage.services().contains_key("default-natgw"));
}

#[test]
fn what_others_list_in_the_table_stays() {
    let mut stage = Stage::asked(1);
    stage.slice("a", 1, &[(10, 1), (11, 1)]);
    stage.settle();
    let theirs: Arc<str> = Arc::from("default-natgw");
    let table = stage.world.azure.gateway_locations.known_mut().expect("known");
    let listed = Arc::make_mut(Arc::make_mut(table).get_mut(&node_ip(1)).expect("it is there"));
    for (n, ours) in [(10, Some(Arc::from(WEB))), (12, None)] {
        let services = ours.into_iter().chain([Arc::clone(&theirs)]).collect();
        listed.insert(pod_ip(n), Arc::new(services));
    }
    stage.slice("a", 1, &[]);
    stage.settle();
    assert_eq!(
        stage.table(),
        ["10.224.0.1 10.244.0.10 default-", "10.224.0.1 10.244.0.12 default-"]
    );
}

/// Azure may know types of services that did not exist when this was written.
#[test]
fn a_service_of_a_type_that_is_not_known_keeps_its_row_and_its_addresses() {
    use model::gateway::{Direction, GatewayService};
    let mut stage = Stage::serving(&[]);
    let row = |name: &Arc<str>| GatewayService {
        direction: Direction::Unknown,
        ..fixture::gateway_service(name)
    };
    let names: [Arc<str>; 2] = ["corp".into(), uid(2).as_str().into()];
    let rows = stage.world.azure.gateway_services.known_mut().expect("known");
    rows.extend(names.iter().map(|name| (Arc::clone(name), Arc::new(row(name)))));
    let table = stage.world.azure.gateway_locations.known_mut().expect("known");
    let at = Arc::make_mut(Arc::make_mut(table).entry(node_ip(1)).or_default());
    at.insert(pod_ip(12), Arc::new(names.iter().cloned().collect()));
    stage.calls.clear();
    stage.settle();
    assert_eq!(stage.calls, [""; 0]);
    assert_eq!(stage.table(), ["10.224.0.1 10.244.0.12 00000002,corp"]);
}

#[test]
fn a_public_ip_of_another_sku_is_left_whatever_its_name() {
    let mut stage = Stage::serving(&[]);
    stage.world.azure.balancers = Fact::Known(BTreeMap::new());
    let id = edit_ip(&mut stage, |ip| ip.sku = Sku::Standard);
    leave(&mut stage, 1);
    stage.calls.clear();
    stage.settle();
    assert_eq!(stage.calls, ["POST services"; 2], "detached, and taken off the register");
    assert!(stage.ips().contains_key(&id));
}

#[test]
fn a_public_ip_that_has_no_address_yet_is_waited_for_by_whoever_finds_it() {
    let mut stage = Stage::asked(1);
    while stage.ips().is_empty() {
        stage.round();
    }
    edit_ip(&mut stage, |ip| ip.address = None);
    let (ready, _) = stage.ready();
    assert_eq!(ready, [], "the load balancer is not made on an IP without an address");
}

#[test]
fn an_egress_gateway_comes_with_its_first_pod_and_goes_with_its_last() {
    let mut stage = Stage::new();
    stage.node(9, vec![node_ip(9), ip("fd00::9")]);
    stage.put_pod(pod(1, "team-a", 1));
    stage.put_pod(pod(2, "team-a", 2));
    stage.settle();
    assert_eq!(
        stage.calls,
        [
            "PUT team-a-pip",
            "PUT team-a-pip-v6",
            "PUT team-a",
            "POST services",
            "POST addressLocations"
        ]
    );
    assert_eq!(stage.table(), ["10.224.0.1 10.244.0.1 team-a", "10.224.0.2 10.244.0.2 team-a"]);
    stage.calls.clear();
    stage.edit_pod(1, |p| p.deletion = Deletion::Requested);
    stage.settle();
    assert_eq!(stage.calls, ["POST addressLocations"]);
    assert_eq!(stage.world.kubernetes.pods.len(), 1);
    stage.calls.clear();
    stage.edit_pod(2, |p| p.deletion = Deletion::Requested);
    stage.settle();
    assert_eq!(
        stage.calls,
        [
            "POST addressLocations",
            "POST services",
            "PUT team-a",
            "DELETE team-a",
            "DELETE team-a-pip",
            "DELETE team-a-pip-v6",
            "POST services"
        ]
    );
    assert!(stage.world.kubernetes.pods.is_empty() && stage.nats().is_empty());
}

#[test]
fn a_pod_is_not_published_before_it_has_the_finalizer() {
    let mut stage = Stage::new();
    stage.put_pod(pod(1, "team-a", 1));
    let (plan, _) = stage.plan();
    assert!(plan.changes.iter().all(|c| c.waits.contains(&Wait::Finalizer)));
    stage.settle();
    stage.put_pod(pod(2, "team-a", 1));
    let (plan, _) = stage.plan();
    assert!(plan.changes.is_empty());
    assert_eq!(plan.writes.len(), 1);
}

#[test]
fn a_pod_that_a_call_under_way_may_list_is_not_let_go() {
    let mut stage = Stage::leaving();
    stage.put_pod(pod(2, "team-a", 1));
    stage.round();
    let (calls, _) = stage.ready();
    assert!(matches!(&calls[..], [Change { action: Action::UpdateLocations(_), .. }]));
    stage.flying = calls;
    stage.edit_pod(2, |p| p.egress = None);
    assert_eq!(stage.plan().0.writes, [], "nor without its label");
    stage.edit_pod(2, |p| p.egress = Some("team-a".into()));
    stage.edit_pod(2, |p| p.deletion = Deletion::Requested);
    let (plan, _) = stage.plan();
    assert_eq!(plan.writes, [], "the call may yet list its address");
    stage.settle();
    assert_eq!(stage.table(), ["10.224.0.1 10.244.0.1 team-a"]);
    assert_eq!(stage.world.kubernetes.pods.len(), 1);
}

#[test]
fn what_is_being_registered_or_taken_away_keeps_its_addresses_as_they_are() {
    let mut stage = Stage::serving(&[(10, 1)]);
    let registers =
        |calls: &[Change]| matches!(calls, [Change { action: Action::UpdateServices(_), .. }]);
    // Its owner wants none, and then wants one again while it is being taken away.
    stage.edit(1, |s| s.wish = Wish::Nothing);
    stage.round();
    stage.flying = stage.ready().0;
    assert!(registers(&stage.flying), "{:?}", stage.flying);
    stage.edit(1, |s| s.wish = Wish::LoadBalancer);
    let (calls, writes) = stage.ready();
    assert_eq!((calls.len(), writes.len()), (0, 0), "{calls:?} {writes:?}");
    // It is registered again, and an address comes meanwhile.
    for change in std::mem::take(&mut stage.flying) {
        stage.apply(change);
    }
    let calls = stage.ready().0;
    assert!(registers(&calls), "{calls:?}");
    stage.flying = calls;
    stage.slice("web-a", 1, &[(10, 1), (11, 1)]);
    assert_eq!(stage.ready().0, [], "whether it is there is not known yet");
    stage.settle();
    let wanted = ["10.224.0.1 10.244.0.10 00000001", "10.224.0.1 10.244.0.11 00000001"];
    assert_eq!(stage.table(), wanted);
}

/// Azure has no time for the write that detaches it, and its owner wants it back meanwhile.
#[test]
fn who_comes_back_waits_no_longer_than_the_write_that_takes_it_away() {
    let mut stage = Stage::serving(&[]);
    stage.edit(1, |s| s.wish = Wish::Nothing);
    stage.flying = stage.ready().0;
    let [Change { action: Action::UpdateServices(_), .. }] = &stage.flying[..] else {
        panic!("its pool is detached first: {:?}", stage.flying)
    };
    stage.plan();
    stage.edit(1, |s| s.wish = Wish::LoadBalancer);
    let waits = |stage: &mut Stage| stage.plan().1.services[&uid(1)].waits.clone();
    assert!(matches!(waits(&mut stage)[..], [Wait::Writing(_)]), "{:?}", waits(&mut stage));
    // It has changed nothing: no fact is another than before.
    stage.flying.clear();
    assert_eq!(waits(&mut stage), []);
}

#[test]
fn a_pod_that_changes_its_gateway_is_marked_whatever_is_under_way() {
    let mut stage = Stage::new();
    stage.put_pod(pod(1, "team-a", 1));
    stage.put_pod(pod(2, "team-b", 1));
    stage.settle();
    stage.put_pod(pod(3, "team-b", 1));
    stage.round();
    stage.flying = stage.ready().0;
    assert!(!stage.flying.is_empty());
    // With marks of another gateway only, as they are told apart from a label.
    stage.edit_pod(1, |p| p.marks = BTreeSet::from([Arc::from("team-a")]));
    stage.edit_pod(1, |p| p.egress = Some("team-b".into()));
    let (plan, _) = stage.plan();
    let [write] = &plan.writes[..] else { panic!("one write: {:?}", plan.writes) };
    let Edit::Finalizers { marks: Some(marks), .. } = &write.edit else { panic!("{write:?}") };
    assert!(marks.contains("team-b"), "{marks:?}");
}

#[test]
fn the_last_pod_is_let_go_after_the_gateway() {
    let mut stage = Stage::leaving();
    stage.edit_pod(1, |p| p.phase = PodPhase::Ended);
    while !stage.nats().is_empty() || !stage.ips().is_empty() {
        let pod = stage.world.kubernetes.pods.values().next().expect("it is there");
        assert!(pod.finalizers.contains(POD_FINALIZER));
        assert!(!stage.round().is_empty());
    }
    stage.settle();
    let pod = stage.world.kubernetes.pods.values().next().expect("it is there");
    assert!(pod.finalizers.is_empty());
}

/// A process may die between two writes to Pods: until another one is marked, the last mark stays.
#[test]
fn a_gateway_passes_from_one_pod_to_another_without_a_moment_that_nobody_is_marked() {
    for relabelled in [false, true] {
        let mut stage = Stage::new();
        stage.put_pod(pod(1, "team-a", 1));
        while stage.ips().is_empty() {
            stage.round();
        }
        // It was not published yet: nothing but the mark keeps it.
        stage.edit_pod(1, |p| {
            if relabelled {
                p.egress = Some("team-b".into());
            } else {
                p.phase = PodPhase::Ended;
            }
        });
        stage.put_pod(pod(2, "team-a", 2));
        for _ in 0..20 {
            let (plan, _) = stage.plan();
            let pods = stage.world.kubernetes.pods.values();
            let marked = pods.filter(|p| p.marks.contains("team-a")).count();
            let drops = |w: &&KubernetesWrite| match &w.edit {
                Edit::Finalizers { marks: Some(marks), .. } => {
                    let Object::Pod { name, .. } = &w.object else { return false };
                    let marked = &stage.world.kubernetes.pods[name].marks;
                    marked.contains("team-a") && !marks.contains("team-a")
                }
                _ => false,
            };
            let dropped = plan.writes.iter().filter(drops).count();
            assert!(marked > dropped, "{marked} are marked, {dropped} of them not for long");
            stage.round();
        }
        stage.settle();
        let pods = stage.world.kubernetes.pods.values();
        let marked: Vec<&str> =
            pods.filter(|p| p.marks.contains("team-a")).map(|p| &*p.name.name).collect();
        assert_eq!(marked, ["pod-2"]);
    }
}

#[test]
fn a_pod_that_changes_its_address_keeps_its_gateway() {
    let mut stage = Stage::leaving();
    stage.calls.clear();
    stage.edit_pod(1, |p| p.addresses.clear());
    stage.settle();
    stage.edit_pod(1, |p| p.addresses = vec![pod_ip(77)]);
    stage.settle();
    assert_eq!(stage.calls, ["POST addressLocations", "POST addressLocations"]);
    assert_eq!(stage.table(), ["10.224.0.1 10.244.0.77 team-a"]);
}

/// `kubectl delete pods --all`: the new Pods are there at once, and have an address later.
#[test]
fn a_gateway_whose_pods_are_all_replaced_keeps_its_address() {
    let mut stage = Stage::leaving();
    let before = stage.ips().clone();
    stage.calls.clear();
    let (addresses, hosts) = (Vec::new(), Vec::new());
    stage.put_pod(Pod { addresses, hosts, ..pod(2, "team-a", 2) });
    stage.edit_pod(1, |p| p.deletion = Deletion::Requested);
    stage.settle();
    let pods = stage.world.kubernetes.pods.values();
    let marked: Vec<&str> =
        pods.filter(|p| p.marks.contains("team-a")).map(|p| &*p.name.name).collect();
    assert_eq!(marked, ["pod-2"], "the old one waits for no address of the new one");
    assert_eq!(stage.world.kubernetes.pods.len(), 1);
    stage.edit_pod(2, |p| (p.addresses, p.hosts) = (vec![pod_ip(2)], vec![node_ip(2)]));
    stage.settle();
    assert_eq!(stage.calls, ["POST addressLocations", "POST addressLocations"]);
    assert_eq!(stage.table(), ["10.224.0.2 10.244.0.2 team-a"]);
    assert_eq!(stage.ips(), &before);
}

/// A Pod without an address makes no gateway: nobody knows yet on which node it will be.
#[test]
fn no_gateway_is_made_for_a_pod_without_an_address() {
    let mut stage = Stage::new();
    stage.put_pod(Pod { addresses: Vec::new(), hosts: Vec::new(), ..pod(1, "team-a", 1) });
    let (plan, _) = stage.plan();
    assert_eq!((plan.changes.len(), plan.writes.len()), (0, 0), "{plan:?}");
}

#[test]
fn a_pod_may_be_reached_and_leave_at_the_same_address() {
    let mut stage = Stage::asked(1);
    stage.slice("a", 1, &[(1, 1)]);
    stage.put_pod(pod(1, "team-a", 1));
    stage.settle();
    assert_eq!(stage.table(), ["10.224.0.1 10.244.0.1 00000001,team-a"]);
    stage.edit_pod(1, |p| p.egress = None);
    stage.settle();
    assert_eq!(stage.table(), ["10.224.0.1 10.244.0.1 00000001"]);
    let pod = stage.world.kubernetes.pods.values().next().expect("it is there");
    assert!(pod.finalizers.is_empty());
}

/// The kubelet tells a Pod one of its node's addresses; the node's place in the table may be under
/// another one. So it is for a Pod that has its node's network.
#[test]
fn a_pod_on_a_node_with_several_addresses_is_at_one_location() {
    let mut stage = Stage::new();
    stage.node(1, vec![node_ip(9), node_ip(10)]);
    stage.put(service(1));
    stage.slice("a", 1, &[(1, 1)]);
    stage.put_pod(pod(1, "team-a", 9));
    stage.settle();
    assert_eq!(stage.table(), ["10.224.0.10 10.244.0.1 00000001,team-a"]);
    stage.edit_slice("a", |slice| slice.endpoints[0].address = node_ip(9));
    stage.edit_pod(1, |pod| pod.addresses = vec![node_ip(9)]);
    stage.settle();
    assert_eq!(stage.table(), ["10.224.0.10 10.224.0.9 00000001,team-a"]);
}

/// The controller's identity may have no right to read them, or Azure does not answer.
#[test]
fn services_are_served_while_nat_gateways_are_not_known() {
    let unknown = [Fact::Unknown, Fact::Unreadable("AuthorizationFailed".into())];
    for (unknown, needs) in unknown.into_iter().zip([1, 0]) {
        let mut stage = Stage::leaving();
        let known = std::mem::replace(&mut stage.world.azure.nat_gateways, unknown);
        stage.planner = crate::Planner::default();
        stage.put(service(1));
        stage.slice("web-a", 1, &[(10, 1)]);
        stage.put_pod(pod(2, "team-b", 2));
        stage.edit_pod(1, |p| p.deletion = Deletion::Requested);
        stage.calls.clear();
        stage.settle();
        assert_eq!(stage.table(), ["10.224.0.1 10.244.0.10 00000001"]);
        let (_, report) = stage.plan();
        assert_eq!(report.services[&uid(1)].state, State::Programmed);
        assert_eq!((report.needs.len(), report.findings.len()), (needs, 1 - needs));
        let held = |n: u8| {
            let name = ServiceName::new("default", format!("pod-{n}"));
            stage.world.kubernetes.pods[&name].finalizers.contains(POD_FINALIZER)
        };
        assert_eq!((held(1), held(2)), (true, false), "the gateway may stand");
        stage.world.azure.nat_gateways = known;
        stage.settle();
        let lines = ["10.224.0.1 10.244.0.10 00000001", "10.224.0.2 10.244.0.2 team-b"];
        assert_eq!(stage.table(), lines);
        assert_eq!((stage.nats().len(), stage.world.kubernetes.pods.len()), (1, 1));
    }
}

#[test]
fn labels_that_cannot_be_names_are_said_and_do_nothing() {
    let mut stage = Stage::new();
    stage.put(service(5));
    for (n, label) in [(1, "default-natgw"), (2, "a/b"), (3, "-x"), (4, uid(5).as_str())] {
        stage.put_pod(pod(n, label, 1));
    }
    stage.settle();
    assert!(stage.nats().is_empty());
    let (_, report) = stage.plan();
    let rule = |n: u8| report.pods[&ServiceName::new("default", format!("pod-{n}"))][0].rule;
    assert_eq!(rule(1), "ServiceGatewayReservedEgressLabel");
    for n in [2, 3, 4] {
        assert_eq!(rule(n), "ServiceGatewayInvalidEgressLabel");
    }
}

#[test]
fn a_nat_gateway_that_is_not_ours_is_not_taken() {
    let mut stage = Stage::leaving();
    let (id, nat) = stage.nats().iter().next().expect("it was made");
    let foreign = NatGateway {
        id: stage.policy.network_id(&stage.policy.group, "natGateways", "shared"),
        gateway: None,
        ..NatGateway::clone(nat)
    };
    assert_eq!(id.name(), "team-a");
    let all = stage.world.azure.nat_gateways.known_mut().expect("known");
    all.insert(foreign.id.clone(), Arc::new(foreign));
    stage.put_pod(pod(2, "shared", 1));
    stage.calls.clear();
    stage.settle();
    assert!(stage.calls.is_empty());
    let (_, report) = stage.plan();
    assert_eq!(report.pods.values().next().expect("said")[0].rule, "ServiceGatewayEgressNameTaken");
}

/// The cluster's way out may have any name: a Pod that asks for it by its label must not get it.
#[test]
fn a_nat_gateway_that_a_service_of_others_leads_to_is_not_taken() {
    for name in ["way-out", "shared"] {
        let mut stage = Stage::leaving();
        let ours = stage.nats().values().next().expect("it was made");
        let id = stage.policy.network_id(&stage.policy.group, "natGateways", "shared");
        let shared = NatGateway { id: id.clone(), ..NatGateway::clone(ours) };
        let all = stage.world.azure.nat_gateways.known_mut().expect("known");
        all.insert(id.clone(), Arc::new(shared));
        let row = GatewayService {
            direction: Direction::Outbound,
            default: DefaultService::Yes,
            nat_gateway: Some(id),
            ..fixture::gateway_service(name)
        };
        let rows = stage.world.azure.gateway_services.known_mut().expect("known");
        rows.insert(name.into(), Arc::new(row.clone()));
        stage.calls.clear();
        stage.put_pod(pod(2, "shared", 1));
        stage.settle();
        let (_, report) = stage.plan();
        let found = report.pods.values().next().expect("said");
        assert_eq!(found[0].rule, "ServiceGatewayEgressNameTaken");
        stage.edit_pod(2, |p| p.deletion = Deletion::Requested);
        stage.settle();
        assert_eq!(stage.calls, Vec::<String>::new(), "{name}");
        assert_eq!(*stage.services()[name], row);
    }
}

/// Whoever made it for later keeps it: no Pod was marked before it stood.
#[test]
fn a_public_ip_that_stands_before_any_pod_is_marked_is_neither_used_nor_deleted() {
    let mut stage = Stage::leaving();
    let id = stage.policy.public_ip_id(&stage.policy.group, "later-pip");
    let ours = stage.ips().values().next().expect("it was made");
    let theirs = PublicIp { id: id.clone(), ..PublicIp::clone(ours) };
    public_ips_mut(&mut stage.world).insert(id.clone(), Arc::new(theirs));
    stage.calls.clear();
    stage.put_pod(pod(2, "later", 1));
    stage.settle();
    let (_, report) = stage.plan();
    assert_eq!(report.pods.values().next().expect("said")[0].rule, "ServiceGatewayEgressNameTaken");
    stage.edit_pod(2, |p| p.deletion = Deletion::Requested);
    stage.settle();
    assert_eq!(stage.calls, Vec::<String>::new());
    assert!(stage.ips().contains_key(&id));
}

#[test]
fn a_gateway_set_aside_leaves_others_alone() {
    let mut stage = Stage::new();
    stage.put_pod(pod(1, "team-a", 1));
    stage.put_pod(pod(2, "team-b", 1));
    let hold = hold(
        stage.policy.network_id(&stage.policy.group, "natGateways", "team-a"),
        "QuotaExceeded",
    );
    stage.world.holds.insert(ServiceUid::new("team-a"), hold);
    for _ in 0..8 {
        stage.round();
    }
    assert_eq!(stage.table(), ["10.224.0.1 10.244.0.2 team-b"]);
}

#[test]
fn a_table_larger_than_a_call_is_written_in_several() {
    use super::super::addresses::ENTRIES_PER_CALL;
    let mut stage = Stage::new();
    let owners = 1 + u8::try_from(ENTRIES_PER_CALL / 2 / 250).expect("it is small");
    for n in 1..=owners {
        stage.put(service(n));
    }
    stage.settle();
    let mut slices = Vec::new();
    for n in 1..=owners {
        for m in 0..250_u8 {
            slices.push((n, IpAddr::from([10, 245, n, m])));
        }
    }
    for (n, address) in slices {
        let name = ServiceName::new("default", format!("big-{n}"));
        stage.slice(&format!("one-{n}"), n, &[(1, 1)]);
        let one = &stage.world.kubernetes.slices[&ServiceName::new("default", format!("one-{n}"))];
        let mut slice = model::kubernetes::EndpointSlice::clone(one);
        let endpoint = model::kubernetes::Endpoint { address, ..slice.endpoints[0].clone() };
        if let Some(old) = stage.world.kubernetes.slices.get(&name) {
            slice.endpoints.clone_from(&old.endpoints);
        } else {
            slice.endpoints.clear();
        }
        slice.endpoints.push(endpoint);
        slice.name = name.clone();
        stage.world.kubernetes.slices.insert(name, Arc::new(slice));
    }
    stage.calls.clear();
    stage.settle();
    assert_eq!(stage.calls, ["POST addressLocations"; 2]);
    let all: BTreeSet<IpAddr> =
        stage.locations().values().flat_map(|a| a.keys().copied()).collect();
    assert_eq!(all.len(), usize::from(owners) * 250 + 1);
}

#[test]
fn public_ip_bodies_have_the_recorded_shape() {
    let mut stage = Stage::asked(1);
    let (plan, _) = stage.plan();
    let puts = plan.changes.iter().filter_map(|c| match &c.action {
        Action::Put { before: None, after: Resource::PublicIp(ip) } => Some(ip),
        _ => None,
    });
    let ip = puts.into_iter().next().expect("a public IP is planned");
    assert_eq!(ip.id.name(), format!("{WEB}-pip"));
    assert_eq!(ip.allocation, model::azure::Allocation::Static);
    assert!(ip.tags.is_none() && ip.zones.is_empty());
}

#[test]
fn a_slice_without_an_owner_counts_once_its_service_comes() {
    let mut stage = Stage::new();
    stage.slice("by-hand", 1, &[(1, 1)]);
    stage.edit_slice("by-hand", |slice| {
        (slice.owner, slice.service) = (None, Some(service(1).name));
    });
    stage.settle();
    assert_eq!(stage.table(), Vec::<String>::new());
    stage.put(service(1));
    stage.settle();
    assert_eq!(stage.table().len(), 1, "{:?}", stage.table());
}

#[test]
fn nothing_is_registered_while_its_load_balancer_is_written() {
    let mut stage = Stage::asked(1);
    let balancer = stage.policy.balancer_id(uid(1).as_str());
    let written = loop {
        let changes = stage.round();
        if let Some(change) = changes.into_iter().find(|change| change.target == balancer) {
            break change;
        }
    };
    let sendable = |stage: &mut Stage| stage.ready().0.len();
    assert_eq!(sendable(&mut stage), 1, "the registration");
    stage.flying.push(written);
    assert_eq!(sendable(&mut stage), 0);
}

#[test]
fn what_appears_of_the_other_kind_is_seen_at_once() {
    let mut stage = Stage::serving(&[(1, 1)]);
    let stands = |stage: &mut Stage| {
        let (_, report) = stage.plan();
        report.findings.iter().any(|finding| finding.rule == crate::OTHER_LAYOUT_STANDS)
    };
    assert!(!stands(&mut stage) && !stands(&mut stage));
    let theirs = fixture::balancer();
    let all = stage.world.azure.balancers.known_mut().expect("known");
    all.insert(theirs.id.clone(), Arc::new(theirs.clone()));
    assert!(stands(&mut stage) && stands(&mut stage));
    stage.world.azure.balancers.known_mut().expect("known").remove(&theirs.id);
    assert!(!stands(&mut stage) && !stands(&mut stage));
    // A public IP that another cluster could have made is this one's once its UID is known.
    let tags = [("k8s-azure-service", "a/b"), ("k8s-azure-cluster-name", "kubernetes")];
    let tags = tags.into_iter().chain([("ballast-cluster-uid", "cluster")]);
    let theirs = PublicIp {
        tags: Some(tags.map(|(key, value)| (Arc::from(key), Arc::from(value))).collect()),
        ..fixture::public_ip("kubernetes-b", None)
    };
    public_ips_mut(&mut stage.world).insert(theirs.id.clone(), Arc::new(theirs));
    assert!(!stands(&mut stage) && !stands(&mut stage));
    stage.world.kubernetes.cluster_uid = Some("cluster".into());
    assert!(stands(&mut stage) && stands(&mut stage));
}
