//! Who shares an address with whom.

use super::Consents;
use crate::ask::annotation::SHARE;
use crate::claim::tests::{NAMED, add, bring, brought, refusals};
use crate::shape::stage::{PINNED, internal, policy, public, settled, uid, world};
use explain::forecast::settle;
use fixture::service_mut;
use model::kubernetes::{Ingress, Service, Wish};
use model::policy::{Sharing, Tenancy};
use model::{Group, Policy, ServiceName, World};
use std::sync::Arc;

/// A BYO public IP, which Service 1 of namespace `a` holds.
fn held() -> World {
    let mut world = world(vec![public(1, "a", &[NAMED])]);
    bring(&mut world, "byo", &[]);
    settled(world)
}

fn sharing(sharing: Sharing) -> Policy {
    Policy { tenancy: Tenancy { sharing, ..Tenancy::default() }, ..policy() }
}

/// What a Service says from now on; its status stays.
fn edit(world: &mut World, service: Service) {
    let ingress = world.kubernetes.services[&service.uid].ingress.clone();
    add(world, Service { ingress, ..service });
}

fn not_shared(value: &str) -> Vec<(String, String)> {
    vec![("AddressNotShared".to_owned(), value.to_owned())]
}

#[test]
fn an_address_is_shared_within_a_namespace() {
    let mut world = held();
    add(&mut world, public(2, "a", &[NAMED]));
    assert_eq!(refusals(&world, &policy(), 2), []);
    assert_eq!(refusals(&world, &sharing(Sharing::None), 2), []);
}

#[test]
fn another_namespace_needs_the_consent_of_the_first_holder() {
    let mut world = held();
    add(&mut world, public(2, "b", &[NAMED]));
    assert_eq!(refusals(&world, &policy(), 2), not_shared("byo"));
    assert_eq!(refusals(&world, &policy(), 1), []);
    let (_, report) = crate::plan(&world, &policy());
    let wanted = "service.beta.kubernetes.io/azure-pip-name: \"byo\" is held by Service a/web-1 of \
                  another namespace; use another address, or have that Service name \"b\" in \
                  ballast.dev/share-with-namespaces";
    assert_eq!(report.services[&uid(2)].findings[0].to_string(), wanted);
    assert_eq!(refusals(&world, &sharing(Sharing::All), 2), []);
    for (names, may) in [("c", false), ("", false), ("c, b", true), ("*", true)] {
        edit(&mut world, public(1, "a", &[NAMED, (SHARE, names)]));
        assert_eq!(refusals(&world, &policy(), 2).is_empty(), may, "{names}");
        assert_eq!(refusals(&world, &sharing(Sharing::None), 2), not_shared("byo"), "{names}");
    }
}

#[test]
fn a_list_is_read_once_whoever_asks() {
    let (some, all) = (public(1, "a", &[(SHARE, " c, b ,c,")]), public(2, "a", &[(SHARE, "*")]));
    let none = public(3, "a", &[]);
    let mut consents = Consents::default();
    for (namespace, may) in [("b", true), ("c", true), ("d", false), ("b", true)] {
        assert_eq!(consents.lets(&some, namespace), may, "{namespace}");
        assert!(consents.lets(&all, namespace) && !consents.lets(&none, namespace));
    }
    let read: Vec<usize> = consents.0.values().map(|names| names.len()).collect();
    assert_eq!(read, [3, 1, 1], "each once: b, c and an empty entry, then *, then nothing");
}

#[test]
fn who_shares_an_address_keeps_it() {
    let mut world = held();
    edit(&mut world, public(1, "a", &[NAMED, (SHARE, "b")]));
    add(&mut world, public(2, "b", &[NAMED]));
    let mut world = settled(world);
    edit(&mut world, public(1, "a", &[NAMED]));
    for policy in [policy(), sharing(Sharing::None)] {
        assert_eq!(refusals(&world, &policy, 2), []);
    }
    // A third one does not, and goes on not to when the first holder has gone.
    add(&mut world, public(3, "c", &[NAMED]));
    assert_eq!(refusals(&world, &policy(), 3), not_shared("byo"));
    service_mut(&mut world, &uid(1)).wish = Wish::Nothing;
    let world = settled(world);
    assert_eq!(refusals(&world, &policy(), 2), []);
    assert_eq!(refusals(&world, &policy(), 3), not_shared("byo"));
    let heir = [NAMED, (SHARE, "c")];
    let mut world = world;
    edit(&mut world, public(2, "b", &heir));
    assert_eq!(refusals(&world, &policy(), 3), []);
}

