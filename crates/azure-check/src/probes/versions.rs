//! Which api-versions and SKUs Azure takes.

use super::{refused, taken};
use crate::assumption::{Tried, Verdict};
use crate::estate;
use crate::lab::{Done, Lab};
use arm::path::{Collection, Contract, list_path, resource_path, zones_path};
use arm::{Condition, Method};
use model::Group;
use serde_json::json;

fn listed(lab: &mut Lab<'_>, contract: Contract, collection: Collection) -> Done {
    let site = lab.site();
    let group = Group::new(&site.group);
    let path = list_path(contract, &site.subscription.clone(), &group, collection);
    lab.ask_path(Method::Get, path, None)
}

pub(crate) fn network(lab: &mut Lab<'_>) -> Tried {
    let done = listed(lab, Contract::Nodes, Collection::LoadBalancers);
    taken(&done)
}

pub(crate) fn service_load_balancers(lab: &mut Lab<'_>) -> Tried {
    let done = listed(lab, Contract::Containers, Collection::LoadBalancers);
    taken(&done)
}

pub(crate) fn compute(lab: &mut Lab<'_>) -> Tried {
    let done = listed(lab, Contract::Nodes, Collection::ScaleSets);
    taken(&done)
}

pub(crate) fn providers(lab: &mut Lab<'_>) -> Tried {
    let path = zones_path(&lab.site().subscription.clone());
    let done = lab.ask_path(Method::Get, path, None);
    match taken(&done)? {
        Verdict::Confirmed(_) => {}
        other => return Ok(other),
    }
    let types = done.came.body.as_ref().and_then(|body| body["resourceTypes"].as_array());
    let zones = types.into_iter().flatten().any(|kind| !kind["zoneMappings"].is_null());
    Ok(match zones {
        true => Verdict::AS_ASSUMED,
        false => Verdict::Differs("no type has zoneMappings".to_owned()),
    })
}

fn with_version(lab: &mut Lab<'_>, version: Option<&str>) -> Done {
    let id = lab.site().id(estate::PIP, "never-made");
    let path = resource_path(Contract::Nodes, &id);
    let bare = path.split('?').next().unwrap_or_default();
    let path = version.map_or_else(|| bare.to_owned(), |v| format!("{bare}?api-version={v}"));
    lab.ask_path(Method::Get, path, None)
}

pub(crate) fn missing(lab: &mut Lab<'_>) -> Tried {
    let done = with_version(lab, None);
    Ok(refused(&done, 400, Some("MissingApiVersionParameter")))
}

pub(crate) fn unknown(lab: &mut Lab<'_>) -> Tried {
    let done = with_version(lab, Some("2025-05-31"));
    Ok(refused(&done, 400, Some("NoRegisteredProviderFound")))
}

/// Public IPs of SKU StandardV2.
pub(crate) fn standard_v2_address(lab: &mut Lab<'_>) -> Tried {
    let id = lab.site().id(estate::PIP, "v2-ip");
    let body = estate::address_body(lab.site(), "StandardV2");
    let done = lab.ask(Method::Put, &id, Condition::None, Some(body));
    taken(&done)
}

/// NAT gateways of SKU StandardV2.
pub(crate) fn standard_v2_nat(lab: &mut Lab<'_>) -> Tried {
    let id = lab.site().id(estate::NAT, "v2-nat");
    let body = estate::tracked_sku(lab.site(), "StandardV2", json!({}));
    let done = lab.ask(Method::Put, &id, Condition::None, Some(body));
    taken(&done)
}

/// Load balancers of SKU Service.
pub(crate) fn service_load_balancer(lab: &mut Lab<'_>) -> Tried {
    let address = estate::address(lab, "service-ip", "StandardV2")?;
    let id = lab.site().id(estate::LB, "service-lb");
    let frontend = json!({"publicIPAddress": {"id": address}});
    let mut body = estate::balancer_body(lab.site(), &id, frontend);
    body["sku"] = json!({"name": "Service"});
    body["properties"]["scope"] = json!("Public");
    let path = resource_path(Contract::Containers, &id);
    let done = lab.ask_path(Method::Put, path, Some(body));
    taken(&done)
}
