//! Tests of Private Link Services: the whole way, from the first read to the last.

use super::*;
use explain::forecast::{Forecast, forecast};
use fixture::{in_flight, uid};
use model::azure::{
    ConnectionState, LoadBalancer, PrivateEndpointConnection, PrivateLinkRank, Provisioning,
};
use model::kubernetes::{SERVICE_FINALIZER, Service, Wish};
use model::plan::{Action, Change, Resource};
use model::policy::PoolKind;
use model::report::State;
use model::world::Kind;
use model::{Policy, World};

const INTERNAL: (&str, &str) = ("azure-load-balancer-internal", "true");
const ASKED: (&str, &str) = (CREATE, "true");

fn policy() -> Policy {
    Policy { pools: PoolKind::NodeNic, ..fixture::bare_policy() }
}

fn service(n: u8, annotations: &[(&str, &str)]) -> Service {
    let mut service = fixture::numbered(n, annotations);
    service.ports[0].port = 80 + u16::from(n);
    service
}

fn subnet(name: &str) -> Subnet {
    fixture::subnet(name, "10.0.0.0/8")
}

fn set_owner(link: &mut PrivateLinkService, owner: &str) {
    let tags = link.tags.get_or_insert_default();
    tags.insert("k8s-azure-owner-service".into(), owner.into());
}

/// A world in which everything has been read.
fn world(services: Vec<Service>) -> World {
    let mut world = World::default();
    world.kubernetes.nodes = fixture::world().kubernetes.nodes;
    world.kubernetes.complete = [Kind::Services, Kind::Nodes].into();
    for service in services {
        world.kubernetes.services.insert(service.uid.clone(), Arc::new(service));
    }
    let azure = &mut world.azure;
    azure.balancers = Fact::Known(BTreeMap::new());
    azure.public_ips.insert(Group::new("rg"), Fact::Known(BTreeMap::new()));
    azure.private_links.insert(Group::new("rg"), Fact::Known(BTreeMap::new()));
    azure.zones = Fact::Known(Vec::new());
    azure.scale_sets = Fact::Known(BTreeMap::new());
    for name in ["nodes", "apps"] {
        let subnet = subnet(name);
        azure.subnets.insert(subnet.id.clone(), Fact::Known(Some(Arc::new(subnet))));
    }
    world
}

/// Carries out a forecast: what Azure would hold then.
fn carry_out(world: &mut World, forecast: &Forecast) {
    for change in &forecast.changes {
        let azure = &mut world.azure;
        let links = azure.private_links.get_mut(&Group::new("rg")).and_then(Fact::known_mut);
        match &change.action {
            Action::Put { after: Resource::LoadBalancer(b), .. } => {
                let all = azure.balancers.known_mut().expect("read");
                let mut balancer = LoadBalancer::clone(b);
                for (n, frontend) in (9..).zip(&mut balancer.frontends) {
                    if let model::azure::FrontendAddress::Private { address, family, .. } =
                        &mut frontend.address
                    {
                        let six = *family == Family::V6;
                        let text = if six { format!("fd00::{n}") } else { format!("10.0.0.{n}") };
                        address.get_or_insert(text.parse().expect("an address"));
                    }
                }
                all.insert(b.id.clone(), Arc::new(balancer));
            }
            Action::Put { after: Resource::PrivateLinkService(link), .. } => {
                links.expect("read").insert(link.id.clone(), Arc::clone(link));
            }
            Action::Put { after: Resource::Subnet(subnet), .. } => {
                let fact = Fact::Known(Some(Arc::clone(subnet)));
                azure.subnets.insert(subnet.id.clone(), fact);
            }
            Action::Delete { before: Resource::PrivateLinkService(link) } => {
                links.expect("read").remove(&link.id);
            }
            Action::Delete { before: Resource::LoadBalancer(b) } => {
                azure.balancers.known_mut().expect("read").remove(&b.id);
            }
            other => panic!("not in these tests: {other:?}"),
        }
    }
    for service in world.kubernetes.services.values_mut() {
        Arc::make_mut(service).finalizers = vec![SERVICE_FINALIZER.into()];
    }
}

/// A world in which these Services are programmed.
fn programmed(services: Vec<Service>) -> World {
    let mut world = world(services);
    let way = forecast(&world, &policy());
    assert!(way.last.services.values().all(|s| s.state == State::Programmed), "{:?}", way.last);
    carry_out(&mut world, &way);
    world
}

fn edit(world: &mut World, n: u8, edit: impl FnOnce(&mut Service)) {
    edit(Arc::make_mut(world.kubernetes.services.get_mut(&uid(n)).expect("a Service")));
}

fn links(world: &World) -> Vec<&Arc<PrivateLinkService>> {
    let all = world.azure.private_links[&Group::new("rg")].known();
    all.expect("read").values().collect()
}

/// The only one, to change.
fn link(world: &mut World) -> &mut PrivateLinkService {
    let all = world.azure.private_links.get_mut(&Group::new("rg")).and_then(Fact::known_mut);
    Arc::make_mut(all.and_then(|all| all.values_mut().next()).expect("one"))
}

