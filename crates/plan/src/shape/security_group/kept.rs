//! What stays open for Services that keep what they have: those that are refused or set aside,
//! those about which something has to be read first, and those that do not carry our finalizer yet;
//! and for Private Link Services with private endpoints whose Service is gone.

use super::super::pool;
use super::Book;
use crate::claim::placement::{self, Assignment, Backends, Placement};
use crate::claim::security_group::room::is_crowded;
use crate::draft::{Case, Draft, Stance};
use crate::own::name::is_managed;
use crate::own::{Owner, Whose, is_claimed, is_named_after_one};
use crate::standing::{frontend, private_link};
use model::azure::{
    Frontend, FrontendAddress, LoadBalancer, PrivateLinkService, Rule, SecurityGroup, SecurityRule,
};
use model::kubernetes::{Node, NodeRole, Service};
use model::policy::PoolKind;
use model::{Family, Holder, ServiceUid};
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::net::IpAddr;
use std::sync::Arc;

/// What is open for Services that keep what they have, and stays so.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Addresses that stay open.
    destinations: BTreeMap<Arc<str>, Ports>,
    /// What is open without floating IP: rules to node ports name the nodes.
    backends: Vec<Behind>,
}

/// What of an address stays open.
#[derive(Clone, Debug)]
enum Ports {
    /// All of it: nothing says what was opened.
    All,
    /// Rules to these ports, and those to all ports. Others on the address have their own.
    Some(BTreeSet<Arc<str>>),
}

impl Ports {
    fn has(&self, rule: &SecurityRule) -> bool {
        match self {
            Self::All => true,
            Self::Some(ports) => {
                rule.ports.contains("*") || rule.ports.iter().any(|port| ports.contains(port))
            }
        }
    }

    fn extend(&mut self, more: Self) {
        match (&mut *self, more) {
            (Self::Some(ports), Self::Some(more)) => ports.extend(more),
            _ => *self = Self::All,
        }
    }
}

/// The nodes behind a Service's rules on one load balancer.
#[derive(Debug)]
struct Behind {
    /// Whose they are, where its rules follow them: a Service that Azure refuses is tried again
    /// soon, and its part must not be in other Services' writes meanwhile.
    follower: Option<ServiceUid>,
    /// Node ports that its rules lead to.
    ports: BTreeSet<Arc<str>>,
    /// Addresses of the nodes that its rules are to lead to.
    nodes: BTreeSet<IpAddr>,
    /// The same and those of nodes that have left.
    ever: BTreeSet<Arc<str>>,
}

impl Behind {
    /// Whether a rule of ours may be the Service's. One that denies all ports of the nodes cuts off
    /// the cluster: it is no Service's.
    fn has(&self, rule: &SecurityRule) -> bool {
        !rule.ports.is_disjoint(&self.ports)
    }

    /// The nodes that a rule of the Service's is to lead to, where it leads to nodes.
    fn coming(&self, rule: &SecurityRule) -> impl Iterator<Item = &IpAddr> {
        let led = rule.destinations.iter().filter(|d| self.ever.contains(*d));
        let families: BTreeSet<Family> =
            led.filter_map(|d| d.parse().ok()).map(Family::of).collect();
        self.nodes.iter().filter(move |a| families.contains(&Family::of(**a)))
    }
}

impl Kept {
    /// All of these addresses stays open.
    pub fn keep_all(&mut self, destinations: impl IntoIterator<Item = Arc<str>>) {
        destinations.into_iter().for_each(|at| self.keep(at, Ports::All));
    }

    /// These addresses stay open at a Service's ports.
    pub fn keep_ports(&mut self, service: &Service, destinations: Vec<IpAddr>) {
        let ports = Ports::Some(own_ports(service));
        destinations.into_iter().for_each(|at| self.keep(at.to_string().into(), ports.clone()));
    }

    fn keep(&mut self, destination: Arc<str>, ports: Ports) {
        match self.destinations.entry(destination) {
            Entry::Vacant(free) => drop(free.insert(ports)),
            Entry::Occupied(mut kept) => kept.get_mut().extend(ports),
        }
    }

    /// Whether nothing has to stay.
    pub fn is_empty(&self) -> bool {
        self.destinations.is_empty() && self.backends.is_empty()
    }

    /// Whether a destination of a rule of ours stays.
    pub fn has(&self, rule: &SecurityRule, destination: &Arc<str>) -> bool {
        let is_node = |behind: &Behind| {
            destination.parse().is_ok_and(|address| behind.nodes.contains(&address))
        };
        self.destinations.get(destination).is_some_and(|ports| ports.has(rule))
            || self.backends.iter().any(|behind| behind.has(rule) && is_node(behind))
    }

