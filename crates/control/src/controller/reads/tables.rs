//! Reads of the Service Gateway's tables take the place of what is held, as far as they know it.

use crate::controller::Controller;
use crate::lanes::tables::Touched;
use crate::reads::LIST_LAG_MS;
use crate::reads::read::{Coming, LeftOut};
use crate::reads::tables::{keep, lacking};
use crate::term::Inheritance;
use model::plan::Action;
use model::world::{Fact, Need};
use model::{Group, ResourceId, ServiceUid};
use observe::azure::Gathering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Controller {
    /// After a write that may or may not have been carried out nobody knows the tables: nothing
    /// is planned on them until they have been read. A read that began before may show them without
    /// it: it does not count.
    pub(crate) fn forget_tables(&mut self) {
        self.world.azure.gateway_services = Fact::Unknown;
        self.world.azure.gateway_locations = Fact::Unknown;
        self.read_anew(Need::GatewayServices);
        self.read_anew(Need::GatewayLocations);
    }

    /// Whether a table that nobody knows is being written: what a read brings now may be over a
    /// moment later. It is read when the write has ended.
    pub(crate) fn is_in_flux(&self, need: &Need) -> bool {
        let azure = &self.world.azure;
        let works = self.lanes.all.values().filter_map(|lane| lane.work.as_ref());
        let mut actions = works.map(|work| &work.change.action);
        match need {
            Need::GatewayServices => {
                azure.gateway_services.known().is_none()
                    && actions.any(|action| matches!(action, Action::UpdateServices(_)))
            }
            Need::GatewayLocations => {
                azure.gateway_locations.known().is_none()
                    && actions.any(|action| matches!(action, Action::UpdateLocations(_)))
            }
            _ => false,
        }
    }

    /// Stores a table that was asked for and came at these times; entries that we have written
    /// shortly before that or since, or are writing, stay as we know them. What its pages may have
    /// left out, and what could not be read; nothing when it has to be read again.
    pub(crate) fn store_table(
        &mut self,
        need: &Need,
        gathering: Gathering,
        times: (u64, u64),
        coming: Coming,
    ) -> Option<(LeftOut, Vec<String>)> {
        let (sent_ms, now_ms) = times;
        let from_ms = sent_ms.saturating_sub(LIST_LAG_MS);
        let mut busy = std::mem::take(&mut self.lanes.touched);
        for work in self.lanes.all.values().filter_map(|lane| lane.work.as_ref()) {
            busy.note(&work.change.action, u64::MAX);
        }
        let azure = &mut self.world.azure;
        let (known, late) = match need {
            Need::GatewayServices => {
                (azure.gateway_services.known().is_some(), busy.services.values().max())
            }
            _ => (azure.gateway_locations.known().is_some(), busy.locations.values().max()),
        };
        if !known && late.is_some_and(|at| *at > sent_ms) {
            self.settle(busy);
            return None;
        }
        let services = azure.gateway_services.known().cloned();
        let locations = azure.gateway_locations.known().map(Arc::clone);
        let read = gathering.finish(azure, need);
        if *need == Need::GatewayServices && self.term.inheritance == Inheritance::Open {
            self.inherit_registered(now_ms);
        }
        let azure = &mut self.world.azure;
        let before = match &coming {
            Coming::Whole => None,
            Coming::Pages(before) => Some(before),
        };
        let mut left_out = LeftOut::default();
        if *need == Need::GatewayServices {
            if let (Some(old), Some(new)) = (services, azure.gateway_services.known_mut()) {
                let before = before.map(|before| &before.services);
                left_out.services = lacking(&old, new, before, &mut busy.services, from_ms);
                keep(&old, new, &busy.services, from_ms);
            }
        } else if let (Some(old), Some(new)) = (locations, azure.gateway_locations.known_mut()) {
            let before = before.map(|before| &before.locations);
            left_out.locations = lacking(&old, new, before, &mut busy.locations, from_ms);
            if busy.locations.values().any(|at| *at >= from_ms) {
                keep(&old, Arc::make_mut(new), &busy.locations, from_ms);
            }
        }
        busy.forget(need, from_ms);
        self.settle(busy);
        Some((left_out, read.problems.iter().map(ToString::to_string).collect()))
    }

    /// What was registered before we came was another process's.
    fn inherit_registered(&mut self, now_ms: u64) {
        self.term.inheritance = Inheritance::Taken;
        let known = self.world.kubernetes.services.keys();
        let known: BTreeMap<String, &ServiceUid> =
            known.map(|uid| (uid.as_str().to_lowercase(), uid)).collect();
        let services = self.world.azure.gateway_services.known().into_iter().flatten();
        let uid = |name: &str| known.get(name).map(|uid| ServiceUid::clone(uid));
        let names: Vec<ServiceUid> =
            services.map(|(name, _)| uid(name).unwrap_or_else(|| ServiceUid::new(name))).collect();
        names.iter().for_each(|name| self.inherit(name, now_ms));
    }

    /// Puts the notes back without those of writes under way.
    fn settle(&mut self, mut busy: Touched) {
        busy.services.retain(|_, at| *at != u64::MAX);
        busy.locations.retain(|_, at| *at != u64::MAX);
        self.lanes.touched = busy;
    }

    /// A write was refused: the tables are read again, and what they refer to.
    pub(crate) fn doubt_tables(&mut self) {
        let group = Group::new(self.policy.group.as_str());
        let needs = BTreeSet::from([
            Need::GatewayServices,
            Need::GatewayLocations,
            Need::Balancers,
            Need::NatGateways,
            Need::PublicIps(group),
        ]);
        for need in needs {
            self.read_now(need);
        }
    }

    /// Whether a resource is one of the tables or stands behind one.
    pub(crate) fn is_behind_gateway(&self, id: &ResourceId) -> bool {
        let gateway = self.policy.gateway_id();
        let id = id.folded();
        let below = id.strip_prefix(&gateway.folded());
        below.is_some_and(|rest| rest.starts_with('/')) || id.contains("/natgateways/")
    }
}

#[cfg(test)]
mod tests;
