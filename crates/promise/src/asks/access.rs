//! Who may connect.

use super::words::{Words, refuse};
use super::{Access, Invalid};
use crate::estate::{items, text};
use ipnet::IpNet;

/// Tags and ranges of sources.
pub(super) fn read(words: &Words<'_>) -> Result<Access, Invalid> {
    let mut tags: Vec<String> = Vec::new();
    let named = words.list("azure-allowed-service-tags");
    if named.is_empty() && words.whole("azure-allowed-service-tags").is_some() {
        return Err(refuse("azure-allowed-service-tags", ""));
    }
    for tag in named {
        let sign = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let is_address = tag.parse::<std::net::IpAddr>().is_ok();
        if is_address
            || !tag.chars().all(sign)
            || !tag.starts_with(|c: char| c.is_ascii_alphabetic())
        {
            return Err(refuse("azure-allowed-service-tags", tag));
        }
        if !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
    }
    let mut ranges = Vec::new();
    let annotated = ["azure-allowed-ip-ranges", "load-balancer-source-ranges"];
    for key in annotated {
        // An empty entry is no range either.
        for value in words.whole(key).into_iter().flat_map(|list| list.split(',')) {
            ranges.push(range(key, value.trim())?);
        }
    }
    let of_annotations = !ranges.is_empty();
    let field = "spec.loadBalancerSourceRanges";
    for value in items(&words.service["spec"]["loadBalancerSourceRanges"]) {
        if of_annotations {
            return Err(refuse("azure-allowed-ip-ranges", "beside spec.loadBalancerSourceRanges"));
        }
        ranges.push(range(field, text(value).trim())?);
    }
    let deny = words.flag("azure-deny-all-except-load-balancer-source-ranges");
    Ok(Access {
        tags,
        deny_all: deny && !ranges.is_empty(),
        ranges,
        no_rules: words.flag("azure-disable-load-balancer-nsg-rule"),
    })
}

/// A range whose host bits are zero.
fn range(key: &str, value: &str) -> Result<IpNet, Invalid> {
    let net = value.parse::<IpNet>().ok().filter(|net| net.trunc() == *net);
    net.ok_or_else(|| refuse(key, value))
}
