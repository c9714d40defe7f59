//! Security groups and their rules.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};

use crate::elements::{check_names, strip_elements};
use crate::envelope::check_name;
use crate::json::{drop_keys, list, number, properties, same, text};
use crate::message::{Checked, refuse};
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
        check_name(name)?;
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
    let mut sides = [None, None];
    for (at, side) in ["source", "destination"].into_iter().enumerate() {
        sides[at] = check_side(inside, side, &bad)?;
    }
    match sides {
        [Some(source), Some(destination)] if source != destination => {
            bad(MIXED, "source and destination are of different families".to_owned())
        }
        _ => Ok(()),
    }
}

const MIXED: &str = "SecurityRuleAddressPrefixFamiliesMixed";

/// Checks the prefixes and ports of one side; returns the family of its addresses.
///
/// Codes of the network provider: SecurityRuleInvalidAddressPrefix (Azure/azure-powershell issue
/// 4557), SecurityRuleParameterContainsUnsupportedValue (terraform-provider-azurerm issue 5617),
/// OverlappingSubnetsNotPermittedInSecurityRule (cloud-provider-azure issue 6775). No public
/// thread has the others.
fn check_side(
    inside: &Value,
    side: &str,
    bad: &impl Fn(&str, String) -> Checked,
) -> Checked<Option<Family>> {
    let (one, many) = values(inside, &format!("{side}AddressPrefix"), "es");
    let groups = list(inside, &[&format!("{side}ApplicationSecurityGroups")]);
    if one.is_none() && many.is_empty() && groups.is_empty() {
        let what = format!("{side} address prefix is missing");
        bad("SecurityRuleParameterValueMissing", what)?;
    }
    if one.is_some() && !many.is_empty() {
        let what = format!("{side} address prefix and prefixes cannot both be given");
        bad("SecurityRuleBothAddressPrefixAndPrefixesSpecified", what)?;
    }
    let single = many.is_empty();
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for prefix in one.into_iter().chain(many) {
        match parse(prefix) {
            Some(Prefix::Range(IpNet::V4(net))) => v4.push(IpNet::V4(net)),
            Some(Prefix::Range(IpNet::V6(net))) => v6.push(IpNet::V6(net)),
            Some(Prefix::Name) if single => {}
            Some(Prefix::Name) => {
                let what = format!(
                    "parameter {side}AddressPrefixes cannot specify existing VIRTUALNETWORK, \
                     INTERNET, AZURELOADBALANCER, '*' or system tags. Unsupported value used: \
                     {prefix}"
                );
                bad("SecurityRuleParameterContainsUnsupportedValue", what)?;
            }
            None => {
                let what = format!("has invalid Address prefix. Value provided: {prefix}");
                bad("SecurityRuleInvalidAddressPrefix", what)?;
            }
        }
    }
    if !v4.is_empty() && !v6.is_empty() {
        bad(MIXED, format!("{side} address prefixes are of both IPv4 and IPv6"))?;
    }
    let family = if !v4.is_empty() {
        Some(Family::V4)
    } else if !v6.is_empty() {
        Some(Family::V6)
    } else {
        None
    };
    v4.extend(v6);
    if let Some((whole, part)) = overlap(v4) {
        let what =
            format!("parameter {side}AddressPrefixes has overlapping subnets: {whole} and {part}");
        bad("OverlappingSubnetsNotPermittedInSecurityRule", what)?;
    }
    check_ports(inside, side, bad)?;
    Ok(family)
}

fn check_ports(inside: &Value, side: &str, bad: &impl Fn(&str, String) -> Checked) -> Checked {
    let (one, many) = values(inside, &format!("{side}PortRange"), "s");
    // Both are refused, too, as cloud-provider-azure's issue 9355 shows.
    if one.is_none() == many.is_empty() {
        let what = format!(
            "must specify a non-empty value for either {side}PortRange or {side}PortRanges, but \
             not both"
        );
        return bad("SecurityRuleParameterValueMissing", what);
    }
    let any = one.is_some_and(|port| port == "*");
    let mut ports = one.filter(|_| !any).into_iter().chain(many);
    match ports.find(|port| !is_port_range(port)) {
        Some(port) => {
            let what = format!("{side} port range {port:?} is invalid");
            bad("SecurityRuleInvalidPortRange", what)
        }
        None => Ok(()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

/// Two ranges of which the first holds the second. In order of their first addresses, longer
/// ranges first, a range is in the one before it or in none.
fn overlap(mut ranges: Vec<IpNet>) -> Option<(IpNet, IpNet)> {
    ranges.sort_by_key(|range| (range.network(), range.prefix_len()));
    let mut pairs = ranges.iter().zip(ranges.iter().skip(1));
    pairs.find(|(whole, part)| whole.contains(*part)).map(|(whole, part)| (*whole, *part))
}

/// The values of a field that can be written once or as a list.
fn values<'a>(inside: &'a Value, one: &str, plural: &str) -> (Option<&'a str>, Vec<&'a str>) {
    let many = list(inside, &[&format!("{one}{plural}")]).iter().filter_map(Value::as_str);
    let single = Some(text(inside, &[one])).filter(|value| !value.is_empty());
    (single, many.collect())
}

enum Prefix {
    Range(IpNet),
    /// `*` or a service tag.
    Name,
}

/// A prefix whose address is the first of its range, an address, `*` or a service tag.
fn parse(prefix: &str) -> Option<Prefix> {
    if let Ok(net) = prefix.parse::<IpNet>() {
        return (net.addr() == net.network()).then_some(Prefix::Range(net));
    }
    if let Ok(address) = prefix.parse::<IpAddr>() {
        return Some(Prefix::Range(IpNet::from(address)));
    }
    let tag = prefix.starts_with(|c: char| c.is_ascii_alphabetic())
        && prefix.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    (prefix == "*" || tag).then_some(Prefix::Name)
}

fn is_port_range(range: &str) -> bool {
    let port = |text: &str| text.trim().parse::<u16>().ok();
    match range.split_once('-') {
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
