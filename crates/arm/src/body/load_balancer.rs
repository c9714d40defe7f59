//! Load balancers with all that is in them.

use super::compose::{
    child, head, put, put_list, put_location, put_sku, put_some, put_tags, reference, texts, whole,
};
use super::fields::{
    BACK_REFERENCES, BodyError, Child, Envelope, Object, address, children, drop_fields, family,
    flag, number, reference as read_reference, take, take_list, take_sku, take_texts, text, word,
};
use super::pool::{read_pool, write_pool};
use super::public_ip::{ALLOCATIONS, allocation_name};
use model::Family;
use model::ResourceId;
use model::azure::{
    Allocation, Distribution, ForeignCollection, ForeignRule, Frontend, FrontendAddress,
    LoadBalancer, Probe, ProbeProtocol, Rule, RuleProtocol, Sku,
};
use serde_json::Value;
use std::sync::Arc;

const PROTOCOLS: [(&str, RuleProtocol); 3] =
    [("Tcp", RuleProtocol::Tcp), ("Udp", RuleProtocol::Udp), ("All", RuleProtocol::All)];
const DISTRIBUTIONS: [(&str, Distribution); 3] = [
    ("Default", Distribution::Default),
    ("SourceIP", Distribution::SourceIp),
    ("SourceIPProtocol", Distribution::SourceIpProtocol),
];
const PROBE_PROTOCOLS: [(&str, ProbeProtocol); 3] =
    [("Tcp", ProbeProtocol::Tcp), ("Http", ProbeProtocol::Http), ("Https", ProbeProtocol::Https)];
const FOREIGN: [(&str, ForeignCollection); 3] = [
    ("outboundRules", ForeignCollection::Outbound),
    ("inboundNatRules", ForeignCollection::NatRule),
    ("inboundNatPools", ForeignCollection::NatPool),
];
const COLLECTIONS: [&str; 4] =
    ["frontendIPConfigurations", "backendAddressPools", "loadBalancingRules", "probes"];
/// Seconds between two probes where a body does not say.
const DEFAULT_INTERVAL_S: u16 = 15;

/// Reads a load balancer.
///
/// # Errors
/// The body is no object, has no id, or has a frontend, pool, rule or probe that is no object or
/// has no name.
pub fn read_load_balancer(body: &Value) -> Result<LoadBalancer, BodyError> {
    let mut found = Envelope::open_around("load balancer", body, &[], &COLLECTIONS)?;
    let sku = take_sku(&mut found.top, Sku::Basic);
    let id = found.id.clone();
    let p = &mut found.properties;
    let balancer = LoadBalancer {
        etag: found.etag.clone(),
        location: Arc::clone(&found.location),
        edge_zone: found.edge_zone.clone(),
        tags: found.tags.clone(),
        sku,
        scope: take(p, "scope", text),
        frontends: children(&id, body, "frontendIPConfigurations", read_frontend)?,
        pools: children(&id, body, "backendAddressPools", read_pool)?,
        rules: children(&id, body, "loadBalancingRules", read_rule)?,
        probes: children(&id, body, "probes", read_probe)?,
        foreign: take_foreign(p),
        provisioning: found.provisioning,
        rest: found.rest(),
        id,
    };
    Ok(balancer)
}

fn read_frontend(body: &Value) -> Result<Frontend, BodyError> {
    let mut found = Child::open("frontend", body, &BACK_REFERENCES)?;
    let zones = take_texts(&mut found.top, "zones");
    let address = take_frontend_address(&mut found.properties);
    Ok(Frontend { name: Arc::clone(&found.name), zones, address, rest: found.rest() })
}

fn take_frontend_address(p: &mut Object) -> FrontendAddress {
    if let Some(ip) = take(p, "publicIPAddress", read_reference) {
        return FrontendAddress::Public(ip);
    }
    let Some(subnet) = take(p, "subnet", read_reference) else { return FrontendAddress::Other };
    let found = take(p, "privateIPAddress", address);
    let written = take(p, "privateIPAddressVersion", family);
    FrontendAddress::Private {
        subnet,
        family: written.or(found.map(Family::of)).unwrap_or(Family::V4),
        allocation: take(p, "privateIPAllocationMethod", word(&ALLOCATIONS))
            .unwrap_or(Allocation::Dynamic),
        address: found,
    }
}

