//! What is not this cluster's on a load balancer over nodes.

use crate::ask::SHARED_PROBE;
use crate::draft::Draft;
use crate::own::name::{self, is_one};
use crate::own::{Owner, borne};
use model::Family;
use model::azure::{LoadBalancer, Pool};
use std::sync::Arc;

/// Whether anything is left on a load balancer that this cluster may not take away, of other
/// clients or of Services about which nothing is known: it outlives our last frontend.
pub(crate) fn holds_others(draft: &Draft<'_>, before: &LoadBalancer, after: &LoadBalancer) -> bool {
    !after.foreign.is_empty()
        || rules_and_probes(after).any(|name| draft.whose(name) == Owner::Foreign)
        || after.pools.iter().any(|pool| is_others(draft, before, pool))
}

/// The names of rules and probes, without that of the probe that Services share.
pub(crate) fn rules_and_probes(balancer: &LoadBalancer) -> impl Iterator<Item = &Arc<str>> {
    let probes = balancer.probes.iter().map(|probe| &probe.name);
    let probes = probes.filter(|name| !is_one(name, SHARED_PROBE));
    balancer.rules.iter().map(|rule| &rule.name).chain(probes)
}

/// Whether a pool is not ours, by its name or by the rules that led to it.
fn is_others(draft: &Draft<'_>, before: &LoadBalancer, pool: &Pool) -> bool {
    let id = before.id.child("backendAddressPools", &pool.name);
    let mut rules = before.rules.iter().filter(|r| r.pool.as_ref() == Some(&id)).peekable();
    let led = rules.peek().is_some() && rules.all(|r| draft.whose(&r.name) != Owner::Foreign);
    let named = || {
        let gone = draft.world.abandoned.iter().filter_map(|name| borne::service_named(name));
        let mut all = draft.cases.values().map(|case| case.service.name.clone()).chain(gone);
        all.any(|s| Family::ALL.iter().any(|f| is_one(&name::local_pool(&s, *f), &pool.name)))
    };
    !led && !name::is_common_pool(&draft.policy.cluster, &pool.name) && !named()
}
