//! Finding the Service that Azure refuses a batch for.
//!
//! A refused batch is halved: one half is held back while the other is tried. A half that goes
//! through lets the next one in; a half that is refused is halved again, until one Service is left.

use model::ServiceUid;
use std::collections::BTreeSet;

/// Halves that wait for their turn, the next one last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    waiting: Vec<BTreeSet<ServiceUid>>,
}

/// What a refusal leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This Service is at fault.
    Guilty(ServiceUid),
    /// These are held back for now; the rest is tried.
    Hold(BTreeSet<ServiceUid>),
    /// No Service has part in it.
    Nobody,
}

impl Search {
    /// A batch on account of these Services was refused.
    pub fn refused(&mut self, batch: &BTreeSet<ServiceUid>) -> Verdict {
        let mut services = batch.iter();
        match (services.next(), services.next()) {
            (None, _) => Verdict::Nobody,
            (Some(one), None) => Verdict::Guilty(one.clone()),
            (Some(_), Some(_)) => {
                let held: BTreeSet<ServiceUid> =
                    batch.iter().skip(batch.len().div_ceil(2)).cloned().collect();
                self.waiting.push(held.clone());
                Verdict::Hold(held)
            }
        }
    }

    /// The lane is free: the next half's turn.
    pub fn take_half(&mut self) -> Option<BTreeSet<ServiceUid>> {
        self.waiting.pop()
    }

    /// Whether the search is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uids(range: std::ops::Range<u32>) -> BTreeSet<ServiceUid> {
        range.map(|n| ServiceUid::new(format!("{n:04}"))).collect()
    }

    /// Plays a lane: a batch is refused while it holds a guilty Service.
    fn writes_until_found(all: u32, guilty: &[u32]) -> (usize, BTreeSet<ServiceUid>) {
        let guilty: BTreeSet<ServiceUid> =
            guilty.iter().map(|n| ServiceUid::new(format!("{n:04}"))).collect();
        let mut search = Search::default();
        let (mut batch, mut found, mut writes) = (uids(0..all), BTreeSet::new(), 0);
        loop {
            writes += 1;
            if batch.is_disjoint(&guilty) {
                batch = BTreeSet::new();
            } else {
                match search.refused(&batch) {
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
            let (writes, found) = writes_until_found(50, &[guilty]);
            assert_eq!(found.len(), 1);
            assert!(writes <= 13, "{writes} writes to find Service {guilty}");
        }
    }

    #[test]
    fn several_are_all_found() {
        let (_, found) = writes_until_found(50, &[3, 4, 49]);
        assert_eq!(found.len(), 3);
    }
}