fn read_rule(body: &Value) -> Result<Rule, BodyError> {
    let mut found = Child::open("load-balancing rule", body, &[])?;
    let p = &mut found.properties;
    let pool = take(p, "backendAddressPool", read_reference);
    drop_repeated_pool(p, pool.as_ref());
    Ok(Rule {
        name: Arc::clone(&found.name),
        protocol: take(p, "protocol", word(&PROTOCOLS)).unwrap_or(RuleProtocol::All),
        frontend_port: take(p, "frontendPort", number).unwrap_or(0),
        backend_port: take(p, "backendPort", number).unwrap_or(0),
        frontend: take(p, "frontendIPConfiguration", read_reference),
        pool,
        probe: take(p, "probe", read_reference),
        floating_ip: take(p, "enableFloatingIP", flag),
        idle_timeout_min: take(p, "idleTimeoutInMinutes", number),
        distribution: take(p, "loadDistribution", word(&DISTRIBUTIONS)),
        disable_outbound_snat: take(p, "disableOutboundSnat", flag),
        tcp_reset: take(p, "enableTcpReset", flag),
        rest: found.rest(),
    })
}

/// Azure repeats a rule's one pool as a list of one.
fn drop_repeated_pool(p: &mut Object, pool: Option<&ResourceId>) {
    let Some(Value::Array(pools)) = p.get("backendAddressPools") else { return };
    let repeated = match pools.as_slice() {
        [] => true,
        [one] => read_reference(one).as_ref() == pool,
        _ => false,
    };
    if repeated {
        p.shift_remove("backendAddressPools");
    }
}

fn read_probe(body: &Value) -> Result<Probe, BodyError> {
    let mut found = Child::open("probe", body, &BACK_REFERENCES)?;
    let p = &mut found.properties;
    let threshold = match take(p, "probeThreshold", number) {
        Some(threshold) => threshold,
        None => {
            // A null here says: there was none. It is only written once it differs from what
            // its absence means.
            p.entry("probeThreshold").or_insert(Value::Null);
            absent_threshold(p)
        }
    };
    Ok(Probe {
        name: Arc::clone(&found.name),
        protocol: take(p, "protocol", word(&PROBE_PROTOCOLS)).unwrap_or(ProbeProtocol::Tcp),
        port: take(p, "port", number).unwrap_or(0),
        path: take(p, "requestPath", text),
        interval_s: take(p, "intervalInSeconds", number).unwrap_or(DEFAULT_INTERVAL_S),
        threshold,
        rest: found.rest(),
    })
}

/// Older probes count with `numberOfProbes`, which stays in the rest.
fn absent_threshold(rest: &Object) -> u16 {
    rest.get("numberOfProbes").and_then(number).unwrap_or(1)
}

fn take_foreign(p: &mut Object) -> Vec<ForeignRule> {
    let mut rules = Vec::new();
    for (key, collection) in FOREIGN {
        let items = take_list(p, key);
        rules.extend(items.into_iter().filter(|v| !v.is_null()).map(|v| foreign(collection, v)));
    }
    rules
}

fn foreign(collection: ForeignCollection, mut body: Value) -> ForeignRule {
    if let Value::Object(fields) = &mut body {
        drop_fields(fields, &["id", "etag", "type"]);
        if let Some(Value::Object(properties)) = fields.get_mut("properties") {
            drop_fields(properties, &["provisioningState"]);
        }
    }
    let field = |key: &str| body.get("properties").and_then(|p| p.get(key));
    let mut frontends: Vec<_> =
        field("frontendIPConfiguration").and_then(read_reference).into_iter().collect();
    if let Some(Value::Array(items)) = field("frontendIPConfigurations") {
        frontends.extend(items.iter().filter_map(read_reference));
    }
    let protocol = field("protocol").and_then(word(&PROTOCOLS)).unwrap_or(RuleProtocol::All);
    let port = |key: &str| field(key).and_then(number).filter(|n| *n != 0);
    let first = port("frontendPort").or_else(|| port("frontendPortRangeStart"));
    let last = port("frontendPort").or_else(|| port("frontendPortRangeEnd"));
    let ports = match collection {
        ForeignCollection::Outbound => None,
        ForeignCollection::NatRule | ForeignCollection::NatPool => {
            first.map(|first| (protocol, first, last.unwrap_or(first)))
        }
    };
    ForeignRule { collection, frontends, ports, body }
}

