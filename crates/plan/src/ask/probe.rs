//! Load-balancing rules and their probes.

use super::findings::{
    INVALID_PROBE_COUNT, INVALID_PROBE_INTERVAL, INVALID_PROBE_PORT, INVALID_PROBE_PROTOCOL,
    INVALID_REQUEST_PATH, NODE_PORTS_REQUIRED, PROBE_SETTING_IGNORED, PROBE_TOO_SLOW,
    UNSUPPORTED_SCTP,
};
use super::reader::Reader;
use super::{FloatingIp, ProbeIntent, ProbeName, ProxyProtocol, RuleIntent, RuleKind};
use crate::ask::annotation;
use model::azure::ProbeProtocol;
use model::kubernetes::{ServicePort, TrafficPolicy};
use model::policy::{BalancerSku, ClusterProbe, HealthCheck};
use model::report::Severity;
use model::{Exposure, Family, Policy, Protocol};
use std::sync::Arc;

/// Where kube-proxy answers for its node.
const KUBE_PROXY_PORT: u16 = 10256;
const HEALTHZ: &str = "/healthz";
/// Seconds between two probes and answers that change the health, unless annotated.
const TIMING: (u16, u16) = (5, 2);
/// Interval times count stays below this many seconds.
const PATIENCE_S: u64 = 120;
/// Most bytes of a number: a sign and 18 digits, as the admission policy reads it.
const DIGITS: usize = 19;

const INTERVAL: &str = "azure-load-balancer-health-probe-interval";
const COUNT: &str = "azure-load-balancer-health-probe-num-of-probe";
/// How the table of AKS's documents spells [`COUNT`].
const COUNT_OF_TABLE: &str = "load-balancer-health-probe-num-of-probe";
const PATH: &str = "azure-load-balancer-health-probe-request-path";
const PROTOCOL: &str = "azure-load-balancer-health-probe-protocol";

/// What else decides rules and probes.
pub(super) struct Setting<'a> {
    /// Public or internal.
    pub exposure: Exposure,
    /// Whether backends see the frontend's address.
    pub floating: FloatingIp,
    /// Of the Private Link Service, as far as probes heed it.
    pub proxy: ProxyProtocol,
    pub families: &'a [Family],
}

/// What probes a Service's ports.
enum Source {
    /// One probe for all.
    Common(ProbeIntent),
    /// The health check node port, but for ports with a probe port of their own.
    HealthCheck(ProbeIntent),
    /// Each its own.
    Own,
}

/// Reads the rules with their probes.
pub(super) fn rules(r: &mut Reader<'_>, setting: &Setting<'_>) -> Vec<RuleIntent> {
    let service = r.service;
    let high_availability = r.is_set("azure-load-balancer-enable-high-availability-ports")
        && setting.exposure == Exposure::Internal
        && r.policy.sku == BalancerSku::Standard;
    let source = source(r, setting, high_availability);
    if high_availability {
        return all_ports(r, &source).into_iter().collect();
    }
    let mut rules = Vec::new();
    for port in &service.ports {
        if r.is_set(&format!("port_{}_no_lb_rule", port.port)) {
            continue;
        }
        check(r, setting, port);
        let silent = r.is_set(&format!("port_{}_no_probe_rule", port.port));
        let probe = if silent { None } else { probe(r, &source, port) };
        let ServicePort { protocol, port, node_port, .. } = *port;
        rules.push(RuleIntent { kind: RuleKind::Port { protocol, port, node_port }, probe });
    }
    rules
}

fn source(r: &mut Reader<'_>, setting: &Setting<'_>, high_availability: bool) -> Source {
    let agent = r.policy.health_check.agent_port().is_some();
    if r.service.traffic_policy == TrafficPolicy::Local {
        return match r.service.health_check_node_port {
            // Behind the PROXY protocol the proxy's health check server understands nothing; the
            // agent reads probes with it and without.
            Some(port) if agent || setting.proxy != ProxyProtocol::Enabled => {
                note_ignored(r, high_availability);
                Source::HealthCheck(health_check(r, port))
            }
            Some(_) | None => Source::Own,
        };
    }
    match &r.policy.cluster_probe {
        ClusterProbe::Shared { port, path } => {
            note_shared(r);
            Source::Common(shared(r.policy, *port, Arc::clone(path)))
        }
        ClusterProbe::NodePort => Source::Own,
    }
}

