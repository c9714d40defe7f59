//! A limit of Azure's that other clients of the subscription have used up: Azure refuses every call
//! that counts against it, those that are under way together all at once, until the next calls are
//! granted.

use crate::path::limits_of;
use crate::random::Random;
use crate::refusal::refusal;
use crate::stage::Stage;
use arm::{Method, Request};
use azure_emulator::FaultKind;

/// The error code where Resource Manager's limit is used up, and where a provider's is.
const CODES: [&str; 2] = ["SubscriptionRequestsThrottled", "TooManyRequests"];
/// For how long, in milliseconds.
const LASTS_MS: [u64; 3] = [1_000, 1_000, 2_000];
/// The same where Azure does not say it: the first pause that a client makes by itself.
const UNTOLD_MS: u64 = 1_000;

/// How Azure says for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Header,
    Message,
    Nothing,
}

/// A limit of reads that is used up, from the first read of the network on.
#[derive(Clone, Debug)]
pub(crate) struct Shortage {
    /// Which of the limits of a call it is: Resource Manager's is the first.
    which: usize,
    told: Told,
    lasts_ms: u64,
    /// Its name, and until when, once it has begun.
    begun: Option<(String, u64)>,
}

impl Shortage {
    /// Draws which limit it is, for how long, and how Azure says so.
    pub(crate) fn draw(random: &mut Random) -> Self {
        let which = usize::from(random.permille(500));
        let told = *random.pick(&[Told::Header, Told::Message, Told::Nothing]);
        let lasts_ms = *random.pick(&LASTS_MS);
        let lasts_ms = if told == Told::Nothing { UNTOLD_MS } else { lasts_ms };
        Self { which, told, lasts_ms, begun: None }
    }

    /// How a call is refused that counts against these limits.
    fn refuses(&mut self, limits: &[String; 2], now_ms: u64) -> Option<FaultKind> {
        let until_ms = now_ms + self.lasts_ms;
        let (limit, until_ms) =
            self.begun.get_or_insert_with(|| (limits[self.which].clone(), until_ms));
        if now_ms >= *until_ms || !limits.contains(limit) {
            return None;
        }
        let seconds = (*until_ms - now_ms).div_ceil(1_000);
        let message = match self.told {
            Told::Message => format!("The operation can be retried in {seconds} seconds."),
            Told::Header | Told::Nothing => "too many requests".to_owned(),
        };
        let header = (self.told == Told::Header).then_some(seconds);
        Some(refusal(429, CODES[self.which], &message, header))
    }
}

impl Stage {
    /// How Azure refuses a call that counts against a limit which is used up.
    pub(crate) fn used_up(&mut self, request: &Request) -> Option<FaultKind> {
        let now_ms = self.now_ms;
        let shortage = self.shortage.as_mut().filter(|_| request.method == Method::Get)?;
        let limits = limits_of(request);
        let begins = limits[1].contains("microsoft.network");
        if shortage.begun.is_none() && !begins {
            return None;
        }
        shortage.refuses(&limits, now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_calls_against_one_limit_are_refused_for_a_while() {
        let limits = |of: &str| ["reads of s".to_owned(), format!("reads of {of} of s")];
        let [network, compute] = ["microsoft.network", "microsoft.compute"].map(limits);
        let shortage =
            |which| Shortage { which, told: Told::Nothing, lasts_ms: 1_000, begun: None };
        for (which, both) in [(0, true), (1, false)] {
            let mut shortage = shortage(which);
            assert!(shortage.refuses(&network, 50).is_some());
            assert!(shortage.refuses(&network, 1_049).is_some());
            assert_eq!(shortage.refuses(&compute, 60).is_some(), both);
            assert_eq!(shortage.refuses(&network, 1_050), None);
        }
    }
}
