//! Nobody loses their backends.

use super::{Breach, Lint};
use model::azure::{LoadBalancer, Pool, Rule};
use model::kubernetes::{Deletion, Membership, Node, NodeRole};
use model::plan::{Action, Change, Resource};
use model::policy::{Layout, PoolKind};
use model::{Family, NodeName, ResourceId, ServiceName};
use plan::own::Base;
use plan::own::name::local_pool;
use std::collections::BTreeSet;
use std::net::IpAddr;

impl Lint<'_> {
    /// A pool that had addresses keeps some while rules lead to it and there are nodes for it. The
    /// rule of a Service that is being deleted stays until its address is closed, and leads nowhere
    /// that anyone is promised.
    pub(super) fn pools(&mut self, change: &Change) {
        let Action::Put { before: Some(before), after } = &change.action else { return };
        let (Resource::LoadBalancer(before), Resource::LoadBalancer(after)) = (before, after)
        else {
            return;
        };
        // Azure takes no NIC into a pool of addresses: on the way there it is empty for a moment.
        if self.policy.pools != PoolKind::NodeIp || !change.is_ready() {
            return;
        }
        for pool in &before.pools {
            let there = after.pools.iter().find(|p| p.name.eq_ignore_ascii_case(&pool.name));
            let emptied =
                !pool.addresses.is_empty() && there.is_some_and(|pool| pool.addresses.is_empty());
            // Where the kind of members is switched, rules lead over another pool meanwhile.
            let id = after.id.child("backendAddressPools", &pool.name);
            let mut leading = after.rules.iter().filter(|rule| rule.pool.as_ref() == Some(&id));
            let goes = |rule: &Rule| {
                let service = Base::of(&rule.name).and_then(|base| self.services.get(&base));
                service.is_some_and(|service| service.deletion == Deletion::Requested)
            };
            let used = leading.any(|rule| !goes(rule));
            if emptied && used && self.is_missed(pool, &before.id) {
                self.say(Breach::PoolEmptied, &change.target, format!("pool {}", pool.name));
            }
        }
    }

    /// Whether a node that may take traffic was in the pool, and is in no other afterwards. A pool
    /// that a Service has to itself is for nodes with endpoints of it, once slices list any. A node
    /// of another configuration's set is here only as long as that has no load balancer; Azure
    /// takes it there only once it has left.
    fn is_missed(&self, pool: &Pool, balancer: &ResourceId) -> bool {
        let hosts = self.hosts(pool);
        let nodes = self.world.kubernetes.nodes.values().filter(|node| {
            node.role == NodeRole::Worker
                && node.membership == Membership::Member
                && hosts.as_ref().is_none_or(|hosts| hosts.contains(&node.name))
                && !self.is_of_other(node, balancer)
        });
        let eligible: BTreeSet<IpAddr> =
            nodes.flat_map(|n| Family::ALL.into_iter().filter_map(|f| n.address(f))).collect();
        let single = self.policy.layout == Layout::Single;
        pool.addresses.iter().map(|a| a.address).any(|address| {
            eligible.contains(&address) && (single || !self.is_elsewhere(address, balancer))
        })
    }

    /// Whether the set of a node is that of another configuration than a load balancer's.
    fn is_of_other(&self, node: &Node, balancer: &ResourceId) -> bool {
        let Layout::Several(configs) = &self.policy.layout else { return false };
        let Some(machine) = node.machine() else { return false };
        let folded = machine.folded();
        let set =
            folded.split("/virtualmachinescalesets/").nth(1).and_then(|s| s.split('/').next());
        let name = balancer.name().to_lowercase();
        let name = name.strip_suffix("-internal").unwrap_or(&name);
        configs.iter().any(|config| {
            set.is_some_and(|set| config.primary_set.eq_ignore_ascii_case(set))
                && !config.name.eq_ignore_ascii_case(name)
        })
    }

    /// Nodes with endpoints of the Service whose own pool it is, where slices say so.
    fn hosts(&self, pool: &Pool) -> Option<BTreeSet<&NodeName>> {
        let named = |name: &ServiceName| {
            Family::ALL.into_iter().any(|f| pool.name.eq_ignore_ascii_case(&local_pool(name, f)))
        };
        let service = self.services.values().find(|service| named(&service.name))?;
        let slices = self.world.kubernetes.slices.values();
        let mut slices = slices.filter(|slice| slice.is_of(service)).peekable();
        slices.peek()?;
        Some(slices.flat_map(|s| &s.endpoints).filter_map(|e| e.node.as_ref()).collect())
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
