//! Whether Azure checks what a request says must stand, or must not.

use super::{beside_the_point, refused, taken};
use crate::assumption::{Blocked, Tried, Verdict};
use crate::estate;
use crate::lab::{Done, Lab};
use arm::{Condition, Method};
use model::{Etag, ResourceId};
use serde_json::{Value, json};

/// An ETag that no resource has.
const NEVER: &str = "W/\"00000000-0000-0000-0000-000000000000\"";

fn never() -> Condition {
    Condition::Unchanged(Etag::new(NEVER))
}

/// The body as it was read, and its ETag.
fn read(lab: &mut Lab<'_>, id: &ResourceId) -> Result<(Value, Etag), Blocked> {
    let body = lab.read(id)?;
    let etag = body.get("etag").and_then(Value::as_str).map(Etag::new);
    let etag = etag.ok_or_else(|| Blocked(format!("{} shows no ETag", id.name())))?;
    Ok((body, etag))
}

/// A PUT of what stands with an ETag that never was is refused; with the right one it is taken.
fn checked_on_put(lab: &mut Lab<'_>, id: &ResourceId) -> Tried {
    let (body, etag) = read(lab, id)?;
    let wrong = lab.ask(Method::Put, id, never(), Some(body.clone()));
    match refused(&wrong, 412, None) {
        Verdict::Confirmed(_) => {}
        other => return Ok(unchecked(other)),
    }
    let right = lab.ask(Method::Put, id, Condition::Unchanged(etag), Some(body));
    Ok(match taken(&right)? {
        Verdict::Differs(why) => Verdict::Differs(format!("with the ETag that stands: {why}")),
        other => other,
    })
}

fn unchecked(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Differs(why) => Verdict::Differs(format!("with an ETag that never was: {why}")),
        other => other,
    }
}

/// A PUT of what stands with an ETag that never was is taken all the same.
fn ignored_on_put(lab: &mut Lab<'_>, id: &ResourceId) -> Tried {
    let body = lab.read(id)?;
    let done = lab.ask(Method::Put, id, never(), Some(body));
    Ok(match done.came.status {
        412 => Verdict::Differs(format!("refused with {}", done.came.short())),
        _ => unchecked(taken(&done)?),
    })
}

pub(crate) fn put_public_ip(lab: &mut Lab<'_>) -> Tried {
    let id = estate::free_address(lab)?;
    checked_on_put(lab, &id)
}

pub(crate) fn put_load_balancer(lab: &mut Lab<'_>) -> Tried {
    let id = estate::balancer(lab)?;
    checked_on_put(lab, &id)
}

pub(crate) fn put_subnet(lab: &mut Lab<'_>) -> Tried {
    let id = estate::subnet(lab, "nodes")?;
    checked_on_put(lab, &id)
}

pub(crate) fn put_nat_gateway(lab: &mut Lab<'_>) -> Tried {
    let id = estate::nat_gateway(lab)?;
    checked_on_put(lab, &id)
}

pub(crate) fn put_link(lab: &mut Lab<'_>) -> Tried {
    let id = estate::link(lab)?;
    ignored_on_put(lab, &id)
}

pub(crate) fn put_flexible_set(lab: &mut Lab<'_>) -> Tried {
    let id = estate::scale_set(lab)?;
    ignored_on_put(lab, &id)
}

/// A DELETE with an ETag that never was is refused, and what it names stands.
pub(crate) fn delete_load_balancer(lab: &mut Lab<'_>) -> Tried {
    let frontend = estate::internal_frontend(lab)?;
    let id = lab.site().id(estate::LB, "deleted-lb");
    let body = estate::balancer_body(lab.site(), &id, frontend);
    lab.make(&id, body)?;
    let wrong = lab.ask(Method::Delete, &id, never(), None);
    let verdict = refused(&wrong, 412, None);
    if wrong.came.is_taken() {
        lab.forget(&id);
        return Ok(unchecked(Verdict::Differs(format!("deleted ({})", wrong.came.status))));
    }
    let (_, etag) = read(lab, &id)?;
    let right = lab.ask(Method::Delete, &id, Condition::Unchanged(etag), None);
    if right.result.is_ok() {
        lab.forget(&id);
    }
    match verdict {
        Verdict::Confirmed(_) => taken(&right),
        other => Ok(unchecked(other)),
    }
}

/// A PUT that wants nothing to stand is refused where something does.
fn absent(lab: &mut Lab<'_>, id: &ResourceId) -> Tried {
    let body = lab.read(id)?;
    let done = lab.ask(Method::Put, id, Condition::Absent, Some(body));
    Ok(refused(&done, 412, None))
}

pub(crate) fn absent_public_ip(lab: &mut Lab<'_>) -> Tried {
    let id = estate::free_address(lab)?;
    absent(lab, &id)
}

pub(crate) fn absent_load_balancer(lab: &mut Lab<'_>) -> Tried {
    let id = estate::balancer(lab)?;
    absent(lab, &id)
}

pub(crate) fn absent_nat_gateway(lab: &mut Lab<'_>) -> Tried {
    let id = estate::nat_gateway(lab)?;
    absent(lab, &id)
}

pub(crate) fn absent_link(lab: &mut Lab<'_>) -> Tried {
    let id = estate::link(lab)?;
    absent(lab, &id)
}

fn etag_of(done: &Done) -> Option<String> {
    let body = done.came.body.as_ref()?;
    body.get("etag").and_then(Value::as_str).map(str::to_owned)
}

/// A write of a pool changes the ETag of its load balancer.
pub(crate) fn pool_and_load_balancer(lab: &mut Lab<'_>) -> Tried {
    let id = estate::balancer(lab)?;
    let network = estate::network(lab)?;
    let (_, before) = read(lab, &id)?;
    let pool = id.child("backendAddressPools", "pool");
    let address = json!({"name": "a", "properties": {"ipAddress": "10.77.0.200"}});
    let body = json!({"properties": {"virtualNetwork": {"id": network},
        "loadBalancerBackendAddresses": [address]}});
    let put = lab.ask(Method::Put, &pool, Condition::None, Some(body));
    if put.result.is_err() {
        return taken(&put);
    }
    let after = lab.ask(Method::Get, &id, Condition::None, None);
    if let Some(why) = beside_the_point(&after.came) {
        return Ok(Verdict::NotTried(why));
    }
    let shown = lab.ask(Method::Get, &pool, Condition::None, None);
    Ok(match (etag_of(&after), etag_of(&shown)) {
        (Some(after), _) if after == before.as_str() => {
            Verdict::Differs("the load balancer has the ETag that it had before".to_owned())
        }
        (Some(after), Some(pool)) if after != pool => {
            Verdict::Differs(format!("the pool shows {pool}, its load balancer {after}"))
        }
        (Some(_), Some(_)) => Verdict::AS_ASSUMED,
        _ => Verdict::Differs("one of the two shows no ETag".to_owned()),
    })
}
