//! Public IP addresses.

use super::compose::{
    head, put, put_list, put_location, put_sku, put_some, put_tags, reference, texts, whole,
};
use super::fields::{
    BodyError, Envelope, Object, address, family, reference as read_reference, take, take_list,
    take_sku, take_texts, text, word,
};
use model::Family;
use model::azure::{Allocation, PublicIp, Sku};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const ALLOCATIONS: [(&str, Allocation); 2] =
    [("Static", Allocation::Static), ("Dynamic", Allocation::Dynamic)];

/// Reads a public IP.
///
/// # Errors
/// The body is no object or has no id.
pub fn read_public_ip(body: &Value) -> Result<PublicIp, BodyError> {
    let mut found = Envelope::open("public IP", body, &[])?;
    let sku = take_sku(&mut found.top, Sku::Basic);
    let zones = take_texts(&mut found.top, "zones");
    let p = &mut found.properties;
    let configuration = take(p, "ipConfiguration", read_reference);
    let gateway = take(p, "natGateway", read_reference);
    let (dns_label, fqdn) = take_dns(p);
    let ip = PublicIp {
        id: found.id.clone(),
        etag: found.etag.clone(),
        location: Arc::clone(&found.location),
        edge_zone: found.edge_zone.clone(),
        tags: found.tags.clone(),
        sku,
        zones,
        family: take(p, "publicIPAddressVersion", family).unwrap_or(Family::V4),
        allocation: take(p, "publicIPAllocationMethod", word(&ALLOCATIONS))
            .unwrap_or(Allocation::Dynamic),
        address: take(p, "ipAddress", address),
        ip_tags: take_ip_tags(p),
        dns_label,
        fqdn,
        prefix: take(p, "publicIPPrefix", read_reference),
        user: configuration.or(gateway),
        provisioning: found.provisioning,
        rest: found.rest(),
    };
    Ok(ip)
}

/// What cannot be read as a type and a value stays in the list.
fn take_ip_tags(properties: &mut Object) -> BTreeMap<Arc<str>, Arc<str>> {
    let mut tags = BTreeMap::new();
    let mut strange = take_list(properties, "ipTags");
    strange.retain(|item| {
        let plain = item.as_object().is_some_and(|o| o.len() == 2);
        let kind = item.get("ipTagType").and_then(text);
        let value = item.get("tag").and_then(text);
        match (kind, value) {
            (Some(kind), Some(value)) if plain && !tags.contains_key(&kind) => {
                tags.insert(kind, value);
                false
            }
            _ => true,
        }
    });
    put_list(properties, "ipTags", strange);
    tags
}

/// The label, and the full name, which is Azure's. The settings' other fields stay.
fn take_dns(properties: &mut Object) -> (Option<Arc<str>>, Option<Arc<str>>) {
    let Some(Value::Object(settings)) = properties.get_mut("dnsSettings") else {
        return (None, None);
    };
    let fqdn = settings.get("fqdn").and_then(text);
    settings.retain(|key, value| key != "fqdn" && !value.is_null() && value != "");
    let label = take(settings, "domainNameLabel", text);
    if settings.is_empty() {
        properties.shift_remove("dnsSettings");
    }
    (label, fqdn)
}

/// Writes a public IP.
#[must_use]
pub fn write_public_ip(ip: &PublicIp) -> Value {
    let PublicIp {
        id,
        etag: _,
        location,
        edge_zone,
        tags,
        sku,
        zones,
        family,
        allocation,
        address,
        ip_tags,
        dns_label,
        fqdn: _,
        prefix,
        user: _,
        provisioning: _,
        rest,
    } = ip;
    let mut rest = rest.unpack();
    let mut top = head(id);
    put_location(&mut top, location, edge_zone.as_ref());
    put_tags(&mut top, tags.as_ref(), &mut rest);
    put_sku(&mut top, *sku, &mut rest);
    put_list(&mut top, "zones", texts(zones));
    let mut p = Object::new();
    put(&mut p, "publicIPAddressVersion", family.name());
    put(&mut p, "publicIPAllocationMethod", allocation_name(*allocation));
    put_some(&mut p, "ipAddress", address.map(|a| a.to_string()));
    put_some(&mut p, "publicIPPrefix", prefix.as_ref().map(reference));
    let mut tags: Vec<Value> =
        ip_tags.iter().map(|(k, v)| json!({ "ipTagType": &**k, "tag": &**v })).collect();
    match rest.properties.shift_remove("ipTags") {
        Some(Value::Array(strange)) => tags.extend(strange),
        Some(strange) => rest.properties.extend([("ipTags".to_owned(), strange)]),
        None => {}
    }
    put_list(&mut p, "ipTags", tags);
    if let Some(label) = dns_label {
        let mut settings = Object::new();
        put(&mut settings, "domainNameLabel", &**label);
        if let Some(Value::Object(other)) = rest.properties.shift_remove("dnsSettings") {
            settings.extend(other);
        }
        put(&mut p, "dnsSettings", settings);
    }
    whole(top, p, rest)
}

pub(super) fn allocation_name(allocation: Allocation) -> &'static str {
    match allocation {
        Allocation::Static => "Static",
        Allocation::Dynamic => "Dynamic",
    }
}
