//! Services that are gone, by the names that what they had bears in Azure: what still bears one is
//! taken away.
//!
//! The API server tells of the end of an object only those who watch at that time. So a name that
//! something bears is noted in the ledger first, and only then relied on: a process that begins
//! later relies on the same names. One that has seen the Service go and ends before the note is
//! written leaves an orphan.
//!
//! # Guarantees
//! - A name is kept while anything that was read bears it.
//! - Nothing is taken away that private endpoints may be connected to, until it is read whether any
//!   are.
//! - Any other name is forgotten once lists are certain to show what was written for the Service:
//!   each was read when an operation that began before the Service went had had its time.
//! - A name that is noted stays noted until it is forgotten, or a Service has it again. Then it
//!   leaves the ledger before anything is written for that Service: a process whose watch lags
//!   would take the Service for gone.

use super::read::Read;
use super::{LIST_LAG_MS, UNFOLLOWED_MS};
use crate::clock::timestamp;
use crate::gone::Gone;
use model::ServiceUid;
use model::kubernetes::Service;
use model::world::Need;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// When a name lost its Service.
#[derive(Clone, Copy, Debug)]
struct Since {
    /// The time.
    at_ms: u64,
    /// How many Services had gone by then.
    turn: u64,
}

/// Names of Services that are gone.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// Since when no Service has the name.
    since: BTreeMap<Arc<str>, Since>,
    /// How many Services have gone.
    turns: u64,
    /// When the oldest list had been read at the last look.
    looked_ms: u64,
    /// Services that are gone, of which it is not read yet whether what they had is taken away.
    undecided: Vec<Arc<Service>>,
    /// Names that the ledger is to have.
    wanted: Gone,
    /// Names, the ledger's notes, or what was read of Azure have changed since that was decided.
    stirred: bool,
    /// The names that the ledger has are known since the ledger was read in this term.
    recalled: bool,
    /// There was no ledger in which anything could be noted.
    alone: bool,
    /// Services that have a name again which the ledger has.
    retaken: BTreeSet<ServiceUid>,
}

/// Lists of what bears names of Services.
fn bears_names(need: &Need) -> bool {
    matches!(
        need,
        Need::Balancers | Need::PublicIps(_) | Need::PrivateLinks(_) | Need::GatewayServices
    )
}

impl Left {
    /// A Service has these names no more.
    pub fn leave(&mut self, names: impl IntoIterator<Item = Arc<str>>, now_ms: u64) {
        self.turns += 1;
        let since = Since { at_ms: now_ms, turn: self.turns };
        self.since.extend(names.into_iter().map(|name| (name, since)));
        self.stirred = true;
    }

    /// A Service is gone, and something has to be read first.
    pub fn put_off(&mut self, service: Arc<Service>) {
        self.undecided.push(service);
    }

    /// A Service is there again.
    pub fn take_back(&mut self, uid: &ServiceUid) {
        self.undecided.retain(|service| service.uid != *uid);
    }

    /// Services that are gone, and that wait for something to be read.
    pub fn undecided(&self) -> impl Iterator<Item = &Arc<Service>> {
        self.undecided.iter()
    }

    /// The Services that can be decided on by now.
    pub fn take_decidable(&mut self, is_read: impl Fn(&Service) -> bool) -> Vec<Arc<Service>> {
        let all = std::mem::take(&mut self.undecided).into_iter();
        let (decidable, others) = all.partition(|service| is_read(service));
        self.undecided = others;
        decidable
    }

    /// A Service has a name, or nothing bears it.
    pub fn forget(&mut self, name: &Arc<str>) {
        self.stirred |= self.since.remove(name).is_some();
    }

    /// A Service has a name again which the ledger has.
    pub fn retake(&mut self, uid: ServiceUid) {
        self.retaken.insert(uid);
    }

    /// Whether the ledger has a name of this Service.
    pub fn is_retaken(&self, uid: &ServiceUid) -> bool {
        self.retaken.contains(uid)
    }

    /// Looks again of which of these Services the ledger has a name.
    pub fn look_at_retaken(&mut self, is_noted: impl Fn(&ServiceUid) -> bool) {
        self.retaken.retain(is_noted);
    }

    /// What names are noted may have changed, or what bears them.
    pub fn stir(&mut self) {
        self.stirred = true;
    }

    /// Another process may have noted what this one does not know.
    pub fn doubt(&mut self) {
        (self.stirred, self.recalled) = (true, false);
    }

    /// Whether the names that the ledger has are known.
    pub fn is_recalled(&self) -> bool {
        self.recalled
    }

    /// Takes in what another process has noted, but for names that Services have.
    pub fn recall(&mut self, noted: &Gone, held: &BTreeSet<Arc<str>>, now_ms: u64) {
        let since = Since { at_ms: now_ms, turn: self.turns };
        for (name, _) in noted.each().filter(|(name, _)| !held.contains(*name)) {
            self.since.entry(Arc::clone(name)).or_insert(since);
        }
        (self.stirred, self.recalled) = (true, true);
    }

    /// Whether anything can be noted; says whether that is another answer than the last one.
    pub fn turn(&mut self, alone: bool) -> bool {
        std::mem::replace(&mut self.alone, alone) != alone
    }

    /// Whether to decide anew what is to be noted.
    pub fn take_stirred(&mut self) -> bool {
        std::mem::take(&mut self.stirred)
    }

