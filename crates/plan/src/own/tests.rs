use super::{Own, UID, Whose, borne, tags};
use model::azure::{PrivateLinkService, PublicIp, Tags};
use model::{Group, Policy, ServiceUid, World};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const MINE: &str = "11111111-0000-4000-8000-000000000000";
const THEIRS: &str = "22222222-0000-4000-8000-000000000000";
/// Made from the UID of a Service of another cluster.
const STRANGE: &str = "a9999999911114222833301234567890";

fn base() -> String {
    fixture::service(&[]).uid.base_name()
}

fn tags(pairs: &[(&str, &str)]) -> Tags {
    pairs.iter().map(|(k, v)| (Arc::from(*k), Arc::from(*v))).collect()
}

fn ip(policy: &Policy, group: &str, name: &str, pairs: &[(&str, &str)]) -> PublicIp {
    let id = policy.public_ip_id(&Group::new(group), name);
    PublicIp { id, tags: Some(tags(pairs)), ..fixture::public_ip("x", None) }
}

fn link(
    policy: &Policy,
    group: &str,
    frontend: &str,
    pairs: &[(&str, &str)],
) -> PrivateLinkService {
    let balancer = policy.balancer_id("kubernetes-internal");
    PrivateLinkService {
        id: policy.network_id(&Group::new(group), "privateLinkServices", "named"),
        tags: Some(tags(pairs)),
        frontends: vec![balancer.child("frontendIPConfigurations", frontend)],
        ..fixture::private_link("named")
    }
}

fn world(uid: Option<&str>) -> World {
    let mut world = fixture::world();
    world.kubernetes.cluster_uid = uid.map(Arc::from);
    world
}

const WEB: (&str, &str) = (tags::SERVICE, "default/web");
const CLUSTER: (&str, &str) = (tags::CLUSTER, "kubernetes");

#[test]
fn a_public_ip_of_another_clusters_uid_is_foreign_wherever_it_stands() {
    let (policy, world) = (fixture::policy(), world(Some(MINE)));
    let own = Own::new(&world, &policy);
    let name = format!("kubernetes-{}", base());
    for group in ["rg", "theirs"] {
        let whose = |uid| own.public_ip(&ip(&policy, group, &name, &[WEB, CLUSTER, (UID, uid)]));
        assert_eq!(whose(THEIRS), Whose::Foreign, "{group}");
        assert_eq!(whose(MINE), Whose::Ours, "{group}");
        assert_eq!(whose(&MINE.to_uppercase()), Whose::Ours, "{group}");
        // A BYO address, too.
        let byo = ip(&policy, group, "byo", &[(UID, THEIRS)]);
        assert_eq!(own.public_ip(&byo), Whose::Foreign, "{group}");
    }
}

#[test]
fn in_a_group_that_a_service_names_the_name_tells_whose_a_public_ip_is() {
    let (policy, world) = (fixture::policy(), world(Some(MINE)));
    let own = Own::new(&world, &policy);
    let whose =
        |name: &str, pairs: &[(&str, &str)]| own.public_ip(&ip(&policy, "theirs", name, pairs));
    let (ours, strange) = (base(), STRANGE);
    for suffix in ["", "-IPv6", "-prefix"] {
        let name = |base: &str| format!("kubernetes-{base}{suffix}");
        assert_eq!(whose(&name(&ours), &[WEB, CLUSTER]), Whose::Ours);
        // Both clusters have a Service default/web.
        assert_eq!(whose(&name(strange), &[WEB, CLUSTER]), Whose::Foreign);
    }
    assert_eq!(whose(&format!("other-{strange}"), &[WEB, CLUSTER]), Whose::Foreign);
    // The other cluster has adopted it for its Service default/web.
    assert_eq!(whose("adopted", &[WEB, CLUSTER]), Whose::Foreign);
    assert_eq!(whose("adopted", &[WEB, CLUSTER, (UID, MINE)]), Whose::Ours);
    let other = (tags::CLUSTER, "other");
    assert_eq!(whose(&format!("kubernetes-{ours}"), &[WEB, other]), Whose::Foreign);
    assert_eq!(whose("byo", &[]), Whose::Unmarked);
}

#[test]
fn in_the_clusters_own_group_the_cluster_name_tells_as_for_the_go_provider() {
    let (policy, world) = (fixture::policy(), world(Some(MINE)));
    let own = Own::new(&world, &policy);
    let name = format!("kubernetes-{}", STRANGE);
    let whose = |pairs: &[(&str, &str)]| own.public_ip(&ip(&policy, "rg", &name, pairs));
    assert_eq!(whose(&[WEB, CLUSTER]), Whose::Ours);
    assert_eq!(whose(&[WEB]), Whose::Ours);
    assert_eq!(whose(&[WEB, (tags::CLUSTER, "other")]), Whose::OtherName);
    assert_eq!(whose(&[]), Whose::Unmarked);
}

