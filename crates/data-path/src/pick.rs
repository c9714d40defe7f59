//! Which of the backends that take new flows one goes to: a hash over what the distribution says.

use std::net::IpAddr;

use super::table::{Distribution, Transport};
use crate::flow::Flow;

/// Picks one of so many. Azure's own hash is not published; this one is even, and the same on
/// every machine.
pub(super) fn pick(flow: &Flow, distribution: Distribution, backends: usize) -> usize {
    let mut hash = Hash::default();
    hash.address(flow.client.ip());
    hash.address(flow.entry.address);
    if distribution != Distribution::SourceIp {
        hash.bytes(&[match flow.entry.transport {
            Transport::Tcp => 6,
            Transport::Udp => 17,
        }]);
    }
    if distribution == Distribution::FiveTuple {
        hash.bytes(&flow.client.port().to_be_bytes());
        hash.bytes(&flow.entry.port.to_be_bytes());
    }
    let count = u64::try_from(backends).unwrap_or(u64::MAX).max(1);
    usize::try_from(hash.finish() % count).unwrap_or(0)
}

/// FNV-1a, stirred at the end: neighbouring ports must not give neighbouring backends.
struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Hash(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => self.bytes(&address.octets()),
            IpAddr::V6(address) => self.bytes(&address.octets()),
        }
    }

    fn finish(&self) -> u64 {
        let mut hash = self.0;
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^ (hash >> 33)
    }
}
