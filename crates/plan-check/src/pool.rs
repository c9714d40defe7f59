//! Nobody loses their backends.

use super::{Breach, Lint, is_ready};
use model::azure::{LoadBalancer, Pool};
use model::kubernetes::{Membership, NodeRole};
use model::plan::{Action, Change, Resource};
use model::policy::{Layout, PoolKind};
use model::{Family, ResourceId};
use std::collections::BTreeSet;
use std::net::IpAddr;

impl Lint<'_> {
    /// A pool that had addresses keeps some while rules lead to it and there are nodes for it.
    pub(super) fn pools(&mut self, change: &Change) {
        let Action::Put { before: Some(before), after } = &change.action else { return };
        let (Resource::LoadBalancer(before), Resource::LoadBalancer(after)) = (before, after)
        else {
            return;
        };
        // Azure takes no NIC into a pool of addresses: on the way there it is empty for a moment.
        if self.policy.pools != PoolKind::NodeIp || !is_ready(change) {
            return;
        }
        for pool in &before.pools {
            let there = after.pools.iter().find(|p| p.name.eq_ignore_ascii_case(&pool.name));
            let emptied =
                !pool.addresses.is_empty() && there.is_some_and(|pool| pool.addresses.is_empty());
            // Where the kind of members is switched, rules lead over another pool meanwhile.
            let id = after.id.child("backendAddressPools", &pool.name);
            let used = after.rules.iter().any(|rule| rule.pool.as_ref() == Some(&id));
            if emptied && used && self.is_missed(pool, &before.id) {
                self.say(Breach::PoolEmptied, &change.target, format!("pool {}", pool.name));
            }
        }
    }

    /// Whether a node that may take traffic was in the pool, and is in no other afterwards.
    fn is_missed(&self, pool: &Pool, balancer: &ResourceId) -> bool {
        let nodes =
            self.world.kubernetes.nodes.values().filter(|node| {
                node.role == NodeRole::Worker && node.membership == Membership::Member
            });
        let eligible: BTreeSet<IpAddr> =
            nodes.flat_map(|n| Family::ALL.into_iter().filter_map(|f| n.address(f))).collect();
        let single = self.policy.layout == Layout::Single;
        pool.addresses.iter().map(|a| a.address).any(|address| {
            eligible.contains(&address) && (single || !self.is_elsewhere(address, balancer))
        })
    }

    fn is_elsewhere(&self, address: IpAddr, balancer: &ResourceId) -> bool {
        let holds = |b: &LoadBalancer| {
            b.pools.iter().any(|p| p.addresses.iter().any(|a| a.address == address))
        };
        let planned = self.plan.changes.iter().any(|change| match &change.action {
            Action::Put { after: Resource::LoadBalancer(after), .. } => holds(after),
            _ => false,
        });
        let there = self.world.azure.balancers.known().into_iter().flatten();
        planned || there.filter(|(id, _)| *id != balancer).any(|(_, b)| holds(b))
    }
}
