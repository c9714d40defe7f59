//! A change, field by field.

use super::parts::{self, cell, table, url};
use crate::history::Call;
use crate::html::{Html, grouped};
use crate::plan_view::{ChangeView, FieldView, Verb, WriteView};
use std::ops::Range;

/// Lines of a whole resource on a page.
pub(super) const BODY: usize = 200;
/// Lines of one field's value in a list.
const VALUE: usize = 60;
/// Lines of one field's value where it stands alone.
const LONG: usize = 1_000;
/// Services that are named beside a change.
pub(super) const FEW: usize = 5;

fn sign(verb: Verb) -> (&'static str, &'static str) {
    match verb {
        Verb::Create => ("verb create", "+"),
        Verb::Change | Verb::Call => ("verb edit", "~"),
        Verb::Delete => ("verb delete", "−"),
    }
}

/// A resource, and some of the fields that differ: in a list with a link to all of it.
pub(super) fn change(h: &mut Html, change: &ChangeView, fields: Range<usize>, extent: Extent) {
    h.tag("article", &[("class", "change")], |h| {
        let (class, sign) = sign(change.verb);
        h.tag("h3", &[], |h| {
            h.tag("span", &[("class", class)], |h| {
                h.leaf("span", &[("aria-hidden", "true")], sign);
                h.text(&format!(" {}", change.verb.word()));
            });
            h.text(&format!(" {} ", change.kind));
            h.leaf("span", &[("class", "name")], &change.name);
        });
        h.tag("p", &[("class", "quiet about")], |h| {
            if let Some(group) = &change.group {
                h.text(&format!("in {group}"));
            }
            owners(h, change, extent);
        });
        if let Some(attempt) = change.attempt {
            let text = match attempt {
                0 | 1 => "being written now".to_owned(),
                n => format!("being written now, try {n}"),
            };
            h.tag("p", &[], |h| parts::badge(h, "waiting", &text));
        }
        if let (Some(body), Extent::Part) = (&change.body, extent) {
            h.tag("details", &[], |h| {
                h.leaf("summary", &[], "The whole of it");
                h.leaf("pre", &[("tabindex", "0")], &cut(body, BODY));
            });
        }
        let end = fields.end.min(change.fields.len());
        let shown = change.fields.get(fields.start.min(end)..end).unwrap_or_default();
        if !shown.is_empty() {
            table(h, "Fields", &["Field", "Now", "Then"], shown, |h, one| field(h, one, extent));
        }
        if extent == Extent::Whole {
            return;
        }
        let left = change.fields.len() - end;
        let text = match left {
            0 => "All of it".to_owned(),
            _ => format!("{} more fields", grouped(left as u64)),
        };
        if left > 0 || is_cut(change, shown) {
            let url = url("/plan", &[("id", &change.id)]);
            h.leaf("a", &[("href", &url)], &text);
        }
    });
}

/// Whether a list shows less than all of a resource or of these fields.
fn is_cut(change: &ChangeView, shown: &[FieldView]) -> bool {
    let is_long = |text: &Option<String>, most| {
        text.as_deref().is_some_and(|text| text.lines().nth(most).is_some())
    };
    let fields = shown.iter().any(|f| is_long(&f.old, VALUE) || is_long(&f.new, VALUE));
    fields || is_long(&change.body, BODY)
}

/// The first lines of a text, and how many there are more.
fn cut(body: &str, lines: usize) -> String {
    let count = body.lines().count();
    if count <= lines {
        return body.to_owned();
    }
    let shown: Vec<&str> = body.lines().take(lines).collect();
    format!("{}\n… and {} lines more", shown.join("\n"), count - lines)
}

