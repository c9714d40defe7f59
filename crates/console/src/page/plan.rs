//! The plan as it stands.

use super::change::{self, Extent};
use super::parts::{self, Turn, url_of_page, url_of_part};
use super::{Place, frame};
use crate::html::{Html, grouped};
use crate::plan_view::{ChangeView, PlanView, WriteView};
use crate::view::Head;

/// Changes on a page.
const SIZE: usize = 20;
/// Fields of a change, where it stands among others.
const FEW: usize = 40;
/// Fields of a change that stands alone.
const FIELDS: usize = 200;
/// Kubernetes writes on a page.
const WRITES: usize = 100;
/// Services of a change that stands alone on a page.
const SERVICES: usize = 200;

/// What the reader wants to see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanQuery {
    /// The id of the only change to show.
    pub id: String,
    /// Which page, from 0.
    pub page: usize,
    /// Which page of the Kubernetes writes, from 0.
    pub writes: usize,
    /// Which page of the lines of a resource, from 0.
    pub lines: usize,
    /// Which page of the Services of a change, from 0.
    pub services: usize,
}

/// The page.
#[must_use]
pub fn plan(head: &Head, plan: &PlanView, query: &PlanQuery) -> String {
    frame(head, Place::Plan, "Plan", |h| {
        h.leaf("h1", &[], "Plan");
        if !plan.unread.is_empty() {
            h.leaf("p", &[("class", "lead")], "Not all of it is known yet.");
            h.tag("ul", &[], |h| {
                for need in &plan.unread {
                    h.leaf("li", &[], need);
                }
            });
        } else if plan.is_done() {
            h.leaf("p", &[("class", "lead"), ("id", "nothing")], "Nothing to do.");
            let text = "Azure and the cluster are as they should be.";
            h.leaf("p", &[("class", "quiet")], text);
        }
        held_up(h, plan);
        if plan.is_empty() {
            return;
        }
        match query.id.is_empty() {
            true => all(h, plan, query),
            false => one(h, plan, query),
        }
    })
}

/// What keeps the cluster and Azure from being as they should be.
fn held_up(h: &mut Html, plan: &PlanView) {
    const LINES: usize = 50;
    let count = plan.held_up.len();
    if count == 0 {
        return;
    }
    let (subject, verb) = if count == 1 { ("thing", "stands") } else { ("things", "stand") };
    let lead = match plan.is_empty() {
        true => "Nothing can be written now",
        false => "Not all of it can be written now",
    };
    let count = grouped(count as u64);
    h.leaf("p", &[("class", "lead")], &format!("{lead}: {count} {subject} {verb} in the way."));
    h.tag("ul", &[("id", "obstacles")], |h| {
        for line in plan.held_up.iter().take(LINES) {
            h.leaf("li", &[], line);
        }
    });
    let more = plan.held_up.len().saturating_sub(LINES);
    if more > 0 {
        let text = format!("and {} more", grouped(more as u64));
        h.tag("p", &[], |h| h.leaf("a", &[("href", "/findings")], &text));
    }
}

fn all(h: &mut Html, plan: &PlanView, query: &PlanQuery) {
    let count = |n: usize, noun: &str| {
        let s = if n == 1 { "" } else { "s" };
        format!("{} {noun}{s}", grouped(n as u64))
    };
    let text = format!(
        "{} and {} follow from what is known now.",
        count(plan.calls, "Azure write"),
        count(plan.writes.len(), "Kubernetes write")
    );
    h.leaf("p", &[("class", "lead")], &text);
    let url = url_of_page("/plan", &[]);
    let total = plan.changes.len();
    let turn = Turn { url: &url, page: query.page, size: SIZE, total, noun: "resources" };
    h.tag("section", &[("aria-labelledby", "azure")], |h| {
        h.leaf("h2", &[("id", "azure")], "Azure");
        for one in plan.changes.get(turn.range()).unwrap_or_default() {
            change::change(h, one, 0..FEW, Extent::Part);
        }
        if total == 0 {
            h.leaf("p", &[("class", "empty")], "No resource is written.");
        }
        turn.pager(h);
    });
    if plan.writes.is_empty() {
        return;
    }
    h.tag("section", &[("aria-labelledby", "kubernetes")], |h| {
        h.leaf("h2", &[("id", "kubernetes")], "Kubernetes");
        let (url, page, total) =
            (url_of_part("/plan", &[], "writes"), query.writes, plan.writes.len());
        let turn = Turn { url: &url, page, size: WRITES, total, noun: "Kubernetes writes" };
        let shown = plan.writes.get(turn.range()).unwrap_or_default();
        change::writes(h, &shown.iter().collect::<Vec<&WriteView>>());
        turn.pager(h);
    });
}

fn one(h: &mut Html, plan: &PlanView, query: &PlanQuery) {
    h.tag("p", &[], |h| h.leaf("a", &[("href", "/plan")], "The whole plan"));
    let found = plan.changes.iter().find(|c| c.id.eq_ignore_ascii_case(&query.id));
    let Some(found) = found else {
        h.leaf("p", &[("class", "empty")], "Nothing is to be done to this resource.");
        return;
    };
    let url = url_of_page("/plan", &[("id", &query.id)]);
    let total = found.fields.len();
    let turn = Turn { url: &url, page: query.page, size: FIELDS, total, noun: "fields" };
    change::change(h, found, turn.range(), Extent::Whole);
    turn.pager(h);
    body(h, found, query);
    services(h, found, query);
}

/// The resource as it is to be, or as it was.
fn body(h: &mut Html, change: &ChangeView, query: &PlanQuery) {
    let Some(body) = &change.body else { return };
    let lines: Vec<&str> = body.lines().collect();
    let (page, total) = (query.lines, lines.len());
    let url = url_of_part("/plan", &[("id", &query.id)], "lines");
    let turn = Turn { url: &url, page, size: change::BODY, total, noun: "lines" };
    h.tag("section", &[("aria-labelledby", "body")], |h| {
        h.leaf("h2", &[("id", "body")], "The whole of it");
        let shown = lines.get(turn.range()).unwrap_or_default();
        h.leaf("pre", &[("class", "text"), ("tabindex", "0")], &shown.join("\n"));
        turn.pager(h);
    });
}

fn services(h: &mut Html, change: &ChangeView, query: &PlanQuery) {
    let all = &change.services;
    if all.len() <= change::FEW {
        return;
    }
    let (page, total) = (query.services, all.len());
    let url = url_of_part("/plan", &[("id", &query.id)], "services");
    let turn = Turn { url: &url, page, size: SERVICES, total, noun: "Services" };
    h.tag("section", &[("aria-labelledby", "services")], |h| {
        h.leaf("h2", &[("id", "services")], "Services it is for");
        h.tag("p", &[], |h| {
            for (at, name) in all.get(turn.range()).unwrap_or_default().iter().enumerate() {
                h.text(if at == 0 { "" } else { ", " });
                parts::printed_link(h, name);
            }
        });
        turn.pager(h);
    });
}
