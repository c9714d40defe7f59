//! Keeps a token until it had better be replaced.

use super::{CredentialError, Retry, Token, TokenSource};
use crate::clock::Clock;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A token is replaced this long before it expires, or at half its life if that is shorter.
const EARLY_MS: u64 = 5 * 60 * 1000;
/// A token this close to its end is not given any more: the request has yet to travel.
const MARGIN_MS: u64 = 30 * 1000;
/// After a failure the same answer is given for this long, so that many callers make one request.
const FAILURE_MS: u64 = 2 * 1000;
/// The longest back-off, and the wait while an update of the metadata service lasts: Microsoft's
/// guidance for managed identities backs off from 2 s to at most 60 s, and MSAL asks every 10 s for
/// the 70 s that an update may take.
const LONGEST_BACK_OFF_MS: u64 = 60 * 1000;
const UPDATING_MS: u64 = 10 * 1000;
/// While the old token is still good, a failed refresh is tried again after this long.
const REFRESH_AGAIN_MS: u64 = 30 * 1000;

/// A source that remembers. Many callers at a time make one request.
///
/// # Guarantees
/// While the token is good callers get it at once: another one is asked for beside them, so that a
/// login endpoint that does not answer holds up no call.
#[derive(Debug)]
pub struct Cached(Arc<Memory>);

/// What callers share with the request that is made for them.
#[derive(Debug)]
struct Memory {
    inner: Arc<dyn TokenSource>,
    clock: Clock,
    known: Mutex<Known>,
    flight: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug, Default)]
struct Known {
    token: Option<Token>,
    refresh_ms: u64,
    failure: Option<Failure>,
}

/// The last attempt, which gave no token.
#[derive(Debug)]
struct Failure {
    error: CredentialError,
    /// Failures in a row.
    count: u32,
    /// Until then it is the answer, and the source is not asked.
    until_ms: u64,
}

impl Cached {
    /// Remembers what `inner` gives.
    #[must_use]
    pub fn new(inner: Arc<dyn TokenSource>, clock: Clock) -> Self {
        let flight = Arc::default();
        Self(Arc::new(Memory { inner, clock, known: Mutex::default(), flight }))
    }

    async fn fetch(&self) -> Result<Token, CredentialError> {
        let Self(memory) = self;
        if let Some(ready) = memory.ready() {
            return ready;
        }
        let good = memory.known().good(memory.clock.now_ms()).cloned();
        if let Some(token) = good {
            self.replace_soon();
            return Ok(token);
        }
        let _one_at_a_time = memory.flight.lock().await;
        match memory.ready() {
            Some(ready) => ready,
            None => memory.ask().await,
        }
    }

    /// Asks for another token, unless that is under way.
    fn replace_soon(&self) {
        let Ok(one_at_a_time) = Arc::clone(&self.0.flight).try_lock_owned() else { return };
        let memory = Arc::clone(&self.0);
        tokio::spawn(async move {
            let _one_at_a_time = one_at_a_time;
            // Another request may have ended since. What comes of this one is remembered.
            if memory.ready().is_none() {
                let _ = memory.ask().await;
            }
        });
    }
}

impl Memory {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ready(&self) -> Option<Result<Token, CredentialError>> {
        self.known().ready(self.clock.now_ms())
    }

    async fn ask(&self) -> Result<Token, CredentialError> {
        let outcome = self.inner.token().await;
        self.known().take_in(outcome, self.clock.now_ms())
    }
}

impl Known {
    /// The token, if it holds for some time yet.
    fn good(&self, now_ms: u64) -> Option<&Token> {
        self.token.as_ref().filter(|token| now_ms + MARGIN_MS < token.expires_ms)
    }

    fn ready(&self, now_ms: u64) -> Option<Result<Token, CredentialError>> {
        let good = self.good(now_ms);
        if let Some(token) = good
            && now_ms < self.refresh_ms
        {
            return Some(Ok(token.clone()));
        }
        let failure = self.failure.as_ref()?;
        (good.is_none() && now_ms < failure.until_ms).then(|| Err(failure.error.clone()))
    }

