//! The rules that Services want.

use super::super::pool;
use super::standing::{Standing, Standings};
use crate::ask::{DenyAll, FloatingIp, Intent, SecurityRules};
use crate::claim::placement::{self, Backends, Placement};
use crate::claim::security_group::{Shape, WantedRule};
use crate::draft::{Draft, Stance};
use crate::own::name::pool_of;
use crate::own::{is_claimed, part};
use crate::standing::pool::kind;
use model::azure::Access;
use model::policy::PoolKind;
use model::{Family, Protocol};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// Addresses of the nodes behind a Service's load balancer, of one family: those that are in the
/// pool that its rules lead to, and where pools hold no addresses those that are to be in it.
fn node_addresses(
    draft: &Draft<'_>,
    placement: &Placement,
    intent: &Intent,
    family: Family,
) -> BTreeSet<IpAddr> {
    let mut found = BTreeSet::new();
    for (id, seats) in placement.balancers.iter().filter(|(_, s)| s.has(&intent.uid)) {
        let name = pool_of(draft.policy, intent, family);
        let balancer = draft.balancer(id);
        let pools = balancer.into_iter().flat_map(|b| &b.pools);
        let own = pools.filter(|p| part::is_called(*p, &name));
        let let_go = balancer.map(|b| pool::let_go(draft, b)).unwrap_or_default();
        let held = own.flat_map(|p| &p.addresses).map(|a| a.address);
        found.extend(held.filter(|address| !let_go.contains(address)));
        // Where the pool holds addresses, one is opened once it is in it: its probe has to succeed
        // first, which takes longer than the rule.
        if kind(draft, id) == PoolKind::NodeIp {
            continue;
        }
        let (nodes, control) = match (seats.local.get(&intent.uid), &seats.backends) {
            (Some(local), _) => (local, Vec::new()),
            (None, Backends::Nodes(nodes)) => (nodes, placement::control_plane(draft, id)),
            (None, Backends::AsTheyAre) => continue,
        };
        let nodes = nodes.iter().chain(&control).filter(|n| !n.membership.is_left_out());
        found.extend(nodes.filter_map(|n| n.address(family)));
    }
    found
}

/// What Services wanted at the last plan.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// By the Services' names.
    shares: Vec<Share>,
    rules: Arc<[WantedRule]>,
}

/// What one Service wants, and what that follows from.
#[derive(Debug)]
struct Share {
    intent: Arc<Intent>,
    standing: Vec<(Family, IpAddr)>,
    rules: Vec<(Shape, BTreeSet<Arc<str>>)>,
}

impl Share {
    /// Whether a Service that asks this, and has these frontends, wants the same: only its own
    /// addresses are open, whoever else is on them.
    fn holds(&self, intent: &Arc<Intent>, standing: &BTreeMap<Family, Standing<'_>>) -> bool {
        let addresses = standing.iter().map(|(family, at)| (*family, at.address));
        let floats = intent.rule_options.floating_ip == FloatingIp::Enabled;
        Arc::ptr_eq(&self.intent, intent)
            && floats
            && intent.access.deny_all == DenyAll::No
            && self.standing.iter().copied().eq(addresses)
    }

    /// Whether another wants the same, on account of the same holder.
    fn is_same(&self, other: &Self) -> bool {
        let holder = |share: &Self| share.intent.rule_options.floating_ip;
        self.intent.uid == other.intent.uid
            && self.rules == other.rules
            && holder(self) == holder(other)
            && self.intent.additional == other.intent.additional
    }
}

impl Wanted {
    /// The rules that Services want, each once, in the order of the Services' names. The same value
    /// as at the last plan where they want the same.
    pub fn all(
        &mut self,
        draft: &Draft<'_>,
        placement: &Placement,
        standings: &Standings<'_>,
    ) -> Arc<[WantedRule]> {
        let mut past = std::mem::take(&mut self.shares).into_iter().peekable();
        let mut same = true;
        for uid in draft.by_name.values() {
            let case = &draft.cases[uid];
            let Stance::Wanted(intent) = &case.stance else { continue };
            let standing = standings.get(uid).filter(|standing| !standing.is_empty());
            let claimed = standing.filter(|_| is_claimed(draft.policy, case.service));
            let Some(standing) = claimed else { continue };
            while past.next_if(|share| share.intent.name < intent.name).is_some() {
                same = false;
            }
            let held = past.next_if(|share| share.intent.uid == *uid);
            if held.as_ref().is_some_and(|held| held.holds(intent, standing)) {
                self.shares.extend(held);
                continue;
            }
            let share = Share {
                intent: Arc::clone(intent),
                standing: standing.iter().map(|(family, at)| (*family, at.address)).collect(),
                rules: rules(draft, placement, intent, standing),
            };
            same &= held.is_some_and(|held| held.is_same(&share));
            self.shares.push(share);
        }
        if !same || past.next().is_some() {
            self.rules = joined(&self.shares).into();
        }
        Arc::clone(&self.rules)
    }
}

/// What all Services want, in their order.
fn joined(shares: &[Share]) -> Vec<WantedRule> {
    let mut wanted: Vec<WantedRule> = Vec::new();
    // Many Services want the same rule: it is named once.
    let mut places: BTreeMap<&Shape, usize> = BTreeMap::new();
    for Share { intent, rules, .. } in shares {
        for (shape, destinations) in rules {
            let at = *places.entry(shape).or_insert_with(|| {
                let (shape, name) = (shape.clone(), shape.name());
                let (destinations, causes) = (BTreeSet::new(), BTreeMap::new());
                wanted.push(WantedRule { shape, name, destinations, causes });
                wanted.len() - 1
            });
            let rule = &mut wanted[at];
            rule.destinations.extend(destinations.iter().cloned());
            let own = rule.causes.entry(intent.uid.clone()).or_default();
            own.extend(destinations.iter().cloned());
        }
    }
    wanted
}