    /// Whether no rule follows nodes.
    pub fn rests(&self, group: &SecurityGroup) -> bool {
        let mut followed = self.backends.iter().filter(|behind| behind.follower.is_some());
        followed.all(|behind| {
            let mut own = group.rules.iter().filter(|rule| is_managed(rule) && behind.has(rule));
            own.all(|rule| behind.coming(rule).next().is_none())
        })
    }

    /// Opens the nodes that have come, once they are recorded: what a refused Service had goes on
    /// working on every node. Returns the Services on whose account rules changed.
    pub fn follow(
        &self,
        before: &SecurityGroup,
        after: &mut SecurityGroup,
        book: &mut Book<'_>,
    ) -> BTreeSet<ServiceUid> {
        let mut causes = BTreeSet::new();
        for behind in &self.backends {
            let Some(follower) = &behind.follower else { continue };
            for past in before.rules.iter().filter(|rule| is_managed(rule) && behind.has(rule)) {
                let coming = behind.coming(past).filter(|a| book.ask(**a, Holder::Node));
                let coming: BTreeSet<Arc<str>> = coming.map(|a| a.to_string().into()).collect();
                if coming.is_subset(&past.destinations) {
                    continue;
                }
                let at = after.rules.iter().position(|rule| rule.name == past.name);
                let present = at.map(|at| after.rules[at].clone());
                let mut rule = present.clone().unwrap_or_else(|| past.clone());
                if at.is_none() {
                    rule.destinations.clear();
                }
                rule.destinations.extend(coming);
                if is_crowded(after, present.as_ref(), &rule) {
                    continue;
                }
                match at {
                    Some(at) => after.rules[at] = rule,
                    None => after.rules.push(rule),
                }
                causes.insert(follower.clone());
            }
        }
        causes
    }
}

/// Works out what is open for Services that keep what they have.
pub(super) fn kept(draft: &Draft<'_>, placement: &Placement) -> Kept {
    let mut kept = Kept::default();
    let text = |address: IpAddr| -> Arc<str> { Arc::from(address.to_string()) };
    let cases = draft.cases.values().filter(|case| match case.stance {
        Stance::Frozen(_) => true,
        Stance::Wanted(_) => !is_claimed(draft.policy, case.service),
        Stance::Container(_) | Stance::Leaving => false,
    });
    // A frontend on a public IP that lists do not show: they are old, for Azure deletes none that
    // is referred to. Until they show its address, what status tells stays open.
    let unseen = placement.balancers.keys().filter_map(|id| draft.balancer(id));
    let unseen = unseen.flat_map(|b| &b.frontends).filter(|f| is_unseen(draft, f));
    let unseen = unseen.filter_map(|f| draft.cases.get(draft.owner_of(&f.name)?));
    let told = unseen.flat_map(|case| &case.service.ingress).filter_map(|i| i.ip.clone());
    kept.keep_all(told);
    for case in cases {
        let shown = case.service.ingress.iter().filter_map(|i| i.ip.clone());
        let shown = shown.filter(|ip| !draft.claims.is_withheld(&case.service.uid, ip));
        let mut addresses: BTreeSet<Arc<str>> = shown.collect();
        let mut led_to = Vec::new();
        for (id, seats) in &placement.balancers {
            let Some(balancer) = draft.view(id) else { continue };
            let rules = balancer.rules_of(&case.base);
            let led = balancer.led_by(&case.base);
            let mut fronts = balancer.frontends_of(&case.base).into_iter().chain(led).peekable();
            if fronts.peek().is_none() {
                continue;
            }
            addresses.extend(fronts.filter_map(|f| frontend::address_of(draft, f)).map(text));
            led_to.extend(rules.iter().map(|rule| rule.frontend_port));
            kept.backends.push(behind(draft, Some(case), &balancer, seats, &rules));
        }
        let ports = opened(own_ports(case.service), &led_to);
        addresses.into_iter().for_each(|at| kept.keep(at, ports.clone()));
    }
    keep_connected(&mut kept, draft, placement);
    kept
}

