//! Random numbers that are the same on every machine and in every release.

/// A generator: xoshiro256** (Blackman and Vigna), seeded by SplitMix64.
///
/// # Guarantees
/// The same seed gives the same numbers everywhere. A fork depends on the seed and its name only,
/// so that a further fork changes none of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    seed: u64,
    state: [u64; 4],
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Random {
    /// Starts from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        let state = std::array::from_fn(|_| split_mix(&mut state));
        Self { seed, state }
    }

    /// A generator of its own for one purpose, whatever was drawn here before.
    #[must_use]
    pub fn fork(&self, name: &str) -> Self {
        // FNV-1a: short, and fixed for ever.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let mut state = self.seed ^ hash;
        Self::new(split_mix(&mut state))
    }

    /// Any number.
    pub fn draw(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number below `sides`; 0 when there are none.
    pub fn below(&mut self, sides: u64) -> u64 {
        let wide = u128::from(self.draw()) * u128::from(sides);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// Yes in so many cases of a thousand.
    pub fn permille(&mut self, chance: u64) -> bool {
        self.below(1_000) < chance
    }

    /// One of a list.
    ///
    /// # Panics
    /// The list is empty.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        let at = usize::try_from(self.below(list.len() as u64)).unwrap_or(0);
        &list[at]
    }

    /// One of a list, if there is one.
    pub fn choose<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        if list.is_empty() { None } else { Some(self.pick(list)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_published_generators() {
        let mut state = 1_234_567;
        let got: Vec<u64> = (0..3).map(|_| split_mix(&mut state)).collect();
        assert_eq!(
            got,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
        let mut random = Random { seed: 0, state: [1, 2, 3, 4] };
        let got: Vec<u64> = (0..6).map(|_| random.draw()).collect();
        let want = [
            11_520,
            0,
            1_509_978_240,
            1_215_971_899_390_074_240,
            1_216_172_134_540_287_360,
            607_988_272_756_665_600,
        ];
        assert_eq!(got, want);
    }

    #[test]
    fn a_fork_does_not_depend_on_what_was_drawn() {
        let mut random = Random::new(7);
        let before = random.fork("nodes");
        random.draw();
        assert_eq!(random.fork("nodes"), before);
        assert_ne!(random.fork("pods"), before);
    }

    #[test]
    fn numbers_stay_below_their_bound() {
        let mut random = Random::new(1);
        let drawn: std::collections::BTreeSet<u64> = (0..200).map(|_| random.below(6)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
        assert_eq!(random.below(0), 0);
        assert_eq!(random.between(4, 4), 4);
    }
}
