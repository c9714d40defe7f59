//! The topology, drawn.

use super::parts::{self, Turn, cell, table, url, url_of_page, url_of_part};
use super::whole::{self, TopologyQuery};
use super::{Place, frame, network};
use crate::html::{Html, grouped};
use crate::topology::{BalancerTree, draw, trees, whole_url};
use crate::view::{Head, ServiceLine, Snapshot, matches};
use model::World;
use std::collections::BTreeMap;

/// Services that are drawn at once.
const SIZE: usize = 20;

/// The page.
#[must_use]
pub fn topology(head: &Head, snapshot: &Snapshot, world: &World, query: &TopologyQuery) -> String {
    if let Some(page) = whole::page(head, world, query) {
        return page;
    }
    let found = snapshot.services.iter().filter(|s| matches(s, &query.wanted));
    let found = found.filter(|s| {
        query.balancer.is_empty() || s.balancer.as_deref() == Some(query.balancer.as_str())
    });
    let mut found: Vec<&ServiceLine> = found.collect();
    // Services of one load balancer are drawn together.
    found.sort_by(|a, b| a.balancer.cmp(&b.balancer));
    frame(head, Place::Topology, "Topology", |h| {
        h.tag("div", &[("class", "bar")], |h| {
            h.leaf("h1", &[], "Topology");
            parts::search(h, "/topology", &query.wanted, &[("balancer", &query.balancer)]);
        });
        if snapshot.services.len() > SIZE {
            balancers(h, snapshot, query);
        }
        if found.is_empty() {
            let text = match snapshot.services.is_empty() {
                true => "There is no Service of type LoadBalancer.",
                false => "No Service is like that.",
            };
            h.leaf("p", &[("class", "empty")], text);
            return;
        }
        let url = url_of_page("/topology", &query.filter());
        let (page, total) = (query.page, found.len());
        let turn = Turn { url: &url, page, size: SIZE, total, noun: "Services" };
        let shown = found.get(turn.range()).unwrap_or_default();
        zoom(h);
        for tree in trees(world, shown) {
            balancer(h, &tree);
        }
        turn.pager(h);
        network::nat_gateways(h, world, query);
    })
}

/// All load balancers, folded.
fn balancers(h: &mut Html, snapshot: &Snapshot, query: &TopologyQuery) {
    const MANY: usize = 100;
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for name in snapshot.services.iter().filter_map(|s| s.balancer.as_deref()) {
        *counts.entry(name).or_default() += 1;
    }
    let is_asked = !query.balancer.is_empty() || query.balancers > 0;
    let attributes: &[_] = if is_asked { &[("open", "")] } else { &[] };
    h.tag("details", attributes, |h| {
        let total = grouped(counts.len() as u64);
        let noun = if counts.len() == 1 { "load balancer" } else { "load balancers" };
        h.leaf("summary", &[], &format!("{total} {noun}"));
        let url_of = url_of_part("/topology", &query.filter(), "balancers");
        let (page, total) = (query.balancers, counts.len());
        let turn = Turn { url: &url_of, page, size: MANY, total, noun: "load balancers" };
        let shown = counts.iter().skip(turn.range().start).take(MANY);
        table(h, "Load balancers", &["Load balancer", "Services"], shown, |h, (name, count)| {
            cell(h, "Load balancer", |h| {
                let url = url("/topology", &[("balancer", name)]);
                h.leaf("a", &[("href", &url)], name);
            });
            cell(h, "Services", |h| h.number(*count));
        });
        turn.pager(h);
        if !query.balancer.is_empty() {
            h.leaf("a", &[("href", "/topology")], "Show all load balancers");
        }
    });
}

/// How large drawings are: it works without the script.
pub(super) fn zoom(h: &mut Html) {
    h.tag("fieldset", &[("class", "zoom")], |h| {
        h.leaf("legend", &[], "Size");
        for (id, label) in
            [("zoom-50", "50 %"), ("zoom-75", "75 %"), ("zoom-100", "100 %"), ("zoom-150", "150 %")]
        {
            let mut attributes = vec![("type", "radio"), ("name", "zoom"), ("id", id)];
            if id == "zoom-100" {
                attributes.push(("checked", ""));
            }
            h.void("input", &attributes);
            h.leaf("label", &[("for", id)], label);
        }
    });
}

fn balancer(h: &mut Html, tree: &BalancerTree) {
    h.tag("details", &[("class", "balancer"), ("open", "")], |h| {
        h.tag("summary", &[], |h| {
            match tree.name.as_str() {
                "" => h.leaf("h2", &[], "Without a load balancer"),
                name => h.leaf("h2", &[], name),
            }
            let count = tree.services.len();
            let noun = if count == 1 { "Service" } else { "Services" };
            let sku = if tree.sku.is_empty() { String::new() } else { format!("{}, ", tree.sku) };
            h.leaf("span", &[("class", "quiet")], &format!("{sku}{count} {noun} shown"));
        });
        drawing(h, tree);
    });
}

/// A drawing that can be scrolled, and the same in words.
pub(super) fn drawing(h: &mut Html, tree: &BalancerTree) {
    let label =
        format!("Drawing of {}", if tree.name.is_empty() { "Services" } else { &tree.name });
    let attributes =
        [("class", "drawing"), ("role", "region"), ("aria-label", &label), ("tabindex", "0")];
    h.tag("div", &attributes, |h| draw(h, tree));
    h.tag("details", &[("class", "words")], |h| {
        h.leaf("summary", &[], "In words");
        h.tag("ul", &[], |h| {
            for service in &tree.services {
                h.tag("li", &[], |h| {
                    parts::service_link(h, &service.name);
                    words(h, tree, service);
                });
            }
        });
    });
}

fn words(h: &mut Html, tree: &BalancerTree, service: &crate::topology::ServiceTree) {
    if service.frontends.is_empty() {
        h.text(" has nothing in Azure yet.");
        return;
    }
    h.tag("ul", &[], |h| {
        for frontend in &service.frontends {
            for rule in &frontend.rules {
                let address = frontend.address.as_deref().unwrap_or("no address yet");
                let probe = rule.probe.as_deref().unwrap_or("no probe");
                let pool = rule.pool.and_then(|at| tree.pools.get(at));
                let pool = pool.map_or_else(
                    || "no pool".to_owned(),
                    |p| format!("pool {} ({} members)", p.name, p.count),
                );
                h.leaf("li", &[], &format!("{address}, {}, {probe}, to {pool}", rule.ports));
            }
            if frontend.more > 0 {
                let url = whole_url(&tree.name, "frontend", &frontend.name);
                let text = format!("and {} more rules", frontend.more);
                h.tag("li", &[], |h| h.leaf("a", &[("href", &url)], &text));
            }
        }
    });
}
