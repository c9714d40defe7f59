//! Where pool members are to be looked for, and what has to be read for it.

use super::{Aim, SCALE_SETS, Target, is_in, is_kept_out, set_of};
use crate::ask::findings::POOL_MEMBERS_UNREADABLE;
use crate::draft::Draft;
use model::ResourceId;
use model::azure::{MemberKind, PoolMember};
use model::policy::PoolKind;
use model::world::{Fact, Need};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Where members are to be looked for.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// Uniform scale sets.
    pub sets: BTreeSet<ResourceId>,
    /// Whether there are VMs outside of uniform scale sets.
    pub loose: bool,
    /// Whether a scale set may hold on to a load balancer that goes although no instance is in its
    /// pools and no node is there: its model is in them by itself, and Azure deletes none before
    /// it has left.
    pub models: bool,
}

impl Sources {
    /// What is read of them, and these models of scale sets.
    fn needs(&self, models: Option<Need>) -> impl Iterator<Item = Need> {
        let sets = self.sets.iter().cloned().map(Need::ScaleSetVms);
        let loose = [Need::NetworkInterfaces, Need::VirtualMachines].into_iter();
        sets.chain(models).chain(loose.filter(move |_| self.loose))
    }
}

/// Where members of these pools, and nodes that are to join them, are to be looked for.
pub(super) fn sources(draft: &Draft<'_>, targets: &[Target]) -> Sources {
    let mut sources = Sources::default();
    let mut add = |id: &ResourceId| {
        let within = id.is_in(&draft.policy.group);
        match set_of(id) {
            Some(set) if within => {
                sources.sets.insert(set);
            }
            None if within => sources.loose = true,
            _ => {}
        }
    };
    let wanted = draft.cases.values().any(|case| case.intent().is_some());
    let joins = targets.iter().any(|t| t.aim == Aim::Join);
    let nics = joins || draft.policy.pools == PoolKind::NodeNic;
    // While the last load balancer goes, its members are found through their nodes as well: the
    // list in the load balancer may be older than they are.
    if nics && (wanted || !targets.is_empty()) {
        let nodes = draft.world.kubernetes.nodes.values();
        let nodes = nodes.filter(|n| !n.membership.is_left_out() && !is_kept_out(draft, n));
        nodes.filter_map(|n| n.machine()).for_each(|id| add(&id));
    }
    targets.iter().flat_map(|t| &t.nics).for_each(&mut add);
    sources.models = nics && targets.iter().any(|target| target.aim == Aim::Leave);
    let is_member = |m: &&Arc<PoolMember>| targets.iter().any(|t| is_in(m, &t.pool));
    for model in draft.world.azure.scale_sets.each().filter(is_member) {
        match model.kind {
            MemberKind::ScaleSet => {
                sources.sets.insert(model.id.clone());
            }
            _ => sources.loose = true,
        }
    }
    sources
}

/// What of these sources has not been read yet.
pub(super) fn unread(draft: &Draft<'_>, sources: &Sources) -> BTreeSet<Need> {
    let azure = &draft.world.azure;
    let machines = azure.virtual_machines.each();
    let mut sets = machines.filter_map(|vm| vm.set.as_ref());
    let flexible = sources.loose && sets.any(|set| set.folded().contains(SCALE_SETS));
    let models = flexible || sources.models || !sources.sets.is_empty();
    let needs = sources.needs(models.then_some(Need::ScaleSets));
    needs.filter(|need| azure.is_unread(need)).collect()
}

/// Says which nodes cannot join because Azure does not let us look.
pub(super) fn say_unreadable(draft: &mut Draft<'_>, sources: &Sources) {
    let models = (!sources.sets.is_empty()).then_some(Need::ScaleSets);
    for need in sources.needs(models) {
        if let Fact::Unreadable(why) = draft.world.azure.answered(&need) {
            let key = need.to_string();
            draft.told.findings.push(POOL_MEMBERS_UNREADABLE.found(&key, &why));
        }
    }
}
