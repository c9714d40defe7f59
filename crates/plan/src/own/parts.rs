//! Parts of a load balancer, found without a walk over all of them: planning asks for the parts of
//! every Service that is on it.
//!
//! # Guarantees
//! What is found is what a walk over the lists of the load balancer finds, in the order of the
//! lists.
//!
//! # Assumptions
//! Names have letters of ASCII only, as Azure demands.

use super::name::base_number;
use model::azure::{Frontend, FrontendAddress, LoadBalancer, Probe, Rule, RuleProtocol};
use model::world::ById;
use model::{ResourceId, World};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

/// Places in a list by a key, in the order of the list for each.
type Places<K> = Vec<(K, usize)>;

/// Where the parts of one kind are, by their names and by the base names in these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Names {
    whole: Places<u64>,
    bases: Places<u128>,
}

/// Where the parts of a load balancer are in its lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    frontends: Names,
    rules: Names,
    probes: Names,
    /// Frontends by the name of the public IP that they stand on.
    public: Places<u64>,
    /// Rules by the name of the frontend that they lead to.
    leading: Places<u64>,
    /// Rules by their backend port.
    backends: Places<(RuleProtocol, u16)>,
}

/// A load balancer with its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    balancer: &'a LoadBalancer,
    parts: &'a Parts,
}

/// The parts of all load balancers, remembered while they are the same values in memory.
#[derive(Debug, Default)]
pub(crate) struct Index {
    all: BTreeMap<ResourceId, (Arc<LoadBalancer>, Parts)>,
}

/// A digest of a name, the same in all letter cases: who looks for a name compares it in full, too.
fn digest(name: &str) -> u64 {
    // FNV-1a: names are short, and nobody gains by making them alike.
    let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().map(|byte| byte.to_ascii_lowercase()).fold(0xcbf2_9ce4_8422_2325, step)
}

fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

fn public(frontend: &Frontend) -> u64 {
    match &frontend.address {
        FrontendAddress::Public(id) => digest(id.name()),
        FrontendAddress::Private { .. } | FrontendAddress::Other => 0,
    }
}

fn leading(rule: &Rule) -> u64 {
    rule.frontend.as_ref().map_or(0, |id| digest(id.name()))
}

fn backend(rule: &Rule) -> (RuleProtocol, u16) {
    (rule.protocol, rule.backend_port)
}

fn sorted<T, K: Ord>(list: &[T], key: impl Fn(&T) -> K) -> Places<K> {
    let mut places: Places<K> = list.iter().map(key).zip(0..).collect();
    places.sort_unstable();
    places
}

/// Those with a key.
fn with<K: Ord>(places: &Places<K>, key: K) -> impl Iterator<Item = usize> {
    let from = places.partition_point(|(other, _)| *other < key);
    places[from..].iter().take_while(move |(other, _)| *other == key).map(|(_, at)| *at)
}

/// Adds the last of a list.
fn add<K: Ord>(places: &mut Places<K>, key: K, at: usize) {
    let place = places.partition_point(|(other, _)| *other <= key);
    places.insert(place, (key, at));
}

impl Names {
    fn of<T>(list: &[T], name: impl Fn(&T) -> &str) -> Self {
        let whole = sorted(list, |part| digest(name(part)));
        let bases = list.iter().map(|part| base_number(name(part))).zip(0..);
        let mut bases: Places<u128> =
            bases.filter_map(|(base, at)| base.map(|base| (base, at))).collect();
        bases.sort_unstable();
        Self { whole, bases }
    }

    fn add(&mut self, name: &str, at: usize) {
        add(&mut self.whole, digest(name), at);
        if let Some(base) = base_number(name) {
            add(&mut self.bases, base, at);
        }
    }

    fn find(&self, name: &str, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        with(&self.whole, digest(name)).find(|at| is_it(*at))
    }

    fn of_base<'a, T>(&self, list: &'a [T], base: &str) -> Vec<&'a T> {
        let Some(base) = base_number(base) else { return Vec::new() };
        with(&self.bases, base).map(|at| &list[at]).collect()
    }
}

impl Parts {
    /// Finds them.
    pub fn of(balancer: &LoadBalancer) -> Self {
        let LoadBalancer { frontends, rules, probes, .. } = balancer;
        Self {
            frontends: Names::of(frontends, |f| &f.name),
            rules: Names::of(rules, |r| &r.name),
            probes: Names::of(probes, |p| &p.name),
            public: sorted(frontends, public),
            leading: sorted(rules, leading),
            backends: sorted(rules, backend),
        }
    }

    /// A frontend is added at the end.
    pub fn add_frontend(&mut self, frontend: &Frontend, at: usize) {
        self.frontends.add(&frontend.name, at);
        add(&mut self.public, public(frontend), at);
    }

    /// A frontend has another address.
    pub fn move_frontend(&mut self, balancer: &LoadBalancer) {
        self.public = sorted(&balancer.frontends, public);
    }

    /// A rule is added at the end.
    pub fn add_rule(&mut self, rule: &Rule, at: usize) {
        self.rules.add(&rule.name, at);
        add(&mut self.leading, leading(rule), at);
        add(&mut self.backends, backend(rule), at);
    }

    /// A rule leads from or to something else.
    pub fn move_rule(&mut self, balancer: &LoadBalancer) {
        self.leading = sorted(&balancer.rules, leading);
        self.backends = sorted(&balancer.rules, backend);
    }

    /// A probe is added at the end.
    pub fn add_probe(&mut self, probe: &Probe, at: usize) {
        self.probes.add(&probe.name, at);
    }
}

impl Deref for View<'_> {
    type Target = LoadBalancer;

    fn deref(&self) -> &LoadBalancer {
        self.balancer
    }
}

