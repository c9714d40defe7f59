//! Hands a BYO public IP over to the cluster, or one of the cluster's back to the operator: whether
//! that is possible, and what it changes.
//!
//! # Guarantees
//! - A Service hands over only public IPs that its own frontend stands on: never one that another
//!   Service holds.
//! - A public IP that carries another cluster's tag stays as it is.
//! - A public IP is not taken back where its Service would be refused then.

use crate::forecast::{Forecast, forecast};
use model::azure::{Frontend, FrontendAddress, LoadBalancer, PublicIp};
use model::kubernetes::{Deletion, Service};
use model::plan::{Action, Change, Resource};
use model::report::{Finding, ServiceReport};
use model::world::Fact;
use model::{Policy, Report, ResourceId, ServiceName, ServiceUid, World};
use plan::own::{Base, Own, Whose, public_ips, tags};
use plan::plan;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Whose a public IP becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handover {
    /// The cluster's: it is deleted with its last Service.
    ToBallast,
    /// The operator's: a BYO public IP, which is never deleted.
    ToOperator,
}

/// What handing over comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adoption {
    /// One PUT a public IP, which writes the tags.
    pub changes: Vec<Change>,
    /// The Services that use these public IPs.
    pub users: Vec<ServiceName>,
    /// What the controller writes once it has seen the tags.
    pub then: Forecast,
}

/// Why nothing is handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The Service is not there, or has no load balancer.
    NoService,
    /// The Service is being deleted.
    Deleted,
    /// The Service has no public IP yet.
    NoPublicIp,
    /// This public IP is the cluster's already.
    Adopted(Arc<str>),
    /// This public IP is a BYO public IP already.
    Byo(Arc<str>),
    /// With a BYO public IP this Service would be refused, for this reason.
    NotAllowed(ServiceName, String),
    /// This Service was first on the public IP.
    HeldBy(Arc<str>, ServiceName),
    /// The public IP is not in the resource group of the cloud config.
    OtherGroup(Arc<str>),
    /// The public IP carries another cluster's tag.
    Foreign(Arc<str>),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoService => f.write_str("no Service of type LoadBalancer has this name"),
            Self::Deleted => f.write_str("the Service is being deleted"),
            Self::NoPublicIp => f.write_str(
                "it stands on no public IP; name one in its annotation azure-pip-name, and wait \
                 until it is programmed",
            ),
            Self::Adopted(ip) => {
                write!(f, "public IP {ip} is Ballast's already, and is deleted with its Services")
            }
            Self::Byo(ip) => {
                write!(f, "public IP {ip} is a BYO public IP already, which Ballast never deletes")
            }
            Self::NotAllowed(service, why) => {
                write!(f, "Service {service} would be refused afterwards ({why})")
            }
            Self::HeldBy(ip, holder) => {
                write!(f, "public IP {ip} is held by Service {holder}; name that Service instead")
            }
            Self::OtherGroup(ip) => write!(
                f,
                "public IP {ip} is not in the resource group of the cloud config, which is the \
                 only one where Ballast deletes adopted public IPs"
            ),
            Self::Foreign(ip) => {
                write!(f, "public IP {ip} carries the tags of another cluster's controller")
            }
        }
    }
}

