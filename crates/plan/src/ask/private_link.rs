//! The Private Link Service before a Service.

use super::findings::{
    APPROVAL_INVISIBLE, FindingRule, INVALID_PRIVATE_LINK_ADDRESS, INVALID_PRIVATE_LINK_COUNT,
    INVALID_PRIVATE_LINK_FQDN, INVALID_PRIVATE_LINK_NAME, INVALID_RESOURCE_GROUP, INVALID_SUBNET,
    INVALID_SUBSCRIPTION, PRIVATE_LINK_NEEDS_IPV4, PRIVATE_LINK_NEEDS_NIC_POOLS,
    PRIVATE_LINK_NEEDS_STANDARD, PRIVATE_LINK_NOT_CREATED, PRIVATE_LINK_UNREACHABLE,
    TOO_MANY_SUBSCRIPTIONS,
};
use super::reader::{Reader, is_group_name, is_resource_name};
use super::{FloatingIp, PrivateLinkIntent, PrivateLinkOwnership, ProxyProtocol, tenancy};
use crate::ask::annotation::Truth;
use model::policy::{BalancerSku, PoolKind};
use model::{Exposure, Family, Group};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// The annotation that asks for one.
pub(crate) const CREATE: &str = "azure-pls-create";
pub(crate) const NAME: &str = "azure-pls-name";
/// The annotation that names its resource group.
pub(crate) const GROUP: &str = "azure-pls-resource-group";
pub(crate) const SUBNET: &str = "azure-pls-ip-configuration-subnet";
const COUNT: &str = "azure-pls-ip-configuration-ip-address-count";
pub(crate) const ADDRESSES: &str = "azure-pls-ip-configuration-ip-address";
const FQDNS: &str = "azure-pls-fqdns";
const PROXY: &str = "azure-pls-proxy-protocol";
const VISIBILITY: &str = "azure-pls-visibility";
const APPROVAL: &str = "azure-pls-auto-approval";

/// What makes a configuration a Service's own. The resource group only says where to look.
const OWN: &[&str] = &[NAME, SUBNET, COUNT, ADDRESSES, FQDNS, PROXY, VISIBILITY, APPROVAL];

/// Subscriptions that Azure takes in a Private Link Service's visibility, and in its auto-approval
/// (Azure subscription and service limits, "Private Link limits").
const SUBSCRIPTIONS: usize = 100;

/// The frontend it stands before.
pub(super) struct Frontend<'a> {
    /// Public or internal.
    pub exposure: Exposure,
    /// Whether backends see the frontend's address.
    pub floating: FloatingIp,
    /// The annotated subnet.
    pub subnet: Option<&'a Arc<str>>,
}

/// Reads the Private Link Service, if one is asked for.
pub(super) fn read(
    r: &mut Reader<'_>,
    families: &[Family],
    frontend: &Frontend<'_>,
) -> Option<PrivateLinkIntent> {
    if !r.is_set(CREATE) {
        if let Some(key) = OWN.iter().chain([&GROUP]).find(|key| r.text(key).is_some()) {
            let value = r.raw(key).unwrap_or("");
            r.find(&PRIVATE_LINK_NOT_CREATED, key, value);
        }
        return None;
    }
    place(r, families, frontend);
    let addresses = addresses(r);
    let (visibility, auto_approval) = (subscriptions(r, VISIBILITY), subscriptions(r, APPROVAL));
    let visible: BTreeSet<String> = visibility.iter().map(|id| id.to_ascii_lowercase()).collect();
    let seen = |id: &Arc<str>| visible.contains("*") || visible.contains(&id.to_ascii_lowercase());
    for id in auto_approval.iter().filter(|id| !seen(id)) {
        r.find(&APPROVAL_INVISIBLE, APPROVAL, id);
    }
    let owned = OWN.iter().any(|key| r.raw(key).is_some());
    Some(PrivateLinkIntent {
        name: named(r, NAME, &INVALID_PRIVATE_LINK_NAME, is_resource_name),
        group: group(r),
        subnet: named(r, SUBNET, &INVALID_SUBNET, is_resource_name)
            .or_else(|| frontend.subnet.cloned())
            .unwrap_or_else(|| Arc::clone(&r.policy.subnet_name)),
        count: count(r, addresses.len()),
        addresses,
        fqdns: fqdns(r),
        proxy_protocol: if r.is_set(PROXY) {
            ProxyProtocol::Enabled
        } else {
            ProxyProtocol::Disabled
        },
        visibility,
        auto_approval,
        ownership: if owned { PrivateLinkOwnership::Own } else { PrivateLinkOwnership::Shared },
    })
}

