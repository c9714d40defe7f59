//! Services that stand in Azure, and behind which there is no node.

use crate::ask::rules::NO_BACKENDS;
use crate::claim::placement::{self, Assignment, Backends};
use crate::draft::Draft;
use crate::shape::pool;
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
/// Not where somebody else fills the pools, or where nodes are about to come from another load
/// balancer, or once lists are certain to show who has them.
pub(crate) fn note(
    draft: &mut Draft<'_>,
    balancer: &LoadBalancer,
    seats: &Assignment,
    seated: &[ServiceUid],
) {
    if pool::is_preconfigured(draft, seats.exposure) || seats.awaited.is_some() {
        return;
    }
    let serves = |n: &Arc<Node>| n.membership == Membership::Member;
    for uid in seated {
        let Some(intent) = draft.cases[uid].intent() else { continue };
        let own = placement::has_own_pool(draft.policy, intent);
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
    use model::{Policy, World};
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
    fn where_others_fill_the_pools_nothing_is_said() {
        let mut world = settled(world(vec![internal(1, 80, &[])]));
        world.kubernetes.nodes.clear();
        let policy = Policy { preconfigured: model::policy::Preconfigured::All, ..policy() };
        let (_, report) = crate::plan(&world, &policy);
        assert!(report.services[&uid(1)].findings.is_empty(), "{report:#?}");
    }
}
