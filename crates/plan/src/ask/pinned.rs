//! Addresses that a Service insists on.

use super::additional::AZURE;
use super::findings::{INVALID_PINNED_ADDRESS, PRIVATE_PINNED_ADDRESS, UNUSED_PINNED_ADDRESS};
use super::reader::Reader;
use crate::ask::annotation::full;
use model::kubernetes::Service;
use model::{Exposure, Family};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The field that pins an address where no annotation does.
const FIELD: &str = "spec.loadBalancerIP";

fn annotation(family: Family) -> &'static str {
    match family {
        Family::V4 => "azure-load-balancer-ipv4",
        Family::V6 => "azure-load-balancer-ipv6",
    }
}

/// What pins a Service's address of a family: the annotation, else the field.
pub(crate) fn key(service: &Service, family: Family) -> String {
    let key = annotation(family);
    let is_set = service.annotation(key).is_some_and(|text| !text.trim().is_empty());
    if is_set { full(key) } else { FIELD.to_owned() }
}

/// Reads the pinned address of each family: the annotation's, else `spec.loadBalancerIP`.
pub(super) fn read(
    r: &mut Reader<'_>,
    exposure: Exposure,
    families: &[Family],
) -> BTreeMap<Family, IpAddr> {
    let mut pinned = BTreeMap::new();
    let mut annotated = Vec::new();
    for family in Family::ALL {
        let key = annotation(family);
        let Some(text) = r.text(key) else { continue };
        annotated.push(family);
        if !families.contains(&family) {
            r.find(&UNUSED_PINNED_ADDRESS, key, text);
            continue;
        }
        let key = full(key);
        if let Some(address) = parsed(r, &key, text)
            && fits(r, exposure, &key, text, address)
            && accept(r, family, &key, address)
        {
            pinned.insert(family, address);
        }
    }
    field(r, exposure, families, &annotated, &mut pinned);
    pinned
}

fn field(
    r: &mut Reader<'_>,
    exposure: Exposure,
    families: &[Family],
    annotated: &[Family],
    pinned: &mut BTreeMap<Family, IpAddr>,
) {
    let Some(text) = r.service.load_balancer_ip.as_deref().map(str::trim) else { return };
    if text.is_empty() || families.iter().all(|f| annotated.contains(f)) {
        return;
    }
    let Some(address) = parsed(r, FIELD, text) else { return };
    let family = Family::of(address);
    if !families.contains(&family) {
        r.find_field(&UNUSED_PINNED_ADDRESS, FIELD, text);
    } else if !annotated.contains(&family) && fits(r, exposure, FIELD, text, address) {
        pinned.insert(family, address);
    }
}

fn parsed(r: &mut Reader<'_>, key: &str, text: &str) -> Option<IpAddr> {
    let Ok(address) = text.parse::<IpAddr>() else {
        r.find_field(&INVALID_PINNED_ADDRESS, key, text);
        return None;
    };
    Some(address.to_canonical())
}

/// Whether a load balancer of this exposure can have the address.
fn fits(r: &mut Reader<'_>, exposure: Exposure, key: &str, text: &str, address: IpAddr) -> bool {
    let fits = exposure == Exposure::Internal || is_public(address);
    if !fits {
        r.find_field(&PRIVATE_PINNED_ADDRESS, key, text);
    }
    fits
}

fn accept(r: &mut Reader<'_>, family: Family, key: &str, address: IpAddr) -> bool {
    let fits = Family::of(address) == family;
    if !fits {
        let message = format!("must be an {family} address");
        r.find_with(&INVALID_PINNED_ADDRESS, key, &address.to_string(), &message);
    }
    fits
}

/// Whether a public IP can have this address.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(a) => {
            let [first, second, ..] = a.octets();
            let carrier = first == 100 && (64..128).contains(&second);
            let unicast = !(a.is_unspecified() || a.is_multicast() || a.is_broadcast());
            let routed = !(a.is_private() || a.is_loopback() || a.is_link_local());
            unicast && routed && !carrier && a != AZURE
        }
        IpAddr::V6(a) => {
            let unicast = !(a.is_unspecified() || a.is_multicast());
            let local = a.is_loopback() || a.is_unicast_link_local() || a.is_unique_local();
            unicast && !local
        }
    }
}
