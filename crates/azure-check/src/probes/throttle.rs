//! What answers say of the calls that are left.

use crate::assumption::{Observed, Verdict};
use crate::exchange::Exchange;

const OF_SUBSCRIPTION: &str = "x-ms-ratelimit-remaining-subscription-";

/// Name of the bucket and how many calls it holds (Azure documentation, "Understand how Azure
/// Resource Manager throttles requests").
const BUCKETS: [(&str, u64); 3] = [("reads", 250), ("writes", 200), ("deletes", 200)];

fn bucket_of(method: &str) -> (&'static str, u64) {
    match method {
        "GET" => BUCKETS[0],
        "DELETE" => BUCKETS[2],
        _ => BUCKETS[1],
    }
}

fn none(why: &str) -> Observed {
    Observed { verdict: Verdict::NotTried(why.to_owned()), evidence: Vec::new() }
}

/// The answers that Azure gave without refusing the call.
fn taken(all: &[Exchange]) -> impl Iterator<Item = (usize, &Exchange)> {
    all.iter().enumerate().filter(|(_, exchange)| exchange.answer.is_taken())
}

/// Each answer says what is left of its bucket of the subscription.
pub(crate) fn of_subscription(all: &[Exchange]) -> Observed {
    let has = |exchange: &Exchange| {
        let (name, _) = bucket_of(&exchange.request.method);
        exchange.answer.headers.contains_key(&format!("{OF_SUBSCRIPTION}{name}"))
    };
    let (with, without): (Vec<_>, Vec<_>) = taken(all).partition(|(_, exchange)| has(exchange));
    let of = with.len() + without.len();
    let places = |of: &[(usize, &Exchange)]| of.iter().map(|(at, _)| *at).take(3).collect();
    match (with.is_empty(), without.first()) {
        (_, Some((_, first))) => Observed {
            verdict: Verdict::Differs(format!(
                "{} of {of} answers do not say it, {} for one",
                without.len(),
                first.request.short()
            )),
            evidence: places(&without),
        },
        (true, None) => none("Azure took no call"),
        (false, None) => Observed {
            verdict: Verdict::Confirmed(Some(format!("{of} of {of}"))),
            evidence: places(&with),
        },
    }
}

/// No answer says that more is left than a bucket holds.
pub(crate) fn buckets(all: &[Exchange]) -> Observed {
    let mut most: [Option<(usize, u64)>; BUCKETS.len()] = [None; BUCKETS.len()];
    for (at, exchange) in taken(all) {
        for (bucket, (name, _)) in BUCKETS.iter().enumerate() {
            let header = exchange.answer.headers.get(&format!("{OF_SUBSCRIPTION}{name}"));
            let left = header.and_then(|left| left.parse::<u64>().ok());
            if let Some(left) = left.filter(|left| most[bucket].is_none_or(|(_, m)| *left > m)) {
                most[bucket] = Some((at, left));
            }
        }
    }
    let seen: Vec<_> = BUCKETS.iter().zip(most).filter_map(|(b, most)| Some((b, most?))).collect();
    if seen.is_empty() {
        return none("no answer says what is left");
    }
    let text: Vec<String> =
        seen.iter().map(|((name, size), (_, left))| format!("{name} {left} of {size}")).collect();
    let text = format!("most that was left: {}", text.join(", "));
    let more = seen.iter().any(|((_, size), (_, left))| left > size);
    let verdict = if more { Verdict::Differs(text) } else { Verdict::Confirmed(Some(text)) };
    Observed { verdict, evidence: seen.iter().map(|(_, (at, _))| *at).collect() }
}

/// Writes of Microsoft.Compute say what is left of its own limits.
pub(crate) fn of_compute(all: &[Exchange]) -> Observed {
    let writes = taken(all).filter(|(_, exchange)| {
        exchange.request.method == "PUT" && exchange.request.path.contains("/Microsoft.Compute/")
    });
    let (with, without): (Vec<_>, Vec<_>) = writes.partition(|(_, exchange)| {
        exchange.answer.headers.keys().any(|name| name.starts_with("microsoft.compute/"))
    });
    match (with.first(), without.first()) {
        (None, None) => none("Microsoft.Compute took no write"),
        (_, Some((at, _))) => Observed {
            verdict: Verdict::Differs("no x-ms-ratelimit-remaining-resource".to_owned()),
            evidence: vec![*at],
        },
        (Some((at, first)), None) => {
            let own = |(name, _): &(&String, &String)| name.starts_with("microsoft.compute/");
            let shown: Vec<String> = first
                .answer
                .headers
                .iter()
                .filter(own)
                .map(|(name, left)| format!("{name} {left}"))
                .collect();
            Observed { verdict: Verdict::Confirmed(Some(shown.join(", "))), evidence: vec![*at] }
        }
    }
}
