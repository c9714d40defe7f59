//! What a limit lets through: tokens that come back steadily, or so many calls in a span of time.

use std::collections::VecDeque;

/// Parts of a token: a rate in thousandths a second times milliseconds gives millionths.
const TOKEN: u64 = 1_000_000;
/// The least part of the published limit that is believed to be left.
const LEAST_PART: u64 = 16;

/// What one limit lets through, as far as is known.
#[derive(Clone, Debug)]
pub(crate) enum Bucket {
    /// Tokens that come back steadily.
    Tokens(Tokens),
    /// So many calls in any span of time.
    Window(Window),
}

/// A token bucket.
#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    /// Tokens it holds when full.
    size: u64,
    /// The published refill, in thousandths of a token a second.
    published: u64,
    /// The refill that is left to us, as far as is known.
    rate: u64,
    /// What is in it, in millionths.
    level: u64,
    filled_ms: u64,
}

/// A limit over a span.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    published: u64,
    /// What of it is left to us, as far as is known.
    limit: u64,
    span_ms: u64,
    /// When calls were made, and how many.
    log: VecDeque<(u64, u64)>,
    used: u64,
}

impl Tokens {
    pub fn new(size: u64, a_second: u64) -> Self {
        let published = a_second * 1_000;
        Self { size, published, rate: published, level: size * TOKEN, filled_ms: 0 }
    }

    fn fill(&mut self, now_ms: u64) {
        let gained = now_ms.saturating_sub(self.filled_ms).saturating_mul(self.rate);
        self.level = self.level.saturating_add(gained).min(self.size * TOKEN);
        self.filled_ms = self.filled_ms.max(now_ms);
    }

    /// Somebody else takes from the same bucket: a few tokens are left for a collision.
    fn margin(&self) -> u64 {
        if self.rate * 10 < self.published * 9 { 3 } else { 0 }
    }

    fn ready_ms(&self, tokens: u64, now_ms: u64) -> u64 {
        let wanted = (tokens + self.margin()) * TOKEN;
        now_ms + wanted.saturating_sub(self.level).div_ceil(self.rate.max(1))
    }
}

impl Window {
    pub fn new(limit: u64, span_ms: u64) -> Self {
        Self { published: limit, limit, span_ms, log: VecDeque::new(), used: 0 }
    }

    fn forget(&mut self, now_ms: u64) {
        while let Some((at, calls)) = self.log.front()
            && at + self.span_ms <= now_ms
        {
            self.used -= calls;
            self.log.pop_front();
        }
    }

    fn note(&mut self, calls: u64, now_ms: u64) {
        self.used += calls;
        match self.log.back_mut() {
            Some((at, count)) if *at >= now_ms => *count += calls,
            _ => self.log.push_back((now_ms, calls)),
        }
    }

    fn ready_ms(&self, calls: u64, now_ms: u64) -> u64 {
        // More than one span lets through take several.
        let spans = calls.saturating_sub(1) / self.limit.max(1);
        let wanted = calls - spans * self.limit;
        let later_ms = spans * self.span_ms;
        let mut over = (self.used + wanted).saturating_sub(self.limit);
        for (at, count) in &self.log {
            if over == 0 {
                break;
            }
            over = over.saturating_sub(*count);
            if over == 0 {
                return now_ms.max(at + self.span_ms) + later_ms;
            }
        }
        now_ms + later_ms
    }
}

impl Bucket {
    /// Brings it to this moment.
    pub fn pass(&mut self, now_ms: u64) {
        match self {
            Self::Tokens(tokens) => tokens.fill(now_ms),
            Self::Window(window) => window.forget(now_ms),
        }
    }

    /// Calls that may be made now.
    pub fn left(&self) -> u64 {
        match self {
            Self::Tokens(t) => (t.level / TOKEN).saturating_sub(t.margin()),
            Self::Window(w) => w.limit.saturating_sub(w.used),
        }
    }

    /// Calls that may be made at once when nothing was called for long.
    pub fn size(&self) -> u64 {
        match self {
            Self::Tokens(t) => t.size,
            Self::Window(w) => w.limit,
        }
    }

