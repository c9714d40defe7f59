//! Which backends of a Service answer Azure's health probes.

use super::parts::{self, Turn, cell, table, url_of_part};
use crate::html::Html;
use crate::span;
use crate::topology::service_url;
use crate::view::{Head, ServiceLine};
use model::kubernetes::{Service, TrafficPolicy};
use model::{Backend, ProbeState, ServiceBackends};

/// Backends on a page.
const SHOWN: usize = 100;

/// How many are up, in a cell.
pub(super) fn brief(h: &mut Html, found: &ServiceBackends) {
    let text = format!("{} of {}", found.count(ProbeState::Up), found.all.len());
    match found.is_out() {
        true => parts::badge(h, "failed", &text),
        false => h.text(&text),
    }
}

/// The part of a Service's page about them; nothing where they are not read. `page` is that of the
/// list, from 0.
pub(super) fn section(
    h: &mut Html,
    head: &Head,
    (line, service): (&ServiceLine, Option<&Service>),
    page: usize,
) {
    let Some(found) = &line.backends else { return };
    h.tag("section", &[("aria-labelledby", "backends")], |h| {
        h.leaf("h2", &[("id", "backends")], "Backends");
        let (up, all) = (found.count(ProbeState::Up), found.all.len());
        h.tag("p", &[], |h| {
            h.text(&format!("{up} of {all} answer all of Azure's health probes, read "));
            span::since(h, found.read_ms, head.now_ms);
            h.text(" ago.");
        });
        let local = service.is_some_and(|own| own.traffic_policy == TrafficPolicy::Local);
        if local && up < all && !found.is_out() {
            let text = "With externalTrafficPolicy: Local only nodes with a ready Pod answer.";
            h.leaf("p", &[("class", "quiet")], text);
        }
        let ups = found.all.iter().filter(|backend| backend.state == ProbeState::Up);
        let every: Vec<&Backend> = found.ailing().chain(ups).collect();
        let url = url_of_part(&service_url(&line.name), &[], "backends");
        let turn = Turn { url: &url, page, size: SHOWN, total: every.len(), noun: "backends" };
        let rows = every.get(turn.range()).unwrap_or_default();
        let columns = ["Node", "Address", "Health probes", "For"];
        table(h, "Backends", &columns, rows, |h, backend| row(h, head, backend));
        turn.pager(h);
    });
}

fn row(h: &mut Html, head: &Head, backend: &Backend) {
    match &backend.node {
        Some(node) => cell(h, "Node", |h| h.text(&node.to_string())),
        None => parts::nothing(h),
    }
    cell(h, "Address", |h| {
        h.leaf("span", &[("class", "address")], &backend.address.to_string());
    });
    cell(h, "Health probes", |h| match backend.state {
        ProbeState::Up => parts::badge(h, "done", "up"),
        ProbeState::Partly => parts::badge(h, "note", "partly up"),
        ProbeState::Down => parts::badge(h, "failed", "down"),
    });
    cell(h, "For", |h| span::since(h, backend.since_ms, head.now_ms));
}