/// Whether probes are those of a Service behind the PROXY protocol. The Go controller reads both
/// flags without trimming them here.
pub(super) fn proxy_of_probes(r: &Reader<'_>) -> ProxyProtocol {
    let set = [CREATE, PROXY].iter().all(|key| r.is_true(key, Truth::AnyCase));
    if set { ProxyProtocol::Enabled } else { ProxyProtocol::Disabled }
}

/// Refuses frontends that Azure does not put a Private Link Service before: on Basic load
/// balancers, before pools of addresses, beside IPv6 (Azure documentation, "Private Link service",
/// Limitations). What pools that another fills hold is seen in Azure.
fn place(r: &mut Reader<'_>, families: &[Family], frontend: &Frontend<'_>) {
    if r.policy.sku != BalancerSku::Standard {
        r.find(&PRIVATE_LINK_NEEDS_STANDARD, CREATE, "true");
    }
    let filled = r.policy.preconfigured.covers(frontend.exposure);
    if r.policy.pools == PoolKind::NodeIp && !filled {
        r.find(&PRIVATE_LINK_NEEDS_NIC_POOLS, CREATE, "true");
    }
    if families != [Family::V4] {
        r.find(&PRIVATE_LINK_NEEDS_IPV4, CREATE, "true");
    }
    if frontend.exposure == Exposure::Public && frontend.floating == FloatingIp::Enabled {
        r.find(&PRIVATE_LINK_UNREACHABLE, CREATE, "true");
    }
}

fn named(
    r: &mut Reader<'_>,
    key: &str,
    rule: &FindingRule,
    is_valid: fn(&str) -> bool,
) -> Option<Arc<str>> {
    let name = r.text(key)?;
    if !is_valid(name) {
        r.find(rule, key, name);
    }
    Some(Arc::from(name))
}

fn group(r: &mut Reader<'_>) -> Group {
    let own = r.policy.private_link_group.clone();
    let Some(name) = named(r, GROUP, &INVALID_RESOURCE_GROUP, is_group_name) else { return own };
    if is_group_name(&name) {
        tenancy::group(r, GROUP, &name, &own);
    }
    Group::new(&name)
}

fn count(r: &mut Reader<'_>, fixed: usize) -> u8 {
    let text = r.text(COUNT).unwrap_or("1");
    let count = text.parse::<u8>().ok().filter(|count| (1..=8).contains(count));
    match count {
        Some(count) if usize::from(count) >= fixed => count,
        Some(_) | None => {
            r.find(&INVALID_PRIVATE_LINK_COUNT, COUNT, text);
            1
        }
    }
}

fn addresses(r: &mut Reader<'_>) -> Vec<IpAddr> {
    let mut addresses = Vec::new();
    let mut known = BTreeSet::new();
    for text in r.words(ADDRESSES) {
        match text.parse::<Ipv4Addr>().map(IpAddr::V4) {
            Ok(address) if known.insert(address) => addresses.push(address),
            Ok(_) | Err(_) => r.find(&INVALID_PRIVATE_LINK_ADDRESS, ADDRESSES, text),
        }
    }
    addresses
}

fn fqdns(r: &mut Reader<'_>) -> Vec<Arc<str>> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'*' | b'_');
    let names = distinct(r.words(FQDNS));
    for name in names.iter().filter(|name| !name.bytes().all(allowed)) {
        r.find(&INVALID_PRIVATE_LINK_FQDN, FQDNS, name);
    }
    names.into_iter().map(Arc::from).collect()
}

/// Subscription ids; `*` takes the place of all others.
fn subscriptions(r: &mut Reader<'_>, key: &str) -> Vec<Arc<str>> {
    let mut ids = distinct(r.words(key));
    let named = |id: &str| id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    for id in ids.iter().filter(|id| **id != "*" && !named(id)) {
        r.find(&INVALID_SUBSCRIPTION, key, id);
    }
    if key == VISIBILITY && ids.contains(&"*") {
        ids.retain(|id| *id == "*");
    }
    if ids.len() > SUBSCRIPTIONS {
        let count = format!("{} subscriptions", ids.len());
        r.find(&TOO_MANY_SUBSCRIPTIONS, key, &count);
    }
    ids.into_iter().map(Arc::from).collect()
}

/// Each word once, in the order written.
fn distinct(words: Vec<&str>) -> Vec<&str> {
    let mut known = BTreeSet::new();
    words.into_iter().filter(|word| known.insert(*word)).collect()
}
