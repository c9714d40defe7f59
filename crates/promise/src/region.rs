//! Where things are.
//!
//! What is promised: load balancers, public IPs, NAT gateways and Private Link Services that this
//! cluster makes are in the region of the cloud config, and in its edge zone, where it names one.
//! Container load balancers and egress gateways are in no edge zone: Azure has neither there.

use crate::Broken;
use crate::case::Case;
use crate::estate::{last, same, text};
use crate::tags;
use serde_json::Value;

const PROMISE: &str = "region";

/// Judges them.
pub(crate) fn judge(case: &Case<'_>, broken: &mut Vec<Broken>) {
    let balancers = case.estate.balancers().filter(|(id, _)| case.is_balancer_of_ours(id));
    let ips = case.estate.public_ips().filter(|(_, ip)| {
        tags::is_of_cluster(case, ip, &case.site.group) && tags::tag(ip, tags::SERVICE).is_some()
    });
    let links = case
        .estate
        .links()
        .filter(|(_, link)| tags::is_of_cluster(case, link, &case.site.link_group));
    let edge_zone = case.site.edge_zone.as_deref();
    for (_, resource) in balancers.chain(ips).chain(links) {
        let found = wrong(case, resource, edge_zone).into_iter();
        broken.extend(found.map(|text| Broken { service: None, promise: PROMISE, text }));
    }
}

/// What is wrong with where a resource is, if this cluster has made it.
pub(crate) fn wrong(case: &Case<'_>, resource: &Value, edge_zone: Option<&str>) -> Vec<String> {
    if case.before(text(&resource["id"])).is_some() {
        return Vec::new();
    }
    let name = last(text(&resource["id"]));
    let region = text(&resource["location"]).to_lowercase().replace(' ', "");
    let zone = text(&resource["extendedLocation"]["name"]);
    let mut found = Vec::new();
    let mut must = |what: &str, has: &str, must: &str| {
        if !same(has, must) {
            found.push(format!("the {what} of {name} is {has:?}; it must be {must:?}"));
        }
    };
    // Azure refuses a body that says nothing of the region.
    if !region.is_empty() {
        must("region", &region, &case.site.location);
    }
    must("edge zone", zone, edge_zone.unwrap_or(""));
    found
}
