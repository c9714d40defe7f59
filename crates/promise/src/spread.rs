//! Services that come together are spread over the load balancers that they may stand on: each
//! goes where the fewest rules are, and none to one that is closed to new Services. One that stands
//! stays, so this is a promise about coming.

use crate::Broken;
use crate::asks::Asks;
use crate::case::{Case, Fate, Service};
use crate::estate::{Estate, parts, text};
use crate::names;
use crate::placement::{self, has_frontend};
use serde_json::Value;
use std::collections::BTreeMap;

/// A Service that has come, the load balancers that it may stand on, and its rules.
struct Newcomer<'c> {
    service: &'c Service<'c>,
    eligible: Vec<String>,
    /// See [`is_free`].
    free: bool,
    rules: usize,
}

/// Judges the Services that have come since `earlier`; no other Service has changed meanwhile.
///
/// The order in which they came is not known. The last of those on a load balancer found no other
/// with fewer rules; so a load balancer is too full only where that is true of none of them.
pub(crate) fn judge(case: &Case<'_>, earlier: &Estate<'_>, broken: &mut Vec<Broken>) {
    let mut by_balancer: BTreeMap<&str, Vec<Newcomer<'_>>> = BTreeMap::new();
    for (service, asks) in case.served() {
        if stands(earlier, service) {
            continue;
        }
        for (id, balancer) in case.estate.balancers().filter(|(_, b)| has_frontend(b, service)) {
            if placement::is_closed(case, id) {
                let text = format!("it has come to {id}, which takes no new Services");
                broken.push(service.broken("spread", text));
            }
            by_balancer.entry(id).or_default().push(Newcomer {
                service,
                eligible: placement::eligible(case, service, asks),
                free: is_free(asks),
                rules: own_rules(balancer, service),
            });
        }
    }
    // A place was kept for those that were refused in the end, on a load balancer that they may
    // stand on, or on the one that has the address which they name.
    let slack = |balancer: &String| -> usize {
        let refused = case.services.iter().filter_map(|s| refused(s).map(|asks| (s, asks)));
        let here = refused.filter(|(service, asks)| {
            !is_free(asks) || placement::eligible(case, service, asks).contains(balancer)
        });
        here.map(|(_, asks)| most_rules(asks)).sum()
    };
    for (id, newcomers) in by_balancer {
        let all = rules(case, id);
        let emptier = |newcomer: &Newcomer<'_>| {
            let found = all.saturating_sub(newcomer.rules);
            let mut may = newcomer.eligible.iter();
            may.find(|other| found > rules(case, other) + slack(other)).cloned()
        };
        let last = newcomers.iter().find(|n| !n.free || emptier(n).is_none());
        if let (None, Some(other)) = (last, newcomers.first().and_then(emptier)) {
            let text = format!(
                "it has come to {id}, which has {all} rules; {other} has {}",
                rules(case, &other)
            );
            broken.push(newcomers[0].service.broken("spread", text));
        }
    }
}

/// Rules of a load balancer; one that is not there has none.
fn rules(case: &Case<'_>, id: &str) -> usize {
    case.estate.get(id).map_or(0, |b| parts(b, "loadBalancingRules").count())
}

/// Whether a Service had a part on any load balancer.
fn stands(estate: &Estate<'_>, service: &Service<'_>) -> bool {
    let mut balancers = estate.balancers();
    balancers.any(|(_, b)| placement::has_part(b, service))
}

fn own_rules(balancer: &Value, service: &Service<'_>) -> usize {
    let own = |rule: &&Value| names::is_of(text(&rule["name"]), &service.base);
    parts(balancer, "loadBalancingRules").filter(own).count()
}

fn refused<'c>(service: &'c Service<'_>) -> Option<&'c Asks> {
    match &service.fate {
        Fate::Denied(asks, _) => Some(asks),
        Fate::Unwanted | Fate::Refused(_) | Fate::Served(_) => None,
    }
}

/// Whether an address is free to choose: a Service that names one goes where that is.
fn is_free(asks: &Asks) -> bool {
    asks.pinned.is_empty() && asks.public_ip.name.is_empty()
}

fn most_rules(asks: &Asks) -> usize {
    asks.ports.len() * asks.families.len()
}
