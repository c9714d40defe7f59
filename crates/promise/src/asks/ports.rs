//! Ports and their probes.

use super::read::Setting;
use super::words::{Words, refuse};
use super::{Family, Invalid, Port, Probe, ProbeProtocol, Protocol};
use crate::estate::{items, same, text};
use crate::site::{SharedProbe, Sku};
use serde_json::Value;

/// Where kube-proxy tells of its health.
const KUBE_PROXY: u64 = 10_256;

/// The ports of a Service. Probes of ports are read where the Service has such
/// (`own_probes`): neither the health check node port nor the shared probe stands for them.
pub(super) fn read(
    words: &Words<'_>,
    setting: &Setting<'_>,
    local: bool,
    own_probes: bool,
) -> Result<Vec<Port>, Invalid> {
    let ports = &words.service["spec"]["ports"];
    let mut wrong = None;
    let read = |entry| port(words, setting, entry, local, own_probes, &mut wrong);
    let ports = items(ports).map(read).collect::<Result<Vec<Port>, Invalid>>()?;
    match wrong {
        Some(invalid) if ports.iter().all(|port| port.probe.is_none()) => Err(invalid),
        _ => Ok(ports),
    }
}

/// A port. With HA ports the first probe that cannot be made goes to `wrong`, and its port has
/// none.
fn port(
    words: &Words<'_>,
    setting: &Setting<'_>,
    entry: &Value,
    local: bool,
    own_probes: bool,
    wrong: &mut Option<Invalid>,
) -> Result<Port, Invalid> {
    let number = entry["port"].as_u64().unwrap_or(0);
    let node_port = entry["nodePort"].as_u64().unwrap_or(0);
    let protocol = protocol(entry);
    let has_rule = !words.flag(&format!("port_{number}_no_lb_rule"));
    let no_probe = words.flag(&format!("port_{number}_no_probe_rule"));
    let own_probe_port = words.text(&format!("port_{number}_health-probe_port")).is_some();
    if has_rule {
        // SCTP needs the rule for all protocols, which internal Standard load balancers have.
        if protocol == Protocol::Sctp && !(setting.internal && words.is_standard()) {
            return Err(refuse("spec.ports", &format!("SCTP/{number}")));
        }
        // Without floating IP, and on internal IPv6 frontends, backends are reached on node ports;
        // with HA ports on whichever port was asked for.
        let off = !setting.floating || (setting.internal && setting.families.contains(&Family::V6));
        let translated = off && !setting.ha_ports;
        if translated && node_port == 0 {
            return Err(refuse("spec.allocateLoadBalancerNodePorts", "false"));
        }
    }
    // The one rule of HA ports has the first probe that can be made, whatever the port's own rule
    // would have; where one probe is common to all rules, that one.
    let read_probe = (has_rule && !no_probe || setting.ha_ports)
        && protocol == Protocol::Tcp
        && (own_probes || (local && own_probe_port && !setting.ha_ports));
    let probe = match read_probe.then(|| probe(words, entry, number, node_port)).transpose() {
        Err(invalid) if setting.ha_ports => {
            wrong.get_or_insert(invalid);
            None
        }
        read => read?,
    };
    // How often the health check node port is asked for the port's rule.
    let says = |rest: &str| words.whole(&format!("port_{number}_health-probe_{rest}")).is_some();
    let at_health_port = local && !own_probes && has_rule && !no_probe && !setting.ha_ports;
    let elsewhere = own_probe_port && protocol == Protocol::Tcp;
    let timed = at_health_port && !elsewhere && (says("interval") || says("num-of-probe"));
    let health_timing = timed.then(|| timing(words, number)).transpose()?;
    let target = &entry["targetPort"];
    let target = match target {
        Value::Null => Some(number),
        other => other.as_u64().map(|t| if t == 0 { number } else { t }),
    };
    let name = text(&entry["name"]).to_owned();
    Ok(Port {
        name,
        protocol,
        number,
        node_port,
        target,
        has_rule,
        probe,
        no_probe,
        own_probe_port,
        health_timing,
    })
}

/// TCP where nothing is said.
pub(super) fn protocol(entry: &Value) -> Protocol {
    match text(&entry["protocol"]) {
        "UDP" => Protocol::Udp,
        "SCTP" => Protocol::Sctp,
        _ => Protocol::Tcp,
    }
}

