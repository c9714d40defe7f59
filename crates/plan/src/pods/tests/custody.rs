//! Objects that another process may have let go although a watch still shows them.

use super::stage::{Stage, pod, service, uid};
use crate::own::pod_names;
use model::azure::{PublicIp, Sku};
use model::kubernetes::{
    Claim, Custody, EGRESS_MARKS, GATEWAY_FINALIZER, LoadBalancerType, POD_FINALIZER, Pod,
    SERVICE_FINALIZER, Service, Wish,
};
use model::plan::{Action, Change, Edit, FinalizerPurpose, KubernetesWrite, Plan};
use model::report::Wait;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Service 1 with our finalizers, as a process finds it that has just been given the right to
/// write.
fn inherited() -> Service {
    let finalizers = vec![SERVICE_FINALIZER.into(), GATEWAY_FINALIZER.into()];
    Service { finalizers, custody: Custody::Inherited, ..service(1) }
}

fn claims(plan: &Plan) -> Vec<&KubernetesWrite> {
    let claims = |write: &&KubernetesWrite| {
        let Edit::Finalizers { purpose, .. } = &write.edit else { return false };
        *purpose == FinalizerPurpose::Claim
    };
    plan.writes.iter().filter(claims).collect()
}

fn ready(plan: &Plan) -> usize {
    plan.changes.iter().filter(|change| change.waits.is_empty()).count()
}

#[test]
fn a_service_is_claimed_again_before_a_public_ip_is_made() {
    let mut stage = Stage::new();
    stage.put(inherited());
    let (plan, _) = stage.plan();
    assert_eq!((claims(&plan).len(), ready(&plan)), (1, 0), "{plan:#?}");
    assert!(plan.changes.iter().all(|change| change.waits.contains(&Wait::Finalizer)));
    let Edit::Finalizers { list, revision, .. } = &claims(&plan)[0].edit else { panic!("a claim") };
    let held = &stage.world.kubernetes.services[&uid(1)];
    // Guarded: another version of it has other finalizers, or none.
    assert_eq!((list, revision), (&held.finalizers, &held.revision));
    stage.settle();
    assert_eq!(stage.calls.len(), 3, "{:?}", stage.calls);
}

#[test]
fn a_service_whose_public_ip_stands_is_not() {
    let mut stage = Stage::serving(&[]);
    stage.edit(1, |service| service.custody = Custody::Inherited);
    let (plan, _) = stage.plan();
    assert!(plan.is_empty(), "{plan:#?}");
    stage.edit(1, |service| service.ports[0].port += 1);
    let (plan, _) = stage.plan();
    assert_eq!((claims(&plan).len(), ready(&plan)), (0, 1), "{plan:#?}");
}

/// A Pod with our finalizer and mark, as a process finds it.
fn marked(n: u8, custody: Custody) -> Pod {
    let set = |text: &str| BTreeSet::from([text.into()]);
    Pod { finalizers: set(POD_FINALIZER), marks: set("team-a"), custody, ..pod(n, "team-a", 1) }
}

#[test]
fn a_pod_is_claimed_again_before_its_gateway_is_made() {
    let mut stage = Stage::new();
    stage.put_pod(marked(1, Custody::Inherited));
    stage.put_pod(marked(2, Custody::Inherited));
    let (plan, _) = stage.plan();
    assert_eq!((claims(&plan).len(), ready(&plan)), (2, 0), "{EGRESS_MARKS}: {plan:#?}");
    stage.settle();
    assert_eq!(stage.calls[..2], ["PUT team-a-pip", "PUT team-a"]);
    // One is enough that is certain to be there, and what stands is not made.
    let mut stage = Stage::new();
    stage.put_pod(marked(1, Custody::Inherited));
    stage.put_pod(marked(2, Custody::Own));
    let (plan, _) = stage.plan();
    assert_eq!((claims(&plan).len(), ready(&plan)), (0, 1), "{plan:#?}");
    stage.settle();
    stage.edit_pod(2, |pod| pod.custody = Custody::Inherited);
    let (plan, _) = stage.plan();
    assert!(plan.is_empty(), "{plan:#?}");
}

