//! What the cluster's own controllers would do after a change: empty ending namespaces, remove
//! what orphans leave, fill EndpointSlices. It all happens inside the request that caused it, so
//! that a run can be repeated.

use super::{Call, Key, Run, Store};
use crate::json::{child, items, text};
use crate::kinds::{KINDS, Kind, by_plural};
use serde_json::json;

const CONTROLLER: &str = "kube-controller-manager";

impl Store {
    pub(super) fn settle(&mut self, now: u64) {
        let call = Call { manager: CONTROLLER.to_string(), run: Run::Real, now };
        loop {
            if let Some(uid) = self.orphaned.pop_first() {
                self.collect(&uid, &call);
            } else if let Some(namespace) = self.ending.pop_first() {
                self.empty(&namespace, &call);
            } else if !self.fill_slices(&call) {
                return;
            }
        }
    }

    /// Removes the objects whose last owner went.
    fn collect(&mut self, uid: &str, call: &Call) {
        let owned: Vec<(&'static str, Key)> =
            self.owned.get(uid).into_iter().flatten().cloned().collect();
        for (plural, key) in owned {
            let kind = by_plural(plural).expect("indexed under a name of the table");
            let Some(object) = self.shelf(kind).objects.get(&key).cloned() else { continue };
            let owners = items(&object, "/metadata/ownerReferences");
            if owners.len() <= 1 {
                self.remove(kind, key, call);
                continue;
            }
            let left: Vec<_> = owners.iter().filter(|one| text(one, "/uid") != uid).collect();
            let left = json!(left);
            let mut next = object.as_ref().clone();
            next["metadata"]["ownerReferences"] = left;
            self.commit(kind, key, Some(next), None);
        }
    }

    /// Takes an ending namespace one step on.
    fn empty(&mut self, namespace: &str, call: &Call) {
        let namespaces = by_plural("namespaces").expect("the table has namespaces");
        let place = (String::new(), namespace.to_string());
        if !self.is_ending(namespace) {
            return;
        }
        let mut left = 0;
        for kind in stored_kinds().filter(|kind| kind.is_namespaced()) {
            let keys: Vec<Key> =
                self.shelf(kind).within(Some(namespace)).map(|(key, _)| key.clone()).collect();
            for key in keys {
                let (_, gone) = self.remove(kind, key, call);
                left += usize::from(!gone);
            }
        }
        // Removals above asked for another look at this namespace; it has just been had.
        self.ending.remove(namespace);
        if left > 0 {
            return;
        }
        let Some(live) = self.shelf(namespaces).objects.get(&place).cloned() else { return };
        let mut next = live.as_ref().clone();
        child(&mut next, "spec").shift_remove("finalizers");
        match items(&next, "/metadata/finalizers").is_empty() {
            true => self.commit(namespaces, place, None, Some(next)),
            false if next == *live => live,
            false => self.commit(namespaces, place, Some(next), None),
        };
    }
}

/// The rows of the table that are stored (the second face of Events is not).
fn stored_kinds() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().filter(|kind| by_plural(kind.plural) == Some(*kind))
}