/// Writes a load balancer.
#[must_use]
pub fn write_load_balancer(balancer: &LoadBalancer) -> Value {
    let LoadBalancer {
        id,
        etag: _,
        location,
        edge_zone,
        tags,
        sku,
        scope,
        frontends,
        pools,
        rules,
        probes,
        foreign,
        provisioning: _,
        rest,
    } = balancer;
    let mut rest = rest.unpack();
    let mut top = head(id);
    put_location(&mut top, location, edge_zone.as_ref());
    put_tags(&mut top, tags.as_ref(), &mut rest);
    put_sku(&mut top, *sku, &mut rest);
    let mut p = Object::new();
    put_some(&mut p, "scope", scope.as_deref());
    put_list(&mut p, "frontendIPConfigurations", frontends.iter().map(write_frontend).collect());
    put_list(&mut p, "backendAddressPools", pools.iter().map(write_pool).collect());
    put_list(&mut p, "loadBalancingRules", rules.iter().map(write_rule).collect());
    put_list(&mut p, "probes", probes.iter().map(write_probe).collect());
    for (key, collection) in FOREIGN {
        let items = foreign.iter().filter(|f| f.collection == collection);
        put_list(&mut p, key, items.map(|f| f.body.clone()).collect());
    }
    whole(top, p, rest)
}

fn write_frontend(frontend: &Frontend) -> Value {
    let Frontend { name, zones, address, rest } = frontend;
    let mut top = Object::new();
    put_list(&mut top, "zones", texts(zones));
    let mut p = Object::new();
    match address {
        FrontendAddress::Public(ip) => put(&mut p, "publicIPAddress", reference(ip)),
        FrontendAddress::Private { subnet, family, allocation, address } => {
            put(&mut p, "subnet", reference(subnet));
            put(&mut p, "privateIPAllocationMethod", allocation_name(*allocation));
            put_some(&mut p, "privateIPAddress", address.map(|a| a.to_string()));
            if *family == Family::V6 {
                put(&mut p, "privateIPAddressVersion", family.name());
            }
        }
        FrontendAddress::Other => {}
    }
    child(name, top, p, rest.unpack())
}

fn write_rule(rule: &Rule) -> Value {
    let Rule {
        name,
        protocol,
        frontend_port,
        backend_port,
        frontend,
        pool,
        probe,
        floating_ip,
        idle_timeout_min,
        distribution,
        disable_outbound_snat,
        tcp_reset,
        rest,
    } = rule;
    let mut p = Object::new();
    put(&mut p, "protocol", spelled(&PROTOCOLS, *protocol));
    put(&mut p, "frontendPort", *frontend_port);
    put(&mut p, "backendPort", *backend_port);
    put_some(&mut p, "frontendIPConfiguration", frontend.as_ref().map(reference));
    put_some(&mut p, "backendAddressPool", pool.as_ref().map(reference));
    put_some(&mut p, "probe", probe.as_ref().map(reference));
    put_some(&mut p, "enableFloatingIP", *floating_ip);
    put_some(&mut p, "idleTimeoutInMinutes", *idle_timeout_min);
    put_some(&mut p, "loadDistribution", distribution.map(|d| spelled(&DISTRIBUTIONS, d)));
    put_some(&mut p, "disableOutboundSnat", *disable_outbound_snat);
    put_some(&mut p, "enableTcpReset", *tcp_reset);
    child(name, Object::new(), p, rest.unpack())
}

fn write_probe(probe: &Probe) -> Value {
    let Probe { name, protocol, port, path, interval_s, threshold, rest } = probe;
    let mut rest = rest.unpack();
    let mut p = Object::new();
    put(&mut p, "protocol", spelled(&PROBE_PROTOCOLS, *protocol));
    put(&mut p, "port", *port);
    put_some(&mut p, "requestPath", path.as_deref());
    put(&mut p, "intervalInSeconds", *interval_s);
    let absent = match rest.properties.get("probeThreshold") {
        Some(Value::Null) => *threshold == absent_threshold(&rest.properties),
        _ => false,
    };
    if rest.properties.get("probeThreshold").is_some_and(Value::is_null) {
        rest.properties.shift_remove("probeThreshold");
    }
    if !absent {
        put(&mut p, "probeThreshold", *threshold);
    }
    child(name, Object::new(), p, rest)
}

/// The word for a value: each of these tables has every value once.
fn spelled<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, v)| *v == value).map_or("", |(w, _)| *w)
}
