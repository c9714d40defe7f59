//! How full each load balancer is, and where each Service already is.

use crate::ask::Intent;
use crate::draft::Draft;
use model::{ResourceId, ServiceUid};
use std::collections::BTreeMap;

/// Rules by load balancer, and load balancers by Service.
pub(super) struct Capacity {
    rules: BTreeMap<ResourceId, usize>,
    homes: BTreeMap<ServiceUid, Vec<ResourceId>>,
}

impl Capacity {
    /// Counts what is in Azure, and what is on its way there.
    pub(super) fn of(draft: &Draft<'_>) -> Self {
        let mut capacity = Self { rules: BTreeMap::new(), homes: BTreeMap::new() };
        let shares: Vec<_> = draft.views().map(|view| (view, view.shares())).collect();
        // A Service's own frontend says more than a rule on another's.
        for (balancer, shares) in &shares {
            capacity.rules.insert(balancer.id.clone(), balancer.rules.len());
            let own = shares.iter().filter(|share| share.frontends > 0);
            capacity.settle(draft, &balancer.id, own.map(|share| share.base));
        }
        for (balancer, shares) in &shares {
            let led = shares.iter().filter(|share| share.rules > 0);
            capacity.settle(draft, &balancer.id, led.map(|share| share.base));
        }
        // A write of its public IP says nothing about where it is to be.
        let is_balancer = |id: &ResourceId| *id == draft.policy.balancer_id(id.name());
        for (id, write) in draft.world.in_flight.iter().filter(|(id, _)| is_balancer(id)) {
            for uid in &write.causes {
                if capacity.add_home(uid, id)
                    && let Some(intent) = draft.cases.get(uid).and_then(|case| case.intent())
                {
                    capacity.count(id, intent);
                }
            }
        }
        capacity
    }

    fn settle(&mut self, draft: &Draft<'_>, id: &ResourceId, bases: impl Iterator<Item = u128>) {
        for uid in bases.filter_map(|base| draft.owner_of_base(base)) {
            self.add_home(uid, id);
        }
    }

    /// Whether it was not known to be there yet.
    fn add_home(&mut self, uid: &ServiceUid, id: &ResourceId) -> bool {
        let homes = self.homes.entry(uid.clone()).or_default();
        let new = !homes.contains(id);
        if new {
            homes.push(id.clone());
        }
        new
    }

    fn count(&mut self, id: &ResourceId, intent: &Intent) {
        *self.rules.entry(id.clone()).or_default() += intent.rules.len() * intent.families.len();
    }

    /// The load balancers that a Service is on, or is being written to.
    pub(super) fn homes(&self, uid: &ServiceUid) -> &[ResourceId] {
        self.homes.get(uid).map_or(&[], Vec::as_slice)
    }

    /// Rules of a load balancer; `None` where there is none and no Service was placed on it.
    pub(super) fn rules(&self, id: &ResourceId) -> Option<usize> {
        self.rules.get(id).copied()
    }

    /// Counts a Service that was placed.
    pub(super) fn seat(&mut self, id: &ResourceId, intent: &Intent) {
        if self.homes(&intent.uid).contains(id) {
            self.rules.entry(id.clone()).or_default();
        } else {
            self.count(id, intent);
        }
    }
}
