//! What container load balancers can do.

use super::read::families;
use super::words::{Words, refuse};
use super::{Access, Asks, Family, Invalid, Mode, Port, Protocol, PublicIp, ports};
use crate::estate::{items, text};
use std::collections::{BTreeMap, BTreeSet};

/// What a Service asks of its container load balancer: ports and the idle timeout.
pub(super) fn read(words: &Words<'_>) -> Result<Asks, Invalid> {
    let spec = &words.service["spec"];
    let families: Vec<Family> = families(spec);
    if words.flag("azure-load-balancer-internal") {
        return Err(refuse("azure-load-balancer-internal", "true"));
    }
    if text(&spec["sessionAffinity"]) == "ClientIP" {
        return Err(refuse("spec.sessionAffinity", "ClientIP"));
    }
    if !text(&spec["loadBalancerIP"]).is_empty() {
        return Err(refuse("spec.loadBalancerIP", text(&spec["loadBalancerIP"])));
    }
    if families.len() > 1 {
        return Err(refuse("spec.ipFamilies", "two"));
    }
    limits(words, families.first())?;
    Ok(Asks {
        internal: false,
        internal_loosely: false,
        subnet: None,
        mode: Mode::Primary,
        configurations: None,
        families,
        pinned: BTreeMap::new(),
        additional: Vec::new(),
        idle_minutes: words.number("azure-load-balancer-tcp-idle-timeout", (4, 30), 4)?,
        ha_ports: false,
        floating: true,
        tcp_reset: true,
        client_ip: false,
        local: text(&spec["externalTrafficPolicy"]) == "Local",
        health_port: spec["healthCheckNodePort"].as_u64().unwrap_or(0),
        proxied: false,
        health_timing: (5, 2),
        ports: read_ports(words)?,
        access: Access::default(),
        public_ip: PublicIp::default(),
        link: None,
    })
}

/// Nothing stands before the pods that could keep anybody out: who asks for that is refused. To
/// let everybody in takes nothing.
fn limits(words: &Words<'_>, family: Option<&Family>) -> Result<(), Invalid> {
    let everybody = if family == Some(&Family::V6) { "::/0" } else { "0.0.0.0/0" };
    let keys =
        ["azure-allowed-service-tags", "azure-allowed-ip-ranges", "load-balancer-source-ranges"];
    let mut sources: Vec<&str> = keys.iter().flat_map(|key| words.list(key)).collect();
    let field = items(&words.service["spec"]["loadBalancerSourceRanges"]);
    sources.extend(field.map(|range| text(range).trim()));
    let open = |source: &&str| [everybody, "Internet", "*"].contains(source);
    // A list without an entry admits no source.
    let empty = || keys.iter().any(|key| words.whole(key).is_some());
    if sources.iter().any(open) || (sources.is_empty() && !empty()) {
        return Ok(());
    }
    Err(refuse("spec.loadBalancerSourceRanges", &sources.join(",")))
}

fn read_ports(words: &Words<'_>) -> Result<Vec<Port>, Invalid> {
    let mut taken = BTreeSet::new();
    let mut all = Vec::new();
    for entry in items(&words.service["spec"]["ports"]) {
        let number = entry["port"].as_u64().unwrap_or(0);
        let protocol = ports::protocol(entry);
        let target = match entry["targetPort"].is_string() {
            true => None,
            false => Some(entry["targetPort"].as_u64().filter(|p| *p > 0).unwrap_or(number)),
        };
        let possible = (1..=65_534).contains(&number)
            && target.is_none_or(|target| (1..=65_535).contains(&target));
        let alone = target.is_none_or(|target| taken.insert((protocol, target)));
        if protocol == Protocol::Sctp || !possible || !alone {
            return Err(refuse("spec.ports", &format!("{}/{number}", protocol.name())));
        }
        all.push(Port {
            name: text(&entry["name"]).to_owned(),
            protocol,
            number,
            node_port: entry["nodePort"].as_u64().unwrap_or(0),
            target,
            has_rule: true,
            probe: None,
            no_probe: false,
            own_probe_port: false,
            health_timing: None,
        });
    }
    Ok(all)
}
