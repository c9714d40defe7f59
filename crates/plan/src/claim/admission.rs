//! Which Services are planned at all: those whose wish could be read, that are neither held back by
//! their owners nor set aside, and whose parts lists are certain to show.

use crate::Refused;
use crate::ask;
use crate::ask::readings::Readings;
use crate::draft::{Case, Draft, Stance};
use crate::own::pod_names;
use crate::verdict::Frozen;
use model::azure::Sku;
use model::kubernetes::{Service, Wish};
use model::policy::Layout;
use model::report::{Finding, Wait};
use model::{Family, Policy, World};
use std::sync::Arc;

/// What is to become of a Service, before others are looked at.
struct Admission {
    stance: Stance,
    findings: Vec<Finding>,
    wait: Option<Wait>,
}

/// Takes a stance to every Service.
pub(crate) fn admit_all(draft: &mut Draft<'_>, readings: &mut Readings, refused: &Refused) {
    let services = draft.world.kubernetes.services.values();
    // All at once: they are sorted, and not put among each other one by one.
    let named = services.clone().map(|service| (service.name.clone(), service.uid.clone()));
    draft.by_name = named.collect();
    for service in services {
        let case = case(draft, service, readings, refused);
        draft.add(case);
    }
}

/// Takes a stance to one Service.
pub(crate) fn admit<'w>(
    draft: &mut Draft<'w>,
    service: &'w Arc<Service>,
    readings: &mut Readings,
    refused: &Refused,
) {
    draft.by_name.insert(service.name.clone(), service.uid.clone());
    let case = case(draft, service, readings, refused);
    draft.add(case);
}

fn case<'w>(
    draft: &Draft<'w>,
    service: &'w Arc<Service>,
    readings: &mut Readings,
    refused: &Refused,
) -> Case<'w> {
    let Admission { stance, findings, wait } =
        admission(draft.world, draft.policy, service, readings);
    let wishes = service.wish == Wish::LoadBalancer;
    let (stance, findings) = match refused.get(&service.uid).filter(|_| wishes) {
        Some(why) => (Stance::Frozen(Frozen::new()), [&findings[..], why].concat()),
        None => (stance, findings),
    };
    let base = match &stance {
        Stance::Wanted(intent) => Arc::clone(&intent.base),
        _ => Arc::from(service.uid.base_name()),
    };
    Case {
        service,
        base,
        stance,
        waits: wait.into_iter().collect(),
        findings,
        refusals: Vec::new(),
        balancer: None,
        addresses: Vec::new(),
        has_traces: false,
    }
}

fn admission(
    world: &World,
    policy: &Policy,
    service: &Arc<Service>,
    readings: &mut Readings,
) -> Admission {
    let frozen = || Stance::Frozen(Frozen::new());
    let wishes = service.wish == Wish::LoadBalancer;
    let (mut stance, mut findings) = match policy.layout {
        _ if !wishes => (Stance::Leaving, Vec::new()),
        Layout::PerService => {
            let reading = readings.container(service, policy);
            let stance = match reading.intent.clone() {
                Some(_) if is_of_another_family(world, policy, service) => Stance::Leaving,
                intent => intent.map_or_else(frozen, Stance::Container),
            };
            (stance, reading.findings.clone())
        }
        Layout::Single | Layout::Several(_) | Layout::PerNodeSet { .. } => {
            let reading = readings.node(service, policy);
            let stance = reading.intent.clone().map_or_else(frozen, Stance::Wanted);
            (stance, reading.findings.clone())
        }
    };
    let mut wait = None;
    if let Some((rule, key)) = ask::hold::find(service) {
        stance = frozen();
        findings.insert(0, rule.found(key, ""));
    } else if policy.layout == Layout::PerService {
        // A container load balancer shares nothing: each of its parts is held by itself.
    } else if let Some(hold) = world.holds.get(&service.uid) {
        stance = frozen();
        let reason = Arc::clone(&hold.reason);
        wait = Some(Wait::SetAside { reason, until_ms: hold.until_ms });
    } else if is_unseen(world, service, &stance) {
        stance = frozen();
        wait = Some(Wait::Listing);
    }
    Admission { stance, findings, wait }
}

/// Whether the public IP under a Service's name, of a container load balancer, has another family
/// than the Service, as where that was of type `ExternalName` for a while. Azure changes the family
/// of none: it goes, with all that stands on it, before another one comes.
fn is_of_another_family(world: &World, policy: &Policy, service: &Service) -> bool {
    let family = service.families.first().copied().unwrap_or(Family::V4);
    let ip = pod_names::ip_of(world, policy, &service.uid);
    ip.is_some_and(|ip| ip.sku == Sku::StandardV2 && ip.family != family)
}

/// Whether lists may not show yet what another process made for a Service. Of one that leaves it
/// would stay behind. One that is told an address would be built anew elsewhere, and its address
/// closed.
fn is_unseen(world: &World, service: &Service, stance: &Stance) -> bool {
    match stance {
        Stance::Leaving => world.inherited.contains(&service.uid),
        Stance::Wanted(_) => !service.ingress.is_empty() && world.unseen.contains(&service.uid),
        Stance::Frozen(_) | Stance::Container(_) => false,
    }
}
