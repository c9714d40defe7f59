//! What a Service's owner sees: its address, and that nothing is left of it.

use super::kubernetes;
use crate::draft::{Draft, Stance};
use crate::own::pod_names;
use model::azure::{FrontendAddress, Provisioning};
use model::kubernetes::{GATEWAY_FINALIZER, Ingress, LoadBalancerType};
use model::plan::ConditionEdit;
use model::report::Wait;
use model::{Family, ServiceUid};
use std::net::IpAddr;
use std::sync::Arc;

/// Notes load balancer and address in the report.
pub(crate) fn show(draft: &mut Draft<'_>, name: &Arc<str>, uid: &ServiceUid) {
    let exists = draft.container(name).is_some();
    let address = draft.container_ip(name).and_then(|ip| ip.address);
    let Some(case) = draft.cases.get_mut(uid) else { return };
    if exists || matches!(case.stance, Stance::Container(_)) {
        case.balancer = Some(Arc::clone(name));
    }
    case.addresses = address.map(|a| Arc::from(a.to_string())).into_iter().collect();
}

/// Writes the address of a Service that is programmed, and takes the finalizers off one of which
/// nothing is left.
pub(crate) fn conclude(draft: &mut Draft<'_>, name: &Arc<str>, uid: &ServiceUid) {
    match &draft.cases[uid].stance {
        Stance::Container(intent) => {
            let family = intent.family;
            address(draft, name, uid, family);
        }
        Stance::Leaving if !draft.cases[uid].has_traces => {
            let service = draft.cases[uid].service;
            // Another controller's class may use the common finalizer, too. A Service without a
            // class is ours, as with node-based load balancers.
            let ours = service.has_finalizer(GATEWAY_FINALIZER)
                || service.load_balancer_type != LoadBalancerType::Foreign
                || service.condition.is_some();
            if ours {
                draft.steps.writes.extend(kubernetes::let_go(service));
            }
        }
        Stance::Leaving | Stance::Wanted(_) | Stance::Frozen(_) => {}
    }
}

/// Whether a load balancer leads from a Service's public IP to its Pods.
fn leads(draft: &Draft<'_>, name: &Arc<str>) -> bool {
    let own = FrontendAddress::Public(draft.container_ip_id(name));
    draft.container(name).is_some_and(|balancer| {
        !balancer.rules.is_empty() && balancer.frontends.iter().any(|f| f.address == own)
    })
}

/// Whether Azure is still changing a load balancer, on account of a write whose end is no longer
/// awaited: it shows what was asked for, and an operation that is canceled puts back what was there
/// before.
fn is_changing(draft: &Draft<'_>, name: &Arc<str>) -> bool {
    draft.container(name).is_some_and(|balancer| balancer.provisioning == Provisioning::Busy)
}

/// Whether an entry of a status is this address. The Go cloud provider writes IPv6 as Azure does,
/// which may be longer than its shortest form.
fn is_of(entry: &Ingress, address: IpAddr) -> bool {
    entry.ip.as_deref().is_some_and(|text| text.parse() == Ok(address))
}

fn address(draft: &mut Draft<'_>, name: &Arc<str>, uid: &ServiceUid, family: Family) {
    let registered = draft.registered(name).is_some_and(|entry| !entry.pools.is_empty());
    let address = draft.container_ip(name).and_then(|ip| ip.address);
    let balancer = draft.policy.balancer_id(name);
    let table = pod_names::services_table(draft.policy);
    let told = &draft.cases[uid].service.ingress;
    let is_told = |at: IpAddr| told.iter().any(|entry| is_of(entry, at));
    let new = !address.is_some_and(is_told);
    let busy = if draft.is_in_flight(&balancer) || (new && is_changing(draft, name)) {
        Some(balancer)
    } else {
        // It may be on its way out, from when its owner wanted none.
        draft.is_written_for(&table, uid).then_some(table)
    };
    let leads = registered && leads(draft, name);
    let unsure = address.is_none() && draft.world.inherited.contains(uid);
    let Some(case) = draft.cases.get_mut(uid) else { return };
    // The write that leads there has to end first, whatever comes of it. The status gets a new
    // address together with the condition that all is done: while anything is still to be written,
    // it gets none.
    case.waits.extend(busy.map(Wait::Writing));
    let stands = leads && case.waits.is_empty();
    // Host names and addresses of the other family are somebody else's. Until all is done only
    // an address that no longer is ours goes.
    let mut list: Vec<Ingress> = case
        .service
        .ingress
        .iter()
        .filter(|entry| match entry.ip.as_deref().map(str::parse::<IpAddr>) {
            Some(Ok(ip)) => Family::of(ip) != family || Some(ip) == address,
            Some(Err(_)) => false,
            None => entry.hostname.is_some(),
        })
        .cloned()
        .collect();
    if let Some(address) = address.filter(|_| stands)
        && !list.iter().any(|entry| is_of(entry, address))
    {
        list.push(Ingress { ip: Some(Arc::from(address.to_string())), hostname: None });
    }
    if unsure && kubernetes::drops(&list, &case.service.ingress) {
        case.waits.insert(Wait::Listing);
    } else if list != case.service.ingress {
        case.waits.insert(Wait::Status);
        let write = kubernetes::status(case.service, Some(list), ConditionEdit::Keep);
        draft.steps.writes.push(write);
    }
}
