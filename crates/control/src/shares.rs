//! Whose write is next when there is not enough budget for all.
//!
//! Each Service is charged for the writes that were made for it; one that is made for several is
//! shared among them. The write whose Service has been charged least goes first, so that one that
//! changes all the time delays no other. Deletions have a part of their own: neither do a thousand
//! of them hold up a new Service, nor do new Services hold them up for ever.

use model::ServiceUid;
use model::plan::{Action, Change};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A write, in parts.
const WRITE: u64 = 1_000_000;
/// What was charged counts half after so long.
const HALF_LIFE_MS: u64 = 60_000;
/// Creations and changes for each deletion, while both wait.
const GROWTH_WEIGHT: u64 = 3;

/// Charges, and how far each flow is.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    charged: BTreeMap<ServiceUid, (u64, u64)>,
    growing: u64,
    shrinking: u64,
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
    pub fn line_up(&self, changes: &[Arc<Change>], ready: &[(usize, u64)], now_ms: u64) -> Line {
        let mut keyed: Vec<(u64, u64, usize)> = ready
            .iter()
            .map(|(at, since)| (self.price(&changes[*at].causes, now_ms), *since, *at))
            .collect();
        keyed.sort_unstable();
        let mut line = Line::default();
        for (_, _, at) in keyed {
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

    /// A write was made.
    pub fn charge(&mut self, causes: &BTreeSet<ServiceUid>, flow: Flow, now_ms: u64) {
        match flow {
            Flow::Growing => self.growing += 1,
            Flow::Shrinking => self.shrinking += GROWTH_WEIGHT,
        }
        let part = part(causes.len());
        for uid in causes {
            let charged = self.charged_to(uid, now_ms) + part;
            // Whole half-lives only, or a charge a minute would never count less.
            let since_ms = self
                .charged
                .get(uid)
                .map_or(now_ms, |(_, at)| now_ms - now_ms.saturating_sub(*at) % HALF_LIFE_MS);
            self.charged.insert(uid.clone(), (charged, since_ms));
        }
    }

    /// Nothing waits: nobody has anything saved up, and old charges are forgotten.
    pub fn settle(&mut self, now_ms: u64) {
        self.growing = 0;
        self.shrinking = 0;
        self.charged.retain(|_, (_, at)| *at + 10 * HALF_LIFE_MS > now_ms);
    }

    /// One flow is empty: it saves nothing up.
    pub fn level(&mut self) {
        let most = self.growing.max(self.shrinking);
        self.growing = most;
        self.shrinking = most;
    }

    /// What a write costs the Service that has been charged least; a node's or nobody's costs
    /// nothing, because all depend on it.
    fn price(&self, causes: &BTreeSet<ServiceUid>, now_ms: u64) -> u64 {
        let least = causes.iter().map(|uid| self.charged_to(uid, now_ms)).min();
        least.map_or(0, |least| least + part(causes.len()))
    }

    fn charged_to(&self, uid: &ServiceUid, now_ms: u64) -> u64 {
        let (charged, at_ms) = self.charged.get(uid).copied().unwrap_or_default();
        let halvings = now_ms.saturating_sub(at_ms) / HALF_LIFE_MS;
        charged.checked_shr(u32::try_from(halvings).unwrap_or(u32::MAX)).unwrap_or(0)
    }
}

fn part(services: usize) -> u64 {
    WRITE / u64::try_from(services).unwrap_or(u64::MAX).max(1)
}

impl Line {
    /// Whether both flows have something left.
    pub fn is_contested(&self) -> bool {
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
        let mut line = shares.line_up(changes, &ready, now_ms);
        let mut sent = Vec::new();
        while let Some((at, flow)) = shares.next(&mut line) {
            if sent.len() < budget {
                shares.charge(&changes[at].causes, flow, now_ms);
                if !line.is_contested() {
                    shares.level();
                }
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
            shares.charge(&causes(&["a"]), Flow::Growing, minute * HALF_LIFE_MS);
        }
        let charged = shares.charged_to(&ServiceUid::new("a"), 99 * HALF_LIFE_MS);
        assert!(charged <= 2 * WRITE, "{charged}");
        let mut shares = Shares::default();
        for second in 0..6_000 {
            shares.charge(&causes(&["a"]), Flow::Growing, second * 1_000);
        }
        let charged = shares.charged_to(&ServiceUid::new("a"), 5_999_000);
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
}
