//! Load balancers of ours that nobody stands on any more.

use super::bridge;
use crate::draft::Draft;
use model::azure::LoadBalancer;

/// Whether nothing but our own pools is left on a load balancer: a write that was cut short.
pub(crate) fn is_shell(draft: &Draft<'_>, balancer: &LoadBalancer) -> bool {
    !balancer.pools.is_empty()
        && balancer.pools.iter().all(|pool| bridge::is_common(draft.policy, &pool.name))
        && balancer.foreign.is_empty()
}

/// Whether the last parts of ours go, after somebody has taken the frontends away.
pub(crate) fn lays_bare(before: &LoadBalancer, after: &LoadBalancer) -> bool {
    let parts = |b: &LoadBalancer| b.pools.len() + b.rules.len() + b.probes.len();
    parts(before) > 0 && parts(after) == 0 && after.foreign.is_empty()
}
