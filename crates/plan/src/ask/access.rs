//! Who may connect.

use super::findings::{
    CONFLICTING_SOURCE_RANGES, DENY_ALL_WITHOUT_RANGES, EMPTY_SERVICE_TAGS, INVALID_SERVICE_TAG,
    INVALID_SOURCE_RANGE, SOURCE_RANGES_LIMIT_TAGS, SOURCE_RANGES_OF_OTHER_FAMILY,
};
use super::reader::Reader;
use super::{AccessIntent, AccessPort, DenyAll, SecurityRules};
use crate::ask::annotation::{self, INTERNAL, Truth};
use ipnet::IpNet;
use model::Family;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) const TAGS: &str = "azure-allowed-service-tags";
pub(super) const RANGES: &str = "azure-allowed-ip-ranges";
/// The annotation that kube-proxy heeds where the field is empty.
pub const CORE_RANGES: &str = "load-balancer-source-ranges";
pub(super) const FIELD: &str = "spec.loadBalancerSourceRanges";

/// Annotations that say who may connect.
pub const SOURCES: [&str; 3] = [TAGS, RANGES, CORE_RANGES];

/// Reads who may connect. Without tags and ranges a public Service is open to the Internet, and
/// an internal one needs no rule. Here the Go controller compares the annotation in any letter
/// case: a Service that says `True` is public and not open.
pub(super) fn read(r: &mut Reader<'_>, families: &[Family]) -> AccessIntent {
    let mut tags = service_tags(r);
    let mut ranges = annotated_ranges(r);
    let conflict = !ranges.is_empty();
    let listed = r.service.source_ranges.iter().map(|text| text.trim());
    let of_field: Vec<IpNet> = listed.filter_map(|text| range(r, FIELD, text)).collect();
    if conflict && !of_field.is_empty() {
        let key = if r.list(RANGES).is_empty() { CORE_RANGES } else { RANGES };
        let value = r.raw(key).unwrap_or("");
        r.find(&CONFLICTING_SOURCE_RANGES, key, value);
    }
    let proxied = !of_field.is_empty() || !r.list(CORE_RANGES).is_empty();
    if !tags.is_empty() && proxied {
        let value = r.raw(TAGS).unwrap_or("");
        r.find(&SOURCE_RANGES_LIMIT_TAGS, TAGS, value);
    }
    ranges.extend(of_field);
    if tags.is_empty() {
        note_families(r, families, &ranges);
    }
    let deny_all = deny_all(r, &ranges);
    let says_internal = r.is_true(INTERNAL, Truth::AnyCase);
    if !says_internal && tags.is_empty() && ranges.is_empty() {
        tags.push(Arc::from("Internet"));
    }
    AccessIntent {
        rules: if r.is_set("azure-disable-load-balancer-nsg-rule") {
            SecurityRules::Disabled
        } else {
            SecurityRules::Written
        },
        tags,
        ranges: by_family(&ranges),
        deny_all,
        ports: ports(r),
    }
}

/// What limits who may connect, as the key and the value of each wish that does; nothing where one
/// of them admits all. An annotation without an entry admits none: a list that a template
/// has left empty was to limit the sources. What kube-proxy heeds limits the sources whatever else
/// admits all: it drops those that its list lacks, which is the field's, else the annotation's.
pub(super) fn limits(r: &Reader<'_>, family: Family) -> Vec<(Cow<'static, str>, String)> {
    let everybody = match family {
        Family::V4 => "0.0.0.0/0",
        Family::V6 => "::/0",
    };
    let annotated = SOURCES.into_iter().filter(|key| r.raw(key).is_some());
    let annotated = annotated.map(|key| (Cow::from(annotation::full(key)), r.list(key)));
    let field: Vec<&str> = r.service.source_ranges.iter().map(|text| text.trim()).collect();
    let field = Some((Cow::from(FIELD), field)).filter(|(_, entries)| !entries.is_empty());
    let heeded = field.is_some().then(|| FIELD.to_owned());
    let heeded = heeded.unwrap_or_else(|| annotation::full(CORE_RANGES));
    let mut all: Vec<(_, Vec<&str>)> = annotated.chain(field).collect();
    let open = |entry: &&str| [everybody, "Internet", "*"].contains(entry);
    let is_open = |entries: &[&str]| entries.iter().any(open);
    if all.iter().any(|(_, entries)| is_open(entries)) {
        all.retain(|(key, entries)| *key == heeded && !entries.is_empty() && !is_open(entries));
    }
    all.into_iter().map(|(key, entries)| (key, entries.join(","))).collect()
}

