//! What refers to what: nothing before what it needs, nothing gone while it is needed.

use super::{Breach, Lint, Presence};
use model::ResourceId;
use model::azure::{FrontendAddress, LoadBalancer};
use model::kubernetes::Wish;
use model::plan::{Action, Change, Resource};
use model::report::Wait;
use model::world::Fact;
use plan::own::Base;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

fn presence<T>(fact: Option<&Fact<BTreeMap<ResourceId, T>>>, id: &ResourceId) -> Presence {
    match fact.and_then(Fact::known) {
        Some(all) if all.contains_key(id) => Presence::There,
        Some(_) => Presence::Absent,
        None => Presence::Unread,
    }
}

/// What a resource refers to outside of itself.
fn outward(resource: &Resource) -> BTreeSet<ResourceId> {
    match resource {
        Resource::LoadBalancer(balancer) => {
            let ids = balancer.frontends.iter().filter_map(|f| match &f.address {
                FrontendAddress::Public(id) => Some(id),
                FrontendAddress::Private { subnet, .. } => Some(subnet),
                FrontendAddress::Other => None,
            });
            ids.cloned().collect()
        }
        Resource::PrivateLinkService(link) => {
            let subnets = link.addresses.iter().map(|a| &a.subnet);
            link.frontends.iter().chain(subnets).cloned().collect()
        }
        Resource::NatGateway(gateway) => {
            gateway.public_ips.iter().chain(&gateway.public_ips_v6).cloned().collect()
        }
        Resource::PoolMember(member) => {
            member.configurations.iter().flat_map(|c| &c.pools).cloned().collect()
        }
        Resource::PublicIp(_) | Resource::SecurityGroup(_) | Resource::Subnet(_) => BTreeSet::new(),
    }
}

