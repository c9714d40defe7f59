//! Finding the Service that Azure refuses a batch for.
//!
//! A refused batch is halved: one half is held back while the other is tried. A half that goes
//! through lets the next one in; a half that is refused is halved again, until one Service is left.
//! Services that were refused alone before are the first half to be held back.

use model::ServiceUid;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A search for the Service that one resource's writes are refused for.
///
/// # Guarantees
/// A Service that was tried and not refused, because its write went through or because alone it
/// wants none, is not suspected again: each search ends after about two logarithms of its batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Code of the refusal that it goes on for.
    pub code: Arc<str>,
    /// Halves that wait for their turn, the next one last.
    waiting: Vec<BTreeSet<ServiceUid>>,
    /// Who came while others were tried: their turn is last.
    come: BTreeSet<ServiceUid>,
    /// Who is being tried.
    trying: BTreeSet<ServiceUid>,
    /// Who was tried and not refused.
    cleared: BTreeSet<ServiceUid>,
}

/// What a refusal leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This Service is at fault.
    Guilty(ServiceUid),
    /// These are held back for now; the rest is tried.
    Hold(BTreeSet<ServiceUid>),
    /// No Service has part in it, or each of them was tried without being refused.
    Nobody,
}

impl Search {
    /// A batch on account of these Services was refused. `failed` are those that were refused
    /// alone before.
    pub fn refused(
        &mut self,
        batch: &BTreeSet<ServiceUid>,
        failed: &BTreeSet<ServiceUid>,
    ) -> Verdict {
        let suspects: BTreeSet<ServiceUid> = batch.difference(&self.cleared).cloned().collect();
        let mut services = suspects.iter();
        match (services.next(), services.next()) {
            // Halves that wait keep their turn: nothing else would let them in again.
            (None, _) => {
                self.cleared.clear();
                self.trying.clear();
                Verdict::Nobody
            }
            (Some(one), None) => {
                self.trying.clear();
                Verdict::Guilty(one.clone())
            }
            (Some(_), Some(_)) => {
                let (held, tried) = halves(suspects, failed);
                self.trying = tried;
                self.waiting.push(held.clone());
                Verdict::Hold(held)
            }
        }
    }

    /// Nothing is left to send for those who are tried: they are cleared, and the next half has its
    /// turn.
    pub fn take_half(&mut self) -> Option<BTreeSet<ServiceUid>> {
        let tried = std::mem::take(&mut self.trying);
        self.cleared.extend(tried);
        let half = self.waiting.pop().unwrap_or_else(|| std::mem::take(&mut self.come));
        if half.is_empty() {
            return None;
        }
        self.trying.clone_from(&half);
        Some(half)
    }

    /// A write on account of these Services went through: those that are tried are cleared, and are
    /// tried no longer. Of `changed`, which their owners have changed since it was sent, the write
    /// says nothing: they are tried with those that come meanwhile, or a Service that is changed
    /// all the time would hold back all others for as long.
    pub fn passed(&mut self, causes: &BTreeSet<ServiceUid>, changed: &BTreeSet<ServiceUid>) {
        let tried: Vec<ServiceUid> = self.trying.intersection(causes).cloned().collect();
        for uid in tried {
            self.trying.remove(&uid);
            if !changed.contains(&uid) {
                self.cleared.insert(uid);
            }
        }
    }

    /// A Service was changed by its owner: what was found out about it no longer holds.
    pub fn forget(&mut self, uid: &ServiceUid) {
        self.cleared.remove(uid);
    }

    /// Holds back those of a batch who came while others are tried: if there were newcomers in each
    /// write, none would tell anything of those who are tried.
    pub fn hold_back(&mut self, batch: &BTreeSet<ServiceUid>) -> BTreeSet<ServiceUid> {
        if self.trying.is_empty() {
            return BTreeSet::new();
        }
        let known = |uid: &&ServiceUid| self.trying.contains(*uid) || self.cleared.contains(*uid);
        let new: BTreeSet<ServiceUid> = batch.iter().filter(|uid| !known(uid)).cloned().collect();
        self.come.extend(new.iter().cloned());
        new
    }

    /// Whether some of these are being tried.
    #[must_use]
    pub fn tries_any_of(&self, services: &BTreeSet<ServiceUid>) -> bool {
        !self.trying.is_disjoint(services)
    }

    /// Whether the search is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.come.is_empty() && self.trying.is_empty()
    }
}

