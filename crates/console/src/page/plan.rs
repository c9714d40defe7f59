//! The plan as it stands.

use super::parts::{Turn, url_of_page};
use super::{Place, change, frame};
use crate::html::{Html, grouped};
use crate::plan_view::{PlanView, WriteView};
use crate::view::Head;

/// Changes on a page.
const SIZE: usize = 20;
/// Fields of a change, where it stands among others.
const FEW: usize = 40;
/// Fields of a change that stands alone.
const FIELDS: usize = 200;
/// Kubernetes writes that are shown.
const WRITES: usize = 100;

/// What the reader wants to see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanQuery {
    /// The id of the only change to show.
    pub id: String,
    /// Which page, from 0.
    pub page: usize,
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
        h.leaf("p", &[("class", "quiet")], &text);
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
            change::change(h, one, 0..FEW);
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
        let shown: Vec<&WriteView> = plan.writes.iter().take(WRITES).collect();
        change::writes(h, &shown);
        let left = plan.writes.len() - shown.len();
        if left > 0 {
            let text = format!("and {} more", grouped(left as u64));
            h.leaf("p", &[("class", "quiet")], &text);
        }
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
    change::change(h, found, turn.range());
    turn.pager(h);
}
