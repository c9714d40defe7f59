//! Whose write is next when there is not enough budget for all.
//!
//! Each namespace, and each Service in it, is charged for the writes that were made for it; one
//! that is made for several is shared among them. Namespaces take turns: the next write is that of
//! the namespace that has been charged least, so that many Services of one namespace delay no
//! other's. Within a namespace the write goes first whose Service has been charged least, so that
//! one that changes all the time delays no other. Deletions have a part of their own: neither do a
//! thousand of them hold up a new Service, nor do new Services hold them up for ever.

use model::ServiceUid;
use model::kubernetes::Service;
use model::plan::{Action, Change};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A write, in parts.
const WRITE: u64 = 1_000_000;
/// What was charged counts half after so long.
const HALF_LIFE_MS: u64 = 60_000;
/// Creations and changes for each deletion, while both wait.
const GROWTH_WEIGHT: u64 = 3;

/// Services as they are known, by which a cause of a write is of a namespace.
type Services = BTreeMap<ServiceUid, Arc<Service>>;

/// Charges, and how far each flow is.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    services: Charges<ServiceUid>,
    namespaces: Charges<Arc<str>>,
    growing: u64,
    shrinking: u64,
}

/// What was charged to each, and until when it has been halved.
#[derive(Debug)]
struct Charges<K>(BTreeMap<K, (u64, u64)>);

impl<K> Default for Charges<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Clone> Charges<K> {
    fn of(&self, key: &K, now_ms: u64) -> u64 {
        let (charged, at_ms) = self.0.get(key).copied().unwrap_or_default();
        let halvings = now_ms.saturating_sub(at_ms) / HALF_LIFE_MS;
        charged.checked_shr(u32::try_from(halvings).unwrap_or(u32::MAX)).unwrap_or(0)
    }

    fn add(&mut self, key: &K, cost: u64, now_ms: u64) {
        let charged = self.of(key, now_ms) + cost;
        // Whole half-lives only, or a charge a minute would never count less.
        let whole = |at: &u64| now_ms - now_ms.saturating_sub(*at) % HALF_LIFE_MS;
        let since_ms = self.0.get(key).map_or(now_ms, |(_, at)| whole(at));
        self.0.insert(key.clone(), (charged, since_ms));
    }

    /// Old charges are forgotten.
    fn sweep(&mut self, now_ms: u64) {
        self.0.retain(|_, (_, at)| *at + 10 * HALF_LIFE_MS > now_ms);
    }
}

/// What a write costs each namespace on whose account it is made. A cause that is no Service that
/// is known, an egress gateway for example, is a namespace of its own.
fn costs(causes: &BTreeSet<ServiceUid>, services: &Services) -> BTreeMap<Arc<str>, u64> {
    let part = part(causes.len());
    let mut costs = BTreeMap::new();
    for uid in causes {
        let known = services.get(uid).map(|service| Arc::clone(&service.name.namespace));
        let namespace = known.unwrap_or_else(|| Arc::from(uid.as_str()));
        *costs.entry(namespace).or_default() += part;
    }
    costs
}

/// Two flows of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Something comes or changes.
    Growing,
    /// Something goes.
    Shrinking,
}

impl Flow {
    fn of(action: &Action) -> Self {
        match action {
            Action::Delete { .. } | Action::DeleteChild => Self::Shrinking,
            _ => Self::Growing,
        }
    }
}

/// Writes that wait for their turn, by flow, the next one first. Entries are positions.
#[derive(Debug, Default)]
pub(crate) struct Line {
    growing: VecDeque<usize>,
    shrinking: VecDeque<usize>,
}

impl Shares {
    /// Puts writes in line; entries say where each is among the changes, and since when it waits.
    pub fn line_up(
        &self,
        changes: &[Arc<Change>],
        ready: &[(usize, u64)],
        services: &Services,
        now_ms: u64,
    ) -> Line {
        let mut queues: BTreeMap<Option<Arc<str>>, Vec<Entry>> = BTreeMap::new();
        for (at, since_ms) in ready {
            let causes = &changes[*at].causes;
            let price = self.price(causes, now_ms);
            let least = costs(causes, services)
                .into_iter()
                .min_by_key(|(namespace, cost)| self.namespaces.of(namespace, now_ms) + cost);
            // A node's or nobody's write costs nothing, because all depend on it.
            let (payer, cost) =
                least.map_or((None, 0), |(namespace, cost)| (Some(namespace), cost));
            let entry = Entry { price, since_ms: *since_ms, at: *at, cost };
            queues.entry(payer).or_default().push(entry);
        }
        let mut keyed = Vec::with_capacity(ready.len());
        for (payer, mut queue) in queues {
            queue.sort_unstable();
            let charged = payer.map(|namespace| self.namespaces.of(&namespace, now_ms));
            let mut turn = charged.unwrap_or_default();
            for entry in queue {
                turn += entry.cost;
                keyed.push((turn, entry));
            }
        }
        keyed.sort_unstable();
        let mut line = Line::default();
        for (_, Entry { at, .. }) in keyed {
            match Flow::of(&changes[at].action) {
                Flow::Growing => line.growing.push_back(at),
                Flow::Shrinking => line.shrinking.push_back(at),
            }
        }
        line
    }