/// The probe of a node, whichever Services it has: where there are agents, they answer it.
fn shared(policy: &Policy, port: u16, path: Arc<str>) -> ProbeIntent {
    let (port, path) = match policy.health_check.agent_port() {
        Some(agent) => (agent, Arc::from(HealthCheck::NODE_PATH)),
        None => (port, path),
    };
    let (interval_s, threshold) = TIMING;
    let (name, protocol) = (ProbeName::Shared, ProbeProtocol::Http);
    ProbeIntent { name, protocol, port, path: Some(path), interval_s, threshold }
}

/// The probe of a node as a whole: a load balancer has one of this name, so that it is as the
/// cloud config has it, where it has one.
fn of_node(policy: &Policy) -> ProbeIntent {
    let (port, path) = match &policy.cluster_probe {
        ClusterProbe::Shared { port, path } => (*port, Arc::clone(path)),
        ClusterProbe::NodePort => (KUBE_PROXY_PORT, Arc::from(HEALTHZ)),
    };
    shared(policy, port, path)
}

fn health_check(r: &mut Reader<'_>, port: u16) -> ProbeIntent {
    let (interval_s, threshold) = timing(r, port);
    let (name, protocol) = (ProbeName::HealthCheck(port), ProbeProtocol::Http);
    // The name stays: from the proxy to the agent and back, a probe is changed where it stands.
    let (port, path) = match r.policy.health_check.agent_port() {
        Some(agent) => (agent, HealthCheck::service_path(&r.service.name).into()),
        None => (port, Arc::from(HEALTHZ)),
    };
    ProbeIntent { name, protocol, port, path: Some(path), interval_s, threshold }
}

/// On the health check node port a port says how often it is probed, and nothing else, but where it
/// has a probe of its own. The one rule of HA ports has one probe, whatever a port says.
fn note_ignored(r: &mut Reader<'_>, high_availability: bool) {
    for port in &r.service.ports {
        let own = r.text(&format!("port_{}_health-probe_port", port.port)).is_some();
        if own && !high_availability {
            continue;
        }
        for (setting, all) in [
            ("port", None),
            ("interval", Some(INTERVAL)),
            ("num-of-probe", Some(COUNT)),
            ("protocol", None),
            ("request-path", None),
        ] {
            let key = format!("port_{}_health-probe_{setting}", port.port);
            let Some(value) = r.raw(&key) else { continue };
            match all {
                Some(_) if !high_availability => {}
                Some(all) => {
                    let message = format!(
                        "{}, which {} sets",
                        PROBE_SETTING_IGNORED.message,
                        annotation::full(all)
                    );
                    r.find_with(&PROBE_SETTING_IGNORED, &annotation::full(&key), value, &message);
                }
                None => r.find(&PROBE_SETTING_IGNORED, &key, value),
            }
        }
    }
}

/// Nodes are probed as a whole, whatever their Services ask for.
fn note_shared(r: &mut Reader<'_>) {
    const SETTINGS: [&str; 5] = ["port", "interval", "num-of-probe", "protocol", "request-path"];
    let message = "{value} has no effect; with clusterServiceLoadBalancerHealthProbeMode shared, \
                   nodes are probed once for all Services";
    let common = [INTERVAL, COUNT, COUNT_OF_TABLE, PATH, PROTOCOL].map(str::to_owned);
    let ports = r.service.ports.iter();
    let of_ports = ports.flat_map(|port| {
        SETTINGS.map(|setting| format!("port_{}_health-probe_{setting}", port.port))
    });
    for key in common.into_iter().chain(of_ports) {
        let Some(value) = r.raw(&key) else { continue };
        r.find_with(&PROBE_SETTING_IGNORED, &annotation::full(&key), value, message);
    }
}

/// The rule for everything, named after the first port.
fn all_ports(r: &mut Reader<'_>, source: &Source) -> Option<RuleIntent> {
    let service = r.service;
    let first = service.ports.first()?;
    let probe = match source {
        Source::Common(probe) | Source::HealthCheck(probe) => Some(probe.clone()),
        Source::Own => first_own(r),
    };
    let kind = RuleKind::AllPorts { protocol: first.protocol, port: first.port };
    Some(RuleIntent { kind, probe })
}

