use crate::own::tags;
use crate::shape::stage::{planned, policy, settled, uid, world};
use crate::tell::kubernetes::ip_lists;
use fixture::{in_flight, public_ips_mut, security_group_mut, service_mut};
use model::azure::{Allocation, FrontendAddress, LoadBalancer, Provisioning, PublicIp, Rest, Sku};
use model::kubernetes::{Custody, Service, Wish};
use model::plan::{Action, Change, Edit, FinalizerPurpose, Resource};
use model::policy::BalancerSku;
use model::report::{State, Until, Wait};
use model::world::{Hold, InFlight, Need};
use model::{Family, Group, Policy, ServiceName, World};
use plan_check::check;
use std::sync::Arc;

/// Public Service number `n`.
fn public(n: u16) -> Service {
    crate::shape::stage::public(n, "default", &[])
}

fn set_custody(world: &mut World, n: u16, custody: Custody) {
    service_mut(world, &uid(n)).custody = custody;
}

fn claims(world: &World) -> usize {
    let (plan, _) = planned(world);
    let claims =
        |edit: &Edit| matches!(edit, Edit::Finalizers { purpose: FinalizerPurpose::Claim, .. });
    plan.writes.iter().filter(|write| claims(&write.edit)).count()
}

fn changes(world: &World) -> Vec<Arc<Change>> {
    crate::plan(world, &policy()).0.changes
}

fn edit(world: &mut World, n: u16, edit: impl FnOnce(&mut PublicIp)) {
    let base = uid(n).base_name();
    let own = public_ips_mut(world)
        .values_mut()
        .find(|ip| ip.id.name().contains(&*base))
        .expect("it has one");
    edit(Arc::make_mut(own));
}

/// The Service may be gone: the process that could write before may have let it go, which the
/// watch does not show yet. A public IP made for it would be nobody's.
#[test]
fn a_service_is_claimed_again_before_a_public_ip_is_made() {
    let mut world = world(vec![public(1)]);
    assert_eq!(claims(&world), 0);
    set_custody(&mut world, 1, Custody::Inherited);
    assert_eq!(claims(&world), 1);
    let waits: Vec<_> =
        changes(&world).iter().map(|c| c.waits.contains(&Wait::Finalizer)).collect();
    assert_eq!(waits, [true], "the public IP, and nothing before it");
    // Nothing more is asked where it stands.
    let mut world = settled(world);
    set_custody(&mut world, 1, Custody::Inherited);
    assert_eq!((claims(&world), changes(&world)), (0, Vec::new()));
}

/// One Service is set aside because of the load balancer, and its public IP has failed: Azure
/// refuses every write of that load balancer until the address is written again.
#[test]
fn a_public_ip_that_failed_is_mended_although_its_service_is_set_aside() {
    let mut world = settled(world(vec![public(1), public(2)]));
    let target = policy().balancer_id("kubernetes");
    let hold = fixture::hold(target, "InvalidRequestFormat");
    world.holds.insert(uid(1), Hold { until_ms: None, attempt: 0, ..hold });
    assert_eq!(changes(&world), Vec::new());
    edit(&mut world, 1, |ip| ip.provisioning = Provisioning::Failed);
    let changes = changes(&world);
    let put: Vec<_> = changes.iter().map(|c| (c.target.name(), c.waits.len())).collect();
    let name = format!("kubernetes-{}", uid(1).base_name());
    assert_eq!(put, [(&*name, 0)]);
    assert!(matches!(changes[0].action, Action::Put { before: Some(_), .. }), "{changes:?}");
    // No Service that is known uses it, and no load balancer that Azure would refuse: it stays.
    world.kubernetes.services.remove(&uid(1));
    world.holds.clear();
    leave_balancers(&mut world);
    let (plan, _) = crate::plan(&world, &policy());
    assert!(plan.changes.iter().all(|change| change.target.name() != name), "{plan:#?}");
}

fn leave_balancers(world: &mut World) {
    for balancer in world.azure.balancers.known_mut().into_iter().flat_map(|all| all.values_mut()) {
        Arc::make_mut(balancer).frontends.clear();
    }
}