impl<'a> View<'a> {
    /// Looks at a load balancer with the parts found of it.
    pub fn new(balancer: &'a LoadBalancer, parts: &'a Parts) -> Self {
        Self { balancer, parts }
    }

    /// The load balancer.
    pub fn whole(self) -> &'a LoadBalancer {
        self.balancer
    }

    /// Its parts.
    pub fn parts(self) -> &'a Parts {
        self.parts
    }

    /// Where the frontend of a name is.
    pub fn frontend_at(self, name: &str) -> Option<usize> {
        let all = &self.balancer.frontends;
        self.parts.frontends.find(name, |at| same(&all[at].name, name))
    }

    /// The frontend of a name.
    pub fn frontend(self, name: &str) -> Option<&'a Frontend> {
        self.frontend_at(name).map(|at| &self.balancer.frontends[at])
    }

    /// The frontends of a base name.
    pub fn frontends_of(self, base: &str) -> Vec<&'a Frontend> {
        self.parts.frontends.of_base(&self.balancer.frontends, base)
    }

    /// The frontends that stand on a public IP.
    pub fn frontends_on(self, ip: &ResourceId) -> Vec<&'a Frontend> {
        let all = &self.balancer.frontends;
        let named = with(&self.parts.public, digest(ip.name())).map(|at| &all[at]);
        named.filter(|f| matches!(&f.address, FrontendAddress::Public(on) if on == ip)).collect()
    }

    /// Where the rule of a name is.
    pub fn rule_at(self, name: &str) -> Option<usize> {
        let all = &self.balancer.rules;
        self.parts.rules.find(name, |at| same(&all[at].name, name))
    }

    /// The rule of a name.
    pub fn rule(self, name: &str) -> Option<&'a Rule> {
        self.rule_at(name).map(|at| &self.balancer.rules[at])
    }

    /// The rules of a base name.
    pub fn rules_of(self, base: &str) -> Vec<&'a Rule> {
        self.parts.rules.of_base(&self.balancer.rules, base)
    }

    /// Whether a rule leads to a frontend.
    fn leads(self, rule: &Rule, frontend: &str) -> bool {
        let to = rule.frontend.as_ref();
        to.is_some_and(|to| to.is_child(&self.balancer.id, "frontendIPConfigurations", frontend))
    }

    /// The rules that lead to a frontend.
    pub fn rules_to(self, frontend: &str) -> Vec<&'a Rule> {
        let named = with(&self.parts.leading, digest(frontend)).map(|at| &self.balancer.rules[at]);
        named.filter(|rule| self.leads(rule, frontend)).collect()
    }

    /// The rules that lead to one of these backend ports.
    pub fn rules_at(self, ports: &[(RuleProtocol, u16)]) -> Vec<&'a Rule> {
        let places = ports.iter().flat_map(|port| with(&self.parts.backends, *port));
        let mut places: Vec<usize> = places.collect();
        places.sort_unstable();
        places.into_iter().map(|at| &self.balancer.rules[at]).collect()
    }

    /// The frontends that rules of a base name lead to.
    pub fn led_by(self, base: &str) -> Vec<&'a Frontend> {
        let led = |rule: &Rule| {
            let frontend = self.frontend(rule.frontend.as_ref()?.name())?;
            self.leads(rule, &frontend.name).then_some(frontend)
        };
        self.rules_of(base).into_iter().filter_map(led).collect()
    }

    /// How many rules and frontends a base name has.
    pub fn count_of(self, base: &str) -> (usize, usize) {
        let Some(base) = base_number(base) else { return (0, 0) };
        let count = |names: &Names| with(&names.bases, base).count();
        (count(&self.parts.rules), count(&self.parts.frontends))
    }

    /// Where the probe of a name is.
    pub fn probe_at(self, name: &str) -> Option<usize> {
        let all = &self.balancer.probes;
        self.parts.probes.find(name, |at| same(&all[at].name, name))
    }

    /// The probes of a base name.
    pub fn probes_of(self, base: &str) -> Vec<&'a Probe> {
        self.parts.probes.of_base(&self.balancer.probes, base)
    }

    /// Whether a rule of somebody else's, of another kind, refers to a frontend.
    pub fn is_foreign(self, frontend: &str) -> bool {
        if self.balancer.foreign.is_empty() {
            return false;
        }
        let id = self.balancer.id.child("frontendIPConfigurations", frontend);
        self.balancer.foreign.iter().any(|f| f.frontends.contains(&id))
    }

    /// Whether anything refers to a frontend.
    pub fn is_used(self, frontend: &str) -> bool {
        !self.rules_to(frontend).is_empty() || self.is_foreign(frontend)
    }
}

impl Index {
    /// Knows none yet.
    pub const fn new() -> Self {
        Self { all: BTreeMap::new() }
    }

    /// Looks anew at load balancers that are other values, and lets go of those that are gone.
    pub fn renew(&mut self, world: &World) {
        let none = ById::new();
        let there = world.azure.balancers.known().unwrap_or(&none);
        self.all.retain(|id, (of, _)| there.get(id).is_some_and(|now| Arc::ptr_eq(of, now)));
        if self.all.len() == there.len() {
            return;
        }
        for (id, balancer) in there {
            let found = || (Arc::clone(balancer), Parts::of(balancer));
            self.all.entry(id.clone()).or_insert_with(found);
        }
    }

    /// A load balancer.
    pub fn get(&self, id: &ResourceId) -> Option<View<'_>> {
        self.all.get(id).map(|(balancer, parts)| View { balancer, parts })
    }

    /// All load balancers, in the order of their ids.
    pub fn all(&self) -> impl Iterator<Item = View<'_>> {
        self.all.values().map(|(balancer, parts)| View { balancer, parts })
    }
}

#[cfg(test)]
mod tests;
