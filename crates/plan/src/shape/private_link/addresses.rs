//! The IP configurations of a Private Link Service.

use crate::ask::PrivateLinkIntent;
use model::ResourceId;
use model::azure::{PrivateLinkAddress, PrivateLinkRank, Rest};
use std::sync::Arc;

/// Azure allows 80 characters in the name of an IP configuration.
const LENGTH: usize = 80;

/// Static addresses first, then those that Azure chooses; the first of all is the primary one.
pub(super) fn wanted(
    link: &PrivateLinkIntent,
    name: &str,
    subnet: &ResourceId,
) -> Vec<PrivateLinkAddress> {
    let fixed = link.addresses.iter().map(|a| (format!("-static-{a}"), Some(*a)));
    let chosen = usize::from(link.count).saturating_sub(link.addresses.len());
    let chosen = (0..chosen).map(|i| (format!("-dynamic-{i}"), None));
    let all = fixed.chain(chosen).enumerate();
    all.map(|(at, (tail, address))| PrivateLinkAddress {
        name: configuration(&link.subnet, name, &tail),
        subnet: subnet.clone(),
        address,
        rank: if at == 0 { PrivateLinkRank::Primary } else { PrivateLinkRank::Secondary },
        rest: Rest::default(),
    })
    .collect()
}

fn configuration(subnet: &str, name: &str, tail: &str) -> Arc<str> {
    let mut head = format!("{subnet}-{name}");
    let room = LENGTH.saturating_sub(tail.len()).min(head.len());
    let end = (0..=room).rev().find(|at| head.is_char_boundary(*at)).unwrap_or(0);
    head.truncate(end);
    Arc::from(head + tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ip_configurations_are_cut_to_eighty_characters() {
        let name = configuration("nodes", &"x".repeat(90), "-dynamic-0");
        assert_eq!(name.len(), 80);
        assert!(name.starts_with("nodes-x") && name.ends_with("x-dynamic-0"));
    }
}
