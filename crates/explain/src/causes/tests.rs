//! What comes from what.

mod every_annotation;
mod stage;

use super::*;
use model::Group;
use model::kubernetes::{Affinity, TrafficPolicy};
use model::policy::{BalancerSku, Layout, OutboundSnat, PoolKind, VmKind};
use stage::{annotated, explained, node_world, policy, port, service, settled};

/// All sources of all fields whose path ends so.
fn sources(explanation: &Explanation, end: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    for resource in &explanation.resources {
        let parts = resource.parts.iter().flat_map(|p| &p.fields);
        for field in resource.fields.iter().chain(parts) {
            if field.path.to_string().ends_with(end) {
                found.extend(field.sources.iter().map(ToString::to_string));
            }
        }
    }
    found.into_iter().collect()
}

fn heads(explanation: &Explanation, part: &str) -> Vec<String> {
    let parts = explanation.resources.iter().flat_map(|r| &r.parts);
    let named = parts.filter(|p| p.path.to_string().contains(part));
    named.flat_map(|p| p.sources.iter().map(ToString::to_string)).collect()
}

#[test]
fn annotations_are_named_where_they_count_and_nowhere_else() {
    let web = annotated(&[
        ("azure-load-balancer-tcp-idle-timeout", "30"),
        ("port_80_health-probe_interval", "10"),
        ("azure-load-balancer-health-probe-interval", "15"),
    ]);
    let found = explained(&node_world(&web), &policy(), &web);
    let timeout = "annotation azure-load-balancer-tcp-idle-timeout = \"30\"";
    let interval = "annotation port_80_health-probe_interval = \"10\"";
    assert_eq!(sources(&found, "idleTimeoutInMinutes"), [timeout]);
    assert_eq!(sources(&found, "intervalInSeconds"), [interval]);
    assert_eq!(
        sources(&found, "probeThreshold"),
        ["default; to change it: annotation azure-load-balancer-health-probe-num-of-probe"]
    );
    let unused: Vec<_> = found.unused.iter().map(|u| (&*u.key, &*u.reason)).collect();
    let general = "service.beta.kubernetes.io/azure-load-balancer-health-probe-interval";
    assert_eq!(unused, [(general, &*format!("{interval} counts instead"))]);
}

#[test]
fn an_annotation_that_says_the_default_is_still_where_the_value_comes_from() {
    let web = annotated(&[("azure-load-balancer-tcp-idle-timeout", "4")]);
    let found = explained(&node_world(&web), &policy(), &web);
    assert_eq!(
        sources(&found, "idleTimeoutInMinutes"),
        ["annotation azure-load-balancer-tcp-idle-timeout = \"4\""]
    );
    assert!(found.unused.is_empty(), "{:?}", found.unused);
}

#[test]
fn fields_of_the_service_are_named() {
    let mut web = service();
    web.ports = vec![port(80, 30_080), port(443, 30_443)];
    web.affinity = Affinity::ClientIp;
    web.traffic_policy = TrafficPolicy::Local;
    web.health_check_node_port = Some(32_000);
    web.source_ranges = vec!["203.0.113.0/24".into()];
    let found = explained(&node_world(&web), &policy(), &web);
    let ports = ["spec.ports[0].port = 80", "spec.ports[1].port = 443"];
    assert_eq!(sources(&found, "frontendPort"), ports);
    assert_eq!(sources(&found, "loadDistribution"), ["spec.sessionAffinity = ClientIP"]);
    assert!(sources(&found, "probes[x].properties.port").is_empty());
    assert!(heads(&found, "TCP-32000").contains(&"spec.healthCheckNodePort = 32000".to_owned()));
    assert_eq!(
        sources(&found, "sourceAddressPrefixes"),
        ["spec.loadBalancerSourceRanges = 203.0.113.0/24"]
    );
    let rule = heads(&found, "loadBalancingRules[a00000001111142228333012345678-TCP-443");
    assert!(rule.is_empty(), "{rule:?}");
    let rule = heads(&found, "TCP-443");
    assert!(rule.contains(&"spec.ports[1] = TCP 443".to_owned()), "{rule:?}");
    assert!(!rule.iter().any(|s| s.contains("ports[0]")), "{rule:?}");
}