    /// The names of Services that are gone which the ledger lacks.
    pub fn beyond(&self, noted: &Gone) -> BTreeSet<Arc<str>> {
        self.since.keys().filter(|name| !noted.has(name)).cloned().collect()
    }

    /// Decides what is to be noted: what is noted, until it is forgotten, and what anything bears.
    /// Where there is no room for all, those of one Service come together: a public IP bears several
    /// names of its Service, and goes once all are noted.
    pub fn note(&mut self, noted: &Gone, borne: &BTreeSet<Arc<str>>) {
        let mut wanted = Gone::default();
        let is_left = |name: &Arc<str>| !self.recalled || self.since.contains_key(name);
        for (name, time) in noted.each().filter(|entry| is_left(entry.0)) {
            wanted.add(name, time);
        }
        let mut left: Vec<(&Arc<str>, &Since)> =
            self.since.iter().filter(|(name, _)| borne.contains(*name)).collect();
        left.sort_by_key(|(_, since)| since.turn);
        for (name, since) in left {
            wanted.add(name, &Arc::from(timestamp(since.at_ms)));
        }
        self.wanted = wanted;
    }

    /// Names that the ledger is to have; `None` until that is decided.
    pub fn wanted(&self) -> Option<&Gone> {
        (!self.stirred).then_some(&self.wanted)
    }

    /// Names of Services that are gone, as far as this process knows.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.since.keys()
    }

    /// The names of Services that went before all lists were read, long enough before for the lists
    /// to show what was written for them; none where no list was read since the last look.
    pub fn certain(
        &mut self,
        store: &BTreeMap<Need, Read>,
        oldest_sent_ms: Option<u64>,
    ) -> BTreeSet<Arc<str>> {
        if self.since.is_empty() {
            return BTreeSet::new();
        }
        let lists = store.iter().filter(|(need, _)| bears_names(need));
        // A list that was not read is older than any other.
        let oldest_ms = lists.map(|(_, read)| read.read_ms()).min().flatten();
        let Some(oldest_ms) = oldest_ms.filter(|at| *at > self.looked_ms) else {
            return BTreeSet::new();
        };
        self.looked_ms = oldest_ms;
        let certain_ms = oldest_ms.saturating_sub(UNFOLLOWED_MS + LIST_LAG_MS);
        // This process follows what it has sent for as long as it takes.
        let certain_ms = oldest_sent_ms.map_or(certain_ms, |sent| sent.min(certain_ms));
        let old = self.since.iter().filter(|(_, since)| since.at_ms < certain_ms);
        old.map(|(name, _)| Arc::clone(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> BTreeSet<Arc<str>> {
        all.iter().map(|name| Arc::from(*name)).collect()
    }

    fn wanted(left: &mut Left) -> String {
        assert!(left.take_stirred());
        left.wanted().expect("it is decided").encode()
    }

    #[test]
    fn what_something_bears_is_noted_until_it_is_forgotten() {
        let mut left = Left::default();
        left.leave(names(&["a1", "default/web"]), 0);
        assert_eq!(left.wanted(), None, "it is not decided yet");
        left.recall(&Gone::default(), &BTreeSet::new(), 0);
        left.note(&Gone::default(), &names(&["a1", "a2"]));
        let text = wanted(&mut left);
        assert_eq!(text, "1970-01-01T00:00:00Z a1\n");
        let noted = Gone::read(&text);
        assert_eq!(left.beyond(&noted), names(&["default/web"]), "nothing bears it");
        left.stir();
        left.note(&noted, &BTreeSet::new());
        assert_eq!(wanted(&mut left), text, "something may still come to bear it");
        left.forget(&Arc::from("a1"));
        left.note(&noted, &names(&["a1"]));
        assert_eq!(wanted(&mut left), "");
    }

    /// A namespace went, with more public IPs than there is room for: those of the first Services
    /// go, and make room for the others.
    #[test]
    fn where_room_is_short_the_names_of_a_service_are_noted_together() {
        let mut left = Left::default();
        let of = |n: u32| -> [Arc<str>; 2] {
            [format!("a{n:031x}").into(), format!("team/web-{n:04}").into()]
        };
        (0..1_000).for_each(|n| left.leave(of(n), 0));
        left.recall(&Gone::default(), &BTreeSet::new(), 0);
        left.note(&Gone::default(), &(0..1_000).flat_map(of).collect());
        let noted = Gone::read(&wanted(&mut left));
        let whole = (0..1_000).filter(|n| of(*n).iter().all(|name| noted.has(name))).count();
        assert!(whole > 200, "{whole}: {noted:?}");
    }

    #[test]
    fn what_another_process_noted_stays_until_it_is_known() {
        let text = "2026-01-01T00:00:00Z a1 default/web\n";
        let noted = Gone::read(text);
        let mut left = Left::default();
        left.stir();
        left.note(&noted, &BTreeSet::new());
        assert_eq!(wanted(&mut left), text);
        // A Service has the name again.
        left.recall(&noted, &names(&["default/web"]), 5);
        assert_eq!(left.names().cloned().collect::<BTreeSet<_>>(), names(&["a1"]));
        left.note(&noted, &BTreeSet::new());
        assert_eq!(wanted(&mut left), "2026-01-01T00:00:00Z a1\n");
        left.doubt();
        assert!(!left.is_recalled());
    }
}
