//! What stands beside load balancers: security rules that lead to a Service, and NAT gateways.

use super::parts::{cell, nothing, table};
use crate::html::Html;
use crate::view::ServiceLine;
use model::World;
use model::azure::{Access, SecurityRule};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// Rows of a table.
const ROWS: usize = 50;
/// Values in a cell.
const FEW: usize = 5;

/// Security rules that lead to a Service's addresses, in the order in which they decide; nothing
/// where none does.
pub(super) fn security_rules(h: &mut Html, line: &ServiceLine, world: &World) {
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
        let columns = ["Priority", "Access", "From", "Protocol", "Ports", "Rule"];
        table(h, "Security rules", &columns, found.into_iter().take(ROWS), |h, rule| {
            cell(h, "Priority", |h| h.text(&rule.priority.to_string()));
            cell(h, "Access", |h| {
                h.text(match rule.access {
                    Access::Allow => "allow",
                    Access::Deny => "deny",
                });
            });
            cell(h, "From", |h| h.text(&few(rule.sources.iter())));
            cell(h, "Protocol", |h| h.text(&rule.protocol));
            cell(h, "Ports", |h| h.text(&few(rule.ports.iter())));
            cell(h, "Rule", |h| h.leaf("code", &[], &rule.name));
        });
    });
}

/// NAT gateways, through which Pods behind container load balancers leave.
pub(super) fn nat_gateways(h: &mut Html, world: &World) {
    let Some(all) = world.azure.nat_gateways.known().filter(|all| !all.is_empty()) else { return };
    let mut pods: BTreeMap<&str, usize> = BTreeMap::new();
    for name in world.kubernetes.pods.values().filter_map(|pod| pod.egress.as_deref()) {
        *pods.entry(name).or_default() += 1;
    }
    h.tag("section", &[("aria-labelledby", "egress")], |h| {
        h.leaf("h2", &[("id", "egress")], "Egress");
        let columns = ["NAT gateway", "Public IPs"];
        table(h, "NAT gateways", &columns, all.values().take(ROWS), |h, gateway| {
            cell(h, "NAT gateway", |h| h.leaf("code", &[], gateway.id.name()));
            let ips = gateway.public_ips.iter().chain(&gateway.public_ips_v6);
            let names: Vec<Arc<str>> = ips.map(|ip| Arc::from(ip.name())).collect();
            match names.is_empty() {
                true => nothing(h),
                false => cell(h, "Public IPs", |h| h.text(&few(names.iter()))),
            }
        });
        if !pods.is_empty() {
            let columns = ["Egress label", "Pods"];
            table(h, "Pods by egress label", &columns, pods.iter().take(ROWS), |h, (name, n)| {
                cell(h, "Egress label", |h| h.leaf("code", &[], name));
                cell(h, "Pods", |h| h.number(*n as u64));
            });
        }
    });
}

/// The first few values, and how many more there are.
fn few<'v>(values: impl ExactSizeIterator<Item = &'v Arc<str>>) -> String {
    let more = values.len().saturating_sub(FEW);
    let shown: Vec<&str> = values.take(FEW).map(|value| &**value).collect();
    let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{rest}", shown.join(", "))
}