fn verbs(way: &Forecast) -> Vec<String> {
    let verb = |c: &Change| match c.action {
        Action::Put { .. } => "PUT",
        _ => "DELETE",
    };
    let text = |c: &Change| {
        let kind = c.target.as_str().rsplit('/').nth(1).expect("a kind").to_owned();
        format!("{} {kind}", verb(c))
    };
    way.changes.iter().map(text).collect()
}

fn rules(way: &Forecast, n: u8) -> Vec<&'static str> {
    way.last.services[&uid(n)].findings.iter().map(|f| f.rule).collect()
}

#[test]
fn it_is_made_after_its_frontend_and_its_subnet() {
    let world = world(vec![service(1, &[INTERNAL, ASKED])]);
    let way = forecast(&world, &policy());
    assert_eq!(verbs(&way), ["PUT loadBalancers", "PUT subnets", "PUT privateLinkServices"]);
    let Action::Put { after: Resource::PrivateLinkService(link), .. } = &way.changes[2].action
    else {
        panic!("{:?}", way.changes[2])
    };
    assert_eq!(link.id.name(), "pls-a000000011111422283330123456789a");
    assert_eq!(&*link.addresses[0].name, "nodes-pls-a000000011111422283330123456789a-dynamic-0");
    assert_eq!(owner(link), Some("default/web-1"));
    assert_eq!(way.last.services[&uid(1)].state, State::Programmed);
}

#[test]
fn a_subnet_that_failed_is_written_again() {
    let mut world = programmed(vec![service(1, &[INTERNAL, ASKED])]);
    let opened = Subnet { private_link: PrivateLinkPolicy::Disabled, ..subnet("nodes") };
    let failed = Subnet { provisioning: Provisioning::Failed, ..opened };
    world.azure.subnets.insert(failed.id.clone(), Fact::Known(Some(Arc::new(failed))));
    assert_eq!(verbs(&forecast(&world, &policy())), ["PUT subnets"]);
}

#[test]
fn nothing_is_read_for_services_that_do_not_ask() {
    let mut world = world(vec![service(1, &[INTERNAL])]);
    world.azure.private_links.clear();
    assert!(forecast(&world, &policy()).report.needs.is_empty());
    edit(&mut world, 1, |s| *s = service(1, &[INTERNAL, ASKED, (GROUP, "links")]));
    let needs = forecast(&world, &policy()).report.needs;
    assert_eq!(needs, [Need::PrivateLinks(Group::new("links"))].into());
    // Also for one that is leaving: it may have one.
    edit(&mut world, 1, |s| {
        s.wish = Wish::Nothing;
        s.finalizers = vec![SERVICE_FINALIZER.into()];
    });
    let needs = forecast(&world, &policy()).report.needs;
    assert_eq!(needs, [Need::PrivateLinks(Group::new("links"))].into());
}

/// The annotation's text becomes a part of a path that is read with the controller's rights, and a
/// list that Azure can never give would be due for ever. Whoever may create a Service of any type
/// can write the annotation.
#[test]
fn no_path_is_read_that_a_tenant_writes() {
    let reads = |world: &World| {
        let (_, report) = crate::plan(world, &policy());
        report.needs.into_iter().filter(|need| matches!(need, Need::PrivateLinks(_))).count()
    };
    for name in ["../theirs", "far/providers/Microsoft.Storage/x", "far?x=", "far#", "far."] {
        let mut world = programmed(vec![service(1, &[INTERNAL])]);
        let asks = service(1, &[INTERNAL, ASKED, (GROUP, name)]);
        edit(&mut world, 1, |s| s.annotations = asks.annotations);
        assert_eq!(reads(&world), 0, "{name}, refused");
        edit(&mut world, 1, |s| s.wish = Wish::Nothing);
        assert_eq!(reads(&world), 0, "{name}, leaving");
    }
    let mut world = programmed(vec![service(1, &[INTERNAL])]);
    add(&mut world, Service { wish: Wish::Nothing, ..service(2, &[ASKED, (GROUP, "far")]) });
    assert_eq!(reads(&world), 0, "it never had a load balancer");
}

#[test]
fn static_addresses_come_first_and_one_of_them_is_primary() {
    let service = service(
        1,
        &[
            INTERNAL,
            ASKED,
            ("azure-pls-ip-configuration-ip-address", "10.1.0.4 10.1.0.5"),
            ("azure-pls-ip-configuration-ip-address-count", "3"),
        ],
    );
    let mut world = programmed(vec![service]);
    let addresses = &links(&world)[0].addresses;
    let tails: Vec<&str> = addresses.iter().filter_map(|a| a.name.split("89a-").nth(1)).collect();
    assert_eq!(tails, ["static-10.1.0.4", "static-10.1.0.5", "dynamic-0"]);
    assert_eq!(addresses[0].rank, PrivateLinkRank::Primary);
    assert!(addresses[1..].iter().all(|a| a.rank == PrivateLinkRank::Secondary));
    // Other names and another order are no difference, another address is.
    link(&mut world).addresses.reverse();
    assert!(!verbs(&forecast(&world, &policy())).contains(&"PUT privateLinkServices".into()));
    link(&mut world).addresses.pop();
    assert_eq!(verbs(&forecast(&world, &policy())), ["PUT privateLinkServices"]);
}