/// The writes that hand over the public IPs of a Service, and the Services that use them.
///
/// # Errors
/// None of them can be handed over, or one of them cannot.
pub fn adoption(
    world: &World,
    policy: &Policy,
    service: &ServiceName,
    handover: Handover,
) -> Result<Adoption, Refused> {
    let mut services = world.kubernetes.services.values();
    let service = services.find(|known| known.name == *service).ok_or(Refused::NoService)?;
    if service.deletion != Deletion::None {
        return Err(Refused::Deleted);
    }
    let (own, known) = (Own::new(world, policy), by_base(world));
    let mut users: BTreeSet<&ServiceName> = BTreeSet::new();
    let (mut changes, mut already) = (Vec::new(), None);
    for (id, on) in standing(world, &known) {
        if !on.iter().any(|user| user.uid == service.uid) {
            continue;
        }
        let Some(ip) = public_ips(world).find(|ip| ip.id == *id) else { continue };
        let name: Arc<str> = Arc::from(id.name());
        match (handover, own.public_ip(ip)) {
            (_, Whose::OtherName | Whose::Foreign) => return Err(Refused::Foreign(name)),
            (Handover::ToBallast, Whose::Ours) => already = Some(Refused::Adopted(name)),
            (Handover::ToOperator, Whose::Unmarked) => already = Some(Refused::Byo(name)),
            _ if on[0].uid != service.uid => {
                return Err(Refused::HeldBy(name, on[0].name.clone()));
            }
            (Handover::ToBallast, Whose::Unmarked) if !id.is_in(&policy.group) => {
                return Err(Refused::OtherGroup(name));
            }
            (Handover::ToBallast | Handover::ToOperator, Whose::Unmarked | Whose::Ours) => {
                users.extend(on.iter().map(|user| &user.name));
                changes.push(tagged(ip, policy, (&on, &service.uid), handover));
            }
        }
    }
    if changes.is_empty() {
        return Err(already.unwrap_or(Refused::NoPublicIp));
    }
    let then = forecast(&after(world, &changes), policy);
    if handover == Handover::ToOperator
        && let Some((service, why)) = refused(&plan(world, policy).1, &then.report, &users)
    {
        return Err(Refused::NotAllowed(service, why));
    }
    Ok(Adoption { changes, users: users.into_iter().cloned().collect(), then })
}

/// The first of these Services that is refused for another reason than before.
fn refused(
    before: &Report,
    after: &Report,
    users: &BTreeSet<&ServiceName>,
) -> Option<(ServiceName, String)> {
    let known = |uid: &ServiceUid, finding: &Finding| {
        let before = before.services.get(uid);
        before.is_some_and(|service| service.findings.iter().any(|f| f.rule == finding.rule))
    };
    let reason = |(uid, service): (&ServiceUid, &Arc<ServiceReport>)| {
        let freezing = service.findings.iter().filter(|finding| finding.severity.freezes());
        let mut new = freezing.filter(|finding| !known(uid, finding));
        new.next().map(|finding| (service.name.clone(), finding.to_string()))
    };
    after.services.iter().filter(|(_, service)| users.contains(&service.name)).find_map(reason)
}

/// The Services by base name.
fn by_base(world: &World) -> BTreeMap<Base, &Service> {
    let all = world.kubernetes.services.values();
    all.map(|service| (Base::of_service(&service.uid), &**service)).collect()
}

/// Public IPs under frontends, each with its Services: first the one that the frontend is named
/// after, then those of the rules that lead to it. There is at least one.
fn standing<'w>(
    world: &'w World,
    known: &BTreeMap<Base, &'w Service>,
) -> Vec<(&'w ResourceId, Vec<&'w Service>)> {
    let balancers = world.azure.balancers.each();
    let frontends = balancers.flat_map(|on| on.frontends.iter().map(move |f| (&**on, f)));
    let found = frontends.filter_map(|(balancer, frontend)| match &frontend.address {
        FrontendAddress::Public(id) => Some((id, users(balancer, frontend, known))),
        FrontendAddress::Private { .. } | FrontendAddress::Other => None,
    });
    found.filter(|(_, users)| !users.is_empty()).collect()
}

fn users<'w>(
    balancer: &LoadBalancer,
    frontend: &Frontend,
    known: &BTreeMap<Base, &'w Service>,
) -> Vec<&'w Service> {
    let id = balancer.id.child("frontendIPConfigurations", &frontend.name);
    let rules = balancer.rules.iter().filter(|rule| rule.frontend.as_ref() == Some(&id));
    let names = std::iter::once(&frontend.name).chain(rules.map(|rule| &rule.name));
    let mut users: Vec<&Service> = Vec::new();
    for user in names.filter_map(|name| known.get(&Base::of(name)?).copied()) {
        if !users.iter().any(|there| there.uid == user.uid) {
            users.push(user);
        }
    }
    users
}

