//! Rate limits: Resource Manager's token buckets of a principal and of all principals together,
//! the network provider's fixed windows of five minutes, the compute provider's bucket.

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

/// The provider that a call is passed on to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Provider {
    Network,
    Compute,
    Other,
}

/// The state of all limits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Throttle {
    buckets: BTreeMap<(String, &'static str), Bucket>,
    windows: BTreeMap<(String, &'static str), Window>,
}

type Headers = Vec<(String, String)>;

const WINDOW_MS: u64 = 5 * 60 * 1000;
/// All principals of a subscription together have so many times what one has.
const GLOBAL_FACTOR: u64 = 15;
/// Updates of virtual machines in a subscription: bucket, refill a second.
const COMPUTE: (u64, u64) = (1_500, 25);

/// (name, size, tokens a second)
fn bucket_of(method: &str) -> (&'static str, u64, u64) {
    match method {
        "GET" | "HEAD" => ("reads", 250, 25),
        "DELETE" => ("deletes", 200, 10),
        _ => ("writes", 200, 10),
    }
}

impl Bucket {
    fn full(size: u64, now_ms: u64) -> Self {
        Bucket { thousandths: size * 1000, filled_ms: now_ms }
    }

    fn fill(&mut self, size: u64, rate: u64, now_ms: u64) {
        let gained = now_ms.saturating_sub(self.filled_ms) * rate;
        self.thousandths = (self.thousandths + gained).min(size * 1000);
        self.filled_ms = now_ms;
    }

    /// Whole seconds until there is a token; 0 when there is one.
    fn wait_s(&self, rate: u64) -> u64 {
        match self.thousandths {
            1000.. => 0,
            less => (1000 - less).div_ceil(rate * 1000).max(1),
        }
    }
}

impl Throttle {
    /// Takes a token of each limit, or of none; returns the headers that say how many are left.
    pub(crate) fn take(
        &mut self,
        subscription: &str,
        method: &str,
        provider: Provider,
        now_ms: u64,
    ) -> Result<Headers, Refusal> {
        let (name, size, rate) = bucket_of(method);
        let subscription = subscription.to_lowercase();
        let key = (subscription.clone(), name);
        let bucket = self.buckets.entry(key.clone()).or_insert(Bucket::full(size, now_ms));
        bucket.fill(size, rate, now_ms);
        let seconds = bucket.wait_s(rate);
        if seconds > 0 {
            let message = format!(
                "Number of '{name}' requests for subscription '{subscription}' exceeded the \
                 limit. Please try again after '{seconds}' seconds."
            );
            let refused = refusal(429, "SubscriptionRequestsThrottled", message);
            return Err(refused.retry_after(seconds));
        }
        let mut headers = match provider {
            Provider::Network => {
                self.take_network(&subscription, name, now_ms)?;
                Headers::new()
            }
            Provider::Compute if name != "reads" => self.take_compute(&subscription, now_ms)?,
            Provider::Compute | Provider::Other => Headers::new(),
        };
        if let Some(bucket) = self.buckets.get_mut(&key) {
            bucket.thousandths -= 1000;
            // There is one principal: what the others have of the global limit is all there.
            let left = bucket.thousandths / 1000;
            headers.extend(remaining(name, left, left + size * (GLOBAL_FACTOR - 1)));
        }
        Ok(headers)
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

    fn take_compute(&mut self, subscription: &str, now_ms: u64) -> Result<Headers, Refusal> {
        let (size, rate) = COMPUTE;
        let key = (subscription.to_owned(), "compute");
        let bucket = self.buckets.entry(key).or_insert(Bucket::full(size, now_ms));
        bucket.fill(size, rate, now_ms);
        let seconds = bucket.wait_s(rate);
        if seconds > 0 {
            let message = "The server rejected the request because too many requests have been \
                           received for this subscription.";
            return Err(refusal(429, "TooManyRequests", message).retry_after(seconds));
        }
        bucket.thousandths -= 1000;
        let left = format!("Microsoft.Compute/UpdateVMSubscription;{}", bucket.thousandths / 1000);
        Ok(vec![("x-ms-ratelimit-remaining-resource".to_owned(), left)])
    }
}

/// What is left when nothing is limited: figures clients take for plenty.
pub(crate) fn unlimited(method: &str) -> Headers {
    let (name, _, _) = bucket_of(method);
    let left = if name == "reads" { 16_499 } else { 11_999 };
    remaining(name, left, left)
}

fn remaining(name: &str, own: u64, global: u64) -> Headers {
    let header = |scope: &str, left: u64| {
        (format!("x-ms-ratelimit-remaining-subscription-{scope}{name}"), left.to_string())
    };
    vec![header("", own), header("global-", global)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use Provider::{Compute, Network, Other};

    #[test]
    fn a_bucket_empties_and_fills_again() {
        let mut throttle = Throttle::default();
        for _ in 0..200 {
            throttle.take("s", "PUT", Other, 5).unwrap();
        }
        let refused = throttle.take("s", "PUT", Other, 5).unwrap_err();
        assert_eq!((refused.status, refused.retry_after_s), (429, Some(1)));
        assert!(
            throttle.take("s", "DELETE", Other, 5).is_ok(),
            "deletes have a bucket of their own"
        );
        assert!(throttle.take("other", "PUT", Other, 5).is_ok());
        assert!(throttle.take("s", "PUT", Other, 104).is_err());
        let headers = throttle.take("s", "PUT", Other, 1005).unwrap();
        let expected = [
            ("x-ms-ratelimit-remaining-subscription-writes", "9"),
            ("x-ms-ratelimit-remaining-subscription-global-writes", "2809"),
        ];
        assert_eq!(headers, expected.map(|(name, left)| (name.to_owned(), left.to_owned())));
    }

    #[test]
    fn the_network_window_opens_again_after_five_minutes() {
        let mut throttle = Throttle::default();
        for n in 0..1000 {
            throttle.take("s", "PUT", Network, n * 100).unwrap();
        }
        let refused = throttle.take("s", "PUT", Network, 100_000).unwrap_err();
        assert_eq!((refused.code.as_str(), refused.retry_after_s), ("TooManyRequests", Some(200)));
        assert!(throttle.take("s", "PUT", Network, 300_000).is_ok());
    }

    #[test]
    fn compute_says_what_is_left_of_its_own() {
        let mut throttle = Throttle::default();
        let headers = throttle.take("s", "PUT", Compute, 0).unwrap();
        let own = "Microsoft.Compute/UpdateVMSubscription;1499";
        assert_eq!(headers[0], ("x-ms-ratelimit-remaining-resource".to_owned(), own.to_owned()));
        assert_eq!(throttle.take("s", "GET", Compute, 0).unwrap().len(), 2);
    }
}
