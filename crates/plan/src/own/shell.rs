//! Load balancers of ours that no Service stands on any more.

use super::name::is_common_pool;
use model::Policy;
use model::azure::LoadBalancer;

/// Whether nothing but our own pools is on a load balancer, or nothing at all: its last Service has
/// left it, or a write was cut short, or whoever was to join it does not.
pub(crate) fn is_shell(policy: &Policy, balancer: &LoadBalancer) -> bool {
    balancer.frontends.is_empty()
        && balancer.rules.is_empty()
        && balancer.probes.is_empty()
        && balancer.foreign.is_empty()
        && balancer.pools.iter().all(|pool| is_common_pool(&policy.cluster, &pool.name))
}
