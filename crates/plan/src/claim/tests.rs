//! Who is refused what another has.

use crate::ask::annotation::{PAUSE, SHARE};
use crate::shape::stage::{change, internal, planned, policy, public, settled, uid, world};
use explain::forecast::settle;
use fixture::{public_ips_mut, service_mut};
use ipnet::IpNet;
use model::azure::PublicIp;
use model::kubernetes::{Ingress, Node, Service, ServicePort, TrafficPolicy, Wish};
use model::ledger::{DESTINATION_BYTES, encode};
use model::plan::{Edit, Object};
use model::policy::{Layout, PoolKind, Tenancy};
use model::report::{Finding, Severity, Wait};
use model::world::{Fact, Kind, Need};
use model::{Family, Group, Policy, ServiceName, World};
use plan_check::check;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

const MORE: &str = "azure-additional-public-ips";

pub(crate) fn add(world: &mut World, service: Service) {
    world.kubernetes.services.insert(service.uid.clone(), Arc::new(service));
}

pub(crate) fn findings(
    world: &World,
    policy: &Policy,
    n: u16,
    severity: Severity,
) -> Vec<(String, String)> {
    let (plan, report) = crate::plan(world, policy);
    assert_eq!(check(world, policy, &plan), []);
    let all = report.services[&uid(n)].findings.iter().filter(|f| f.severity == severity);
    all.map(|f| (f.rule.to_owned(), f.value.to_string())).collect()
}

pub(crate) fn refusals(world: &World, policy: &Policy, n: u16) -> Vec<(String, String)> {
    findings(world, policy, n, Severity::Refusal)
}

#[test]
fn what_others_have_is_no_additional_address() {
    let (mut world, web) = (world(Vec::new()), fixture::world());
    world.azure.balancers = web.azure.balancers;
    world.azure.public_ips = web.azure.public_ips;
    world.azure.security_group = web.azure.security_group;
    world.kubernetes.services = web.kubernetes.services;
    for node in world.kubernetes.nodes.values_mut() {
        let range: IpNet = "20.200.0.0/24".parse().expect("a range");
        *node = Arc::new(Node { ranges: vec![range], ..Node::clone(node) });
    }
    service_mut(&mut world, &uid(1)).cluster_ips = vec![[20, 201, 0, 1].into()];
    let (frontend, node) = ("20.1.2.3", "10.224.0.4");
    let listed = Policy {
        additional_addresses: Some(vec!["0.0.0.0/0".parse().expect("a range")]),
        ..policy()
    };
    for address in [frontend, node, "20.200.0.9", "20.201.0.1", "10.224.200.200"] {
        add(&mut world, public(2, "default", &[(MORE, address)]));
        let taken = [("AdditionalAddressTaken".to_owned(), address.to_owned())];
        assert_eq!(refusals(&world, &listed, 2), taken, "also where the config lists it");
    }
    let own = fixture::claimed(fixture::service(&[(MORE, frontend)]));
    let ingress = world.kubernetes.services[&uid(1)].ingress.clone();
    add(&mut world, Service { ingress, ..own });
    add(&mut world, public(2, "default", &[(MORE, "20.9.9.9,20.200.1.1")]));
    assert_eq!((refusals(&world, &listed, 1), refusals(&world, &listed, 2)), (vec![], vec![]));
    let (_, report) = crate::plan(&world, &listed);
    assert_eq!(report.services[&uid(1)].addresses, [Arc::from(frontend)], "its own, once");
}

#[test]
fn an_additional_address_is_one_namespaces() {
    let mut world = world(vec![
        public(2, "theirs", &[(MORE, "20.9.9.9")]),
        public(1, "ours", &[(MORE, "20.9.9.9")]),
        public(3, "ours", &[(MORE, "20.9.9.9")]),
    ]);
    let taken = || vec![("AdditionalAddressTaken".to_owned(), "20.9.9.9".to_owned())];
    let all = |world: &World, policy: &Policy| [1, 2, 3].map(|n| refusals(world, policy, n));
    assert_eq!(all(&world, &policy()), [vec![], taken(), vec![]], "the first UID decides");
    service_mut(&mut world, &uid(2)).ingress =
        vec![Ingress { ip: Some("20.9.9.9".into()), hostname: None }];
    assert_eq!(all(&world, &policy()), [taken(), vec![], taken()], "then the status does");
    let shared = Policy {
        additional_addresses: Some(vec!["20.9.9.0/24".parse().expect("a range")]),
        ..policy()
    };
    assert_eq!(all(&world, &shared), [vec![], vec![], vec![]], "the config allows it for all");
}