#[test]
fn without_a_uid_of_its_own_a_cluster_trusts_its_services_uids() {
    let (policy, world) = (fixture::policy(), world(None));
    let own = Own::new(&world, &policy);
    let whose = |base: &str| {
        let name = format!("kubernetes-{base}");
        own.public_ip(&ip(&policy, "theirs", &name, &[WEB, CLUSTER, (UID, THEIRS)]))
    };
    assert_eq!((whose(&base()), whose(STRANGE)), (Whose::Ours, Whose::Foreign));
    let adopted = |group, users| {
        let pairs = [(tags::SERVICE, users), CLUSTER, (UID, THEIRS)];
        own.public_ip(&ip(&policy, group, "adopted", &pairs))
    };
    assert_eq!(adopted("rg", "default/web"), Whose::Ours);
    assert_eq!(adopted("rg", "default/web,team/x"), Whose::Foreign);
    assert_eq!(adopted("theirs", "default/web"), Whose::Foreign);
}

#[test]
fn a_service_that_was_seen_to_go_is_one_of_ours() {
    let policy = fixture::policy();
    let mut world = world(Some(MINE));
    let gone = ServiceUid::new("99999999-1111-4222-8333-0123456789ab").base_name();
    let it = ip(&policy, "theirs", &format!("kubernetes-{gone}"), &[WEB, CLUSTER]);
    assert_eq!(Own::new(&world, &policy).public_ip(&it), Whose::Foreign);
    world.abandoned.insert(gone.as_str().into());
    assert_eq!(Own::new(&world, &policy).public_ip(&it), Whose::Ours);
}

/// It has a Service of that name, too.
#[test]
fn what_is_another_clusters_bears_no_name_of_ours() {
    let (policy, mut world) = (fixture::policy(), world(Some(MINE)));
    let other = (tags::CLUSTER, "other");
    for (pairs, bears) in [
        (vec![WEB, CLUSTER], true),
        (vec![WEB], true),
        (vec![WEB, other], false),
        (vec![WEB, CLUSTER, (UID, THEIRS)], false),
        (vec![WEB, other, (UID, MINE)], true),
    ] {
        let ip = Arc::new(ip(&policy, "rg", "named", &pairs));
        let known = model::world::Fact::Known(BTreeMap::from([(ip.id.clone(), ip)]));
        world.azure.public_ips = BTreeMap::from([(policy.group.clone(), known)]);
        let asked = BTreeSet::from([Arc::from("default/web"), Arc::from("default/we")]);
        let found = borne::among(&world, &policy, &asked);
        assert_eq!(found.contains("default/web"), bears, "{pairs:?}");
        assert!(!found.contains("default/we"), "{pairs:?}");
    }
}

/// It keeps the name that Ballast gave it, which must not keep its Service in the ledger.
#[test]
fn what_was_taken_back_bears_no_name_of_ours() {
    let (policy, mut world) = (fixture::policy(), world(Some(MINE)));
    world.azure.balancers = model::world::Fact::Known(BTreeMap::new());
    for (value, bears) in [("default/web", true), ("", false)] {
        let name = format!("kubernetes-{}", base());
        let ip = Arc::new(ip(&policy, "rg", &name, &[(tags::SERVICE, value), CLUSTER]));
        let known = model::world::Fact::Known(BTreeMap::from([(ip.id.clone(), ip)]));
        world.azure.public_ips = BTreeMap::from([(policy.group.clone(), known)]);
        let asked: BTreeSet<Arc<str>> = BTreeSet::from([Arc::from(base())]);
        let found = borne::among(&world, &policy, &asked);
        assert_eq!(found.contains(base().as_str()), bears, "{value:?}");
    }
}

