//! Private Link Services.

use super::read::{Setting, group, named};
use super::words::{Words, refuse};
use super::{Family, Invalid, Link};
use crate::site::PoolKind;
use std::net::IpAddr;

const CREATE: &str = "azure-pls-create";

/// Keys that say how it is to be; its resource group says only where it is.
const DETAILS: [&str; 8] = [
    "azure-pls-name",
    "azure-pls-ip-configuration-subnet",
    "azure-pls-ip-configuration-ip-address-count",
    "azure-pls-ip-configuration-ip-address",
    "azure-pls-fqdns",
    "azure-pls-proxy-protocol",
    "azure-pls-visibility",
    "azure-pls-auto-approval",
];

/// A Private Link Service, where one is asked for.
pub(super) fn read(words: &Words<'_>, setting: &Setting<'_>) -> Result<Option<Link>, Invalid> {
    if !words.loose_flag(CREATE) {
        return Ok(None);
    }
    // Backends see the client's own address as the destination otherwise, which nothing translates.
    let reachable = setting.internal || !setting.floating;
    let possible = words.is_standard() && words.site.pools == PoolKind::Nics;
    if !reachable || !possible || *setting.families != [Family::V4] {
        return Err(refuse(CREATE, "true"));
    }
    let addresses = addresses(words)?;
    let count = words.number("azure-pls-ip-configuration-ip-address-count", (1, 8), 1)?;
    if (addresses.len() as u64) > count {
        return Err(refuse("azure-pls-ip-configuration-ip-address-count", &count.to_string()));
    }
    let owned = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect();
    Ok(Some(Link {
        name: named(words, "azure-pls-name")?,
        group: group(words, "azure-pls-resource-group", &words.site.link_group)?,
        subnet: named(words, "azure-pls-ip-configuration-subnet")?,
        count: usize::try_from(count).unwrap_or(1),
        addresses,
        fqdns: fqdns(words)?,
        proxy_protocol: words.loose_flag("azure-pls-proxy-protocol"),
        visibility: match subscriptions(words, "azure-pls-visibility")? {
            all if all.contains(&"*") => vec!["*".to_owned()],
            some => owned(some),
        },
        auto_approval: owned(subscriptions(words, "azure-pls-auto-approval")?),
        configured: DETAILS.iter().any(|key| words.whole(key).is_some()),
    }))
}

fn addresses(words: &Words<'_>) -> Result<Vec<IpAddr>, Invalid> {
    let key = "azure-pls-ip-configuration-ip-address";
    let mut all = Vec::new();
    for word in words.words(key) {
        let address = word.parse::<IpAddr>().ok().filter(IpAddr::is_ipv4);
        match address.filter(|address| !all.contains(address)) {
            Some(address) => all.push(address),
            None => return Err(refuse(key, word)),
        }
    }
    Ok(all)
}

fn fqdns(words: &Words<'_>) -> Result<Vec<String>, Invalid> {
    let key = "azure-pls-fqdns";
    let is_label = |label: &str| {
        let sign = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        (1..=63).contains(&label.len()) && label.chars().all(sign)
    };
    let all = words.words(key);
    match all.iter().find(|host| !host.trim_end_matches('.').split('.').all(is_label)) {
        Some(wrong) => Err(refuse(key, wrong)),
        None => Ok(all.into_iter().map(str::to_owned).collect()),
    }
}

/// Subscription ids, at most 100, or `*`.
fn subscriptions<'a>(words: &Words<'a>, key: &str) -> Result<Vec<&'a str>, Invalid> {
    let all = words.words(key);
    let fits = |id: &&str| *id == "*" || id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    match all.iter().find(|id| !fits(id)) {
        Some(wrong) => Err(refuse(key, wrong)),
        None if all.len() > 100 => Err(refuse(key, &format!("{} subscriptions", all.len()))),
        None => Ok(all),
    }
}