#[test]
fn a_deleted_service_loses_connections_then_it_then_the_frontend_then_the_finalizer() {
    let mut world = programmed(vec![service(1, &[INTERNAL, ASKED])]);
    let connection = links(&world)[0].id.child("privateEndpointConnections", "c");
    let state = ConnectionState::Other;
    link(&mut world).connections.push(PrivateEndpointConnection { id: connection, state });
    edit(&mut world, 1, |s| s.wish = Wish::Nothing);
    let (first, _) = crate::plan(&world, &policy());
    assert!(first.writes.is_empty(), "{:?}", first.writes);
    let way = forecast(&world, &policy());
    assert_eq!(
        verbs(&way),
        ["DELETE privateEndpointConnections", "DELETE privateLinkServices", "DELETE loadBalancers"]
    );
    assert!(way.last.services.is_empty());
}

/// Azure shows a connection no longer while it is at deleting it, and takes no other write of the
/// Private Link Service meanwhile.
#[test]
fn it_is_written_once_the_deletion_of_its_connection_has_ended() {
    let mut world = programmed(vec![service(1, &[INTERNAL, ASKED])]);
    let connection = links(&world)[0].id.child("privateEndpointConnections", "c");
    let sent = in_flight([uid(1)]);
    world.in_flight.insert(connection.clone(), sent);
    let wait = Wait::Resource { id: connection, until: Until::Gone };
    let waits = |world: &World| {
        let (plan, _) = crate::plan(world, &policy());
        let change = plan.changes.iter().find(|change| change.target == links(world)[0].id);
        change.expect("it is written").waits.clone()
    };
    let mut altered = world.clone();
    link(&mut altered).addresses.pop();
    assert_eq!(waits(&altered), std::slice::from_ref(&wait));
    edit(&mut world, 1, |s| s.wish = Wish::Nothing);
    assert_eq!(waits(&world), [wait]);
}

#[test]
fn without_the_annotation_it_goes_and_the_frontend_stays() {
    let mut world = programmed(vec![service(1, &[INTERNAL, ASKED])]);
    edit(&mut world, 1, |s| s.annotations = service(1, &[INTERNAL]).annotations);
    assert_eq!(verbs(&forecast(&world, &policy())), ["DELETE privateLinkServices"]);
}

#[test]
fn a_frontend_that_is_replaced_loses_it_first_and_the_new_one_gets_it() {
    let mut world = programmed(vec![service(1, &[INTERNAL, ASKED])]);
    let annotations = [INTERNAL, ASKED, ("azure-load-balancer-internal-subnet", "apps")];
    edit(&mut world, 1, |s| s.annotations = service(1, &annotations).annotations.clone());
    let (first, _) = crate::plan(&world, &policy());
    let targets: Vec<&str> = first.changes.iter().map(|c| c.target.name()).collect();
    assert_eq!(targets, ["pls-a000000011111422283330123456789a"]);
    let way = forecast(&world, &policy());
    assert_eq!(way.last.services[&uid(1)].state, State::Programmed);
    carry_out(&mut world, &way);
    assert_eq!(links(&world)[0].id.name(), "pls-a000000011111422283330123456789a-apps");
}

#[test]
fn another_clusters_is_left_alone_and_said() {
    let mut world = programmed(vec![service(1, &[INTERNAL, ASKED])]);
    link(&mut world).tags = None;
    let way = forecast(&world, &policy());
    assert!(!verbs(&way).iter().any(|v| v.contains("privateLink")), "{way:?}");
    assert_eq!(rules(&way, 1), ["PrivateLinkForeign"]);
}

#[test]
fn a_change_of_its_name_is_refused() {
    let mut world = programmed(vec![service(1, &[INTERNAL, ASKED])]);
    let annotations = service(1, &[INTERNAL, ASKED, (NAME, "mine")]).annotations;
    edit(&mut world, 1, |s| s.annotations = annotations);
    let way = forecast(&world, &policy());
    assert_eq!(rules(&way, 1), ["PrivateLinkNameChanged"]);
    assert!(way.changes.is_empty(), "{:?}", way.changes);
}

/// Two Services on one frontend.
fn pair(second: &[(&str, &str)]) -> World {
    let pinned = ("azure-load-balancer-ipv4", "10.0.0.9");
    let mut world = programmed(vec![service(1, &[INTERNAL, ASKED, pinned])]);
    let mut annotations = vec![INTERNAL, ASKED, pinned];
    annotations.extend(second);
    let other = service(2, &annotations);
    world.kubernetes.services.insert(other.uid.clone(), Arc::new(other));
    world
}

