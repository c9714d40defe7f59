//! The overview: how many Services are how far, what waits on what, what calls came to.

use super::parts::{self, Turn, cell, table, url, url_of_page};
use super::{Place, backends, frame};
use crate::html::Html;
use crate::span;
use crate::view::{Budget, Calls, Head, ServiceLine, Snapshot, matches, rank};
use model::report::State;

/// The tiles, in their order.
const TILES: [State; 7] = [
    State::Programmed,
    State::Waiting,
    State::RefusedServing,
    State::Held,
    State::Refused,
    State::Rejected,
    State::Removing,
];

/// Services on a page.
const SIZE: usize = 50;

/// What the reader wants to see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverviewQuery {
    /// Part of a name, namespace or address.
    pub wanted: String,
    /// Only Services in this state.
    pub state: Option<State>,
    /// Which page of the list, from 0.
    pub page: usize,
}

/// The page.
#[must_use]
pub fn overview(
    head: &Head,
    snapshot: &Snapshot,
    calls: (Calls, &[Budget]),
    query: &OverviewQuery,
) -> String {
    frame(head, Place::Overview, "Overview", |h| {
        h.leaf("h1", &[], "Overview");
        states(h, snapshot, query);
        services(h, head, snapshot, query);
        figures(h, head, calls);
    })
}

fn states(h: &mut Html, snapshot: &Snapshot, query: &OverviewQuery) {
    h.tag("ul", &[("class", "tiles"), ("aria-label", "Services by state")], |h| {
        for state in TILES {
            let count = snapshot.count(state);
            let chosen = query.state == Some(state);
            let to = if chosen { "" } else { state.word() };
            let url = url("/", &[("q", &query.wanted), ("state", to)]);
            let mut attributes = vec![("href", url.as_str())];
            if chosen {
                attributes.push(("aria-current", "true"));
            }
            let class = if count == 0 { "none" } else { state.word() };
            h.tag("li", &[("class", class)], |h| {
                h.tag("a", &attributes, |h| {
                    h.tag("span", &[("class", "figure")], |h| h.number(count as u64));
                    parts::state(h, state);
                });
            });
        }
    });
}

fn services(h: &mut Html, head: &Head, snapshot: &Snapshot, query: &OverviewQuery) {
    let of_state = |s: &&ServiceLine| query.state.is_none_or(|state| s.state == state);
    let found = snapshot.services.iter().filter(of_state);
    let mut found: Vec<&ServiceLine> = found.filter(|s| matches(s, &query.wanted)).collect();
    found.sort_by_key(|s| rank(s.state));
    h.tag("section", &[("aria-labelledby", "services")], |h| {
        let state = query.state.map(State::word).unwrap_or_default();
        h.tag("div", &[("class", "bar")], |h| {
            h.leaf("h2", &[("id", "services")], "Services");
            parts::search(h, "/", &query.wanted, &[("state", state)]);
        });
        if found.is_empty() {
            let text = match snapshot.services.is_empty() {
                true => "There is no Service of type LoadBalancer.",
                false => "No Service is like that.",
            };
            h.leaf("p", &[("class", "empty")], text);
            return;
        }
        let url = url_of_page("/", &[("q", &query.wanted), ("state", state)]);
        let turn =
            Turn { url: &url, page: query.page, size: SIZE, total: found.len(), noun: "Services" };
        let shown = found.get(turn.range()).unwrap_or_default();
        let mut columns = vec!["Service", "State", "Since", "Addresses", "Load balancer", "Reason"];
        // Only where health probes are read.
        let probed = match snapshot.services.iter().any(|service| service.backends.is_some()) {
            true => Probed::Yes,
            false => Probed::No,
        };
        if probed == Probed::Yes {
            columns.insert(5, "Backends up");
        }
        table(h, "Services", &columns, shown, |h, service| row(h, service, probed, head.now_ms));
        turn.pager(h);
    });
}

/// Whether health probes are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Probed {
    Yes,
    No,
}

fn row(h: &mut Html, service: &ServiceLine, probed: Probed, now_ms: u64) {
    cell(h, "Service", |h| parts::service_link(h, &service.name));
    cell(h, "State", |h| parts::state(h, service.state));
    match service.since_ms {
        Some(since) => cell(h, "Since", |h| span::since(h, since, now_ms)),
        None => parts::nothing(h),
    }
    match service.addresses.as_slice() {
        [] => parts::nothing(h),
        list => cell(h, "Addresses", |h| {
            h.leaf("span", &[("class", "address")], &list.join(", "));
        }),
    }
    match &service.balancer {
        Some(name) => cell(h, "Load balancer", |h| h.text(name)),
        None => parts::nothing(h),
    }
    match (probed, &service.backends) {
        (Probed::No, _) => {}
        (Probed::Yes, None) => parts::nothing(h),
        (Probed::Yes, Some(found)) => cell(h, "Backends up", |h| backends::brief(h, found)),
    }
    let faults = service.faults.iter().map(|f| match &f.key {
        Some(key) => format!("{key}: {}", f.text),
        None => f.text.clone(),
    });
    let lines: Vec<String> = faults.chain(service.waits.iter().cloned()).collect();
    match lines.split_first() {
        None => parts::nothing(h),
        Some((first, rest)) => cell(h, "Reason", |h| {
            h.leaf("span", &[("class", "why")], first);
            if !rest.is_empty() {
                h.leaf("span", &[("class", "quiet")], &format!(" and {} more", rest.len()));
            }
        }),
    }
}

fn figures(h: &mut Html, head: &Head, (calls, budget): (Calls, &[Budget])) {
    let Calls { writes, reads, failures, under_way, kubernetes } = calls;
    h.tag("section", &[("aria-labelledby", "calls")], |h| {
        h.leaf("h2", &[("id", "calls")], "Calls since the start");
        h.tag("dl", &[("class", "figures")], |h| {
            for (name, number) in [
                ("Azure writes", writes),
                ("under way", under_way),
                ("failed", failures),
                ("Azure reads", reads),
                ("Kubernetes writes", kubernetes),
            ] {
                h.tag("div", &[], |h| {
                    h.leaf("dt", &[], name);
                    h.tag("dd", &[], |h| h.number(number));
                });
            }
        });
        if budget.is_empty() {
            return;
        }
        h.leaf("h3", &[], "What Azure's limits still allow");
        table(h, "Budget of calls", &["Limit", "Left", "Held"], budget, |h, line| {
            cell(h, "Limit", |h| h.text(&line.name));
            cell(h, "Left", |h| {
                let (left, full) = (line.left.to_string(), line.full.to_string());
                let attributes = [("value", left.as_str()), ("max", &full), ("aria-label", "left")];
                h.leaf("meter", &attributes, "");
                h.text(&format!(" {left} of {full}"));
            });
            cell(h, "Held", |h| match &line.held {
                Some((why, until)) => {
                    h.text(&format!("{why}, for "));
                    span::until(h, *until, head.now_ms);
                }
                None => h.text("–"),
            });
        });
    });
}
