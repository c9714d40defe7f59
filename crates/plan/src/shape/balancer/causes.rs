//! On whose account a load balancer is written.

use crate::draft::Draft;
use crate::own::Base;
use crate::own::parts::differing;
use model::ServiceUid;
use model::azure::{Frontend, LoadBalancer, Probe, Rule};
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
    // What all begin with and end with makes no difference.
    let frontends = differing(frontends, &after.frontends);
    let rules = differing(rules, &after.rules);
    let probes = differing(probes, &after.probes);
    let before = parts((frontends.0, rules.0, probes.0));
    let after = parts((frontends.1, rules.1, probes.1));
    let bases: BTreeSet<&Base> = before.keys().chain(after.keys()).collect();
    bases
        .into_iter()
        .filter(|base| before.get(*base) != after.get(*base))
        .filter_map(|base| draft.owner_of(base.as_str()).cloned())
        .collect()
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