    /// The next in line.
    pub fn next(&self, line: &mut Line) -> Option<(usize, Flow)> {
        let shrinks = match (line.growing.is_empty(), line.shrinking.is_empty()) {
            (true, _) => true,
            (false, true) => false,
            (false, false) => self.shrinking < self.growing,
        };
        if shrinks {
            line.shrinking.pop_front().map(|at| (at, Flow::Shrinking))
        } else {
            line.growing.pop_front().map(|at| (at, Flow::Growing))
        }
    }

    /// A write was made, and this is left of the line. A flow that is empty saves nothing up.
    pub fn charge(
        &mut self,
        causes: &BTreeSet<ServiceUid>,
        flow: Flow,
        line: &Line,
        services: &Services,
        now_ms: u64,
    ) {
        match flow {
            Flow::Growing => self.growing += 1,
            Flow::Shrinking => self.shrinking += GROWTH_WEIGHT,
        }
        for (namespace, cost) in costs(causes, services) {
            self.namespaces.add(&namespace, cost, now_ms);
        }
        let part = part(causes.len());
        causes.iter().for_each(|uid| self.services.add(uid, part, now_ms));
        if !line.is_contested() {
            self.level();
        }
    }

    /// Nothing waits: nobody has anything saved up, and old charges are forgotten.
    pub fn settle(&mut self, now_ms: u64) {
        self.growing = 0;
        self.shrinking = 0;
        self.services.sweep(now_ms);
        self.namespaces.sweep(now_ms);
    }

    /// No flow is ahead of the other.
    fn level(&mut self) {
        let most = self.growing.max(self.shrinking);
        self.growing = most;
        self.shrinking = most;
    }

    /// What a write costs the Service that has been charged least.
    fn price(&self, causes: &BTreeSet<ServiceUid>, now_ms: u64) -> u64 {
        let least = causes.iter().map(|uid| self.services.of(uid, now_ms)).min();
        least.map_or(0, |least| least + part(causes.len()))
    }
}

/// A write that waits for its turn, in the order within its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    price: u64,
    since_ms: u64,
    at: usize,
    cost: u64,
}

fn part(services: usize) -> u64 {
    WRITE / u64::try_from(services).unwrap_or(u64::MAX).max(1)
}

