//! Texts that many objects share are held once.

use crate::fact::Labels;
use model::{NodeName, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Hands out one copy of each text and of each set of labels.
///
/// # Assumptions
/// Somebody calls [`sweep`](Self::sweep) now and then, or texts nobody uses any more stay.
#[derive(Debug, Default)]
pub struct Interner {
    texts: BTreeSet<Arc<str>>,
    maps: BTreeSet<Labels>,
    nodes: BTreeSet<NodeName>,
    uids: BTreeSet<ServiceUid>,
}

impl Interner {
    /// The one copy of a text.
    pub fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(held) = self.texts.get(text) {
            return Arc::clone(held);
        }
        let held: Arc<str> = Arc::from(text);
        self.texts.insert(Arc::clone(&held));
        held
    }

    /// The one copy of a node's name.
    pub fn node(&mut self, name: &str) -> NodeName {
        if let Some(held) = self.nodes.get(name) {
            return held.clone();
        }
        let held = NodeName::new(name);
        self.nodes.insert(held.clone());
        held
    }

    /// The one copy of a Service's UID.
    pub fn uid(&mut self, uid: &str) -> ServiceUid {
        if let Some(held) = self.uids.get(uid) {
            return held.clone();
        }
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
        let held = Arc::new(shared);
        self.maps.insert(Arc::clone(&held));
        held
    }

    /// Lets go of texts and labels that nobody else holds. Names of nodes and UIDs of Services
    /// that are gone are kept: they are few.
    pub fn sweep(&mut self) {
        self.maps.retain(|map| Arc::strong_count(map) > 1);
        self.texts.retain(|text| Arc::strong_count(text) > 1);
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
}
