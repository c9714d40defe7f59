//! Additional addresses: none that others in the cluster depend on.

use super::public_ip::Known;
use super::{Refusal, choice};
use crate::ask::additional::{self, KEY};
use crate::ask::annotation::full;
use crate::ask::hold;
use crate::draft::{Case, Draft, Stance};
use crate::own::{self, Base, name, tags};
use crate::standing::frontend;
use ipnet::IpNet;
use model::ServiceUid;
use model::azure::{LoadBalancer, PublicIp};
use model::kubernetes::Service;
use model::policy::Sharing;
use model::report::Finding;
use model::world::Fact;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// Findings of one Service about addresses that others have.
const FINDINGS: usize = 8;

/// Addresses that are taken, by what has them.
struct Taken {
    /// Frontends: the base names of the Services on each.
    frontends: BTreeMap<IpAddr, BTreeSet<Base>>,
    /// Public IPs that carry the tag of Services.
    public_ips: BTreeMap<IpAddr, Vec<Arc<PublicIp>>>,
    /// Public IPs that Services name: the base names of those Services.
    named: BTreeMap<IpAddr, BTreeSet<Base>>,
    /// Nodes, Pods and cluster IPs.
    hosts: BTreeSet<IpAddr>,
    /// Pod ranges and subnets, first address to last, apart from each other.
    ranges: BTreeMap<IpAddr, IpAddr>,
    /// Base names of Services that have a frontend or are on one.
    standing: BTreeSet<Base>,
}

/// Refuses Services whose additional addresses are others', and withholds such addresses from the
/// status and the security rules of those that are refused.
pub(super) fn settle(draft: &mut Draft<'_>) {
    let asks = |service: &Service| service.annotation(KEY).is_some_and(|text| !text.is_empty());
    // A Service that keeps what it has goes on showing what it asked for once, also where none asks
    // for anything of the kind any more.
    let shows =
        |case: &Case<'_>| matches!(case.stance, Stance::Frozen(_)) && shows_more(draft, case);
    if !draft.cases.values().any(|case| asks(case.service) || shows(case)) {
        return;
    }
    let taken = Taken::of(draft);
    let holders = Holders::of(draft);
    let mut refused: Vec<(ServiceUid, Finding)> = Vec::new();
    for (uid, case) in &draft.cases {
        let Some(intent) = case.intent() else { continue };
        let addresses = intent.additional.iter().copied();
        let obstacles = addresses.filter_map(|address| {
            let named = || taken.claimant(case.service, &case.base, address);
            let theirs = || holders.others(draft, case.service, &case.base, &taken, address);
            let standing = taken.obstacle(case.service, &case.base, address);
            Some((address, standing.or_else(named).or_else(theirs)?))
        });
        let finding = |(address, what): (IpAddr, String)| {
            let message = format!("address {{value}} is {what}; use another one");
            let (key, value) = (full(KEY), address.to_string());
            Finding::refusal("AdditionalAddressTaken", &key, &value, &message)
        };
        refused.extend(obstacles.take(FINDINGS).map(|found| (uid.clone(), finding(found))));
    }
    refused.into_iter().for_each(|(uid, finding)| draft.refuse(&uid, Refusal::new(finding)));
    draft.claims.withheld = withheld(draft, &taken);
}

/// Whether a Service's status tells an address that none of its frontends has. Most that keep what
/// they have tell no other, and to look at the whole cluster for them takes as long as a plan.
fn shows_more(draft: &Draft<'_>, case: &Case<'_>) -> bool {
    let mut own: BTreeSet<IpAddr> = BTreeSet::new();
    for view in draft.views() {
        let frontends = view.frontends_of(&case.base).into_iter().chain(view.led_by(&case.base));
        own.extend(frontends.filter_map(|found| frontend::address_of(draft, found)));
    }
    case.service.told().any(|address| !own.contains(&address))
}

