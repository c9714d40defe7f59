//! Private Link Services: one before a frontend, owned by one Service.

mod addresses;
mod body;

use crate::claim::private_link::{Held, Links, Wish};
use crate::draft::Draft;
use crate::standing::private_link::known;
use model::azure::{PrivateLinkPolicy, PrivateLinkService, Provisioning, Subnet};
use model::plan::{Action, Change, Resource};
use model::report::{Until, Wait};
use model::{ResourceId, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Private Link Services by the frontends they stand before.
pub(crate) type Linked = BTreeMap<ResourceId, ResourceId>;

/// Frontends that cannot go yet, because something stands before them.
pub(crate) fn linked(draft: &Draft<'_>) -> Linked {
    let pairs = known(draft).flat_map(|link| link.frontends.iter().map(|f| (f, &link.id)));
    pairs.map(|(frontend, link)| (frontend.clone(), link.clone())).collect()
}

/// Drafts what goes and what Services have.
pub(crate) fn plan(draft: &mut Draft<'_>, links: &Links) {
    for (link, causes) in links.leaving.values() {
        delete(draft, link, causes);
    }
    for held in &links.held {
        write(draft, held);
    }
}

/// Private endpoint connections go first: Azure keeps a Private Link Service that has any.
fn delete(draft: &mut Draft<'_>, link: &Arc<PrivateLinkService>, causes: &BTreeSet<ServiceUid>) {
    let mut waits = leaving(draft, &link.id);
    for connection in &link.connections {
        waits.insert(Wait::Resource { id: connection.id.clone(), until: Until::Gone });
        let (id, action) = (connection.id.clone(), Action::DeleteChild);
        draft.change(Change::new(id, action, causes.clone(), Vec::new()));
    }
    let before = Resource::PrivateLinkService(Arc::clone(link));
    draft.change(Change::delete(before, causes.clone(), waits.into_iter().collect()));
}

/// Connections of a Private Link Service that are being deleted: while Azure is at it, it shows
/// them no longer, and takes no other write of the Private Link Service.
fn leaving(draft: &Draft<'_>, link: &ResourceId) -> BTreeSet<Wait> {
    // A write without a cause waits for another try: Azure is not at it.
    let sent = draft.world.in_flight.iter().filter(|(_, write)| !write.causes.is_empty());
    let parts = sent.filter(|(id, _)| id.parent().is_some_and(|parent| parent == *link));
    parts.map(|(id, _)| Wait::Resource { id: id.clone(), until: Until::Gone }).collect()
}

/// Drafts the body of one.
fn write(draft: &mut Draft<'_>, held: &Held) {
    let mut waits = Vec::new();
    if let Some(subnet) = held.wish.as_ref().and_then(|wish| wish.opens.as_ref()) {
        open(draft, subnet, &held.causes);
        waits.push(Wait::Resource { id: subnet.id.clone(), until: Until::Written });
    }
    let there = held.there.as_deref();
    let mut after = there.cloned().unwrap_or_else(|| body::fresh(draft, held));
    body::fill(draft, &mut after, held);
    if there.is_none_or(|t| *t != after || t.provisioning == Provisioning::Failed) {
        waits.extend(leaving(draft, &after.id));
        draft.own.sign(&after.id, &draft.policy.private_link_group, &mut after.tags);
        let before = held.there.clone().map(Resource::PrivateLinkService);
        let after = Resource::PrivateLinkService(Arc::new(after));
        draft.change(Change::put(before, after, held.causes.clone(), waits));
    }
}

/// Lets Private Link Services use a subnet. Several may ask for it at once.
fn open(draft: &mut Draft<'_>, subnet: &Arc<Subnet>, causes: &BTreeSet<ServiceUid>) {
    let mut causes = causes.clone();
    if let Some(other) = draft.steps.changes.get(&subnet.id) {
        causes.extend(other.causes.iter().cloned());
    }
    let mut after = Subnet::clone(subnet);
    after.private_link = PrivateLinkPolicy::Disabled;
    after.provisioning = Provisioning::Succeeded;
    // The codec writes the field from what is known above; the old word would be a difference.
    let mut rest = after.rest.unpack();
    rest.properties.shift_remove("privateLinkServiceNetworkPolicies");
    after.rest = rest.into();
    let before = Some(Resource::Subnet(Arc::clone(subnet)));
    let after = Resource::Subnet(Arc::new(after));
    draft.change(Change::put(before, after, causes, Vec::new()));
}
