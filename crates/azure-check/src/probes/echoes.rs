//! Whether Azure takes a body as it showed it, read-only members included; and what a member that
//! is null or absent means.

use super::taken;
use crate::assumption::{Blocked, Tried, Verdict};
use crate::estate;
use crate::lab::Lab;
use arm::{Condition, Method};
use model::ResourceId;
use serde_json::{Value, json};

fn echoed(lab: &mut Lab<'_>, id: &ResourceId) -> Tried {
    let body = lab.read(id)?;
    let done = lab.ask(Method::Put, id, Condition::None, Some(body));
    taken(&done)
}

pub(crate) fn subnet(lab: &mut Lab<'_>) -> Tried {
    // A NIC in it gives the subnet a member that only Azure writes.
    estate::nic(lab)?;
    let id = estate::subnet(lab, "nodes")?;
    echoed(lab, &id)
}

pub(crate) fn nic(lab: &mut Lab<'_>) -> Tried {
    let id = estate::nic(lab)?;
    echoed(lab, &id)
}

const REFERENCE: &str = "/properties/serviceGateway/id";

/// A NAT gateway of a Service Gateway, as it is read.
fn attached(lab: &mut Lab<'_>) -> Result<(ResourceId, ResourceId, Value), Blocked> {
    let gateway = estate::service_gateway(lab)?;
    let nat = estate::gateway_nat(lab)?;
    let mut body = lab.read(&nat)?;
    if body.pointer(REFERENCE).is_none() {
        body["properties"]["serviceGateway"] = json!({ "id": gateway });
        lab.make(&nat, body)?;
        body = lab.read(&nat)?;
    }
    if body.pointer(REFERENCE).is_none() {
        return Err(Blocked("the NAT gateway does not show its Service Gateway".to_owned()));
    }
    Ok((nat, gateway, body))
}

/// A PUT without `serviceGateway` leaves it.
pub(crate) fn absent_keeps(lab: &mut Lab<'_>) -> Tried {
    let (nat, _, mut body) = attached(lab)?;
    if let Some(inside) = body["properties"].as_object_mut() {
        inside.remove("serviceGateway");
    }
    let shown = match shown_after(lab, &nat, body) {
        Err(refused) => return refused,
        Ok(shown) => shown,
    };
    Ok(match shown {
        true => Verdict::AS_ASSUMED,
        false => Verdict::Differs("the Service Gateway is gone from it".to_owned()),
    })
}

/// Whether a NAT gateway shows its Service Gateway after a write of this body; the verdict of a
/// write that Azure refuses.
fn shown_after(lab: &mut Lab<'_>, nat: &ResourceId, body: Value) -> Result<bool, Tried> {
    let done = lab.ask(Method::Put, nat, Condition::None, Some(body));
    if done.result.is_err() {
        return Err(taken(&done));
    }
    let shown = lab.ask(Method::Get, nat, Condition::None, None);
    Ok(shown.came.body.as_ref().is_some_and(|body| body.pointer(REFERENCE).is_some()))
}

/// A PUT with `serviceGateway: null` clears it.
pub(crate) fn null_clears(lab: &mut Lab<'_>) -> Tried {
    let (nat, _, mut body) = attached(lab)?;
    body["properties"]["serviceGateway"] = Value::Null;
    let shown = match shown_after(lab, &nat, body) {
        Err(refused) => return refused,
        Ok(shown) => shown,
    };
    Ok(match shown {
        false => Verdict::AS_ASSUMED,
        true => Verdict::Differs("it still shows the Service Gateway".to_owned()),
    })
}
