//! When what failed is tried again.

use crate::backoff;

/// The first pause after what may be over in a moment.
pub(crate) const SOON_MS: u64 = 100;

/// The one deadline for retries: how often one thing has failed in a row, and the time before which
/// it is not tried again.
///
/// # Guarantees
/// A success does not end a pause that is under way, nor does the end of a pause forget failures:
/// the next pause is longer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Retry {
    failures: u32,
    until_ms: Option<u64>,
}

impl Retry {
    /// Another failure; gives the pause before the next attempt. Azure and the API server may ask
    /// for a longer one.
    pub fn failed(&mut self, asked_ms: Option<u64>, now_ms: u64) -> u64 {
        let failures = self.count();
        self.pause(backoff::after(failures, asked_ms), now_ms)
    }

    /// As [`Retry::failed`], where one failure says little: a conflict is gone as soon as the watch
    /// has caught up. The first pause is short, the others are one step behind.
    pub fn conflicted(&mut self, asked_ms: Option<u64>, now_ms: u64) -> u64 {
        let wait_ms = match self.count() {
            1 => asked_ms.unwrap_or(0).max(SOON_MS),
            more => backoff::after(more - 1, asked_ms),
        };
        self.pause(wait_ms, now_ms)
    }

    /// Another failure that makes no pause by itself; gives how many there are in a row.
    pub fn count(&mut self) -> u32 {
        self.failures += 1;
        self.failures
    }

    /// The next failure counts as if so many had been before it.
    pub fn count_at_least(&mut self, failures: u32) {
        self.failures = self.failures.max(failures);
    }

    /// It is tried again after so long; gives that.
    fn pause(&mut self, wait_ms: u64, now_ms: u64) -> u64 {
        self.put_off(now_ms + wait_ms);
        wait_ms
    }

    /// It is not tried before a time: that is no failure.
    pub fn put_off(&mut self, until_ms: u64) {
        self.until_ms = Some(until_ms);
    }

    /// What failed before has nothing to do with what comes next.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// It is tried, or is to be tried now.
    pub fn resume(&mut self) {
        self.until_ms = None;
    }

    /// Ends a pause that is over. True if there was one.
    pub fn pass(&mut self, now_ms: u64) -> bool {
        let over = self.is_over(now_ms);
        if over {
            self.resume();
        }
        over
    }

    /// Failures in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// When it is tried again, if that has been put off.
    pub fn next_ms(&self) -> Option<u64> {
        self.until_ms
    }

    /// Whether it may be tried now.
    pub fn is_due(&self, now_ms: u64) -> bool {
        self.until_ms.is_none_or(|until| until <= now_ms)
    }

    /// Whether it has been put off until now, and was not taken up since.
    pub fn is_over(&self, now_ms: u64) -> bool {
        self.until_ms.is_some_and(|until| until <= now_ms)
    }

    /// Whether it has been put off, and was not taken up since.
    pub fn is_put_off(&self) -> bool {
        self.until_ms.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_it_succeeds() {
        let mut retry = Retry::default();
        assert!(retry.is_due(0) && !retry.is_put_off());
        assert_eq!([0, 0, 0].map(|now_ms| retry.failed(None, now_ms)), [1_000, 2_000, 4_000]);
        assert_eq!((retry.failures(), retry.next_ms()), (3, Some(4_000)));
        assert_eq!(retry.failed(Some(17_000), 0), 17_000);
        retry.succeeded();
        assert_eq!((retry.failures(), retry.next_ms()), (0, Some(17_000)));
        assert_eq!(retry.failed(None, 20_000), 1_000);
    }

    #[test]
    fn the_first_pause_after_a_conflict_is_short() {
        let mut retry = Retry::default();
        assert_eq!([0, 0, 0].map(|now_ms| retry.conflicted(None, now_ms)), [100, 1_000, 2_000]);
        assert_eq!(Retry::default().conflicted(Some(2_000), 0), 2_000);
    }

    #[test]
    fn what_is_counted_makes_the_next_pause_longer() {
        let mut retry = Retry::default();
        assert_eq!((retry.count(), retry.next_ms()), (1, None));
        assert_eq!(retry.failed(None, 0), 2_000);
        retry.count_at_least(backoff::BEFORE_LOCK);
        assert_eq!(retry.failed(None, 0), 8_000);
        retry.count_at_least(backoff::BEFORE_LOCK);
        assert_eq!(retry.failed(None, 0), 16_000);
    }

    #[test]
    fn the_end_of_a_pause_forgets_no_failure() {
        let mut retry = Retry::default();
        retry.failed(None, 0);
        assert!(!retry.pass(999) && !retry.is_due(999));
        assert!(retry.is_over(1_000) && retry.pass(1_000));
        assert!(!retry.pass(1_000), "it is over once");
        assert_eq!((retry.failures(), retry.next_ms()), (1, None));
    }
}