#[test]
fn a_service_without_a_configuration_shares_it_and_takes_it_over() {
    let mut world = pair(&[]);
    let way = forecast(&world, &policy());
    assert_eq!(verbs(&way), ["PUT loadBalancers"]);
    assert_eq!(way.last.services[&uid(2)].state, State::Programmed);
    carry_out(&mut world, &way);
    edit(&mut world, 1, |s| s.wish = Wish::Nothing);
    let way = forecast(&world, &policy());
    carry_out(&mut world, &way);
    assert_eq!(owner(links(&world)[0]), Some("default/web-2"));
    assert!(!way.last.services.contains_key(&uid(1)), "{:?}", way.last);
}

/// The maker of a frontend may have one in a resource group that only it names, from before this
/// process started. Who shares the frontend does not get a second one until that has been read.
#[test]
fn nothing_is_made_before_a_frontend_that_may_have_one() {
    let pinned = ("azure-load-balancer-ipv4", "10.0.0.9");
    let mut world = programmed(vec![service(1, &[INTERNAL, pinned])]);
    add(&mut world, service(2, &[INTERNAL, pinned]));
    let way = forecast(&world, &policy());
    carry_out(&mut world, &way);
    let maker = service(1, &[INTERNAL, pinned, ASKED, (GROUP, "far")]);
    edit(&mut world, 1, |s| s.annotations = maker.annotations);
    let guest = service(2, &[INTERNAL, pinned, ASKED]);
    edit(&mut world, 2, |s| s.annotations = guest.annotations);
    let (plan, report) = crate::plan(&world, &policy());
    assert!(plan.changes.is_empty(), "{plan:?}");
    let far = Need::PrivateLinks(Group::new("far"));
    assert!(report.needs.contains(&far), "{:?}", report.needs);
    assert!(report.services[&uid(2)].waits.contains(&Wait::Reading(far)), "{report:?}");
    world.azure.private_links.insert(Group::new("far"), Fact::Known(BTreeMap::new()));
    let way = forecast(&world, &policy());
    let made = way.changes.iter().filter(|c| c.target.as_str().contains("/privateLinkServices/"));
    let groups: Vec<Option<Group>> = made.map(|change| change.target.group()).collect();
    assert_eq!(groups, [Some(Group::new("far"))]);
}

/// Two Services on one frontend, both programmed; the first one brings a Private Link Service with
/// a configuration and an endpoint that is connected.
fn connected_pair(second: &[(&str, &str)]) -> World {
    let pinned = ("azure-load-balancer-ipv4", "10.0.0.9");
    let own = [INTERNAL, ASKED, pinned, (NAME, "mine"), ("azure-pls-fqdns", "a.example")];
    let mut world = programmed(vec![service(1, &own)]);
    let mut annotations = vec![INTERNAL, pinned];
    annotations.extend(second);
    let other = service(2, &annotations);
    world.kubernetes.services.insert(other.uid.clone(), Arc::new(other));
    let way = forecast(&world, &policy());
    carry_out(&mut world, &way);
    let connection = links(&world)[0].id.child("privateEndpointConnections", "c");
    let state = ConnectionState::Other;
    link(&mut world).connections.push(PrivateEndpointConnection { id: connection, state });
    world
}

#[test]
fn it_lives_as_long_as_its_frontend_whoever_made_it() {
    for second in [&[][..], &[ASKED][..]] {
        let mut world = connected_pair(second);
        edit(&mut world, 1, |s| s.wish = Wish::Nothing);
        let way = forecast(&world, &policy());
        assert_eq!(verbs(&way), ["PUT loadBalancers", "PUT privateLinkServices"], "{second:?}");
        assert!(!way.last.services.contains_key(&uid(1)), "{second:?}: {:?}", way.last);
        let before = PrivateLinkService::clone(links(&world)[0]);
        carry_out(&mut world, &way);
        world.kubernetes.services.remove(&uid(1));
        let [after] = links(&world)[..] else { panic!("one") };
        assert_eq!(owner(after), Some("default/web-2"), "{second:?}");
        let tags = before.tags.clone();
        assert_eq!(PrivateLinkService { tags, ..PrivateLinkService::clone(after) }, before);
        // Nothing more is to be done, by a process that knew none of it either.
        assert_eq!(verbs(&forecast(&world, &policy())), [""; 0], "{second:?}");
        edit(&mut world, 2, |s| s.wish = Wish::Nothing);
        let way = forecast(&world, &policy());
        let gone = ["DELETE privateEndpointConnections", "DELETE privateLinkServices"];
        assert_eq!(verbs(&way)[..2], gone, "{second:?}");
        assert_eq!(verbs(&way).last().map(String::as_str), Some("DELETE loadBalancers"));
        assert!(way.last.services.is_empty(), "{second:?}");
    }
}