#[test]
fn what_stands_goes_before_a_name() {
    let mut world = held();
    add(&mut world, public(2, "0", &[NAMED]));
    assert_eq!(refusals(&world, &policy(), 2), not_shared("byo"));
    assert_eq!(refusals(&world, &policy(), 1), []);
    // Everything was deleted by hand: the status tells who had it.
    world.azure.balancers = model::world::Fact::Known(Default::default());
    assert_eq!(refusals(&world, &policy(), 2), not_shared("byo"));
    assert_eq!(refusals(&world, &policy(), 1), []);
    edit_status(&mut world, 1, None);
    assert_eq!(refusals(&world, &policy(), 1), not_shared("byo"), "then the name decides");
    assert_eq!(refusals(&world, &policy(), 2), []);
}

fn edit_status(world: &mut World, n: u16, address: Option<&str>) {
    let service = world.kubernetes.services.get_mut(&uid(n)).expect("there");
    let told = address.map(|ip| Ingress { ip: Some(ip.into()), hostname: None });
    Arc::make_mut(service).ingress = told.into_iter().collect();
}

#[test]
fn a_public_ip_is_that_of_the_service_it_was_made_for() {
    let mut world = world(vec![public(9, "z", &[])]);
    let made = format!("kubernetes-{}", uid(9).base_name());
    bring(
        &mut world,
        &made,
        &[("k8s-azure-service", "z/web-9"), ("k8s-azure-cluster-name", "kubernetes")],
    );
    let address = brought(&world, &made).address.expect("it has one").to_string();
    add(&mut world, public(1, "a", &[("azure-pip-name", &made)]));
    assert_eq!(refusals(&world, &policy(), 1), not_shared(&made));
    add(&mut world, public(1, "a", &[(PINNED, &address)]));
    assert_eq!(refusals(&world, &policy(), 1), not_shared(&address));
    let field = Service { load_balancer_ip: Some(address.as_str().into()), ..public(1, "a", &[]) };
    add(&mut world, field);
    assert_eq!(refusals(&world, &policy(), 1), not_shared(&address));
    let (_, report) = crate::plan(&world, &policy());
    assert_eq!(&*report.services[&uid(1)].findings[0].key, "spec.loadBalancerIP");
    let mut world = settled(world);
    assert_eq!(refusals(&world, &policy(), 1), not_shared(&address), "nor once it stands");
    add(&mut world, public(2, "z", &[(PINNED, &address)]));
    assert_eq!(refusals(&world, &policy(), 2), []);
}

/// The tag names Services that joined later, too, and the Service that made it has no frontend yet.
#[test]
fn the_service_that_joined_last_did_not_make_the_public_ip() {
    let mut world = world(vec![public(9, "z", &[(SHARE, "b")])]);
    let made = format!("kubernetes-{}", uid(9).base_name());
    let users =
        [("k8s-azure-service", "z/web-9,b/web-8"), ("k8s-azure-cluster-name", "kubernetes")];
    bring(&mut world, &made, &users);
    add(&mut world, public(8, "b", &[("azure-pip-name", &made)]));
    add(&mut world, public(1, "z", &[("azure-pip-name", &made)]));
    assert_eq!(refusals(&world, &policy(), 1), []);
}

/// Its holder goes, or moves to another one: it goes with its label, and not to a Service that
/// waits for it in another namespace, also where the config lists what may be named.
#[test]
fn a_public_ip_that_is_let_go_passes_to_no_other_namespace() {
    let world = settled(world(vec![public(1, "a", &[])]));
    let made = format!("kubernetes-{}", uid(1).base_name());
    let gone = Service { wish: Wish::Nothing, ..public(1, "a", &[]) };
    for after in [gone.clone(), inside(1, "a", &[])] {
        let mut world = world.clone();
        add(&mut world, public(2, "b", &[("azure-pip-name", &made)]));
        edit(&mut world, after);
        for policy in [policy(), strict()] {
            assert_eq!(refusals(&world, &policy, 2), not_shared(&made));
        }
        let world = settled(world);
        assert_eq!(refusals(&world, &policy(), 2), [("PublicIpNotFound".to_owned(), made.clone())]);
    }
    // Within the namespace it goes on, and elsewhere with consent.
    let mut world = world;
    add(&mut world, public(2, "a", &[("azure-pip-name", &made)]));
    edit(&mut world, gone);
    assert_eq!(refusals(&world, &policy(), 2), []);
    let lets = public(1, "a", &[(SHARE, "b")]);
    edit(&mut world, Service { wish: Wish::Nothing, ..lets });
    add(&mut world, public(2, "b", &[("azure-pip-name", &made)]));
    assert_eq!(refusals(&world, &policy(), 2), []);
}

/// Its status tells an additional address of before, which Azure has given to another since.
#[test]
fn who_told_an_address_before_it_was_made_shares_nothing() {
    let mut world = settled(world(vec![public(1, "a", &[])]));
    let told = world.kubernetes.services[&uid(1)].ingress.clone();
    let address = told[0].ip.clone().expect("it has one");
    add(&mut world, Service { ingress: told, ..public(2, "b", &[(PINNED, &address)]) });
    assert_eq!(refusals(&world, &policy(), 2), not_shared(&address));
}

