//! What a Service asks for: its spec, and where it is to be placed.

use super::words::{Words, is_group, is_name, refuse};
use super::{Asks, Family, Invalid, Mode, access, addresses, container, link, ports, public_ip};
use crate::estate::{items, same, text};
use crate::site::{Layout, Site};
use serde_json::Value;

/// What a Service asks for.
///
/// # Errors
/// A value that the reference calls refused.
pub(crate) fn read(service: &Value, site: &Site) -> Result<Asks, Invalid> {
    let words = Words { service, site };
    if site.layout == Layout::Container {
        return container::read(&words);
    }
    let spec = &service["spec"];
    let internal = words.strict_flag("azure-load-balancer-internal");
    let families = families(spec);
    let floating = !words.flag("azure-disable-load-balancer-floating-ip");
    let ha_ports = internal
        && words.is_standard()
        && words.flag("azure-load-balancer-enable-high-availability-ports");
    let setting = Setting { internal, floating, ha_ports, families: &families };
    let subnet = subnet(&words, internal)?;
    let pinned = addresses::pinned(&words, &setting)?;
    let public_ip = if internal { <_>::default() } else { public_ip::read(&words, &families)? };
    let brings = !pinned.is_empty() || !public_ip.name.is_empty();
    let link = link::read(&words, &setting)?;
    let local = text(&spec["externalTrafficPolicy"]) == "Local";
    let health_port = spec["healthCheckNodePort"].as_u64().unwrap_or(0);
    // Read more strictly than for the link itself: blanks around the value count here.
    let proxied = words.flag("azure-pls-create") && words.flag("azure-pls-proxy-protocol");
    let shared = site.shared_probe.is_some();
    // An agent reads the PROXY protocol, the proxy's health check server does not.
    let unread = proxied && site.agent.is_none();
    let own_probes = if local { health_port == 0 || unread } else { !shared };
    Ok(Asks {
        internal,
        internal_loosely: words.flag("azure-load-balancer-internal"),
        subnet,
        mode: mode(&words)?,
        configurations: configurations(&words, brings)?,
        pinned,
        additional: addresses::additional(&words)?,
        idle_minutes: {
            let longest = if words.is_standard() { 100 } else { 30 };
            words.number("azure-load-balancer-tcp-idle-timeout", (4, longest), 4)?
        },
        ha_ports,
        floating,
        tcp_reset: !words.flag("azure-load-balancer-disable-tcp-reset"),
        client_ip: text(&spec["sessionAffinity"]) == "ClientIP",
        local,
        health_port,
        proxied,
        health_timing: match local && !own_probes {
            true => ports::timing(&words, health_port)?,
            false => (5, 2),
        },
        ports: ports::read(&words, &setting, local, own_probes)?,
        access: access::read(&words)?,
        public_ip,
        link,
        families,
    })
}

/// What other wishes depend on.
pub(super) struct Setting<'a> {
    pub(super) internal: bool,
    pub(super) floating: bool,
    pub(super) ha_ports: bool,
    pub(super) families: &'a [Family],
}

/// `spec.ipFamilies`; IPv4 where nothing is said.
pub(super) fn families(spec: &Value) -> Vec<Family> {
    let named = items(&spec["ipFamilies"]).filter_map(|family| match text(family) {
        "IPv4" => Some(Family::V4),
        "IPv6" => Some(Family::V6),
        _ => None,
    });
    let families: Vec<Family> = named.collect();
    if families.is_empty() { vec![Family::V4] } else { families }
}

/// `azure-load-balancer-internal-subnet` counts on internal load balancers.
fn subnet(words: &Words<'_>, internal: bool) -> Result<Option<String>, Invalid> {
    if internal { named(words, "azure-load-balancer-internal-subnet") } else { Ok(None) }
}

/// A key whose value is a name.
pub(super) fn named(words: &Words<'_>, key: &str) -> Result<Option<String>, Invalid> {
    match words.text(key) {
        Some(name) if is_name(name) => Ok(Some(name.to_owned())),
        Some(other) => Err(refuse(key, other)),
        None => Ok(None),
    }
}

/// `azure-load-balancer-mode` counts where each node set has a load balancer of its own.
fn mode(words: &Words<'_>) -> Result<Mode, Invalid> {
    let key = "azure-load-balancer-mode";
    if !matches!(words.site.layout, Layout::PerSet { .. }) {
        return Ok(Mode::Primary);
    }
    match words.text(key) {
        None => Ok(Mode::Primary),
        Some(value) if same(value, "__auto__") => Ok(Mode::Auto),
        Some(value) if is_name(value) => Ok(Mode::Set(value.to_owned())),
        Some(value) => Err(refuse(key, value)),
    }
}

/// `azure-load-balancer-configurations` counts where there are several load balancers. A pinned
/// address or a public IP that is brought decides the load balancer by itself. An empty list names
/// no load balancer.
fn configurations(words: &Words<'_>, brings: bool) -> Result<Option<Vec<String>>, Invalid> {
    let key = "azure-load-balancer-configurations";
    let Layout::Several(elements) = &words.site.layout else { return Ok(None) };
    let Some(value) = words.in_any_case(key) else { return Ok(None) };
    let names = value.split(',').map(|name| name.trim().to_lowercase());
    let known: Vec<String> =
        names.filter(|name| elements.iter().any(|element| same(&element.name, name))).collect();
    if known.is_empty() || brings {
        return Err(refuse(key, value));
    }
    Ok(Some(known))
}

/// The name of a resource group, where an annotation has one.
pub(super) fn group(words: &Words<'_>, key: &str, own: &str) -> Result<Option<String>, Invalid> {
    match words.text(key) {
        Some(name) if is_group(name) && words.site.allows_group(name, own) => {
            Ok(Some(name.to_owned()))
        }
        Some(other) => Err(refuse(key, other)),
        None => Ok(None),
    }
}