/// The actions planned for the public IP of Service 1 once it has failed.
fn mended(world: &mut World) -> Vec<bool> {
    edit(world, 1, |ip| ip.provisioning = Provisioning::Failed);
    let name = format!("kubernetes-{}", uid(1).base_name());
    let changes = changes(world);
    let own = changes.iter().filter(|change| change.target.name() == name);
    own.map(|c| matches!(c.action, Action::Put { .. }) && c.waits.is_empty()).collect()
}

/// The finalizer of the Service was stripped: its frontend stays on the load balancer, which no
/// other Service's write would get past while the public IP is Failed.
#[test]
fn a_public_ip_that_failed_is_mended_although_its_service_is_gone() {
    let mut world = settled(world(vec![public(1), public(2)]));
    world.kubernetes.services.remove(&uid(1));
    assert_eq!(mended(&mut world), [true]);
}

/// A Service of the same name has taken its place: the public IP goes once no load balancer has
/// it, and until then must not be Failed.
#[test]
fn a_public_ip_that_failed_is_mended_before_it_is_deleted() {
    let mut world = settled(world(vec![public(1), public(2)]));
    world.kubernetes.services.remove(&uid(1));
    let service = Service { name: ServiceName::new("default", "web-1"), ..public(3) };
    world.kubernetes.services.insert(uid(3), Arc::new(service));
    assert_eq!(mended(&mut world), [true]);
    leave_balancers(&mut world);
    assert_eq!(mended(&mut world), [false], "it is deleted");
}

/// Nothing says that the frontend of a Service that this process has not seen go is nobody's: it
/// stays, and the Service that has the name by now does not wait for it.
#[test]
fn a_service_does_not_wait_for_what_one_of_its_name_has_left() {
    let mut world = settled(world(vec![public(1), public(2)]));
    world.kubernetes.services.remove(&uid(1));
    let finalizers = vec![model::kubernetes::SERVICE_FINALIZER.into()];
    let name = ServiceName::new("default", "web-1");
    let leaving = Service { name, wish: Wish::Nothing, finalizers, ..public(3) };
    world.kubernetes.services.insert(uid(3), Arc::new(leaving));
    let deletes = |plan: &model::Plan| {
        plan.changes.iter().any(|change| matches!(change.action, Action::Delete { .. }))
    };
    let (plan, report) = crate::plan(&world, &policy());
    assert!(!deletes(&plan), "{plan:#?}");
    assert!(report.services[&uid(3)].waits.is_empty(), "{report:#?}");
    assert_eq!(plan.writes.len(), 1, "its finalizer goes: {plan:#?}");
    // Once it is known to have gone, all of it goes.
    world.abandoned.insert(uid(1).base_name().to_lowercase().into());
    let (plan, _) = crate::plan(&world, &policy());
    assert!(deletes(&plan), "{plan:#?}");
}

/// What another process was opening for it a moment ago may not be seen yet: nothing of a Service
/// is taken away before lists are certain to show it.
#[test]
fn a_service_of_another_process_is_not_taken_down_before_all_is_seen() {
    let mut world = settled(world(vec![public(1), public(2)]));
    let all = crate::plan(&world, &policy()).1.services.len();
    service_mut(&mut world, &uid(1)).wish = Wish::Nothing;
    let seen = world.clone();
    world.inherited.insert(uid(1));
    let (plan, report) = crate::plan(&world, &policy());
    assert!(plan.is_empty(), "{plan:#?}");
    assert_eq!((all, report.services.len()), (2, 2));
    let report = &report.services[&uid(1)];
    assert_eq!((report.state, &report.waits[..]), (State::Removing, &[Wait::Listing][..]));
    let (plan, _) = crate::plan(&seen, &policy());
    assert!(!plan.is_empty(), "now it goes");
}

