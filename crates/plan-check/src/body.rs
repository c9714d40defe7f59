//! What must not be twice in a body.

use super::{Breach, Lint};
use model::azure::{FrontendAddress, LoadBalancer, Rule, RuleProtocol, SecurityGroup};
use model::plan::{Change, Resource};
use std::collections::{BTreeMap, BTreeSet};

impl Lint<'_> {
    /// Names, ports and priorities, each once.
    pub(super) fn body(&mut self, change: &Change, after: &Resource) {
        match after {
            Resource::LoadBalancer(balancer) => {
                self.names(change, "frontend", balancer.frontends.iter().map(|f| &*f.name));
                self.names(change, "pool", balancer.pools.iter().map(|p| &*p.name));
                self.names(change, "rule", balancer.rules.iter().map(|r| &*r.name));
                self.names(change, "probe", balancer.probes.iter().map(|p| &*p.name));
                for pool in &balancer.pools {
                    let what = format!("address in pool {}:", pool.name);
                    let names = pool.addresses.iter().map(|a| &*a.name);
                    self.names(change, &what, names.filter(|name| !name.is_empty()));
                }
                self.ports(change, balancer);
                self.exposures(change, balancer);
            }
            Resource::SecurityGroup(group) => {
                self.names(change, "security rule", group.rules.iter().map(|r| &*r.name));
                self.priorities(change, group);
            }
            Resource::PrivateLinkService(link) => {
                self.names(change, "address", link.addresses.iter().map(|a| &*a.name));
            }
            Resource::PublicIp(_)
            | Resource::Subnet(_)
            | Resource::NatGateway(_)
            | Resource::PoolMember(_) => {}
        }
    }

    fn names<'n>(&mut self, change: &Change, what: &str, names: impl Iterator<Item = &'n str>) {
        let mut seen = BTreeSet::new();
        for name in names {
            if !seen.insert(name.to_lowercase()) {
                self.say(Breach::NameTwice, &change.target, format!("{what} {name}"));
            }
        }
    }

    fn ports(&mut self, change: &Change, balancer: &LoadBalancer) {
        let mut fronts: BTreeMap<_, Vec<&Rule>> = BTreeMap::new();
        let mut backs: BTreeMap<_, &str> = BTreeMap::new();
        for rule in &balancer.rules {
            let others = fronts.entry(&rule.frontend).or_default();
            if let Some(other) = others.iter().find(|other| clash(other, rule)) {
                let detail = format!("{} and {} take one port", other.name, rule.name);
                self.say(Breach::PortTwice, &change.target, detail);
            }
            others.push(rule);
            if rule.floating_ip != Some(true)
                && let Some(pool) = &rule.pool
                && let Some(other) =
                    backs.insert((pool, rule.protocol, rule.backend_port), &*rule.name)
            {
                let detail = format!("{other} and {} take one backend port", rule.name);
                self.say(Breach::PortTwice, &change.target, detail);
            }
        }
    }

    fn exposures(&mut self, change: &Change, balancer: &LoadBalancer) {
        let public = |a: &FrontendAddress| matches!(a, FrontendAddress::Public(_));
        let private = |a: &FrontendAddress| matches!(a, FrontendAddress::Private { .. });
        let has = |is: &dyn Fn(&FrontendAddress) -> bool| {
            balancer.frontends.iter().any(|f| is(&f.address))
        };
        if has(&public) && has(&private) {
            self.say(Breach::MixedFrontends, &change.target, "public and internal frontends");
        }
    }

    fn priorities(&mut self, change: &Change, group: &SecurityGroup) {
        let mut seen = BTreeMap::new();
        for rule in &group.rules {
            let place = (rule.direction.to_lowercase(), rule.priority);
            if let Some(other) = seen.insert(place, &rule.name) {
                let detail = format!("{other} and {} are at {}", rule.name, rule.priority);
                self.say(Breach::PriorityTwice, &change.target, detail);
            }
        }
    }
}

/// Protocol All takes its port of every protocol; with port 0 it takes every port.
fn clash(a: &Rule, b: &Rule) -> bool {
    let all = |r: &Rule| r.protocol == RuleProtocol::All;
    let whole = |r: &Rule| all(r) && r.frontend_port == 0;
    let meet = a.protocol == b.protocol || all(a) || all(b);
    whole(a) || whole(b) || (meet && a.frontend_port == b.frontend_port)
}
