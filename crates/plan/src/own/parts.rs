//! Parts of a load balancer, found without a walk over all of them: planning asks for the parts of
//! every Service that is on it.
//!
//! # Guarantees
//! What is found is what a walk over the lists of the load balancer finds, in the order of the
//! lists.
//!
//! # Assumptions
//! Names have letters of ASCII only, as Azure demands, but for those of resource groups. A list of
//! a resource group's public IPs has none of another group's.

use super::name::base_number;
use model::azure::{Frontend, FrontendAddress, LoadBalancer, Probe, PublicIp, Rule, RuleProtocol};
use model::world::ById;
use model::{ResourceId, World};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

/// Places in a list by a key, in the order of the list for each.
type Places<K> = Vec<(K, usize)>;

/// What a base name has on a load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share<'a> {
    /// The base name, as a number.
    pub base: u128,
    /// The name of one of the parts, which begins with it.
    pub part: &'a str,
    /// How many frontends there are.
    pub frontends: usize,
    /// How many rules.
    pub rules: usize,
}

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
    /// Frontends by the end of the id of the public IP that they stand on.
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

/// The parts of all load balancers, remembered while they are the same values in memory, and all
/// public IPs.
#[derive(Debug, Default)]
pub(crate) struct Index {
    all: BTreeMap<ResourceId, (Arc<LoadBalancer>, Parts)>,
    /// By the end of their ids.
    ips: Vec<(u64, Arc<PublicIp>)>,
}

/// How much of the end of an id is digested: ids begin alike, and names have at most 80 characters.
const ENDING: usize = 64;

/// A digest of a text, the same in all letter cases: who looks for a name compares it in full, too.
fn digest_of(text: &[u8]) -> u64 {
    // As rustc's own tables do, eight bytes a step: there is no gain in making names alike.
    let step =
        |sum: u64, word: u64| (sum.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    // The two cases of a letter differ in one bit.
    let fold = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes) | u64::from_le_bytes([0x20; 8]);
    let (words, rest) = text.as_chunks::<8>();
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
    words.iter().chain([&last]).map(fold).fold(text.len() as u64, step)
}

/// The same of a name.
fn digest(name: &str) -> u64 {
    digest_of(name.as_bytes())
}

/// The same of the end of an id. Where its resource group is there, with letters of another script,
/// whose two cases may differ in more than one bit, it is that of the name alone.
fn ending(id: &ResourceId) -> u64 {
    let text = id.as_str().as_bytes();
    let end = &text[text.len().saturating_sub(ENDING)..];
    if end.is_ascii() { digest_of(end) } else { digest(id.name()) }
}

fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

fn public(frontend: &Frontend) -> u64 {
    match &frontend.address {
        FrontendAddress::Public(id) => ending(id),
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
        let found = with(&self.parts.public, ending(ip)).map(|at| &all[at]);
        found.filter(|f| matches!(&f.address, FrontendAddress::Public(on) if on == ip)).collect()
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

    /// What each base name has, in the order of their numbers.
    pub fn shares(self) -> Vec<Share<'a>> {
        let Self { balancer, parts } = self;
        let one = |base: &u128, part: &'a str| Share { base: *base, part, frontends: 0, rules: 0 };
        let frontends = parts.frontends.bases.iter();
        let frontends = frontends
            .map(|(base, at)| Share { frontends: 1, ..one(base, &balancer.frontends[*at].name) });
        let rules = parts.rules.bases.iter();
        let rules =
            rules.map(|(base, at)| Share { rules: 1, ..one(base, &balancer.rules[*at].name) });
        let probes = parts.probes.bases.iter();
        let probes = probes.map(|(base, at)| one(base, &balancer.probes[*at].name));
        let mut shares: Vec<Share<'a>> = frontends.chain(rules).chain(probes).collect();
        // Three lists that are in order become one.
        shares.sort_by_key(|share| share.base);
        shares.dedup_by(|next, first| {
            let same = next.base == first.base;
            if same {
                first.frontends += next.frontends;
                first.rules += next.rules;
            }
            same
        });
        shares
    }

    /// Whether several frontends may stand on one public IP.
    pub fn may_share_ips(self) -> bool {
        let mut next = self.parts.public.windows(2);
        next.any(|two| two[0].0 == two[1].0 && two[0].0 != 0)
    }

    /// How many rules and frontends a base name has, by its number.
    pub fn count_of(self, base: Option<u128>) -> (usize, usize) {
        let Some(base) = base else { return (0, 0) };
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
        Self { all: BTreeMap::new(), ips: Vec::new() }
    }

    /// Looks anew at load balancers that are other values, and lets go of those that are gone.
    pub fn renew(&mut self, world: &World) {
        let ips = super::public_ips(world).map(|ip| (ending(&ip.id), Arc::clone(ip)));
        self.ips.clear();
        self.ips.extend(ips);
        self.ips.sort_by_key(|(end, _)| *end);
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

    /// A public IP.
    pub fn public_ip(&self, id: &ResourceId) -> Option<&Arc<PublicIp>> {
        let sought = ending(id);
        let from = self.ips.partition_point(|(end, _)| *end < sought);
        let mut like = self.ips[from..].iter().take_while(|(end, _)| *end == sought);
        like.find(|(_, ip)| ip.id == *id).map(|(_, ip)| ip)
    }

    /// All load balancers, in the order of their ids.
    pub fn all(&self) -> impl Iterator<Item = View<'_>> {
        self.all.values().map(|(balancer, parts)| View { balancer, parts })
    }
}

/// What differs between two lists: they without what both begin with, and end with.
pub(crate) fn differing<'a, T: PartialEq>(a: &'a [T], b: &'a [T]) -> (&'a [T], &'a [T]) {
    let same = |(a, b): &(&T, &T)| a == b;
    let begin = a.iter().zip(b).take_while(same).count();
    let (a, b) = (&a[begin..], &b[begin..]);
    let end = a.iter().rev().zip(b.iter().rev()).take_while(same).count();
    (&a[..a.len() - end], &b[..b.len() - end])
}

#[cfg(test)]
mod tests;