fn service_tags(r: &mut Reader<'_>) -> Vec<Arc<str>> {
    let mut tags: Vec<Arc<str>> = Vec::new();
    let mut known = BTreeSet::new();
    let Some(value) = r.raw(TAGS) else { return tags };
    let named = r.list(TAGS);
    if named.is_empty() {
        // A list without an entry does not say that every source is allowed.
        r.find(&INVALID_SERVICE_TAG, TAGS, value);
    } else if value.split(',').any(|entry| entry.trim().is_empty()) {
        r.find(&EMPTY_SERVICE_TAGS, TAGS, value);
    }
    for tag in named {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        if tag != "*" && !tag.bytes().all(allowed) {
            r.find(&INVALID_SERVICE_TAG, TAGS, tag);
        } else if known.insert(tag) {
            tags.push(Arc::from(tag));
        }
    }
    tags
}

/// An empty entry is no range either, as in the Go controller: a list that a template has left
/// empty was to limit the sources, and must not allow all of them.
fn annotated_ranges(r: &mut Reader<'_>) -> Vec<IpNet> {
    let mut ranges = Vec::new();
    for key in [RANGES, CORE_RANGES] {
        let Some(value) = r.raw(key) else { continue };
        let whole = annotation::full(key);
        let entries = value.split(',').map(str::trim);
        ranges.extend(entries.filter_map(|text| range(r, &whole, text)));
    }
    ranges
}

fn range(r: &mut Reader<'_>, key: &str, text: &str) -> Option<IpNet> {
    match text.parse::<IpNet>() {
        Ok(range) if range.trunc() == range => Some(range),
        Ok(range) => {
            let message =
                format!("{{value}} has host bits that are not zero; use {}", range.trunc());
            r.find_with(&INVALID_SOURCE_RANGE, key, text, &message);
            None
        }
        Err(_) => {
            r.find_field(&INVALID_SOURCE_RANGE, key, text);
            None
        }
    }
}

/// Ranges that are all of a family which the Service does not have open nothing. An internal
/// Service stays reachable from the virtual network: Azure's default rules allow that, and
/// kube-proxy limits no family without ranges.
fn note_families(r: &mut Reader<'_>, families: &[Family], ranges: &[IpNet]) {
    if ranges.is_empty() || ranges.iter().any(|range| families.contains(&Family::of(range.addr())))
    {
        return;
    }
    if let Some(key) = [RANGES, CORE_RANGES].into_iter().find(|key| !r.list(key).is_empty()) {
        let value = r.raw(key).unwrap_or("");
        r.find(&SOURCE_RANGES_OF_OTHER_FAMILY, key, value);
    } else {
        let value = r.service.source_ranges.join(",");
        r.find_field(&SOURCE_RANGES_OF_OTHER_FAMILY, FIELD, &value);
    }
}

fn deny_all(r: &mut Reader<'_>, ranges: &[IpNet]) -> DenyAll {
    let key = "azure-deny-all-except-load-balancer-source-ranges";
    if !r.is_set(key) {
        return DenyAll::No;
    }
    if ranges.is_empty() {
        r.find(&DENY_ALL_WITHOUT_RANGES, key, "true");
        return DenyAll::No;
    }
    DenyAll::Yes
}

fn by_family(ranges: &[IpNet]) -> BTreeMap<Family, Vec<IpNet>> {
    let mut families: BTreeMap<Family, Vec<IpNet>> = BTreeMap::new();
    for range in IpNet::aggregate(&ranges.to_vec()) {
        families.entry(Family::of(range.addr())).or_default().push(range);
    }
    for ranges in families.values_mut() {
        ranges.sort();
    }
    families
}

/// The ports that are open: also behind a rule for all ports not those that shall have no rule.
fn ports(r: &Reader<'_>) -> Vec<AccessPort> {
    let service = r.service;
    let ports = service.ports.iter().filter(|p| !r.is_set(&format!("port_{}_no_lb_rule", p.port)));
    ports
        .map(|p| AccessPort { protocol: p.protocol, port: p.port, node_port: p.node_port })
        .collect()
}
