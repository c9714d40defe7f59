//! Random walks: Services come, change and go while Azure misbehaves and the controller is killed;
//! then the faults stop and everything must come right. A failing seed is named; it fails again.

use crate::support::container::refusal;
use crate::support::*;
use azure_emulator::{Fault, FaultKind};
use kube_emulator::{Failure, Fault as KubernetesFault};
use serde_json::{Value, json};
use sim::Laboratory;

/// A small generator of numbers, the same everywhere.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        let sides = all.len() as u64;
        (sides > 0).then(|| &all[usize::try_from(self.roll(sides)).expect("small")])
    }
}

/// The seeds that `WALK_FROM` and `WALK_SEEDS` ask for, else a hundred.
pub fn seeds() -> std::ops::Range<u64> {
    let from: u64 = std::env::var("WALK_FROM").ok().and_then(|s| s.parse().ok()).unwrap_or(0);
    let seeds: u64 = std::env::var("WALK_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(100);
    from..from + seeds
}

fn azure_fault(dice: &mut Dice) -> Fault {
    let kind = match dice.roll(11) {
        0 => refusal(429, "TooManyRequests", Some(3)),
        1 => refusal(500, "InternalServerError", None),
        2 => refusal(409, "AnotherOperationInProgress", None),
        3 => refusal(412, "PreconditionFailed", None),
        4 => refusal(429, "RetryableErrorDueToAnotherOperation", None),
        5 => FaultKind::AppliedThenReset,
        6 => FaultKind::ConnectionResetBefore,
        7 => FaultKind::StaleList { age_ms: 2_000 },
        8 => FaultKind::SucceedsButLosesPool,
        9 => FaultKind::TruncatedBody,
        _ => refusal(400, "InvalidRequestFormat", None),
    };
    let (skip, times) = (dice.roll(6), 1 + dice.roll(3));
    Fault::new(kind).skip(skip).times(times)
}

fn edit(dice: &mut Dice) -> Value {
    let key = |suffix: &str| format!("service.beta.kubernetes.io/{suffix}");
    match dice.roll(6) {
        0 => json!({"metadata": {"annotations": {key("azure-load-balancer-internal"): "true"}}}),
        1 => json!({"metadata": {"annotations": {key("azure-load-balancer-internal"): null}}}),
        2 => json!({"metadata": {"annotations": {
            key("azure-load-balancer-tcp-idle-timeout"): (dice.roll(8)).to_string()}}}),
        3 => json!({"spec": {"loadBalancerSourceRanges": ["203.0.113.0/24"]}}),
        4 => json!({"spec": {"loadBalancerSourceRanges": null}}),
        _ => json!({"spec": {"sessionAffinity": "ClientIP"}}),
    }
}

fn somebody_edits_azure(lab: &mut Laboratory, dice: &mut Dice) {
    let id = network("networkSecurityGroups/nsg");
    if let Some(mut group) = lab.azure.resource(&id)
        && let Some(rules) = group["properties"]["securityRules"].as_array_mut()
        && !rules.is_empty()
    {
        let at = usize::try_from(dice.roll(rules.len() as u64)).expect("small");
        rules.remove(at);
        group["properties"]["provisioningState"] = json!("Succeeded");
        lab.azure.seed(vec![group]);
    }
}

fn walk(seed: u64) {
    let mut dice = Dice::new(seed);
    let mut lab = laboratory(&json!({}));
    lab.azure_latency_ms = dice.roll(3) * 25;
    lab.azure.options_mut().lro_ms = dice.roll(3) * 60;
    lab.azure.options_mut().page_size = if dice.roll(2) == 0 { 0 } else { 2 };
    let (mut made, mut alive) = (0u32, Vec::new());
    for _ in 0..40 {
        match dice.roll(10) {
            0..=2 => {
                create(&mut lab, service(made));
                alive.push(format!("web-{made:04}"));
                made += 1;
            }
            3 if !alive.is_empty() => {
                let at = usize::try_from(dice.roll(alive.len() as u64)).expect("small");
                delete(&mut lab, "default", &alive.swap_remove(at));
            }
            4..=5 if !alive.is_empty() => {
                let at = usize::try_from(dice.roll(alive.len() as u64)).expect("small");
                patch(&mut lab, "services", "default", &alive[at], edit(&mut dice));
            }
            6 => lab.azure.add_fault(azure_fault(&mut dice)),
            7 => {
                let failure = if dice.roll(2) == 0 { Failure::Conflict } else { Failure::Internal };
                lab.kubernetes.inject(KubernetesFault::next(failure));
            }
            8 => lab.restart(),
            _ => somebody_edits_azure(&mut lab, &mut dice),
        }
        lab.pass(dice.roll(400));
    }
    lab.azure.clear_faults();
    // Wrong values are mended, so that every Service can be satisfied in the end.
    let timeout = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";
    for name in &alive {
        let mended = json!({"metadata": {"annotations": {timeout: null}}});
        patch(&mut lab, "services", "default", name, mended);
    }
    lab.pass(600_000);
    assert!(lab.settle(DAY_MS), "seed {seed} does not settle: {:#?}", lab.controller().report());
    assert_eq!(addressed(&lab), (alive.len(), 0), "seed {seed}: every Service has its address");
    lab.azure.clear_calls();
    lab.restart();
    assert!(lab.settle(DAY_MS), "seed {seed} does not settle after a restart");
    assert_eq!(lab.calls().0, 0, "seed {seed}: a restart finds nothing to write");
    for name in &alive {
        delete(&mut lab, "default", name);
    }
    lab.pass(600_000);
    assert!(lab.settle(DAY_MS), "seed {seed} does not settle after everything is deleted");
    assert_eq!(leftovers(&lab), Vec::<String>::new(), "seed {seed}: nothing is left over");
    assert_eq!(addressed(&lab), (0, 0), "seed {seed}: no finalizer is stuck");
}

#[test]
fn everything_comes_right_once_the_faults_stop() {
    seeds().for_each(walk);
}
