//! How operations answer, how long they take, and when a list shows what was written.

use crate::assumption::{Observed, Tried, Verdict};
use crate::estate;
use crate::exchange::{ASYNC, Exchange, Part};
use crate::lab::Lab;
use arm::operation::LONGEST_RUN_MS;
use arm::path::{Collection, Contract, list_path};
use arm::{Condition, Method};
use model::Group;
use serde_json::Value;

/// Id of the assumption about a PUT that has ended beside its operation.
pub(crate) const BESIDE: &str = "succeeded-beside-operation";

/// How long a list may lack what was written.
const LIST_LAG_MS: u64 = 10_000;
/// How long it is asked for it.
const LIST_PATIENCE_MS: u64 = 120_000;
/// Between two lists.
const LIST_PAUSE_MS: u64 = 500;

fn none(why: &str) -> Observed {
    Observed { verdict: Verdict::NotTried(why.to_owned()), evidence: Vec::new() }
}

/// The first exchanges that break a rule, or else the first that keep it.
fn judged(cases: Vec<(usize, Option<String>)>, nothing: &str) -> Observed {
    let broken: Vec<usize> = cases.iter().filter(|(_, b)| b.is_some()).map(|(at, _)| *at).collect();
    let why = cases.iter().find_map(|(_, broken)| broken.clone());
    match why {
        _ if cases.is_empty() => none(nothing),
        Some(why) => Observed {
            verdict: Verdict::Differs(format!("{why} ({} of {})", broken.len(), cases.len())),
            evidence: broken.into_iter().take(3).collect(),
        },
        None => Observed {
            verdict: Verdict::Confirmed(Some(format!("{} of {}", cases.len(), cases.len()))),
            evidence: cases.into_iter().map(|(at, _)| at).take(3).collect(),
        },
    }
}

/// The same of the exchanges that a rule is about; `broken` says how one breaks it.
fn each(
    all: &[Exchange],
    is_case: impl Fn(&Exchange) -> bool,
    broken: impl Fn(&Exchange) -> Option<String>,
    nothing: &str,
) -> Observed {
    let cases = all.iter().enumerate().filter(|(_, exchange)| is_case(exchange));
    judged(cases.map(|(at, exchange)| (at, broken(exchange))).collect(), nothing)
}

fn lacks(exchange: &Exchange, header: &str) -> bool {
    !exchange.answer.headers.contains_key(header)
}

/// A PUT that has not ended names its operation in `Azure-AsyncOperation`.
pub(crate) fn of_put(all: &[Exchange]) -> Observed {
    let running = |exchange: &Exchange| {
        let (request, answer) = (&exchange.request, &exchange.answer);
        let ended = matches!(answer.state(), Some("Succeeded") | None) && answer.status != 202;
        request.method == "PUT" && answer.is_taken() && !ended
    };
    let broken = |exchange: &Exchange| {
        lacks(exchange, ASYNC)
            .then(|| format!("{} names no Azure-AsyncOperation", exchange.request.short()))
    };
    each(all, running, broken, "each PUT had ended when it was answered")
}

/// A DELETE that has not ended is a 202 with `Azure-AsyncOperation` and `Location`.
pub(crate) fn of_delete(all: &[Exchange]) -> Observed {
    let running =
        |exchange: &Exchange| exchange.request.method == "DELETE" && exchange.answer.status == 202;
    let broken = |exchange: &Exchange| {
        let missing: Vec<&str> =
            [ASYNC, "location"].into_iter().filter(|name| lacks(exchange, name)).collect();
        (!missing.is_empty())
            .then(|| format!("{} has no {}", exchange.request.short(), missing.join(", ")))
    };
    each(all, running, broken, "each DELETE had ended when it was answered")
}

/// A poll of `Azure-AsyncOperation` is a 200 whose body has `status`.
pub(crate) fn polls(all: &[Exchange]) -> Observed {
    let named: Vec<&String> =
        all.iter().filter_map(|exchange| exchange.answer.headers.get(ASYNC)).collect();
    let polled = |exchange: &Exchange| {
        exchange.part == Part::Poll
            && named.iter().any(|path| **path == exchange.request.path)
            && (200..300).contains(&exchange.answer.status)
    };
    let broken = |exchange: &Exchange| {
        let status = exchange.answer.body.as_ref().and_then(|body| body["status"].as_str());
        (status.is_none() || exchange.answer.status != 200)
            .then(|| format!("{} without status", exchange.answer.short()))
    };
    each(all, polled, broken, "no operation was followed")
}