#[test]
fn config_keys_are_named() {
    let web = service();
    let mut policy = policy();
    policy.tags.insert("team".into(), "shop".into());
    policy.outbound_snat = OutboundSnat::Disabled;
    let found = explained(&node_world(&web), &policy, &web);
    assert_eq!(sources(&found, "tags.team"), ["config tags = team=shop"]);
    assert_eq!(sources(&found, "disableOutboundSnat"), ["config disableOutboundSNAT = true"]);
    assert_eq!(sources(&found, "sku.name"), ["config loadBalancerSku = standard"]);
    assert_eq!(sources(&found, "location"), ["config location = eastus"]);
    assert_eq!(sources(&found, "zones"), ["the region's zones"]);
    assert!(sources(&found, "ipAddress").contains(&"chosen by Azure".to_owned()));
    assert!(found.resources.iter().all(|r| r.standing != Standing::AsWanted));
}

/// Where a resource comes from that it is there, under its id; only config keys.
fn places(found: &Explanation, kind: &str) -> Vec<String> {
    let named = |r: &&ExplainedResource| match &r.target {
        Target::Azure(id) => id.as_str().contains(kind),
        Target::Service(_) => false,
    };
    let resource = found.resources.iter().find(named).expect("the Service has one");
    let all = resource.sources.iter().map(ToString::to_string);
    all.filter(|source| source.starts_with("config ")).collect()
}

#[test]
fn keys_that_say_where_resources_are_are_named() {
    let web = service();
    let found = explained(&node_world(&web), &policy(), &web);
    let cluster = ["config resourceGroup = rg", "config subscriptionId = s"];
    for kind in ["/publicIPAddresses/", "/loadBalancers/"] {
        assert_eq!(places(&found, kind), cluster, "{kind}");
    }
    let named = ["config resourceGroup = rg", "config securityGroupName = nsg"];
    assert_eq!(places(&found, "/networkSecurityGroups/")[..2], named);
    let policy = Policy {
        network_subscription: "net".into(),
        balancer_group: Group::new("balancers"),
        security_group_group: Group::new("rules"),
        ..policy()
    };
    let found = explained(&node_world(&web), &policy, &web);
    let elsewhere = "config networkResourceSubscriptionID = net";
    let balancer = ["config loadBalancerResourceGroup = balancers", elsewhere];
    assert_eq!(places(&found, "/loadBalancers/"), balancer);
    assert_eq!(places(&found, "/publicIPAddresses/"), [elsewhere, cluster[0]]);
    let group = places(&found, "/networkSecurityGroups/");
    assert!(group.contains(&"config securityGroupResourceGroup = rules".to_owned()), "{group:?}");
}

#[test]
fn the_primary_set_is_named_with_the_kind_that_chooses_its_key() {
    let web = service();
    let policy = Policy {
        sku: BalancerSku::Basic,
        layout: Layout::PerNodeSet { without_own: Default::default() },
        pools: PoolKind::NodeNic,
        outbound_snat: OutboundSnat::Enabled,
        vm_kind: VmKind::Standalone,
        primary_set: "as".into(),
        ..policy()
    };
    let inputs = input::inputs(&web, &policy, &node_world(&web));
    let keys: Vec<String> = inputs.iter().map(|i| i.source.to_string()).collect();
    for key in ["config primaryAvailabilitySetName = as", "config vmType = standard"] {
        assert!(keys.contains(&key.to_owned()), "{keys:?}");
    }
    let raised = Policy { maximum_rules: 500, ..policy };
    let inputs = input::inputs(&web, &raised, &node_world(&web));
    let key = "config maximumLoadBalancerRuleCount = 500";
    assert!(inputs.iter().any(|i| i.source.to_string() == key));
}

