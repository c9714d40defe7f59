//! Addresses that EndpointSlices of several namespaces list, as the ledger notes them.
//!
//! # Format
//! One line per address, `ADDRESS NAMESPACE`: the namespace that has it.

use model::ledger::CONTESTED_BYTES;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Addresses, each with the namespace that has it.
///
/// # Guarantees
/// It never takes more than [`CONTESTED_BYTES`] as text: addresses for which there is no room are
/// left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contested {
    holders: BTreeMap<IpAddr, Arc<str>>,
    bytes: usize,
}

impl Contested {
    /// Reads what [`Contested::encode`] wrote; any other line is ignored.
    pub fn read(text: &str) -> Self {
        let mut contested = Self::default();
        for line in text.lines() {
            let Some((address, namespace)) = line.split_once(' ') else { continue };
            if let Ok(address) = address.parse() {
                contested.add(address, &Arc::from(namespace));
            }
        }
        contested
    }

    /// As text; empty where there are none.
    pub fn encode(&self) -> String {
        let lines = self.holders.iter();
        lines.map(|(address, namespace)| line(*address, namespace)).collect()
    }

    /// Adds an address that is not there yet, if there is room.
    pub fn add(&mut self, address: IpAddr, namespace: &Arc<str>) {
        let more = line(address, namespace).len();
        if !self.holders.contains_key(&address) && self.bytes + more <= CONTESTED_BYTES {
            self.bytes += more;
            self.holders.insert(address, Arc::clone(namespace));
        }
    }

    /// Whether this namespace is noted as the holder of an address.
    pub fn has(&self, address: IpAddr, namespace: &str) -> bool {
        self.holders.get(&address).is_some_and(|held| **held == *namespace)
    }

    /// All addresses, each with its namespace.
    pub fn each(&self) -> impl Iterator<Item = (IpAddr, &Arc<str>)> {
        self.holders.iter().map(|(address, namespace)| (*address, namespace))
    }

    /// Whether `all` has each of these addresses with the same namespace.
    pub fn is_within(&self, all: &Self) -> bool {
        self.each().all(|(address, namespace)| all.has(address, namespace))
    }
}

fn line(address: IpAddr, namespace: &str) -> String {
    format!("{address} {namespace}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_again_and_nothing_else_is() {
        let text = "10.244.0.10 default\nfd00::1 team-a\n";
        let contested = Contested::read(text);
        assert_eq!(contested.encode(), text);
        let (four, six) =
            (IpAddr::from([10, 244, 0, 10]), IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1]));
        assert!(contested.has(four, "default") && contested.has(six, "team-a"));
        assert!(!contested.has(four, "team-a"));
        for odd in ["", "10.244.0.10", "here default", "{\"a\": 1}"] {
            assert_eq!(Contested::read(odd), Contested::default(), "{odd}");
        }
    }

    #[test]
    fn addresses_without_room_are_left_out() {
        let mut contested = Contested::default();
        for n in 0..2_000_u16 {
            let [high, low] = n.to_be_bytes();
            contested.add(IpAddr::from([10, 244, high, low]), &Arc::from("team-a"));
        }
        let bytes = contested.encode().len();
        assert!(bytes <= CONTESTED_BYTES && bytes > CONTESTED_BYTES * 9 / 10, "{bytes}");
        assert!(contested.has(IpAddr::from([10, 244, 0, 0]), "team-a"), "what is there stays");
        assert_eq!(Contested::read(&contested.encode()), contested);
    }
}
