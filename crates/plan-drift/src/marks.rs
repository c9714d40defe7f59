//! Tags by which we know what is ours. Planning takes a public IP without them for its user's own,
//! and would never write them again; who remembers that it had them knows better.

use super::Confirmed;
use model::azure::Tags;
use model::plan::{Action, Change, Resource};
use model::{Plan, ResourceId, ServiceUid, World};
use plan::own::tags::{self, is_name_of};
use std::collections::BTreeSet;
use std::sync::Arc;

fn tags_of(resource: &Resource) -> Option<&Tags> {
    match resource {
        Resource::PublicIp(r) => r.tags.as_ref(),
        Resource::PrivateLinkService(r) => r.tags.as_ref(),
        _ => None,
    }
}

/// Marks that a resource had and has not any more.
fn lost<'a>(ours: &'a Resource, found: &Resource) -> Vec<(&'a Arc<str>, &'a Arc<str>)> {
    tags::lost(tags_of(ours), tags_of(found))
}

/// Resources that have lost marks since we left them.
#[must_use]
pub fn unmarked(confirmed: &Confirmed, world: &World) -> BTreeSet<ResourceId> {
    let marked = confirmed.resources.iter().filter(|(_, ours)| tags_of(ours).is_some());
    let unmarked = marked.filter(|(id, ours)| {
        world.azure.find(id).is_some_and(|found| !lost(ours, &found).is_empty())
    });
    unmarked.map(|(id, _)| id.clone()).collect()
}

/// Has a plan write the marks that these resources have lost.
pub fn restore_marks(
    confirmed: &Confirmed,
    world: &World,
    ids: &BTreeSet<ResourceId>,
    plan: &mut Plan,
) {
    for id in ids.iter().filter(|id| !world.in_flight.contains_key(*id)) {
        let Some(ours) = confirmed.resources.get(id) else { continue };
        let Some(found) = world.azure.find(id) else { continue };
        let lost = lost(ours, &found);
        let change = plan.changes.iter_mut().find(|change| change.target == *id);
        match change {
            _ if lost.is_empty() => {}
            Some(change) => {
                // What goes needs no mark.
                if let Action::Put { after, .. } = &mut Arc::make_mut(change).action {
                    mark(after, &lost);
                }
            }
            None => {
                let mut after = found.clone();
                mark(&mut after, &lost);
                let guard = found.etag().cloned();
                let put = Change::put(Some(found), after, causes(world, &lost), Vec::new());
                let change = Change { target: id.clone(), guard, ..put };
                let at = plan.changes.partition_point(|known| known.target < change.target);
                plan.changes.insert(at, Arc::new(change));
            }
        }
    }
}

fn mark(resource: &mut Resource, lost: &[(&Arc<str>, &Arc<str>)]) {
    let tags = match resource {
        Resource::PublicIp(r) => &mut Arc::make_mut(r).tags,
        Resource::PrivateLinkService(r) => &mut Arc::make_mut(r).tags,
        _ => return,
    };
    let tags = tags.get_or_insert_default();
    tags.extend(lost.iter().map(|(key, value)| (Arc::clone(key), Arc::clone(value))));
}

/// Services that the marks name.
fn causes(world: &World, lost: &[(&Arc<str>, &Arc<str>)]) -> BTreeSet<ServiceUid> {
    let names = || lost.iter().flat_map(|(_, value)| value.split(',').map(str::trim));
    let services = world.kubernetes.services.values();
    let named = services.filter(|s| names().any(|named| is_name_of(named, &s.name)));
    named.map(|s| s.uid.clone()).collect()
}
