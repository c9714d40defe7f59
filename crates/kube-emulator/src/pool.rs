//! Free numbers (addresses, ports) as ranges, so that taking and giving back is cheap however
//! many are in use.

use std::collections::{BTreeMap, BTreeSet};

/// Numbers from a first to a last one, some of them taken.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    bounds: (u128, u128),
    /// Start of each free range to its end, both inclusive.
    free: BTreeMap<u128, u128>,
    /// The number after the one taken last: a number given back is not handed out at once, as
    /// little as the real allocator, which picks at random, would.
    next: u128,
}

impl Pool {
    pub(crate) fn new(first: u128, last: u128) -> Self {
        let free = if first <= last { BTreeMap::from([(first, last)]) } else { BTreeMap::new() };
        Self { bounds: (first, last), free, next: first }
    }

    pub(crate) fn contains(&self, number: u128) -> bool {
        (self.bounds.0..=self.bounds.1).contains(&number)
    }

    pub(crate) fn is_free(&self, number: u128) -> bool {
        self.range_of(number).is_some()
    }

    /// A free number that is not among `except`, without taking it.
    pub(crate) fn find(&self, except: &BTreeSet<u128>) -> Option<u128> {
        let around = self.range_of(self.next).map(|(_, end)| (self.next, end));
        let after = self.free.range(self.next..).map(|(start, end)| (*start, *end));
        let before = self.free.range(..self.next).map(|(start, end)| (*start, *end));
        let mut ranges = around.into_iter().chain(after).chain(before);
        ranges.find_map(|(start, end)| (start..=end).find(|number| !except.contains(number)))
    }

    /// Takes a number; nothing happens if it is taken already or out of bounds.
    pub(crate) fn take(&mut self, number: u128) {
        let Some((start, end)) = self.range_of(number) else { return };
        self.free.remove(&start);
        if start < number {
            self.free.insert(start, number - 1);
        }
        if number < end {
            self.free.insert(number + 1, end);
        }
        self.next = if number < self.bounds.1 { number + 1 } else { self.bounds.0 };
    }

    /// Gives a number back.
    pub(crate) fn release(&mut self, number: u128) {
        if !self.contains(number) || self.is_free(number) {
            return;
        }
        let left = number.checked_sub(1).and_then(|before| self.range_of(before));
        let right = self.free.get(&(number + 1)).copied();
        if right.is_some() {
            self.free.remove(&(number + 1));
        }
        let start = left.map_or(number, |(start, _)| start);
        self.free.insert(start, right.unwrap_or(number));
    }

    fn range_of(&self, number: u128) -> Option<(u128, u128)> {
        let (start, end) = self.free.range(..=number).next_back()?;
        (number <= *end).then_some((*start, *end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_and_given_back() {
        let mut pool = Pool::new(10, 13);
        let none = BTreeSet::new();
        for want in 10..=13 {
            let found = pool.find(&none).unwrap();
            assert_eq!(found, want);
            pool.take(found);
        }
        assert_eq!(pool.find(&none), None);
        pool.release(11);
        pool.release(12);
        assert_eq!(pool.free.len(), 1, "neighbours join: {:?}", pool.free);
        assert_eq!(pool.find(&BTreeSet::from([11])), Some(12));
        pool.release(10);
        pool.release(13);
        assert_eq!(pool.free, BTreeMap::from([(10, 13)]));
    }

    #[test]
    fn a_number_given_back_is_not_handed_out_at_once() {
        let mut pool = Pool::new(1, 100);
        pool.take(1);
        pool.release(1);
        assert_eq!(pool.find(&BTreeSet::new()), Some(2));
    }
}
