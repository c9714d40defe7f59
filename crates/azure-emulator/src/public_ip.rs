//! Public IPs and the prefixes they may come from.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use serde_json::{Value, json};

use crate::azure::Azure;
use crate::json::{bare_reference, drop_keys, fill, list, number, object, properties, same, text};
use crate::load_balancer_checks::sku_changed;
use crate::message::{Checked, refusal, refuse};
use crate::options::Switch;
use crate::path::kind;
use crate::store::Entry;

fn sku(entry: &Entry) -> &str {
    match text(&entry.value, &["sku", "name"]) {
        "" => "Basic",
        name => name,
    }
}

fn is_v6(entry: &Entry) -> bool {
    same(text(&entry.value, &["properties", "publicIPAddressVersion"]), "IPv6")
}

/// Kind and value of each IP tag, without regard to letter case.
fn ip_tags(entry: &Entry) -> BTreeSet<(String, String)> {
    let word = |tag: &Value, key: &str| text(tag, &[key]).to_lowercase();
    let tags = list(&entry.value, &["properties", "ipTags"]).iter();
    tags.map(|tag| (word(tag, "ipTagType"), word(tag, "tag"))).collect()
}

/// Whether a public IP has an address only while something uses it.
pub(crate) fn is_dynamic(entry: &Entry) -> bool {
    let method = text(&entry.value, &["properties", "publicIPAllocationMethod"]);
    entry.kind == kind::PIP && same(method, "Dynamic")
}

impl Azure {
    pub(crate) fn prepare_public_ip(&self, entry: &mut Entry, old: Option<&Entry>) -> Checked {
        prepare_sku(entry);
        let location = text(&entry.value, &["location"]).replace(' ', "").to_lowercase();
        let defaults = self.options.defaults == Switch::On;
        let given = old.map(|old| old.value["properties"]["ipAddress"].clone());
        let inside = properties(&mut entry.value);
        drop_keys(inside, &["ipAddress", "ipConfiguration", "natGateway"]);
        bare_reference(inside, "publicIPPrefix");
        if let Some(address) = given.filter(Value::is_string) {
            inside.insert("ipAddress".to_owned(), address);
        }
        fill(inside, "publicIPAddressVersion", "IPv4");
        fill(inside, "publicIPAllocationMethod", "Dynamic");
        if defaults {
            fill(inside, "idleTimeoutInMinutes", 4);
            fill(inside, "ipTags", json!([]));
        }
        if inside.get("dnsSettings").is_some_and(Value::is_null) {
            inside.shift_remove("dnsSettings");
        }
        if let Some(dns) = inside.get_mut("dnsSettings").and_then(Value::as_object_mut) {
            dns.shift_remove("fqdn");
            let label = dns.get("domainNameLabel").and_then(Value::as_str).unwrap_or("");
            if !label.is_empty() {
                let name = format!("{label}.{location}.cloudapp.azure.com");
                dns.insert("fqdn".to_owned(), json!(name));
            }
        }
        Ok(())
    }

    pub(crate) fn check_public_ip(&self, key: &str, entry: &Entry, old: Option<&Entry>) -> Checked {
        let id = &entry.id;
        let inside = &entry.value["properties"];
        let method = text(inside, &["publicIPAllocationMethod"]);
        if !same(sku(entry), "Basic") && !same(method, "Static") {
            let message = format!("Standard sku publicIp {id} must have AllocationMethod Static.");
            return refuse("StandardSkuPublicIPAddressesMustBeStatic", message);
        }
        let idle = number(inside, &["idleTimeoutInMinutes"]).unwrap_or(4);
        if !(4..=30).contains(&idle) {
            let message = format!("idleTimeoutInMinutes of {id} must be 4 to 30.");
            return refuse("InvalidParameterValue", message);
        }
        match old {
            Some(old) => self.check_public_ip_change(key, entry, old)?,
            None => self.check_quota(entry)?,
        }
        self.check_dns(key, entry)
    }

    fn check_quota(&self, entry: &Entry) -> Checked {
        let Some(quota) = self.options.public_ip_quota else { return Ok(()) };
        if self.store.count(kind::PIP, &entry.id.to_lowercase()) < quota {
            return Ok(());
        }
        let message = format!(
            "Cannot create more than {quota} public IP addresses for this subscription in this \
             region."
        );
        refuse("PublicIPCountLimitReached", message)
    }

    fn check_public_ip_change(&self, key: &str, entry: &Entry, old: &Entry) -> Checked {
        let id = &entry.id;
        if is_v6(entry) != is_v6(old) {
            let message = format!("The version of public IP address {id} cannot be changed.");
            return refuse("PublicIPAddressVersionCannotBeChanged", message);
        }
        if self.options.ip_tags_for_life.is_on() && ip_tags(entry) != ip_tags(old) {
            let message = format!("The IP tags of public IP address {id} cannot be changed.");
            return refuse("PublicIPAddressIpTagsCannotBeChanged", message);
        }
        if !same(sku(entry), sku(old)) {
            // Only a static address that nothing uses can be raised to Standard
            // (learn.microsoft.com/azure/virtual-network/ip-services/public-ip-upgrade).
            let upgrade = same(sku(old), "Basic") && same(sku(entry), "Standard");
            let fixed =
                same(text(&old.value, &["properties", "publicIPAllocationMethod"]), "Static");
            if !upgrade || !fixed || self.store.users(key).next().is_some() {
                return sku_changed(id, sku(old), sku(entry));
            }
        }
        Ok(())
    }