/// A new leader's lists may be older than what the leader before it wrote: it takes no address out
/// of a status before they are certain to show it.
#[test]
fn a_status_loses_nothing_before_lists_are_certain() {
    let mut world = settled(world(vec![public(1)]));
    let told = |world: &World| world.kubernetes.services[&uid(1)].ingress.clone();
    assert!(!told(&world).is_empty());
    security_group_mut(&mut world).rules.clear();
    world.azure.balancers.known_mut().expect("they are known").clear();
    public_ips_mut(&mut world).clear();
    world.inherited.insert(uid(1));
    let statuses = |world: &World| {
        let writes = crate::plan(world, &policy()).0.writes;
        let told = |edit: &Edit| matches!(edit, Edit::Status { ingress: Some(_), .. });
        writes.iter().filter(|write| told(&write.edit)).count()
    };
    let (_, report) = crate::plan(&world, &policy());
    assert_eq!(statuses(&world), 0);
    assert!(report.services[&uid(1)].waits.contains(&Wait::Listing));
    world.inherited.clear();
    assert_eq!(statuses(&world), 1, "now it goes");
}

/// Another process may have made it anew under the same name a moment ago, which no list shows yet:
/// what looks like the old one is not taken away before lists are certain.
#[test]
fn a_public_ip_of_another_process_is_not_made_anew_before_all_is_seen() {
    let mut world = settled(world(vec![public(1)]));
    edit(&mut world, 1, |ip| ip.family = Family::V6);
    world.inherited.insert(uid(1));
    let (plan, report) = crate::plan(&world, &policy());
    assert_eq!(plan.changes, []);
    assert!(report.services[&uid(1)].waits.contains(&Wait::Listing));
    world.inherited.clear();
    let deletes = |change: &Arc<Change>| matches!(change.action, Action::Delete { .. });
    assert!(changes(&world).iter().any(deletes), "now it goes");
}

/// Another controller wrote the list with a blank: who leaves it goes all the same.
#[test]
fn a_service_leaves_a_tag_that_is_written_with_blanks() {
    let mut world = settled(world(vec![public(1), public(2)]));
    let shared = "default/web-2, default/web-1";
    edit(&mut world, 2, |ip| {
        ip.tags.get_or_insert_default().insert("k8s-azure-service".into(), shared.into());
    });
    let all = changes(&world);
    let ips = all.iter().filter_map(|change| match &change.action {
        Action::Put { after: Resource::PublicIp(ip), .. } => Some(tags::users(ip)),
        _ => None,
    });
    assert_eq!(ips.collect::<Vec<_>>(), [["default/web-2"]]);
}

/// Who made the public IP is another process, and this one has not listed the group.
#[test]
fn the_group_that_a_leaving_service_names_is_read_with_blanks_around_it_too() {
    let key = "azure-load-balancer-resource-group";
    for (written, is_named) in [("ips", true), (" IPs ", true), ("", false), ("a/b", false)] {
        let service = fixture::claimed(fixture::service(&[(key, written)]));
        let world = world(vec![Service { uid: uid(1), wish: Wish::Nothing, ..service }]);
        let (_, report) = crate::plan(&world, &policy());
        let need = Need::PublicIps(Group::new("ips"));
        assert_eq!(report.needs.contains(&need), is_named, "{written:?}");
        // What is no name is no list to wait for.
        let service = &world.kubernetes.services[&uid(1)];
        let lists = ip_lists(&world, &policy(), service);
        assert_eq!(lists.iter().any(Option::is_none), is_named, "{written:?}");
    }
}