/// The probe of the first port whose probe can be made. What is wrong with those before it does no
/// harm and is noted; where none can be made, all that is wrong counts.
fn first_own(r: &mut Reader<'_>) -> Option<ProbeIntent> {
    let service = r.service;
    let mut wrong = Vec::new();
    for port in &service.ports {
        let (probe, mut findings) = r.aside(|r| own(r, port));
        findings.retain(|finding| finding.severity == Severity::Refusal);
        if probe.is_none() || !findings.is_empty() {
            wrong.extend(findings);
            continue;
        }
        let as_port = port.port;
        let message = format!("{{value}} has no effect; all ports are probed as port {as_port} is");
        for finding in wrong {
            r.find_with(&PROBE_SETTING_IGNORED, &finding.key, &finding.value, &message);
        }
        return own(r, port);
    }
    for port in &service.ports {
        own(r, port);
    }
    None
}

/// Refuses ports that Azure has no rule for.
fn check(r: &mut Reader<'_>, setting: &Setting<'_>, port: &ServicePort) {
    let internal = setting.exposure == Exposure::Internal;
    if port.protocol == Protocol::Sctp && (!internal || r.policy.sku != BalancerSku::Standard) {
        let value = format!("{}/{}", port.protocol.name(), port.port);
        r.find_field(&UNSUPPORTED_SCTP, "spec.ports", &value);
    }
    // Internal IPv6 frontends have no floating IP.
    let translated = setting.floating == FloatingIp::Disabled
        || (internal && setting.families.contains(&Family::V6));
    if translated && port.node_port.is_none() {
        r.find_field(&NODE_PORTS_REQUIRED, "spec.allocateLoadBalancerNodePorts", "false");
    }
}

fn probe(r: &mut Reader<'_>, source: &Source, port: &ServicePort) -> Option<ProbeIntent> {
    match source {
        Source::Common(probe) => Some(probe.clone()),
        Source::HealthCheck(probe) => {
            let elsewhere = r.text(&format!("port_{}_health-probe_port", port.port)).is_some();
            let mut own = if elsewhere && port.protocol == Protocol::Tcp {
                own(r, port)?
            } else {
                timed(r, probe, port.port)
            };
            // The common probe has the name that the rule of this port has.
            let is_named_alike =
                probe.name == ProbeName::HealthCheck(port.port) && port.protocol == Protocol::Tcp;
            if is_named_alike && own.name == ProbeName::Rule {
                own.name = ProbeName::Beside;
            }
            Some(own)
        }
        Source::Own => own(r, port),
    }
}

/// The probe on the health check node port, as often as a port wants it: another one for its rule
/// where that is not as often as for the others.
fn timed(r: &mut Reader<'_>, common: &ProbeIntent, port: u16) -> ProbeIntent {
    let says = |setting: &str| r.raw(&format!("port_{port}_health-probe_{setting}")).is_some();
    let every = (common.interval_s, common.threshold);
    let (interval_s, threshold) =
        if says("interval") || says("num-of-probe") { timing(r, port) } else { every };
    let name = match (interval_s, threshold) == every {
        true => common.name.clone(),
        false => ProbeName::Rule,
    };
    ProbeIntent { name, interval_s, threshold, ..common.clone() }
}

/// The probe of a TCP port. Without a node port the node as a whole is probed.
fn own(r: &mut Reader<'_>, port: &ServicePort) -> Option<ProbeIntent> {
    if port.protocol != Protocol::Tcp {
        return None;
    }
    let key = format!("port_{}_health-probe_port", port.port);
    let target = match r.text(&key) {
        Some(text) => target(r, &key, text)?,
        None => match port.node_port {
            Some(node_port) => node_port,
            None => return Some(of_node(r.policy)),
        },
    };
    let protocol = protocol(r, port);
    let path = match protocol {
        ProbeProtocol::Tcp => None,
        ProbeProtocol::Http | ProbeProtocol::Https => Some(path(r, port.port)),
    };
    let (interval_s, threshold) = timing(r, port.port);
    Some(ProbeIntent { name: ProbeName::Rule, protocol, port: target, path, interval_s, threshold })
}

/// The port that an annotation names: the node port of a port of the Service, or any number.
fn target(r: &mut Reader<'_>, key: &str, text: &str) -> Option<u16> {
    let number = text.parse::<u16>().ok().filter(|port| *port > 0);
    let service = r.service;
    let by_name = r.names.get(&text.to_ascii_lowercase()).copied();
    let by_number = number.and_then(|number| r.ports.get(&number).copied());
    let first = by_name.into_iter().chain(by_number).min();
    let named = first.and_then(|at| service.ports[at].node_port);
    let target = named.or(number);
    if target.is_none() {
        r.find(&INVALID_PROBE_PORT, key, text);
    }
    target
}

