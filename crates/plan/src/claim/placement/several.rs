//! Several load balancers, each with its share of the nodes.

use super::capacity::Capacity;
use super::{Assignment, Placement, add_others, backends, id_of, seat};
use crate::ask::annotation::{CONFIGURATIONS, full};
use crate::ask::{Intent, PublicIpIntent};
use crate::claim::Refusal;
use crate::claim::choice::{Chosen, named_by};
use crate::claim::contest;
use crate::claim::holder::{self, Address};
use crate::draft::Draft;
use crate::own::name::{is_one, pool_of};
use crate::standing::frontend;
use model::kubernetes::Service;
use model::policy::{LoadBalancerConfig, Placement as Admission};
use model::report::Finding;
use model::{Exposure, Family, ResourceId, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Rules from which on a load balancer takes no new Service.
const FULL: usize = 301;

/// Who has a shared address, or is to have it.
enum Holder {
    Frontend(Arc<str>),
    Service(ServiceUid),
}

/// Which of the configurations, by its place in the list.
type Index = usize;

/// Who has which shared address where, or is to have it there.
type Anchors = BTreeMap<(Exposure, Address), (Index, Holder)>;

struct Choice<'a> {
    configs: &'a [LoadBalancerConfig],
    capacity: Capacity,
    /// The load balancers of each configuration, public and internal.
    ids: Vec<[ResourceId; 2]>,
    /// Where shared addresses are, or are to be; once a Service comes that may share one.
    anchors: Option<Anchors>,
    /// Pools of which a Service that was placed takes all ports.
    whole: BTreeSet<ResourceId>,
}

/// Places Services, then nodes.
pub(super) fn place(
    draft: &mut Draft<'_>,
    configs: &[LoadBalancerConfig],
    chosen: &Chosen,
) -> Placement {
    let policy = draft.policy;
    let mut placement = Placement::default();
    for config in configs {
        for exposure in Exposure::ALL {
            placement
                .balancers
                .insert(id_of(policy, config, exposure), Assignment::empty(exposure));
        }
    }
    add_others(draft, &mut placement);
    let capacity = Capacity::of(draft);
    let ids = configs.iter().map(|c| Exposure::ALL.map(|e| id_of(policy, c, e))).collect();
    let mut choice = Choice { configs, capacity, ids, anchors: None, whole: BTreeSet::new() };
    let (there, new): (Vec<ServiceUid>, Vec<ServiceUid>) =
        draft.cases.keys().cloned().partition(|uid| !choice.capacity.homes(uid).is_empty());
    for uid in there.into_iter().chain(new) {
        let Some(intent) = draft.cases[&uid].shared_intent() else { continue };
        let shared = anchors(&intent, chosen);
        if !shared.is_empty() && choice.anchors.is_none() {
            choice.anchors = Some(choice.find_anchors(draft));
        }
        match choice.of(draft, &intent, chosen, &shared) {
            Ok(at) => {
                let id = choice.id(at, intent.exposure).clone();
                choice.capacity.seat(&id, &intent);
                if !choice.is_taken(draft, &intent, at) {
                    choice.whole.extend(whole_pools(draft, &intent, &id));
                }
                for anchor in shared {
                    let all = choice.anchors.get_or_insert_default();
                    let fresh = || (at, Holder::Service(uid.clone()));
                    all.entry((intent.exposure, anchor)).or_insert_with(fresh);
                }
                seat(draft, &mut placement, &id, &uid);
            }
            Err(finding) => draft.refuse(&uid, Refusal::new(finding)),
        }
    }
    backends::divide(draft, configs, chosen, &mut placement);
    backends::localize(draft, &mut placement);
    backends::guard(draft, &mut placement);
    placement
}

/// Pools of a load balancer of which a Service takes all ports.
fn whole_pools(draft: &Draft<'_>, intent: &Intent, balancer: &ResourceId) -> Vec<ResourceId> {
    let whole =
        |family: &&Family| contest::backend_ports(intent, **family).contains(&contest::ALL_PORTS);
    let families = intent.families.iter().filter(whole);
    let pools = families.map(|family| pool_of(draft.policy, intent, *family));
    pools.map(|name| balancer.child("backendAddressPools", &name)).collect()
}

/// Addresses that a Service brings along, and that others may have brought along, too.
fn anchors(intent: &Intent, chosen: &Chosen) -> Vec<Address> {
    let firm = intent.families.iter().filter(|family| is_firm(intent, **family));
    let anchor = |family: &Family| match intent.exposure {
        Exposure::Internal => intent.pinned.get(family).copied().map(Address::Private),
        Exposure::Public => {
            chosen.get(&(intent.uid.clone(), *family)).cloned().map(Address::Public)
        }
    };
    firm.filter_map(anchor).collect()
}