/// Who is held back and who is tried.
fn halves(
    mut suspects: BTreeSet<ServiceUid>,
    failed: &BTreeSet<ServiceUid>,
) -> (BTreeSet<ServiceUid>, BTreeSet<ServiceUid>) {
    let again: BTreeSet<ServiceUid> = suspects.intersection(failed).cloned().collect();
    if !again.is_empty() && again.len() < suspects.len() {
        suspects.retain(|uid| !again.contains(uid));
        return (again, suspects);
    }
    let middle = suspects.iter().nth(suspects.len().div_ceil(2)).cloned();
    let held = middle.map(|at| suspects.split_off(&at)).unwrap_or_default();
    (held, suspects)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uids(range: std::ops::Range<u32>) -> BTreeSet<ServiceUid> {
        range.map(|n| ServiceUid::new(format!("{n:04}"))).collect()
    }

    /// Plays a lane: a batch is refused while it holds a guilty Service.
    fn writes_until_found(
        all: u32,
        guilty: &[u32],
        before: &[u32],
    ) -> (usize, BTreeSet<ServiceUid>) {
        let guilty: BTreeSet<ServiceUid> =
            guilty.iter().map(|n| ServiceUid::new(format!("{n:04}"))).collect();
        let before = before.iter().map(|n| ServiceUid::new(format!("{n:04}"))).collect();
        let mut search = Search::default();
        let (mut batch, mut found, mut writes) = (uids(0..all), BTreeSet::new(), 0);
        loop {
            writes += 1;
            if batch.is_disjoint(&guilty) {
                batch = BTreeSet::new();
            } else {
                match search.refused(&batch, &before) {
                    Verdict::Guilty(one) => {
                        found.insert(one);
                        batch = BTreeSet::new();
                    }
                    Verdict::Hold(held) => batch = batch.difference(&held).cloned().collect(),
                    Verdict::Nobody => batch = BTreeSet::new(),
                }
            }
            if batch.is_empty() {
                match search.take_half() {
                    Some(next) => batch = next,
                    None => return (writes, found),
                }
            }
        }
    }

    #[test]
    fn one_of_fifty_is_found_in_about_two_logarithms() {
        for guilty in 0..50 {
            let (writes, found) = writes_until_found(50, &[guilty], &[]);
            assert_eq!(found.len(), 1);
            assert!(writes <= 13, "{writes} writes to find Service {guilty}");
        }
    }

    /// Once its wait is over a Service is sent with others again.
    #[test]
    fn who_was_refused_alone_before_is_suspected_first() {
        for guilty in 0..50 {
            let (writes, found) = writes_until_found(50, &[guilty], &[guilty]);
            assert_eq!((writes, found.len()), (3, 1), "all, all others, Service {guilty}");
        }
        // It is right by now, and another one is wrong.
        let (writes, found) = writes_until_found(50, &[7], &[30]);
        assert!(writes <= 15 && found.len() == 1, "{writes} writes");
    }

    /// The write holds nothing of the first half while the second is held back, as where both want
    /// one frontend: held back and let in by turns, it would be refused for ever.
    #[test]
    fn a_half_that_wants_nothing_alone_is_not_suspected_again() {
        let (first, second) = (uids(0..1), uids(1..2));
        let both = uids(0..2);
        let mut search = Search::default();
        assert_eq!(search.refused(&both, &BTreeSet::new()), Verdict::Hold(second.clone()));
        assert_eq!(search.take_half(), Some(second.clone()));
        assert!(!search.is_over(), "the second half is being tried");
        let guilty = second.first().expect("it has one").clone();
        assert_eq!(search.refused(&both, &BTreeSet::new()), Verdict::Guilty(guilty));
        assert!(search.is_over());
        assert!(search.refused(&first, &BTreeSet::new()) == Verdict::Nobody, "it was cleared");
    }

    #[test]
    fn those_who_wait_keep_their_turn_where_only_cleared_ones_are_refused() {
        let mut search = Search::default();
        assert_eq!(search.refused(&uids(0..4), &BTreeSet::new()), Verdict::Hold(uids(2..4)));
        assert_eq!(search.refused(&uids(0..2), &BTreeSet::new()), Verdict::Hold(uids(1..2)));
        assert_eq!(search.take_half(), Some(uids(1..2)));
        assert_eq!(search.refused(&uids(0..1), &BTreeSet::new()), Verdict::Nobody);
        assert!(!search.is_over());
        assert_eq!(search.take_half(), Some(uids(2..4)));
    }

    #[test]
    fn who_comes_meanwhile_has_the_last_turn() {
        let mut search = Search::default();
        assert_eq!(search.hold_back(&uids(0..9)), uids(0..0), "no Service is tried");
        assert_eq!(search.refused(&uids(0..4), &BTreeSet::new()), Verdict::Hold(uids(2..4)));
        assert_eq!(search.hold_back(&uids(0..2)), uids(0..0));
        let (new, newest) = (uids(4..5), uids(5..6));
        assert_eq!(search.hold_back(&uids(0..2).union(&new).cloned().collect()), new);
        assert_eq!(search.take_half(), Some(uids(2..4)));
        assert_eq!(search.hold_back(&uids(0..4).union(&newest).cloned().collect()), newest);
        assert_eq!(search.take_half(), Some(uids(4..6)));
        assert_eq!(search.take_half(), None);
        assert!(search.is_over());
    }

    #[test]
    fn a_service_that_is_changed_all_the_time_holds_no_other_back() {
        let mut search = Search::default();
        assert_eq!(search.refused(&uids(0..4), &BTreeSet::new()), Verdict::Hold(uids(2..4)));
        // Service 0 was changed while both were written.
        search.passed(&uids(0..2), &uids(0..1));
        assert!(!search.tries_any_of(&uids(0..2)), "the next half does not wait for it");
        assert_eq!(search.take_half(), Some(uids(2..4)));
        assert_eq!(search.hold_back(&uids(0..4)), uids(0..1));
        search.passed(&uids(2..4), &BTreeSet::new());
        assert_eq!(search.take_half(), Some(uids(0..1)));
        search.passed(&uids(0..1), &uids(0..1));
        assert_eq!(search.take_half(), None);
        assert!(search.is_over());
    }

    #[test]
    fn a_search_is_over_once_the_last_half_went_through() {
        let mut search = Search::default();
        search.refused(&uids(0..4), &BTreeSet::new());
        assert!(search.take_half().is_some());
        assert_eq!(search.take_half(), None);
        assert!(search.is_over());
    }

    #[test]
    fn several_are_all_found() {
        let (_, found) = writes_until_found(50, &[3, 4, 49], &[]);
        assert_eq!(found.len(), 3);
    }
}
