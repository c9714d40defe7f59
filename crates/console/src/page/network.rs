//! What stands beside load balancers: security rules that lead to a Service, and NAT gateways.

use super::parts::{Turn, cell, nothing, table, url_of_part};
use super::whole::TopologyQuery;
use crate::html::{Html, grouped};
use crate::topology::service_url;
use crate::view::ServiceLine;
use model::World;
use model::azure::{Access, SecurityRule};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// Rows of a table on a page.
const ROWS: usize = 50;
/// Values in a cell that are not folded.
const FEW: usize = 5;

/// Security rules that lead to a Service's addresses, in the order in which they decide; nothing
/// where none does. `page` is that of the list, from 0.
pub(super) fn security_rules(h: &mut Html, line: &ServiceLine, world: &World, page: usize) {
    let Some(group) = world.azure.security_group.known().and_then(Option::as_ref) else { return };
    let addresses: BTreeSet<IpAddr> =
        line.addresses.iter().filter_map(|address| address.parse().ok()).collect();
    let leads = |to: &Arc<str>| to.parse().is_ok_and(|to: IpAddr| addresses.contains(&to));
    let found = group.rules.iter().filter(|rule| rule.destinations.iter().any(leads));
    let mut found: Vec<&SecurityRule> = found.collect();
    if found.is_empty() {
        return;
    }
    found.sort_by_key(|rule| rule.priority);
    h.tag("section", &[("aria-labelledby", "security")], |h| {
        h.leaf("h2", &[("id", "security")], "Security rules");
        let text = "Rules of the security group of the nodes that lead to the Service's addresses. \
                    The first one that fits decides.";
        h.leaf("p", &[("class", "quiet")], text);
        let url = url_of_part(&service_url(&line.name), &[], "rules");
        let total = found.len();
        let turn = Turn { url: &url, page, size: ROWS, total, noun: "security rules" };
        let shown = found.get(turn.range()).unwrap_or_default();
        let columns = ["Priority", "Access", "From", "Protocol", "Ports", "Rule"];
        table(h, "Security rules", &columns, shown, |h, rule| {
            cell(h, "Priority", |h| h.text(&rule.priority.to_string()));
            cell(h, "Access", |h| {
                h.text(match rule.access {
                    Access::Allow => "allow",
                    Access::Deny => "deny",
                });
            });
            cell(h, "From", |h| values(h, rule.sources.iter().map(|value| &**value)));
            cell(h, "Protocol", |h| h.text(&rule.protocol));
            cell(h, "Ports", |h| values(h, rule.ports.iter().map(|value| &**value)));
            cell(h, "Rule", |h| h.leaf("code", &[], &rule.name));
        });
        turn.pager(h);
    });
}

/// NAT gateways, through which Pods behind container load balancers leave.
pub(super) fn nat_gateways(h: &mut Html, world: &World, query: &TopologyQuery) {
    let Some(all) = world.azure.nat_gateways.known().filter(|all| !all.is_empty()) else { return };
    let mut pods: BTreeMap<&str, usize> = BTreeMap::new();
    for name in world.kubernetes.pods.values().filter_map(|pod| pod.egress.as_deref()) {
        *pods.entry(name).or_default() += 1;
    }
    h.tag("section", &[("aria-labelledby", "egress")], |h| {
        h.leaf("h2", &[("id", "egress")], "Egress");
        let filter = query.filter();
        let (url, page, total) =
            (url_of_part("/topology", &filter, "gateways"), query.gateways, all.len());
        let turn = Turn { url: &url, page, size: ROWS, total, noun: "NAT gateways" };
        let shown = all.values().skip(turn.range().start).take(ROWS);
        table(h, "NAT gateways", &["NAT gateway", "Public IPs"], shown, |h, gateway| {
            cell(h, "NAT gateway", |h| h.leaf("code", &[], gateway.id.name()));
            let ips = gateway.public_ips.iter().chain(&gateway.public_ips_v6);
            let names: Vec<&str> = ips.map(|ip| ip.name()).collect();
            match names.is_empty() {
                true => nothing(h),
                false => cell(h, "Public IPs", |h| values(h, names.into_iter())),
            }
        });
        turn.pager(h);
        if pods.is_empty() {
            return;
        }
        let (url, page, total) =
            (url_of_part("/topology", &filter, "labels"), query.labels, pods.len());
        let turn = Turn { url: &url, page, size: ROWS, total, noun: "egress labels" };
        let shown = pods.iter().skip(turn.range().start).take(ROWS);
        table(h, "Pods by egress label", &["Egress label", "Pods"], shown, |h, (name, n)| {
            cell(h, "Egress label", |h| h.leaf("code", &[], name));
            cell(h, "Pods", |h| h.number(*n as u64));
        });
        turn.pager(h);
    });
}

/// Values one after the other, folded from the first few on. Azure's limits bound them: a security
/// group has at most 4,000 source prefixes, a NAT gateway 16 public IPs of a family.
fn values<'v>(h: &mut Html, values: impl Iterator<Item = &'v str>) {
    let all: Vec<&str> = values.collect();
    let (first, rest) = all.split_at(all.len().min(FEW));
    h.text(&first.join(", "));
    if rest.is_empty() {
        return;
    }
    h.tag("details", &[], |h| {
        h.leaf("summary", &[], &format!("and {} more", grouped(rest.len() as u64)));
        h.text(&rest.join(", "));
    });
}