impl Line {
    /// Whether both flows have something left.
    fn is_contested(&self) -> bool {
        !self.growing.is_empty() && !self.shrinking.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ResourceId;

    fn causes(names: &[&str]) -> BTreeSet<ServiceUid> {
        names.iter().map(|n| ServiceUid::new(*n)).collect()
    }

    fn change(name: &str, of: &[&str], action: Action) -> Arc<Change> {
        let target = ResourceId::new(format!("/subscriptions/s/{name}"));
        let causes = causes(of);
        Arc::new(Change { target, action, guard: None, causes, waits: Vec::new() })
    }

    /// The namespace of each cause stands before the slash; one without has its own.
    fn services(changes: &[Arc<Change>]) -> Services {
        let named = changes.iter().flat_map(|change| &change.causes).filter_map(|uid| {
            let (namespace, name) = uid.as_str().split_once('/')?;
            let name = model::ServiceName::new(namespace, name);
            Some((uid.clone(), Arc::new(crate::sample::named(uid.clone(), name))))
        });
        named.collect()
    }

    fn put() -> Action {
        Action::MigratePools { pools: Vec::new() }
    }

    /// Sends as many as there is budget for; the positions in the order they went.
    fn turns(
        shares: &mut Shares,
        changes: &[Arc<Change>],
        budget: usize,
        now_ms: u64,
    ) -> Vec<usize> {
        let ready: Vec<(usize, u64)> = (0..changes.len()).map(|at| (at, now_ms)).collect();
        let services = services(changes);
        let mut line = shares.line_up(changes, &ready, &services, now_ms);
        let mut sent = Vec::new();
        while let Some((at, flow)) = shares.next(&mut line) {
            if sent.len() < budget {
                shares.charge(&changes[at].causes, flow, &line, &services, now_ms);
                sent.push(at);
            }
        }
        sent
    }

    #[test]
    fn a_service_that_changes_all_the_time_comes_last() {
        let mut shares = Shares::default();
        let busy = [change("a", &["busy"], put())];
        (0..5).for_each(|_| drop(turns(&mut shares, &busy, 1, 0)));
        let both = [change("a", &["busy"], put()), change("b", &["new"], put())];
        assert_eq!(turns(&mut shares, &both, 2, 0), [1, 0]);
        assert_eq!(turns(&mut shares, &both, 1, 0), [1], "its second write, too");
        // After ten minutes all is forgotten.
        let later = 600_000;
        (0..2).for_each(|_| drop(turns(&mut shares, &both[1..], 1, later)));
        assert_eq!(turns(&mut shares, &both, 1, later), [0]);
    }

    #[test]
    fn a_steady_charge_is_forgotten_by_and_by() {
        let mut shares = Shares::default();
        for minute in 0..100 {
            let now_ms = minute * HALF_LIFE_MS;
            let line = Line::default();
            shares.charge(&causes(&["a"]), Flow::Growing, &line, &BTreeMap::new(), now_ms);
        }
        let charged = shares.services.of(&ServiceUid::new("a"), 99 * HALF_LIFE_MS);
        assert!(charged <= 2 * WRITE, "{charged}");
        let mut shares = Shares::default();
        for second in 0..6_000 {
            let (line, now_ms) = (Line::default(), second * 1_000);
            shares.charge(&causes(&["a"]), Flow::Growing, &line, &BTreeMap::new(), now_ms);
        }
        let charged = shares.services.of(&ServiceUid::new("a"), 5_999_000);
        assert!(charged <= 130 * WRITE, "{charged}");
    }

    #[test]
    fn a_write_for_many_costs_each_little_and_a_nodes_nothing() {
        let mut shares = Shares::default();
        let changes = [
            change("own", &["a"], put()),
            change("shared", &["a", "b", "c", "d"], put()),
            change("nodes", &[], put()),
        ];
        assert_eq!(turns(&mut shares, &changes, 3, 0), [2, 1, 0]);
    }

    #[test]
    fn deletions_get_every_fourth_write_while_others_wait() {
        let mut shares = Shares::default();
        let mut changes: Vec<Arc<Change>> =
            (0..20).map(|n| change(&format!("d{n}"), &["x"], Action::DeleteChild)).collect();
        changes.extend((0..20).map(|n| change(&format!("p{n}"), &["y"], put())));
        let sent = turns(&mut shares, &changes, 12, 0);
        assert_eq!(sent.iter().filter(|at| **at < 20).count(), 3);
        let alone = turns(&mut shares, &changes[..20], 12, 0);
        assert_eq!(alone.len(), 12, "nothing else waits");
        let sent = turns(&mut shares, &changes, 12, 0);
        assert_eq!(sent.iter().filter(|at| **at < 20).count(), 3, "and nothing was saved up");
    }

    #[test]
    fn many_services_of_one_namespace_delay_no_other() {
        let mut shares = Shares::default();
        let names: Vec<String> = (0..100).map(|n| format!("evil/{n:03}")).collect();
        let mut changes: Vec<Arc<Change>> =
            names.iter().map(|name| change(name, &[name], put())).collect();
        let neighbours = ["one/a", "one/b", "two/a", "two/b"];
        changes.extend(neighbours.iter().map(|name| change(name, &[name], put())));
        let sent = turns(&mut shares, &changes, 6, 0);
        let of = |sent: &[usize], from: usize| sent.iter().filter(|at| **at >= from).count();
        assert_eq!((sent.len(), of(&sent, 100)), (6, 4), "{sent:?}");
        // Namespaces take turns, whoever has been charged before.
        let again = turns(&mut shares, &changes, 4, 0);
        assert!(of(&again, 100) >= 2, "{again:?}");
        // What is charged to a namespace is charged whichever of its Services changes.
        let late = turns(&mut shares, &changes[99..], 1, 0);
        assert_ne!(late, [0]);
    }
}