    fn take_in(
        &mut self,
        outcome: Result<Token, CredentialError>,
        now_ms: u64,
    ) -> Result<Token, CredentialError> {
        match outcome {
            Ok(token) => {
                self.refresh_ms = refresh_ms(&token, now_ms);
                self.failure = None;
                self.token = Some(token.clone());
                Ok(token)
            }
            Err(error) => {
                let count = self.failure.as_ref().map_or(0, |failure| failure.count) + 1;
                let wait_ms = wait_ms(error.retry, count);
                let until_ms = now_ms + wait_ms;
                self.failure = Some(Failure { error: error.clone(), count, until_ms });
                if let Some(token) = self.good(now_ms).cloned() {
                    tracing::warn!("the old access token is used on: {error}");
                    self.refresh_ms = now_ms + wait_ms.max(REFRESH_AGAIN_MS);
                    return Ok(token);
                }
                self.token = None;
                Err(error)
            }
        }
    }
}

/// How long the source is left alone after so many failures in a row.
fn wait_ms(retry: Retry, count: u32) -> u64 {
    let doubled = FAILURE_MS << count.saturating_sub(1).min(5);
    match retry {
        Retry::Shortly => FAILURE_MS,
        Retry::BackOff => doubled.min(LONGEST_BACK_OFF_MS),
        Retry::Updating => UPDATING_MS,
    }
}

fn refresh_ms(token: &Token, now_ms: u64) -> u64 {
    let life = token.expires_ms.saturating_sub(now_ms);
    let early = now_ms + (life / 2).max(life.saturating_sub(EARLY_MS));
    token.refresh_ms.map_or(early, |asked| asked.min(early))
}

