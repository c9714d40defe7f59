//! What Azure takes at most.

use super::{Breach, Lint};
use model::azure::{
    Frontend, FrontendAddress, LoadBalancer, PrivateLinkService, Probe, ProbeProtocol, Rule,
    RuleProtocol, SecurityGroup, Sku,
};
use model::plan::{Change, Resource};
use model::{Family, ResourceId};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Priorities of security rules.
const PRIORITIES: RangeInclusive<u16> = 100..=4096;
/// Minutes until idle connections end.
const IDLE: RangeInclusive<u16> = 4..=100;
/// Ports of a frontend; 0 is every port.
const LAST_FRONTEND_PORT: u16 = 65_534;
/// Seconds after which a backend that does not answer is out, at most.
const PROBE_S: u32 = 120;

impl Lint<'_> {
    /// Counts and values. What was too much before and did not grow is somebody else's.
    pub(super) fn limits(&mut self, change: &Change, before: Option<&Resource>, after: &Resource) {
        match (before, after) {
            (Some(Resource::LoadBalancer(before)), Resource::LoadBalancer(after)) => {
                self.balancer_limits(change, Some(before), after);
            }
            (_, Resource::LoadBalancer(after)) => self.balancer_limits(change, None, after),
            (Some(Resource::SecurityGroup(before)), Resource::SecurityGroup(after)) => {
                self.group_limits(change, Some(before), after);
            }
            (_, Resource::SecurityGroup(after)) => self.group_limits(change, None, after),
            (None, Resource::PrivateLinkService(after)) => {
                self.link_limits(change, after);
                self.link_neighbours(change, after);
            }
            (_, Resource::PrivateLinkService(after)) => self.link_limits(change, after),
            _ => {}
        }
    }

    fn most(&mut self, change: &Change, what: &str, (had, has): (usize, usize), most: usize) {
        if has > most && has > had {
            let detail = format!("{has} {what}, at most {most}");
            self.say(Breach::Limit, &change.target, detail);
        }
    }

    fn balancer_limits(
        &mut self,
        change: &Change,
        before: Option<&LoadBalancer>,
        after: &LoadBalancer,
    ) {
        let basic = after.sku == Sku::Basic;
        let rules = if basic { 250 } else { 1_500 };
        let frontends = if basic { 200 } else { 600 };
        let addresses = if basic { 300 } else { 1_000 };
        let had = |count: fn(&LoadBalancer) -> usize| (before.map_or(0, count), count(after));
        self.most(change, "rules", had(|b| b.rules.len()), rules);
        self.most(change, "frontends", had(|b| b.frontends.len()), frontends);
        for pool in &after.pools {
            let there = before.into_iter().flat_map(|b| &b.pools);
            let there = there.filter(|p| p.name.eq_ignore_ascii_case(&pool.name));
            let had = there.map(|p| p.addresses.len()).max().unwrap_or(0);
            let what = format!("addresses in pool {}", pool.name);
            self.most(change, &what, (had, pool.addresses.len()), addresses);
        }
        let kept = |rule: &Rule| before.is_some_and(|b| b.rules.contains(rule));
        for rule in after.rules.iter().filter(|r| !kept(r)) {
            if let Some(wrong) = wrong_rule(rule) {
                self.say(Breach::Limit, &change.target, format!("rule {}: {wrong}", rule.name));
            }
        }
        let kept = |probe: &Probe| before.is_some_and(|b| b.probes.contains(probe));
        for probe in after.probes.iter().filter(|p| !kept(p)) {
            if let Some(wrong) = wrong_probe(probe, after.sku) {
                self.say(Breach::Limit, &change.target, format!("probe {}: {wrong}", probe.name));
            }
        }
    }

    fn group_limits(
        &mut self,
        change: &Change,
        before: Option<&SecurityGroup>,
        after: &SecurityGroup,
    ) {
        let had = |count: fn(&SecurityGroup) -> usize| (before.map_or(0, count), count(after));
        self.most(change, "security rules", had(|g| g.rules.len()), 1_000);
        let sources = had(|g| g.rules.iter().map(|r| r.sources.len()).sum());
        self.most(change, "source prefixes", sources, 4_000);
        let destinations = had(|g| g.rules.iter().map(|r| r.destinations.len()).sum());
        self.most(change, "destination prefixes", destinations, 4_000);
        for rule in &after.rules {
            if !PRIORITIES.contains(&rule.priority) {
                let detail = format!("{} has priority {}", rule.name, rule.priority);
                self.say(Breach::Limit, &change.target, detail);
            }
        }
    }

    fn link_limits(&mut self, change: &Change, after: &PrivateLinkService) {
        self.most(change, "addresses", (0, after.addresses.len()), 8);
    }

    /// Azure puts none before a load balancer with pools of addresses or IPv6 frontends.
    fn link_neighbours(&mut self, change: &Change, link: &PrivateLinkService) {
        let balancers: BTreeSet<ResourceId> =
            link.frontends.iter().filter_map(|f| f.parent()).collect();
        let there = self.world.azure.balancers.each();
        for balancer in there.filter(|balancer| balancers.contains(&balancer.id)) {
            if let Some(pool) = balancer.pools.iter().find(|p| !p.addresses.is_empty()) {
                let detail = format!("before pool {} of addresses", pool.name);
                self.say(Breach::Limit, &change.target, detail);
            }
            if let Some(six) = balancer.frontends.iter().find(|f| self.is_ipv6(f)) {
                self.say(Breach::Limit, &change.target, format!("beside IPv6 {}", six.name));
            }
        }
    }

    fn is_ipv6(&self, frontend: &Frontend) -> bool {
        match &frontend.address {
            FrontendAddress::Public(id) => {
                self.public_ip(id).is_some_and(|ip| ip.family == Family::V6)
            }
            FrontendAddress::Private { family, .. } => *family == Family::V6,
            FrontendAddress::Other => false,
        }
    }
}

fn wrong_rule(rule: &Rule) -> Option<String> {
    let lowest = u16::from(rule.protocol != RuleProtocol::All);
    if !(lowest..=LAST_FRONTEND_PORT).contains(&rule.frontend_port) {
        return Some(format!("frontend port {}", rule.frontend_port));
    }
    if rule.backend_port < lowest {
        return Some(format!("backend port {}", rule.backend_port));
    }
    let idle = rule.idle_timeout_min.filter(|idle| !IDLE.contains(idle));
    idle.map(|idle| format!("idle timeout {idle}"))
}

fn wrong_probe(probe: &Probe, sku: Sku) -> Option<String> {
    let Probe { name: _, protocol, port, path, interval_s, threshold, rest: _ } = probe;
    let slow = u32::from(*interval_s) * u32::from(*threshold) > PROBE_S;
    let bare = path.as_ref().is_none_or(|path| !path.starts_with('/'));
    match protocol {
        _ if *port == 0 => Some("port 0".to_owned()),
        _ if *interval_s < 5 || *threshold < 1 || slow => {
            Some(format!("{threshold} times {interval_s} s"))
        }
        ProbeProtocol::Https if sku == Sku::Basic => Some("Https on Basic".to_owned()),
        ProbeProtocol::Http | ProbeProtocol::Https if bare => Some("no path".to_owned()),
        ProbeProtocol::Tcp if path.is_some() => Some("a path with Tcp".to_owned()),
        ProbeProtocol::Tcp | ProbeProtocol::Http | ProbeProtocol::Https => None,
    }
}