fn probe(words: &Words<'_>, entry: &Value, number: u64, node_port: u64) -> Result<Probe, Invalid> {
    let key = format!("port_{number}_health-probe_port");
    let port = match words.text(&key) {
        Some(value) => probed_port(words, &key, value)?,
        // Nothing answers on the nodes for this port alone: kube-proxy or the agent is asked.
        None if node_port == 0 => {
            // A load balancer has one probe of that name: the one of the cloud config.
            let at_proxy = || SharedProbe { port: KUBE_PROXY, path: "/healthz".to_owned() };
            let of_node = || words.site.agent.map_or_else(at_proxy, SharedProbe::of_agent);
            let SharedProbe { port, path } =
                words.site.shared_probe.clone().unwrap_or_else(of_node);
            let protocol = ProbeProtocol::Http;
            return Ok(Probe { protocol, port, path: Some(path), seconds: 5, count: 2 });
        }
        None => node_port,
    };
    let protocol = probe_protocol(words, entry, number);
    let path = match protocol {
        ProbeProtocol::Tcp => None,
        ProbeProtocol::Http | ProbeProtocol::Https => Some(path(words, number)?),
    };
    let (seconds, count) = timing(words, number)?;
    Ok(Probe { protocol, port, path, seconds, count })
}

/// The node port of a port of the Service, by name or number; else any port by its number.
fn probed_port(words: &Words<'_>, key: &str, value: &str) -> Result<u64, Invalid> {
    let number = value.parse::<u64>().ok().filter(|port| (1..=65_535).contains(port));
    let mut ports = items(&words.service["spec"]["ports"]);
    let named = ports.find(|port| {
        let name = text(&port["name"]);
        (!name.is_empty() && same(name, value))
            || (number.is_some() && port["port"].as_u64() == number)
    });
    let node_port = named.and_then(|port| port["nodePort"].as_u64()).filter(|port| *port > 0);
    node_port.or(number).ok_or_else(|| refuse(key, value))
}

/// The port's own annotation, then `appProtocol`, then the annotation for all ports, then TCP.
/// What is none of the three counts as TCP, also an empty value; so does Https on Basic.
fn probe_protocol(words: &Words<'_>, entry: &Value, number: u64) -> ProbeProtocol {
    let of_port = words.whole(&format!("port_{number}_health-probe_protocol"));
    let of_app = entry["appProtocol"].as_str().filter(|text| !text.is_empty());
    let of_all = words.text("azure-load-balancer-health-probe-protocol");
    let chosen = of_port.or(of_app).or(of_all).unwrap_or("tcp").trim().to_lowercase();
    match &*chosen {
        "http" => ProbeProtocol::Http,
        "https" if words.site.sku != Sku::Basic => ProbeProtocol::Https,
        _ => ProbeProtocol::Tcp,
    }
}

fn path(words: &Words<'_>, number: u64) -> Result<String, Invalid> {
    let of_port = format!("port_{number}_health-probe_request-path");
    let of_all = "azure-load-balancer-health-probe-request-path";
    let (key, value) = match (words.text(&of_port), words.text(of_all)) {
        (Some(value), _) => (&*of_port, value),
        (None, Some(value)) => (of_all, value),
        (None, None) => return Ok("/".to_owned()),
    };
    if value.starts_with('/') { Ok(value.to_owned()) } else { Err(refuse(key, value)) }
}

/// Seconds between two probes, from 5, and how many count, from 2; together less than 120 s.
pub(super) fn timing(words: &Words<'_>, number: u64) -> Result<(u64, u64), Invalid> {
    let value = |of_port: &str, of_all: &str, least: u64| {
        let of_port = format!("port_{number}_health-probe_{of_port}");
        let key = if words.whole(&of_port).is_some() { &*of_port } else { of_all };
        words.number(key, (least, u64::from(u32::MAX)), least)
    };
    let seconds = value("interval", "azure-load-balancer-health-probe-interval", 5)?;
    let spellings = [
        "azure-load-balancer-health-probe-num-of-probe",
        "load-balancer-health-probe-num-of-probe",
    ];
    let there = spellings.into_iter().find(|key| words.whole(key).is_some());
    let count = value("num-of-probe", there.unwrap_or(spellings[0]), 2)?;
    if seconds * count >= 120 {
        return Err(refuse("interval times count", &format!("{seconds} s x {count}")));
    }
    Ok((seconds, count))
}