/// A PUT answered `Succeeded` beside `Azure-AsyncOperation` is at its end.
pub(crate) fn beside(all: &[Exchange]) -> Observed {
    let broken = |exchange: &Exchange| {
        let body = exchange.answer.body.as_ref();
        let status = body.and_then(|body| body["status"].as_str()).unwrap_or_default();
        (status != "Succeeded")
            .then(|| format!("the operation says \"{status}\" ({})", exchange.answer.short()))
    };
    let nothing = "no PUT was answered Succeeded beside Azure-AsyncOperation";
    each(all, |exchange| exchange.of == BESIDE, broken, nothing)
}

/// An operation ends within the hour for which it is polled.
pub(crate) fn longest(all: &[Exchange]) -> Observed {
    let mut longest: Option<(usize, u64)> = None;
    for (at, first) in all.iter().enumerate() {
        if first.part == Part::Poll || first.request.method == "GET" {
            continue;
        }
        let polls = all[at + 1..].iter().take_while(|next| next.part == Part::Poll);
        let Some(last) = polls.last() else { continue };
        let took = (last.t_ms + last.took_ms).saturating_sub(first.t_ms);
        if longest.is_none_or(|(_, most)| took > most) {
            longest = Some((at, took));
        }
    }
    let Some((at, took)) = longest else { return none("no operation was followed") };
    let text = format!("the longest, {}, took {took} ms", all[at].request.short());
    let verdict = match took < LONGEST_RUN_MS {
        true => Verdict::Confirmed(Some(text)),
        false => Verdict::Differs(text),
    };
    Observed { verdict, evidence: vec![at] }
}

/// A list shows within ten seconds what a PUT made.
pub(crate) fn list_lag(lab: &mut Lab<'_>) -> Tried {
    let id = lab.site().id(estate::PIP, "listed-ip");
    let body = estate::address_body(lab.site(), "Standard");
    lab.make(&id, body)?;
    let made_ms = lab.now_ms();
    let site = lab.site();
    let (subscription, group) = (site.subscription.clone(), Group::new(&site.group));
    let path = list_path(Contract::Nodes, &subscription, &group, Collection::PublicIps);
    loop {
        let waited_ms = lab.now_ms().saturating_sub(made_ms);
        let mut next = Some(path.clone());
        while let Some(page) = next {
            let done = lab.ask_path(Method::Get, page, None);
            if !done.came.is_taken() {
                return Err(done.blocked("GET publicIPAddresses"));
            }
            let body = done.came.body.unwrap_or_default();
            let items = body["value"].as_array().into_iter().flatten();
            let shown = items
                .filter_map(|item| item["id"].as_str())
                .any(|shown| shown.eq_ignore_ascii_case(id.as_str()));
            if shown {
                let text = format!("shown {waited_ms} ms after the end of the PUT");
                return Ok(match waited_ms <= LIST_LAG_MS {
                    true => Verdict::Confirmed(Some(text)),
                    false => Verdict::Differs(text),
                });
            }
            next = body["nextLink"].as_str().map(str::to_owned);
        }
        if waited_ms > LIST_PATIENCE_MS {
            return Ok(Verdict::Differs(format!("not shown after {waited_ms} ms")));
        }
        lab.wait(LIST_PAUSE_MS);
    }
}

/// A DELETE of what does not stand is answered as done.
pub(crate) fn delete_absent(lab: &mut Lab<'_>) -> Tried {
    let id = lab.site().id(estate::PIP, "never-made");
    let done = lab.ask(Method::Delete, &id, Condition::None, None);
    if let Some(why) = super::beside_the_point(&done.came) {
        return Ok(Verdict::NotTried(why));
    }
    Ok(match done.came.status {
        204 => Verdict::AS_ASSUMED,
        _ => Verdict::Differs(done.came.short()),
    })
}

/// Ids are compared without regard to letter case.
pub(crate) fn letter_case(lab: &mut Lab<'_>) -> Tried {
    let id = estate::free_address(lab)?;
    let upper = model::ResourceId::new(id.as_str().to_uppercase());
    let done = lab.ask(Method::Get, &upper, Condition::None, None);
    let same = |body: &Value| {
        body["id"].as_str().is_some_and(|found| found.eq_ignore_ascii_case(id.as_str()))
    };
    match (done.came.is_taken(), &done.came.body) {
        (true, Some(body)) if same(body) => Ok(Verdict::AS_ASSUMED),
        _ => super::taken(&done),
    }
}
