//! Who gets what a resource has room for, where namespaces ask for more than there is.
//!
//! # Guarantees
//! - What stands stays: no Service loses anything because another grows.
//! - What comes new is admitted in turns: the next one is of the namespace that uses least, until
//!   nothing fits. That is a max-min fair division of what is free: a namespace that asks for less
//!   than its share gets all of it.
//! - The last tenth is for namespaces that use less than their fair share: the limit divided by the
//!   namespaces with Services, by two where there is one. So one namespace cannot use all up before
//!   another has come.

use crate::draft::Draft;
use model::ServiceUid;
use model::kubernetes::Wish;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The part of a limit that namespaces above their share do not get: one in so many.
const RESERVE: usize = 10;

/// Namespaces with Services that want a load balancer.
pub(crate) fn namespaces(draft: &Draft<'_>) -> usize {
    let services = draft.world.kubernetes.services.values();
    let wanting = services.filter(|s| s.wish == Wish::LoadBalancer);
    wanting.map(|s| &s.name.namespace).collect::<BTreeSet<_>>().len()
}

/// The namespace of a Service that is known.
pub(crate) fn namespace(draft: &Draft<'_>, uid: &ServiceUid) -> Arc<str> {
    draft.cases.get(uid).map_or_else(Arc::default, |case| Arc::clone(&case.service.name.namespace))
}

/// What a Service cannot have more of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// There is no more.
    Full,
    /// The rest is for namespaces that use less.
    Reserved {
        /// What a namespace gets at least.
        share: usize,
    },
}

/// Something of which there is a limited number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scarce {
    /// How many there can be.
    pub limit: usize,
    /// How many there are, those of nobody included.
    pub used: usize,
    /// How many each namespace uses.
    by_namespace: BTreeMap<Arc<str>, usize>,
}

impl Scarce {
    /// Nothing is used yet.
    pub fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Counts what a namespace uses; what counts in all is counted apart.
    pub fn count(&mut self, namespace: &Arc<str>, more: usize) {
        *self.by_namespace.entry(Arc::clone(namespace)).or_default() += more;
    }

    /// A namespace uses so many in place of others, in all, too.
    pub fn change(&mut self, namespace: &Arc<str>, had: usize, has: usize) {
        let change = |used: &mut usize| *used = (*used + has).saturating_sub(had);
        change(&mut self.used);
        change(self.by_namespace.entry(Arc::clone(namespace)).or_default());
    }

    /// How many a namespace uses.
    pub fn of(&self, namespace: &Arc<str>) -> usize {
        self.by_namespace.get(namespace).copied().unwrap_or(0)
    }

    /// Whether so many more make it a matter of whose they are.
    pub fn is_scarce(&self, more: usize) -> bool {
        self.used + more > self.limit - self.limit / RESERVE
    }

    /// The same where so many are asked for in all, those that are there among them.
    pub fn is_scarce_at(&self, asked: usize) -> bool {
        let known: usize = self.by_namespace.values().sum();
        self.used.saturating_sub(known) + asked.max(known) > self.limit - self.limit / RESERVE
    }

    /// Whether a namespace may use so many more, among so many namespaces.
    pub fn ask(
        &self,
        namespace: &Arc<str>,
        more: usize,
        namespaces: usize,
    ) -> Result<(), Shortage> {
        if more == 0 || !self.is_scarce(more) {
            return Ok(());
        }
        if self.used + more > self.limit {
            return Err(Shortage::Full);
        }
        let share = self.limit / namespaces.max(2);
        if self.of(namespace) + more > share { Err(Shortage::Reserved { share }) } else { Ok(()) }
    }

    /// The namespaces that use most, in words.
    pub fn users(&self, what: &str) -> String {
        let mut all: Vec<_> = self.by_namespace.iter().filter(|(_, used)| **used > 0).collect();
        all.sort_by_key(|(namespace, used)| (Reverse(**used), Arc::clone(namespace)));
        let most = all.iter().take(3).map(|(namespace, used)| format!("{namespace} {used}"));
        let most: Vec<String> = most.collect();
        match most.is_empty() {
            true => String::new(),
            false => format!("; namespaces with most {what}: {}", most.join(", ")),
        }
    }
}

/// Services in turns of their namespaces: always one of the namespace that uses least next. Each
/// comes with what it asks for more; within a namespace the order stays.
pub(crate) fn turns<T>(
    asks: Vec<(Arc<str>, usize, T)>,
    used: impl Fn(&Arc<str>) -> usize,
) -> Vec<T> {
    let mut queues: BTreeMap<Arc<str>, Vec<(usize, T)>> = BTreeMap::new();
    for (namespace, more, what) in asks {
        queues.entry(namespace).or_default().push((more, what));
    }
    let mut next: BTreeSet<(usize, Arc<str>)> =
        queues.keys().map(|namespace| (used(namespace), Arc::clone(namespace))).collect();
    queues.values_mut().for_each(|queue| queue.reverse());
    let mut order = Vec::new();
    while let Some((used, namespace)) = next.pop_first() {
        let taken = queues.get_mut(&namespace).and_then(Vec::pop);
        if let Some((more, what)) = taken {
            order.push(what);
            next.insert((used + more, namespace));
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Arc<str> {
        Arc::from(text)
    }

    #[test]
    fn the_namespace_that_uses_least_is_next() {
        let used = |namespace: &Arc<str>| if &**namespace == "big" { 5 } else { 0 };
        let asks =
            [("big", 1, "b1"), ("a", 3, "a1"), ("a", 3, "a2"), ("z", 1, "z1"), ("a", 1, "a3")];
        let asks = asks.map(|(namespace, more, what)| (name(namespace), more, what));
        assert_eq!(turns(asks.into(), used), ["a1", "z1", "a2", "b1", "a3"]);
    }

    #[test]
    fn the_last_tenth_is_for_those_below_their_share() {
        let mut rules = Scarce::new(100);
        (rules.used, _) = (90, rules.count(&name("big"), 90));
        assert_eq!(rules.ask(&name("big"), 1, 1), Err(Shortage::Reserved { share: 50 }));
        assert_eq!(rules.ask(&name("big"), 0, 1), Ok(()));
        assert_eq!(rules.ask(&name("small"), 10, 4), Ok(()));
        assert_eq!(rules.ask(&name("small"), 11, 4), Err(Shortage::Full));
        assert_eq!(rules.users("rules"), "; namespaces with most rules: big 90");
        assert_eq!(Scarce::new(100).ask(&name("big"), 90, 1), Ok(()));
    }
}