/// What Services that keep what they have show, or have open, and that is another's.
fn withheld(draft: &Draft<'_>, taken: &Taken) -> BTreeMap<ServiceUid, BTreeSet<IpAddr>> {
    let mut withheld = BTreeMap::new();
    for (uid, case) in &draft.cases {
        let kept = matches!(case.stance, Stance::Frozen(_)) && hold::keeps_balancer(case.service);
        if !kept {
            continue;
        }
        let base = Base::of(&case.base);
        let mut beside: BTreeSet<IpAddr> = case.service.told().collect();
        beside.retain(|address| !taken.is_on(&case.base, *address));
        if beside.is_empty() {
            continue;
        }
        let asked: BTreeSet<IpAddr> = case.service.annotation(KEY).map(parsed).unwrap_or_default();
        let is_others = |address: &IpAddr| {
            // What it asked for once, too, where it stands elsewhere by itself.
            let stands = base.as_ref().is_some_and(|base| taken.standing.contains(base));
            let once = stands && taken.frontends.contains_key(address);
            let refused = || {
                additional::is_special(*address)
                    || taken.obstacle(case.service, &case.base, *address).is_some()
            };
            once || (asked.contains(address) && refused())
        };
        let others: BTreeSet<IpAddr> = beside.into_iter().filter(is_others).collect();
        if !others.is_empty() {
            withheld.insert(uid.clone(), others);
        }
    }
    withheld
}

fn parsed(text: &str) -> BTreeSet<IpAddr> {
    text.split(',').filter_map(|entry| entry.trim().parse().ok()).collect()
}

impl Taken {
    fn of(draft: &Draft<'_>) -> Self {
        let kubernetes = &draft.world.kubernetes;
        let nodes = kubernetes.nodes.values();
        let pods = kubernetes.pods.values().flat_map(|p| &p.addresses);
        let gated = kubernetes.gated_pods.values().flat_map(|p| &p.addresses);
        let cluster = kubernetes.services.values().flat_map(|s| &s.cluster_ips);
        let hosts = nodes.clone().flat_map(|n| &n.addresses).chain(pods).chain(gated);
        let subnets = draft.world.azure.subnets.values().filter_map(Fact::known).flatten();
        let subnets = subnets.flat_map(|subnet| &subnet.prefixes);
        let ranges: Vec<IpNet> =
            nodes.flat_map(|n| &n.ranges).chain(subnets).map(IpNet::trunc).collect();
        let mut taken = Self {
            frontends: BTreeMap::new(),
            public_ips: BTreeMap::new(),
            named: BTreeMap::new(),
            hosts: hosts.chain(cluster).copied().collect(),
            ranges: IpNet::aggregate(&ranges)
                .into_iter()
                .map(|range| (range.network(), range.broadcast()))
                .collect(),
            standing: BTreeSet::new(),
        };
        let ours = draft.each_balancer().filter(|b| is_of_clusters(draft, b));
        ours.for_each(|b| taken.add_frontends(draft, b));
        taken.add_public_ips(draft);
        taken.add_named(draft);
        taken
    }

    fn add_frontends(&mut self, draft: &Draft<'_>, balancer: &LoadBalancer) {
        let mut by_name: BTreeMap<String, IpAddr> = BTreeMap::new();
        for frontend in &balancer.frontends {
            self.standing.extend(Base::of(&frontend.name));
            let Some(address) = frontend::address_of(draft, frontend) else { continue };
            by_name.insert(name::folded(&frontend.name), address);
            self.frontends.entry(address).or_default().extend(Base::of(&frontend.name));
        }
        for rule in &balancer.rules {
            let to = rule.frontend.as_ref().map(|id| name::folded(id.name()));
            self.standing.extend(Base::of(&rule.name));
            if let Some(address) = to.and_then(|to| by_name.get(&to)) {
                self.frontends.entry(*address).or_default().extend(Base::of(&rule.name));
            }
        }
    }

    fn add_public_ips(&mut self, draft: &Draft<'_>) {
        for ip in own::public_ips(draft.world) {
            // Others' tags have the name, too, that older releases gave theirs.
            if let Some(address) = ip.address.filter(|_| tags::services(ip).next().is_some()) {
                self.public_ips.entry(address).or_default().push(Arc::clone(ip));
            }
        }
    }