/// Whether a Service asks for a certain address of a family.
fn is_firm(intent: &Intent, family: Family) -> bool {
    match (intent.exposure, intent.public_ips.get(&family)) {
        (Exposure::Internal, _) => intent.pinned.contains_key(&family),
        (Exposure::Public, wish) => {
            matches!(wish, Some(PublicIpIntent::Named(_) | PublicIpIntent::Pinned))
        }
    }
}

impl Choice<'_> {
    fn id(&self, at: Index, exposure: Exposure) -> &ResourceId {
        let [public, internal] = &self.ids[at];
        match exposure {
            Exposure::Public => public,
            Exposure::Internal => internal,
        }
    }

    fn find_anchors(&self, draft: &Draft<'_>) -> Anchors {
        let mut anchors = Anchors::new();
        for at in 0..self.configs.len() {
            for exposure in Exposure::ALL {
                let balancer = draft.balancer(self.id(at, exposure));
                for frontend in balancer.into_iter().flat_map(|b| &b.frontends) {
                    if let Some(anchor) = Address::of(frontend) {
                        let found = || (at, Holder::Frontend(Arc::clone(&frontend.name)));
                        anchors.entry((exposure, anchor)).or_insert_with(found);
                    }
                }
            }
        }
        anchors
    }

    /// The configuration that a Service is to be on, which brings these addresses along.
    fn of(
        &self,
        draft: &Draft<'_>,
        intent: &Intent,
        chosen: &Chosen,
        shared: &[Address],
    ) -> Result<Index, Finding> {
        let homes = self.capacity.homes(&intent.uid);
        let is_on = |at: &Index, exposure: Exposure| homes.contains(self.id(*at, exposure));
        let all = 0..self.configs.len();
        let mut active: Vec<Index> = all.clone().filter(|at| is_on(at, intent.exposure)).collect();
        // It may be on two: a dead process's write came after its successor had placed it anew.
        active.sort_by_key(|at| !self.is_told(draft, intent, *at));
        active.extend(all.filter(|at| is_on(at, intent.exposure.other())));
        let eligible = self.eligible(draft, intent, &active)?;
        let anchor = |a: &Address| self.anchors.as_ref()?.get(&(intent.exposure, a.clone()));
        let held = shared.iter().find_map(anchor);
        let firm = held.is_some_and(|(at, by)| self.is_kept(draft, intent, chosen, (*at, by)));
        // On a load balancer of its own the address may move with the Service, unless others stay
        // on it: on its way to them it is on two.
        let held = held.filter(|(at, _)| firm || !is_on(at, intent.exposure));
        // A Service is not moved unasked: if its port is taken there, it is refused and stays.
        let stays = |at: &&Index| !firm && is_on(at, intent.exposure) && eligible.contains(*at);
        if let Some(&current) = active.iter().find(stays) {
            return Ok(current);
        }
        let free = self.free(draft, intent, &eligible);
        if let Some(beside) = active.into_iter().find(|at| !firm && free.contains(at)) {
            return Ok(beside);
        }
        if let Some(&(at, _)) = held {
            let name = &self.configs[at].name;
            return if eligible.contains(&at) {
                Ok(at)
            } else {
                let by = intent.families.iter().find(|family| is_firm(intent, **family));
                let (key, value) = named_by(draft, intent, *by.unwrap_or(&Family::V4));
                let message = format!(
                    "{{value}} is on load balancer {name}, where the Service must not be; use one \
                     that is free or on one of: {}",
                    self.names(eligible.iter())
                );
                Err(Finding::refusal("PinnedLoadBalancerNotEligible", &key, &value, &message))
            };
        }
        self.choose(&free, intent.exposure)
    }

    /// The configurations on which a new Service's backend ports are free; all of them if they are
    /// free on none, so that the refusal comes from one of them.
    fn free(&self, draft: &Draft<'_>, intent: &Intent, eligible: &[Index]) -> Vec<Index> {
        let all = eligible.iter().copied();
        let free: Vec<Index> = all.filter(|at| !self.is_taken(draft, intent, *at)).collect();
        if free.is_empty() { eligible.to_vec() } else { free }
    }

    /// Whether another has a backend port of a Service on a load balancer, or is to have it there.
    fn is_taken(&self, draft: &Draft<'_>, intent: &Intent, at: Index) -> bool {
        let id = self.id(at, intent.exposure);
        let translated = |family: &&Family| !contest::backend_ports(intent, **family).is_empty();
        let mut families = intent.families.iter().filter(translated).peekable();
        if families.peek().is_none() {
            return false;
        }
        let there = draft.view(id).is_some_and(|balancer| {
            families.any(|family| {
                let pool = pool_of(draft.policy, intent, *family);
                contest::backend_port_taken(draft, balancer, intent, *family, &pool).is_some()
            })
        });
        there || whole_pools(draft, intent, id).iter().any(|pool| self.whole.contains(pool))
    }

    /// Whether a Service's status tells the address of a frontend that it has on a load balancer.
    fn is_told(&self, draft: &Draft<'_>, intent: &Intent, at: Index) -> bool {
        let balancer = draft.view(self.id(at, intent.exposure));
        let mut own = balancer.into_iter().flat_map(|b| b.frontends_of(&intent.base));
        own.any(|f| frontend::is_told(draft, intent, f))
    }

    /// Whether somebody else wants to keep an address where it is.
    fn is_kept(
        &self,
        draft: &Draft<'_>,
        asker: &Intent,
        chosen: &Chosen,
        (at, by): (Index, &Holder),
    ) -> bool {
        let name = match by {
            Holder::Service(uid) => return *uid != asker.uid,
            Holder::Frontend(name) => name,
        };
        let Some(balancer) = draft.view(self.id(at, asker.exposure)) else { return false };
        let found = balancer.frontend(name);
        let keepers = found.map(|f| holder::keepers(draft, chosen, balancer, f));
        keepers.is_some_and(|keepers| keepers.iter().any(|uid| *uid != asker.uid))
    }

    fn names<'i>(&self, all: impl Iterator<Item = &'i Index>) -> String {
        all.map(|at| &*self.configs[*at].name).collect::<Vec<_>>().join(", ")
    }

    /// The configurations that a Service may be on.
    fn eligible(
        &self,
        draft: &Draft<'_>,
        intent: &Intent,
        active: &[Index],
    ) -> Result<Vec<Index>, Finding> {
        let service = draft.cases[&intent.uid].service;
        let named = &intent.placement.configurations;
        let mut left: Vec<Index> = (0..self.configs.len()).collect();
        let mut counts = [left.len(); 5];
        left.retain(|at| {
            let name = &self.configs[*at].name;
            named.is_empty() || named.iter().any(|n| is_one(n, name))
        });
        counts[1] = left.len();
        left.retain(|at| self.configs[*at].placement == Admission::Allowed || active.contains(at));
        counts[2] = left.len();
        left.retain(|at| {
            let selector = self.configs[*at].services.as_ref();
            selector.is_none_or(|s| s.matches(&service.labels))
        });
        counts[3] = left.len();
        left.retain(|at| takes_namespace(draft, &self.configs[*at], service));
        counts[4] = left.len();
        if left.is_empty() {
            let words = [
                "configured",
                "of them named by the annotation or all",
                "of them open to new Services",
                "of them for the Service's labels",
                "of them for its namespace's labels",
            ];
            let counts = counts.iter().zip(words).map(|(count, what)| format!("{count} {what}"));
            let counts: Vec<String> = counts.collect();
            let message = format!(
                "no load balancer configuration takes the Service ({}); at least one must",
                counts.join(", ")
            );
            let rule = "NoEligibleLoadBalancer";
            return Err(match named.is_empty() {
                true => refusal(rule, &message),
                false => Finding::refusal(rule, &full(CONFIGURATIONS), &named.join(","), &message),
            });
        }
        let picks = |at: &Index| {
            self.configs[*at].services.is_some() || self.configs[*at].namespaces.is_some()
        };
        if left.iter().any(picks) {
            left.retain(picks);
        }
        Ok(left)
    }

    /// An empty load balancer, else a new one, else the one with the fewest rules.
    fn choose(&self, eligible: &[Index], exposure: Exposure) -> Result<Index, Finding> {
        let rules = |at: &&Index| self.capacity.rules(self.id(**at, exposure));
        let empty = eligible.iter().find(|at| rules(at) == Some(0));
        let new = || eligible.iter().find(|at| rules(at).is_none());
        let fewest = || {
            let open = eligible.iter().filter(|at| rules(at).is_some_and(|n| n < FULL));
            open.min_by_key(rules)
        };
        empty.or_else(new).or_else(fewest).copied().ok_or_else(|| {
            refusal(
                "LoadBalancersFull",
                &format!(
                    "load balancers {} have {FULL} rules or more each; one that the Service may be \
                     on must have fewer",
                    self.names(eligible.iter())
                ),
            )
        })
    }
}

fn takes_namespace(draft: &Draft<'_>, config: &LoadBalancerConfig, service: &Service) -> bool {
    let Some(selector) = &config.namespaces else { return true };
    let labels = draft.world.kubernetes.namespaces.get(&service.name.namespace);
    labels.is_some_and(|labels| selector.matches(labels))
}

fn refusal(rule: &'static str, message: &str) -> Finding {
    Finding::refusal(rule, "multipleStandardLoadBalancerConfigurations", "", message)
}
