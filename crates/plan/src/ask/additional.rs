//! Addresses that a Service claims beside its own.
//!
//! They come into its status and into security rules: kube-proxy leads what is sent to them within
//! the cluster to the Service, and what the security group lets through is let through to whoever
//! has them. So they may not be addresses that others in the cluster depend on.

use super::findings::{FORBIDDEN_ADDITIONAL_ADDRESS, INVALID_ADDITIONAL_ADDRESS};
use super::reader::Reader;
use crate::ask::annotation::full;
use model::Policy;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The annotation's key, without the prefix.
pub(crate) const KEY: &str = "azure-additional-public-ips";

/// Ranges of the cloud config that a refusal names.
const LISTED: usize = 8;

/// Azure's own address within every virtual network, also called the wire server.
pub(crate) const AZURE: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// Reads the additional addresses, in the order written, each once.
pub(super) fn read(r: &mut Reader<'_>) -> Vec<IpAddr> {
    let (mut addresses, mut seen) = (Vec::new(), BTreeSet::new());
    for text in r.list(KEY) {
        // Kubernetes takes no address that is an IPv4 address in IPv6 clothing either.
        let address = text.parse::<IpAddr>().ok().filter(|a| a.to_canonical() == *a);
        match address {
            None => r.find(&INVALID_ADDITIONAL_ADDRESS, KEY, text),
            Some(address) if !seen.insert(address) => {}
            Some(address) if may_be(r.policy, address) => addresses.push(address),
            Some(_) => forbid(r, text),
        }
    }
    addresses
}

/// Refuses an address; where the cloud config lists some, these are all that are allowed.
fn forbid(r: &mut Reader<'_>, text: &str) {
    let Some(listed) = &r.policy.additional_addresses else {
        return r.find(&FORBIDDEN_ADDITIONAL_ADDRESS, KEY, text);
    };
    let listed: Vec<String> = listed.iter().take(LISTED).map(ToString::to_string).collect();
    let listed = if listed.is_empty() { "none".to_owned() } else { listed.join(", ") };
    let message =
        format!("must be one that allowedAdditionalPublicIPs of the cloud config lists ({listed})");
    r.find_with(&FORBIDDEN_ADDITIONAL_ADDRESS, &full(KEY), text, &message);
}

/// Whether a Service may have an additional address, as far as the address itself tells.
fn may_be(policy: &Policy, address: IpAddr) -> bool {
    let allowed = match &policy.additional_addresses {
        Some(_) => is_listed(policy, address),
        None => !is_private(address),
    };
    allowed && !is_special(address)
}

/// Whether the cloud config lists an address.
pub(crate) fn is_listed(policy: &Policy, address: IpAddr) -> bool {
    policy.additional_addresses.iter().flatten().any(|range| range.contains(&address))
}

/// Whether no load balancer anywhere can have an address.
pub(crate) fn is_special(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(a) => {
            let [first, ..] = a.octets();
            let reserved = first == 0 || first >= 240;
            reserved || a.is_loopback() || a.is_link_local() || a.is_multicast() || a == AZURE
        }
        IpAddr::V6(a) => holds_v4(a) || a.is_unicast_link_local() || a.is_multicast(),
    }
}

/// Whether an address is unspecified, loopback, or the IPv6 form of an IPv4 address: `::/96`,
/// `::ffff:0:0/96`, or NAT64's `64:ff9b::/96`.
fn holds_v4(address: Ipv6Addr) -> bool {
    matches!(
        address.segments(),
        [0, 0, 0, 0, 0, 0 | 0xffff, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _]
    )
}

/// Whether an address is of a range for private networks, as virtual networks, Pods and cluster IPs
/// have them.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(a) => {
            let [first, second, ..] = a.octets();
            a.is_private() || (first == 100 && (64..128).contains(&second))
        }
        IpAddr::V6(a) => a.is_unique_local(),
    }
}
