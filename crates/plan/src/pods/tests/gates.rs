use super::stage::{Stage, gated, labels_of, uid};
use model::ServiceName;
use model::kubernetes::{Gate, GateReason, Others};
use model::plan::{Edit, Object};
use std::sync::Arc;

/// Pods whose gates the plan writes, with the reasons.
fn gates(stage: &mut Stage) -> Vec<(String, Gate, GateReason)> {
    let (plan, _) = stage.plan();
    let gate = |write: &model::plan::KubernetesWrite| match (&write.object, &write.edit) {
        (Object::Pod { name, .. }, Edit::Gate { gate, reason, .. }) => {
            Some((name.name.to_string(), *gate, *reason))
        }
        _ => None,
    };
    plan.writes.iter().filter_map(gate).collect()
}

fn name(n: u8) -> ServiceName {
    ServiceName::new("default", format!("pod-{n}"))
}

/// One Service that stands, and a Pod that waits for it.
fn stage() -> Stage {
    let mut stage = Stage::serving(&[]);
    stage.unready("web-a", 1, &[(10, 1)]);
    stage.put_gated(gated(10, &[("app", "web"), ("extra", "label")]));
    stage
}

#[test]
fn an_unready_pod_that_only_waits_for_us_is_listed_and_then_let_through() {
    let mut stage = stage();
    assert_eq!(gates(&mut stage), []);
    stage.round();
    assert_eq!(stage.table(), ["10.224.0.1 10.244.0.10 00000001"]);
    let open = [("pod-10".to_owned(), Gate::Open, GateReason::Programmed)];
    assert_eq!(gates(&mut stage), open);
    stage.settle();
}

#[test]
fn a_pod_that_is_not_ready_for_another_reason_is_not_listed() {
    let mut stage = stage();
    stage.edit_gated(&name(10), |pod| pod.others = Others::Missing);
    stage.settle();
    assert_eq!(stage.table(), Vec::<String>::new());
    stage.edit_gated(&name(10), |pod| pod.others = Others::Over);
    stage.settle();
    assert_eq!(stage.table(), Vec::<String>::new());
}

/// A Pod of another name may have the same address, as those of the host network do.
#[test]
fn another_pod_at_the_same_address_is_not_listed() {
    let mut stage = stage();
    let slices = &mut stage.world.kubernetes.slices;
    let slice = slices.values_mut().next().expect("it was put there");
    Arc::make_mut(slice).unready[0].1 = Arc::from("someone-else");
    stage.settle();
    assert_eq!(stage.table(), Vec::<String>::new());
}

#[test]
fn selectors_and_namespaces_decide_who_is_waited_for() {
    for (key, value) in [("app", "api"), ("other", "web")] {
        let mut stage = stage();
        stage.edit_gated(&name(10), |pod| pod.labels = labels_of(&[(key, value)]));
        let open = [("pod-10".to_owned(), Gate::Open, GateReason::NoService)];
        assert_eq!(gates(&mut stage), open, "{key}={value}");
    }
    let mut stage = stage();
    stage.edit(1, |service| service.name = ServiceName::new("elsewhere", "web-1"));
    assert_eq!(gates(&mut stage)[0].2, GateReason::NoService);
    // A selector of two labels needs both.
    let mut stage = self::stage();
    stage.edit(1, |service| service.selector = labels_of(&[("app", "web"), ("tier", "front")]));
    assert_eq!(gates(&mut stage)[0].2, GateReason::NoService);
    stage.edit(1, |service| service.selector = labels_of(&[("app", "web"), ("extra", "label")]));
    assert_eq!(gates(&mut stage), []);
}

#[test]
fn a_late_pod_is_let_through_even_when_the_table_is_not_known() {
    let mut stage = stage();
    stage.world.overdue.insert(Arc::from("pod-10"));
    let open = [("pod-10".to_owned(), Gate::Open, GateReason::TimedOut)];
    assert_eq!(gates(&mut stage), open);
    stage.world.azure.gateway_locations = model::world::Fact::Unknown;
    assert_eq!(gates(&mut stage), open);
    stage.world.overdue.clear();
    assert_eq!(gates(&mut stage), []);
}

#[test]
fn a_pod_without_an_address_of_the_family_is_not_held_up() {
    let mut stage = stage();
    stage.edit(1, |service| service.families = vec![model::Family::V6]);
    assert_eq!(gates(&mut stage)[0].2, GateReason::NoService);
    assert!(stage.world.kubernetes.services.contains_key(&uid(1)));
}
