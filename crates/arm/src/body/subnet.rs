//! Subnets.

use super::compose::{head, put, whole};
use super::fields::{BodyError, Envelope, Object, text};
use model::azure::{PrivateLinkPolicy, Subnet, WayOut};
use serde_json::Value;

const POLICY: &str = "privateLinkServiceNetworkPolicies";
const PREFIXES: [&str; 2] = ["addressPrefix", "addressPrefixes"];
const READ_ONLY: [&str; 6] = [
    "ipConfigurations",
    "ipConfigurationProfiles",
    "privateEndpoints",
    "resourceNavigationLinks",
    "serviceAssociationLinks",
    "purpose",
];

/// Reads a subnet. Its prefixes stay in the rest as well: we never change them, and one prefix may
/// stand in either of two fields, or in both.
///
/// # Errors
/// The body is no object or has no id.
pub fn read_subnet(body: &Value) -> Result<Subnet, BodyError> {
    let mut found = Envelope::open("subnet", body, &READ_ONLY)?;
    let mut prefixes = Vec::new();
    for key in PREFIXES {
        let items = match found.properties.get(key) {
            Some(Value::Array(items)) => items.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        for item in items {
            let prefix: Option<ipnet::IpNet> = text(item).and_then(|t| t.trim().parse().ok());
            prefixes.extend(prefix.filter(|p| !prefixes.contains(p)));
        }
    }
    let policy = found.properties.get(POLICY).and_then(Value::as_str);
    let private_link = match policy {
        Some(word) if word.eq_ignore_ascii_case("Disabled") => PrivateLinkPolicy::Disabled,
        _ => PrivateLinkPolicy::Enabled,
    };
    if private_link == PrivateLinkPolicy::Disabled {
        found.properties.shift_remove(POLICY);
    }
    Ok(Subnet {
        id: found.id.clone(),
        etag: found.etag.clone(),
        prefixes,
        private_link,
        way_out: way_out(&found.properties),
        provisioning: found.provisioning,
        rest: found.rest(),
    })
}

/// Routes are not read, so any route table may lead to the Internet.
fn way_out(properties: &Object) -> WayOut {
    let has = |key: &str| properties.get(key).is_some_and(|value| !value.is_null());
    match properties.get("defaultOutboundAccess") {
        _ if has("natGateway") || has("routeTable") => WayOut::Possible,
        Some(Value::Bool(false)) => WayOut::Nothing,
        _ => WayOut::Default,
    }
}

/// Writes a subnet.
#[must_use]
pub fn write_subnet(subnet: &Subnet) -> Value {
    let Subnet { id, etag: _, prefixes, private_link, way_out: _, provisioning: _, rest } = subnet;
    let mut rest = rest.unpack();
    let mut p = Object::new();
    if !PREFIXES.iter().any(|key| rest.properties.contains_key(*key)) && !prefixes.is_empty() {
        let items: Vec<Value> = prefixes.iter().map(|p| p.to_string().into()).collect();
        put(&mut p, "addressPrefixes", items);
    }
    if *private_link == PrivateLinkPolicy::Disabled {
        rest.properties.shift_remove(POLICY);
        put(&mut p, POLICY, "Disabled");
    }
    whole(head(id), p, rest)
}
