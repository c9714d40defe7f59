//! The pool that rules lead to while the cluster's pool changes its kind.
//!
//! Azure takes no NICs and addresses in one pool, but pools of both kinds on one load balancer
//! (learn.microsoft.com/azure/load-balancer/backend-pool-management, "Limitations"). So the rules
//! go over a pool of addresses of the same nodes until the cluster's pool is of the new kind, and
//! no rule leads to an empty pool meanwhile.

use super::{member, pool};
use crate::claim::placement::{Assignment, Backends};
use crate::draft::Draft;
use crate::order::drain;
use crate::own::{name as names, part};
use crate::standing::pool::{is_preconfigured, kind};
use model::Family;
use model::azure::{LoadBalancer, Pool, Sku};
use model::drain::Drainer;
use model::policy::{MigrateApi, PoolKind};
use model::report::Finding;
use std::collections::BTreeSet;

/// The pools that a switch goes over now.
#[derive(Debug, Default)]
pub(crate) struct TransitionPools {
    /// Each as it is to be.
    pools: Vec<(Family, Pool)>,
    /// Addresses in them whose nodes are going or gone.
    draining: BTreeSet<Drainer>,
}

/// Finds the families whose rules go over another pool now.
pub(crate) fn transition_pools(
    draft: &Draft<'_>,
    balancer: &LoadBalancer,
    seats: &Assignment,
) -> TransitionPools {
    let mut ways = TransitionPools::default();
    let Backends::Nodes(nodes) = &seats.backends else { return ways };
    if balancer.sku == Sku::Basic || is_preconfigured(draft, seats.exposure) {
        return ways;
    }
    for family in Family::ALL {
        let main = names::pool(&draft.policy.cluster, family);
        let Some(main) = part::named(&balancer.pools, &main) else {
            continue;
        };
        let name = names::switch_pool(&draft.policy.cluster, family);
        let there = part::named(&balancer.pools, &name);
        let over = match kind(draft, &balancer.id) {
            PoolKind::NodeIp => {
                draft.policy.migrate_api == MigrateApi::Unused
                    && member::is_held(draft, &balancer.id, main)
            }
            PoolKind::NodeNic if !main.addresses.is_empty() => {
                member::is_joinable(draft, &balancer.id)
            }
            PoolKind::NodeNic => {
                there.is_some() && !member::has_joined(draft, &balancer.id, main, family)
            }
            PoolKind::PodIp => false,
        };
        if !over {
            continue;
        }
        let mut bridge = there.cloned().unwrap_or_else(|| Pool {
            addresses: main.addresses.clone(),
            network: main.network.clone(),
            ..pool::empty(&name)
        });
        let homes = drain::homes(draft);
        let site = (&balancer.id, balancer.sku, &homes);
        let draining = pool::hold(draft, site, &mut bridge, family, nodes);
        // Better the old kind than no backend.
        if !bridge.addresses.is_empty() {
            ways.pools.push((family, bridge));
            ways.draining.extend(draining);
        }
    }
    ways
}

/// Leads the rules of our Services over the pools of these families, and those of the other
/// families to the cluster's pools. A transition pool to which foreign rules lead stays, and holds
/// the nodes. Returns the addresses in transition pools whose nodes are going or gone.
pub(crate) fn lead(
    draft: &mut Draft<'_>,
    balancer: &mut LoadBalancer,
    seats: &Assignment,
    ways: TransitionPools,
) -> BTreeSet<Drainer> {
    let TransitionPools { pools: ways, mut draining } = ways;
    if is_preconfigured(draft, seats.exposure) {
        return draining;
    }
    for family in Family::ALL {
        let cluster = &draft.policy.cluster;
        let (main, over) = (names::pool(cluster, family), names::switch_pool(cluster, family));
        let bridge = ways.iter().find(|(of, _)| *of == family).map(|(_, pool)| pool);
        let child = |name: &str| balancer.id.child("backendAddressPools", name);
        let (from, to) = match bridge {
            Some(_) => (child(&main), child(&over)),
            None => (child(&over), child(&main)),
        };
        for rule in &mut balancer.rules {
            if rule.pool.as_ref() == Some(&from) && draft.owner_of(&rule.name).is_some() {
                rule.pool = Some(to.clone());
            }
        }
        let at = part::place(&balancer.pools, &over);
        match (bridge, at) {
            (Some(bridge), Some(at)) => balancer.pools[at] = bridge.clone(),
            (Some(bridge), None) => balancer.pools.push(bridge.clone()),
            (None, Some(at)) if !balancer.rules.iter().any(|r| r.pool.as_ref() == Some(&from)) => {
                balancer.pools.remove(at);
            }
            (None, Some(at)) => {
                if let Backends::Nodes(nodes) = &seats.backends {
                    let homes = drain::homes(draft);
                    let site = (&balancer.id, balancer.sku, &homes);
                    let left = &mut balancer.pools[at];
                    draining.extend(pool::hold(draft, site, left, family, nodes));
                }
            }
            (None, None) => {}
        }
        if bridge.is_some() {
            let finding = under_way(draft, balancer, &main, &over);
            draft.told.findings.push(finding);
        }
    }
    draining
}

/// Says that a switch is under way, and who else is touched by it.
fn under_way(draft: &Draft<'_>, balancer: &LoadBalancer, main: &str, over: &str) -> Finding {
    let id = balancer.id.child("backendAddressPools", main);
    let others = balancer.rules.iter().filter(|r| r.pool.as_ref() == Some(&id));
    let mut others: Vec<&str> = others.map(|r| &*r.name).collect();
    let foreign = balancer.foreign.iter();
    if foreign.into_iter().any(|f| f.body.to_string().to_lowercase().contains(&id.folded())) {
        others.push("an outbound or NAT rule");
    }
    let name = balancer.id.name();
    let mut message = format!(
        "during the switch of load balancer {name} to {{value}}, rules use temporary pool {over}; \
         they return when {main} is complete"
    );
    if !others.is_empty() {
        let others = others.join(", ");
        message = format!("{message}; without backends until then, because foreign: {others}");
    }
    let value = match draft.policy.pools {
        PoolKind::NodeNic => "nodeIPConfiguration",
        PoolKind::NodeIp | PoolKind::PodIp => "nodeIP",
    };
    let key = "loadBalancerBackendPoolConfigurationType";
    Finding::note("PoolKindSwitching", key, value, &message)
}