/// Keeps open the rules behind Private Link Services that stay without their Service because
/// private endpoints are connected: the security group filters traffic through an endpoint, too.
fn keep_connected(kept: &mut Kept, draft: &Draft<'_>, placement: &Placement) {
    let ours = |link: &&Arc<PrivateLinkService>| draft.own.private_link(link) == Whose::Ours;
    let links = private_link::known(draft).filter(|l| private_link::connected(l).next().is_some());
    for id in links.filter(ours).flat_map(|link| &link.frontends) {
        let Some(balancer) = id.parent().and_then(|of| draft.view(&of)) else { continue };
        let Some(frontend) = balancer.frontend(id.name()) else { continue };
        let mut rules = balancer.rules_to(&frontend.name);
        rules.retain(|r| is_named_after_one(&r.name) && draft.whose(&r.name) == Owner::Foreign);
        if rules.is_empty() {
            continue;
        }
        let led_to: Vec<u16> = rules.iter().map(|rule| rule.frontend_port).collect();
        let address = frontend::address_of(draft, frontend).map(|a| Arc::from(a.to_string()));
        address.into_iter().for_each(|at| kept.keep(at, opened(BTreeSet::new(), &led_to)));
        rules.retain(|rule| rule.floating_ip != Some(true));
        let seats = placement.balancers.get(&balancer.id).filter(|_| !rules.is_empty());
        let behind = seats.map(|seats| behind(draft, None, &balancer, seats, &rules));
        kept.backends.extend(behind);
    }
}

/// Ports that may be open for a Service with these ports and rules to those ports.
fn opened(mut own: BTreeSet<Arc<str>>, led_to: &[u16]) -> Ports {
    // No rule says what it had, or one leads to all ports.
    if led_to.is_empty() || led_to.contains(&0) {
        return Ports::All;
    }
    own.extend(led_to.iter().map(|port| Arc::from(port.to_string())));
    Ports::Some(own)
}

/// What may be open for a Service as it is: its ports, and the node ports that lead to them.
fn own_ports(service: &Service) -> BTreeSet<Arc<str>> {
    let own = service.ports.iter().flat_map(|port| [Some(port.port), port.node_port]);
    own.flatten().map(|port| Arc::from(port.to_string())).collect()
}

/// Whether a frontend refers to a public IP that is not known.
fn is_unseen(draft: &Draft<'_>, frontend: &Frontend) -> bool {
    match &frontend.address {
        FrontendAddress::Public(id) => draft.public_ip(id).is_none(),
        _ => false,
    }
}

/// The nodes behind rules of a Service; `None`: it is gone.
fn behind(
    draft: &Draft<'_>,
    case: Option<&Case<'_>>,
    balancer: &LoadBalancer,
    seats: &Assignment,
    rules: &[&Rule],
) -> Behind {
    let own = case.into_iter().flat_map(|case| &case.service.ports);
    let ports = own.filter_map(|port| port.node_port);
    let ports = ports.chain(rules.iter().map(|r| r.backend_port));
    let led = |name: &str| {
        let id = balancer.id.child("backendAddressPools", name);
        rules.is_empty() || rules.iter().any(|r| r.pool.as_ref() == Some(&id))
    };
    let pools = balancer.pools.iter().filter(|p| led(&p.name));
    let held: BTreeSet<IpAddr> = pools.flat_map(|p| &p.addresses).map(|a| a.address).collect();
    let let_go = pool::let_go(draft, balancer);
    let staying: BTreeSet<IpAddr> = held.difference(&let_go).copied().collect();
    // The last one stays until another is in the pool: a rule without nodes goes, and nothing
    // would say what it was.
    let mut nodes = if staying.is_empty() { held.clone() } else { staying };
    // Where pools hold no addresses, those of the nodes that are to be in them.
    if draft.policy.pools != PoolKind::NodeIp {
        let all = draft.world.kubernetes.nodes.values();
        let of_all: Vec<_> = match &seats.backends {
            Backends::Nodes(nodes) => nodes.iter().collect(),
            Backends::AsTheyAre => all.collect(),
        };
        let control = placement::control_plane(draft, &balancer.id);
        let workers = of_all.into_iter().filter(|n| n.role == NodeRole::Worker);
        let members = workers.chain(&control).filter(|n| !n.membership.is_left_out());
        let addresses = |n: &Arc<Node>| Family::ALL.map(|family| n.address(family));
        nodes.extend(members.flat_map(addresses).flatten());
    }
    let ever = held.union(&nodes).map(|a| a.to_string().into()).collect();
    let follows = |case: &&Case<'_>| {
        matches!(case.stance, Stance::Frozen(_))
            && !draft.world.holds.contains_key(&case.service.uid)
    };
    Behind {
        follower: case.filter(follows).map(|case| case.service.uid.clone()),
        ports: ports.map(|port| port.to_string().into()).collect(),
        nodes,
        ever,
    }
}
