//! On whose account a load balancer is written.

use crate::draft::Draft;
use crate::own::name;
use model::ServiceUid;
use model::azure::{Frontend, LoadBalancer, Probe, Rule};
use std::collections::{BTreeMap, BTreeSet};

/// Services whose parts differ between two bodies.
pub(super) fn of(
    draft: &Draft<'_>,
    before: Option<&LoadBalancer>,
    after: &LoadBalancer,
) -> BTreeSet<ServiceUid> {
    let before = before.map(parts).unwrap_or_default();
    let after = parts(after);
    let bases: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    bases
        .into_iter()
        .filter(|base| before.get(*base) != after.get(*base))
        .filter_map(|base| draft.owner_of(base).cloned())
        .collect()
}

type Parts<'a> = (Vec<&'a Frontend>, Vec<&'a Rule>, Vec<&'a Probe>);

fn parts(balancer: &LoadBalancer) -> BTreeMap<String, Parts<'_>> {
    let mut parts: BTreeMap<String, Parts<'_>> = BTreeMap::new();
    let base = |name: &str| name::base_of(name).map(str::to_lowercase);
    for frontend in &balancer.frontends {
        if let Some(base) = base(&frontend.name) {
            parts.entry(base).or_default().0.push(frontend);
        }
    }
    for rule in &balancer.rules {
        if let Some(base) = base(&rule.name) {
            parts.entry(base).or_default().1.push(rule);
        }
    }
    for probe in &balancer.probes {
        if let Some(base) = base(&probe.name) {
            parts.entry(base).or_default().2.push(probe);
        }
    }
    parts
}
