//! NAT gateways.

use super::compose::{
    head, put, put_list, put_location, put_sku, put_tags, reference, references, whole,
};
use super::fields::{
    BodyError, Envelope, Object, reference as read_reference, take, take_references, take_sku,
};
use model::azure::{NatGateway, Sku};
use serde_json::Value;
use std::sync::Arc;

/// Reads a NAT gateway.
///
/// # Errors
/// The body is no object or has no id.
pub fn read_nat_gateway(body: &Value) -> Result<NatGateway, BodyError> {
    let mut found = Envelope::open("NAT gateway", body, &["subnets"])?;
    let sku = take_sku(&mut found.top, Sku::Standard);
    let p = &mut found.properties;
    Ok(NatGateway {
        id: found.id.clone(),
        etag: found.etag.clone(),
        location: Arc::clone(&found.location),
        tags: found.tags.clone(),
        sku,
        gateway: take(p, "serviceGateway", read_reference),
        public_ips: take_references(p, "publicIpAddresses"),
        public_ips_v6: take_references(p, "publicIpAddressesV6"),
        provisioning: found.provisioning,
        rest: found.rest(),
    })
}

/// Writes a NAT gateway. No Service Gateway is written as null: for Azure an absent reference
/// means that it stays.
#[must_use]
pub fn write_nat_gateway(nat: &NatGateway) -> Value {
    let NatGateway {
        id,
        etag: _,
        location,
        tags,
        sku,
        gateway,
        public_ips,
        public_ips_v6,
        provisioning: _,
        rest,
    } = nat;
    let mut rest = rest.unpack();
    let mut top = head(id);
    put_location(&mut top, location, None);
    put_tags(&mut top, tags.as_ref(), &mut rest);
    put_sku(&mut top, *sku, &mut rest);
    let mut p = Object::new();
    put(&mut p, "serviceGateway", gateway.as_ref().map_or(Value::Null, reference));
    put_list(&mut p, "publicIpAddresses", references(public_ips));
    put_list(&mut p, "publicIpAddressesV6", references(public_ips_v6));
    whole(top, p, rest)
}
