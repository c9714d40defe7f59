//! A load balancer for each scale set or availability set.

use super::capacity::Capacity;
use super::{Assignment, Backends, Placement, add_others, backends, seat};
use crate::ask::{AUTO, Intent, PlacementMode};
use crate::claim::Refusal;
use crate::draft::Draft;
use crate::own::name;
use model::policy::BalancerSku;
use model::report::Finding;
use model::{Exposure, Policy, ResourceId, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The load balancers of a node set; all sets without one of their own are the primary.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Home {
    Primary,
    Set(Arc<str>),
}

struct Sets<'a> {
    policy: &'a Policy,
    without_own: &'a [Arc<str>],
    /// Homes of all sets that have nodes, the primary first.
    homes: BTreeSet<Home>,
    /// Whether the set of every node is known.
    complete: bool,
}

/// Places Services, then nodes.
pub(super) fn place(draft: &mut Draft<'_>, without_own: &[Arc<str>]) -> Placement {
    let policy = draft.policy;
    let mut sets = Sets { policy, without_own, homes: BTreeSet::new(), complete: true };
    let mut members: BTreeMap<Home, Vec<_>> = BTreeMap::new();
    sets.homes.insert(Home::Primary);
    for node in backends::eligible(draft) {
        let set = backends::set_of(draft, &node);
        if set.is_none() {
            sets.complete = false;
        }
        // It is nobody's until its set is known: Azure refuses a node of another set.
        if backends::is_unseen(draft, &node) {
            continue;
        }
        let home = set.map_or(Home::Primary, |set| sets.home(&set));
        sets.homes.insert(home.clone());
        members.entry(home).or_default().push(node);
    }
    let mut placement = Placement::default();
    for home in &sets.homes {
        for exposure in Exposure::ALL {
            placement.balancers.insert(sets.id(home, exposure), Assignment::empty(exposure));
        }
    }
    add_others(draft, &mut placement);
    let mut capacity = Capacity::of(draft);
    let (there, new): (Vec<ServiceUid>, Vec<ServiceUid>) =
        draft.cases.keys().cloned().partition(|uid| !capacity.homes(uid).is_empty());
    for uid in there.into_iter().chain(new) {
        let Some(intent) = draft.cases[&uid].shared_intent() else { continue };
        match sets.choose(draft, &intent, &capacity) {
            Ok(home) => {
                let id = sets.id(&home, intent.exposure);
                capacity.seat(&id, &intent);
                seat(draft, &mut placement, &id, &uid);
            }
            Err(finding) => draft.refuse(&uid, Refusal::new(finding)),
        }
    }
    for (home, nodes) in members {
        let nodes: Arc<[_]> = nodes.into();
        for exposure in Exposure::ALL {
            if let Some(seats) = placement.balancers.get_mut(&sets.id(&home, exposure)) {
                seats.backends = Backends::Nodes(Arc::clone(&nodes));
            }
        }
    }
    backends::guard(draft, &mut placement);
    placement
}