    /// What is left to us of the published limit, in hundredths.
    pub fn share_percent(&self) -> u64 {
        match self {
            Self::Tokens(t) => t.rate * 100 / t.published.max(1),
            Self::Window(w) => w.limit.saturating_mul(100) / w.published.max(1),
        }
    }

    /// Whether less is believed to be left than was published, and nobody but a refusal says so:
    /// of tokens, Azure says in each answer how many there are.
    pub fn is_reduced(&self) -> bool {
        matches!(self, Self::Window(w) if w.limit < w.published)
    }

    /// All calls but those under way went through: the limit is no smaller. True when that is
    /// more than was believed.
    pub fn confirm(&mut self, under_way: usize) -> bool {
        let Self::Window(w) = self else { return false };
        let passed = w.used.saturating_sub(u64::try_from(under_way).unwrap_or(u64::MAX));
        let more = passed.min(w.published) > w.limit;
        w.limit = w.limit.max(passed).min(w.published);
        more
    }

    /// When so many calls may be made.
    pub fn ready_ms(&self, calls: u64, now_ms: u64) -> u64 {
        match self {
            Self::Tokens(tokens) => tokens.ready_ms(calls, now_ms),
            Self::Window(window) => window.ready_ms(calls, now_ms),
        }
    }

    /// A call is made.
    pub fn take(&mut self, now_ms: u64) {
        match self {
            Self::Tokens(tokens) => tokens.level = tokens.level.saturating_sub(TOKEN),
            Self::Window(window) => window.note(1, now_ms),
        }
    }

    /// A call was not made after all.
    pub fn put_back(&mut self) {
        match self {
            Self::Tokens(tokens) => {
                tokens.level = (tokens.level + TOKEN).min(tokens.size * TOKEN);
            }
            Self::Window(window) => {
                if let Some((_, count)) = window.log.back_mut().filter(|(_, c)| *c > 0) {
                    *count -= 1;
                    window.used -= 1;
                }
            }
        }
    }

    /// Azure says how many calls are left.
    pub fn set_left(&mut self, left: u64) {
        match self {
            Self::Tokens(tokens) => {
                tokens.size = tokens.size.max(left);
                tokens.level = left * TOKEN;
            }
            Self::Window(_) => {}
        }
    }

    /// Azure says that no more than this are left.
    pub fn cap_left(&mut self, left: u64, now_ms: u64) {
        match self {
            Self::Tokens(tokens) => tokens.level = tokens.level.min(left * TOKEN),
            Self::Window(window) => {
                let ours = window.limit.saturating_sub(window.used);
                if ours > left {
                    window.note(ours - left, now_ms);
                }
            }
        }
    }

    /// Azure refused a call: less is left to us than was thought.
    pub fn shrink(&mut self) {
        match self {
            Self::Tokens(t) => {
                t.rate = (t.rate / 4 * 3).max(t.published / LEAST_PART);
                t.level = 0;
            }
            Self::Window(w) => {
                w.limit = w.used.min(w.limit).max(w.published / LEAST_PART);
            }
        }
    }

    /// The time that Azure asked for is over: a span begins anew.
    pub fn reopen(&mut self) {
        match self {
            Self::Tokens(t) => t.level = t.level.max((1 + t.margin()) * TOKEN),
            Self::Window(w) => {
                w.log.clear();
                w.used = 0;
            }
        }
    }

    /// After how much time without a refusal more is tried again.
    pub fn grows_after_ms(&self) -> u64 {
        match self {
            Self::Tokens(_) => 10_000,
            Self::Window(window) => window.span_ms,
        }
    }

    /// A little more is tried again.
    pub fn grow(&mut self) {
        match self {
            Self::Tokens(t) => t.rate = (t.rate + t.published / 20).min(t.published),
            Self::Window(w) => {
                w.limit = w.limit.saturating_add(w.published / 10).min(w.published);
            }
        }
    }

    /// The refill that was measured, in thousandths a second: others' calls are taken off it.
    pub fn measured(&mut self, rate: u64) {
        if let Self::Tokens(t) = self {
            let rate = rate.clamp(t.published / LEAST_PART, t.published);
            t.rate = t.rate.midpoint(rate);
        }
    }
}
