//! On whose account a load balancer is written.

use crate::draft::Draft;
use crate::own::parts::differing;
use crate::own::{Base, is_claimed};
use model::azure::{Frontend, LoadBalancer, Probe, Rule};
use model::{ResourceId, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};

/// Services whose parts differ between two bodies.
pub(super) fn of(
    draft: &Draft<'_>,
    before: Option<&LoadBalancer>,
    after: &LoadBalancer,
) -> BTreeSet<ServiceUid> {
    let (frontends, rules, probes): Lists<'_> = match before {
        Some(before) => (&before.frontends, &before.rules, &before.probes),
        None => (&[], &[], &[]),
    };
    let balancer = &after.id;
    // What all begin with and end with makes no difference.
    let frontends = differing(frontends, &after.frontends);
    let rules = differing(rules, &after.rules);
    let probes = differing(probes, &after.probes);
    let before = parts((frontends.0, rules.0, probes.0));
    let after = parts((frontends.1, rules.1, probes.1));
    let bases: BTreeSet<&Base> = before.keys().chain(after.keys()).collect();
    let only_fronts = |parts: Option<&Parts<'_>>| {
        parts.is_none_or(|(_, rules, probes)| rules.is_empty() && probes.is_empty())
    };
    let changed = bases.into_iter().filter(|base| before.get(*base) != after.get(*base));
    let own = changed.filter(|base| {
        let mut fronts = [&before, &after].into_iter().map(|parts| parts.get(*base));
        !fronts.all(only_fronts) || !is_handed_on(draft, balancer, base)
    });
    own.filter_map(|base| draft.owner_of(base.as_str()).cloned()).collect()
}

/// Whether only frontends bear the name of a Service without our finalizer, and rules of other
/// Services lead to all of them: these Services hold the frontends since the Service's release.
fn is_handed_on(draft: &Draft<'_>, balancer: &ResourceId, base: &Base) -> bool {
    let case = draft.owner_of(base.as_str()).and_then(|uid| draft.cases.get(uid));
    let Some(view) = draft.view(balancer) else { return false };
    if case.is_none_or(|case| is_claimed(draft.policy, case.service)) {
        return false;
    }
    let frontends = view.frontends_of(base.as_str());
    view.rules_of(base.as_str()).is_empty()
        && !frontends.is_empty()
        && frontends.iter().all(|frontend| !view.rules_to(&frontend.name).is_empty())
}

/// Frontends, rules and probes, one after the other.
type Lists<'a> = (&'a [Frontend], &'a [Rule], &'a [Probe]);

type Parts<'a> = (Vec<&'a Frontend>, Vec<&'a Rule>, Vec<&'a Probe>);

fn parts((frontends, rules, probes): Lists<'_>) -> BTreeMap<Base, Parts<'_>> {
    let mut parts: BTreeMap<Base, Parts<'_>> = BTreeMap::new();
    for frontend in frontends {
        if let Some(base) = Base::of(&frontend.name) {
            parts.entry(base).or_default().0.push(frontend);
        }
    }
    for rule in rules {
        if let Some(base) = Base::of(&rule.name) {
            parts.entry(base).or_default().1.push(rule);
        }
    }
    for probe in probes {
        if let Some(base) = Base::of(&probe.name) {
            parts.entry(base).or_default().2.push(probe);
        }
    }
    parts
}
