//! Private Link Services: how many a load balancer takes, and what stands beside one.

use super::{beside_the_point, refused, taken};
use crate::assumption::{Blocked, Tried, Verdict};
use crate::estate;
use crate::lab::{Done, Lab};
use arm::{Condition, Method};
use serde_json::{Value, json};

/// Private Link Services before the frontends of a load balancer.
const MOST_LINKS: usize = 8;

/// A load balancer has eight Private Link Services before it, and a ninth is refused.
pub(crate) fn of_load_balancer(lab: &mut Lab<'_>) -> Tried {
    let frontend = estate::internal_frontend(lab)?;
    let subnet = estate::subnet(lab, "links")?;
    let balancer = lab.site().id(estate::LB, "links-lb");
    let frontends: Vec<Value> = (0..=MOST_LINKS)
        .map(|n| json!({"name": format!("front-{n}"), "properties": frontend}))
        .collect();
    let inside = json!({ "frontendIPConfigurations": frontends });
    let body = estate::tracked_sku(lab.site(), "Standard", inside);
    lab.make(&balancer, body)?;
    for n in 0..=MOST_LINKS {
        let id = lab.site().id(estate::PLS, &format!("links-{n}"));
        let front = balancer.child("frontendIPConfigurations", &format!("front-{n}"));
        let body = estate::link_body(lab.site(), &front, &subnet);
        let done = lab.ask(Method::Put, &id, Condition::None, Some(body));
        if n == MOST_LINKS {
            return Ok(refused(&done, 400, None));
        }
        if done.result.is_err() {
            return match taken(&done)? {
                Verdict::Differs(why) => Ok(Verdict::Differs(format!("number {}: {why}", n + 1))),
                other => Ok(other),
            };
        }
    }
    Err(Blocked("no ninth was asked for".to_owned()))
}

/// Changes the load balancer that has a Private Link Service before it.
fn beside_link(lab: &mut Lab<'_>, change: impl FnOnce(&mut Value)) -> Result<Done, Blocked> {
    estate::link(lab)?;
    let id = estate::linked_balancer(lab)?;
    let as_read = lab.read(&id)?;
    let mut body = as_read.clone();
    change(&mut body["properties"]);
    let done = lab.ask(Method::Put, &id, Condition::None, Some(body));
    if done.came.is_taken() {
        lab.make(&id, as_read)?;
    }
    Ok(done)
}

/// An IPv6 frontend beside a Private Link Service is refused.
pub(crate) fn ipv6_beside(lab: &mut Lab<'_>) -> Tried {
    let mut frontend = estate::internal_frontend(lab)?;
    frontend["privateIPAddressVersion"] = json!("IPv6");
    let done = beside_link(lab, |inside| {
        if let Some(all) = inside["frontendIPConfigurations"].as_array_mut() {
            all.push(json!({"name": "front-v6", "properties": frontend}));
        }
    })?;
    Ok(refused(&done, 400, None))
}

/// A pool of addresses beside a Private Link Service is refused.
pub(crate) fn addresses_beside(lab: &mut Lab<'_>) -> Tried {
    let network = estate::network(lab)?;
    let done = beside_link(lab, |inside| {
        inside["backendAddressPools"][0]["properties"] = json!({
            "virtualNetwork": {"id": network}, "loadBalancerBackendAddresses": [
                {"name": "a", "properties": {"ipAddress": "10.77.0.200"}}]});
    })?;
    let code = "PrivateLinkServiceIsNotSupportedForIPBasedLoadBalancer";
    Ok(refused(&done, 400, Some(code)))
}

/// A rule of protocol All may have a port on an internal frontend.
pub(crate) fn protocol_all_with_port(lab: &mut Lab<'_>) -> Tried {
    let frontend = estate::internal_frontend(lab)?;
    let id = lab.site().id(estate::LB, "all-lb");
    let mut body = estate::balancer_body(lab.site(), &id, frontend);
    body["properties"]["loadBalancingRules"][0]["properties"]["protocol"] = json!("All");
    let done = lab.ask(Method::Put, &id, Condition::None, Some(body));
    match beside_the_point(&done.came) {
        Some(why) => Ok(Verdict::NotTried(why)),
        None => taken(&done),
    }
}
