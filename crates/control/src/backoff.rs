//! How long to wait after failures.

/// The first wait.
const FIRST_MS: u64 = 1_000;
/// The longest wait: a minute, so that what was mended is noticed soon.
pub const LONGEST_MS: u64 = 60_000;

/// A lock is taken off by people: its waits begin where those of so many failures end, at 8 s.
pub const BEFORE_LOCK: u32 = 3;

/// The wait after this many failures in a row: 1, 2, 4 … 60 seconds, or longer if Azure asks.
#[must_use]
pub fn after(failures: u32, asked_ms: Option<u64>) -> u64 {
    let doubled = FIRST_MS.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(LONGEST_MS).max(asked_ms.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute() {
        let waits: Vec<u64> = (1..=8).map(|n| after(n, None)).collect();
        assert_eq!(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    }

    #[test]
    fn azures_own_wish_is_honoured_when_it_is_longer() {
        assert_eq!(after(1, Some(17_000)), 17_000);
        assert_eq!(after(7, Some(17_000)), 60_000);
    }
}
