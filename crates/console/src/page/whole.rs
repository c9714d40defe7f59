//! The whole of what a drawing shows a part of: the members of a pool, the rules of a frontend.

use super::parts::{Turn, cell, nothing, table, url, url_of_page};
use super::{Place, frame};
use crate::html::{Html, grouped};
use crate::topology::{RuleLine, members_of, rules_of};
use crate::view::Head;
use model::World;

/// What the reader wants to see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopologyQuery {
    /// Part of a name, namespace or address.
    pub wanted: String,
    /// Only this load balancer.
    pub balancer: String,
    /// All members of this pool of the load balancer, in place of a drawing.
    pub pool: String,
    /// All rules of this frontend of the load balancer, in place of a drawing.
    pub frontend: String,
    /// Which page, from 0.
    pub page: usize,
    /// Which page of the load balancers, from 0.
    pub balancers: usize,
    /// Which page of the NAT gateways, from 0.
    pub gateways: usize,
    /// Which page of the egress labels, from 0.
    pub labels: usize,
}

impl TopologyQuery {
    /// What chooses Services, for addresses of pages.
    pub(super) fn filter(&self) -> [(&'static str, &str); 2] {
        [("q", &self.wanted), ("balancer", &self.balancer)]
    }
}

/// Rows on a page.
const SIZE: usize = 100;

/// The page of the part that is asked for; `None` where none is, or it is not there.
pub(super) fn page(head: &Head, world: &World, query: &TopologyQuery) -> Option<String> {
    let TopologyQuery { balancer, pool, frontend, .. } = query;
    if !pool.is_empty() {
        let all = members_of(world, balancer, pool)?;
        let list = List { query, part: ("pool", pool), all: &all, noun: "members" };
        return Some(list.page(head, &["Member", "Address"], |h, (name, address)| {
            cell(h, "Member", |h| h.text(name));
            cell(h, "Address", |h| h.leaf("span", &[("class", "address")], address));
        }));
    }
    let all = rules_of(world, balancer, frontend)?;
    let list = List { query, part: ("frontend", frontend), all: &all, noun: "rules" };
    Some(list.page(head, &["Rule", "Probe", "Pool", "Name"], rule))
}

fn rule(h: &mut Html, rule: &RuleLine) {
    cell(h, "Rule", |h| h.text(&rule.ports));
    match &rule.probe {
        Some(probe) => cell(h, "Probe", |h| h.text(probe)),
        None => nothing(h),
    }
    match &rule.pool {
        Some(pool) => cell(h, "Pool", |h| h.text(pool)),
        None => nothing(h),
    }
    cell(h, "Name", |h| h.leaf("code", &[], &rule.name));
}

/// A list of parts of a load balancer.
struct List<'a, T> {
    query: &'a TopologyQuery,
    /// What they belong to: its kind, and its name.
    part: (&'static str, &'a str),
    all: &'a [T],
    noun: &'static str,
}

impl<T> List<'_, T> {
    fn page(&self, head: &Head, columns: &[&'static str], row: impl Fn(&mut Html, &T)) -> String {
        let Self { query, part: (kind, name), all, noun } = *self;
        let title = format!("{} of {kind} {name}", capital(noun));
        frame(head, Place::Topology, &title, |h| {
            h.leaf("h1", &[], &title);
            h.tag("p", &[("class", "quiet")], |h| {
                let count = grouped(all.len() as u64);
                h.text(&format!("{count} on load balancer "));
                let url = url("/topology", &[("balancer", &query.balancer)]);
                h.leaf("a", &[("href", &url)], &query.balancer);
            });
            let url = url_of_page("/topology", &[("balancer", &query.balancer), (kind, name)]);
            let (page, total) = (query.page, all.len());
            let turn = Turn { url: &url, page, size: SIZE, total, noun };
            let shown = all.get(turn.range()).unwrap_or_default();
            table(h, capital(noun), columns, shown, &row);
            turn.pager(h);
        })
    }
}

fn capital(noun: &'static str) -> &'static str {
    if noun == "members" { "Members" } else { "Rules" }
}