impl Lint<'_> {
    /// Everything that a written resource newly refers to is there, or comes before it.
    pub(super) fn references(&mut self, change: &Change) {
        match &change.action {
            Action::Put { before, after } => {
                if let Resource::LoadBalancer(balancer) = after {
                    self.within(change, balancer);
                }
                let had = before.as_ref().map(outward).unwrap_or_default();
                for id in outward(after).difference(&had) {
                    self.need(change, id);
                }
            }
            Action::UpdateServices(update) => {
                for service in update.put.iter().map(|put| &put.service) {
                    let ids = service.pools.iter().chain(&service.nat_gateway);
                    ids.for_each(|id| self.need(change, id));
                }
            }
            Action::UpdateLocations(update) => {
                let Some(services) = self.world.azure.gateway_services.known() else { return };
                let addresses = update.locations.iter().flat_map(|l| &l.addresses);
                let names: BTreeSet<&Arc<str>> = addresses.flat_map(|(_, s)| &**s).collect();
                for name in names {
                    if !services.contains_key(name.to_lowercase().as_str()) {
                        let detail = format!("gateway service {name}");
                        self.say(Breach::MissingReference, &change.target, detail);
                    }
                }
            }
            Action::Delete { .. } | Action::DeleteChild | Action::MigratePools { .. } => {}
        }
    }

    fn need(&mut self, change: &Change, id: &ResourceId) {
        let whole = |id: &ResourceId| {
            let is_put =
                |c: &Arc<Change>| c.target == *id && matches!(c.action, Action::Put { .. });
            let waits = |w: &Wait| matches!(w, Wait::Resource { id: on, .. } if on == id);
            self.plan.changes.iter().any(is_put) && change.waits.iter().any(waits)
        };
        let comes = whole(id) || id.parent().is_some_and(|parent| whole(&parent));
        if self.presence(id) == Presence::Absent && !comes {
            self.say(Breach::MissingReference, &change.target, id.as_str());
        }
    }

    /// Whether what an id names is in Azure, by the collection that the id says.
    fn presence(&self, id: &ResourceId) -> Presence {
        let azure = &self.world.azure;
        let folded = id.folded();
        let mut segments = folded.rsplit('/');
        let name = segments.next().unwrap_or("");
        let same = |other: &Arc<str>| other.eq_ignore_ascii_case(name);
        match segments.next().unwrap_or("") {
            "publicipaddresses" => {
                presence(id.group().and_then(|group| azure.public_ips.get(&group)), id)
            }
            "natgateways" => presence(Some(&azure.nat_gateways), id),
            "subnets" => match azure.subnets.get(id) {
                Some(Fact::Known(Some(_))) => Presence::There,
                Some(Fact::Known(None)) => Presence::Absent,
                Some(Fact::Unknown | Fact::Unreadable(_)) | None => Presence::Unread,
            },
            "backendaddresspools" => self.part(id, |b| b.pools.iter().any(|p| same(&p.name))),
            "frontendipconfigurations" => {
                self.part(id, |b| b.frontends.iter().any(|f| same(&f.name)))
            }
            _ => Presence::Unread,
        }
    }

    /// Whether a load balancer has a part.
    fn part(&self, id: &ResourceId, has: impl Fn(&LoadBalancer) -> bool) -> Presence {
        let Some(parent) = id.parent() else { return Presence::Absent };
        let listed = parent.group() == Some(self.policy.balancer_group.clone());
        match &self.world.azure.balancers {
            Fact::Known(all) if all.get(&parent).is_some_and(|b| has(b)) => Presence::There,
            Fact::Known(_) if listed => Presence::Absent,
            Fact::Known(_) | Fact::Unknown | Fact::Unreadable(_) => Presence::Unread,
        }
    }

    /// The parts of a load balancer refer to each other.
    fn within(&mut self, change: &Change, balancer: &LoadBalancer) {
        let ids = |collection: &str, names: &mut dyn Iterator<Item = &Arc<str>>| {
            names.map(|name| balancer.id.child(collection, name)).collect::<BTreeSet<_>>()
        };
        let frontends =
            ids("frontendIPConfigurations", &mut balancer.frontends.iter().map(|f| &f.name));
        let pools = ids("backendAddressPools", &mut balancer.pools.iter().map(|p| &p.name));
        let probes = ids("probes", &mut balancer.probes.iter().map(|p| &p.name));
        for rule in &balancer.rules {
            let parts =
                [(&rule.frontend, &frontends), (&rule.pool, &pools), (&rule.probe, &probes)];
            for (id, there) in parts {
                if let Some(id) = id.as_ref().filter(|id| !there.contains(*id)) {
                    let detail = format!("rule {} leads to {id}", rule.name);
                    self.say(Breach::MissingReference, &change.target, detail);
                }
            }
        }
        for foreign in &balancer.foreign {
            for id in foreign.frontends.iter().filter(|id| !frontends.contains(*id)) {
                let detail = format!("a rule of somebody else's stands on {id}");
                self.say(Breach::StillReferenced, &change.target, detail);
            }
        }
    }

    /// Nothing goes, now, that something in Azure still refers to.
    pub(super) fn goodbyes(&mut self, change: &Change) {
        if !change.is_ready() {
            return;
        }
        match &change.action {
            Action::Put { before: Some(Resource::LoadBalancer(before)), after } => {
                let Resource::LoadBalancer(after) = after else { return };
                self.parts_go(change, before, Some(after));
            }
            Action::Delete { before } => match before {
                Resource::LoadBalancer(before) => self.parts_go(change, before, None),
                Resource::PublicIp(ip) => self.public_ip_goes(change, &ip.id),
                Resource::PrivateLinkService(link) => {
                    for connection in &link.connections {
                        self.say(Breach::StillReferenced, &change.target, connection.id.as_str());
                    }
                }
                Resource::NatGateway(gateway) => {
                    let mut services = self.world.azure.gateway_services.each();
                    let user = services.find(|s| s.nat_gateway.as_ref() == Some(&gateway.id));
                    if let Some(user) = user {
                        self.say(Breach::StillReferenced, &change.target, Arc::clone(&user.name));
                    }
                }
                _ => {}
            },
            Action::UpdateServices(update) => {
                let Some(table) = self.world.azure.gateway_locations.known() else { return };
                let used: BTreeSet<String> = table
                    .values()
                    .flat_map(|addresses| addresses.values())
                    .flat_map(|names| names.iter().map(|name| name.to_lowercase()))
                    .collect();
                for (name, _) in &update.delete {
                    if used.contains(&name.to_lowercase()) {
                        let detail = format!("addresses of gateway service {name}");
                        self.say(Breach::StillReferenced, &change.target, detail);
                    }
                }
            }
            _ => {}
        }
    }

    fn public_ip_goes(&mut self, change: &Change, id: &ResourceId) {
        let azure = &self.world.azure;
        let address = FrontendAddress::Public(id.clone());
        let all = azure.balancers.each();
        let mut frontends = all.flat_map(|b| b.frontends.iter().map(move |f| (b, f)));
        let user = frontends.find(|(_, f)| f.address == address);
        let user = user.map(|(b, f)| format!("frontend {} of {}", f.name, b.id.name()));
        let gateways = azure.nat_gateways.each();
        let mut gateways = gateways
            .filter(|g| g.public_ips.contains(id) || g.public_ips_v6.contains(id))
            .map(|g| format!("NAT gateway {}", g.id.name()));
        if let Some(user) = user.or_else(|| gateways.next()) {
            self.say(Breach::StillReferenced, &change.target, user);
        }
    }

    /// Frontends and pools that go: nothing stands before them, is open for them or is in them.
    fn parts_go(&mut self, change: &Change, before: &LoadBalancer, after: Option<&LoadBalancer>) {
        let kept: BTreeSet<IpAddr> = after
            .into_iter()
            .flat_map(|b| &b.frontends)
            .filter_map(|f| self.address(&f.address))
            .collect();
        let open = self.open();
        for frontend in &before.frontends {
            let mut left = after.into_iter().flat_map(|b| &b.frontends);
            let stays = left.any(|f| f.name.eq_ignore_ascii_case(&frontend.name));
            let id = before.id.child("frontendIPConfigurations", &frontend.name);
            let link = self.links().find(|link| link.frontends.contains(&id));
            if let Some(link) = link.filter(|_| !stays) {
                let detail = format!("{} stands before {}", link.id.name(), frontend.name);
                self.say(Breach::StillReferenced, &change.target, detail);
            }
            // The address of a Service that changes its frontend stays open until the new frontend
            // stands, also where the former frontend is named after another Service.
            let led = before.rules.iter().filter(|r| r.frontend.as_ref() == Some(&id));
            let mut names = led.map(|rule| &rule.name).chain([&frontend.name]);
            let wanted = names.any(|name| {
                let service = Base::of(name).and_then(|base| self.services.get(&base));
                service.is_some_and(|service| service.wish == Wish::LoadBalancer)
            });
            if let Some(address) = self.address(&frontend.address)
                && !wanted
                && open.contains(&address)
                && !kept.contains(&address)
            {
                let detail = format!("{address} of {}", frontend.name);
                self.say(Breach::OpenWithoutFrontend, &change.target, detail);
            }
        }
        for pool in &before.pools {
            let mut left = after.into_iter().flat_map(|b| &b.pools);
            if left.any(|p| p.name.eq_ignore_ascii_case(&pool.name)) {
                continue;
            }
            let id = before.id.child("backendAddressPools", &pool.name);
            let member = self
                .members()
                .find(|m| m.configurations.iter().any(|c| c.pools.contains(&id)))
                .map(|m| m.id.to_string());
            let mut services = self.world.azure.gateway_services.each();
            let service = services.find(|s| s.pools.contains(&id)).map(|s| s.name.to_string());
            if let Some(user) = member.or(service) {
                let detail = format!("{user} is in pool {}", pool.name);
                self.say(Breach::StillReferenced, &change.target, detail);
            }
        }
    }

    /// Addresses that allow rules of ours open.
    fn open(&self) -> BTreeSet<IpAddr> {
        let group = self.world.azure.security_group.known().and_then(Option::as_ref);
        let rules = group.into_iter().flat_map(|group| &group.rules);
        let ours = rules.filter(|rule| super::ownership::is_managed(rule));
        let allow = ours.filter(|rule| rule.access == model::azure::Access::Allow);
        allow.flat_map(|rule| &rule.destinations).filter_map(|d| d.parse().ok()).collect()
    }
}
