//! The tables of the Service Gateway: they are written in parts and read as a whole, so a read may
//! know less of some entries than we do.

use std::collections::{BTreeMap, BTreeSet};

/// What a table of several pages lacks, was there, and was not lacking before. It is kept as what
/// is being written.
pub(crate) fn lacking<K: Ord + Clone, V>(
    old: &BTreeMap<K, V>,
    new: &BTreeMap<K, V>,
    before: Option<&BTreeSet<K>>,
    written: &mut BTreeMap<K, u64>,
    from_ms: u64,
) -> BTreeSet<K> {
    let Some(before) = before else { return BTreeSet::new() };
    let lately = |key: &K| written.get(key).is_some_and(|at| *at >= from_ms);
    let doubted = |key: &&K| !new.contains_key(*key) && !before.contains(*key) && !lately(key);
    let lacking: BTreeSet<K> = old.keys().filter(doubted).cloned().collect();
    written.extend(lacking.iter().map(|key| (key.clone(), u64::MAX)));
    lacking
}

/// Entries that were written at a time or later stay as they were.
pub(crate) fn keep<K: Ord + Clone, V: Clone>(
    old: &BTreeMap<K, V>,
    new: &mut BTreeMap<K, V>,
    written: &BTreeMap<K, u64>,
    from_ms: u64,
) {
    for key in written.iter().filter(|(_, at)| **at >= from_ms).map(|(key, _)| key) {
        match old.get(key) {
            Some(value) => new.insert(key.clone(), value.clone()),
            None => new.remove(key),
        };
    }
}