#[test]
fn who_made_the_frontend_and_asks_no_longer_lets_it_go() {
    let mut world = connected_pair(&[]);
    let pinned = ("azure-load-balancer-ipv4", "10.0.0.9");
    edit(&mut world, 1, |s| s.annotations = service(1, &[INTERNAL, pinned]).annotations);
    let verbs = verbs(&forecast(&world, &policy()));
    assert_eq!(verbs, ["DELETE privateEndpointConnections", "DELETE privateLinkServices"]);
}

#[test]
fn a_service_with_a_configuration_does_not_share_it() {
    let world = pair(&[("azure-pls-fqdns", "a.example")]);
    let way = forecast(&world, &policy());
    assert_eq!(rules(&way, 2), ["PrivateLinkOwned"]);
    assert_eq!(rules(&way, 1), Vec::<&str>::new());
}

#[test]
fn a_failed_one_is_written_again() {
    let mut world = programmed(vec![service(1, &[INTERNAL, ASKED])]);
    link(&mut world).provisioning = Provisioning::Failed;
    let (plan, _) = crate::plan(&world, &policy());
    assert_eq!(plan.changes.len(), 1);
    assert_eq!(plan.changes[0].target, links(&world)[0].id);
}

#[test]
fn a_subnet_that_does_not_exist_is_refused() {
    let mut world = world(vec![service(1, &[INTERNAL, ASKED, (SUBNET, "links")])]);
    world.azure.subnets.insert(policy().subnet_id("links"), Fact::Known(None));
    assert_eq!(rules(&forecast(&world, &policy()), 1), ["SubnetNotFound"]);
}

#[test]
fn a_load_balancer_has_eight() {
    let asks = |n: u8| service(n, &[INTERNAL, ASKED]);
    let world = world((1..=9).map(asks).collect());
    let all = forecast(&world, &policy());
    let refused = |n: u8| {
        let report = &all.last.services[&uid(n)];
        assert_eq!(report.state.is_refused(), !report.findings.is_empty(), "{report:?}");
        report.findings.first().cloned()
    };
    assert_eq!((1..=8).filter_map(refused).collect::<Vec<_>>(), []);
    let finding = refused(9).expect("there is no room for the ninth");
    assert_eq!(finding.rule, "PrivateLinkLimit");
    assert_eq!(
        finding.text(),
        "load balancer kubernetes-internal has the Private Link Services of default/web-1, \
         default/web-2, default/web-3, default/web-4, default/web-5, default/web-6, \
         default/web-7, default/web-8; it has at most 8"
    );
}

#[test]
fn the_ninth_takes_the_place_of_one_that_goes() {
    let asks = |n: u8| service(n, &[INTERNAL, ASKED]);
    let mut world = programmed((1..=8).map(asks).collect());
    let finalizers = vec![SERVICE_FINALIZER.into()];
    let plain = Service { finalizers, ..service(1, &[INTERNAL]) };
    world.kubernetes.services.insert(uid(1), Arc::new(plain));
    world.kubernetes.services.insert(uid(9), Arc::new(asks(9)));
    let all = forecast(&world, &policy());
    let report = &all.last.services[&uid(9)];
    assert_eq!((report.state, report.findings.as_slice()), (State::Programmed, &[][..]));
    let links = all.changes.iter().filter(|c| c.target.as_str().contains("privateLinkServices"));
    assert_eq!(links.count(), 2, "one goes, one comes");
}

/// An internal Service of both families.
fn dual(n: u8) -> Service {
    Service { families: Family::ALL.into(), ..service(n, &[INTERNAL]) }
}

fn add(world: &mut World, service: Service) {
    world.kubernetes.services.insert(service.uid.clone(), Arc::new(service));
}

#[test]
fn beside_ipv6_who_stands_first_stays() {
    for (first, second, rule) in [
        (service(1, &[INTERNAL, ASKED]), dual(2), "Ipv6BesidePrivateLink"),
        (dual(1), service(2, &[INTERNAL, ASKED]), "PrivateLinkBesideIpv6"),
        // The later one has the name that comes first.
        (service(2, &[INTERNAL, ASKED]), dual(1), "Ipv6BesidePrivateLink"),
        (dual(2), service(1, &[INTERNAL, ASKED]), "PrivateLinkBesideIpv6"),
    ] {
        let (stays, late) = (first.uid.clone(), second.uid.clone());
        let mut world = programmed(vec![first]);
        add(&mut world, second);
        let way = forecast(&world, &policy());
        assert_eq!(verbs(&way), Vec::<&str>::new());
        let state = |uid: &ServiceUid| way.last.services[uid].state;
        assert_eq!((state(&stays), state(&late)), (State::Programmed, State::Refused));
        let found = &way.last.services[&late].findings;
        assert_eq!(found.iter().map(|f| f.rule).collect::<Vec<_>>(), [rule]);
        // Once the first has gone, the second has its place.
        Arc::make_mut(world.kubernetes.services.get_mut(&stays).expect("a Service")).wish =
            Wish::Nothing;
        let way = forecast(&world, &policy());
        assert_eq!(way.last.services[&late].state, State::Programmed);
    }
}

