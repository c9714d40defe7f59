//! What is ours, by names and tags; what is not goes through as it came.

use super::{Breach, Lint};
use model::azure::{
    LoadBalancer, Pool, PoolMember, PrivateLinkService, PublicIp, Rest, SecurityGroup,
    SecurityRule, Sku, Subnet, Tags,
};
use model::gateway::DEFAULT_EGRESS;
use model::kubernetes::Backends;
use model::plan::{Action, Change, Resource};
use model::{Family, ResourceId};
use plan::ask::SHARED_PROBE;
use plan::own::{self, Whose, name, tags};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The prefix of security rules that Ballast and the Go cloud provider make.
const SECURITY_RULE: &str = "k8s-azure-lb";

/// Whether a public IP is a container load balancer's or an egress gateway's.
fn is_of_pods(ip: &PublicIp) -> bool {
    ip.sku == Sku::StandardV2
}

/// Whether a security rule is one that this kind of controller makes.
pub(super) fn is_managed(rule: &SecurityRule) -> bool {
    rule.name.to_lowercase().starts_with(SECURITY_RULE) && (500..=4096).contains(&rule.priority)
}

/// The difference of two lists by name: pairs of what was and what is.
fn pairs<'a, T>(
    before: &'a [T],
    after: &'a [T],
    name: impl Fn(&T) -> &Arc<str>,
) -> Vec<(&'a T, Option<&'a T>)> {
    let find = |b: &T| after.iter().find(|a| name(a).eq_ignore_ascii_case(name(b)));
    before.iter().map(|b| (b, find(b))).collect()
}

