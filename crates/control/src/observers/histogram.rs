//! Counts of values by how large they were.

/// How many values fell between bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    bounds: &'static [u64],
    counts: Vec<u64>,
    sum: u64,
}

impl Histogram {
    /// An empty one with these upper bounds, which rise.
    #[must_use]
    pub fn new(bounds: &'static [u64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0 }
    }

    /// Takes in a value.
    pub fn add(&mut self, value: u64) {
        let slot = self.bounds.partition_point(|bound| *bound < value);
        self.counts[slot] += 1;
        self.sum = self.sum.saturating_add(value);
    }

    /// The upper bounds.
    #[must_use]
    pub fn bounds(&self) -> &'static [u64] {
        self.bounds
    }

    /// How many values were at most as large as each bound, and larger than the one before; the
    /// last entry counts those larger than all.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// All values together.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_the_largest_value_of_its_own_slot() {
        let mut histogram = Histogram::new(&[10, 20]);
        for value in [0, 10, 11, 20, 21, 1_000] {
            histogram.add(value);
        }
        assert_eq!((histogram.counts(), histogram.sum()), (&[2, 2, 2][..], 1_062));
    }
}