/// A Private Link Service of before this process started may stand there, in a resource group that
/// only its Service names: until that has been read no IPv6 comes to its load balancer, be it of a
/// Service that stands or of a new one.
#[test]
fn no_ipv6_comes_beside_what_has_not_been_read() {
    let mut world = programmed(vec![service(1, &[INTERNAL]), service(2, &[INTERNAL])]);
    let asks = service(1, &[INTERNAL, ASKED, (GROUP, "far")]);
    edit(&mut world, 1, |s| s.annotations = asks.annotations);
    edit(&mut world, 2, |s| s.families = Family::ALL.into());
    add(&mut world, dual(3));
    let (plan, report) = crate::plan(&world, &policy());
    assert!(plan.changes.is_empty(), "{plan:?}");
    let far = Wait::Reading(Need::PrivateLinks(Group::new("far")));
    for n in [2, 3] {
        assert!(report.services[&uid(n)].waits.contains(&far), "{report:?}");
    }
    world.azure.private_links.insert(Group::new("far"), Fact::Known(BTreeMap::new()));
    let way = forecast(&world, &policy());
    for n in [2, 3] {
        assert_eq!(rules(&way, n), ["Ipv6BesidePrivateLink"]);
    }
}

#[test]
fn of_those_that_come_together_the_first_decides() {
    let came = |services: Vec<Service>| {
        let way = forecast(&world(services), &policy());
        let refused = way.last.services.iter().filter(|(_, s)| s.state == State::Refused);
        refused.map(|(_, s)| (s.name.name.to_string(), s.findings[0].rule)).collect::<Vec<_>>()
    };
    let link = |n| service(n, &[INTERNAL, ASKED]);
    let late_six = |n: u8| (format!("web-{n}"), "Ipv6BesidePrivateLink");
    let late_link = |n: u8| (format!("web-{n}"), "PrivateLinkBesideIpv6");
    assert_eq!(came(vec![link(1), dual(2), link(3), dual(4)]), [late_six(2), late_six(4)]);
    assert_eq!(came(vec![dual(1), link(2), dual(3), link(4)]), [late_link(2), late_link(4)]);
    assert_eq!(came(vec![service(1, &[INTERNAL]), dual(2), dual(3)]), []);
}

#[test]
fn it_waits_for_an_ipv6_frontend_that_goes() {
    let mut world = programmed(vec![dual(1), service(2, &[INTERNAL])]);
    edit(&mut world, 1, |s| s.families = vec![Family::V4]);
    edit(&mut world, 2, |s| s.annotations = service(2, &[INTERNAL, ASKED]).annotations);
    let (first, report) = crate::plan(&world, &policy());
    let targets: Vec<&str> = first.changes.iter().map(|c| c.target.name()).collect();
    assert_eq!(targets, ["kubernetes-internal"], "{report:?}");
    assert_eq!(report.services[&uid(2)].findings, []);
    let way = forecast(&world, &policy());
    assert!(way.last.services.values().all(|s| s.state == State::Programmed), "{:?}", way.last);
    assert_eq!(verbs(&way).last().map(String::as_str), Some("PUT privateLinkServices"));
}

/// The Service that made the frontend gives it up and asks at the same time; another one's rules
/// lead to it.
#[test]
fn an_ipv6_frontend_that_others_stay_on_is_no_frontend_that_goes() {
    let pinned = ("azure-load-balancer-ipv6", "fd00::77");
    let annotations = [INTERNAL, pinned];
    let made = Service { families: Family::ALL.into(), ..service(1, &annotations) };
    let stays = Service { families: vec![Family::V6], ..service(2, &annotations) };
    let mut world = world(vec![made, stays]);
    for subnet in world.azure.subnets.values_mut().filter_map(Fact::known_mut).flatten() {
        Arc::make_mut(subnet).prefixes.push("fd00::/64".parse().expect("a range"));
    }
    let way = forecast(&world, &policy());
    assert!(way.last.services.values().all(|s| s.state == State::Programmed), "{:?}", way.last);
    carry_out(&mut world, &way);
    edit(&mut world, 1, |s| {
        (s.families, s.annotations) =
            (vec![Family::V4], service(1, &[INTERNAL, ASKED]).annotations);
    });
    let way = forecast(&world, &policy());
    assert_eq!(rules(&way, 1), ["PrivateLinkBesideIpv6"], "{:?}", way.last);
    edit(&mut world, 2, |s| s.wish = Wish::Nothing);
    let way = forecast(&world, &policy());
    assert_eq!(rules(&way, 1), [""; 0], "{:?}", way.last);
    assert_eq!(verbs(&way).last().map(String::as_str), Some("PUT privateLinkServices"));
}