#[test]
fn a_private_link_service_is_whose_frontend_it_stands_before() {
    let (policy, mut world) = (fixture::policy(), world(Some(MINE)));
    let owner = (tags::OWNER, "default/web");
    let whose = |world: &World, group: &str, frontend: &str, pairs: &[(&str, &str)]| {
        Own::new(world, &policy).private_link(&link(&policy, group, frontend, pairs))
    };
    let marks = [CLUSTER, owner];
    assert_eq!(whose(&world, "theirs", &base(), &marks), Whose::Ours);
    assert_eq!(whose(&world, "theirs", STRANGE, &marks), Whose::Foreign);
    assert_eq!(whose(&world, "theirs", &base(), &[owner]), Whose::Foreign);
    // "links" is the cloud config's group of Private Link Services.
    assert_eq!(whose(&world, "links", STRANGE, &marks), Whose::Ours);
    let with = |uid| [CLUSTER, owner, (UID, uid)];
    assert_eq!(whose(&world, "links", &base(), &with(THEIRS)), Whose::Foreign);
    assert_eq!(whose(&world, "theirs", STRANGE, &with(MINE)), Whose::Ours);
    // A shared frontend outlives the Service that it is named after.
    let internal = fixture::balancer();
    let id = policy.balancer_id("kubernetes-internal");
    let internal = model::azure::LoadBalancer { id: id.clone(), ..internal };
    let all = BTreeMap::from([(id, Arc::new(internal))]);
    world.azure.balancers = model::world::Fact::Known(all);
    assert_eq!(whose(&world, "theirs", STRANGE, &marks), Whose::Ours);
}

mod layouts {
    use super::*;
    use crate::own::other_layout::RULE;
    use crate::own::pod_names;
    use model::azure::{LoadBalancer, NatGateway, Sku};
    use model::gateway::{DefaultService, Direction, GatewayService};
    use model::policy::{BalancerSku, Layout, PoolKind};
    use model::report::{Report, Until, Wait};
    use model::world::{Fact, Kind, Need};
    use model::{Plan, ResourceId};
    use std::collections::BTreeSet;

    fn container() -> Policy {
        let sku = BalancerSku::Service;
        Policy { sku, layout: Layout::PerService, pools: PoolKind::PodIp, ..fixture::policy() }
    }

    fn plan(world: &World, policy: &Policy) -> (Plan, Report) {
        let mut world = world.clone();
        world.kubernetes.complete = Kind::ALL.into_iter().collect();
        crate::plan(&world, policy)
    }