fn rules(
    draft: &Draft<'_>,
    placement: &Placement,
    intent: &Intent,
    standing: &BTreeMap<Family, Standing<'_>>,
) -> Vec<(Shape, BTreeSet<Arc<str>>)> {
    let mut rules = Vec::new();
    if intent.access.rules == SecurityRules::Disabled || standing.is_empty() {
        return rules;
    }
    let destinations = Family::ALL.map(|family| {
        let own = destinations(draft, placement, intent, standing, family);
        (family, own.all(), own)
    });
    for protocol in Protocol::ALL {
        let ports = ports(intent, protocol);
        if ports.is_empty() {
            continue;
        }
        for &(family, ref all, _) in &destinations {
            if all.is_empty() {
                continue;
            }
            let mut sets: Vec<BTreeSet<Arc<str>>> =
                intent.access.tags.iter().map(|t| BTreeSet::from([Arc::clone(t)])).collect();
            let ranges = intent.access.ranges.get(&family).into_iter().flatten();
            let ranges: BTreeSet<Arc<str>> = ranges.map(|r| Arc::from(r.to_string())).collect();
            if !ranges.is_empty() {
                sets.push(ranges);
            }
            for sources in sets {
                let ports = ports.clone();
                let protocol = wire(protocol);
                let shape = Shape { access: Access::Allow, family, protocol, sources, ports };
                rules.push((shape, all.clone()));
            }
        }
    }
    if intent.access.deny_all == DenyAll::Yes {
        for (family, _, destinations) in destinations {
            rules.extend(denied(intent, family, destinations));
        }
    }
    rules
}

/// Everything else is denied: wholly where an address is the Service's alone, and on the Service's
/// ports where others are reached there, too. Deny rules come before the rules of Azure that let
/// probes and the virtual network in, so one to all ports of the nodes would cut off the cluster.
fn denied(
    intent: &Intent,
    family: Family,
    destinations: Destinations,
) -> Vec<(Shape, BTreeSet<Arc<str>>)> {
    let any = || BTreeSet::from([Arc::from("*")]);
    let deny =
        |protocol, ports| Shape { access: Access::Deny, family, protocol, sources: any(), ports };
    let mut rules = Vec::new();
    if !destinations.own.is_empty() {
        rules.push((deny("*", any()), destinations.own));
    }
    for protocol in Protocol::ALL.into_iter().filter(|_| !destinations.shared.is_empty()) {
        let ports = ports(intent, protocol);
        if !ports.is_empty() {
            rules.push((deny(wire(protocol), ports), destinations.shared.clone()));
        }
    }
    rules
}

/// The word for a protocol in security rules; there is none for SCTP.
fn wire(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "Tcp",
        Protocol::Udp => "Udp",
        Protocol::Sctp => "*",
    }
}

fn ports(intent: &Intent, protocol: Protocol) -> BTreeSet<Arc<str>> {
    let translated = intent.rule_options.floating_ip == FloatingIp::Disabled;
    intent
        .access
        .ports
        .iter()
        .filter(|p| p.protocol == protocol)
        // HA ports need no node ports; then nothing listens on the nodes' own addresses.
        .map(|p| if translated { p.node_port.unwrap_or(0) } else { p.port })
        .map(|port| Arc::from(port.to_string()))
        .collect()
}

/// Where a Service's rules lead.
#[derive(Debug, Default)]
struct Destinations {
    /// Addresses at which nothing else is reached.
    own: BTreeSet<Arc<str>>,
    /// Others: nodes, additional addresses, frontends that Services share.
    shared: BTreeSet<Arc<str>>,
}

impl Destinations {
    fn all(&self) -> BTreeSet<Arc<str>> {
        if self.own.is_empty() {
            return self.shared.clone();
        }
        self.own.union(&self.shared).cloned().collect()
    }
}

fn destinations(
    draft: &Draft<'_>,
    placement: &Placement,
    intent: &Intent,
    standing: &BTreeMap<Family, Standing<'_>>,
    family: Family,
) -> Destinations {
    let text = |a: IpAddr| -> Arc<str> { Arc::from(a.to_string()) };
    let additional = intent.additional.iter().copied().filter(|a| Family::of(*a) == family);
    let shared: BTreeSet<Arc<str>> = additional.map(text).collect();
    let mut destinations = Destinations { shared, ..Destinations::default() };
    match (intent.rule_options.floating_ip, standing.get(&family)) {
        (FloatingIp::Enabled, Some(at)) => {
            let address = Arc::clone(&at.text);
            // Only a rule that denies everything asks whose the address is.
            if intent.access.deny_all == DenyAll::Yes && at.is_alone(&intent.base) {
                destinations.shared.remove(&address);
                destinations.own.insert(address);
            } else {
                destinations.shared.insert(address);
            }
        }
        (FloatingIp::Disabled, Some(_)) => {
            let nodes = node_addresses(draft, placement, intent, family);
            destinations.shared.extend(nodes.into_iter().map(text));
        }
        (_, None) => {}
    }
    destinations
}