/// Puts an address into a pool of the internal load balancer.
fn fill_pool(world: &mut World, pool: &str) {
    let all = world.azure.balancers.known_mut().expect("read");
    let balancer = all.get_mut(&policy().balancer_id("kubernetes-internal")).expect("it stands");
    let mut pools = fixture::balancer().pools;
    pools[0].name = pool.into();
    let balancer = Arc::make_mut(balancer);
    balancer.pools.retain(|p| &*p.name != pool);
    balancer.pools.extend(pools);
}

#[test]
fn before_a_pool_of_addresses_of_others_it_is_refused() {
    let mut world = programmed(vec![service(1, &[INTERNAL])]);
    fill_pool(&mut world, "theirs");
    edit(&mut world, 1, |s| s.annotations = service(1, &[INTERNAL, ASKED]).annotations);
    let way = forecast(&world, &policy());
    assert_eq!((rules(&way, 1), verbs(&way)), (vec!["PrivateLinkNeedsNicPools"], vec![]));
    // Ours is on its way to be a pool of NICs.
    let mut world = programmed(vec![service(1, &[INTERNAL])]);
    fill_pool(&mut world, "kubernetes");
    edit(&mut world, 1, |s| s.annotations = service(1, &[INTERNAL, ASKED]).annotations);
    let (plan, report) = crate::plan(&world, &policy());
    let report = &report.services[&uid(1)];
    assert_eq!((report.state, report.findings.as_slice()), (State::Waiting, &[][..]));
    let wait =
        Wait::Resource { id: policy().balancer_id("kubernetes-internal"), until: Until::Released };
    assert!(report.waits.contains(&wait), "{:?}", report.waits);
    let is_link = |c: &Arc<Change>| {
        matches!(c.action, Action::Put { after: Resource::PrivateLinkService(_), .. })
    };
    assert!(!plan.changes.iter().any(is_link), "{plan:?}");
}

#[test]
fn pools_behind_one_are_not_turned_into_addresses() {
    let mut world = programmed(vec![service(1, &[INTERNAL, ASKED]), service(2, &[INTERNAL])]);
    let addresses = Policy { pools: PoolKind::NodeIp, ..policy() };
    let way = forecast(&world, &addresses);
    assert_eq!(verbs(&way), Vec::<&str>::new());
    assert_eq!(rules(&way, 1), ["PrivateLinkNeedsNicPools"]);
    let other = &way.last.services[&uid(2)];
    assert_eq!(other.state, State::Programmed, "{other:?} {:?}", way.report.needs);
    let found = &way.report.findings;
    assert_eq!(found.iter().map(|f| f.rule).collect::<Vec<_>>(), ["AddressPoolsBehindPrivateLink"]);
    assert!(found[0].message.contains("pls-a0000000"), "{}", found[0].message);
    edit(&mut world, 1, |s| s.annotations = service(1, &[INTERNAL]).annotations);
    let way = forecast(&world, &addresses);
    assert_eq!(verbs(&way), ["DELETE privateLinkServices", "PUT loadBalancers"]);
    assert_eq!(way.last.findings, []);
}

/// A refused Service may have one in a resource group that has not been read yet.
#[test]
fn pools_stay_until_it_is_known_what_is_before_them() {
    let mut world = programmed(vec![service(1, &[INTERNAL]), service(2, &[INTERNAL])]);
    let asks = [INTERNAL, ASKED, (GROUP, "far")];
    edit(&mut world, 1, |s| s.annotations = service(1, &asks).annotations);
    let addresses = Policy { pools: PoolKind::NodeIp, ..policy() };
    let (plan, report) = crate::plan(&world, &addresses);
    assert!(plan.changes.is_empty(), "{plan:?}");
    let far = Need::PrivateLinks(Group::new("far"));
    assert!(report.needs.contains(&far), "{:?}", report.needs);
    assert!(!report.services[&uid(2)].waits.contains(&Wait::Reading(far)));
    world.azure.private_links.insert(Group::new("far"), Fact::Known(BTreeMap::new()));
    let turned = verbs(&forecast(&world, &addresses));
    assert!(turned.iter().any(|verb| verb == "PUT loadBalancers"), "{turned:?}");
}

/// One Service whose Private Link Service has a private endpoint in such a state.
fn connected(state: ConnectionState) -> World {
    let mut world = programmed(vec![service(1, &[INTERNAL, ASKED])]);
    let id = links(&world)[0].id.child("privateEndpointConnections", "c");
    link(&mut world).connections.push(PrivateEndpointConnection { id, state });
    world
}