/// A public IP that was brought, with a label.
pub(crate) fn bring(world: &mut World, name: &str, tags: &[(&str, &str)]) {
    let tags = tags.iter().map(|(k, v)| (Arc::from(*k), Arc::from(*v))).collect();
    let ip = PublicIp {
        tags: Some(tags),
        dns_label: Some("netops".into()),
        ..fixture::public_ip(name, Some([20, 50, 0, 1].into()))
    };
    public_ips_mut(world).insert(ip.id.clone(), Arc::new(ip));
}

pub(crate) fn brought<'w>(world: &'w World, name: &str) -> &'w PublicIp {
    let all = world.azure.public_ips[&policy().group].known().expect("read");
    &all[&policy().public_ip_id(&policy().group, name)]
}

pub(crate) const NAMED: (&str, &str) = ("azure-pip-name", "byo");

#[test]
fn only_the_first_service_labels_a_public_ip_that_was_brought() {
    let later = [NAMED, ("azure-dns-label-name", "later"), ("azure-pip-tags", "owner=later")];
    let lets = (SHARE, "*");
    let first = [NAMED, lets, ("azure-dns-label-name", "first")];
    let mut world = world(vec![public(1, "b", &later), public(2, "a", &[NAMED, lets])]);
    bring(&mut world, "byo", &[("owner", "netops")]);
    let before = brought(&world, "byo").clone();
    let mut world = settled(world);
    let ip = brought(&world, "byo");
    assert_eq!((&ip.dns_label, &ip.tags), (&before.dns_label, &before.tags));
    let noted = findings(&world, &policy(), 1, Severity::Note);
    let rule = || "PublicIpOptionsIgnored".to_owned();
    assert_eq!(noted, [(rule(), "later".to_owned()), (rule(), "owner=later".to_owned())]);
    // It stands on the frontend of the first; a name or UID that is lower changes nothing.
    add(&mut world, public(0, "0", &later));
    let ingress = world.kubernetes.services[&uid(2)].ingress.clone();
    add(&mut world, Service { ingress, ..public(2, "a", &first) });
    let world = settled(world);
    assert_eq!(brought(&world, "byo").dns_label.as_deref(), Some("first"));
}

#[test]
fn a_label_that_the_service_did_not_set_stays() {
    for tags in [
        &[][..],
        &[("service", "dns")],
        &[("k8s-azure-cluster-name", "other"), ("k8s-azure-service", "default/web-1")],
    ] {
        let empty = [NAMED, ("azure-dns-label-name", ""), ("azure-pip-tags", "owner=evil")];
        let mut world = world(vec![public(1, "default", &empty)]);
        bring(&mut world, "byo", tags);
        let before = brought(&world, "byo").clone();
        let world = settled(world);
        let ip = brought(&world, "byo");
        assert_eq!((&ip.dns_label, &ip.tags), (&before.dns_label, &before.tags), "{tags:?}");
    }
}

#[test]
fn the_configs_tags_win_and_reserved_ones_do_not_count() {
    let reserved = "k8s-azure-service=x,service=y,kubernetes-cluster-name=z,\
        Kubernetes-DNS-Label-Service=u,aks-managed-cluster=v";
    let tags = format!("Owner=me,team=net,{reserved}");
    let policy = Policy { tags: BTreeMap::from([("owner".into(), "netops".into())]), ..policy() };
    let world = world(vec![public(1, "default", &[("azure-pip-tags", &tags)])]);
    let notes = findings(&world, &policy, 1, Severity::Note);
    let count = |rule: &str| notes.iter().filter(|(name, _)| name == rule).count();
    assert_eq!((count("ReservedTag"), count("OverriddenTag")), (5, 1), "{notes:?}");
    let (world, _) = settle(world, &policy);
    let all = world.azure.public_ips[&policy.group].known().expect("read");
    let tags = all.values().next().and_then(|ip| ip.tags.as_ref()).expect("it has tags");
    let tags: Vec<String> = tags.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let own = ["k8s-azure-cluster-name=kubernetes", "k8s-azure-service=default/web-1"];
    assert_eq!(tags, [own[0], own[1], "owner=netops", "team=net"]);
}

fn several() -> Policy {
    let layout = Layout::Several(vec![
        fixture::load_balancer_config("prod-eu", "prod-eu"),
        fixture::load_balancer_config("lb2", "lb2"),
    ]);
    Policy { cluster: "prod-eu".into(), layout, pools: PoolKind::NodeIp, ..policy() }
}

fn local(n: u16, namespace: &str, name: &str) -> Service {
    let service = public(n, namespace, &[]);
    Service {
        name: ServiceName::new(namespace, name),
        traffic_policy: TrafficPolicy::Local,
        health_check_node_port: Some(32_000 + n),
        ..service
    }
}

