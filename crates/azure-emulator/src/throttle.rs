//! Rate limits: Resource Manager's token buckets by subscription, and the network provider's
//! fixed windows of five minutes.

use std::collections::BTreeMap;

use crate::message::{Refusal, refusal};

/// Tokens are counted in thousandths: one token a second is one thousandth a millisecond.
#[derive(Debug, Clone)]
struct Bucket {
    thousandths: u64,
    filled_ms: u64,
}

#[derive(Debug, Clone, Default)]
struct Window {
    started_ms: u64,
    used: u64,
}

/// The state of all limits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Throttle {
    buckets: BTreeMap<(String, &'static str), Bucket>,
    windows: BTreeMap<(String, &'static str), Window>,
}

const WINDOW_MS: u64 = 5 * 60 * 1000;

/// (name, size, tokens a second)
fn bucket_of(method: &str) -> (&'static str, u64, u64) {
    match method {
        "GET" | "HEAD" => ("reads", 250, 25),
        "DELETE" => ("deletes", 200, 10),
        _ => ("writes", 200, 10),
    }
}

impl Throttle {
    /// Takes a token; returns the header that says how many are left.
    pub(crate) fn take(
        &mut self,
        subscription: &str,
        method: &str,
        network: bool,
        now_ms: u64,
    ) -> Result<(String, String), Refusal> {
        let (name, size, rate) = bucket_of(method);
        let subscription = subscription.to_lowercase();
        let full = Bucket { thousandths: size * 1000, filled_ms: now_ms };
        let bucket = self.buckets.entry((subscription.clone(), name)).or_insert(full);
        let gained = now_ms.saturating_sub(bucket.filled_ms) * rate;
        bucket.thousandths = (bucket.thousandths + gained).min(size * 1000);
        bucket.filled_ms = now_ms;
        if bucket.thousandths < 1000 {
            let seconds = (1000 - bucket.thousandths).div_ceil(rate * 1000).max(1);
            let message = format!(
                "Number of '{name}' requests for subscription '{subscription}' exceeded the \
                 limit. Please try again after '{seconds}' seconds."
            );
            let refused = refusal(429, "SubscriptionRequestsThrottled", message);
            return Err(refused.retry_after(seconds));
        }
        if network {
            self.take_network(&subscription, name, now_ms)?;
        }
        let bucket = self
            .buckets
            .entry((subscription, name))
            .or_insert(Bucket { thousandths: size * 1000, filled_ms: now_ms });
        bucket.thousandths -= 1000;
        Ok(remaining(name, bucket.thousandths / 1000))
    }

    fn take_network(&mut self, subscription: &str, name: &str, now_ms: u64) -> Result<(), Refusal> {
        let (side, limit) = if name == "reads" { ("reads", 10_000) } else { ("writes", 1_000) };
        let window = self.windows.entry((subscription.to_owned(), side)).or_default();
        if now_ms.saturating_sub(window.started_ms) >= WINDOW_MS {
            *window = Window { started_ms: now_ms, used: 0 };
        }
        if window.used >= limit {
            let left = WINDOW_MS - (now_ms - window.started_ms);
            let seconds = left.div_ceil(1000).max(1);
            let message = format!(
                "The request is being throttled as the limit has been reached for operation type \
                 {side}. The operation can be retried in {seconds} seconds."
            );
            return Err(refusal(429, "TooManyRequests", message).retry_after(seconds));
        }
        window.used += 1;
        Ok(())
    }
}

/// What is left when nothing is limited: figures clients take for plenty.
pub(crate) fn unlimited(method: &str) -> (String, String) {
    let (name, _, _) = bucket_of(method);
    remaining(name, if name == "reads" { 16_499 } else { 11_999 })
}

fn remaining(name: &str, left: u64) -> (String, String) {
    (format!("x-ms-ratelimit-remaining-subscription-global-{name}"), left.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_and_fills_again() {
        let mut throttle = Throttle::default();
        for _ in 0..200 {
            throttle.take("s", "PUT", false, 5).unwrap();
        }
        let refused = throttle.take("s", "PUT", false, 5).unwrap_err();
        assert_eq!((refused.status, refused.retry_after_s), (429, Some(1)));
        assert!(
            throttle.take("s", "DELETE", false, 5).is_ok(),
            "deletes have a bucket of their own"
        );
        assert!(throttle.take("other", "PUT", false, 5).is_ok());
        assert!(throttle.take("s", "PUT", false, 104).is_err());
        let (name, left) = throttle.take("s", "PUT", false, 1005).unwrap();
        assert_eq!(name, "x-ms-ratelimit-remaining-subscription-global-writes");
        assert_eq!(left, "9");
    }

    #[test]
    fn the_network_window_opens_again_after_five_minutes() {
        let mut throttle = Throttle::default();
        for n in 0..1000 {
            throttle.take("s", "PUT", true, n * 100).unwrap();
        }
        let refused = throttle.take("s", "PUT", true, 100_000).unwrap_err();
        assert_eq!((refused.code.as_str(), refused.retry_after_s), ("TooManyRequests", Some(200)));
        assert!(throttle.take("s", "PUT", true, 300_000).is_ok());
    }
}