/// What is left out to make it cheap changes nothing: a Service among others is explained as one
/// that is alone, where it shares nothing that counts.
#[test]
fn others_change_nothing_in_what_is_explained() {
    let web = annotated(&[("azure-load-balancer-tcp-idle-timeout", "9")]);
    let lone = explained(&settled(&node_world(&web), &policy()), &policy(), &web);
    let mut world = node_world(&web);
    for n in 2..8_u16 {
        let mut other = service();
        other.uid = ServiceUid::new(format!("{n:08x}-1111-4222-8333-0123456789ab"));
        other.name = ServiceName::new("default", format!("other-{n}"));
        other.ports = vec![port(80 + n, 30_080 + n)];
        world.kubernetes.services.insert(other.uid.clone(), Arc::new(other));
    }
    let found = explained(&settled(&world, &policy()), &policy(), &web);
    // The pool is made for the first of them: to the others it is one that stands.
    let is_of_pool = |path: &Path| path.to_string().ends_with("backendAddressPool.id");
    let sources = |part: &Part| -> Vec<(Path, BTreeSet<Source>)> {
        let fields = part.fields.iter().filter(|f| !is_of_pool(&f.path));
        fields.map(|f| (f.path.clone(), f.sources.clone())).collect()
    };
    let is_own = |p: &&Part| p.path.to_string().contains(&*web.uid.base_name());
    for (resource, own) in found.resources.iter().zip(&lone.resources) {
        assert_eq!(resource.target, own.target);
        for part in own.parts.iter().filter(is_own) {
            let there = resource.parts.iter().find(|p| p.path == part.path).expect("it is there");
            assert_eq!((&there.sources, sources(there)), (&part.sources, sources(part)));
        }
    }
}

#[test]
fn a_settled_service_is_explained_as_well_as_a_new_one() {
    let web = annotated(&[("azure-dns-label-name", "shop"), ("azure-pip-tags", "team=web")]);
    let world = settled(&node_world(&web), &policy());
    let found = explained(&world, &policy(), &web);
    let states: Vec<_> = found.resources.iter().map(|r| r.standing).collect();
    assert_eq!(states, vec![Standing::AsWanted; 4]);
    let label = sources(&found, "domainNameLabel");
    assert_eq!(label, ["annotation azure-dns-label-name = \"shop\""]);
    assert_eq!(sources(&found, "tags.team"), ["annotation azure-pip-tags = \"team=web\""]);
    assert_eq!((found.waits.len(), found.unused.len()), (0, 0));
}

#[test]
fn a_label_on_a_public_ip_that_somebody_brought_is_the_services_also_when_it_is_there() {
    let web = annotated(&[("azure-pip-name", "brought"), ("azure-dns-label-name", "shop")]);
    let mut world = node_world(&web);
    stage::bring(&mut world, "brought", model::Family::V4);
    for world in [world.clone(), settled(&world, &policy())] {
        let found = explained(&world, &policy(), &web);
        let label = sources(&found, "domainNameLabel");
        assert_eq!(label, ["annotation azure-dns-label-name = \"shop\""]);
        assert_eq!(found.unused, []);
    }
}

#[test]
fn of_a_shared_load_balancer_only_the_services_part_is_explained() {
    let web = service();
    let mut world = node_world(&web);
    let mut other = service();
    other.uid = ServiceUid::new("00000002-1111-4222-8333-0123456789ab");
    other.name = ServiceName::new("default", "other");
    other.ports = vec![port(8080, 31_000)];
    world.kubernetes.services.insert(other.uid.clone(), Arc::new(other));
    for world in [world.clone(), settled(&world, &policy())] {
        let found = explained(&world, &policy(), &web);
        let text = serde_json::to_string(&found).unwrap();
        assert!(!text.contains("8080") && !text.contains("a0000000211114"), "{text}");
        let pool = found.resources.iter().flat_map(|r| &r.parts).find(|p| p.share == Share::Used);
        assert_eq!(pool.unwrap().path.last(), "kubernetes");
        let balancer = found.resources.iter().find(|r| r.target.kind() == "loadbalancers");
        assert!(balancer.unwrap().fields.is_empty(), "the SKU is everybody's");
    }
}

#[test]
fn nics_in_a_pool_come_from_the_nodes() {
    let web = service();
    let mut policy = policy();
    policy.pools = PoolKind::NodeNic;
    policy.vm_kind = VmKind::Standalone;
    let mut world = node_world(&web);
    stage::add_nics(&mut world, 5);
    let found = explained(&world, &policy, &web);
    let nics = found.resources.iter().filter(|r| r.target.kind() == "networkinterfaces");
    let nics: Vec<_> = nics.collect();
    assert_eq!(nics.len(), 5);
    let text = serde_json::to_string(&nics).unwrap();
    assert!(text.contains("\"nodes\""), "{text}");
    assert!(text.contains("loadBalancerBackendAddressPools"), "{text}");
}

