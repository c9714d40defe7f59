//! Network security groups.

use super::compose::{child, head, put, put_list, put_location, put_tags, texts, whole};
use super::fields::{
    BodyError, Child, Envelope, Object, children, number, take, take_texts, text, word,
};
use model::azure::{Access, SecurityGroup, SecurityRule};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How the names of rules begin that are written in our own form, and the priorities they have.
const OURS: &str = "k8s-azure-lb";
const PRIORITIES: std::ops::RangeInclusive<u64> = 500..=4096;
const ACCESS: [(&str, Access); 2] = [("Allow", Access::Allow), ("Deny", Access::Deny)];
/// Of each set: its singular and its plural field.
const SOURCES: [&str; 2] = ["sourceAddressPrefix", "sourceAddressPrefixes"];
const SOURCE_PORTS: [&str; 2] = ["sourcePortRange", "sourcePortRanges"];
const DESTINATIONS: [&str; 2] = ["destinationAddressPrefix", "destinationAddressPrefixes"];
const PORTS: [&str; 2] = ["destinationPortRange", "destinationPortRanges"];
const READ_ONLY: [&str; 4] = ["defaultSecurityRules", "networkInterfaces", "subnets", "flowLogs"];

/// Reads a security group.
///
/// # Errors
/// The body is no object, has no id, or has a rule that is no object or has no name.
pub fn read_security_group(body: &Value) -> Result<SecurityGroup, BodyError> {
    let found = Envelope::open_around("security group", body, &READ_ONLY, &["securityRules"])?;
    let id = found.id.clone();
    let group = SecurityGroup {
        etag: found.etag.clone(),
        location: Arc::clone(&found.location),
        tags: found.tags.clone(),
        rules: children(&id, body, "securityRules", read_rule)?,
        provisioning: found.provisioning,
        rest: found.rest(),
        id,
    };
    Ok(group)
}

fn is_ours(rule: &Child) -> bool {
    let priority = rule.properties.get("priority").and_then(Value::as_u64);
    rule.name.get(..OURS.len()).is_some_and(|start| start.eq_ignore_ascii_case(OURS))
        && priority.is_some_and(|priority| PRIORITIES.contains(&priority))
}

fn read_rule(body: &Value) -> Result<SecurityRule, BodyError> {
    let mut found = Child::open("security rule", body, &[])?;
    let mut copy = found.properties.clone();
    // Of a rule that is not ours the fields stay in the rest, because one value and a list of
    // one are the same set and only the rest knows which it was.
    let p = if is_ours(&found) { &mut found.properties } else { &mut copy };
    let sources = take_set(p, SOURCES);
    let source_ports = take_set(p, SOURCE_PORTS);
    let destinations = take_set(p, DESTINATIONS);
    let ports = take_set(p, PORTS);
    let p = &mut found.properties;
    let empty = || Arc::from("");
    Ok(SecurityRule {
        name: Arc::clone(&found.name),
        access: take(p, "access", word(&ACCESS)).unwrap_or(Access::Deny),
        direction: take(p, "direction", text).unwrap_or_else(empty),
        priority: take(p, "priority", number).unwrap_or(0),
        protocol: take(p, "protocol", text).unwrap_or_else(empty),
        sources,
        source_ports,
        destinations,
        ports,
        rest: found.rest(),
    })
}

fn take_set(p: &mut Object, [one, many]: [&str; 2]) -> BTreeSet<Arc<str>> {
    let mut set: BTreeSet<Arc<str>> = take_texts(p, many);
    set.extend(take(p, one, text));
    if p.get(one).is_some_and(|v| v == "") {
        p.shift_remove(one);
    }
    set
}

/// Writes a security group.
#[must_use]
pub fn write_security_group(group: &SecurityGroup) -> Value {
    let SecurityGroup { id, etag: _, location, tags, rules, provisioning: _, rest } = group;
    let mut rest = rest.unpack();
    let mut top = head(id);
    put_location(&mut top, location, None);
    put_tags(&mut top, tags.as_ref(), &mut rest);
    let mut p = Object::new();
    put_list(&mut p, "securityRules", rules.iter().map(write_rule).collect());
    whole(top, p, rest)
}

fn write_rule(rule: &SecurityRule) -> Value {
    let SecurityRule {
        name,
        access,
        direction,
        priority,
        protocol,
        sources,
        source_ports,
        destinations,
        ports,
        rest,
    } = rule;
    let mut p = Object::new();
    put(&mut p, "access", if *access == Access::Allow { "Allow" } else { "Deny" });
    put(&mut p, "priority", *priority);
    if !protocol.is_empty() {
        put(&mut p, "protocol", &**protocol);
    }
    if !direction.is_empty() {
        put(&mut p, "direction", &**direction);
    }
    let rest = rest.unpack();
    let kept = |fields: [&str; 2]| fields.iter().any(|f| rest.properties.contains_key(*f));
    if !kept(SOURCES) {
        put_prefixes(&mut p, SOURCES, sources);
    }
    if !kept(SOURCE_PORTS) {
        put_ports(&mut p, SOURCE_PORTS, source_ports);
    }
    if !kept(DESTINATIONS) {
        put_prefixes(&mut p, DESTINATIONS, destinations);
    }
    if !kept(PORTS) {
        put_ports(&mut p, PORTS, ports);
    }
    child(name, Object::new(), p, rest)
}

fn put_prefixes(p: &mut Object, [one, many]: [&str; 2], set: &BTreeSet<Arc<str>>) {
    match set.first() {
        Some(only) if set.len() == 1 => put(p, one, &**only),
        _ => put_list(p, many, texts(set)),
    }
}

/// Ports are a list even of one; only all ports are not, because Azure takes no `*` in a list.
fn put_ports(p: &mut Object, [one, many]: [&str; 2], set: &BTreeSet<Arc<str>>) {
    match set.first() {
        Some(only) if set.len() == 1 && **only == *"*" => put(p, one, "*"),
        _ => put_list(p, many, texts(set)),
    }
}