impl Sets<'_> {
    fn home(&self, set: &str) -> Home {
        let primary = &self.policy.primary_set;
        let shares = self.without_own.iter().any(|s| s.eq_ignore_ascii_case(set));
        if shares || primary.is_empty() || primary.eq_ignore_ascii_case(set) {
            Home::Primary
        } else {
            Home::Set(Arc::from(set.to_lowercase()))
        }
    }

    fn id(&self, home: &Home, exposure: Exposure) -> ResourceId {
        let name = match home {
            Home::Primary => name::balancer(self.policy, exposure),
            Home::Set(set) => name::balancer_of(set, exposure),
        };
        self.policy.balancer_id(&name)
    }

    /// The sets whose load balancer this may be, whether they have nodes or not.
    fn home_of(&self, balancer: &ResourceId, exposure: Exposure) -> Option<Home> {
        name::set_of(balancer.name(), exposure).map(|set| self.home(set))
    }

    /// Where a Service is to be; it stays where it stands, however full that is.
    fn choose(
        &self,
        draft: &Draft<'_>,
        intent: &Intent,
        capacity: &Capacity,
    ) -> Result<Home, Finding> {
        let home = self.asked(draft, intent, capacity)?;
        let id = self.id(&home, intent.exposure);
        let stands = capacity.homes(&intent.uid).contains(&id);
        if stands || capacity.rules(&id).unwrap_or(0) < self.limit() {
            Ok(home)
        } else {
            Err(full_one(&id, self.limit()))
        }
    }

    /// The load balancer that a Service asks for.
    fn asked(
        &self,
        draft: &Draft<'_>,
        intent: &Intent,
        capacity: &Capacity,
    ) -> Result<Home, Finding> {
        let exposure = intent.exposure;
        match &intent.placement.mode {
            PlacementMode::Primary => Ok(Home::Primary),
            PlacementMode::Set(set) => {
                let home = self.home(set);
                let exists = || {
                    let id = self.id(&home, exposure);
                    let is_there = draft.balancer(&id).is_some();
                    // `x-internal` may be the internal load balancer of `x`.
                    is_there && self.home_of(&id, exposure).is_some()
                };
                if self.homes.contains(&home) || exists() {
                    Ok(home)
                } else if set.eq_ignore_ascii_case(AUTO) {
                    self.emptiest(intent, capacity)
                } else if !self.complete {
                    Ok(home)
                } else {
                    Err(self.unknown(set))
                }
            }
            PlacementMode::Auto => self.emptiest(intent, capacity),
        }
    }

    /// Where a Service stands; one that comes, where there are the fewest rules.
    fn emptiest(&self, intent: &Intent, capacity: &Capacity) -> Result<Home, Finding> {
        let exposure = intent.exposure;
        let there = capacity.homes(&intent.uid);
        let homes = self.homes.iter().cloned();
        // A set whose last node went keeps what stands on its load balancer, as one that is named.
        let mut standing = homes.chain(there.iter().filter_map(|id| self.home_of(id, exposure)));
        if let Some(current) = standing.find(|h| there.contains(&self.id(h, exposure))) {
            return Ok(current);
        }
        let rules = |h: &&Home| capacity.rules(&self.id(h, exposure)).unwrap_or(0);
        let open = self.homes.iter().filter(|h| rules(h) < self.limit());
        open.min_by_key(rules).cloned().ok_or_else(|| full(self.limit()))
    }

    /// Rules from which on a load balancer takes no new Service: counted on Basic alone.
    fn limit(&self) -> usize {
        match (self.policy.sku, self.policy.maximum_rules) {
            (BalancerSku::Basic, limit @ 1..) => limit as usize,
            _ => usize::MAX,
        }
    }

    fn unknown(&self, set: &str) -> Finding {
        let sets = self.homes.iter().map(|home| match home {
            Home::Primary => &*self.policy.primary_set,
            Home::Set(set) => set,
        });
        refusal(
            "UnknownNodeSet",
            set,
            &format!(
                "must be __auto__ or a set that has nodes: {}",
                sets.collect::<Vec<_>>().join(", ")
            ),
        )
    }
}

fn full(limit: usize) -> Finding {
    refusal(
        "LoadBalancersFull",
        "__auto__",
        &format!(
            "{{value}} finds no load balancer with fewer than {limit} rules; name a set or remove \
             rules"
        ),
    )
}

fn full_one(balancer: &ResourceId, limit: usize) -> Finding {
    refusal(
        "LoadBalancersFull",
        "",
        &format!(
            "load balancer {} has {limit} rules or more, by maximumLoadBalancerRuleCount of the \
             cloud config too many for another Service; name another set or remove rules",
            balancer.name()
        ),
    )
}

fn refusal(rule: &'static str, value: &str, message: &str) -> Finding {
    let key = "service.beta.kubernetes.io/azure-load-balancer-mode";
    Finding::refusal(rule, key, value, message)
}