/// The API server takes no finalizer for the Pod: only the registration tells whose the public IP
/// is until the NAT gateway stands. Whenever the Pod goes, nothing is left.
#[test]
fn a_gateway_for_which_no_pod_takes_a_mark_is_registered_before_its_public_ip_is_made() {
    for rounds in 0..=5 {
        let mut stage = Stage::new();
        stage.put_pod(Pod { claim: Claim::Waived, ..pod(1, "team-a", 1) });
        for round in 0..rounds {
            let (changes, _) = stage.ready();
            if round == 0 {
                assert!(matches!(changes[..], [Change { action: Action::UpdateServices(_), .. }]));
            }
            changes.into_iter().for_each(|change| stage.apply(change));
        }
        assert_eq!(stage.table().is_empty(), rounds < 5, "{:?}: it is published", stage.calls);
        stage.world.kubernetes.pods.clear();
        stage.settle();
        let left = (stage.ips().len(), stage.nats().len(), stage.services().len());
        assert_eq!(left, (0, 0, 1), "after {rounds}: {:?}", stage.calls);
    }
}

/// The public IP of that name was there before: no mark and no registration say that it is ours.
#[test]
fn a_public_ip_of_others_is_not_taken_over_for_a_pod_without_a_mark() {
    let mut stage = Stage::new();
    let id = stage.policy.public_ip_id(&stage.policy.group, "team-a-pip");
    let ip =
        PublicIp { sku: Sku::StandardV2, tags: None, ..fixture::public_ip("team-a-pip", None) };
    let ips = stage.world.azure.public_ips.get_mut(&stage.policy.group);
    ips.and_then(|all| all.known_mut()).expect("read").insert(id, Arc::new(ip));
    stage.put_pod(Pod { claim: Claim::Waived, ..pod(1, "team-a", 1) });
    let (plan, report) = stage.plan();
    assert!(plan.changes.is_empty(), "{plan:#?}");
    assert_eq!(report.pods.len(), 1, "{report:#?}");
}

/// Somebody deleted the NAT gateway and its registration; the list of public IPs is from before.
#[test]
fn a_public_ip_that_names_a_nat_gateway_which_has_gone_is_nobody_elses() {
    let mut stage = Stage::new();
    stage.put_pod(marked(1, Custody::Own));
    stage.settle();
    let nat = stage.nats().keys().next().expect("it has one").clone();
    let azure = &mut stage.world.azure;
    azure.nat_gateways.known_mut().expect("read").clear();
    azure.gateway_services.known_mut().expect("read").clear();
    azure.gateway_locations = model::world::Fact::Known(Arc::default());
    let ips = azure.public_ips.get_mut(&stage.policy.group).and_then(|all| all.known_mut());
    for ip in ips.expect("read").values_mut() {
        Arc::make_mut(ip).user = Some(nat.clone());
    }
    let (plan, report) = stage.plan();
    let lets_go = |write: &KubernetesWrite| {
        let Edit::Finalizers { purpose, .. } = &write.edit else { return false };
        *purpose == FinalizerPurpose::Release
    };
    assert!(!plan.writes.iter().any(lets_go), "{plan:#?}");
    assert!(report.pods.is_empty(), "{:?}", report.pods);
}

/// Its Service's finalizer was removed by hand, and its load balancer is gone, too.
#[test]
fn a_public_ip_that_is_left_alone_goes() {
    let mut stage = Stage::serving(&[]);
    stage.world.kubernetes.services.clear();
    let azure = &mut stage.world.azure;
    azure.balancers.known_mut().expect("read").clear();
    azure.gateway_services.known_mut().expect("read").clear();
    assert_eq!(stage.ips().len(), 1);
    stage.world.abandoned.insert(pod_names::of_service(&uid(1)));
    stage.settle();
    assert!(stage.ips().is_empty(), "{:?}", stage.calls);
}

#[test]
fn the_stock_finalizer_goes_from_a_service_without_a_class_only() {
    let held = |load_balancer_type| {
        let mut stage = Stage::new();
        stage.put(Service {
            finalizers: vec![SERVICE_FINALIZER.into()],
            wish: Wish::Nothing,
            load_balancer_type,
            ..service(1)
        });
        stage.settle();
        stage.world.kubernetes.services.get(&uid(1)).is_some_and(|s| !s.finalizers.is_empty())
    };
    assert!(held(LoadBalancerType::Foreign), "another controller may have set it");
    assert!(!held(LoadBalancerType::Other), "it wants no load balancer of any class");
}
