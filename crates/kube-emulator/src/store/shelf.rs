//! The objects of one kind and their recent history.

use crate::json::items;
use crate::status::ApiError;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Namespace (empty for cluster kinds) and name.
pub(crate) type Key = (String, String);

/// One change. `before` is missing for a creation, `after` for a removal.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) key: Key,
    pub(crate) before: Option<Arc<Value>>,
    pub(crate) after: Option<Arc<Value>>,
    /// The object as the change shows it: for a removal the last state at the new revision.
    pub(crate) shown: Arc<Value>,
}

/// A change counts one, and a slice one more for every ten endpoints: each change of a pod stores
/// its whole slice again, and a history of those must not fill the memory.
fn weight(change: &Change) -> usize {
    1 + items(&change.shown, "/endpoints").len() / 10
}

/// Objects and history.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shelf {
    pub(crate) objects: BTreeMap<Key, Arc<Value>>,
    history: VecDeque<Change>,
    /// What the history weighs; see [`weight`].
    weight: usize,
    /// Changes up to this revision are forgotten.
    floor: u64,
}

impl Shelf {
    pub(crate) fn record(&mut self, change: Change, limit: usize) {
        match &change.after {
            Some(object) => self.objects.insert(change.key.clone(), Arc::clone(object)),
            None => self.objects.remove(&change.key),
        };
        self.weight += weight(&change);
        self.history.push_back(change);
        while self.weight > limit && self.history.len() > 1 {
            if let Some(oldest) = self.history.pop_front() {
                self.weight -= weight(&oldest);
                self.floor = oldest.revision;
            }
        }
    }

    /// Forgets all history.
    pub(crate) fn forget(&mut self, revision: u64) {
        self.history.clear();
        self.weight = 0;
        self.floor = revision;
    }

    /// The changes after a revision, or why they are not known any more.
    pub(crate) fn since(
        &self,
        revision: u64,
    ) -> Result<impl DoubleEndedIterator<Item = &Change>, ApiError> {
        if revision < self.floor {
            let message = format!("too old resource version: {revision} ({})", self.floor);
            return Err(ApiError::expired(message));
        }
        let start = self.history.partition_point(|change| change.revision <= revision);
        Ok(self.history.range(start..))
    }

    /// Objects of a namespace, or all.
    pub(crate) fn within<'a>(
        &'a self,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
        let from = (namespace.unwrap_or("").to_string(), String::new());
        self.objects
            .range(from..)
            .take_while(move |((place, _), _)| namespace.is_none_or(|wanted| wanted == place))
    }

    /// The objects as they were at a revision, or why that is not known any more.
    pub(crate) fn at_revision(&self, revision: u64) -> Result<BTreeMap<Key, Arc<Value>>, ApiError> {
        let mut objects = self.objects.clone();
        for change in self.since(revision)?.rev() {
            match &change.before {
                Some(before) => objects.insert(change.key.clone(), Arc::clone(before)),
                None => objects.remove(&change.key),
            };
        }
        Ok(objects)
    }

    /// Whether anything changed after a revision.
    pub(crate) fn changed_after(&self, revision: u64) -> bool {
        self.history.back().map_or(self.floor, |change| change.revision) > revision
    }
}
