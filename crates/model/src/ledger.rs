//! The ledger: the destinations that are open in the security group on this cluster's account.
//!
//! A destination of a security rule carries no name and no tag, so that Azure does not say which
//! cluster opened it. The ledger does. It is one ConfigMap beside the Lease.
//!
//! # The way of a destination
//! 1. A Service is to be reached at an address. The plan records the address: a [`LedgerWrite`] for
//!    all that are to be opened now, guarded by the version of the ConfigMap that it was made on. A
//!    deposed leader's write is refused with 409 and changes nothing.
//! 2. Once it is read back the address is opened.
//! 3. Once no Service wants it the address is closed: it is recorded, so it is ours. A destination
//!    that is not recorded is another's and stays.
//! 4. Once the security group is read without it, and no write can open it any more, the address
//!    leaves the ledger.
//!
//! Where there is no ledger it is made from what stands ([`Ledger::is_absent`]).
//!
//! # Format
//! One line per holder, `HOLDER ADDRESS ADDRESS…`: the UID of a Service, [`NODE`] for addresses
//! of nodes, [`NOBODY`] for addresses whose Service is not known. 10,000 Services with an IPv4 and
//! an IPv6 address each take 930,000 bytes.
//!
//! # Size
//! A ConfigMap holds 1,048,576 bytes, and the API server takes no larger one: then nothing would
//! be opened for any Service. Beside the destinations the ledger has notes for the next process.
//! Each has bytes of its own, so that destinations never wait for the room of a note.

use crate::id::{Etag, ResourceId, ServiceUid};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

/// Most bytes of the values of a ConfigMap (`MaxSecretSize` of Kubernetes), without what else is
/// in this one.
const CONFIG_MAP_BYTES: usize = (1 << 20) - 1_024;
/// Bytes that all notes have together.
const NOTE_BYTES: usize = DRIFT_BYTES + GONE_BYTES + TAG_BYTES + CONTESTED_BYTES;
/// Most bytes of the note of drift that is left.
pub const DRIFT_BYTES: usize = 60_000;
/// Most bytes of the note of Services that went without being released.
pub const GONE_BYTES: usize = 20_000;
/// Most bytes of the note of tags that annotations have set.
pub const TAG_BYTES: usize = 20_000;
/// Most bytes of the note of addresses that EndpointSlices of several namespaces list.
pub const CONTESTED_BYTES: usize = 8_000;
/// Most bytes of the destinations.
pub const DESTINATION_BYTES: usize = CONFIG_MAP_BYTES - NOTE_BYTES;

/// The holder of addresses of nodes, which Services without floating IP have open.
pub const NODE: &str = "node";
/// The holder of addresses whose Service is not known.
pub const NOBODY: &str = "-";

/// On whose account an address is open.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Holder {
    /// A Service's.
    Service(ServiceUid),
    /// That of the Services that lead to nodes.
    Node,
}

/// Addresses, and on whose account each is open. An address may have no holder: it is ours all the
/// same.
pub type Destinations = BTreeMap<IpAddr, BTreeSet<Holder>>;

/// Keys of tags that annotations set on public IPs: nothing in Azure says who set a tag. A key is
/// recorded before it is set, and taken off once no annotation asks for it.
///
/// # Guarantees
/// It never takes more than [`TAG_BYTES`] as text: keys for which there is no room are left out.
/// They are set without a record, and stay.
///
/// # Format
/// JSON: by resource group and name of the public IP, its keys; all in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SetTags {
    keys: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    #[serde(skip)]
    bytes: usize,
}

impl SetTags {
    /// Reads what [`SetTags::encode`] wrote; anything else is nothing.
    #[must_use]
    pub fn decode(text: &str) -> Self {
        let all: BTreeMap<String, BTreeSet<String>> =
            serde_json::from_str(text).unwrap_or_default();
        let mut set = Self::default();
        for (ip, keys) in all {
            let ip = Arc::from(ip.to_lowercase());
            keys.iter().for_each(|key| set.put(&ip, &Arc::from(key.to_lowercase())));
        }
        set
    }