#[test]
fn what_goes_is_shown_as_going() {
    let mut web = service();
    let mut world = settled(&node_world(&web), &policy());
    web = Service::clone(&world.kubernetes.services[&web.uid]);
    web.wish = Wish::Nothing;
    web.deletion = Deletion::Requested;
    world.kubernetes.services.insert(web.uid.clone(), Arc::new(web.clone()));
    let found = explained(&world, &policy(), &web);
    assert_eq!(found.state, State::Removing);
    let deleted: Vec<_> = found.resources.iter().map(|r| (r.target.kind(), r.standing)).collect();
    assert!(deleted.contains(&("publicipaddresses".into(), Standing::Deleted)), "{deleted:?}");
    assert!(deleted.contains(&("loadbalancers".into(), Standing::Deleted)), "{deleted:?}");
    assert!(deleted.contains(&("networksecuritygroups".into(), Standing::Changed)), "{deleted:?}");
}

#[test]
fn holds_and_calls_under_way_are_told() {
    let web = service();
    let mut world = node_world(&web);
    let id = policy().balancer_id("kubernetes");
    let causes = BTreeSet::from([web.uid.clone()]);
    world.in_flight.insert(id.clone(), InFlight { attempt: 2, causes, ..fixture::in_flight([]) });
    let hold = fixture::hold(id.clone(), "QuotaExceeded");
    world.holds.insert(web.uid.clone(), hold);
    let found = explained(&world, &policy(), &web);
    let held = |w: &Wait| matches!(w, Wait::SetAside { reason, .. } if &**reason == "refused");
    assert!(found.waits.iter().any(held), "{:?}", found.waits);
    assert_eq!(found.in_flight.keys().collect::<Vec<_>>(), [&id]);
    assert!(!found.resources.is_empty(), "what it asks for is explained all the same");
}

#[test]
fn strangers_are_not_explained() {
    let mut web = service();
    let name = ServiceName::new("default", "nobody");
    let world = node_world(&web);
    assert_eq!(explain(&world, &policy(), &name, &stage::WIRE), Err(Stranger::Unknown));
    web.load_balancer_type = LoadBalancerType::Foreign;
    web.wish = Wish::Nothing;
    let world = node_world(&web);
    assert_eq!(explain(&world, &policy(), &web.name, &stage::WIRE), Err(Stranger::OtherClass));
}

#[test]
fn the_same_world_is_explained_in_the_same_words() {
    let web = annotated(&[("azure-load-balancer-internal", "true")]);
    let world = node_world(&web);
    let text = |w: &World| serde_json::to_string(&explained(w, &policy(), &web)).unwrap();
    assert_eq!(text(&world), text(&world.clone()));
}
#[test]
fn other_services_that_stand_on_addresses_not_yet_known_are_kept_apart() {
    let web = service();
    let mut world = node_world(&web);
    for n in 2..9_u16 {
        let mut other = service();
        other.uid = ServiceUid::new(format!("{n:08x}-1111-4222-8333-0123456789ab"));
        other.name = ServiceName::new("default", format!("other{n}"));
        other.ports = vec![port(80, 31_000 + n)];
        world.kubernetes.services.insert(other.uid.clone(), Arc::new(other));
    }
    // All have the same rule in the security group: the Service's part is one address of it.
    let found = explained(&world, &policy(), &web);
    let group = found.resources.iter().find(|r| r.target.kind() == "networksecuritygroups");
    let parts = &group.unwrap().parts;
    assert_eq!(parts.len(), 1, "{parts:#?}");
    assert_eq!((parts[0].share, parts[0].fields.len()), (Share::Added, 1));
    // It is in this rule and no other because of port and protocol.
    assert_eq!(
        sources(&found, "destinationAddressPrefixes"),
        ["chosen by Azure", "spec.ports[0].port = 80", "spec.ports[0].protocol = TCP"]
    );
}