#[test]
fn what_others_are_connected_to_stays_until_the_owner_agrees() {
    let agrees = (annotation::DISCONNECT, "true");
    for withdrawn in [false, true] {
        for state in [ConnectionState::Connected, ConnectionState::Other] {
            let mut world = connected(state);
            let leave = |world: &mut World, more: &[(&str, &str)]| {
                edit(world, 1, |s| {
                    let link = if withdrawn { INTERNAL } else { ASKED };
                    s.annotations = service(1, &[&[INTERNAL, link], more].concat()).annotations;
                    s.wish = if withdrawn { s.wish } else { Wish::Nothing };
                });
            };
            leave(&mut world, &[]);
            let way = forecast(&world, &policy());
            let goes = ["DELETE privateEndpointConnections", "DELETE privateLinkServices"];
            if state == ConnectionState::Connected {
                assert_eq!(verbs(&way), [""; 0], "{withdrawn}");
                assert_eq!(rules(&way, 1), ["PrivateLinkConnected"], "{withdrawn}");
                assert_eq!(way.last.services[&uid(1)].state, State::RefusedServing);
                leave(&mut world, &[agrees]);
            }
            let way = forecast(&world, &policy());
            assert_eq!(verbs(&way)[..2], goes, "{withdrawn} {state:?}");
        }
    }
}

/// Its owner's finalizers were stripped, or its tag names another Service: the Service whose
/// frontend goes is asked.
#[test]
fn where_the_owner_is_not_known_the_service_of_the_frontend_is_asked() {
    let mut world = connected(ConnectionState::Connected);
    set_owner(link(&mut world), "default/gone");
    edit(&mut world, 1, |s| s.wish = Wish::Nothing);
    let way = forecast(&world, &policy());
    assert_eq!(verbs(&way), [""; 0]);
    assert_eq!(rules(&way, 1), ["PrivateLinkConnected"]);
    let agrees = (annotation::DISCONNECT, "true");
    edit(&mut world, 1, |s| s.annotations = service(1, &[INTERNAL, ASKED, agrees]).annotations);
    let way = forecast(&world, &policy());
    let goes = ["DELETE privateEndpointConnections", "DELETE privateLinkServices"];
    assert_eq!(verbs(&way)[..2], goes);
}

/// Its finalizers were stripped, and it went: the operator is asked.
#[test]
fn what_others_are_connected_to_stays_when_its_service_is_gone_without_being_released() {
    let mut world = connected(ConnectionState::Connected);
    let gone = world.kubernetes.services.remove(&uid(1)).expect("it was there");
    let found = |world: &World, service: &Service| bereft(world, &policy(), service);
    let makers: BTreeSet<Arc<str>> = [Arc::from(uid(1).base_name())].into();
    assert_eq!(found(&world, &gone), Some(makers));
    let agreed = service(1, &[INTERNAL, ASKED, (annotation::DISCONNECT, "true")]);
    assert_eq!(found(&world, &agreed), None);
    assert_eq!(found(&world, &service(3, &[INTERNAL, ASKED])), None, "it has none");
    assert_eq!(found(&connected(ConnectionState::Other), &gone), None);
    // Another Service goes on with it.
    let mut shared = connected(ConnectionState::Connected);
    let heir = service(2, &[INTERNAL, ASKED]);
    set_owner(link(&mut shared), "default/web-2");
    assert!(found(&shared, &heir).is_some(), "it was the last on it");
    shared.kubernetes.services.insert(heir.uid.clone(), Arc::new(heir));
    assert_eq!(found(&shared, &gone), None);
}

#[test]
fn who_shares_the_frontend_takes_over_by_the_tag() {
    let other = [ASKED, ("azure-pls-fqdns", "b.example")];
    for (second, late) in [(&other[..1], false), (&other, false), (&other, true)] {
        let mut world = connected_pair(if late { &[] } else { second });
        if late {
            let mut asks = vec![INTERNAL, ("azure-load-balancer-ipv4", "10.0.0.9")];
            asks.extend(second);
            world.kubernetes.services.insert(uid(3), Arc::new(service(3, &asks)));
        }
        let heir = if late { 3 } else { 2 };
        let name = format!("default/web-{heir}");
        set_owner(link(&mut world), &name);
        let configured = forecast(&world, &policy());
        assert_eq!(rules(&configured, 1), ["PrivateLinkOwned"], "{second:?}");
        edit(&mut world, 1, |s| {
            let pinned = ("azure-load-balancer-ipv4", "10.0.0.9");
            s.annotations = service(1, &[INTERNAL, ASKED, pinned]).annotations;
        });
        let way = forecast(&world, &policy());
        for number in [1, 2, heir] {
            assert_eq!(rules(&way, number), [""; 0], "{second:?}: {number}");
        }
        // Who brings no configuration owns it as it is; who was refused before has to join first.
        let puts = ["PUT loadBalancers", "PUT privateLinkServices"];
        let puts = &puts[usize::from(!late)..][..usize::from(second.len() > 1) + usize::from(late)];
        assert_eq!(verbs(&way), puts, "{second:?}");
        let before = links(&world)[0].id.clone();
        carry_out(&mut world, &way);
        let [after] = links(&world)[..] else { panic!("one") };
        assert_eq!((&after.id, owner(after)), (&before, Some(&*name)), "{second:?}");
        let fqdns: &[&str] = if second.len() > 1 { &["b.example"] } else { &["a.example"] };
        assert!(after.fqdns.iter().map(|f| &**f).eq(fqdns.iter().copied()), "{second:?}");
    }
}
