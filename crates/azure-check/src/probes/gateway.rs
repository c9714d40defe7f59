//! Service Gateways: the registration of a service, and how much one call may carry.

use super::{beside_the_point, taken};
use crate::assumption::{Blocked, Tried, Verdict};
use crate::estate;
use crate::lab::{Done, Lab};
use arm::Method;
use arm::path::{Action, Contract, action_path};
use model::ResourceId;
use serde_json::{Value, json};

/// Services in one call.
const SERVICES: usize = 100;
/// Addresses in one call, each with one name: 40,000 addresses and names.
const ADDRESSES: usize = 20_000;
/// Addresses below one location.
const BELOW: usize = 250;

fn path(gateway: &ResourceId, action: Action) -> String {
    action_path(Contract::Nodes, gateway, action)
}

fn service(name: &str, nat: Value) -> Value {
    json!({"isDelete": false, "service": {"name": name, "properties": {
        "serviceType": "Outbound", "publicNatGatewayId": nat}}})
}

fn update(lab: &mut Lab<'_>, gateway: &ResourceId, requests: Vec<Value>) -> Done {
    let body = json!({"action": "PartialUpdate", "serviceRequests": requests});
    lab.ask_path(Method::Post, path(gateway, Action::UpdateServices), Some(body))
}

/// Takes services out again, so that the next probe finds none and the gateway can be deleted.
fn remove(lab: &mut Lab<'_>, gateway: &ResourceId, names: impl Iterator<Item = String>) {
    let requests = names.map(|name| {
        json!({"isDelete": true, "service": {"name": name, "properties": {
            "serviceType": "Outbound", "loadBalancerBackendPools": []}}})
    });
    let requests = requests.collect();
    update(lab, gateway, requests);
}

fn shown_nat(done: &Done, name: &str) -> Option<bool> {
    let services = done.came.body.as_ref()?.get("value")?.as_array()?;
    let found = services.iter().find(|service| service["name"] == name)?;
    Some(found["properties"]["publicNatGatewayId"].as_str().is_some_and(|id| !id.is_empty()))
}

/// A registration whose `publicNatGatewayId` is null lets go of its NAT gateway.
pub(crate) fn null_clears_registration(lab: &mut Lab<'_>) -> Tried {
    let gateway = estate::service_gateway(lab)?;
    let nat = estate::gateway_nat(lab)?;
    let name = "check-null";
    let list = path(&gateway, Action::Services);
    let registered = update(lab, &gateway, vec![service(name, json!(nat))]);
    if registered.result.is_err() {
        return Err(registered.blocked("POST updateServices"));
    }
    let before = lab.ask_path(Method::Get, list.clone(), None);
    if shown_nat(&before, name) != Some(true) {
        remove(lab, &gateway, std::iter::once(name.to_owned()));
        return Err(Blocked("the service does not show its NAT gateway".to_owned()));
    }
    let cleared = update(lab, &gateway, vec![service(name, Value::Null)]);
    let after = lab.ask_path(Method::Get, list, None);
    // Without its registration the NAT gateway can be deleted, whatever the verdict.
    remove(lab, &gateway, std::iter::once(name.to_owned()));
    Ok(match (taken(&cleared)?, shown_nat(&after, name)) {
        (Verdict::Confirmed(_), Some(false)) => Verdict::AS_ASSUMED,
        (Verdict::Confirmed(_), Some(true)) => {
            Verdict::Differs("the service still shows its NAT gateway".to_owned())
        }
        (Verdict::Confirmed(_), None) => Verdict::Differs("the service is gone".to_owned()),
        (other, _) => other,
    })
}

/// What a refusal of a large call says: its size, or something else.
fn sized(done: &Done) -> Tried {
    let came = &done.came;
    let code = came.code().unwrap_or_default().to_lowercase();
    let size = came.status == 413
        || ["limit", "large", "exceed", "toomany", "max"].iter().any(|word| code.contains(word));
    match &done.result {
        Ok(_) => Ok(Verdict::AS_ASSUMED),
        Err(_) if beside_the_point(came).is_none() && size => {
            Ok(Verdict::Differs(format!("refused with {}: {}", came.short(), came.message())))
        }
        Err(_) => Err(done.blocked("refused for another reason than its size")),
    }
}

/// A call registers 100 services.
pub(crate) fn services_per_call(lab: &mut Lab<'_>) -> Tried {
    let gateway = estate::service_gateway(lab)?;
    let names = || (0..SERVICES).map(|n| format!("check-{n:03}"));
    let requests = names().map(|name| service(&name, Value::Null)).collect();
    let done = update(lab, &gateway, requests);
    if done.came.is_taken() {
        remove(lab, &gateway, names());
    }
    sized(&done)
}

/// A call maps 20,000 addresses, each to one service.
pub(crate) fn addresses_per_call(lab: &mut Lab<'_>) -> Tried {
    let gateway = estate::service_gateway(lab)?;
    let name = "check-addresses";
    let registered = update(lab, &gateway, vec![service(name, Value::Null)]);
    if registered.result.is_err() {
        return Err(registered.blocked("POST updateServices"));
    }
    let action = path(&gateway, Action::UpdateAddressLocations);
    let done = lab.ask_path(Method::Post, action.clone(), Some(locations(Some(name))));
    if done.came.is_taken() {
        lab.ask_path(Method::Post, action, Some(locations(None)));
    }
    remove(lab, &gateway, std::iter::once(name.to_owned()));
    sized(&done)
}

/// Pods `10.128.0.0` and on below nodes `10.77.0.10` and on; without a name: none.
fn locations(name: Option<&str>) -> Value {
    let of = |location: usize| {
        let addresses: Vec<Value> = match name {
            None => Vec::new(),
            Some(name) => (0..BELOW)
                .map(|n| {
                    let address = format!("10.{}.{}.{n}", 128 + location / 200, location % 200);
                    json!({"address": address, "services": [name]})
                })
                .collect(),
        };
        json!({"addressLocation": format!("10.77.0.{}", 10 + location),
            "addressUpdateAction": "FullUpdate", "addresses": addresses})
    };
    let all: Vec<Value> = (0..ADDRESSES / BELOW).map(of).collect();
    json!({"action": "PartialUpdate", "addressLocations": all})
}