    fn check_dns(&self, key: &str, entry: &Entry) -> Checked {
        let dns = &entry.value["properties"]["dnsSettings"];
        let label = text(dns, &["domainNameLabel"]);
        let fqdn = text(dns, &["fqdn"]);
        if label.is_empty() {
            return Ok(());
        }
        let fine = label.len() <= 63
            && label.starts_with(|c: char| c.is_ascii_lowercase())
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !fine {
            let message = format!(
                "The domain name label {label} is invalid. It must conform to the following \
                 regular expression: ^[a-z][a-z0-9-]{{1,61}}[a-z0-9]$."
            );
            return refuse("InvalidDomainNameLabel", message);
        }
        // A name can stand for one address of each family.
        let version = |entry: &Entry| {
            text(&entry.value, &["properties", "publicIPAddressVersion"]).to_owned()
        };
        let same_family = |owner: &str| {
            self.store.get(owner).is_none_or(|other| same(&version(other), &version(entry)))
        };
        match self.store.owner_of_name(fqdn) {
            Some(owner) if owner != key && same_family(owner) => {
                let message = format!("DNS record {fqdn} is already used by another public IP.");
                refuse("DnsRecordInUse", message)
            }
            _ => Ok(()),
        }
    }

    /// Gives a public IP its address, unless it has one.
    pub(crate) fn assign_public(&mut self, entry: &mut Entry) -> Checked {
        if !text(&entry.value, &["properties", "ipAddress"]).is_empty() {
            return Ok(());
        }
        let prefix = text(&entry.value, &["properties", "publicIPPrefix", "id"]).to_owned();
        let address = match self.store.find(&prefix) {
            Some(holder) => self.next_in_prefix(holder, entry)?,
            None => self.next_public(is_v6(entry)),
        };
        properties(&mut entry.value).insert("ipAddress".to_owned(), json!(address.to_string()));
        Ok(())
    }

    /// Notes the dynamic public IPs whose address follows once the write of `key` has ended: those
    /// whose users it changes, and itself where it has become one.
    pub(crate) fn hold_addresses(
        &mut self,
        key: &str,
        old: Option<&Entry>,
        touched: &BTreeSet<String>,
    ) {
        let own = old.is_none_or(|old| !is_dynamic(old)).then_some(key);
        let ids = touched.iter().map(String::as_str).chain(own);
        let dynamic = ids.filter(|id| self.store.get(id).is_some_and(is_dynamic));
        let held: BTreeSet<String> = dynamic.map(str::to_owned).collect();
        if !held.is_empty() {
            self.unsettled.entry(key.to_owned()).or_default().extend(held);
        }
    }

    /// The operation on `key` has ended, or `key` is gone: what waited for it follows.
    pub(crate) fn settle_addresses(&mut self, key: &str) {
        let held = self.unsettled.remove(key).unwrap_or_default();
        held.iter().for_each(|id| self.follow_use(id));
        if self.is_used(key) {
            self.follow_use(key);
        }
    }

    /// Gives a dynamic public IP an address where an IP configuration uses it, and takes it off
    /// where none does (learn.microsoft.com/azure/virtual-network/ip-services/public-ip-addresses).
    /// While an operation changes its users it stays as it is.
    pub(crate) fn follow_use(&mut self, key: &str) {
        let Some(entry) = self.store.get(key).filter(|entry| is_dynamic(entry)) else { return };
        let has = !text(&entry.value, &["properties", "ipAddress"]).is_empty();
        let waits = self.unsettled.values().any(|held| held.contains(key));
        if waits || has == self.is_used(key) {
            return;
        }
        let mut entry = entry.clone();
        if has {
            properties(&mut entry.value).shift_remove("ipAddress");
        } else if self.assign_public(&mut entry).is_err() {
            // Its prefix has none left.
            return;
        }
        entry.value["etag"] = json!(self.guids.etag());
        self.store.insert(key.to_owned(), entry);
    }

    /// A dynamic public IP that goes back to what it was has the address that its users have given
    /// it since, or none where they have let it go.
    pub(crate) fn keep_address(&self, key: &str, previous: &mut Entry) {
        let follows = |now: &&Entry| is_dynamic(now) || self.is_used(key);
        let Some(now) = self.store.get(key).filter(follows).filter(|_| is_dynamic(previous)) else {
            return;
        };
        let address = now.value["properties"]["ipAddress"].clone();
        let inside = properties(&mut previous.value);
        inside.shift_remove("ipAddress");
        if address.is_string() {
            inside.insert("ipAddress".to_owned(), address);
        }
    }