/// An internal Service of a namespace.
fn inside(n: u16, namespace: &str, annotations: &[(&str, &str)]) -> Service {
    let name = ServiceName::new(namespace, format!("web-{n}"));
    Service { name, ..internal(n, 80 + n, annotations) }
}

#[test]
fn private_addresses_are_shared_alike() {
    let world = settled(world(vec![inside(1, "a", &[])]));
    let told = world.kubernetes.services[&uid(1)].ingress[0].ip.clone().expect("it has one");
    let mut world = world;
    add(&mut world, inside(2, "b", &[(PINNED, &told)]));
    add(&mut world, inside(3, "a", &[(PINNED, &told)]));
    assert_eq!(refusals(&world, &policy(), 2), not_shared(&told));
    assert_eq!(refusals(&world, &policy(), 3), []);
    edit(&mut world, inside(1, "a", &[(SHARE, "b")]));
    assert_eq!(refusals(&world, &policy(), 2), []);
}

#[test]
fn two_namespaces_may_swap_addresses() {
    let (one, other) = ("10.224.9.9", "10.224.9.10");
    let services = vec![inside(1, "a", &[(PINNED, one)]), inside(2, "b", &[(PINNED, other)])];
    let mut world = settled(world(services));
    edit(&mut world, inside(1, "a", &[(PINNED, other)]));
    edit(&mut world, inside(2, "b", &[(PINNED, one)]));
    assert_eq!((refusals(&world, &policy(), 1), refusals(&world, &policy(), 2)), (vec![], vec![]));
}

const LINK: (&str, &str) = ("azure-pls-create", "true");

#[test]
fn a_private_link_needs_the_same_consent() {
    let pin = (PINNED, "10.224.9.9");
    let lets = inside(1, "a", &[pin, (SHARE, "b")]);
    let mut world = settled(world(vec![lets, inside(2, "b", &[pin])]));
    edit(&mut world, inside(1, "a", &[pin]));
    edit(&mut world, inside(2, "b", &[pin, LINK]));
    let refused = vec![("PrivateLinkNotShared".to_owned(), String::new())];
    assert_eq!(refusals(&world, &policy(), 2), refused);
    edit(&mut world, inside(1, "a", &[pin, (SHARE, "b")]));
    assert_eq!(refusals(&world, &policy(), 2), []);
    // One that stands stays.
    let mut world = linked(world);
    edit(&mut world, inside(1, "a", &[pin]));
    assert_eq!(refusals(&world, &policy(), 2), []);
    edit(&mut world, inside(2, "b", &[LINK]));
    assert_eq!(refusals(&world, &policy(), 2), [], "its own frontend is its own");
}

/// The World with Private Link Services as they are wanted.
fn linked(mut world: World) -> World {
    for group in [policy().private_link_group, policy().group] {
        world.azure.private_links.insert(group, model::world::Fact::Known(Default::default()));
    }
    settle(world, &policy()).0
}

fn strict() -> Policy {
    Policy {
        additional_addresses: Some(Vec::new()),
        tenancy: Tenancy {
            sharing: Sharing::None,
            groups: Some(vec![Group::new("ips")]),
            public_ips: Some(vec![policy().public_ip_id(&policy().group, "listed")]),
            ..Tenancy::default()
        },
        ..policy()
    }
}

#[test]
fn strict_tenancy_allows_what_is_listed_alone() {
    let mut world = world(Vec::new());
    bring(&mut world, "byo", &[]);
    bring(&mut world, "listed", &[]);
    let group = "azure-load-balancer-resource-group";
    let refused = |rule: &str, value: &str| vec![(rule.to_owned(), value.to_owned())];
    for (key, value, wanted) in [
        ("azure-pip-name", "byo", refused("PublicIpNotAllowed", "byo")),
        ("azure-pip-name", "listed", vec![]),
        (group, "other", refused("ResourceGroupNotAllowed", "other")),
        (group, "ips", vec![]),
        (group, "RG", vec![]),
        (
            "azure-additional-public-ips",
            "20.9.9.9",
            refused("ForbiddenAdditionalAddress", "20.9.9.9"),
        ),
    ] {
        add(&mut world, public(1, "a", &[(key, value)]));
        assert_eq!(refusals(&world, &strict(), 1), wanted, "{key}: {value}");
        assert_eq!(refusals(&world, &policy(), 1), [], "{key}: {value}");
    }
    let link = [LINK, ("azure-pls-resource-group", "other")];
    add(&mut world, inside(1, "a", &link));
    assert_eq!(refusals(&world, &strict(), 1), refused("ResourceGroupNotAllowed", "other"));
    assert_eq!(refusals(&world, &policy(), 1), []);
}
