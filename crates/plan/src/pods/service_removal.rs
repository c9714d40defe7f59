//! A Service that loses its container load balancer, known or not.
//!
//! Its addresses are drained, its pool is detached, load balancer and public IP are deleted, and
//! its registration, the mark of what is ours, goes last. A Service that comes back with another
//! family loses load balancer and public IP, and gets others under its registration.

use super::registry::Registry;
use super::{obstacles, public_ip, until};
use crate::draft::{Case, Draft};
use crate::own::pod_names;
use crate::pods::table::DiffTracker;
use model::ServiceUid;
use model::azure::{LoadBalancer, Sku};
use model::gateway::{Direction, GatewayService};
use model::kubernetes::Wish;
use model::plan::{Change, Resource};
use model::report::{Until, Wait};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) fn plan(
    draft: &mut Draft<'_>,
    registry: &mut Registry,
    tracker: &DiffTracker,
    name: &Arc<str>,
    known: Option<&ServiceUid>,
) {
    let uid = known.cloned().unwrap_or_else(|| ServiceUid::new(name));
    let comes_back = |case: &&mut Case<'_>| case.service.wish == Wish::LoadBalancer;
    if draft.world.inherited.contains(&uid)
        && let Some(case) = draft.cases.get_mut(&uid).filter(comes_back)
    {
        // Another process may have replaced them already: lists may still show them.
        case.has_traces = true;
        case.waits.insert(Wait::Listing);
        return;
    }
    let entry = draft
        .registered(name)
        .filter(|entry| !pod_names::is_foreign(entry) && entry.direction == Direction::Inbound);
    let ours = |b: &&Arc<LoadBalancer>| {
        b.sku == Sku::Service && !draft.own.is_another_clusters(b.tags.as_ref())
    };
    let balancer = draft.container(name).filter(ours).cloned();
    let (balancer_id, ip_id) = (draft.policy.balancer_id(name), draft.container_ip_id(name));
    let table = pod_names::services_table(draft.policy);
    let mut waits = obstacles(draft, tracker, name, &uid);
    if let Some(attached) = entry.filter(|e| !e.pools.is_empty()) {
        if waits.is_empty() {
            let pools = BTreeSet::new();
            registry.put(&uid, GatewayService { pools, ..GatewayService::clone(attached) }, None);
        }
        waits.push(until(&table, Until::Released));
    }
    if let Some(before) = balancer {
        let causes = BTreeSet::from([uid.clone()]);
        let delete = Change::delete(Resource::LoadBalancer(before), causes, waits.clone());
        draft.change(Change { target: balancer_id.clone(), ..delete });
        waits.push(until(&balancer_id, Until::Gone));
    } else if draft.is_in_flight(&balancer_id) {
        waits.push(Wait::Writing(balancer_id.clone()));
    }
    if public_ip::release(draft, &uid, &ip_id, waits.clone()) {
        waits.push(until(&ip_id, Until::Gone));
    } else if draft.is_in_flight(&ip_id) {
        waits.push(Wait::Writing(ip_id.clone()));
    }
    if draft.world.inherited.contains(&uid) {
        // What the lists do not show may be there all the same.
        waits.push(Wait::Listing);
    }
    if let Some(entry) = entry {
        if waits.is_empty() {
            registry.delete(&uid, &entry.name, Direction::Inbound);
        } else if !draft.is_late(&balancer_id) && !draft.is_late(&ip_id) {
            registry.expect(&uid);
        }
        waits.push(until(&table, Until::Gone));
    }
    let Some(case) = known.and_then(|uid| draft.cases.get_mut(uid)) else { return };
    if !waits.is_empty() {
        case.has_traces = true;
    }
    case.waits.extend(waits);
}
