//! The difference of the address table, as one call of `updateAddressLocations`.
//!
//! How Azure carries out one request is not documented: locations may change one by one, in any
//! order, and it may stop in between. So each state that a request can leave behind is a good one.
//! Within one location an address' services are replaced at once. An address that moves is taken
//! away from its old location first, and added to its new one by the next request.

use crate::draft::Draft;
use crate::own::pod_names;
use crate::pods::table::{DiffTracker, Edit};
use model::gateway::{LocationUpdate, LocationsUpdate, ServiceNames, UpdateAction};
use model::plan::{Action, Change};
use model::{ResourceId, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// Addresses and service names in one call. An address takes at most 80 bytes of JSON and so does
/// a name, so this is at most 3.2 MB of the 4 MB that ARM takes; with IPv4 and one Service a Pod it
/// is 1.7 MB. Fewer and larger calls: a gateway takes one after the other.
pub(crate) const ENTRIES_PER_CALL: usize = 40_000;

pub(super) fn plan(
    draft: &mut Draft<'_>,
    tracker: &DiffTracker,
    uids: &BTreeMap<Arc<str>, ServiceUid>,
) {
    let target = pod_names::locations_table(draft.policy);
    // What is in the air cannot be told from what is not there yet: the answer tells.
    if draft.world.in_flight.get(&target).is_some_and(|call| !call.addresses.is_empty()) {
        return;
    }
    let held = held(draft, &target);
    let registering = registering(draft);
    let settled = |mut edit: Edit| {
        edit.keep(&registering);
        (edit.after != edit.before).then_some(edit)
    };
    let mut call = Call::default();
    // What goes, goes first: somebody waits for it to be gone.
    for address in tracker.departing() {
        if call.is_full() {
            break;
        }
        let leaves = |e: &Edit| e.after.is_subset(&e.before);
        let edits = tracker.edits(address).into_iter().filter_map(settled);
        edits.filter(leaves).for_each(|edit| call.add(edit));
    }
    for address in tracker.difference() {
        if call.is_full() {
            break;
        }
        let edits = tracker.edits(address);
        let moves = edits.iter().any(|e| !e.before.is_empty());
        for mut edit in edits.into_iter().filter_map(settled) {
            if !edit.after.is_subset(&edit.before) && (!edit.before.is_empty() || !moves) {
                edit.after.retain(|name| edit.before.contains(name) || !held.contains(name));
                if edit.after != edit.before {
                    call.add(edit);
                }
            }
        }
    }
    if call.locations.is_empty() {
        return;
    }
    let named = call.names.iter().map(|name| match uids.get(name) {
        Some(uid) => uid.clone(),
        None => ServiceUid::new(name),
    });
    let causes = named.collect();
    let action = Action::UpdateLocations(call.update(tracker));
    let change = Change::new(target.clone(), action, causes, Vec::new());
    // Pods come and go all the time: a Service stays programmed while its addresses follow.
    draft.steps.changes.insert(target, change);
}

/// Gateway services that are being registered, changed or taken away: whether there is one to have
/// addresses the answer tells, so until then theirs stay as they are.
fn registering(draft: &Draft<'_>) -> BTreeSet<Arc<str>> {
    let call = draft.world.in_flight.get(&pod_names::services_table(draft.policy));
    call.into_iter().flat_map(|call| &call.causes).map(pod_names::of_service).collect()
}

impl Edit {
    /// Leaves these services as they are there.
    fn keep(&mut self, names: &BTreeSet<Arc<str>>) {
        for name in names {
            match self.before.contains(name) {
                true => self.after.insert(Arc::clone(name)),
                false => self.after.remove(name),
            };
        }
    }
}

/// Gateway services whose new addresses Azure has refused: they keep those they have.
fn held(draft: &Draft<'_>, target: &ResourceId) -> BTreeSet<Arc<str>> {
    let holds = draft.world.holds.iter().filter(|(_, hold)| hold.target == *target);
    holds.map(|(uid, _)| pod_names::of_service(uid)).collect()
}

/// An address and the services it is to have.
type Entry = (IpAddr, BTreeSet<Arc<str>>);

/// One call while it is put together.
#[derive(Debug, Default)]
struct Call {
    locations: BTreeMap<IpAddr, Vec<Entry>>,
    names: BTreeSet<Arc<str>>,
    entries: usize,
}

impl Call {
    fn add(&mut self, edit: Edit) {
        let Edit { location, address, before, after } = edit;
        if self.is_full() {
            return;
        }
        self.entries += 1 + after.len();
        self.names.extend(after.symmetric_difference(&before).cloned());
        self.locations.entry(location).or_default().push((address, after));
    }

    fn is_full(&self) -> bool {
        self.entries >= ENTRIES_PER_CALL
    }

    fn update(self, tracker: &DiffTracker) -> LocationsUpdate {
        let mut shared: BTreeMap<BTreeSet<Arc<str>>, ServiceNames> = BTreeMap::new();
        let mut share = |names: BTreeSet<Arc<str>>| {
            let make = |names: &BTreeSet<Arc<str>>| Arc::new(names.iter().cloned().collect());
            Arc::clone(shared.entry(names).or_insert_with_key(make))
        };
        let mut locations = Vec::with_capacity(self.locations.len());
        for (location, mut addresses) in self.locations {
            addresses.sort_by_key(|(address, _)| *address);
            let all_go = addresses.iter().all(|(_, names)| names.is_empty())
                && addresses.len() == tracker.population(location);
            let known = tracker.has_location(location);
            let addresses = if all_go {
                Vec::new()
            } else {
                addresses.into_iter().map(|(address, names)| (address, share(names))).collect()
            };
            let action = if known { UpdateAction::PartialUpdate } else { UpdateAction::FullUpdate };
            locations.push(LocationUpdate { location, action, addresses });
        }
        LocationsUpdate { action: UpdateAction::PartialUpdate, locations }
    }
}
