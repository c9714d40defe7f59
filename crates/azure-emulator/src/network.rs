//! Virtual networks, subnets, and the private addresses in them.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use serde_json::{Value, json};

use crate::azure::Azure;
use crate::elements::check_names;
use crate::json::{bare_reference, drop_keys, fill, list, list_mut, properties, same, text};
use crate::message::{Checked, refusal, refuse};
use crate::path::{Route, kind, parent};
use crate::store::Entry;

pub(crate) fn prepare_subnet(entry: &mut Entry) -> Checked {
    let inside = properties(&mut entry.value);
    let derived = ["ipConfigurations", "ipConfigurationProfiles", "privateEndpoints", "purpose"];
    drop_keys(inside, &derived);
    for key in ["networkSecurityGroup", "routeTable", "natGateway", "serviceGateway"] {
        bare_reference(inside, key);
    }
    fill(inside, "privateEndpointNetworkPolicies", "Disabled");
    fill(inside, "privateLinkServiceNetworkPolicies", "Enabled");
    Ok(())
}

/// The ranges of a subnet, written once or as a list.
pub(crate) fn prefixes(entry: &Entry) -> Vec<IpNet> {
    let inside = &entry.value["properties"];
    let many = list(inside, &["addressPrefixes"]).iter().filter_map(Value::as_str);
    let mut found: Vec<IpNet> = many.filter_map(|text| text.parse().ok()).collect();
    if let Ok(one) = text(inside, &["addressPrefix"]).parse::<IpNet>()
        && !found.contains(&one)
    {
        found.push(one);
    }
    found
}

/// The address space of a virtual network.
pub(crate) fn space(network: &Entry) -> Vec<IpNet> {
    let found = list(&network.value, &["properties", "addressSpace", "addressPrefixes"]);
    found.iter().filter_map(|text| text.as_str()?.parse().ok()).collect()
}

impl Azure {
    /// Takes the subnets out of a virtual network's body: they are resources of their own.
    /// `None` if the body does not speak of them, which leaves them as they are.
    pub(crate) fn take_subnets(&self, entry: &mut Entry) -> Checked<Option<Vec<Value>>> {
        if entry.kind != kind::VNET {
            return Ok(None);
        }
        check_names(entry, "subnets")?;
        let taken = properties(&mut entry.value).shift_remove("subnets");
        let Some(Value::Array(subnets)) = taken else { return Ok(None) };
        let key = entry.id.to_lowercase();
        let prefix = format!("{key}/subnets/");
        for standing in self.store.keys_of(kind::SUBNET, &prefix) {
            let kept = subnets
                .iter()
                .any(|subnet| same(text(subnet, &["name"]), crate::path::last(standing)));
            if let (false, Some(subnet)) = (kept, self.store.get(standing)) {
                self.check_removal(standing, subnet)?;
            }
        }
        let ranges: Vec<Value> = subnets.clone();
        for subnet in &ranges {
            check_range(entry, subnet)?;
        }
        Ok(Some(subnets))
    }

    /// Stores the subnets of a virtual network just written, and removes the others.
    pub(crate) fn put_subnets(&mut self, key: &str, subnets: Option<Vec<Value>>) -> Checked {
        let Some(subnets) = subnets else { return Ok(()) };
        let names: BTreeSet<String> =
            subnets.iter().map(|subnet| text(subnet, &["name"]).to_lowercase()).collect();
        let prefix = format!("{key}/subnets/");
        let gone: Vec<String> = self
            .store
            .keys_of(kind::SUBNET, &prefix)
            .filter(|standing| !names.contains(crate::path::last(standing)))
            .cloned()
            .collect();
        gone.iter().for_each(|standing| self.remove_now(standing));
        let Some(network) = self.store.get(key).map(|entry| entry.id.clone()) else {
            return Ok(());
        };
        for subnet in subnets {
            let path = format!("{network}/subnets/{}", text(&subnet, &["name"]));
            let Some(route) = Route::parse(&path) else { continue };
            let old = self.store.get(&route.key()).cloned();
            self.write(&route, subnet, old)?;
        }
        Ok(())
    }