/// A port's own annotation decides where it is there, also with an empty value, which is none of
/// the protocols.
fn protocol(r: &mut Reader<'_>, port: &ServicePort) -> ProbeProtocol {
    let key = format!("port_{}_health-probe_protocol", port.port);
    let app = port.app_protocol.as_deref().filter(|text| !text.is_empty());
    let protocol = if let Some(text) = r.raw(&key) {
        annotated(r, &key, text)
    } else if let Some(text) = app {
        parse(text).unwrap_or(ProbeProtocol::Tcp)
    } else if let Some(text) = r.text(PROTOCOL) {
        annotated(r, PROTOCOL, text)
    } else {
        ProbeProtocol::Tcp
    };
    match protocol {
        ProbeProtocol::Https if r.policy.sku == BalancerSku::Basic => ProbeProtocol::Tcp,
        other => other,
    }
}

fn annotated(r: &mut Reader<'_>, key: &str, text: &str) -> ProbeProtocol {
    parse(text).unwrap_or_else(|| {
        r.find(&INVALID_PROBE_PROTOCOL, key, text);
        ProbeProtocol::Tcp
    })
}

fn parse(text: &str) -> Option<ProbeProtocol> {
    let words = [
        ("tcp", ProbeProtocol::Tcp),
        ("http", ProbeProtocol::Http),
        ("https", ProbeProtocol::Https),
    ];
    let found = words.into_iter().find(|(word, _)| text.trim().eq_ignore_ascii_case(word));
    found.map(|(_, protocol)| protocol)
}

fn path(r: &mut Reader<'_>, port: u16) -> Arc<str> {
    let of_port = format!("port_{port}_health-probe_request-path");
    let key = if r.text(&of_port).is_some() { of_port.as_str() } else { PATH };
    let path = r.text(key).unwrap_or("/");
    if !path.starts_with('/') {
        r.find(&INVALID_REQUEST_PATH, key, path);
    }
    if key == PATH { r.path_of_all(path) } else { Arc::from(path) }
}

/// Interval and count under a port number, else for all ports.
fn timing(r: &mut Reader<'_>, port: u16) -> (u16, u16) {
    let chosen = |r: &Reader<'_>, suffix: &str, all: &str| {
        let key = format!("port_{port}_health-probe_{suffix}");
        if r.raw(&key).is_some() { key } else { all.to_owned() }
    };
    let interval_key = chosen(r, "interval", INTERVAL);
    let of_all = match r.raw(COUNT) {
        None if r.raw(COUNT_OF_TABLE).is_some() => COUNT_OF_TABLE,
        _ => COUNT,
    };
    let count_key = chosen(r, "num-of-probe", of_all);
    let interval = whole(r, &interval_key, 5, TIMING.0);
    let count = whole(r, &count_key, 2, TIMING.1);
    let interval = interval.unwrap_or_else(|text| {
        r.find(&INVALID_PROBE_INTERVAL, &interval_key, text);
        TIMING.0.into()
    });
    let count = count.unwrap_or_else(|text| {
        r.find(&INVALID_PROBE_COUNT, &count_key, text);
        TIMING.1.into()
    });
    if u64::from(interval) * u64::from(count) >= PATIENCE_S {
        let key = if r.raw(&interval_key).is_some() { &interval_key } else { &count_key };
        r.find(&PROBE_TOO_SLOW, key, &format!("{interval} s x {count}"));
        return TIMING;
    }
    // Below 120 in product, so both fit.
    (u16::try_from(interval).unwrap_or(TIMING.0), u16::try_from(count).unwrap_or(TIMING.1))
}

/// A whole number from `least`; the text where it is none.
fn whole<'a>(r: &Reader<'a>, key: &str, least: u32, default: u16) -> Result<u32, &'a str> {
    let Some(text) = r.raw(key) else { return Ok(default.into()) };
    // Each port reads the number for all ports anew: zeros before it have an end.
    let number = Some(text).filter(|text| text.len() <= DIGITS).and_then(|text| text.parse().ok());
    number.filter(|number| *number >= least).ok_or(text)
}
