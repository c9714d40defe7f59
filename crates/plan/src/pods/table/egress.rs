//! Which namespaces' Pods leave through an egress gateway.
//!
//! # Guarantees
//! - A name that the cloud config lists is that of the namespaces which it lists.
//! - Another name is that of the namespace which used it first: the one whose Pods the gateway's
//!   table lists for it, else the one of the Pod with the lowest UID of those that are marked for
//!   it, else of those that ask for it.
//! - Whose Pods the table lists keeps the name, whatever the config says and though there are
//!   several.
//!
//! A mark counts as proof only with the table: whoever may create Pods may write marks.

use super::{DiffTracker, is_alive};
use crate::pods::marks;
use model::World;
use model::kubernetes::Pod;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The namespaces that have a name, by the name; a name that is not there is that of all who ask
/// for it.
pub(super) type Tenants = BTreeMap<Arc<str>, BTreeSet<Arc<str>>>;

/// What Pods of several namespaces say about one name.
#[derive(Default)]
struct Contest<'w> {
    listed: BTreeSet<&'w Arc<str>>,
    marked: Option<(&'w Arc<str>, &'w Arc<str>)>,
    asking: Option<(&'w Arc<str>, &'w Arc<str>)>,
}

impl DiffTracker {
    /// Whether a Pod may leave through an egress gateway.
    pub fn admits(&self, pod: &Pod, name: &str) -> bool {
        let tenants = self.tenants.get(name);
        tenants.is_none_or(|tenants| tenants.contains(&pod.name.namespace))
    }

    /// Learns which namespaces have which names; gives the names of which that has changed.
    pub(super) fn judge_egress(
        &mut self,
        world: &World,
        config: &BTreeMap<Arc<str>, Vec<Arc<str>>>,
    ) -> BTreeSet<Arc<str>> {
        let tenants = self.tenants(world, config);
        let before = std::mem::replace(&mut self.tenants, tenants);
        let names = before.keys().chain(self.tenants.keys());
        names.filter(|name| before.get(*name) != self.tenants.get(*name)).cloned().collect()
    }

    fn tenants(&self, world: &World, config: &BTreeMap<Arc<str>, Vec<Arc<str>>>) -> Tenants {
        let pods = world.kubernetes.pods.values();
        let mut used: BTreeMap<&Arc<str>, (&Arc<str>, bool)> = BTreeMap::new();
        for (pod, name) in pods.clone().flat_map(|pod| names(pod).map(move |name| (pod, name))) {
            let namespace = &pod.name.namespace;
            let (first, several) = used.entry(name).or_insert((namespace, false));
            *several |= *first != namespace;
        }
        used.retain(|name, (_, several)| *several || config.contains_key(*name));
        if used.is_empty() {
            return Tenants::new();
        }
        let mut contests: BTreeMap<&Arc<str>, Contest<'_>> = BTreeMap::new();
        for (pod, name) in pods.flat_map(|pod| names(pod).map(move |name| (pod, name))) {
            if used.contains_key(name) {
                self.note_user(contests.entry(name).or_default(), pod, name);
            }
        }
        contests.into_iter().filter_map(|(name, contest)| contest.settle(name, config)).collect()
    }

    fn note_user<'w>(&self, contest: &mut Contest<'w>, pod: &'w Pod, name: &Arc<str>) {
        let lower = |held: &mut Option<(&'w Arc<str>, &'w Arc<str>)>| {
            let this = (&pod.uid, &pod.name.namespace);
            *held = Some(held.map_or(this, |held| held.min(this)));
        };
        if marks(pod).any(|mark| mark == name) {
            lower(&mut contest.marked);
            let lists = |address| self.spots(address).any(|spot| spot.services.contains(name));
            if pod.addresses.iter().any(|address| lists(*address)) {
                contest.listed.insert(&pod.name.namespace);
            }
        }
        if is_alive(pod) && pod.egress.as_ref() == Some(name) {
            lower(&mut contest.asking);
        }
    }
}

impl Contest<'_> {
    fn settle(
        self,
        name: &Arc<str>,
        config: &BTreeMap<Arc<str>, Vec<Arc<str>>>,
    ) -> Option<(Arc<str>, BTreeSet<Arc<str>>)> {
        let mut tenants: BTreeSet<Arc<str>> = self.listed.into_iter().cloned().collect();
        match config.get(name) {
            Some(all) if all.iter().any(|namespace| **namespace == *"*") => return None,
            Some(namespaces) => tenants.extend(namespaces.iter().cloned()),
            None if tenants.is_empty() => {
                let first = self.marked.or(self.asking);
                tenants.extend(first.map(|(_, namespace)| Arc::clone(namespace)));
            }
            None => {}
        }
        Some((Arc::clone(name), tenants))
    }
}

/// Names that a Pod asks for or is marked for.
fn names(pod: &Pod) -> impl Iterator<Item = &Arc<str>> {
    let label = pod.egress.iter().filter(|name| !name.is_empty());
    label.chain(marks(pod))
}
