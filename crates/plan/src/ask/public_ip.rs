//! Where public IPs come from, and what is on them.

use super::findings::{
    ANNOTATION_IGNORED, INVALID_DNS_LABEL, INVALID_PUBLIC_IP_NAME, INVALID_PUBLIC_IP_PREFIX,
    INVALID_RESOURCE_GROUP, INVALID_TAG, MALFORMED_TAG, OVERRIDDEN_TAG, RESERVED_TAG,
    TOO_MANY_TAGS,
};
use super::reader::{Reader, is_group_name, is_resource_name};
use super::{DnsLabel, PublicIpIntent, PublicIpOptions, tenancy};
use crate::ask::annotation::full;
use crate::tag_keys::is_reserved;
use model::kubernetes::Service;
use model::policy::BalancerSku;
use model::{Exposure, Family, Group, ResourceId};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

const GROUP: &str = "azure-load-balancer-resource-group";

/// The annotations that name the public IP of IPv4, and of IPv6.
const NAMES: [&str; 2] = ["azure-pip-name", "azure-pip-name-ipv6"];

/// The annotations with the prefix of a new public IP of IPv4, and of IPv6.
const PREFIXES: [&str; 2] = ["azure-pip-prefix-id", "azure-pip-prefix-id-ipv6"];

/// Tags that Azure takes on a resource (Azure Resource Manager, "Use tags to organize your Azure
/// resources"); their keys have no letter case.
const TAGS: usize = 50;

/// Reads where the public IP of each family comes from: a name goes before a prefix, and a prefix
/// before a pinned address.
pub(super) fn sources(
    r: &mut Reader<'_>,
    exposure: Exposure,
    families: &[Family],
    pinned: &BTreeMap<Family, IpAddr>,
) -> BTreeMap<Family, PublicIpIntent> {
    let mut sources = BTreeMap::new();
    if exposure == Exposure::Internal {
        return sources;
    }
    note_idle(r, families);
    for &family in families {
        let source = if let Some(name) = name(r, families, family) {
            note_prefix(r, families, family);
            PublicIpIntent::Named(name)
        } else if let Some(prefix) = prefix(r, families, family) {
            PublicIpIntent::Managed { prefix: Some(prefix) }
        } else if pinned.contains_key(&family) {
            PublicIpIntent::Pinned
        } else {
            PublicIpIntent::Managed { prefix: None }
        };
        sources.insert(family, source);
    }
    sources
}

/// The annotation that counts for a family. A Service that only has IPv6 may use the plain key.
fn of_family<'a>(
    r: &Reader<'a>,
    keys: [&'static str; 2],
    families: &[Family],
    family: Family,
) -> Option<(&'static str, &'a str)> {
    let [plain, ipv6] = keys;
    let value = |key| r.text(key).map(|text| (key, text));
    match family {
        Family::V4 => value(plain),
        Family::V6 if families.len() > 1 => value(ipv6),
        Family::V6 => value(ipv6).or_else(|| value(plain)),
    }
}

/// The annotation by which a Service names its public IP of a family. An IPv6-only Service may use
/// the plain key.
pub(crate) fn name_key(service: &Service, family: Family) -> String {
    let [plain, ipv6] = NAMES;
    let is_set = |key| service.annotation(key).is_some_and(|text| !text.trim().is_empty());
    let by_plain = family == Family::V4 || (is_set(plain) && !is_set(ipv6));
    full(if by_plain { plain } else { ipv6 })
}

fn name(r: &mut Reader<'_>, families: &[Family], family: Family) -> Option<Arc<str>> {
    let (key, name) = of_family(r, NAMES, families, family)?;
    if !is_resource_name(name) {
        r.find(&INVALID_PUBLIC_IP_NAME, key, name);
    }
    Some(Arc::from(name))
}

/// Notes keys without effect: those for IPv6 on a Service without IPv6, and the plain ones beside
/// those for IPv6 on an IPv6-only Service.
fn note_idle(r: &mut Reader<'_>, families: &[Family]) {
    // Basic load balancers take no prefix; another finding says so.
    let prefixed = r.policy.sku != BalancerSku::Basic;
    for [plain, ipv6] in [NAMES, PREFIXES].into_iter().filter(|keys| prefixed || *keys == NAMES) {
        let (key, why) = match families {
            [Family::V4] => (ipv6, "the Service does not have IPv6"),
            [Family::V6] if r.text(ipv6).is_some() => (plain, "the key for IPv6 goes before it"),
            _ => continue,
        };
        if let Some(value) = r.text(key) {
            let message = format!("{{value}} has no effect, because {why}; remove it");
            r.find_with(&ANNOTATION_IGNORED, &full(key), value, &message);
        }
    }
}

