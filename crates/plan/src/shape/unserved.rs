//! Services that stand in Azure, and behind which there is no node.

use crate::ask::findings::NO_BACKENDS;
use crate::claim::placement::{self, Assignment, Backends};
use crate::draft::Draft;
use crate::own::{name, part};
use crate::standing::pool;
use model::ServiceUid;
use model::azure::LoadBalancer;
use model::kubernetes::{Membership, Node};
use model::report::Finding;
use std::sync::Arc;

/// The finding's rule.
pub const RULE: &str = "NoBackends";

/// Notes the Services of a load balancer whose connections nobody answers: where the cluster has
/// no node, or none of the set that is behind it, or only such as are leaving.
///
/// Not where nodes are about to come from another load balancer, or once lists are certain to show
/// who has them. Pools that others fill are what they are: only an empty one is told of.
pub(crate) fn note(
    draft: &mut Draft<'_>,
    balancer: &LoadBalancer,
    seats: &Assignment,
    seated: &[ServiceUid],
) {
    if pool::is_preconfigured(draft, seats.exposure) {
        note_unfilled(draft, balancer, seated);
        return;
    }
    if seats.awaited.is_some() {
        return;
    }
    let serves = |n: &Arc<Node>| n.membership == Membership::Member;
    for uid in seated {
        let Some(intent) = draft.cases[uid].intent() else { continue };
        let own = name::has_own_pool(draft.policy, intent);
        let nodes = match &seats.backends {
            _ if intent.rules.is_empty() => None,
            _ if own => seats.local.get(uid),
            Backends::Nodes(nodes) => Some(nodes),
            Backends::AsTheyAre => None,
        };
        let control = || placement::control_plane(draft, &balancer.id);
        let served = |nodes: &Arc<[Arc<Node>]>| {
            nodes.iter().any(serves) || (!own && control().iter().any(serves))
        };
        if nodes.is_none_or(served) {
            continue;
        }
        draft.note(uid, [finding(balancer.id.name(), own)]);
    }
}

/// A pool that others are to fill and have not. One of network interfaces that is missing is made
/// empty: machines join it by writes of their own, and by then it is theirs to fill.
fn note_unfilled(draft: &mut Draft<'_>, balancer: &LoadBalancer, seated: &[ServiceUid]) {
    for uid in seated {
        let Some(intent) = draft.cases[uid].intent() else { continue };
        let is_unfilled = |family| {
            let name = name::pool_of(draft.policy, intent, family);
            let mut own = balancer.pools.iter().filter(|p| part::is_called(*p, &name));
            own.any(|pool| pool.addresses.is_empty() && pool.nics.is_empty())
        };
        if intent.rules.is_empty() || !intent.families.iter().copied().any(is_unfilled) {
            continue;
        }
        let message = "the pool of load balancer {value} is empty, and \
                       preConfiguredBackendPoolLoadBalancerTypes leaves it to others; connections \
                       fail until they fill it";
        draft.note(uid, [Finding::note(RULE, "nodes", balancer.id.name(), message)]);
    }
}

fn finding(balancer: &str, own: bool) -> Finding {
    let message = match own {
        true => {
            "no node behind load balancer {value} has a ready endpoint; connections fail until one \
             has"
        }
        false => NO_BACKENDS.message,
    };
    Finding::note(RULE, "nodes", balancer, message)
}

#[cfg(test)]
mod tests {
    use crate::shape::stage::{internal, policy, report, settled, uid, world};
    use model::kubernetes::{Membership, NodeRole};
    use model::policy::ControlPlane;
    use model::{Policy, ResourceId, World};
    use std::sync::Arc;

    fn rules(world: &World) -> Vec<&'static str> {
        report(world, 1).findings.iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn a_service_without_nodes_says_so() {
        let mut world = settled(world(vec![internal(1, 80, &[])]));
        assert_eq!(rules(&world), Vec::<&str>::new());
        let node = world.kubernetes.nodes.pop_first().expect("there is one");
        assert_eq!(rules(&world), ["NoBackends"], "there is none");
        for membership in [Membership::Draining, Membership::Excluded, Membership::Leaving] {
            let mut last = node.1.clone();
            Arc::make_mut(&mut last).membership = membership;
            world.kubernetes.nodes.insert(node.0.clone(), last);
            assert_eq!(rules(&world), ["NoBackends"], "{membership:?}: it is leaving");
        }
        world.kubernetes.nodes.insert(node.0, node.1);
        assert_eq!(rules(&world), Vec::<&str>::new());
    }

    /// As in a cluster of one node.
    #[test]
    fn the_control_plane_counts_where_it_is_in_the_pools() {
        let mut world = settled(world(vec![internal(1, 80, &[])]));
        for node in world.kubernetes.nodes.values_mut() {
            Arc::make_mut(node).role = NodeRole::ControlPlane;
        }
        assert_eq!(rules(&world), ["NoBackends"]);
        let policy = Policy { exclude_control_plane: ControlPlane::Included, ..policy() };
        let (_, report) = crate::plan(&world, &policy);
        assert!(report.services[&uid(1)].findings.is_empty(), "{report:#?}");
    }

    #[test]
    fn where_others_fill_the_pools_only_an_empty_one_is_told_of() {
        let mut world = settled(world(vec![internal(1, 80, &[])]));
        world.kubernetes.nodes.clear();
        let policy = Policy { preconfigured: model::policy::Preconfigured::All, ..policy() };
        let theirs = ResourceId::new("/subscriptions/s/networkInterfaces/a/ipConfigurations/b");
        for (nics, expected) in [(vec![theirs], vec![]), (vec![], vec!["NoBackends"])] {
            let all = world.azure.balancers.known_mut().expect("they are read");
            let id = policy.balancer_id("kubernetes-internal");
            let balancer = Arc::make_mut(all.get_mut(&id).expect("it is there"));
            for pool in &mut balancer.pools {
                pool.addresses.clear();
                pool.nics = nics.iter().cloned().collect();
            }
            let (_, report) = crate::plan(&world, &policy);
            let findings = &report.services[&uid(1)].findings;
            let found: Vec<&str> = findings.iter().map(|finding| finding.rule).collect();
            assert_eq!(found, expected);
        }
    }
}
