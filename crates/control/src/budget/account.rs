//! What is known about one limit: what is left, what is under way, whether Azure has closed it.

use super::Limits;
use super::bucket::Bucket;
use crate::backoff;
use std::collections::BTreeSet;

/// How soon to look again where the next call waits for an answer.
const LOOK_AGAIN_MS: u64 = 1_000;
/// Calls that may be under way at once before Azure has answered the first: the process before may
/// have left less than the limit.
const UNANSWERED: usize = 10;
/// Over how much time a refill is measured.
const MEASURE_MS: u64 = 3_000;

/// Whether calls go through freely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    /// They do.
    Open,
    /// A few at a time, until one is answered: nothing is known of what was used up before.
    Unanswered,
    /// One at a time, until one is answered: after Azure has closed it.
    Trying,
}

/// What Azure said about how many calls are left, and when.
#[derive(Clone, Copy, Debug)]
struct Heard {
    at_ms: u64,
    left: u64,
    number: u64,
}

/// One limit's account.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub bucket: Bucket,
    gate: Gate,
    /// Azure asked for no call before.
    pub closed_until_ms: u64,
    /// Whether Azure said itself how long it stays closed.
    told: bool,
    /// Calls made so far: the number of the last one.
    made: u64,
    under_way: BTreeSet<u64>,
    /// Refusals in a row.
    strikes: u32,
    /// Calls up to this number were made before the last refusal was known.
    known: u64,
    /// Since when nothing was refused, or when more was last tried.
    calm_ms: u64,
    heard: Option<Heard>,
    /// Calls that may be under way at once while more is tried than is believed to be left.
    seeking: Option<usize>,
    /// Calls that Azure refused since the start.
    pub throttled: u64,
}

impl Account {
    /// Where limits were published, they are believed once Azure has answered.
    pub fn new(bucket: Bucket, start: Limits, now_ms: u64) -> Self {
        let gate = match start {
            Limits::Published => Gate::Unanswered,
            Limits::Unknown => Gate::Open,
        };
        Self {
            bucket,
            gate,
            closed_until_ms: 0,
            told: false,
            made: 0,
            under_way: BTreeSet::new(),
            strikes: 0,
            known: 0,
            calm_ms: now_ms,
            heard: None,
            seeking: None,
            throttled: 0,
        }
    }

    /// Brings it to this moment.
    pub fn pass(&mut self, now_ms: u64) {
        self.bucket.pass(now_ms);
        if self.closed_until_ms != 0 && self.closed_until_ms <= now_ms {
            if self.told {
                self.bucket.reopen();
            }
            self.closed_until_ms = 0;
        }
        if self.calm_ms + self.bucket.grows_after_ms() <= now_ms {
            self.calm_ms = now_ms;
            self.bucket.grow();
        }
        if !self.is_at_the_edge() {
            self.seeking = None;
        }
    }

    /// What is left for calls that are worth more than usual ones. Small, so that little is lost
    /// where none come.
    pub fn reserve(&self) -> u64 {
        (self.bucket.size() / 50).min(20)
    }

    /// Whether what is believed to be left is used up, and may be less than there is.
    fn is_at_the_edge(&self) -> bool {
        self.bucket.is_reduced() && self.bucket.left() <= self.reserve()
    }

    /// Calls that may be under way at once beyond what is believed to be left: the first alone,
    /// then for each that went through one more. So a limit that was learnt in bad times is
    /// forgotten within seconds once they are over, and one that still holds refuses no more calls
    /// than were gained.
    fn trials(&self) -> Option<usize> {
        let alone = self.under_way.is_empty();
        self.seeking.or_else(|| (self.is_at_the_edge() && alone).then_some(1))
    }

    /// Whether a call may be made now that leaves so many for others; else when to ask again.
    pub fn ask(&self, spare: u64, now_ms: u64) -> Result<(), u64> {
        if now_ms < self.closed_until_ms {
            return Err(self.closed_until_ms);
        }
        if self.gate == Gate::Trying && !self.under_way.is_empty() {
            return Err(now_ms + LOOK_AGAIN_MS);
        }
        if self.gate == Gate::Unanswered && self.under_way.len() >= UNANSWERED {
            return Err(now_ms + LOOK_AGAIN_MS);
        }
        // A trial is worth more than what is kept for others: without it nothing goes on.
        let spare = if self.gate == Gate::Trying { 0 } else { spare };
        if self.bucket.left() > spare {
            return Ok(());
        }
        // What may as well be made later tries nothing.
        if spare <= self.reserve() && self.is_at_the_edge() {
            let free = self.trials().is_some_and(|trials| self.under_way.len() < trials);
            return if free { Ok(()) } else { Err(now_ms + LOOK_AGAIN_MS) };
        }
        let ready_ms = self.ready_ms(1, spare, now_ms);
        if ready_ms <= now_ms { Err(now_ms + LOOK_AGAIN_MS) } else { Err(ready_ms) }
    }

