//! One run: every assumption tried, everything made deleted, and what was seen put together.

use crate::assumption::{Assumption, Observed, Verdict, Way};
use crate::exchange::{Exchange, Part};
use crate::lab::{Client, Lab};
use crate::probes::refusals;
use crate::report::{Latency, Left, Line, Report, Shown};
use crate::site::Site;
use std::collections::BTreeMap;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Checked {
    /// For people and programs.
    pub report: Report,
    /// Every request and its answer.
    pub exchanges: Vec<Exchange>,
}

/// Tries assumptions, in their order, and deletes what that made. A stopped client ends the trying,
/// never the deleting.
pub fn check(client: &mut dyn Client, site: &Site, chosen: &[&'static Assumption]) -> Checked {
    let mut lab = Lab::new(client, site.clone());
    let mut found: BTreeMap<&str, Observed> = BTreeMap::new();
    for assumption in chosen {
        lab.begin(assumption.id);
        if let Some(observed) = attempt(&mut lab, assumption) {
            lab.tell(assumption, &observed.verdict);
            found.insert(assumption.id, observed);
        }
    }
    let interrupted = lab.is_halted();
    let left = lab.clean();
    let left: Vec<Left> =
        left.into_iter().map(|(id, why)| Left { id: id.as_str().to_owned(), why }).collect();
    for assumption in chosen {
        if let Way::Seen(judge) = assumption.way {
            found.insert(assumption.id, judge(lab.exchanges()));
        }
    }
    let latencies = latencies(lab.durations());
    let exchanges = lab.into_exchanges();
    let lines: Vec<Line> = chosen
        .iter()
        .filter_map(|assumption| Some(line(assumption, found.remove(assumption.id)?, &exchanges)))
        .collect();
    let count = |name: &str| lines.iter().filter(|line| line.verdict == name).count();
    let report = Report {
        run: site.run.clone(),
        group: site.group.clone(),
        location: site.location.clone(),
        confirmed: count("confirmed"),
        differs: count("differs"),
        not_tried: count("not tried"),
        interrupted,
        calls: exchanges.len(),
        assumptions: lines,
        latencies,
        left,
    };
    Checked { report, exchanges }
}

/// What an assumption's own calls show; nothing of one that is judged by the calls of others.
fn attempt(lab: &mut Lab<'_>, assumption: &Assumption) -> Option<Observed> {
    let before = lab.exchanges().len();
    let not_tried =
        |why: String| Observed { verdict: Verdict::NotTried(why), evidence: Vec::new() };
    let tried = match assumption.way {
        Way::Seen(_) => return None,
        Way::Untried(why) => return Some(not_tried(why.to_owned())),
        _ if lab.is_halted() => return Some(not_tried("the run was interrupted".to_owned())),
        Way::Probe(probe) => probe(lab),
        Way::Refusal(refusal) => refusals::attempt(lab, refusal),
    };
    let verdict = tried.unwrap_or_else(|blocked| Verdict::NotTried(blocked.0));
    let own = |(_, exchange): &(usize, &Exchange)| {
        exchange.part == Part::Probe && exchange.of == assumption.id
    };
    let all = lab.exchanges().iter().enumerate().skip(before);
    Some(Observed { verdict, evidence: all.filter(own).map(|(at, _)| at).collect() })
}

fn line(assumption: &Assumption, observed: Observed, exchanges: &[Exchange]) -> Line {
    let shown = observed.evidence.iter().filter_map(|at| exchanges.get(*at));
    Line {
        id: assumption.id,
        assumed: assumption.assumed,
        facts: assumption.section.link(),
        verdict: observed.verdict.name(),
        why: observed.verdict.why().map(str::to_owned),
        seen: shown.map(Shown::of).collect(),
    }
}

/// Nearest rank of what was measured, by method and kind.
fn latencies(durations: &[(String, u64)]) -> Vec<Latency> {
    let mut by_label: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (label, took_ms) in durations {
        by_label.entry(label).or_default().push(*took_ms);
    }
    let latency = |(label, mut all): (&str, Vec<u64>)| {
        all.sort_unstable();
        let rank = |percent: usize| all[(all.len() * percent).div_ceil(100).max(1) - 1];
        Latency {
            request: label.to_owned(),
            count: all.len(),
            p50_ms: rank(50),
            p90_ms: rank(90),
            longest_ms: rank(100),
        }
    };
    by_label.into_iter().map(latency).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks() {
        let all: Vec<(String, u64)> = (1..=10).map(|ms| ("PUT x".to_owned(), ms)).collect();
        let found = latencies(&all);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].p50_ms, found[0].p90_ms, found[0].longest_ms), (5, 9, 10));
        assert_eq!(latencies(&all[..1])[0].p50_ms, 1);
    }
}
