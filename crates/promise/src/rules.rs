//! Load-balancing rules.
//!
//! What is promised:
//! - One for each port and family that is forwarded, called after the Service, its subnet, protocol
//!   and port; with HA ports a single one for all protocols and ports, called after the first port.
//! - It leads from the Service's frontend to the cluster's pool of the family; to the Service's own
//!   pool where there are several load balancers and its traffic policy is Local.
//! - Frontend and backend have the Service's port and floating IP. Without floating IP, and on
//!   internal IPv6 frontends, where Azure has none, backends are reached on the node port.
//! - Affinity, idle timeout, TCP reset (TCP and HA on Standard) and outbound SNAT are as asked.
//!
//! What Azure fills in where a body says nothing: 4 minutes, `Default`, false.

use crate::Broken;
use crate::asks::{Asks, Family, Port, Protocol};
use crate::case::{Case, Place, Service};
use crate::estate::{id, part, same, text};
use crate::names;
use crate::site::{Layout, Sku};
use serde_json::Value;

const PROMISE: &str = "rule";

/// The port that one rule for all ports is called after, or each port that is forwarded.
pub(crate) fn heads(asks: &Asks) -> Vec<&Port> {
    if asks.ha_ports { asks.ports.iter().take(1).collect() } else { asks.forwarded().collect() }
}

/// The pool that a Service's rules of a family lead to.
pub(crate) fn pool(case: &Case<'_>, service: &Service<'_>, asks: &Asks, family: Family) -> String {
    match case.site.layout {
        Layout::Several(_) if asks.local => {
            names::local_pool(service.namespace, service.name, family)
        }
        _ => names::pool(&case.site, family),
    }
}

/// Judges them.
pub(crate) fn judge(case: &Case<'_>, broken: &mut Vec<Broken>) {
    for (service, asks) in case.served() {
        for family in &asks.families {
            let Some(place) = case.place(service, *family) else { continue };
            for port in heads(asks) {
                let name = names::rule(&service.base, asks, *family, port);
                let Some(rule) = part(place.balancer, "loadBalancingRules", &name) else {
                    broken.push(service.broken(PROMISE, format!("rule {name} does not exist")));
                    continue;
                };
                for (what, has, must) in fields(case, (service, asks, *family), place, port, rule) {
                    if !same(&has, &must) {
                        let text =
                            format!("the {what} of rule {name} is {has:?}; it must be {must:?}");
                        broken.push(service.broken(PROMISE, text));
                    }
                }
            }
        }
    }
}

/// Each field: what it is, what it holds, what it must hold.
fn fields(
    case: &Case<'_>,
    (service, asks, family): (&Service<'_>, &Asks, Family),
    place: Place<'_>,
    port: &Port,
    rule: &Value,
) -> Vec<(&'static str, String, String)> {
    let inside = &rule["properties"];
    let number = |key: &str, default: u64| inside[key].as_u64().unwrap_or(default).to_string();
    let flag = |key: &str| inside[key].as_bool().unwrap_or(false).to_string();
    let standard = case.site.sku == Sku::Standard;
    // The annotation does not count for the rule of HA ports.
    let off = !asks.floating && !asks.ha_ports;
    let translated = off || (asks.internal && family == Family::V6);
    let protocol = if asks.ha_ports { "All" } else { port.protocol.in_rule() };
    let backend = if translated { port.node_port } else { port.number };
    let (frontend, backend) = if asks.ha_ports { (0, 0) } else { (port.number, backend) };
    let resets = standard && asks.tcp_reset && (asks.ha_ports || port.protocol == Protocol::Tcp);
    let balancer = id(&place.balancer["id"]);
    let pool = pool(case, service, asks, family);
    let affinity = inside["loadDistribution"].as_str().unwrap_or("Default").to_owned();
    let snat = case.site.disable_outbound_snat;
    vec![
        ("protocol", text(&inside["protocol"]).to_owned(), protocol.to_owned()),
        ("frontend port", number("frontendPort", 0), frontend.to_string()),
        ("backend port", number("backendPort", 0), backend.to_string()),
        ("floating IP", flag("enableFloatingIP"), (!translated).to_string()),
        ("idle timeout", number("idleTimeoutInMinutes", 4), asks.idle_minutes.to_string()),
        ("affinity", affinity, if asks.client_ip { "SourceIP" } else { "Default" }.to_owned()),
        ("TCP reset", flag("enableTcpReset"), resets.to_string()),
        ("outbound SNAT off", flag("disableOutboundSnat"), snat.to_string()),
        ("frontend", id(&inside["frontendIPConfiguration"]["id"]), id(&place.frontend["id"])),
        (
            "pool",
            id(&inside["backendAddressPool"]["id"]),
            format!("{balancer}/backendaddresspools/{}", pool.to_lowercase()),
        ),
    ]
}
