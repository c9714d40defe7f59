//! What Azure refuses in the rules of a load balancer, by themselves and beside each other. Codes
//! that no public thread confirms carry the name that says what is wrong.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::json::{at, list, number, references, same, text};
use crate::message::{Checked, refuse};
use crate::path::last;
use crate::store::Entry;

const MAX_RULES: usize = 1_500;

/// A frontend (lower-case name), a port and a protocol: where traffic enters.
type Listeners = BTreeMap<(String, i64, String), String>;

/// Checks the rules of all sorts against the other elements and against one another.
pub(crate) fn check_rules(entry: &Entry) -> Checked {
    let rules = list(&entry.value, &["properties", "loadBalancingRules"]);
    let nat = list(&entry.value, &["properties", "inboundNatRules"]);
    if rules.len() + nat.len() > MAX_RULES {
        let message = format!("{} has more than {MAX_RULES} rules.", entry.id);
        return refuse("LoadBalancingRuleCountLimitReached", message);
    }
    let names = Names::new(entry);
    let mut listeners = Listeners::new();
    let mut backends = BTreeMap::new();
    let public = public_frontends(entry);
    for rule in rules {
        names.check(entry, rule, true)?;
        check_values(entry, rule)?;
        check_every_port(entry, rule, &public)?;
        listen(&mut listeners, entry, rule, number(&rule["properties"], &["frontendPort"]))?;
        check_backend(&mut backends, entry, rule)?;
    }
    for rule in nat {
        names.check(entry, rule, false)?;
        if let Some(port) = number(&rule["properties"], &["frontendPort"]) {
            listen(&mut listeners, entry, rule, Some(port))?;
        }
    }
    for pool in list(&entry.value, &["properties", "inboundNatPools"]) {
        names.check(entry, pool, false)?;
        let inside = &pool["properties"];
        let first = number(inside, &["frontendPortRangeStart"]).unwrap_or(1);
        let final_ = number(inside, &["frontendPortRangeEnd"]).unwrap_or(first).min(65_535);
        for port in first..=final_ {
            listen(&mut listeners, entry, pool, Some(port))?;
        }
    }
    for rule in list(&entry.value, &["properties", "outboundRules"]) {
        names.check(entry, rule, false)?;
    }
    Ok(())
}

/// The lower-case ids of the elements rules may refer to.
struct Names(BTreeSet<String>);

impl Names {
    fn new(entry: &Entry) -> Self {
        let collections = ["frontendIPConfigurations", "backendAddressPools", "probes"];
        let ids = collections.iter().flat_map(|collection| {
            list(&entry.value, &["properties", collection]).iter().map(move |element| {
                format!("{}/{collection}/{}", entry.id, text(element, &["name"])).to_lowercase()
            })
        });
        Names(ids.collect())
    }

    fn check(&self, entry: &Entry, rule: &Value, needs_frontend: bool) -> Checked {
        let inside = &rule["properties"];
        let name = text(rule, &["name"]);
        for key in [
            "frontendIPConfiguration",
            "frontendIPConfigurations",
            "backendAddressPool",
            "backendAddressPools",
            "probe",
        ] {
            for id in references(at(inside, &[key])) {
                if !self.0.contains(&id.to_lowercase()) {
                    let message = format!(
                        "Resource {id} referenced by resource {}, rule {name}, was not found. \
                         Please make sure that the referenced resource exists, and that both \
                         resources are in the same region.",
                        entry.id
                    );
                    return refuse("InvalidResourceReference", message);
                }
            }
        }
        if needs_frontend && references(at(inside, &["frontendIPConfiguration"])).is_empty() {
            let message = format!("Rule {name} of {} has no frontend.", entry.id);
            return refuse("LoadBalancingRuleMustReferenceFrontendIPConfiguration", message);
        }
        Ok(())
    }
}

fn check_values(entry: &Entry, rule: &Value) -> Checked {
    let inside = &rule["properties"];
    let name = text(rule, &["name"]);
    let bad = |what: &str| {
        refuse("InvalidParameterValue", format!("Rule {name} of {}: {what}.", entry.id))
    };
    let lowest = if same(text(inside, &["protocol"]), "All") { 0 } else { 1 };
    let port = |key: &str| number(inside, &[key]).unwrap_or(-1);
    if !(lowest..=65_534).contains(&port("frontendPort")) {
        return bad("the frontend port must be 1 to 65534, or 0 with protocol All");
    }
    if !(lowest..=65_535).contains(&port("backendPort")) {
        return bad("the backend port must be 1 to 65535, or 0 with protocol All");
    }
    let idle = number(inside, &["idleTimeoutInMinutes"]).unwrap_or(4);
    let longest = if same(text(&entry.value, &["sku", "name"]), "Standard") { 100 } else { 30 };
    if !(4..=longest).contains(&idle) {
        return bad(&format!("idleTimeoutInMinutes must be 4 to {longest}"));
    }
    Ok(())
}

