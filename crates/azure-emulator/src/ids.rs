//! Identifiers that look random and are not.

use crate::path::Route;

/// A counter whose values look like GUIDs.
#[derive(Debug, Clone)]
pub(crate) struct Guids {
    seed: u64,
    next: u64,
}

impl Guids {
    pub(crate) fn new(seed: u64) -> Self {
        Guids { seed, next: 0 }
    }

    /// The next one.
    pub(crate) fn guid(&mut self) -> String {
        self.next += 1;
        let high = mixed(self.seed ^ mixed(self.next));
        let low = mixed(high ^ self.next);
        layout(high, low)
    }

    /// The next one as an ETag.
    pub(crate) fn etag(&mut self) -> String {
        format!("W/\"{}\"", self.guid())
    }
}

/// The one that belongs to a text: always the same.
pub(crate) fn guid_of(text: &str) -> String {
    let high = text.bytes().fold(text.len() as u64, |sum, byte| mixed(sum ^ u64::from(byte)));
    layout(high, mixed(high))
}

fn layout(high: u64, low: u64) -> String {
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        (low >> 48 & 0x3fff) | 0x8000,
        low & 0xffff_ffff_ffff
    )
}

/// Spreads a number over 64 bits; two different ones stay different.
fn mixed(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The name of the address that stands for a NIC's IP configuration: of a scale set's instance a
/// GUID, of another NIC its resource group, name and configuration (Azure/bicep issue 8074). That
/// a pool that moves to addresses keeps them is assumed.
pub(crate) fn address_name(configuration: &str) -> String {
    let route = Route::parse(configuration).unwrap_or_default();
    match (&*route.kind(), &route.names[..]) {
        ("microsoft.network/networkinterfaces/ipconfigurations", [nic, of_nic]) => {
            format!("{}_{nic}{of_nic}", route.group.unwrap_or_default())
        }
        _ => guid_of(&route.key()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn guids_differ_and_depend_on_the_seed() {
        let (mut a, mut b) = (Guids::new(1), Guids::new(2));
        let first: BTreeSet<String> = (0..1000).map(|_| a.guid()).collect();
        assert_eq!(first.len(), 1000);
        assert!(!first.contains(&b.guid()));
        assert_eq!(Guids::new(1).guid().len(), 36);
        assert_eq!(guid_of("a"), guid_of("a"));
        assert_ne!(guid_of("ab"), guid_of("ba"));
    }
}