/// The prefix is part of a public IP's name: without it the Service gets another, and a label
/// stands for one public IP of a region.
#[test]
fn a_label_goes_over_once_the_public_ip_that_has_it_is_deleted() {
    let prefix =
        "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/publicIPPrefixes/p";
    let label = ("azure-dns-label-name", "web");
    let asking = |annotations: &[(&str, &str)]| {
        let annotated = fixture::service(annotations).annotations;
        Service { annotations: annotated, ..public(1) }
    };
    let mut world = settled(world(vec![asking(&[label, ("azure-pip-prefix-id", prefix)])]));
    let labels = |world: &World| -> Vec<(String, Option<String>)> {
        let known = world.azure.public_ips[&policy().group].known().expect("it was read");
        let own = known.values().filter(|ip| ip.id.name().contains(&*uid(1).base_name()));
        own.map(|ip| (ip.id.name().to_owned(), ip.dns_label.as_deref().map(str::to_owned)))
            .collect()
    };
    let base = format!("kubernetes-{}", uid(1).base_name());
    assert_eq!(labels(&world), [(format!("{base}-p"), Some("web".to_owned()))]);

    world.kubernetes.services.insert(uid(1), Arc::new(asking(&[label])));
    let first = crate::plan(&world, &policy()).0.changes;
    let made: Vec<_> = first
        .iter()
        .filter_map(|change| match &change.action {
            Action::Put { after: Resource::PublicIp(ip), .. } => {
                Some((ip.id.name(), ip.dns_label.as_deref()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(made, [(&*base, None)]);
    assert_eq!(labels(&settled(world)), [(base.clone(), Some("web".to_owned()))]);
}

/// The load balancer of Services 1 and 2 is edited.
fn edit_balancer(world: &mut World, edit: impl FnOnce(&mut LoadBalancer)) {
    let all = world.azure.balancers.known_mut().into_iter().flat_map(|all| all.values_mut());
    edit(Arc::make_mut(all.into_iter().next().expect("there is one")));
}

/// What Service 1 is told.
fn told(world: &World) -> Vec<String> {
    let (plan, _) = crate::plan(world, &policy());
    let ingress = plan.writes.iter().filter_map(|write| match &write.edit {
        Edit::Status { ingress, .. } => ingress.as_ref(),
        _ => None,
    });
    ingress.flatten().filter_map(|entry| Some(entry.ip.as_ref()?.to_string())).collect()
}

fn untell(world: &mut World) {
    service_mut(world, &uid(1)).ingress.clear();
}

#[test]
fn who_leaves_a_shared_public_ip_takes_its_label_tag_along() {
    let mut world = settled(world(vec![public(1), public(2)]));
    edit(&mut world, 1, |ip| {
        let tags = ip.tags.get_or_insert_default();
        tags.insert("k8s-azure-service".into(), "default/web-1,default/web-2".into());
        tags.insert("k8s-azure-dns-label-service".into(), "default/web-2".into());
    });
    let changes = changes(&world);
    let [change] = &changes[..] else { panic!("one change: {changes:#?}") };
    let Action::Put { after: Resource::PublicIp(after), .. } = &change.action else {
        panic!("the public IP: {change:#?}")
    };
    assert_eq!((tags::users(after), tags::dns_owner(after)), (vec!["default/web-1"], None));
}

/// A name on the tag that nobody waits for when its Service is deleted would keep the public IP for
/// ever.
#[test]
fn a_service_is_named_on_a_shared_public_ip_once_it_has_its_finalizer() {
    let mut world = settled(world(vec![public(1)]));
    let first = public_ips_mut(&mut world).values().next().expect("it has one").clone();
    let name = ("azure-pip-name", first.id.name());
    let second = crate::shape::stage::public(2, "default", &[name]);
    crate::shape::stage::change(&mut world, Service { finalizers: Vec::new(), ..second.clone() });
    let (plan, report) = crate::plan(&world, &policy());
    assert_eq!((plan.changes.len(), claims(&world)), (0, 1), "{:#?}", plan.changes);
    assert!(report.services[&second.uid].waits.contains(&Wait::Finalizer), "{report:#?}");
    crate::shape::stage::change(&mut world, second);
    let named = changes(&world).iter().any(|change| {
        matches!(&change.action, Action::Put { after: Resource::PublicIp(ip), .. }
            if tags::users(ip) == ["default/web-1", "default/web-2"])
    });
    assert!(named, "{:#?}", changes(&world));
}

/// An empty tag would count as an operator's, who has taken the public IP back: it would be left
/// over.
#[test]
fn the_last_service_stays_named_until_the_one_that_comes_can_be() {
    let mut world = settled(world(vec![public(1)]));
    let first = public_ips_mut(&mut world).values().next().expect("it has one").clone();
    let second = crate::shape::stage::public(2, "default", &[("azure-pip-name", first.id.name())]);
    service_mut(&mut world, &uid(1)).wish = Wish::Nothing;
    crate::shape::stage::change(&mut world, Service { finalizers: Vec::new(), ..second.clone() });
    let named = |world: &World| -> Vec<String> {
        let all = changes(world);
        let put = all.iter().filter_map(|change| match &change.action {
            Action::Put { after: Resource::PublicIp(ip), .. } => Some(tags::users(ip).join(",")),
            _ => None,
        });
        put.collect()
    };
    assert_eq!(named(&world), Vec::<String>::new());
    crate::shape::stage::change(&mut world, second);
    assert_eq!(named(&world), ["default/web-2"]);
}

#[test]
fn no_address_is_told_while_azure_works_at_the_load_balancer() {
    let mut world = settled(world(vec![public(1), public(2)]));
    untell(&mut world);
    assert_eq!(told(&world).len(), 1);
    edit_balancer(&mut world, |balancer| balancer.provisioning = Provisioning::Busy);
    assert_eq!(told(&world), Vec::<String>::new());
}

/// Nothing in Azure says who set a tag.
#[test]
fn a_tag_that_an_annotation_set_goes_with_it_where_that_is_recorded() {
    let annotations = fixture::service(&[("azure-pip-tags", "Team=net")]).annotations;
    let cluster = world(vec![Service { annotations, ..public(1) }]);
    let set = crate::plan(&cluster, &policy()).0.tags;
    assert!(!set.is_empty(), "it is recorded first");
    let mut world = settled(cluster);
    assert!(crate::plan(&world, &policy()).0.tags.is_empty());
    crate::shape::stage::change(&mut world, public(1));
    let written = |plan: &model::Plan| {
        let ips = plan.changes.iter().filter_map(|change| match &change.action {
            Action::Put { after: Resource::PublicIp(ip), .. } => ip.tags.clone(),
            _ => None,
        });
        ips.collect::<Vec<_>>()
    };
    let mut planner = crate::Planner::default();
    assert_eq!(written(&planner.plan(&world, &policy()).0), [], "nothing says who set it");
    let ledger = world.kubernetes.ledger.known_mut().expect("it was read");
    Arc::make_mut(ledger).tags = set;
    let (plan, _) = planner.plan(&world, &policy());
    assert_eq!(check(&world, &policy(), &plan), []);
    let left = written(&plan);
    let [tags] = &left[..] else { panic!("{plan:#?}") };
    assert_eq!((model::azure::tag(tags, "team"), tags.len()), (None, 2), "ours stay");
}

/// A Service of both families on nodes of both, at rest.
fn dual(service: Service) -> World {
    let mut world = world(vec![Service { families: vec![Family::V4, Family::V6], ..service }]);
    for node in world.kubernetes.nodes.values_mut() {
        Arc::make_mut(node).addresses.push("fd00::4".parse().expect("an address"));
    }
    settled(world)
}

#[test]
fn two_families_are_told_at_once() {
    let mut world = dual(public(1));
    untell(&mut world);
    assert_eq!(told(&world).len(), 2);
    edit_balancer(&mut world, |balancer| {
        balancer.rules.retain(|rule| !rule.name.ends_with("-IPv6"));
        balancer.frontends.retain(|frontend| !frontend.name.ends_with("-IPv6"));
    });
    // Nothing can be written for the second one yet.
    let mut ips = public_ips_mut(&mut world).values_mut();
    let six = ips.find(|ip| ip.family == Family::V6).expect("it has one of IPv6");
    Arc::make_mut(six).provisioning = Provisioning::Busy;
    assert_eq!(told(&world), Vec::<String>::new());
}

/// The Service is turned back while Azure deletes its public IPs, and that of IPv6 is gone first.
#[test]
fn the_second_family_waits_while_the_first_ones_public_ip_goes() {
    let mut world = dual(public(1));
    let name = |ip: &PublicIp| ip.id.name().contains(&*uid(1).base_name());
    let ips = public_ips_mut(&mut world);
    let four = ips.values().find(|ip| name(ip) && ip.family == Family::V4).expect("one");
    let four = four.id.clone();
    ips.retain(|_, ip| !name(ip) || ip.family == Family::V4);
    let write = InFlight { goes: true, ..in_flight([uid(1)]) };
    world.in_flight.insert(four.clone(), write);
    let all = changes(&world);
    let six = all.iter().find(|change| change.target.name().ends_with("-IPv6"));
    assert!(six.is_some_and(|six| six.waits.contains(&Wait::Writing(four))), "{all:#?}");
}

/// Other IP tags: both public IPs are made again, and Azure has deleted that of IPv6 first.
#[test]
fn the_second_family_waits_for_a_public_ip_that_is_made_again() {
    let annotations = fixture::service(&[("azure-pip-ip-tags", "Use=web")]).annotations;
    let mut world = dual(Service { annotations, ..public(1) });
    edit_balancer(&mut world, |balancer| {
        balancer.rules.clear();
        balancer.frontends.clear();
    });
    let ips = public_ips_mut(&mut world);
    ips.retain(|_, ip| ip.family == Family::V4);
    let own = ips.values_mut().find(|ip| ip.id.name().contains(&*uid(1).base_name()));
    let four = Arc::make_mut(own.expect("it has one of IPv4"));
    four.ip_tags.clear();
    let four = four.id.clone();
    let waits = |world: &World| {
        let all = changes(world);
        let six = all.iter().find(|change| change.target.name().ends_with("-IPv6"));
        six.unwrap_or_else(|| panic!("it is to be made: {all:#?}")).waits.clone()
    };
    let gone = Wait::Resource { id: four.clone(), until: Until::Gone };
    assert_eq!(waits(&world), [gone], "it is about to be deleted");
    world.in_flight.insert(four.clone(), InFlight { goes: true, ..in_flight([uid(1)]) });
    assert_eq!(waits(&world), [Wait::Writing(four.clone())]);
    world.in_flight.clear();
    public_ips_mut(&mut world).remove(&four);
    assert_eq!(waits(&world), [Wait::Resource { id: four, until: Until::Ready }]);
    settled(world);
}

/// IP tags of one family's public IP are others: it is made again, and clients of the other family
/// notice nothing.
#[test]
fn a_public_ip_that_is_made_again_leaves_the_other_family_alone() {
    let annotations = fixture::service(&[("azure-pip-ip-tags", "Use=web")]).annotations;
    let mut world = dual(Service { annotations, ..public(1) });
    let mut ips: Vec<_> = public_ips_mut(&mut world).values_mut().collect();
    ips.retain(|ip| ip.id.name().contains(&*uid(1).base_name()));
    let [four, six] = &mut ips[..] else { panic!("one of each family: {ips:#?}") };
    assert_eq!((four.family, six.family), (Family::V4, Family::V6));
    Arc::make_mut(six).ip_tags.clear();
    let (four, six) = (four.id.clone(), six.id.clone());

    let all = changes(&world);
    let (mut gone, mut frontends) = (Vec::new(), Vec::new());
    for change in &all {
        match &change.action {
            Action::Delete { before } => gone.push(before.id().clone()),
            Action::Put { after: Resource::LoadBalancer(after), .. } => {
                frontends.extend(after.frontends.iter().map(|f| f.address.clone()));
            }
            _ => {}
        }
    }
    assert_eq!(gone, std::slice::from_ref(&six));
    assert!(frontends.contains(&FrontendAddress::Public(four)), "{frontends:#?}");
    assert!(!frontends.contains(&FrontendAddress::Public(six)), "{frontends:#?}");
    edit_balancer(&mut world, |balancer| {
        balancer.rules.retain(|rule| !rule.name.ends_with("-IPv6"));
        balancer.frontends.retain(|frontend| !frontend.name.ends_with("-IPv6"));
    });
    assert_eq!(told(&world).len(), 1, "the status keeps the other address");
    settled(world);
}

#[test]
fn a_frontend_waits_for_its_public_ip() {
    let mut world = settled(world(vec![public(1), public(2)]));
    let base = uid(1).base_name();
    edit_balancer(&mut world, |balancer| {
        balancer.rules.retain(|rule| !rule.name.contains(&*base));
        balancer.frontends.retain(|frontend| !frontend.name.contains(&*base));
    });
    let writes = |world: &World| changes(world).iter().filter(|c| c.waits.is_empty()).count();
    assert_eq!(writes(&world), 1, "the load balancer");
    edit(&mut world, 1, |ip| ip.provisioning = Provisioning::Busy);
    assert_eq!(writes(&world), 0);
}

/// Azure allocates a dynamic address when a frontend is put on it, not before.
#[test]
fn a_frontend_does_not_wait_for_a_dynamic_address() {
    let basic = Policy { sku: BalancerSku::Basic, ..policy() };
    let annotations = fixture::service(&[("azure-pip-name", "mine")]).annotations;
    let mut world = world(vec![Service { annotations, ..public(1) }]);
    let bare = PublicIp { tags: None, sku: Sku::Basic, ..fixture::public_ip("mine", None) };
    let id = bare.id.clone();
    let wait = Wait::Resource { id: id.clone(), until: Until::Ready };
    for (allocation, stands) in [(Allocation::Static, false), (Allocation::Dynamic, true)] {
        let ip = PublicIp { allocation, ..bare.clone() };
        public_ips_mut(&mut world).insert(id.clone(), Arc::new(ip));
        let (plan, report) = crate::plan(&world, &basic);
        assert_eq!(check(&world, &basic, &plan), []);
        let put = plan.changes.iter().any(|change| match &change.action {
            Action::Put { after: Resource::LoadBalancer(after), .. } => {
                after.frontends.iter().any(|f| f.address == FrontendAddress::Public(id.clone()))
            }
            _ => false,
        });
        assert_eq!(put, stands, "{plan:#?}");
        assert!(report.services[&uid(1)].waits.contains(&wait), "{report:#?}");
    }
}

#[test]
fn what_is_not_known_of_a_rule_stays_when_it_is_changed() {
    let mut world = settled(world(vec![public(1)]));
    let mut fields = Rest::default().unpack();
    fields.top.insert("theirs".to_owned(), true.into());
    let theirs = Rest::from(fields);
    edit_balancer(&mut world, |balancer| balancer.rules[0].rest = theirs.clone());
    service_mut(&mut world, &uid(1)).affinity = model::kubernetes::Affinity::ClientIp;
    let changes = changes(&world);
    let [change] = &changes[..] else { panic!("one change: {changes:#?}") };
    let Action::Put { after: Resource::LoadBalancer(after), .. } = &change.action else {
        panic!("the load balancer: {change:#?}")
    };
    assert_eq!(after.rules[0].rest, theirs);
}

#[test]
fn a_public_ip_goes_after_the_rules_to_its_address() {
    let mut world = settled(world(vec![public(1), public(2)]));
    leave_balancers(&mut world);
    edit_balancer(&mut world, |balancer| balancer.rules.clear());
    service_mut(&mut world, &uid(1)).wish = Wish::Nothing;
    let waits = |world: &World| -> Vec<usize> {
        let changes = changes(world);
        let deleted = changes.iter().filter(|c| matches!(c.action, Action::Delete { .. }));
        deleted.map(|change| change.waits.len()).collect()
    };
    assert_eq!(waits(&world), [1], "the security group comes first");
    security_group_mut(&mut world).rules.clear();
    assert_eq!(waits(&world), [0]);
}

#[test]
fn a_service_of_another_process_is_not_let_go_by_the_first_lists() {
    let service = Service { wish: Wish::Nothing, ..public(1) };
    let mut world = world(vec![service]);
    let released = |world: &World| {
        let (plan, _) = crate::plan(world, &policy());
        plan.writes.iter().filter(|w| matches!(w.edit, Edit::Finalizers { .. })).count()
    };
    assert_eq!(released(&world), 1);
    world.inherited.insert(uid(1));
    assert_eq!(released(&world), 0);
}

/// The finalizer of a Service was stripped, and the Service is gone. A write of the security group
/// is in flight that may open its address: the address goes once that is seen, and closed.
#[test]
fn the_public_ip_of_a_service_that_is_gone_waits_for_what_may_open_its_address() {
    let mut world = settled(world(vec![public(1), public(2)]));
    world.kubernetes.services.remove(&uid(1));
    world.abandoned.insert("default/web-1".into());
    world.abandoned.insert(uid(1).base_name().to_lowercase().into());
    leave_balancers(&mut world);
    security_group_mut(&mut world).rules.clear();
    let waits = |world: &World| -> Vec<usize> {
        let name = format!("kubernetes-{}", uid(1).base_name());
        let changes = changes(world);
        let gone = changes.iter().filter(|change| change.target.name() == name);
        gone.map(|change| change.waits.len()).collect()
    };
    assert_eq!(waits(&world), [0]);
    let flight = in_flight([uid(1)]);
    world.in_flight.insert(policy().security_group_id(), flight);
    assert_eq!(waits(&world), [1]);
}