/// The lower-case names of the frontends with a public address.
fn public_frontends(entry: &Entry) -> BTreeSet<String> {
    let frontends = list(&entry.value, &["properties", "frontendIPConfigurations"]).iter();
    let public = frontends.filter(|frontend| {
        let inside = &frontend["properties"];
        let has = |key: &str| !text(inside, &[key, "id"]).is_empty();
        has("publicIPAddress") || has("publicIPPrefix")
    });
    public.map(|frontend| text(frontend, &["name"]).to_lowercase()).collect()
}

/// A rule of protocol All is of all ports and stands on an internal frontend (Azure documentation,
/// "High availability ports overview"). On an internal one a port is taken: cloud-provider-azure
/// writes SCTP so. No public thread has the codes.
fn check_every_port(entry: &Entry, rule: &Value, public: &BTreeSet<String>) -> Checked {
    let inside = &rule["properties"];
    let name = text(rule, &["name"]);
    let frontend = last(text(inside, &["frontendIPConfiguration", "id"])).to_lowercase();
    if !same(text(inside, &["protocol"]), "All") || !public.contains(&frontend) {
        return Ok(());
    }
    let ports = ["frontendPort", "backendPort"].map(|key| number(inside, &[key]).unwrap_or(0));
    if ports != [0, 0] {
        let message = format!(
            "Load balancing rule {name} of {} has protocol All and a port; the frontend port and \
             the backend port must be 0.",
            entry.id
        );
        return refuse("LoadBalancingRuleProtocolAllRequiresPortZero", message);
    }
    let message = format!(
        "Load balancing rule {name} of {} is of all ports, which a public frontend cannot have.",
        entry.id
    );
    refuse("HighAvailabilityPortsNotAllowedOnPublicLoadBalancer", message)
}

/// Protocol All takes its port of every protocol; with port 0 it takes every port.
fn listen(listeners: &mut Listeners, entry: &Entry, rule: &Value, port: Option<i64>) -> Checked {
    let inside = &rule["properties"];
    let frontend = last(text(inside, &["frontendIPConfiguration", "id"])).to_lowercase();
    let protocol = text(inside, &["protocol"]).to_lowercase();
    let name = text(rule, &["name"]).to_owned();
    let port = port.unwrap_or(0);
    let all = |protocol: &str| protocol == "all";
    let clash = |(_, at, other): &(String, i64, String)| {
        let whole = (all(&protocol) && port == 0) || (all(other) && *at == 0);
        whole || (*at == port && (*other == protocol || all(other) || all(&protocol)))
    };
    let from = (frontend.clone(), i64::MIN, String::new());
    let mut here = listeners.range(from..).take_while(|(key, _)| key.0 == frontend);
    let other = here.find(|(key, _)| clash(key)).map(|(_, found)| found.clone());
    listeners.insert((frontend, port, protocol), name.clone());
    match other {
        None => Ok(()),
        Some(other) => {
            let message = format!(
                "Load balancing rules {other} and {name} of {} use the same frontend port {port}, \
                 protocol and frontend ip configuration.",
                entry.id
            );
            refuse("RulesUseSameFrontendPortProtocolAndIPConfig", message)
        }
    }
}

/// Without floating IP, a pool's (protocol, port) can only serve one rule.
fn check_backend(
    backends: &mut BTreeMap<(String, String, i64), String>,
    entry: &Entry,
    rule: &Value,
) -> Checked {
    let inside = &rule["properties"];
    let pool = last(text(inside, &["backendAddressPool", "id"])).to_lowercase();
    if inside["enableFloatingIP"].as_bool() == Some(true) || pool.is_empty() {
        return Ok(());
    }
    let protocol = text(inside, &["protocol"]).to_lowercase();
    let port = number(inside, &["backendPort"]).unwrap_or(0);
    let name = text(rule, &["name"]);
    match backends.insert((pool, protocol, port), name.to_owned()) {
        None => Ok(()),
        Some(other) => {
            let message = format!(
                "Load balancing rules {other} and {name} belong to the load balancer {} and use \
                 the same backend port {port}, protocol and pool without floating IP.",
                entry.id
            );
            refuse("RulesUseSameBackendPortProtocolAndPool", message)
        }
    }
}