/// The public IP with the ownership tags after the handover.
fn tagged(
    ip: &Arc<PublicIp>,
    policy: &Policy,
    (on, cause): (&[&Service], &ServiceUid),
    handover: Handover,
) -> Change {
    let mut after = PublicIp::clone(ip);
    let names: Vec<String> = on.iter().map(|user| user.name.to_string()).collect();
    match handover {
        Handover::ToBallast => tags::adopt(&mut after, policy, &names.join(",")),
        Handover::ToOperator => tags::release(&mut after),
    }
    let (before, after) = (Resource::PublicIp(Arc::clone(ip)), Resource::PublicIp(Arc::new(after)));
    Change::put(Some(before), after, BTreeSet::from([cause.clone()]), Vec::new())
}

/// The World in which the tags are written.
fn after(world: &World, changes: &[Change]) -> World {
    let mut world = world.clone();
    for change in changes {
        let Action::Put { after: Resource::PublicIp(ip), .. } = &change.action else { continue };
        let groups = world.azure.public_ips.values_mut().filter_map(Fact::known_mut);
        for held in groups.filter_map(|group| group.get_mut(&ip.id)) {
            *held = Arc::clone(ip);
        }
    }
    world
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::{balancer, claimed, numbered, policy, public_ip, service, world};
    use model::Group;
    use model::kubernetes::Ingress;
    use std::net::IpAddr;

    const NAMED: [(&str, &str); 1] = [("azure-pip-name", "byo")];

    fn name(name: &str) -> ServiceName {
        ServiceName::new("default", name)
    }

    fn tags_of(all: &[(&str, &str)]) -> Option<model::azure::Tags> {
        Some(all.iter().map(|(key, value)| (Arc::from(*key), Arc::from(*value))).collect())
    }

    /// `default/web` stands on a public IP, and `default/web-2` shares it.
    fn estate(ip: PublicIp) -> World {
        let mut world = world();
        let mut web = claimed(service(&NAMED));
        web.ingress = vec![Ingress { ip: Some("20.1.2.3".into()), hostname: None }];
        let second = claimed(numbered(2, &NAMED));
        let mut balancer = balancer();
        balancer.frontends[0].address = FrontendAddress::Public(ip.id.clone());
        let mut rule = balancer.rules[0].clone();
        rule.name = format!("{}-TCP-81", second.uid.base_name()).into();
        balancer.rules.push(rule);
        for service in [web, second] {
            world.kubernetes.services.insert(service.uid.clone(), Arc::new(service));
        }
        world.azure.balancers = Fact::Known([(balancer.id.clone(), Arc::new(balancer))].into());
        let group = ip.id.group().unwrap_or(policy().group);
        let all = [(ip.id.clone(), Arc::new(ip))].into();
        world.azure.public_ips.insert(group, Fact::Known(all));
        world
    }

    fn byo() -> PublicIp {
        let ip = public_ip("byo", Some(IpAddr::from([20, 1, 2, 3])));
        PublicIp { tags: tags_of(&[("team", "net")]), ..ip }
    }

    /// The only write, which is of a public IP.
    fn written(found: &Adoption) -> &PublicIp {
        let [change] = found.changes.as_slice() else { panic!("{:?}", found.changes) };
        assert!(change.guard.is_some(), "another client's edit is not overwritten");
        let Action::Put { after: Resource::PublicIp(ip), .. } = &change.action else {
            panic!("{change:?}")
        };
        ip
    }

    fn adopted(world: &World, service: &ServiceName) -> Result<Adoption, Refused> {
        adoption(world, &policy(), service, Handover::ToBallast)
    }

    #[test]
    fn a_public_ip_is_taken_back_with_marks_that_have_no_value() {
        let ours = || {
            let ip = byo();
            let marks = public_ip("byo", None).tags.into_iter().flatten();
            let all = ip.tags.clone().into_iter().flatten().chain(marks);
            PublicIp { tags: Some(all.collect()), ..ip }
        };
        let back = |ip, policy: &Policy, service: &str| {
            adoption(&estate(ip), policy, &name(service), Handover::ToOperator)
        };
        let found = back(ours(), &policy(), "web").expect("it can");
        assert_eq!(found.users, [name("web"), name("web-2")]);
        let ip = written(&found);
        let wanted = [("team", "net"), ("k8s-azure-service", ""), ("k8s-azure-cluster-name", "")];
        assert_eq!(ip.tags, tags_of(&wanted));
        let more = found.then.changes.iter().find(|change| change.target == ip.id);
        assert_eq!(more, None, "no plan writes the tags again");
        let name: Arc<str> = "byo".into();
        assert_eq!(back(byo(), &policy(), "web"), Err(Refused::Byo(name.clone())));
        let holder = ServiceName::new("default", "web");
        assert_eq!(back(ours(), &policy(), "web-2"), Err(Refused::HeldBy(name, holder)));
        let mut strict = policy();
        strict.tenancy.public_ips = Some(Vec::new());
        let refused = back(ours(), &strict, "web").expect_err("it is on no list").to_string();
        assert!(refused.contains("would be refused afterwards"), "{refused}");
        assert!(refused.contains("allowedBYOPublicIPs"), "{refused}");
    }

    #[test]
    fn the_first_holder_hands_over_with_the_names_of_all_users() {
        let found = adopted(&estate(byo()), &name("web")).expect("it can");
        assert_eq!(found.users, [name("web"), name("web-2")]);
        let ip = written(&found);
        let wanted = tags_of(&[
            ("team", "net"),
            ("k8s-azure-service", "default/web,default/web-2"),
            ("k8s-azure-cluster-name", "kubernetes"),
        ]);
        assert_eq!(ip.tags, wanted);
        let more = found.then.changes.iter().find(|change| change.target == ip.id);
        assert_eq!(more, None, "the tags are all there is to write");
    }

    #[test]
    fn what_is_anothers_is_not_handed_over() {
        let refused = |ip: PublicIp, service: &str| {
            adopted(&estate(ip), &name(service)).expect_err("it cannot")
        };
        let ip: Arc<str> = "byo".into();
        assert_eq!(refused(byo(), "web-2"), Refused::HeldBy(ip.clone(), name("web")));
        assert_eq!(refused(byo(), "none"), Refused::NoService);
        let ours = PublicIp { tags: public_ip("byo", None).tags, ..byo() };
        assert_eq!(refused(ours, "web"), Refused::Adopted(ip.clone()));
        let theirs =
            tags_of(&[("k8s-azure-service", "default/web"), ("k8s-azure-cluster-name", "another")]);
        assert_eq!(
            refused(PublicIp { tags: theirs, ..byo() }, "web"),
            Refused::Foreign(ip.clone())
        );
        let group = Group::new("net");
        let elsewhere = PublicIp { id: policy().public_ip_id(&group, "byo"), ..byo() };
        assert_eq!(refused(elsewhere, "web"), Refused::OtherGroup(ip));
    }

    #[test]
    fn a_service_without_a_public_ip_has_none_to_hand_over() {
        let mut world = estate(byo());
        world.azure.balancers = Fact::Known(BTreeMap::new());
        assert_eq!(adopted(&world, &name("web")), Err(Refused::NoPublicIp));
        let uid = service(&[]).uid;
        let web = world.kubernetes.services.get_mut(&uid).expect("it is there");
        Arc::make_mut(web).deletion = Deletion::Requested;
        assert_eq!(adopted(&world, &name("web")), Err(Refused::Deleted));
    }
}