    fn rules(report: &Report) -> Vec<&'static str> {
        report.findings.iter().map(|finding| finding.rule).collect()
    }

    /// A container load balancer of this name, and nothing else.
    fn over_pods(name: &str) -> World {
        let mut world = world(Some(MINE));
        let policy = container();
        let id = policy.balancer_id(name);
        let bare = |balancer: LoadBalancer| LoadBalancer {
            id: id.clone(),
            sku: Sku::Service,
            frontends: Vec::new(),
            rules: Vec::new(),
            probes: Vec::new(),
            pools: Vec::new(),
            ..balancer
        };
        let all = BTreeMap::from([(id.clone(), Arc::new(bare(fixture::balancer())))]);
        world.azure.balancers = Fact::Known(all);
        world.azure.public_ips.insert(policy.group, Fact::Known(BTreeMap::new()));
        world
    }

    #[test]
    fn load_balancers_over_nodes_stop_the_container_layout() {
        let world = world(Some(MINE));
        let (plan, report) = plan(&world, &container());
        assert!(plan.is_empty(), "{plan:#?}");
        assert!(rules(&report).contains(&RULE), "{report:#?}");
        let text = report.findings.iter().map(ToString::to_string).collect::<String>();
        assert!(text.contains("load balancer kubernetes, public IP kubernetes-"), "{text}");
        let gone = |wait: &Wait| matches!(wait, Wait::Resource { until: Until::Gone, .. });
        assert!(report.services.values().all(|service| service.waits.iter().any(gone)));
        // What the other layout needs is read meanwhile.
        assert!(report.needs.contains(&Need::GatewayServices));
    }

    #[test]
    fn container_load_balancers_stop_the_layout_over_nodes() {
        let uid = fixture::service(&[]).uid;
        let mut world = over_pods(uid.as_str());
        let frozen = |world: &World| {
            let (plan, report) = plan(world, &fixture::policy());
            assert!(plan.is_empty() && rules(&report) == [RULE], "{report:#?}");
            report
        };
        let unread = BTreeSet::from([Need::NatGateways, Need::GatewayServices]);
        let needs = frozen(&world).needs;
        assert!(unread.is_subset(&needs), "{needs:?}");
        world.azure.nat_gateways = Fact::Known(BTreeMap::new());
        world.azure.gateway_services = Fact::Unreadable("the Service Gateway is gone".into());
        let needs = frozen(&world).needs;
        assert!(needs.is_disjoint(&unread), "{needs:?}");
    }

    #[test]
    fn what_another_clusters_uid_marks_or_no_uid_names_stops_nothing() {
        let other = "99999999-1111-4222-8333-0123456789ab";
        let mut marked = over_pods(other);
        let of = |world: &World| rules(&plan(world, &fixture::policy()).1);
        assert_eq!(of(&marked), [RULE]);
        let all = marked.azure.balancers.known_mut().into_iter().flat_map(BTreeMap::values_mut);
        all.for_each(|b| Arc::make_mut(b).tags = Some(tags(&[(UID, THEIRS)])));
        assert_eq!(of(&marked), [] as [&str; 0]);
        assert_eq!(of(&over_pods("somebodys")), [] as [&str; 0]);
        let (_, report) = plan(&world(Some(MINE)), &fixture::policy());
        assert_eq!(rules(&report), [] as [&str; 0]);
    }

    /// The cluster's way out may have any name. It is no leftover, nor is its public IP.
    #[test]
    fn a_nat_gateway_that_a_service_of_others_leads_to_stops_nothing() {
        let policy = fixture::policy();
        let nat = NatGateway {
            gateway: Some(policy.gateway_id()),
            public_ips: vec![policy.public_ip_id(&policy.group, "way-out-pip")],
            ..fixture::nat_gateway("way-out")
        };
        let user = Some(nat.id.clone());
        let ip = fixture::public_ip("way-out-pip", None);
        let ip = PublicIp { tags: None, sku: Sku::StandardV2, user, ..ip };
        let mut world = world(Some(MINE));
        let all = world.azure.public_ips.get_mut(&policy.group).and_then(Fact::known_mut);
        all.expect("it was read").insert(ip.id.clone(), Arc::new(ip));
        let way = Some(nat.id.clone());
        world.azure.nat_gateways = Fact::Known([(nat.id.clone(), Arc::new(nat))].into());
        for (default, found) in [(DefaultService::No, &[RULE][..]), (DefaultService::Yes, &[])] {
            let row = GatewayService {
                direction: Direction::Outbound,
                default,
                nat_gateway: way.clone(),
                ..fixture::gateway_service("way-out")
            };
            let rows = [(Arc::clone(&row.name), Arc::new(row))].into();
            world.azure.gateway_services = Fact::Known(rows);
            assert_eq!(rules(&plan(&world, &policy).1), found, "{default:?}");
        }
    }

    /// Its NAT gateway is not read yet.
    #[test]
    fn a_public_ip_of_an_egress_gateway_stops_the_layout_over_nodes() {
        let policy = fixture::policy();
        for name in [pod_names::public_ip("team-a"), pod_names::public_ip_v6("team-a")] {
            let mut world = world(Some(MINE));
            let user = Some(policy.network_id(&policy.group, "natGateways", "team-a"));
            let ip = fixture::public_ip(&name, None);
            let ip = PublicIp { tags: None, sku: Sku::StandardV2, user, ..ip };
            let all = world.azure.public_ips.get_mut(&policy.group).and_then(Fact::known_mut);
            all.expect("it was read").insert(ip.id.clone(), Arc::new(ip));
            assert_eq!(rules(&plan(&world, &policy).1), [RULE], "{name}");
        }
    }

    #[test]
    fn outbound_load_balancers_of_others_stop_nothing() {
        let mut world = world(Some(MINE));
        let policy = container();
        let id: ResourceId = policy.balancer_id("kubernetes");
        for balancer in world.azure.balancers.known_mut().into_iter().flat_map(|b| b.values_mut()) {
            let balancer = Arc::make_mut(balancer);
            balancer.id = id.clone();
            balancer.rules.clear();
            balancer.frontends.iter_mut().for_each(|f| f.name = "aksOutbound".into());
        }
        world.azure.public_ips.insert(policy.group.clone(), Fact::Known(BTreeMap::new()));
        assert!(!rules(&plan(&world, &policy).1).contains(&RULE));
    }
}

/// Azure refuses a resource with two tags of one name, and ignores the letter case of names.
#[test]
fn a_tag_of_the_config_takes_the_place_of_that_in_other_letters() {
    let wanted = tags(&[("Env", "b"), ("\u{c4}pfel", "2")]);
    let policy = Policy { tags: wanted, ..fixture::policy() };
    let there = tags(&[("ENV", "a"), ("\u{e4}pfel", "1"), ("theirs", "x")]);
    let after = tags(&[("ENV", "b"), ("\u{e4}pfel", "2"), ("theirs", "x")]);
    assert_eq!(tags::shared(Some(&there), &policy), Some(after.clone()));
    // With `systemTags` what is wanted stays, in whatever letters.
    let policy = Policy { system_tags: Some(Vec::new()), ..policy };
    let kept = after.into_iter().filter(|(key, _)| **key != *"theirs").collect();
    assert_eq!(tags::shared(Some(&there), &policy), Some(kept));
}