    /// As text; empty where there are none.
    #[must_use]
    pub fn encode(&self) -> String {
        match self.is_empty() {
            true => String::new(),
            false => serde_json::to_string(&self.keys).unwrap_or_default(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Adds a key of a public IP, if there is room.
    pub fn add(&mut self, ip: &ResourceId, key: &str) {
        self.put(&place(ip), &Arc::from(key.to_lowercase()));
    }

    /// Adds a key as [`SetTags::each`] gives it, if there is room.
    pub fn put(&mut self, ip: &Arc<str>, key: &Arc<str>) {
        // Quotes, brackets, colon and commas of the key and, if it is the first one, of its IP.
        let quoted = serde_json::to_string(key).unwrap_or_default().len();
        let more = ip.len() + quoted + 7;
        let there = self.keys.get(ip).is_some_and(|keys| keys.contains(key));
        if !there && self.bytes + more <= TAG_BYTES {
            self.bytes += more;
            self.keys.entry(Arc::clone(ip)).or_default().insert(Arc::clone(key));
        }
    }

    /// Removes the keys that another set lacks.
    pub fn keep(&mut self, other: &Self) {
        for (ip, key) in std::mem::take(self).each() {
            if other.keys.get(ip).is_some_and(|keys| keys.contains(key)) {
                self.put(ip, key);
            }
        }
    }

    /// The keys of a public IP, in lower case.
    #[must_use]
    pub fn of(&self, ip: &ResourceId) -> Option<&BTreeSet<Arc<str>>> {
        if self.is_empty() { None } else { self.keys.get(&place(ip)) }
    }

    /// Whether a key of a public IP is among them.
    #[must_use]
    pub fn has(&self, ip: &ResourceId, key: &str) -> bool {
        self.of(ip).is_some_and(|keys| keys.contains(key.to_lowercase().as_str()))
    }

    /// Each public IP, as `GROUP/NAME`, with each of its keys.
    pub fn each(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        self.keys.iter().flat_map(|(ip, keys)| keys.iter().map(move |key| (ip, key)))
    }
}

/// Resource group and name of a public IP.
fn place(ip: &ResourceId) -> Arc<str> {
    let group = ip.group();
    let group = group.as_ref().map_or("", |group| group.as_str());
    Arc::from(format!("{group}/{}", ip.name()).to_lowercase())
}

/// What the ConfigMap of the ledger records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Extent {
    /// Destinations, and notes.
    #[default]
    Whole,
    /// Notes alone: it was made where nothing is opened, so that which destinations are open was
    /// never recorded.
    NotesAlone,
}

/// The ledger as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ledger {
    /// `metadata.resourceVersion`; `None` where there is no ConfigMap.
    pub revision: Option<Arc<str>>,
    /// What is recorded in it.
    pub extent: Extent,
    /// ETag of the security group when an address was last recorded. While the group has this
    /// ETag a write that opens what is recorded may still be on its way.
    pub planned_on: Option<Etag>,
    /// What is recorded. Where there is no ConfigMap, what this process knows of it.
    pub destinations: Destinations,
    /// Tags that annotations have set.
    pub tags: SetTags,
}

/// A write of the whole ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LedgerWrite {
    /// The version that it takes the place of; `None` makes the ConfigMap.
    pub revision: Option<Arc<str>>,
    /// What becomes of [`Ledger::planned_on`].
    pub planned_on: Option<Etag>,
    /// What becomes of [`Ledger::destinations`].
    pub destinations: Destinations,
    /// Addresses that are open already, and that no ledger had.
    pub adopted: BTreeSet<IpAddr>,
}

impl Ledger {
    /// Whether no destination was ever recorded: at the first start, or after the ConfigMap was
    /// deleted. What is open is then ours if it is an address of this cluster.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.revision.is_none() || self.extent == Extent::NotesAlone
    }

    /// Whether what leads to an address is not this cluster's.
    #[must_use]
    pub fn is_anothers(&self, address: IpAddr) -> bool {
        !self.is_absent() && !self.has(address)
    }

    /// Whether an address is recorded.
    #[must_use]
    pub fn has(&self, address: IpAddr) -> bool {
        self.destinations.contains_key(&address)
    }
}

/// Destinations as text.
#[must_use]
pub fn encode(destinations: &Destinations) -> String {
    let mut lines: BTreeMap<&str, Vec<IpAddr>> = BTreeMap::new();
    for (address, holders) in destinations {
        for holder in holders {
            let holder = match holder {
                Holder::Service(uid) => uid.as_str(),
                Holder::Node => NODE,
            };
            lines.entry(holder).or_default().push(*address);
        }
        if holders.is_empty() {
            lines.entry(NOBODY).or_default().push(*address);
        }
    }
    let mut text = String::new();
    for (holder, addresses) in lines {
        text.push_str(holder);
        for address in addresses {
            // Writing to a String does not fail.
            let _ = write!(text, " {address}");
        }
        text.push('\n');
    }
    text
}

