//! Randomness, where the outside asks for it: request ids, identities and jitter.

use ring::rand::{SecureRandom, SystemRandom};

fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0u8; N];
    // Without a random source ids are still well formed; they only stop being unique.
    if SystemRandom::new().fill(&mut bytes).is_err() {
        tracing::warn!("the operating system gives no random numbers");
    }
    bytes
}

/// A UUID of version 4.
#[must_use]
pub fn uuid() -> String {
    let mut raw = u128::from_be_bytes(bytes::<16>());
    raw &= !(0xf << 76) & !(0x3 << 62);
    raw |= (0x4 << 76) | (0x2 << 62);
    let hex = format!("{raw:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// The value lengthened by up to a fifth ([`lease::settings::longest_spread`]), so that many
/// clients do not come back at once.
#[must_use]
pub fn jittered(ms: u64) -> u64 {
    let share = u64::from(u16::from_be_bytes(bytes::<2>()));
    ms.saturating_add(ms / 5 * share / u64::from(u16::MAX))
}

/// Waits between tries: doubling from the first to the cap, with jitter.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    first_ms: u64,
    cap_ms: u64,
    next_ms: u64,
}

impl Pause {
    /// Starts at `first_ms` and never exceeds `cap_ms` by more than the jitter.
    #[must_use]
    pub fn new(first_ms: u64, cap_ms: u64) -> Self {
        Self { first_ms, cap_ms, next_ms: first_ms }
    }

    /// The next wait, at least `floor_ms` (what a server asked for).
    pub fn next_ms(&mut self, floor_ms: u64) -> u64 {
        let ms = self.next_ms.max(floor_ms);
        self.next_ms = self.next_ms.saturating_mul(2).min(self.cap_ms);
        jittered(ms)
    }

    /// Things went well: the next wait is the first again.
    pub fn reset(&mut self) {
        self.next_ms = self.first_ms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_has_version_four_and_differs_from_the_next() {
        let id = uuid();
        assert_eq!(id.len(), 36);
        assert_eq!(&id[14..15], "4");
        assert!(matches!(&id[19..20], "8" | "9" | "a" | "b"));
        assert_ne!(id, uuid());
    }

    #[test]
    fn pauses_double_up_to_the_cap_and_start_over() {
        let mut pause = Pause::new(100, 300);
        let waits: Vec<u64> = (0..4).map(|_| pause.next_ms(0)).collect();
        for (wait, base) in waits.iter().zip([100, 200, 300, 300]) {
            assert!((base..=base + base / 5).contains(wait), "{wait} for {base}");
        }
        assert!(pause.next_ms(10_000) >= 10_000);
        pause.reset();
        assert!(pause.next_ms(0) <= 120);
    }
}