    /// When so many calls may have been made.
    pub fn ready_ms(&self, calls: u64, spare: u64, now_ms: u64) -> u64 {
        self.bucket.ready_ms(calls + spare, now_ms).max(self.closed_until_ms)
    }

    /// A call is made; returns its number.
    pub fn take(&mut self, now_ms: u64) -> u64 {
        if self.gate != Gate::Trying {
            self.seeking = self.trials();
        }
        self.bucket.take(now_ms);
        self.made += 1;
        self.under_way.insert(self.made);
        self.made
    }

    /// A call did not reach Azure.
    pub fn not_sent(&mut self, number: u64) {
        self.under_way.remove(&number);
        self.bucket.put_back();
    }

    /// A call has ended, it is not known how.
    pub fn lost(&mut self, number: u64) {
        self.under_way.remove(&number);
    }

    /// Azure let a call through; true when this opens the way for others.
    pub fn passed(&mut self, number: u64) -> bool {
        self.under_way.remove(&number);
        if number <= self.known {
            return false;
        }
        self.strikes = 0;
        if let Some(trials) = &mut self.seeking
            && self.bucket.confirm(self.under_way.len())
        {
            *trials += 1;
        }
        let opened = std::mem::replace(&mut self.gate, Gate::Open) != Gate::Open;
        opened || self.seeking.is_some() || (self.is_at_the_edge() && self.under_way.is_empty())
    }

    /// Azure says how many calls are left after this one.
    pub fn hear(&mut self, number: u64, left: u64, now_ms: u64) {
        // What has been sent since, and what was on the way, it need not have counted yet.
        let before = self.under_way.range(..number).count();
        let after = self.made - number;
        let uncounted = after + u64::try_from(before).unwrap_or(0);
        self.bucket.set_left(left.saturating_sub(uncounted));
        let Some(last) = self.heard else {
            self.heard = Some(Heard { at_ms: now_ms, left, number });
            return;
        };
        let took_ms = now_ms.saturating_sub(last.at_ms);
        if number < last.number || took_ms < MEASURE_MS {
            return;
        }
        // A bucket that is nearly full overflows: what comes in shows only below.
        let half = self.bucket.size() / 2;
        if left < half && last.left < half {
            let gained = (left + (number - last.number)).saturating_sub(last.left);
            self.bucket.measured(gained * 1_000_000 / took_ms);
        }
        self.heard = Some(Heard { at_ms: now_ms, left, number });
    }

    /// Azure refused a call: too many.
    pub fn refused(&mut self, number: u64, asked_ms: Option<u64>, now_ms: u64) {
        self.under_way.remove(&number);
        self.bucket.put_back();
        self.throttled += 1;
        self.calm_ms = now_ms;
        self.heard = None;
        self.seeking = None;
        if number > self.known {
            // Those that were sent before this answer came say the same thing again.
            self.known = self.made;
            self.strikes += 1;
            self.bucket.shrink();
        }
        let until_ms = now_ms + backoff::after(self.strikes.max(1), asked_ms);
        if until_ms > self.closed_until_ms {
            self.closed_until_ms = until_ms;
            self.told = asked_ms.is_some();
        }
        self.gate = Gate::Trying;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::bucket::Window;

    #[test]
    fn a_span_begins_anew_only_after_a_time_that_azure_asked_for() {
        let left_after = |asked_ms| {
            let bucket = Bucket::Window(Window::new(4, 60_000));
            let mut account = Account::new(bucket, Limits::Unknown, 0);
            account.take(0);
            let number = account.take(0);
            account.refused(number, asked_ms, 0);
            let closed_until_ms = account.closed_until_ms;
            account.pass(closed_until_ms);
            account.bucket.left()
        };
        assert_eq!((left_after(None), left_after(Some(1_000))), (0, 1));
    }
}
