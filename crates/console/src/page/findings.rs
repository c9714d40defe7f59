//! What stands in the way and what is wrong, for those it concerns.

use super::parts::{self, Turn, cell, table, url_of_page};
use super::{Place, frame};
use crate::html::{Html, grouped};
use crate::span;
use crate::view::{DriftLine, Fault, Grade, Head, Snapshot};
use model::ServiceName;

/// Findings on a page.
const SIZE: usize = 50;
/// Services on a page.
const SERVICES: usize = 200;

/// What the reader wants to see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindingsQuery {
    /// All Services that this call holds up, as in `PUT loadBalancers/kubernetes`, in place of the
    /// findings.
    pub call: String,
    /// Which page, from 0.
    pub page: usize,
}

/// Whom a finding concerns.
enum Whose<'a> {
    Whole,
    /// Those that a call holds up.
    Several(Vec<ServiceName>, &'a str),
    Service(&'a ServiceName),
    Pod(&'a ServiceName),
}

/// The page.
#[must_use]
pub fn findings(head: &Head, snapshot: &Snapshot, query: &FindingsQuery) -> String {
    // One call may fail for several reasons, each with Services of its own. Where one of them has
    // more than a finding names, the link leads here.
    let is_asked = |call: &str| !call.is_empty() && *call == *query.call;
    let same = snapshot.held_up().filter(|(_, obstacle)| is_asked(&obstacle.operation));
    if let Some((names, obstacle)) = same.max_by_key(|(names, _)| names.len()) {
        return held_up(head, (&names, &Fault::from(obstacle)), query);
    }
    let whole = snapshot.whole.iter().map(|f| (Whose::Whole, f.clone()));
    let own = |f: &&Fault| f.is_own();
    let services = snapshot
        .services
        .iter()
        .flat_map(|s| s.faults.iter().filter(own).map(|f| (Whose::Service(&s.name), f.clone())));
    let pods = snapshot.pods.iter();
    let pods = pods.flat_map(|(name, all)| all.iter().map(|f| (Whose::Pod(name), f.clone())));
    let held_up = snapshot.held_up().map(|(names, obstacle)| match names.is_empty() {
        true => (Whose::Whole, Fault::from(obstacle)),
        false => (Whose::Several(names, &obstacle.operation), Fault::from(obstacle)),
    });
    let mut all: Vec<(Whose<'_>, Fault)> =
        held_up.chain(whole).chain(services).chain(pods).collect();
    all.sort_by_key(|(_, fault)| fault.grade);
    frame(head, Place::Findings, "Findings", |h| {
        h.leaf("h1", &[], "Findings");
        if all.is_empty() && !head.troubles.is_empty() {
            h.leaf("p", &[("class", "lead")], "Not everything is known yet.");
            drift(h, head, &snapshot.drift);
            return;
        }
        if all.is_empty() {
            h.leaf("p", &[("class", "lead")], "Nothing is wrong.");
            let text = "A Service that asks for something impossible is named here, with the \
                        annotation, its value and what is allowed.";
            h.leaf("p", &[("class", "quiet")], text);
            drift(h, head, &snapshot.drift);
            return;
        }
        h.leaf("p", &[("class", "lead")], &counts(&all));
        let url = url_of_page("/findings", &[]);
        let (page, total) = (query.page, all.len());
        let turn = Turn { url: &url, page, size: SIZE, total, noun: "findings" };
        for (whose, fault) in all.get(turn.range()).unwrap_or_default() {
            h.tag("article", &[("class", "finding")], |h| {
                h.tag("h2", &[], |h| match whose {
                    Whose::Whole => h.text("Everything"),
                    Whose::Several(names, call) => {
                        parts::names(h, names, &parts::url("/findings", &[("call", call)]));
                    }
                    Whose::Service(name) => parts::service_link(h, name),
                    Whose::Pod(name) => h.text(&format!("Pod {name}")),
                });
                parts::fault(h, fault, head.now_ms);
            });
        }
        turn.pager(h);
        drift(h, head, &snapshot.drift);
    })
}

/// What a call that fails or is not answered holds up.
fn held_up(head: &Head, (names, fault): (&[ServiceName], &Fault), query: &FindingsQuery) -> String {
    frame(head, Place::Findings, "Held up", |h| {
        h.leaf("h1", &[], "Held up by one call");
        parts::fault(h, fault, head.now_ms);
        let url = url_of_page("/findings", &[("call", &query.call)]);
        let (page, total) = (query.page, names.len());
        let turn = Turn { url: &url, page, size: SERVICES, total, noun: "Services" };
        h.tag("p", &[], |h| parts::list(h, names.get(turn.range()).unwrap_or_default()));
        turn.pager(h);
        h.tag("p", &[], |h| h.leaf("a", &[("href", "/findings")], "All findings"));
    })
}

/// How many there are, and of which kind; they come with the worst first.
fn counts(all: &[(Whose<'_>, Fault)]) -> String {
    let number = |count: usize| grouped(count as u64);
    let kinds = all.chunk_by(|(_, one), (_, next)| one.grade == next.grade);
    let kinds = kinds.map(|kind| {
        let word = kind.first().map_or("", |(_, fault)| fault.grade.word());
        let plural = if word == Grade::Note.word() && kind.len() > 1 { "s" } else { "" };
        format!("{} {word}{plural}", number(kind.len()))
    });
    let noun = if all.len() == 1 { "finding" } else { "findings" };
    format!("{} {noun}: {}.", number(all.len()), kinds.collect::<Vec<_>>().join(", "))
}

/// What others changed in our parts of Azure.
fn drift(h: &mut Html, head: &Head, lines: &[DriftLine]) {
    if lines.is_empty() {
        return;
    }
    h.tag("section", &[("aria-labelledby", "drift")], |h| {
        h.leaf("h2", &[("id", "drift")], "Changed in Azure by another client");
        let columns = ["Resource", "What", "Services", "Noticed", "Now"];
        table(h, "Drift", &columns, lines, |h, line| {
            cell(h, "Resource", |h| h.text(&line.resource));
            cell(h, "What", |h| h.text(&line.what));
            match line.services.as_slice() {
                [] => parts::nothing(h),
                names => cell(h, "Services", |h| {
                    names.iter().for_each(|name| parts::service_link(h, name));
                }),
            }
            cell(h, "Noticed", |h| span::since(h, line.noticed_ms, head.now_ms));
            cell(h, "Now", |h| h.text(line.outcome));
        });
    });
}