/// Destinations from text.
///
/// # Errors
/// A line has no address, or one that is none; the text says which line.
pub fn decode(text: &str) -> Result<Destinations, String> {
    let mut destinations = Destinations::new();
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        let mut words = line.split_ascii_whitespace();
        let Some(word) = words.next() else { continue };
        let holder = match word {
            NODE => Some(Holder::Node),
            NOBODY => None,
            uid => Some(Holder::Service(ServiceUid::new(uid))),
        };
        let mut words = words.peekable();
        if words.peek().is_none() {
            return Err(format!("line {number} has no address"));
        }
        for word in words {
            let address: IpAddr =
                word.parse().map_err(|_| format!("line {number}: {word:?} is no address"))?;
            destinations.entry(address).or_default().extend(holder.clone());
        }
    }
    Ok(destinations)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn what_is_written_is_read() {
        let service = |n: u8| Holder::Service(ServiceUid::new(format!("uid-{n}")));
        let mut all = Destinations::new();
        all.entry(address("20.0.0.1")).or_default().extend([service(1), service(2)]);
        all.entry(address("fd00::1")).or_default().insert(service(1));
        all.entry(address("10.0.0.4")).or_default().insert(Holder::Node);
        all.entry(address("20.0.0.9")).or_default();
        let text = encode(&all);
        assert_eq!(text, "- 20.0.0.9\nnode 10.0.0.4\nuid-1 20.0.0.1 fd00::1\nuid-2 20.0.0.1\n");
        assert_eq!(decode(&text), Ok(all));
        assert_eq!(decode(""), Ok(Destinations::new()));
    }

    #[test]
    fn what_is_no_ledger_is_an_error_with_its_line() {
        let error = |text| decode(text).expect_err("it is none");
        assert_eq!(error("node 10.0.0.4\nuid-1 here"), "line 2: \"here\" is no address");
        assert_eq!(error("uid-1\n"), "line 1 has no address");
        assert_eq!(error("{\"a\": 1}"), "line 1: \"1}\" is no address");
    }

    #[test]
    fn tags_are_read_as_they_were_written_and_fit() {
        let ip = |n: u32| {
            ResourceId::new(format!(
                "/subscriptions/s/resourceGroups/RG/providers/Microsoft.Network/publicIPAddresses/\
                 kubernetes-a{n:031}"
            ))
        };
        let mut set = SetTags::default();
        set.add(&ip(1), "Team");
        set.add(&ip(1), "cost \"center\"");
        assert!(set.has(&ip(1), "team") && !set.has(&ip(2), "team"));
        assert_eq!(SetTags::decode(&set.encode()), set);
        for odd in ["", "[]", "{\"a\": 1}", "what"] {
            assert_eq!(SetTags::decode(odd), SetTags::default(), "{odd}");
        }
        for n in 0..5_000 {
            set.add(&ip(n), "team");
        }
        let bytes = set.encode().len();
        assert!(bytes <= TAG_BYTES && bytes > TAG_BYTES * 9 / 10, "{bytes}");
        assert_eq!(SetTags::decode(&set.encode()), set);
    }

    #[test]
    fn ten_thousand_services_of_two_families_fit_into_a_config_map() {
        let mut all = Destinations::new();
        for n in 0..10_000_u16 {
            let uid = ServiceUid::new(format!("{n:08x}-1111-4222-8333-0123456789ab"));
            let [high, low] = n.to_be_bytes();
            let v4 = IpAddr::from([220, 220, 100 + high, low]);
            let v6 = [0xfd00, 0x1111, 0x2222, 0x3333, 0x4444, 0x5555, 0x6666, 0x1000 + n];
            let v6 = IpAddr::from(v6);
            for address in [v4, v6] {
                all.entry(address).or_default().insert(Holder::Service(uid.clone()));
            }
        }
        assert_eq!(all.len(), 20_000);
        let text = encode(&all);
        assert!(text.len() < DESTINATION_BYTES, "{}", text.len());
        assert_eq!(decode(&text), Ok(all));
    }
}