fn owners(h: &mut Html, change: &ChangeView, extent: Extent) {
    let services = &change.services;
    for (at, name) in services.iter().take(FEW).enumerate() {
        h.text(if at == 0 { " for " } else { ", " });
        parts::printed_link(h, name);
    }
    let more = services.len().saturating_sub(FEW);
    if more == 0 {
        return;
    }
    h.text(" and ");
    let more = format!("{} more", grouped(more as u64));
    match extent {
        // They stand below.
        Extent::Whole => h.leaf("a", &[("href", "#services")], &more),
        Extent::Part => {
            let url = format!("{}#services", url("/plan", &[("id", &change.id)]));
            h.leaf("a", &[("href", &url)], &more);
        }
    }
}

/// How much of a change or a write is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The first of each list, with a link to all.
    Part,
    /// All that is known.
    Whole,
}

/// Letters of a value that a list of writes shows.
const LETTERS: usize = 160;

/// Fields that a write changed.
pub(super) fn difference(h: &mut Html, call: &Call, extent: Extent) {
    const FIELDS: usize = 3;
    let count = call.fields.len() + call.more_fields;
    if count == 0 {
        return;
    }
    let noun = if count == 1 { "field" } else { "fields" };
    let title = format!("{} {noun} changed", grouped(count as u64));
    let most = if extent == Extent::Whole { call.fields.len() } else { FIELDS };
    let shown = &call.fields[..call.fields.len().min(most)];
    let rows = |h: &mut Html| {
        table(h, "Fields", &["Field", "Before", "After"], shown, |h, field| {
            let path = field.path.strip_prefix("properties.").unwrap_or(&field.path);
            cell(h, "Field", |h| h.leaf("code", &[], path));
            cell(h, "Before", |h| brief(h, "old", field.old.as_deref(), extent));
            cell(h, "After", |h| brief(h, "new", field.new.as_deref(), extent));
        });
    };
    if extent == Extent::Whole {
        h.leaf("h2", &[], &title);
        rows(h);
        if call.more_fields > 0 {
            let text = format!("{} more are not remembered.", grouped(call.more_fields as u64));
            h.leaf("p", &[("class", "quiet")], &text);
        }
        return;
    }
    h.tag("details", &[("class", "difference")], |h| {
        h.leaf("summary", &[], &title);
        rows(h);
        if count > shown.len() {
            let url = url("/timeline", &[("write", &call.correlation)]);
            let text = format!("{} more fields", grouped((count - shown.len()) as u64));
            h.leaf("a", &[("href", &url)], &text);
        }
    });
}

fn brief(h: &mut Html, class: &'static str, value: Option<&str>, extent: Extent) {
    match value {
        Some(text) if extent == Extent::Part && text.chars().count() > LETTERS => {
            let text: String = text.chars().take(LETTERS).collect();
            side(h, class, Some(&format!("{text}…")), extent);
        }
        value => side(h, class, value, extent),
    }
}

fn field(h: &mut Html, field: &FieldView, extent: Extent) {
    let path = field.path.strip_prefix("properties.").unwrap_or(&field.path);
    cell(h, "Field", |h| h.leaf("code", &[], path));
    cell(h, "Now", |h| side(h, "old", field.old.as_deref(), extent));
    cell(h, "Then", |h| side(h, "new", field.new.as_deref(), extent));
}

fn side(h: &mut Html, class: &'static str, value: Option<&str>, extent: Extent) {
    let lines = match extent {
        Extent::Part => VALUE,
        Extent::Whole => LONG,
    };
    match value {
        None => h.text("–"),
        Some(text) => h.leaf("pre", &[("class", class)], &cut(text.trim_end(), lines)),
    }
}

/// Writes of Kubernetes objects.
pub(super) fn writes(h: &mut Html, writes: &[&WriteView]) {
    table(h, "Kubernetes writes", &["Object", "What is written"], writes, |h, write| {
        cell(h, "Object", |h| {
            h.leaf("span", &[("class", "quiet")], &format!("{} ", write.kind));
            match write.kind.as_str() {
                "Service" => parts::printed_link(h, &write.object),
                _ => h.text(&write.object),
            }
        });
        cell(h, "What is written", |h| h.text(&write.what));
    });
}
