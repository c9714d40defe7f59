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
//! - Nothing is decided on what was read before the term. A new leader decides on Services that it
//!   saw go as a standby after the barrier of its term, on lists of the term.
//! - Any other name is forgotten once lists are certain to show what was written for the Service:
//!   each was read when an operation that began before the Service went had had its time. A list
//!   that Azure refuses to show, of a resource group that only Services name, is not waited for:
//!   one tenant's mistake would have all names kept.
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

/// How a process knows that a Service is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The process saw the Service go in this term.
    Seen,
    /// The process saw it go before the term, or while it stood by: its watch may lag, and the
    /// leader of that time may have decided otherwise.
    Before,
    /// The ledger says so.
    Noted,
}

/// A name that no Service has.
#[derive(Clone, Copy, Debug)]
struct Nameless {
    since_ms: u64,
    /// The number of Services that went before, which orders the names.
    turn: u64,
    source: Source,
}

/// A Service that is gone. Whether its resources are deleted is not decided yet.
#[derive(Debug)]
struct Undecided {
    service: Arc<Service>,
    names: [Arc<str>; 3],
    since_ms: u64,
    source: Source,
}

/// Names of Services that are gone.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// Names that no Service has.
    nameless: BTreeMap<Arc<str>, Nameless>,
    /// How many Services have gone.
    turns: u64,
    /// When the oldest list had been read at the last look.
    looked_ms: u64,
    undecided: BTreeMap<ServiceUid, Undecided>,
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
    /// Records that no Service has these names any more.
    pub fn leave(&mut self, names: impl IntoIterator<Item = Arc<str>>, now_ms: u64) {
        self.turns += 1;
        let left = Nameless { since_ms: now_ms, turn: self.turns, source: Source::Seen };
        self.nameless.extend(names.into_iter().map(|name| (name, left)));
        self.stirred = true;
    }

    /// Records a Service that is gone, with its names, to be decided on later.
    pub fn put_off(
        &mut self,
        service: Arc<Service>,
        names: [Arc<str>; 3],
        source: Source,
        since_ms: u64,
    ) {
        let uid = service.uid.clone();
        self.undecided.insert(uid, Undecided { service, names, since_ms, source });
    }

    /// A Service is there again.
    pub fn take_back(&mut self, uid: &ServiceUid) {
        self.undecided.remove(uid);
    }

    /// Services that are gone and not decided on.
    pub fn undecided(&self) -> impl Iterator<Item = &Arc<Service>> {
        self.undecided.values().map(|gone| &gone.service)
    }

    /// The Services that are to be decided on in this term.
    pub fn due(&self) -> impl Iterator<Item = &Arc<Service>> {
        let due = self.undecided.values().filter(|gone| gone.source == Source::Seen);
        due.map(|gone| &gone.service)
    }

    /// Whether a Service that is gone is not decided on, or a name from before the term is not
    /// relied on yet.
    pub fn is_in_doubt(&self) -> bool {
        let before = |name: &Nameless| name.source == Source::Before;
        !self.undecided.is_empty() || self.nameless.values().any(before)
    }

    /// A Service has a name, or nothing bears it.
    pub fn forget(&mut self, name: &Arc<str>) {
        self.stirred |= self.nameless.remove(name).is_some();
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

    /// A term begins: a former leader may have noted and decided what this process does not know.
    /// Returns the names that are not relied on until the barrier of the term.
    pub fn doubt(&mut self) -> Vec<Arc<str>> {
        (self.stirred, self.recalled) = (true, false);
        let doubted = self.nameless.keys().cloned().collect();
        self.nameless.retain(|_, name| name.source != Source::Noted);
        self.nameless.values_mut().for_each(|name| name.source = Source::Before);
        self.undecided.values_mut().for_each(|gone| gone.source = Source::Before);
        doubted
    }

    /// The barrier of the term is passed: lists show what another process wrote, and the watch has
    /// shown Services that came again. Returns the names that are relied on from now on.
    pub fn confirm(&mut self) -> Vec<Arc<str>> {
        self.undecided.values_mut().for_each(|gone| gone.source = Source::Seen);
        let mut confirmed = Vec::new();
        for (name, left) in &mut self.nameless {
            if left.source == Source::Before {
                left.source = Source::Seen;
                confirmed.push(Arc::clone(name));
            }
        }
        self.stirred |= !confirmed.is_empty();
        confirmed
    }

    /// Whether the names that the ledger has are known.
    pub fn is_recalled(&self) -> bool {
        self.recalled
    }

    /// Takes in what another process has noted, but for names that Services have.
    pub fn recall(&mut self, noted: &Gone, held: &BTreeSet<Arc<str>>, now_ms: u64) {
        let left = Nameless { since_ms: now_ms, turn: self.turns, source: Source::Noted };
        for (name, _) in noted.each().filter(|(name, _)| !held.contains(*name)) {
            self.nameless.entry(Arc::clone(name)).or_insert(left);
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
        self.names().filter(|name| !noted.has(name)).cloned().collect()
    }

    /// Decides what is to be noted: what is noted, until it is forgotten, and what anything bears.
    /// Where there is no room for all, the names of one Service are noted together: a public IP
    /// bears several names of its Service, and is deleted once all of them are noted.
    pub fn note(&mut self, noted: &Gone, borne: &BTreeSet<Arc<str>>) {
        let mut wanted = Gone::default();
        let is_left = |name: &Arc<str>| !self.recalled || self.nameless.contains_key(name);
        for (name, time) in noted.each().filter(|entry| is_left(entry.0)) {
            wanted.add(name, time);
        }
        let mut left: Vec<(&Arc<str>, &Nameless)> =
            self.known().filter(|(name, _)| borne.contains(*name)).collect();
        left.sort_by_key(|(_, name)| name.turn);
        for (name, Nameless { since_ms, .. }) in left {
            wanted.add(name, &Arc::from(timestamp(*since_ms)));
        }
        self.wanted = wanted;
    }

    /// Names that the ledger is to have; `None` until that is decided.
    pub fn wanted(&self) -> Option<&Gone> {
        (!self.stirred).then_some(&self.wanted)
    }

    /// Names of Services that are gone, as far as this process knows in this term.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.known().map(|(name, _)| name)
    }

    fn known(&self) -> impl Iterator<Item = (&Arc<str>, &Nameless)> {
        self.nameless.iter().filter(|(_, name)| name.source != Source::Before)
    }

    /// Whether it knows of no Service that is gone.
    pub fn is_empty(&self) -> bool {
        self.nameless.is_empty() && self.undecided.is_empty()
    }

    /// A time for which lists show every write for a Service that went before it: each
    /// list, except refused ones, was read long enough after it. `None` where no list was read
    /// since the last call.
    pub fn certain_ms(
        &mut self,
        store: &BTreeMap<Need, Read>,
        refused: &BTreeSet<Need>,
        oldest_sent_ms: Option<u64>,
    ) -> Option<u64> {
        let is_awaited = |need: &Need| bears_names(need) && !refused.contains(need);
        let lists = store.iter().filter(|(need, _)| is_awaited(need));
        // A list that was not read is older than any other.
        let oldest_ms = lists.map(|(_, read)| read.read_ms()).min().flatten();
        let oldest_ms = oldest_ms.filter(|at| *at > self.looked_ms)?;
        self.looked_ms = oldest_ms;
        let certain_ms = oldest_ms.saturating_sub(UNFOLLOWED_MS + LIST_LAG_MS);
        // This process follows what it has sent for as long as it takes.
        Some(oldest_sent_ms.map_or(certain_ms, |sent| sent.min(certain_ms)))
    }

    /// The names of Services that went before a time.
    pub fn left_before(&self, at_ms: u64) -> BTreeSet<Arc<str>> {
        let names = self.nameless.iter().filter(|(_, name)| name.since_ms < at_ms);
        let gone = self.undecided.values().filter(|gone| gone.since_ms < at_ms);
        let names = names.map(|(name, _)| name).chain(gone.flat_map(|gone| &gone.names));
        names.cloned().collect()
    }

    /// Forgets Services that went before a time, where nothing bears their names: there is nothing
    /// to decide on. A process may stand by for months.
    pub fn forget_undecided(&mut self, at_ms: u64, borne: &BTreeSet<Arc<str>>) {
        self.undecided.retain(|_, gone| {
            gone.since_ms >= at_ms || gone.names.iter().any(|name| borne.contains(name))
        });
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
        assert_eq!(left.doubt(), [Arc::<str>::from("a1")]);
        assert!(!left.is_recalled() && left.names().next().is_none(), "it is read anew");
    }

    /// A watch may lag: a Service may have the name again that this process saw go as a standby.
    #[test]
    fn what_was_left_before_the_term_is_noted_after_its_barrier() {
        let mut left = Left::default();
        left.leave(names(&["a1"]), 0);
        assert_eq!(left.doubt(), [Arc::<str>::from("a1")]);
        left.note(&Gone::default(), &names(&["a1"]));
        assert_eq!(wanted(&mut left), "");
        assert!(left.is_in_doubt());
        left.confirm();
        left.note(&Gone::default(), &names(&["a1"]));
        assert_eq!(wanted(&mut left), "1970-01-01T00:00:00Z a1\n");
        assert!(!left.is_in_doubt());
    }

    #[test]
    fn a_list_that_azure_refuses_to_show_keeps_no_name() {
        let mut left = Left::default();
        left.leave(names(&["a1"]), 0);
        let far = Need::PublicIps(model::Group::new("far"));
        let unread = [Need::Balancers, far.clone()].map(|need| (need, Read::default()));
        let mut store = BTreeMap::from(unread);
        let late_ms = 2 * UNFOLLOWED_MS;
        store.get_mut(&Need::Balancers).expect("it is there").end(late_ms);
        assert_eq!(left.certain_ms(&store, &BTreeSet::new(), None), None);
        let certain_ms = left.certain_ms(&store, &BTreeSet::from([far]), None);
        assert_eq!(certain_ms, Some(late_ms - UNFOLLOWED_MS - LIST_LAG_MS));
    }

    #[test]
    fn a_service_of_which_nothing_is_left_needs_no_decision() {
        let mut left = Left::default();
        let gone = [Arc::from("a1"), Arc::from("a2"), Arc::from("a3")];
        left.put_off(Arc::new(crate::sample::service(None)), gone, Source::Before, 5);
        assert_eq!(left.left_before(6), names(&["a1", "a2", "a3"]));
        let mut count_after = |at_ms: u64, borne: &[&str]| {
            left.forget_undecided(at_ms, &names(borne));
            left.undecided().count()
        };
        assert_eq!([count_after(5, &[]), count_after(6, &["a2"]), count_after(6, &[])], [1, 1, 0]);
    }
}
