//! The process's clock: Unix time that never goes back.

use std::time::{SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Milliseconds since the Unix epoch, read from the wall clock once and counted on from there by
/// the monotonic clock: a corrected wall clock does not disturb the controller. It is tokio's
/// clock, which is the system's, except in tests that make time stand still for timers, too.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    anchor_ms: u64,
    anchor: Instant,
}

impl Clock {
    /// Reads the wall clock.
    #[must_use]
    pub fn start() -> Self {
        Self { anchor_ms: wall_ms(), anchor: Instant::now() }
    }

    /// One that was started while the wall clock was so much behind.
    #[cfg(test)]
    pub(crate) fn started_behind(ms: u64) -> Self {
        Self { anchor_ms: wall_ms() - ms, anchor: Instant::now() }
    }

    /// Now.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        let gone = u64::try_from(self.anchor.elapsed().as_millis()).unwrap_or(u64::MAX / 2);
        self.anchor_ms.saturating_add(gone)
    }

    /// Now, as people and logs write it, in UTC.
    #[must_use]
    pub fn utc(&self) -> String {
        micro_time(self.now_ms())
    }
}

/// What the wall clock shows now, in milliseconds since the Unix epoch: for what others compare
/// with their clocks. It may have been corrected since the process began.
#[must_use]
pub(crate) fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX / 2)
}

/// A time as people and logs write it, in UTC, to the second.
#[must_use]
pub fn utc_seconds(at_ms: u64) -> String {
    let seconds = i64::try_from(at_ms / 1_000).unwrap_or(i64::MAX);
    let stamp = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX);
    stamp.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A timestamp as Kubernetes writes `MicroTime`.
pub(crate) fn micro_time(now_ms: u64) -> String {
    let millis = i64::try_from(now_ms).unwrap_or(i64::MAX);
    let stamp = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
    stamp.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn micro_time_has_six_digits_and_a_zone() {
        assert_eq!(micro_time(1_700_000_000_123), "2023-11-14T22:13:20.123000Z");
    }

    #[test]
    fn the_clock_does_not_go_back() {
        let clock = Clock::start();
        let first = clock.now_ms();
        assert!(first > 1_600_000_000_000);
        assert!(clock.now_ms() >= first);
    }
}