    /// Whether an IP configuration uses a public IP.
    pub(crate) fn is_used(&self, key: &str) -> bool {
        self.store.users(key).any(|user| user.property == "publicIPAddress")
    }

    /// The next address, from one counter for both families; what is taken is left out.
    fn next_public(&mut self, v6: bool) -> IpAddr {
        loop {
            self.public_addresses += 1;
            let n = self.public_addresses;
            let address = if v6 {
                let base = u128::from(Ipv6Addr::new(0x2603, 0x1000, 0, 0, 0, 0, 0, 0));
                IpAddr::V6(Ipv6Addr::from(base + u128::from(n)))
            } else {
                IpAddr::V4(Ipv4Addr::new(20, (n >> 16) as u8, (n >> 8) as u8, n as u8))
            };
            if self.store.owner_of_name(&address.to_string()).is_none() {
                return address;
            }
        }
    }

    fn next_in_prefix(&self, holder: &Entry, entry: &Entry) -> Checked<IpAddr> {
        let range = text(&holder.value, &["properties", "ipPrefix"]);
        let Ok(range) = range.parse::<IpNet>() else {
            let message = format!("Public IP prefix {} has no range yet.", holder.id);
            return Err(refusal(429, "ReferencedResourceNotProvisioned", message));
        };
        if matches!(range, IpNet::V6(_)) != is_v6(entry) {
            let message = format!(
                "Public IP address {} and public IP prefix {} are of different families.",
                entry.id, holder.id
            );
            return Err(refusal(400, "PublicIPPrefixAndPublicIPAddressVersionMismatch", message));
        }
        let free = |address: &IpAddr| self.store.owner_of_name(&address.to_string()).is_none();
        // `hosts` leaves out the first and the last, which a public prefix does have.
        let all: Box<dyn Iterator<Item = IpAddr>> = match range {
            IpNet::V4(net) => {
                let (first, last) = (u32::from(net.network()), u32::from(net.broadcast()));
                Box::new((first..=last).map(|n| IpAddr::V4(Ipv4Addr::from(n))))
            }
            IpNet::V6(net) => {
                let (first, last) = (u128::from(net.network()), u128::from(net.broadcast()));
                Box::new((first..=last).map(|n| IpAddr::V6(Ipv6Addr::from(n))))
            }
        };
        let mut all = all;
        all.find(free).ok_or_else(|| {
            let message = format!("Public IP prefix {} has no address left.", holder.id);
            refusal(400, "PublicIPPrefixOutOfIpAddresses", message)
        })
    }

    pub(crate) fn prepare_prefix(&self, entry: &mut Entry, old: Option<&Entry>) -> Checked {
        prepare_sku(entry);
        let given = old.map(|old| old.value["properties"]["ipPrefix"].clone());
        let inside = properties(&mut entry.value);
        drop_keys(inside, &["ipPrefix", "publicIPAddresses"]);
        if let Some(range) = given.filter(Value::is_string) {
            inside.insert("ipPrefix".to_owned(), range);
        }
        fill(inside, "publicIPAddressVersion", "IPv4");
        let v6 = inside["publicIPAddressVersion"] == "IPv6";
        let allowed = if v6 { 124..=127 } else { 21..=31 };
        let usual = if v6 { 124 } else { 28 };
        fill(inside, "prefixLength", usual);
        let length = number(&entry.value, &["properties", "prefixLength"]).unwrap_or(usual);
        if !allowed.contains(&length) {
            let message = format!("Public IP prefix {}: length {length} is invalid.", entry.id);
            return refuse("InvalidPublicIpPrefixLength", message);
        }
        Ok(())
    }

    /// Gives a prefix its range: one block of 2048 after the other from 20.128.0.0, or a /112 of
    /// 2603:1100::.
    pub(crate) fn assign_prefix(&mut self, entry: &mut Entry) {
        if !text(&entry.value, &["properties", "ipPrefix"]).is_empty() {
            return;
        }
        let n = self.public_prefixes;
        self.public_prefixes += 1;
        let length = number(&entry.value, &["properties", "prefixLength"]).unwrap_or(28);
        let first = if is_v6(entry) {
            let base = u128::from(Ipv6Addr::new(0x2603, 0x1100, 0, 0, 0, 0, 0, 0));
            IpAddr::V6(Ipv6Addr::from(base + (u128::from(n) << 16)))
        } else {
            let base = u32::from(Ipv4Addr::new(20, 128, 0, 0));
            IpAddr::V4(Ipv4Addr::from(base.wrapping_add((n as u32) << 11)))
        };
        let range = json!(format!("{first}/{length}"));
        properties(&mut entry.value).insert("ipPrefix".to_owned(), range);
    }
}

fn prepare_sku(entry: &mut Entry) {
    let value = object(&mut entry.value);
    fill(value, "sku", json!({"name": "Basic"}));
    if let Some(sku) = value.get_mut("sku").and_then(Value::as_object_mut) {
        fill(sku, "tier", "Regional");
    }
}
