//! Health probes.
//!
//! What is promised, of the rule of each port:
//! - `port_{port}_no_probe_rule`: none.
//! - Policy Local: Http on the health check node port at `/healthz`, for rules of every protocol.
//!   Behind the PROXY protocol it would not be understood, so ports are probed as with Cluster; and
//!   a TCP port whose annotation names a port to probe has its own. A port that says how often it
//!   is probed, other than the others, has a probe of its own there.
//! - Policy Cluster, with the shared probe: that one, for rules of every protocol.
//! - Policy Cluster else: TCP ports have their own, at the node port or where the annotation says;
//!   UDP and SCTP have none. Without node port kube-proxy is asked, as the shared probe does.
//! - With `healthCheck: agent` the agent's port is asked instead of the proxy's: at
//!   `/services/{namespace}/{name}` for the policy Local, also behind the PROXY protocol, and at
//!   `/node` where the node as a whole is asked for.
//! - With HA ports: the Local or shared one, else that of the first port whose probe can be made.
//!   The Service is refused only where ports have probes and all of them are wrong.

use crate::Broken;
use crate::asks::{Asks, Family, Port, Probe, ProbeProtocol, Protocol};
use crate::case::{Case, Service};
use crate::estate::{last, part, same, text};
use crate::names;
use crate::rules;
use serde_json::Value;

const PROMISE: &str = "probe";

/// A probe and its name.
type Named = (String, Probe);

/// The probe that the rule of a port is to have.
pub(crate) fn wanted(
    case: &Case<'_>,
    service: &Service<'_>,
    asks: &Asks,
    family: Family,
    port: &Port,
) -> Option<Named> {
    let common = common(case, service, asks, family);
    let own = |port: &Port| {
        let probe = port.probe.clone()?;
        let at_kube_proxy = port.node_port == 0 && !port.own_probe_port;
        let name = match at_kube_proxy {
            true => names::SHARED_PROBE.to_owned(),
            false => names::rule(&service.base, asks, family, port),
        };
        Some((name, probe))
    };
    if asks.ha_ports {
        // It is called after its rule, whichever port it probes.
        let called = names::rule(&service.base, asks, family, port);
        let first = || asks.ports.iter().find_map(own);
        let first = || {
            first().map(|(name, probe)| match name == names::SHARED_PROBE {
                true => (name, probe),
                false => (called, probe),
            })
        };
        return common.or_else(first);
    }
    if port.no_probe {
        return None;
    }
    let elsewhere = asks.local && port.own_probe_port && port.protocol == Protocol::Tcp;
    let Some((name, probe)) = common.filter(|_| !elsewhere) else { return own(port) };
    match port.health_timing {
        Some((seconds, count)) if (seconds, count) != (probe.seconds, probe.count) => {
            let name = names::rule(&service.base, asks, family, port);
            Some((name, Probe { seconds, count, ..probe }))
        }
        Some(_) | None => Some((name, probe)),
    }
}

/// The probe that all rules of a Service have, where there is one.
fn common(case: &Case<'_>, service: &Service<'_>, asks: &Asks, family: Family) -> Option<Named> {
    let protocol = ProbeProtocol::Http;
    if asks.local {
        let readable = case.site.agent.is_some() || !asks.proxied;
        let has = readable && asks.health_port > 0;
        let name = names::local_probe(&service.base, asks, family, asks.health_port);
        let (seconds, count) = asks.health_timing;
        let (port, path) = match case.site.agent {
            Some(agent) => (agent, format!("/services/{}/{}", service.namespace, service.name)),
            None => (asks.health_port, "/healthz".to_owned()),
        };
        let path = Some(path);
        return has.then_some((name, Probe { protocol, port, path, seconds, count }));
    }
    let shared = case.site.shared_probe.as_ref()?;
    let (port, path) = (shared.port, Some(shared.path.clone()));
    let probe = Probe { protocol, port, path, seconds: 5, count: 2 };
    Some((names::SHARED_PROBE.to_owned(), probe))
}

/// Judges them.
pub(crate) fn judge(case: &Case<'_>, broken: &mut Vec<Broken>) {
    for (service, asks) in case.served() {
        let mut found = Vec::new();
        for family in &asks.families {
            let Some(place) = case.place(service, *family) else { continue };
            for port in rules::heads(asks) {
                let rule = names::rule(&service.base, asks, *family, port);
                let Some(standing) = part(place.balancer, "loadBalancingRules", &rule) else {
                    continue;
                };
                let has = last(text(&standing["properties"]["probe"]["id"]));
                let wanted = wanted(case, service, asks, *family, port);
                let must = wanted.as_ref().map_or("", |(name, _)| name);
                if !same(has, must) {
                    found.push(format!("the probe of rule {rule} is {has:?}; it must be {must:?}"));
                }
                if let Some((name, probe)) = &wanted {
                    match part(place.balancer, "probes", name) {
                        Some(standing) => judge_one(name, probe, standing, &mut found),
                        None => found.push(format!("probe {name} does not exist")),
                    }
                }
            }
        }
        broken.extend(found.into_iter().map(|text| service.broken(PROMISE, text)));
    }
}

fn judge_one(name: &str, probe: &Probe, standing: &Value, found: &mut Vec<String>) {
    let inside = &standing["properties"];
    let number = |key: &str| inside[key].as_u64().unwrap_or(0).to_string();
    let path = probe.path.clone().unwrap_or_default();
    let all = [
        ("protocol", text(&inside["protocol"]).to_owned(), probe.protocol.name().to_owned()),
        ("port", number("port"), probe.port.to_string()),
        ("path", text(&inside["requestPath"]).to_owned(), path),
        ("interval", number("intervalInSeconds"), probe.seconds.to_string()),
        ("threshold", number("probeThreshold"), probe.count.to_string()),
    ];
    for (what, has, must) in all {
        if !same(&has, &must) {
            found.push(format!("the {what} of probe {name} is {has:?}; it must be {must:?}"));
        }
    }
}
