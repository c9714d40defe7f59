//! Where pool members are to be looked for, and what has to be read for it.

use super::{Aim, SCALE_SETS, Target, is_in, is_kept_out, machine, models, set_of};
use crate::draft::Draft;
use model::ResourceId;
use model::azure::MemberKind;
use model::policy::PoolKind;
use model::report::{Finding, Severity};
use model::world::{Fact, Need};
use std::collections::{BTreeMap, BTreeSet};
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
        nodes.filter_map(|n| machine(n)).for_each(|id| add(&id));
    }
    targets.iter().flat_map(|t| &t.nics).for_each(&mut add);
    sources.models = nics && targets.iter().any(|target| target.aim == Aim::Leave);
    for model in models(draft).filter(|m| targets.iter().any(|t| is_in(m, &t.pool))) {
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
    let mut needs = BTreeSet::new();
    for set in &sources.sets {
        if matches!(azure.scale_set_vms.get(set), None | Some(Fact::Unknown)) {
            needs.insert(Need::ScaleSetVms(set.clone()));
        }
    }
    if sources.loose && azure.network_interfaces == Fact::Unknown {
        needs.insert(Need::NetworkInterfaces);
    }
    if sources.loose && azure.virtual_machines == Fact::Unknown {
        needs.insert(Need::VirtualMachines);
    }
    let machines = azure.virtual_machines.known().into_iter().flat_map(BTreeMap::values);
    let mut sets = machines.filter_map(|vm| vm.set.as_ref());
    let flexible = sources.loose && sets.any(|set| set.folded().contains(SCALE_SETS));
    if (flexible || sources.models || !sources.sets.is_empty()) && azure.scale_sets == Fact::Unknown
    {
        needs.insert(Need::ScaleSets);
    }
    needs
}

/// Says which nodes cannot join because Azure does not let us look.
pub(super) fn say_unreadable(draft: &mut Draft<'_>, sources: &Sources) {
    let azure = &draft.world.azure;
    let mut found: Vec<(Need, Arc<str>)> = Vec::new();
    let mut see = |need: Need, why: Option<Arc<str>>| found.extend(why.map(|why| (need, why)));
    for set in &sources.sets {
        see(Need::ScaleSetVms(set.clone()), azure.scale_set_vms.get(set).and_then(reason));
    }
    if !sources.sets.is_empty() {
        see(Need::ScaleSets, reason(&azure.scale_sets));
    }
    if sources.loose {
        see(Need::NetworkInterfaces, reason(&azure.network_interfaces));
        see(Need::VirtualMachines, reason(&azure.virtual_machines));
    }
    draft.findings.extend(found.into_iter().map(|(need, why)| Finding {
        severity: Severity::Note,
        rule: "PoolMembersUnreadable",
        key: Arc::from(need.to_string()),
        value: why,
        message: Arc::from(
            "cannot be read, so nodes that join pools through them cannot join ({value}); the \
             controller's identity must have the right to read them",
        ),
    }));
}

fn reason<T>(fact: &Fact<T>) -> Option<Arc<str>> {
    match fact {
        Fact::Unreadable(why) => Some(Arc::clone(why)),
        Fact::Unknown | Fact::Known(_) => None,
    }
}