fn divided(services: Vec<Service>) -> World {
    let mut world = world(services);
    world.kubernetes.complete.extend([Kind::EndpointSlices, Kind::Namespaces]);
    world.azure.virtual_machines = Fact::Known(BTreeMap::new());
    world
}

#[test]
fn no_two_services_have_one_pool() {
    let taken = |name: &str| vec![("PoolNameTaken".to_owned(), name.to_owned())];
    let mut world = divided(vec![local(2, "a", "b-c")]);
    assert_eq!(refusals(&world, &several(), 2), []);
    (world, _) = settle(world, &several());
    // What stands goes before a lower UID.
    add(&mut world, local(1, "a-b", "c"));
    assert_eq!(refusals(&world, &several(), 1), taken("a-b/c"));
    assert_eq!(refusals(&world, &several(), 2), []);
    let world = divided(vec![local(2, "a", "b-c"), local(1, "a-b", "c")]);
    assert_eq!(refusals(&world, &several(), 1), []);
    assert_eq!(refusals(&world, &several(), 2), taken("a/b-c"));
    let six = |service| Service { families: vec![Family::V6], ..service };
    for own in [local(1, "prod", "eu"), local(1, "prod", "eu-ipv6"), six(local(1, "prod", "eu"))] {
        let name = own.name.to_string();
        assert_eq!(refusals(&divided(vec![own]), &several(), 1), taken(&name));
    }
    // One load balancer has one pool for all.
    let world = divided(vec![local(1, "prod", "eu")]);
    let single = Policy { layout: Layout::Single, ..several() };
    assert_eq!(refusals(&world, &single, 1), []);
}

/// With each edit an owner may name a resource group that has not been read: the others go on, and
/// so does the departure of others. Whoever names it keeps what it has until it is read.
#[test]
fn nobody_waits_for_a_resource_group_that_another_names() {
    let far = || Group::new("far");
    let ips = public(2, "b", &[("azure-load-balancer-resource-group", "far")]);
    let link = [("azure-pls-create", "true"), ("azure-pls-resource-group", "far")];
    let gone = Service { wish: Wish::Nothing, ..ips.clone() };
    let strict =
        Policy { tenancy: Tenancy { groups: Some(Vec::new()), ..Tenancy::default() }, ..policy() };
    for (policy, before, after, need) in [
        (policy(), public(2, "b", &[]), ips.clone(), Some(Need::PublicIps(far()))),
        (policy(), public(2, "b", &[]), gone, Some(Need::PublicIps(far()))),
        (policy(), internal(2, 82, &[]), internal(2, 82, &link), Some(Need::PrivateLinks(far()))),
        (strict, public(2, "b", &[]), ips, None),
    ] {
        let mut world = settled(world(vec![before, public(3, "c", &[])]));
        change(&mut world, after);
        service_mut(&mut world, &uid(3)).wish = Wish::Nothing;
        add(&mut world, public(1, "a", &[]));
        let (plan, report) = crate::plan(&world, &policy);
        assert_eq!(check(&world, &policy, &plan), []);
        let is_for = |n: u16| plan.changes.iter().any(|c| c.causes.contains(&uid(n)));
        assert_eq!((is_for(1), is_for(2), is_for(3)), (true, false, true), "{report:#?}");
        let reading = need.clone().map(Wait::Reading);
        let others = [1, 3].map(|n| &report.services[&uid(n)].waits);
        assert!(others.iter().all(|w| !w.iter().any(|w| Some(w) == reading.as_ref())));
        assert!(need.is_none_or(|need| report.needs.contains(&need)), "{:?}", report.needs);
    }
}

/// Services of one namespace claim the same addresses at the same port: that is one rule of the
/// group, and in the ledger each has all of them. A ConfigMap takes a megabyte, notes included;
/// were it full nothing would be opened for any Service.
#[test]
fn one_namespace_does_not_fill_the_ledger() {
    let first = u32::from(Ipv4Addr::new(20, 100, 0, 0));
    let more: Vec<String> = (0..3_000).map(|n| Ipv4Addr::from(first + n).to_string()).collect();
    let more = more.join(",");
    let greedy = |n: u16| {
        let service = public(n, "b", &[(MORE, &more)]);
        let ports = vec![ServicePort { port: 443, ..service.ports[0].clone() }];
        Service { ports, ..service }
    };
    let mut all: Vec<Service> = (1..=30).map(greedy).collect();
    all.push(public(31, "a", &[]));
    let (world, report) = settle(world(all), &policy());
    let ledger = world.kubernetes.ledger.known().expect("it is made");
    assert!(encode(&ledger.destinations).len() <= DESTINATION_BYTES);
    let small = &report.services[&uid(31)];
    let [address] = &small.addresses[..] else { panic!("{small:#?}") };
    assert!(ledger.has(address.parse().expect("an address")), "{small:#?}");
    let refused = (1..=30).flat_map(|n| &report.services[&uid(n)].findings);
    let refused: Vec<_> = refused.filter(|f| f.severity == Severity::Refusal).collect();
    assert!(!refused.is_empty());
    let told = |f: &&Finding| f.rule == "SecurityRuleLimit" && f.value.ends_with("of the ledger");
    assert!(refused.iter().all(told), "{refused:#?}");
}

