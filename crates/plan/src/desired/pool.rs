//! Backend pools that hold addresses of nodes.

use crate::draft::Draft;
use crate::name;
use model::azure::{AdminState, LoadBalancer, Pool, PoolAddress, Rest};
use model::kubernetes::{Membership, Node, NodeRole};
use model::policy::{PoolKind, Preconfigured};
use model::world::Kind;
use model::{Exposure, Family};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Whether somebody else fills the pools of such a load balancer.
pub(crate) fn is_preconfigured(draft: &Draft<'_>, exposure: Exposure) -> bool {
    match draft.policy.preconfigured {
        Preconfigured::None => false,
        Preconfigured::All => true,
        Preconfigured::Internal => exposure == Exposure::Internal,
        Preconfigured::External => exposure == Exposure::Public,
    }
}

/// Makes sure that a load balancer has the cluster's pools of these families, and that pools of
/// addresses hold the nodes.
pub(crate) fn ensure(
    draft: &Draft<'_>,
    balancer: &mut LoadBalancer,
    exposure: Exposure,
    families: &[Family],
    nodes: &[Arc<Node>],
) {
    for family in Family::ALL {
        let name = name::pool(&draft.policy.cluster, family);
        let present = balancer.pools.iter().position(|p| p.name.eq_ignore_ascii_case(&name));
        let at = match present {
            Some(_) if is_preconfigured(draft, exposure) => continue,
            Some(at) => at,
            None if families.contains(&family) => {
                balancer.pools.push(empty(&name));
                balancer.pools.len() - 1
            }
            None => continue,
        };
        if draft.policy.pools == PoolKind::NodeIp {
            fill(draft, &mut balancer.pools[at], family, nodes);
        }
    }
}

fn empty(name: &str) -> Pool {
    Pool {
        name: Arc::from(name),
        network: None,
        addresses: Vec::new(),
        nics: Default::default(),
        rest: Rest::default(),
    }
}

fn fill(draft: &Draft<'_>, pool: &mut Pool, family: Family, nodes: &[Arc<Node>]) {
    if !draft.world.is_complete(&[Kind::Nodes]) {
        return;
    }
    let present: BTreeMap<IpAddr, &PoolAddress> =
        pool.addresses.iter().map(|a| (a.address, a)).collect();
    let mut wanted: Vec<PoolAddress> = Vec::new();
    for node in nodes {
        let Some(address) = node.address(family) else { continue };
        let there = present.get(&address).copied();
        let admin = match (node.membership, there) {
            (Membership::Member, _) => AdminState::None,
            (Membership::Draining, Some(_)) => AdminState::Down,
            (Membership::Draining, None) | (Membership::Excluded, _) => continue,
        };
        let name = there.map_or_else(|| Arc::from(node.name.as_str()), |a| Arc::clone(&a.name));
        wanted.push(PoolAddress { address, name, admin, network: None });
    }
    wanted.sort();
    wanted.dedup_by_key(|a| a.address);
    // Without a single node left, what is there stays: an empty list is more often an error of
    // ours or the API server's than a cluster without nodes.
    if wanted.is_empty() {
        return;
    }
    pool.addresses = wanted;
    pool.network = Some(draft.policy.network());
}

/// The nodes that may be in pools, in the order of their names.
pub(crate) fn candidates(draft: &Draft<'_>) -> Vec<Arc<Node>> {
    let nodes = draft.world.kubernetes.nodes.values();
    nodes.filter(|n| n.role == NodeRole::Worker).cloned().collect()
}
