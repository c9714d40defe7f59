//! Texts that many objects share are held once.

use crate::fact::Labels;
use model::{NodeName, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Bytes that are taken in before the first sweep.
const FIRST_SWEEP: usize = 1 << 20;
/// Bytes that an entry takes beside its text, about.
const ENTRY: usize = 64;

/// Hands out one copy of each text and of each set of labels.
///
/// # Guarantees
/// What no object uses any more takes at most as many bytes as the rest, or 1 MiB: each
/// text may be new, and as large as the API server lets an object be, so that bytes are counted and
/// not objects.
#[derive(Debug, Default)]
pub struct Interner {
    texts: BTreeSet<Arc<str>>,
    maps: BTreeSet<Labels>,
    nodes: BTreeSet<NodeName>,
    uids: BTreeSet<ServiceUid>,
    /// Bytes taken in since the last sweep, about.
    fresh: usize,
    /// Bytes that the last sweep left, about.
    kept: usize,
}

impl Interner {
    /// The one copy of a text.
    pub fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(held) = self.texts.get(text) {
            return Arc::clone(held);
        }
        self.make_room(text.len());
        let held: Arc<str> = Arc::from(text);
        self.texts.insert(Arc::clone(&held));
        held
    }

    /// The one copy of a node's name.
    pub fn node(&mut self, name: &str) -> NodeName {
        if let Some(held) = self.nodes.get(name) {
            return held.clone();
        }
        self.make_room(name.len());
        let held = NodeName::new(name);
        self.nodes.insert(held.clone());
        held
    }

    /// The one copy of a Service's UID.
    pub fn uid(&mut self, uid: &str) -> ServiceUid {
        if let Some(held) = self.uids.get(uid) {
            return held.clone();
        }
        self.make_room(uid.len());
        let held = ServiceUid::new(uid);
        self.uids.insert(held.clone());
        held
    }

    /// The one copy of a set of labels.
    pub fn labels<'a>(
        &mut self,
        labels: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Labels {
        let shared: BTreeMap<_, _> =
            labels.into_iter().map(|(k, v)| (self.text(k), self.text(v))).collect();
        if let Some(held) = self.maps.get(&shared) {
            return Arc::clone(held);
        }
        self.make_room(shared.len() * ENTRY);
        let held = Arc::new(shared);
        self.maps.insert(Arc::clone(&held));
        held
    }

    /// An entry of so many bytes is about to be added.
    fn make_room(&mut self, bytes: usize) {
        self.fresh += ENTRY + bytes;
        if self.fresh > self.kept.max(FIRST_SWEEP) {
            self.sweep();
        }
    }

    /// Lets go of what no object uses.
    pub fn sweep(&mut self) {
        self.maps.retain(|map| Arc::strong_count(map) > 1);
        self.texts.retain(|text| Arc::strong_count(text) > 1);
        self.nodes.retain(NodeName::is_shared);
        self.uids.retain(ServiceUid::is_shared);
        self.fresh = 0;
        let maps = self.maps.iter().map(|map| map.len() * ENTRY);
        let texts = self.texts.iter().map(|text| text.len());
        let nodes = self.nodes.iter().map(|name| name.as_str().len());
        let uids = self.uids.iter().map(|uid| uid.as_str().len());
        let all = maps.chain(texts).chain(nodes).chain(uids);
        self.kept = all.map(|bytes| ENTRY + bytes).sum();
    }

    /// How many texts are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.maps.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_labels_are_one_and_go_with_their_last_user() {
        let mut interner = Interner::default();
        let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        let one = interner.labels(&labels);
        let two = interner.labels(&labels);
        assert!(Arc::ptr_eq(&one, &two));
        interner.sweep();
        assert_eq!(interner.len(), 2);
        drop((one, two));
        interner.sweep();
        assert!(interner.is_empty());
    }

    /// A tenant writes another large annotation with each edit, and names nodes and Services that
    /// there are not in its EndpointSlices.
    #[test]
    fn what_no_object_uses_never_takes_more_than_the_rest() {
        let mut interner = Interner::default();
        let used: Vec<Arc<str>> = (0..40).map(|n| interner.text(&large("used", n))).collect();
        for n in 0..400 {
            interner.labels(&BTreeMap::from([("a".to_owned(), large("label", n))]));
            interner.node(&large("node", n));
            interner.uid(&large("uid", n));
            let names = interner.nodes.len() + interner.uids.len();
            let all = interner.len() + interner.maps.len() + names;
            assert!(all <= 3 * used.len(), "{all} entries after {n} objects");
        }
        assert!(used.iter().all(|text| interner.texts.contains(text)));
    }

    /// A text of a twentieth of what is taken in before the first sweep.
    fn large(kind: &str, number: u32) -> String {
        format!("{kind}-{number}-{}", "x".repeat(FIRST_SWEEP / 20))
    }
}
