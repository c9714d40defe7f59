//! Which slices have to do with what.

use model::ServiceName;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Names of slices by something that each of them has to do with. Most have to do with one thing
/// and most things with one slice, so a set of pairs takes less room than a set for each thing.
#[derive(Debug)]
pub(super) struct Links<K>(BTreeSet<(K, ServiceName)>);

impl<K> Default for Links<K> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<K: Ord + Clone> Links<K> {
    pub fn add(&mut self, key: K, slice: &ServiceName) {
        self.0.insert((key, slice.clone()));
    }

    /// Takes one away.
    pub fn remove(&mut self, key: K, slice: &ServiceName) {
        self.0.remove(&(key, slice.clone()));
    }

    /// The slices that have to do with this.
    pub fn of<'a>(&'a self, key: &'a K) -> impl Iterator<Item = &'a ServiceName> {
        let first = ServiceName { namespace: Arc::default(), name: Arc::default() };
        let from = self.0.range((key.clone(), first)..);
        from.take_while(move |(of, _)| of == key).map(|(_, slice)| slice)
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_by_their_key_alone() {
        let slice = |name: &str| ServiceName::new("default", name);
        let mut links = Links::default();
        for (key, name) in [("a", "1"), ("b", "1"), ("b", "2"), ("bb", "3")] {
            links.add(key, &slice(name));
        }
        assert_eq!(links.of(&"b").collect::<Vec<_>>(), [&slice("1"), &slice("2")]);
        links.remove("b", &slice("1"));
        assert_eq!(links.of(&"b").collect::<Vec<_>>(), [&slice("2")]);
        assert_eq!(links.of(&"c").count(), 0);
        links.clear();
        assert_eq!(links.of(&"a").count(), 0);
    }
}