    fn add_named(&mut self, draft: &Draft<'_>) {
        let mut known = Known::default();
        for case in draft.cases.values() {
            let Some((intent, base)) = case.intent().zip(Base::of(&case.base)) else { continue };
            for id in known.named_by(draft, intent) {
                // A Service that may not name a public IP does not claim its address.
                let ip = draft.public_ip(&id).filter(|ip| choice::may_be_named(draft, ip));
                if let Some(address) = ip.and_then(|ip| ip.address) {
                    self.named.entry(address).or_default().insert(base.clone());
                }
            }
        }
    }

    /// Why an address is refused where another Service names its public IP and has no frontend on
    /// it yet. A Service that already has the address keeps it until that frontend is there.
    fn claimant(&self, service: &Service, base: &str, address: IpAddr) -> Option<String> {
        let by = self.named.get(&address)?;
        let free = by.iter().any(|one| one.is(base)) || service.told().any(|told| told == address);
        (!free).then(|| "that of a public IP that another Service names".to_owned())
    }

    /// Whether a Service has, or is on, a frontend with this address.
    fn is_on(&self, base: &str, address: IpAddr) -> bool {
        self.frontends.get(&address).is_some_and(|on| on.iter().any(|one| one.is(base)))
    }

    /// What an address is, if it is another's than this Service's.
    fn obstacle(&self, service: &Service, base: &str, address: IpAddr) -> Option<String> {
        if self.is_on(base, address) {
            return None;
        }
        if self.frontends.contains_key(&address) {
            return Some("that of another load balancer frontend".to_owned());
        }
        let there = self.public_ips.get(&address);
        if there.is_some_and(|all| !all.iter().any(|ip| tags::names(ip, &service.name))) {
            return Some("the public IP of another Service".to_owned());
        }
        if self.hosts.contains(&address) {
            return Some("that of a node, a Pod or a cluster IP".to_owned());
        }
        let below = self.ranges.range(..=address).next_back();
        let within = below.is_some_and(|(_, last)| address <= *last);
        within.then(|| "in a range of Pods or of a subnet".to_owned())
    }
}

/// Whether a load balancer is of a cluster, by its name or the names on it. Others may well have an
/// additional address: that is what a load balancer across regions is for.
fn is_of_clusters(draft: &Draft<'_>, balancer: &LoadBalancer) -> bool {
    name::is_balancer(draft.policy, balancer.id.name())
        || balancer.frontends.iter().any(|f| own::is_named_after_one(&f.name))
}

/// The namespaces that have additional addresses already.
struct Holders {
    /// Those whose Services' status tells an address that some Service claims.
    told: BTreeMap<IpAddr, BTreeSet<Arc<str>>>,
    /// Where no status does: that of the Service with the lowest UID of those that claim it.
    first: BTreeMap<IpAddr, Arc<str>>,
}

impl Holders {
    fn of(draft: &Draft<'_>) -> Self {
        let mut holders = Self { told: BTreeMap::new(), first: BTreeMap::new() };
        // By UID.
        for case in draft.cases.values() {
            for address in case.intent().into_iter().flat_map(|intent| &intent.additional) {
                let namespace = || Arc::clone(&case.service.name.namespace);
                holders.first.entry(*address).or_insert_with(namespace);
            }
        }
        for case in draft.cases.values() {
            let told = case.service.told();
            for address in told.filter(|address| holders.first.contains_key(address)) {
                let namespace = Arc::clone(&case.service.name.namespace);
                holders.told.entry(address).or_default().insert(namespace);
            }
        }
        holders
    }

    /// Whether only other namespaces hold an address. One that the cloud config lists is for all.
    fn others(
        &self,
        draft: &Draft<'_>,
        service: &Service,
        base: &str,
        taken: &Taken,
        address: IpAddr,
    ) -> Option<String> {
        let own = &service.name.namespace;
        let held = match self.told.get(&address) {
            Some(told) => told.contains(own),
            None => self.first.get(&address).is_none_or(|first| first == own),
        };
        let free = held
            || (draft.policy.tenancy.sharing != Sharing::None
                && additional::is_listed(draft.policy, address))
            || taken.is_on(base, address);
        (!free).then(|| "that of a Service of another namespace".to_owned())
    }
}