/// Notes a prefix beside the name of a public IP: a prefix counts only when a public IP is made.
fn note_prefix(r: &mut Reader<'_>, families: &[Family], family: Family) {
    if r.policy.sku == BalancerSku::Basic {
        return;
    }
    if let Some((key, id)) = of_family(r, PREFIXES, families, family) {
        let message = "{value} has no effect, because the Service names its public IP; use one of \
                       the two";
        r.find_with(&ANNOTATION_IGNORED, &full(key), id, message);
    }
}

fn prefix(r: &mut Reader<'_>, families: &[Family], family: Family) -> Option<ResourceId> {
    if r.policy.sku == BalancerSku::Basic {
        return None;
    }
    let (key, text) = of_family(r, PREFIXES, families, family)?;
    let id = ResourceId::new(text);
    if !is_prefix(&id) {
        r.find(&INVALID_PUBLIC_IP_PREFIX, key, text);
    }
    Some(id)
}

fn is_prefix(id: &ResourceId) -> bool {
    let folded = id.folded();
    let parts: Vec<&str> = folded.split('/').collect();
    matches!(
        parts[..],
        ["", "subscriptions", subscription, "resourcegroups", group, "providers",
            "microsoft.network", "publicipprefixes", name]
            if !subscription.is_empty() && is_group_name(group) && is_resource_name(name)
    )
}

/// Reads the resource group of the public IPs.
pub(super) fn group(r: &mut Reader<'_>, exposure: Exposure) -> Group {
    let Some(name) = r.text(GROUP).filter(|_| exposure == Exposure::Public) else {
        return r.policy.group.clone();
    };
    if !is_group_name(name) {
        r.find(&INVALID_RESOURCE_GROUP, GROUP, name);
    } else {
        tenancy::group(r, GROUP, name, &r.policy.group);
    }
    Group::new(name)
}

/// The resource group that a Service names, whether it asks for public IPs or not: it may have had
/// some there. Blanks around the name do not count, nor does what is no name.
pub(crate) fn named_group(service: &Service) -> Option<Group> {
    let name = service.annotation(GROUP)?.trim();
    is_group_name(name).then(|| Group::new(name))
}

/// Reads label and tags.
pub(super) fn options(r: &mut Reader<'_>, exposure: Exposure) -> PublicIpOptions {
    if exposure == Exposure::Internal {
        return PublicIpOptions::default();
    }
    let mut tags = pairs(r, "azure-pip-tags");
    tags.retain(|key, value| {
        if is_reserved(key) {
            r.find(&RESERVED_TAG, "azure-pip-tags", key);
            return false;
        }
        let long = key.chars().count() > 512 || value.chars().count() > 256;
        if long || key.contains(['<', '>', '%', '&', '\\', '?', '/']) {
            r.find(&INVALID_TAG, "azure-pip-tags", key);
        }
        let set = model::azure::tag(&r.policy.tags, key);
        if set.is_some_and(|set| *set != **value) {
            r.find(&OVERRIDDEN_TAG, "azure-pip-tags", key);
        }
        set.is_none()
    });
    if tags.len() > TAGS {
        r.find(&TOO_MANY_TAGS, "azure-pip-tags", &format!("{} tags", tags.len()));
    }
    let annotated = r.raw("azure-pip-ip-tags").is_some();
    let ip_tags = annotated.then(|| pairs(r, "azure-pip-ip-tags"));
    PublicIpOptions { dns_label: dns_label(r), tags, ip_tags }
}

/// The pairs of `a=b,c=d`. The last pair of a key counts, in its own spelling: Azure ignores the
/// letter case of keys, so that two spellings are one tag.
fn pairs(r: &mut Reader<'_>, annotation: &str) -> BTreeMap<Arc<str>, Arc<str>> {
    let mut pairs: BTreeMap<String, (Arc<str>, Arc<str>)> = BTreeMap::new();
    for entry in r.list(annotation) {
        match entry.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
            Some((key, value)) if !key.is_empty() && !value.contains('=') => {
                pairs.insert(key.to_lowercase(), (Arc::from(key), Arc::from(value)));
            }
            Some(_) | None => r.find(&MALFORMED_TAG, annotation, entry),
        }
    }
    pairs.into_values().collect()
}

fn dns_label(r: &mut Reader<'_>) -> DnsLabel {
    let key = "azure-dns-label-name";
    let Some(label) = r.raw(key) else { return DnsLabel::Untouched };
    if label.is_empty() {
        return DnsLabel::Removed;
    }
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let valid = (3..=63).contains(&label.len())
        && label.bytes().all(allowed)
        && label.starts_with(|c: char| c.is_ascii_lowercase())
        && !label.ends_with('-');
    if !valid {
        r.find(&INVALID_DNS_LABEL, key, label);
    }
    DnsLabel::Set(Arc::from(label))
}