#[test]
fn a_pinned_address_is_noted_where_the_public_ip_that_is_named_has_another() {
    for (pinned, noted) in [("20.50.0.1", None), ("20.50.0.9", Some("20.50.0.9"))] {
        let pin = ("azure-load-balancer-ipv4", pinned);
        let mut world = world(vec![public(1, "default", &[NAMED, pin])]);
        bring(&mut world, "byo", &[]);
        let found = findings(&settled(world), &policy(), 1, Severity::Note);
        let wanted = noted.map(|value| ("UnusedPinnedAddress".to_owned(), value.to_owned()));
        assert_eq!(found, Vec::from_iter(wanted));
    }
}

/// Both Services are new: admitted, the first would be refused once the other has its frontend.
#[test]
fn a_public_ip_that_another_service_names_is_no_additional_address() {
    let first = public(1, "default", &[(MORE, "20.50.0.1")]);
    let mut world = world(vec![first, public(2, "default", &[NAMED])]);
    bring(&mut world, "byo", &[]);
    let taken = [("AdditionalAddressTaken".to_owned(), "20.50.0.1".to_owned())];
    assert_eq!(refusals(&world, &policy(), 1), taken);
    assert!(refusals(&world, &policy(), 2).is_empty());
    // Nor does it where the cloud config does not allow the name.
    let mut strict = policy();
    strict.tenancy.public_ips = Some(Vec::new());
    assert!(refusals(&world, &strict, 1).is_empty());
    // Naming a public IP does not take its address from a Service that has it.
    service_mut(&mut world, &uid(1)).ingress =
        vec![Ingress { ip: Some("20.50.0.1".into()), hostname: None }];
    assert!(refusals(&world, &policy(), 1).is_empty());
}

/// Its owner took the annotation off while the Service was paused, so none asks for an additional
/// address any more; what the status still tells is another's frontend by now, and kube-proxy would
/// lead what is sent there to the wrong Service.
#[test]
fn a_paused_service_stops_telling_what_is_anothers_by_now() {
    let mut world = settled(world(vec![public(1, "a", &[]), public(2, "b", &[])]));
    let theirs = world.kubernetes.services[&uid(1)].ingress.clone();
    let own = world.kubernetes.services[&uid(2)].ingress.clone();
    assert_ne!(own, theirs);
    let ingress = own.iter().chain(&theirs).cloned().collect();
    add(&mut world, Service { ingress, ..public(2, "b", &[(PAUSE, "true")]) });
    let (plan, _) = planned(&world);
    let told = plan.writes.iter().find_map(|write| match (&write.object, &write.edit) {
        (Object::Service { uid: of, .. }, Edit::Status { ingress, .. }) if *of == uid(2) => {
            ingress.as_ref()
        }
        _ => None,
    });
    assert_eq!(told, Some(&own));
}

/// A key that is not on the Service would not help its owner to correct it.
#[test]
fn a_refusal_names_the_key_by_which_the_service_names_its_address() {
    let six = |annotation| Service {
        families: vec![Family::V6],
        ..public(1, "default", &[(annotation, "far")])
    };
    let plain = public(1, "default", &[]);
    let field = Service { load_balancer_ip: Some("20.9.9.9".into()), ..plain };
    let annotated = public(1, "default", &[("azure-load-balancer-ipv4", "20.9.9.9")]);
    for (service, key) in [
        (six("azure-pip-name"), "service.beta.kubernetes.io/azure-pip-name"),
        (six("azure-pip-name-ipv6"), "service.beta.kubernetes.io/azure-pip-name-ipv6"),
        (field, "spec.loadBalancerIP"),
        (annotated, "service.beta.kubernetes.io/azure-load-balancer-ipv4"),
    ] {
        let (_, report) = planned(&world(vec![service]));
        let found = report.services[&uid(1)].findings.iter();
        let keys: Vec<&str> =
            found.filter(|f| f.severity == Severity::Refusal).map(|f| &*f.key).collect();
        assert_eq!(keys, [key]);
    }
}
