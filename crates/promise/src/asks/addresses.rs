//! Addresses that a Service insists on, and those that it has besides.

use super::read::Setting;
use super::words::{Words, refuse};
use super::{Family, Invalid};
use crate::site::Sharing;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// Azure's own address, which every machine reaches.
const AZURE: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// Whether an address is one of the Internet.
pub(crate) fn is_public(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [first, second, ..] = v4.octets();
            let shared = first == 100 && (64..128).contains(&second);
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_multicast()
                || v4.is_broadcast()
                || v4.is_unspecified()
                || shared
                || *v4 == AZURE)
        }
        IpAddr::V6(v6) => {
            !(v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.is_unique_local()
                || v6.is_unicast_link_local())
        }
    }
}

/// `azure-load-balancer-ipv4` and `-ipv6`, else `spec.loadBalancerIP`, of the Service's families.
pub(super) fn pinned(
    words: &Words<'_>,
    setting: &Setting<'_>,
) -> Result<BTreeMap<Family, IpAddr>, Invalid> {
    let field = ("spec.loadBalancerIP", words.service["spec"]["loadBalancerIP"].as_str());
    let mut pinned = BTreeMap::new();
    for family in setting.families {
        let key = match family {
            Family::V4 => "azure-load-balancer-ipv4",
            Family::V6 => "azure-load-balancer-ipv6",
        };
        let annotated = words.text(key);
        let (key, value) = annotated.map_or(field, |value| (key, Some(value)));
        let Some(value) = value.map(str::trim).filter(|value| !value.is_empty()) else { continue };
        let address: IpAddr = value.parse().map_err(|_| refuse(key, value))?;
        if Family::of(&address) != *family {
            // The field may be the other family's; an annotation may not.
            if annotated.is_some() {
                return Err(refuse(key, value));
            }
            continue;
        }
        if !setting.internal && !is_public(&address) {
            return Err(refuse(key, value));
        }
        pinned.insert(*family, address);
    }
    Ok(pinned)
}

/// `azure-additional-public-ips`: public ones, or those that the cloud config allows.
pub(super) fn additional(words: &Words<'_>) -> Result<Vec<IpAddr>, Invalid> {
    let key = "azure-additional-public-ips";
    let Some(value) = words.text(key) else { return Ok(Vec::new()) };
    let mut all: Vec<IpAddr> = Vec::new();
    for item in value.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let address: IpAddr = item.parse().map_err(|_| refuse(key, item))?;
        let allowed = words.site.allowed_additional.iter().any(|net| net.contains(&address));
        let never = match address {
            IpAddr::V4(v4) => {
                v4.is_unspecified()
                    || v4.is_loopback()
                    || v4.is_link_local()
                    || v4.is_multicast()
                    || v4.octets()[0] >= 240
                    || v4.octets()[0] == 0
                    || v4 == AZURE
            }
            IpAddr::V6(v6) => {
                v6.is_unspecified()
                    || v6.is_loopback()
                    || v6.is_unicast_link_local()
                    || v6.is_multicast()
                    || v6.to_ipv4_mapped().is_some()
            }
        };
        // A list in the cloud config says what is allowed, and nothing else is.
        let strict = words.site.sharing == Sharing::None;
        let none = words.site.allowed_additional.is_empty() && !strict;
        let free = none && is_public(&address);
        if never || !(allowed || free) {
            return Err(refuse(key, item));
        }
        if !all.contains(&address) {
            all.push(address);
        }
    }
    Ok(all)
}
