//! Security groups and their rules.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};

use crate::json::{drop_keys, list, number, properties, same, text};
use crate::message::{Checked, refuse};
use crate::rules::{check_names, strip_elements};
use crate::store::Entry;

const MAX_RULES: usize = 1_000;
const MAX_PREFIXES: usize = 4_000;

pub(crate) fn prepare(entry: &mut Entry) -> Checked {
    drop_keys(
        properties(&mut entry.value),
        &["defaultSecurityRules", "networkInterfaces", "subnets"],
    );
    check_names(entry, "securityRules")?;
    strip_elements(entry, "securityRules", &[]);
    Ok(())
}

pub(crate) fn check(entry: &Entry) -> Checked {
    let rules = list(&entry.value, &["properties", "securityRules"]);
    if rules.len() > MAX_RULES {
        let message = format!("{} has more than {MAX_RULES} security rules.", entry.id);
        return refuse("SecurityRuleCountLimitReached", message);
    }
    let mut places: BTreeMap<(String, i64), &str> = BTreeMap::new();
    let (mut sources, mut destinations) = (0, 0);
    for rule in rules {
        check_rule(entry, rule)?;
        let name = text(rule, &["name"]);
        let priority = number(rule, &["properties", "priority"]).unwrap_or(0);
        let direction = text(rule, &["properties", "direction"]).to_lowercase();
        if let Some(other) = places.insert((direction, priority), name) {
            let message = format!(
                "Security rule {name} conflicts with rule {other}. Rules cannot have the same \
                 Priority and Direction. Suggested values for a priority are 100 to 4096."
            );
            return refuse("SecurityRuleConflict", message);
        }
        sources += list(rule, &["properties", "sourceAddressPrefixes"]).len();
        destinations += list(rule, &["properties", "destinationAddressPrefixes"]).len();
    }
    if sources > MAX_PREFIXES || destinations > MAX_PREFIXES {
        let message = format!(
            "The rules of {} have {sources} source and {destinations} destination address \
             prefixes; {MAX_PREFIXES} of each are allowed.",
            entry.id
        );
        return refuse("SecurityRuleAddressPrefixCountLimitReached", message);
    }
    Ok(())
}

fn check_rule(entry: &Entry, rule: &Value) -> Checked {
    let inside = &rule["properties"];
    let name = text(rule, &["name"]);
    let bad = |code: &str, what: String| {
        refuse(code, format!("Security rule {name} of {}: {what}.", entry.id))
    };
    let one_of = |key: &str, known: &[&str]| {
        let given = text(inside, &[key]);
        known.iter().any(|known| same(known, given))
    };
    if !one_of("access", &["Allow", "Deny"]) {
        return bad("SecurityRuleInvalidAccess", "access must be Allow or Deny".to_owned());
    }
    if !one_of("direction", &["Inbound", "Outbound"]) {
        let what = "direction must be Inbound or Outbound".to_owned();
        return bad("SecurityRuleInvalidDirection", what);
    }
    if !one_of("protocol", &["Tcp", "Udp", "Icmp", "Esp", "Ah", "*"]) {
        let what = "protocol must be Tcp, Udp, Icmp, Esp, Ah or *".to_owned();
        return bad("SecurityRuleInvalidProtocol", what);
    }
    if !number(inside, &["priority"]).is_some_and(|n| (100..=4096).contains(&n)) {
        return bad("SecurityRuleInvalidPriority", "priority must be 100 to 4096".to_owned());
    }
    for side in ["source", "destination"] {
        let prefixes = both(inside, &format!("{side}AddressPrefix"), "es");
        let groups = list(inside, &[&format!("{side}ApplicationSecurityGroups")]);
        if prefixes.is_empty() && groups.is_empty() {
            let what = format!("{side} address prefix is missing");
            return bad("SecurityRuleParameterValueMissing", what);
        }
        let mut families = [false, false];
        for prefix in &prefixes {
            match family(prefix) {
                Ok(Some(v6)) => families[usize::from(v6)] = true,
                Ok(None) => {}
                Err(()) => {
                    let what = format!("{side} address prefix {prefix:?} is invalid");
                    return bad("SecurityRuleInvalidAddressPrefix", what);
                }
            }
        }
        if families == [true, true] {
            let what = format!("{side} address prefixes are of both IPv4 and IPv6");
            return bad("SecurityRuleAddressPrefixFamiliesMixed", what);
        }
        let ports = both(inside, &format!("{side}PortRange"), "s");
        if ports.is_empty() {
            let what = format!("{side} port range is missing");
            return bad("SecurityRuleParameterValueMissing", what);
        }
        if let Some(port) = ports.iter().find(|port| !is_port_range(port)) {
            let what = format!("{side} port range {port:?} is invalid");
            return bad("SecurityRuleInvalidPortRange", what);
        }
    }
    Ok(())
}

/// The values of a field that can be written once or as a list.
fn both<'a>(inside: &'a Value, one: &str, plural: &str) -> Vec<&'a str> {
    let many = list(inside, &[&format!("{one}{plural}")]).iter().filter_map(Value::as_str);
    let single = Some(text(inside, &[one])).filter(|value| !value.is_empty());
    single.into_iter().chain(many).collect()
}

/// Whether a prefix is of IPv6; `None` for `*` and service tags.
fn family(prefix: &str) -> Result<Option<bool>, ()> {
    if let Ok(net) = prefix.parse::<IpNet>() {
        return Ok(Some(matches!(net, IpNet::V6(_))));
    }
    if let Ok(address) = prefix.parse::<IpAddr>() {
        return Ok(Some(address.is_ipv6()));
    }
    let tag = prefix.starts_with(|c: char| c.is_ascii_alphabetic())
        && prefix.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if prefix == "*" || tag { Ok(None) } else { Err(()) }
}

fn is_port_range(range: &str) -> bool {
    let port = |text: &str| text.trim().parse::<u16>().ok();
    match range.split_once('-') {
        _ if range == "*" => true,
        Some((from, to)) => port(from).zip(port(to)).is_some_and(|(from, to)| from <= to),
        None => port(range).is_some(),
    }
}

/// The rules every group has below its own.
pub(crate) fn default_rules(id: &str) -> Vec<Value> {
    let rules: [(&str, i64, &str, &str, &str, &str); 6] = [
        ("AllowVnetInBound", 65000, "Allow", "Inbound", "VirtualNetwork", "VirtualNetwork"),
        ("AllowAzureLoadBalancerInBound", 65001, "Allow", "Inbound", "AzureLoadBalancer", "*"),
        ("DenyAllInBound", 65500, "Deny", "Inbound", "*", "*"),
        ("AllowVnetOutBound", 65000, "Allow", "Outbound", "VirtualNetwork", "VirtualNetwork"),
        ("AllowInternetOutBound", 65001, "Allow", "Outbound", "*", "Internet"),
        ("DenyAllOutBound", 65500, "Deny", "Outbound", "*", "*"),
    ];
    rules
        .map(|(name, priority, access, direction, source, destination)| {
            json!({
                "name": name, "id": format!("{id}/defaultSecurityRules/{name}"),
                "type": "Microsoft.Network/networkSecurityGroups/defaultSecurityRules",
                "properties": {
                    "provisioningState": "Succeeded", "protocol": "*", "access": access,
                    "priority": priority, "direction": direction,
                    "sourcePortRange": "*", "destinationPortRange": "*",
                    "sourceAddressPrefix": source, "destinationAddressPrefix": destination,
                },
            })
        })
        .to_vec()
}