impl Lint<'_> {
    /// Nothing of others is deleted or changed, and no field is lost.
    pub(super) fn ownership(&mut self, change: &Change) {
        match &change.action {
            Action::Put { before: Some(before), after } => self.changed(change, before, after),
            Action::Delete { before } => self.deleted(change, before),
            Action::UpdateServices(update) => {
                for name in update.names() {
                    if name.eq_ignore_ascii_case(DEFAULT_EGRESS) {
                        self.say(Breach::ForeignChanged, &change.target, Arc::clone(name));
                    }
                }
            }
            Action::Put { before: None, .. }
            | Action::DeleteChild
            | Action::MigratePools { .. }
            | Action::UpdateLocations(_) => {}
        }
    }

    fn changed(&mut self, change: &Change, before: &Resource, after: &Resource) {
        match (before, after) {
            (Resource::LoadBalancer(b), Resource::LoadBalancer(a)) => {
                self.balancer_changed(change, b, a);
            }
            (Resource::PublicIp(b), Resource::PublicIp(a)) => self.public_ip_changed(change, b, a),
            (Resource::SecurityGroup(b), Resource::SecurityGroup(a)) => {
                self.group_changed(change, b, a);
            }
            (Resource::PrivateLinkService(b), Resource::PrivateLinkService(a)) => {
                self.link_changed(change, b, a);
            }
            (Resource::Subnet(b), Resource::Subnet(a)) => self.subnet_changed(change, b, a),
            (Resource::PoolMember(b), Resource::PoolMember(a)) => self.member_changed(change, b, a),
            (Resource::NatGateway(b), Resource::NatGateway(a)) => {
                self.kept(change, "NAT gateway", &b.rest, &a.rest);
                if b.id.name().eq_ignore_ascii_case(DEFAULT_EGRESS) {
                    self.say(Breach::ForeignChanged, &change.target, "the cluster's own way out");
                }
            }
            _ => self.say(Breach::TargetMismatch, &change.target, "of two kinds"),
        }
    }

    fn deleted(&mut self, change: &Change, before: &Resource) {
        let foreign = match before {
            Resource::LoadBalancer(balancer) => self.foreign_part(balancer),
            Resource::PublicIp(ip) => return self.public_ip_deleted(change, ip),
            Resource::PrivateLinkService(link) => {
                (!self.is_own_link(link)).then(|| "it has no tag of this cluster".to_owned())
            }
            Resource::NatGateway(gateway) => gateway
                .id
                .name()
                .eq_ignore_ascii_case(DEFAULT_EGRESS)
                .then(|| "the cluster's own way out".to_owned()),
            Resource::SecurityGroup(_) | Resource::Subnet(_) | Resource::PoolMember(_) => {
                Some("we make none".to_owned())
            }
        };
        if let Some(why) = foreign {
            self.say(Breach::ForeignDeleted, &change.target, why);
        }
    }

    /// A part of a load balancer that is not ours.
    fn foreign_part(&self, balancer: &LoadBalancer) -> Option<String> {
        let of = if balancer.sku == Sku::Service { Backends::Pods } else { Backends::Nodes };
        if self.policy.over(of).is_none() {
            return Some(format!("load balancers over {of:?} are not the config's"));
        }
        if of == Backends::Pods {
            return None;
        }
        let frontends = balancer.frontends.iter().map(|f| &f.name);
        let frontends = frontends.filter(|name| !self.is_inherited(balancer, name));
        let rules = balancer.rules.iter().map(|r| &r.name);
        let probes = balancer.probes.iter().map(|p| &p.name);
        let probes = probes.filter(|p| !p.eq_ignore_ascii_case(SHARED_PROBE));
        let mut parts = frontends.chain(rules).chain(probes);
        let part = parts.find(|part| !self.is_ours(part)).map(ToString::to_string);
        let pools = || balancer.pools.iter().find(|p| !self.is_own_pool(balancer, p));
        let foreign = || balancer.foreign.first().map(|f| format!("{:?} rule", f.collection));
        part.or_else(|| pools().map(|p| format!("pool {}", p.name))).or_else(foreign)
    }

    /// A pool of ours by its name, or by the rules that led to it.
    fn is_own_pool(&self, balancer: &LoadBalancer, pool: &Pool) -> bool {
        let named = |name: String| name.eq_ignore_ascii_case(&pool.name);
        let gone = self.world.abandoned.iter().filter_map(|name| own::borne::service_named(name));
        let services = self.services.values().map(|s| s.name.clone()).chain(gone);
        let id = balancer.id.child("backendAddressPools", &pool.name);
        let mut rules = balancer.rules.iter().filter(|r| r.pool.as_ref() == Some(&id)).peekable();
        let led = rules.peek().is_some() && rules.all(|rule| self.is_ours(&rule.name));
        name::is_common_pool(&self.policy.cluster, &pool.name)
            || services.flat_map(|s| Family::ALL.map(|f| name::local_pool(&s, f))).any(named)
            || led
    }

    fn kept(&mut self, change: &Change, what: &str, before: &Rest, after: &Rest) {
        if before != after {
            self.say(Breach::FieldLost, &change.target, what);
        }
    }

    /// Tags of others stay, unless the config says which may, or an annotation has set them.
    fn tags_kept(&mut self, change: &Change, before: Option<&Tags>, after: Option<&Tags>) {
        if self.policy.system_tags.is_some() {
            return;
        }
        let ledger = self.world.kubernetes.ledger.known();
        let is_set = |key: &str| ledger.is_some_and(|l| l.tags.has(&change.target, key));
        let lost = before.into_iter().flatten().find(|(key, _)| {
            !key.to_lowercase().starts_with("k8s-azure-")
                && !key.to_lowercase().starts_with("kubernetes-")
                && !key.eq_ignore_ascii_case("service")
                && !is_set(key)
                && after.is_none_or(|tags| model::azure::tag(tags, key).is_none())
        });
        if let Some((key, _)) = lost {
            self.say(Breach::ForeignChanged, &change.target, format!("tag {key} goes"));
        }
    }

    fn balancer_changed(&mut self, change: &Change, before: &LoadBalancer, after: &LoadBalancer) {
        self.kept(change, "the load balancer", &before.rest, &after.rest);
        self.tags_kept(change, before.tags.as_ref(), after.tags.as_ref());
        let same = before.location == after.location
            && before.edge_zone == after.edge_zone
            && before.sku == after.sku;
        if !same {
            self.say(Breach::ForeignChanged, &change.target, "what it cannot change");
        }
        if before.sku == Sku::Service {
            return;
        }
        if before.foreign != after.foreign {
            self.say(Breach::ForeignChanged, &change.target, "outbound or NAT rules");
        }
        let mut touched: BTreeSet<(&str, &Arc<str>)> = BTreeSet::new();
        for (b, a) in pairs(&before.frontends, &after.frontends, |f| &f.name) {
            a.into_iter().for_each(|a| self.kept(change, &b.name, &b.rest, &a.rest));
            if a != Some(b) {
                touched.insert(("frontend", &b.name));
            }
        }
        for (b, a) in pairs(&before.rules, &after.rules, |r| &r.name) {
            a.into_iter().for_each(|a| self.kept(change, &b.name, &b.rest, &a.rest));
            if a != Some(b) {
                touched.insert(("rule", &b.name));
            }
        }
        for (b, a) in pairs(&before.probes, &after.probes, |p| &p.name) {
            a.into_iter().for_each(|a| self.kept(change, &b.name, &b.rest, &a.rest));
            if a != Some(b) && !b.name.eq_ignore_ascii_case(SHARED_PROBE) {
                touched.insert(("probe", &b.name));
            }
        }
        for (what, name) in touched {
            let inherited = what == "frontend"
                && !after.frontends.iter().any(|f| f.name.eq_ignore_ascii_case(name))
                && self.is_inherited(before, name);
            if !self.is_ours(name) && !inherited {
                let detail = format!("{what} {name}");
                self.say(Breach::ForeignChanged, &change.target, detail);
            }
        }
        for (b, a) in pairs(&before.pools, &after.pools, |p| &p.name) {
            a.into_iter().for_each(|a| self.kept(change, &b.name, &b.rest, &a.rest));
            let same = a.is_some_and(|a| a.addresses == b.addresses && a.network == b.network);
            if !same && !self.is_own_pool(before, b) {
                self.say(Breach::ForeignChanged, &change.target, format!("pool {}", b.name));
            }
        }
    }

    /// Whether a frontend was made by a Service that is no more, and only Services of ours are left
    /// on it: it goes with the last of them.
    fn is_inherited(&self, before: &LoadBalancer, name: &Arc<str>) -> bool {
        let id = before.id.child("frontendIPConfigurations", name);
        let mut rules = before.rules.iter().filter(|r| r.frontend.as_ref() == Some(&id)).peekable();
        let led = rules.peek().is_some() && rules.all(|rule| self.is_ours(&rule.name));
        led && own::is_named_after_one(name)
    }

    fn public_ip_changed(&mut self, change: &Change, before: &PublicIp, after: &PublicIp) {
        self.kept(change, "the public IP", &before.rest, &after.rest);
        let same = before.location == after.location
            && before.edge_zone == after.edge_zone
            && before.zones == after.zones
            && before.family == after.family
            && before.address == after.address
            && before.prefix == after.prefix;
        if !same {
            self.say(Breach::ForeignChanged, &change.target, "what it cannot change");
        }
        self.tags_kept(change, before.tags.as_ref(), after.tags.as_ref());
        let brought = tags::users(before).is_empty();
        if brought && before.dns_label.is_some() && after.dns_label.is_none() {
            self.say(Breach::ForeignChanged, &change.target, "the label of a brought public IP");
        }
        let kept = before.tags == after.tags
            && before.ip_tags == after.ip_tags
            && before.allocation == after.allocation;
        if brought && !kept && !is_of_pods(before) {
            self.say(Breach::ForeignChanged, &change.target, "its user brought it");
        }
        if self.own.public_ip(before) == Whose::Foreign {
            self.say(Breach::ForeignChanged, &change.target, "it is another cluster's");
        }
    }

    fn public_ip_deleted(&mut self, change: &Change, ip: &PublicIp) {
        if is_of_pods(ip) && self.policy.over(Backends::Pods).is_some() {
            if ip.id.name().to_lowercase().starts_with(DEFAULT_EGRESS) {
                self.say(Breach::ForeignDeleted, &change.target, "the cluster's own way out");
            }
            return;
        }
        let users = tags::users(ip);
        if users.is_empty() {
            self.say(Breach::BroughtDeleted, &change.target, "it has no tag of a Service");
        } else if self.own.public_ip(ip) != Whose::Ours {
            self.say(Breach::ForeignDeleted, &change.target, "it is another cluster's");
        }
        let world = self.world;
        for user in users {
            let known = world.kubernetes.services.values().any(|s| s.name.to_string() == user);
            if !known && !world.abandoned.contains(user.to_lowercase().as_str()) {
                let detail = format!("{user} is not known to be gone");
                self.say(Breach::ForeignDeleted, &change.target, detail);
            }
        }
    }

    fn group_changed(&mut self, change: &Change, before: &SecurityGroup, after: &SecurityGroup) {
        self.kept(change, "the security group", &before.rest, &after.rest);
        self.tags_kept(change, before.tags.as_ref(), after.tags.as_ref());
        let others = |group: &SecurityGroup| -> Vec<SecurityRule> {
            let rules = group.rules.iter();
            rules
                .filter(|rule| !is_managed(rule) || rule.destinations.is_empty())
                .cloned()
                .collect()
        };
        if others(before) != others(after) {
            self.say(Breach::ForeignChanged, &change.target, "rules that are not ours");
        }
        let known = self.known();
        self.recorded(change, before, after);
        for (b, a) in pairs(&before.rules, &after.rules, |r| &r.name) {
            a.into_iter().for_each(|a| self.kept(change, &b.name, &b.rest, &a.rest));
            let gone =
                b.destinations.iter().filter(|d| a.is_none_or(|a| !a.destinations.contains(*d)));
            for destination in gone {
                let is_known = destination.parse().is_ok_and(|d| known.contains(&d));
                if is_managed(b) && !is_known {
                    let detail = format!("{destination} of {}", b.name);
                    self.say(Breach::ForeignChanged, &change.target, detail);
                }
            }
        }
    }

    /// What is opened is in the ledger.
    fn recorded(&mut self, change: &Change, before: &SecurityGroup, after: &SecurityGroup) {
        let ledger = self.world.kubernetes.ledger.known().filter(|ledger| !ledger.is_absent());
        for rule in after.rules.iter().filter(|rule| is_managed(rule)) {
            let past = before.rules.iter().find(|b| b.name.eq_ignore_ascii_case(&rule.name));
            let new = |d: &&Arc<str>| past.is_none_or(|past| !past.destinations.contains(*d));
            for destination in rule.destinations.iter().filter(new) {
                let Ok(address) = destination.parse() else { continue };
                if !ledger.is_some_and(|ledger| ledger.has(address)) {
                    let detail = format!("{destination} of {}", rule.name);
                    self.say(Breach::Unrecorded, &change.target, detail);
                }
            }
        }
    }

    /// Addresses that are this cluster's: those in the ledger, and where there is none all that it
    /// has.
    fn known(&self) -> BTreeSet<std::net::IpAddr> {
        let recorded = self.world.kubernetes.ledger.known();
        let all = recorded.into_iter().flat_map(|ledger| ledger.destinations.keys());
        let mut known: BTreeSet<std::net::IpAddr> = all.copied().collect();
        if recorded.is_some_and(|ledger| !ledger.is_absent()) {
            return known;
        }
        let azure = &self.world.azure;
        known.extend(self.standing());
        let ips = own::public_ips(self.world);
        let ours = ips.filter(|ip| self.own.public_ip(ip) == Whose::Ours);
        known.extend(ours.filter_map(|ip| ip.address));
        let pools = azure.balancers.each().flat_map(|b| &b.pools);
        known.extend(pools.flat_map(|p| &p.addresses).map(|a| a.address));
        let nodes = self.world.kubernetes.nodes.values();
        known.extend(nodes.flat_map(|n| n.addresses.iter().copied()));
        known.extend(self.services.values().flat_map(|s| s.told()));
        known
    }

    fn is_own_link(&self, link: &PrivateLinkService) -> bool {
        self.own.private_link(link) == Whose::Ours
    }

    fn link_changed(
        &mut self,
        change: &Change,
        before: &PrivateLinkService,
        after: &PrivateLinkService,
    ) {
        self.kept(change, "the Private Link Service", &before.rest, &after.rest);
        self.tags_kept(change, before.tags.as_ref(), after.tags.as_ref());
        let same = before.connections == after.connections && before.location == after.location;
        if !same || !self.is_own_link(before) {
            self.say(Breach::ForeignChanged, &change.target, "it has no tag of this cluster");
        }
    }

    fn subnet_changed(&mut self, change: &Change, before: &Subnet, after: &Subnet) {
        let bare = |rest: &Rest| {
            let mut rest = rest.unpack();
            rest.properties.shift_remove("privateLinkServiceNetworkPolicies");
            rest.into()
        };
        self.kept(change, "the subnet", &bare(&before.rest), &bare(&after.rest));
        if before.prefixes != after.prefixes {
            self.say(Breach::ForeignChanged, &change.target, "its prefixes");
        }
    }

    fn member_changed(&mut self, change: &Change, before: &PoolMember, after: &PoolMember) {
        self.kept(change, "the pool member", &before.rest, &after.rest);
        let same = before.configurations.len() == after.configurations.len()
            && before.location == after.location
            && before.kind == after.kind;
        if !same {
            self.say(Breach::ForeignChanged, &change.target, "what it cannot change");
        }
        for (b, a) in pairs(&before.configurations, &after.configurations, |c| &c.name) {
            let none = BTreeSet::new();
            let left = a.map_or(&none, |a| &a.pools);
            for pool in b.pools.symmetric_difference(left) {
                if !self.is_common(pool) {
                    let detail = format!("{} and pool {pool}", b.name);
                    self.say(Breach::ForeignChanged, &change.target, detail);
                }
            }
        }
    }

    /// Whether a pool has the name that all our load balancers' pools have.
    fn is_common(&self, pool: &ResourceId) -> bool {
        let named = |f: Family| name::pool(&self.policy.cluster, f);
        let group = pool.group() == Some(self.policy.balancer_group.clone());
        group && Family::ALL.into_iter().any(|f| pool.name().eq_ignore_ascii_case(&named(f)))
    }
}
