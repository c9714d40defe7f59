//! A Service that wants a container load balancer: public IP, load balancer, registration.

use super::registry::Registry;
use super::{balancer, public_ip, until};
use crate::ask::container::ContainerIntent;
use crate::draft::Draft;
use crate::order::custody::may_make_ip;
use crate::own::{is_claimed, pod_names};
use model::azure::Provisioning;
use model::gateway::{DefaultService, Direction, GatewayService};
use model::plan::{Change, Resource};
use model::report::{Until, Wait};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) fn plan(
    draft: &mut Draft<'_>,
    registry: &mut Registry,
    name: &Arc<str>,
    intent: &ContainerIntent,
) {
    let uid = &intent.uid;
    if let Some(hold) = draft.hold(uid) {
        let (reason, until_ms) = (Arc::clone(&hold.reason), hold.until_ms);
        let elsewhere = hold.target == pod_names::locations_table(draft.policy);
        draft.wait(uid, Wait::SetAside { reason, until_ms });
        // What was refused were addresses: the load balancer itself goes on.
        if !elsewhere {
            return;
        }
    }
    let Some(case) = draft.cases.get(uid) else { return };
    let claimed = match draft.container_ip(name) {
        Some(_) => is_claimed(draft.policy, case.service),
        None => may_make_ip(draft, std::iter::once(uid)),
    };
    let mut waits = Vec::new();
    if !claimed {
        waits.push(Wait::Finalizer);
    }
    let ip = draft.container_ip_id(name);
    public_ip::ensure(draft, uid, &ip, intent.family, waits.clone());
    if !public_ip::is_ready(draft, &ip) {
        waits.push(until(&ip, Until::Ready));
    }
    let stands = put_balancer(draft, name, intent, waits);
    register(draft, registry, name, intent, claimed && stands);
}

/// Writes the load balancer where it differs; says whether there is one to lead to.
fn put_balancer(
    draft: &mut Draft<'_>,
    name: &str,
    intent: &ContainerIntent,
    waits: Vec<Wait>,
) -> bool {
    let before = draft.container(name).cloned();
    let after = balancer::wanted(draft, name, intent, before.as_deref());
    let failed = before.as_ref().is_some_and(|b| b.provisioning == Provisioning::Failed);
    let idle = !draft.is_in_flight(&after.id);
    let same = before.as_ref().is_some_and(|before| {
        // A state that passes is no difference.
        let settled = model::azure::LoadBalancer {
            provisioning: Provisioning::Succeeded,
            ..model::azure::LoadBalancer::clone(before)
        };
        settled == after
    });
    if failed || !same {
        let there = before.clone().map(Resource::LoadBalancer);
        let after = Resource::LoadBalancer(Arc::new(after));
        draft.change(Change::put(there, after, BTreeSet::from([intent.uid.clone()]), waits));
    }
    before.is_some() && idle
}

/// Registers a Service whose load balancer stands.
fn register(
    draft: &mut Draft<'_>,
    registry: &mut Registry,
    name: &Arc<str>,
    intent: &ContainerIntent,
    ready: bool,
) {
    let id = draft.policy.balancer_id(name);
    let service = GatewayService {
        name: Arc::clone(name),
        direction: Direction::Inbound,
        default: DefaultService::No,
        pools: BTreeSet::from([id.child("backendAddressPools", name)]),
        nat_gateway: None,
    };
    match draft.registered(name) {
        Some(there) if pod_names::is_foreign(there) => return,
        Some(there) if there.direction == Direction::Inbound && there.pools == service.pools => {
            return;
        }
        Some(_) | None => {}
    }
    let hold = draft.hold(&intent.uid).is_some();
    if ready && !hold {
        let network = Some(draft.policy.network());
        registry.put(&intent.uid, service, network);
    } else if !draft.is_late(&id) && !draft.is_late(&draft.container_ip_id(name)) {
        registry.expect(&intent.uid);
    }
    if !ready {
        draft.wait(&intent.uid, until(&id, Until::Ready));
    }
}