impl TokenSource for Cached {
    fn token(&self) -> BoxFuture<'_, Result<Token, CredentialError>> {
        self.fetch().boxed()
    }

    fn forget(&self, token: &Token) {
        let mut known = self.0.known();
        // Another caller may have replaced it already.
        if known.token.as_ref().is_some_and(|t| t.secret == token.secret) {
            known.token = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Secret;
    use super::*;

    const HOUR: u64 = 3_600_000;

    fn token(name: &str, expires_ms: u64) -> Token {
        Token { secret: Secret::new(name), expires_ms, refresh_ms: None }
    }

    fn error() -> CredentialError {
        CredentialError {
            attempt: "asking".into(),
            endpoint: "there".into(),
            reason: "no".into(),
            code: None,
            retry: Retry::Shortly,
            advice: "Wait".into(),
        }
    }

    /// The waits that follow one another when the source is asked as soon as it may be.
    fn waits(retry: Retry, count: usize) -> Vec<u64> {
        let mut known = Known::default();
        let mut now_ms = HOUR;
        let step = |_| {
            let error = CredentialError { retry, ..error() };
            known.take_in(Err(error), now_ms).unwrap_err();
            let asked_ms = now_ms;
            while known.ready(now_ms).is_some() {
                now_ms += 500;
            }
            now_ms - asked_ms
        };
        (0..count).map(step).collect()
    }

    #[test]
    fn a_source_that_is_busy_is_asked_less_and_less_often() {
        let seconds = [2, 4, 8, 16, 32, 60, 60].map(|s| s * 1000);
        assert_eq!(waits(Retry::BackOff, 7), seconds);
        assert_eq!(waits(Retry::Shortly, 3), [2_000; 3]);
    }

    #[test]
    fn a_source_that_is_being_updated_is_asked_every_ten_seconds() {
        // Seven attempts see the end of an update, which lasts 70 s at most.
        assert_eq!(waits(Retry::Updating, 7), [10_000; 7]);
    }

    #[test]
    fn a_token_ends_the_back_off() {
        let mut known = Known::default();
        let busy = || CredentialError { retry: Retry::BackOff, ..error() };
        for now_ms in [0, 10_000, 20_000] {
            known.take_in(Err(busy()), now_ms).unwrap_err();
        }
        assert!(known.ready(27_999).is_some());
        known.take_in(Ok(token("a", 2 * HOUR)), 28_000).unwrap();
        // Nothing is left of it when the token has been refused and forgotten.
        known.token = None;
        known.take_in(Err(busy()), HOUR).unwrap_err();
        assert!(known.ready(HOUR + 1_999).is_some());
        assert!(known.ready(HOUR + 2_000).is_none());
    }

    /// Gives a token that is to be replaced at once, then another one when told so.
    #[derive(Debug, Default)]
    struct Slow {
        asked: std::sync::atomic::AtomicU64,
        go: tokio::sync::Notify,
    }

    impl TokenSource for Slow {
        fn token(&self) -> BoxFuture<'_, Result<Token, CredentialError>> {
            let number = self.asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            async move {
                let expires_ms = Clock::start().now_ms() + HOUR;
                if number == 0 {
                    return Ok(Token { refresh_ms: Some(0), ..token("first", expires_ms) });
                }
                self.go.notified().await;
                Ok(token("second", expires_ms))
            }
            .boxed()
        }
    }

    #[tokio::test]
    async fn nobody_waits_for_a_login_endpoint_that_is_silent_while_the_token_is_good() {
        let slow = Arc::new(Slow::default());
        let cached = Cached::new(Arc::clone(&slow) as Arc<dyn TokenSource>, Clock::start());
        let given = async || {
            let wait = std::time::Duration::from_secs(5);
            let token = tokio::time::timeout(wait, cached.token()).await;
            token.expect("the token is given at once").unwrap().secret.expose().to_owned()
        };
        for _ in 0..3 {
            assert_eq!(given().await, "first");
            tokio::task::yield_now().await;
        }
        assert_eq!(slow.asked.load(std::sync::atomic::Ordering::SeqCst), 2, "one at a time");
        slow.go.notify_one();
        while given().await != "second" {
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn a_token_is_kept_until_shortly_before_its_end() {
        let mut known = Known::default();
        known.take_in(Ok(token("a", HOUR)), 0).unwrap();
        assert!(known.ready(HOUR - EARLY_MS - 1).is_some());
        assert!(known.ready(HOUR - EARLY_MS).is_none());
    }

    #[test]
    fn a_failed_refresh_keeps_the_old_token_while_it_is_good() {
        let mut known = Known::default();
        known.take_in(Ok(token("a", HOUR)), 0).unwrap();
        let soon = HOUR - EARLY_MS;
        assert_eq!(known.take_in(Err(error()), soon).unwrap().secret.expose(), "a");
        assert!(known.ready(soon + 1).unwrap().is_ok());
        assert!(known.ready(soon + REFRESH_AGAIN_MS).is_none());
        assert!(known.take_in(Err(error()), HOUR - MARGIN_MS).is_err());
    }

    #[test]
    fn a_failure_is_told_to_all_who_ask_at_once_and_then_tried_again() {
        let mut known = Known::default();
        assert!(known.take_in(Err(error()), 1_000).is_err());
        assert_eq!(known.ready(1_000 + FAILURE_MS - 1), Some(Err(error())));
        assert_eq!(known.ready(1_000 + FAILURE_MS), None);
    }

    #[test]
    fn a_short_life_is_halved_and_the_issuer_may_ask_for_earlier() {
        assert_eq!(refresh_ms(&token("a", 60_000), 0), 30_000);
        let asked = Token { refresh_ms: Some(HOUR / 2), ..token("a", HOUR) };
        assert_eq!(refresh_ms(&asked, 0), HOUR / 2);
    }

    #[test]
    fn secrets_do_not_show() {
        assert!(!format!("{:?}", token("hush", 1)).contains("hush"));
    }
}