    pub(crate) fn check_network(&self, key: &str, entry: &Entry) -> Checked {
        let space = space(entry);
        let prefix = format!("{key}/subnets/");
        for subnet in self.store.keys_of(kind::SUBNET, &prefix) {
            let Some(subnet) = self.store.get(subnet) else { continue };
            for range in prefixes(subnet) {
                if !space.iter().any(|whole| whole.contains(&range)) {
                    return outside(&subnet.id, &range);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn check_subnet(&self, key: &str, entry: &Entry) -> Checked {
        let Some(network) = parent(key).and_then(|above| self.store.get(above)) else {
            return Ok(());
        };
        check_range(network, &entry.value)?;
        let own = prefixes(entry);
        let siblings = format!("{}/subnets/", network.id.to_lowercase());
        for sibling in self.store.keys_of(kind::SUBNET, &siblings).filter(|other| *other != key) {
            let Some(sibling) = self.store.get(sibling) else { continue };
            for range in prefixes(sibling) {
                if own.iter().any(|own| own.contains(&range) || range.contains(own)) {
                    let message = format!(
                        "Subnet {} overlaps the range {range} of subnet {}.",
                        entry.id, sibling.id
                    );
                    return refuse("NetcfgSubnetRangesOverlap", message);
                }
            }
        }
        Ok(())
    }

    /// Gives private addresses to the elements of a collection, checking those asked for.
    pub(crate) fn assign_private(
        &mut self,
        key: &str,
        entry: &mut Entry,
        old: Option<&Entry>,
        collection: &str,
    ) -> Checked {
        let owner = entry.id.clone();
        let standing = old.map(|old| list(&old.value, &["properties", collection])).unwrap_or(&[]);
        let mut given: BTreeSet<(String, IpAddr)> = BTreeSet::new();
        let mut waiting = Vec::new();
        let elements = list(&entry.value, &["properties", collection]).to_vec();
        for (at, element) in elements.iter().enumerate() {
            let inside = &element["properties"];
            let subnet = text(inside, &["subnet", "id"]).to_lowercase();
            if subnet.is_empty() {
                continue;
            }
            let fixed = same(text(inside, &["privateIPAllocationMethod"]), "Static");
            let wanted = text(inside, &["privateIPAddress"]);
            let before = crate::json::named(standing, text(element, &["name"]))
                .map(|before| &before["properties"])
                .filter(|before| same(text(before, &["subnet", "id"]), &subnet))
                .map_or("", |before| text(before, &["privateIPAddress"]));
            let id = format!("{owner}/{collection}/{}", text(element, &["name"]));
            let address = if fixed && !wanted.is_empty() {
                Some(self.check_static(key, &id, &subnet, wanted)?)
            } else {
                before.parse().ok()
            };
            match address {
                Some(address) => {
                    if !given.insert((subnet, address)) {
                        return allocated(&id, &address, &owner);
                    }
                    set_address(entry, collection, at, address);
                }
                None => waiting.push((at, subnet, id)),
            }
        }
        for (at, subnet, id) in waiting {
            let v6 = same(text(&elements[at], &["properties", "privateIPAddressVersion"]), "IPv6");
            let address = self.next_private(key, &id, &subnet, v6, &given)?;
            given.insert((subnet, address));
            set_address(entry, collection, at, address);
        }
        Ok(())
    }

    fn check_static(&self, key: &str, id: &str, subnet: &str, wanted: &str) -> Checked<IpAddr> {
        let Ok(address) = wanted.parse::<IpAddr>() else {
            let message = format!("{wanted:?} of {id} is not an IP address.");
            return Err(refusal(400, "InvalidIPAddressFormat", message));
        };
        let Some(entry) = self.store.get(subnet) else { return Ok(address) };
        let ranges = prefixes(entry);
        let family: Vec<&IpNet> = ranges
            .iter()
            .filter(|range| matches!(range, IpNet::V6(_)) == address.is_ipv6())
            .collect();
        let unknown = family.is_empty() && address.is_ipv6() && self.in_network(subnet, &address);
        if !unknown && !family.iter().any(|range| range.contains(&address)) {
            let message = format!(
                "Private static IP address {address} of {id} does not belong to the range of \
                 subnet {}.",
                entry.id
            );
            return Err(refusal(400, "PrivateIPAddressNotInSubnet", message));
        }
        if family.iter().any(|range| is_reserved(range, &address)) {
            let message = format!(
                "Private static IP address {address} of {id} falls within reserved IP range of \
                 subnet {}.",
                entry.id
            );
            return Err(refusal(400, "PrivateIPAddressInReservedRange", message));
        }
        match self.store.owner_of_address(subnet, &address) {
            Some(owner) if !is_below(owner, key) => {
                allocated(id, &address, owner).map(|()| address)
            }
            _ => Ok(address),
        }
    }

    /// The first free address: from 10.224.100.5 (fd00::ff:1) where the subnet has it, which is
    /// where users of the recorded cases expect it, else from the start of the subnet.
    pub(crate) fn next_private(
        &self,
        key: &str,
        id: &str,
        subnet: &str,
        v6: bool,
        given: &BTreeSet<(String, IpAddr)>,
    ) -> Checked<IpAddr> {
        let ranges = self.store.get(subnet).map(prefixes).unwrap_or_default();
        let mut range = ranges.into_iter().find(|range| matches!(range, IpNet::V6(_)) == v6);
        if range.is_none() && v6 {
            let first = usual(1, true);
            range = self.network_ranges(subnet).into_iter().find(|whole| whole.contains(&first));
        }
        let Some(range) = range else {
            let message = format!(
                "Subnet {subnet} has no {} range for {id}.",
                if v6 { "IPv6" } else { "IPv4" }
            );
            return Err(refusal(400, "SubnetHasNoAddressRangeOfFamily", message));
        };
        let free = |address: &IpAddr| {
            let owner = self.store.owner_of_address(subnet, address);
            owner.is_none_or(|owner| is_below(owner, key))
                && !given.contains(&(subnet.to_owned(), *address))
        };
        let frontend = id.contains("/frontendIPConfigurations/");
        let usual_start = (1..).map(|n| usual(n, v6)).take_while(|address| range.contains(address));
        let from_start = (4..).map_while(|n| nth(&range, n));
        let found = if frontend {
            usual_start.chain(from_start).find(free)
        } else {
            from_start.into_iter().find(free)
        };
        found.ok_or_else(|| {
            let message = format!("Subnet {subnet} has no address left for {id}.");
            refusal(400, "SubnetIsFull", message)
        })
    }

    fn network_ranges(&self, subnet: &str) -> Vec<IpNet> {
        let network = parent(subnet).and_then(|key| self.store.get(key));
        network.map(space).unwrap_or_default()
    }

    fn in_network(&self, subnet: &str, address: &IpAddr) -> bool {
        self.network_ranges(subnet).iter().any(|range| range.contains(address))
    }
}

fn set_address(entry: &mut Entry, collection: &str, at: usize, address: IpAddr) {
    if let Some(element) = list_mut(&mut entry.value, collection).and_then(|all| all.get_mut(at)) {
        let inside = properties(element);
        inside.insert("privateIPAddress".to_owned(), json!(address.to_string()));
        fill(inside, "privateIPAllocationMethod", "Dynamic");
        let version = if address.is_ipv6() { "IPv6" } else { "IPv4" };
        fill(inside, "privateIPAddressVersion", version);
    }
}

fn allocated(id: &str, address: &IpAddr, owner: &str) -> Checked {
    let message = format!(
        "IP configuration {id} is using the private IP address {address} which is already \
         allocated to resource {owner}."
    );
    refuse("PrivateIPAddressIsAllocated", message)
}

fn is_below(id: &str, key: &str) -> bool {
    let id = id.to_lowercase();
    id.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Azure keeps the first four and the last address of a subnet.
fn is_reserved(range: &IpNet, address: &IpAddr) -> bool {
    let first = (0..4).any(|n| nth(range, n) == Some(*address));
    first || (address.is_ipv4() && range.broadcast() == *address)
}

fn usual(n: u64, v6: bool) -> IpAddr {
    if v6 {
        let base = u128::from(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0xff, 0));
        return IpAddr::V6(Ipv6Addr::from(base + u128::from(n)));
    }
    let third = u8::try_from(100 + n / 250).unwrap_or(255);
    IpAddr::V4(Ipv4Addr::new(10, 224, third, (n % 250 + 4) as u8))
}

/// The nth address of a range, without the last one of an IPv4 range.
fn nth(range: &IpNet, n: u64) -> Option<IpAddr> {
    let address = match range {
        IpNet::V4(net) => {
            let sum = u32::from(net.network()).checked_add(u32::try_from(n).ok()?)?;
            IpAddr::V4(Ipv4Addr::from(sum))
        }
        IpNet::V6(net) => {
            let sum = u128::from(net.network()).checked_add(u128::from(n))?;
            IpAddr::V6(Ipv6Addr::from(sum))
        }
    };
    let last = address.is_ipv4() && range.broadcast() == address;
    (range.contains(&address) && !last).then_some(address)
}

fn outside(subnet: &str, range: &IpNet) -> Checked {
    let message = format!(
        "Subnet {subnet} is not valid because its IP address range {range} is outside the IP \
         address range of its virtual network."
    );
    refuse("NetcfgSubnetRangeOutsideVnet", message)
}

fn check_range(network: &Entry, subnet: &Value) -> Checked {
    let inside = &subnet["properties"];
    let id = format!("{}/subnets/{}", network.id, text(subnet, &["name"]));
    let many = list(inside, &["addressPrefixes"]).iter().filter_map(Value::as_str);
    let one = Some(text(inside, &["addressPrefix"])).filter(|text| !text.is_empty());
    let texts: Vec<&str> = one.into_iter().chain(many).collect();
    if texts.is_empty() {
        let message = format!("Subnet {id} has no addressPrefix.");
        return refuse("InvalidRequestFormat", message);
    }
    let space = space(network);
    for given in texts {
        let Ok(range) = given.parse::<IpNet>() else {
            let message = format!("The address prefix {given} of {id} is formatted incorrectly.");
            return refuse("InvalidCIDRNotation", message);
        };
        if !space.iter().any(|whole| whole.contains(&range)) {
            return outside(&id, &range);
        }
    }
    Ok(())
}
