//! The overview: how many Services are how far, what waits on what, what calls came to.

use super::parts::{self, Turn, cell, table, url, url_of_page};
use super::{Place, backends, frame};
use crate::html::{Html, grouped};
use crate::span;
use crate::topology::service_url;
use crate::view::{Budget, Calls, Head, Room, ServiceLine, Snapshot, matches, rank};
use model::report::State;
use std::cmp::Reverse;
use std::collections::BTreeMap;

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

/// Namespaces that can be chosen: those with the most Services.
const NAMESPACES: usize = 12;
/// Namespaces that are folded.
const FOLDED: usize = 200;

/// What Services are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// By state: what needs attention comes first.
    #[default]
    State,
    /// By namespace and name.
    Name,
    /// By the time since which the state holds: the last change comes first.
    Since,
}

impl Sort {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::State, Self::Name, Self::Since];

    /// The word in addresses of pages and for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Name => "name",
            Self::Since => "since",
        }
    }

    /// The same, empty where it need not be said.
    fn asked(self) -> &'static str {
        if self == Self::State { "" } else { self.word() }
    }
}

/// What the reader wants to see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverviewQuery {
    /// Part of a name, namespace or address.
    pub wanted: String,
    /// Only Services in this state.
    pub state: Option<State>,
    /// Only Services of this namespace; empty: of all.
    pub namespace: String,
    /// In which order.
    pub sort: Sort,
    /// Which page of the list, from 0.
    pub page: usize,
}

impl OverviewQuery {
    /// What is asked for, but for the page, with this namespace in this order.
    fn asked<'a>(&'a self, namespace: &'a str, sort: Sort) -> [(&'a str, &'a str); 4] {
        let state = self.state.map(State::word).unwrap_or_default();
        let sort = sort.asked();
        [("q", self.wanted.as_str()), ("state", state), ("namespace", namespace), ("sort", sort)]
    }
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
            let mut asked = query.asked(&query.namespace, query.sort);
            asked[1] = ("state", to);
            let url = url("/", &asked);
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
    let namespace = query.namespace.as_str();
    let of_namespace = |s: &&ServiceLine| namespace.is_empty() || *s.name.namespace == *namespace;
    let found = snapshot.services.iter().filter(of_state).filter(of_namespace);
    let mut found: Vec<&ServiceLine> = found.filter(|s| matches(s, &query.wanted)).collect();
    match query.sort {
        Sort::State => found.sort_by_key(|s| rank(s.state)),
        Sort::Since => found.sort_by_key(|s| Reverse(s.since_ms)),
        // As they stand.
        Sort::Name => {}
    }
    h.tag("section", &[("aria-labelledby", "services")], |h| {
        let asked = query.asked(namespace, query.sort);
        h.tag("div", &[("class", "bar")], |h| {
            h.leaf("h2", &[("id", "services")], "Services");
            parts::search(h, "/", &query.wanted, &asked[1..]);
        });
        namespaces(h, snapshot, query);
        sorts(h, query);
        if found.is_empty() {
            let text = match snapshot.services.is_empty() {
                true => "There is no Service of type LoadBalancer.",
                false => "No Service is like that.",
            };
            h.leaf("p", &[("class", "empty")], text);
            return;
        }
        let url = url_of_page("/", &asked);
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

/// The namespaces to choose from, where there are several.
fn namespaces(h: &mut Html, snapshot: &Snapshot, query: &OverviewQuery) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for service in &snapshot.services {
        *counts.entry(&*service.name.namespace).or_default() += 1;
    }
    if counts.len() < 2 && query.namespace.is_empty() {
        return;
    }
    let mut all: Vec<(&str, usize)> = counts.into_iter().collect();
    all.sort_by_key(|(_, count)| Reverse(*count));
    let mut hidden = all.split_off(all.len().min(NAMESPACES));
    let left = hidden.split_off(hidden.len().min(FOLDED)).len();
    all.sort_unstable();
    hidden.sort_unstable();
    h.tag("nav", &[("class", "choices"), ("aria-label", "Namespaces")], |h| {
        h.leaf("span", &[], "Namespace:");
        let of = |h: &mut Html, (name, count): (&str, usize)| {
            let url = url("/", &query.asked(name, query.sort));
            choice(h, &format!("{name} ({count})"), &url, query);
        };
        choice(h, "all", &url("/", &query.asked("", query.sort)), query);
        all.into_iter().for_each(|one| of(h, one));
        if hidden.is_empty() {
            return;
        }
        let more = grouped((hidden.len() + left) as u64);
        h.tag("details", &[], |h| {
            h.leaf("summary", &[], &format!("and {more} more"));
            for one in hidden {
                of(h, one);
                h.text(" ");
            }
            if left > 0 {
                let text = format!("and {} more: search for them", grouped(left as u64));
                h.leaf("span", &[], &text);
            }
        });
    });
}

fn sorts(h: &mut Html, query: &OverviewQuery) {
    h.tag("nav", &[("class", "choices"), ("aria-label", "Order")], |h| {
        h.leaf("span", &[], "Sorted by:");
        for sort in Sort::ALL {
            let url = url("/", &query.asked(&query.namespace, sort));
            choice(h, sort.word(), &url, query);
        }
    });
}

/// A link to what may be asked for; the one that leads here is marked.
fn choice(h: &mut Html, text: &str, to: &str, query: &OverviewQuery) {
    let here = url("/", &query.asked(&query.namespace, query.sort));
    match to == here {
        true => h.leaf("a", &[("href", to), ("aria-current", "true")], text),
        false => h.leaf("a", &[("href", to)], text),
    }
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
            for host in &service.hosts {
                h.leaf("span", &[("class", "quiet host")], host);
            }
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
                h.text(" ");
                let text = format!("and {} more", rest.len());
                h.leaf("a", &[("href", &service_url(&service.name))], &text);
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
            cell(h, "Left", |h| match line.room {
                Some(Room { left, full }) => {
                    let (value, max) = (left.to_string(), full.to_string());
                    let attributes =
                        [("value", value.as_str()), ("max", &max), ("aria-label", "left")];
                    h.leaf("meter", &attributes, "");
                    h.text(&format!(" {} of {}", grouped(left), grouped(full)));
                }
                None => h.text("unknown"),
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
