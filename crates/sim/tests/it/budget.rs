//! The call budget under a model of Azure's published limits: how long things take against the
//! least that the limits allow, and how many calls are refused.

use crate::support::container::refusal;
use crate::support::*;
use azure_emulator::{Fault, Request, Switch};
use control::Options;
use model::report::Wait;
use serde_json::json;
use sim::Laboratory;

/// Four load balancers, because one of several takes 301 rules; operations that take their time.
fn limited() -> Laboratory {
    let balancers = json!([
        {"name": "kubernetes", "primaryVMSet": "vmss"},
        {"name": "second", "primaryVMSet": "other"},
        {"name": "third", "primaryVMSet": "another"},
        {"name": "fourth", "primaryVMSet": "fourth"},
    ]);
    let mut lab = laboratory(&json!({"multipleStandardLoadBalancerConfigurations": balancers}));
    lab.azure.options_mut().throttle = Switch::On;
    lab.azure.options_mut().log_bodies = Switch::Off;
    lab.azure.options_mut().lro_ms = 1_000;
    lab.azure_latency_ms = 100;
    assert!(lab.settle(HOUR_MS));
    lab.azure.clear_calls();
    lab
}

/// Writes that so many new public Services need at least: a public IP each, as many load balancers
/// as take them (301 rules each), the security group.
fn least_writes(services: u64) -> u64 {
    services + services.div_ceil(301) + 1
}

/// The least time in which Azure's limits let so many writes through, and the reads that belong to
/// them: each write is a long-running operation, which costs a poll and a look at what it has come
/// to. Resource Manager takes 200 writes and then 10 a second, 250 reads and then 25 a second; the
/// network provider takes 1,000 writes and 10,000 reads in five minutes. All limits run at the same
/// time, so the slowest is the floor. How long an operation takes by itself is not in it.
fn floor_ms(writes: u64) -> u64 {
    let reads = 2 * writes;
    let manager_writes = writes.saturating_sub(200) * 100;
    let manager_reads = reads.saturating_sub(250) * 40;
    let network_writes = writes.saturating_sub(1) / 1_000 * 300_000;
    let network_reads = reads.saturating_sub(1) / 10_000 * 300_000;
    manager_writes.max(manager_reads).max(network_writes).max(network_reads)
}

/// What one Service takes although no limit holds it up: public IP, load balancer and security
/// group, one after the other. Each is a write, a second's operation, a poll and a look.
const CHAIN_MS: u64 = 3 * (1_000 + 3 * 100);

/// The first Service that has no address, and what is planned.
fn stuck(lab: &Laboratory) -> String {
    let report = lab.controller().report();
    let mut waiting = report.services.values().filter(|s| !s.waits.is_empty());
    let waits: Vec<_> = lab.controller().waiting().take(3).collect();
    format!("{:#?}\n{waits:?}", waiting.next())
}

fn refused(lab: &Laboratory) -> usize {
    lab.azure.calls().iter().filter(|call| call.status == 429).count()
}

/// Lets so many Services be programmed; (milliseconds, writes, all calls).
fn converge(lab: &mut Laboratory, services: u32) -> (u64, usize, usize) {
    (0..services).for_each(|n| create(lab, service(n)));
    let start = lab.now_ms;
    while addressed(lab).1 > 0 {
        lab.pass(500);
        assert!(lab.now_ms < start + HOUR_MS, "{:?}: {}", addressed(lab), stuck(lab));
    }
    let took = lab.now_ms - start;
    assert!(lab.settle(HOUR_MS), "{:#?}", lab.controller().report());
    let (writes, reads) = lab.calls();
    (took, writes, writes + reads)
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes: cargo test --release -p sim --test it budget::")]
fn a_thousand_public_services_take_what_the_limits_take() {
    let mut lab = limited();
    let (took, writes, calls) = converge(&mut lab, 1_000);
    let least = least_writes(1_000);
    let floor = floor_ms(least);
    assert_eq!((least, floor), (1_005, 300_000));
    println!(
        "1,000 Services: {took} ms, floor {floor} ms, {writes} writes, {calls} calls, {:?}",
        lab.controller().counts()
    );
    assert!(took * 100 <= floor * 115, "{took} ms, the limits alone take {floor} ms");
    let refused = refused(&lab);
    assert!(refused * 100 < calls, "{refused} of {calls} calls refused");
    assert!(writes <= 1_100, "{writes} writes where 1,005 are needed");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes: cargo test --release -p sim --test it budget::")]
fn nine_hundred_fit_into_one_span_and_take_what_the_buckets_take() {
    let mut lab = limited();
    let (took, writes, calls) = converge(&mut lab, 900);
    let floor = floor_ms(least_writes(900));
    assert_eq!(floor, 70_400);
    println!(
        "900 Services: {took} ms, floor {floor} ms, {writes} writes, {calls} calls, {:?}",
        lab.controller().counts()
    );
    assert!(took * 100 <= floor * 115, "{took} ms, the limits alone take {floor} ms");
    assert_eq!(refused(&lab), 0);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes: cargo test --release -p sim --test it budget::")]
fn most_have_an_address_long_before_the_last_one() {
    let mut lab = limited();
    (0..1_000).for_each(|n| create(&mut lab, service(n)));
    lab.pass(30_000);
    let early = addressed(&lab).0;
    assert!(early >= 300, "{early} after 30 s");
    lab.pass(70_000);
    let before = addressed(&lab).0;
    assert!(before >= 900, "{before} when the network provider takes no more writes");
    let report = lab.controller().report_with_budget();
    let waits = report.services.values().flat_map(|s| &s.waits);
    let budget = waits.filter_map(|wait| match wait {
        Wait::Budget { limit, until_ms } => Some((*limit, *until_ms)),
        _ => None,
    });
    let budget: Vec<(&str, u64)> = budget.collect();
    assert!(!budget.is_empty(), "those without say what they wait for");
    assert!(budget.iter().all(|(limit, at)| *limit == "network writes" && *at > lab.now_ms));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes: cargo test --release -p sim --test it budget::")]
fn a_service_that_comes_during_a_mass_deletion_is_not_held_up() {
    let mut lab = limited();
    converge(&mut lab, 600);
    lab.pass(600_000);
    (0..600).for_each(|n| delete(&mut lab, "default", &format!("web-{n:04}")));
    lab.pass(20_000);
    create(&mut lab, service(900));
    let start = lab.now_ms;
    while addressed(&lab).0 == 0 {
        lab.pass(500);
        assert!(lab.now_ms < start + 30_000, "{:#?}", lab.controller().report().services);
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes: cargo test --release -p sim --test it budget::")]
fn a_service_that_changes_all_the_time_delays_no_other() {
    let mut lab = limited();
    create(&mut lab, service(1_000));
    assert!(lab.settle(HOUR_MS));
    (0..400).for_each(|n| create(&mut lab, service(n)));
    let start = lab.now_ms;
    let mut flips = 0;
    while addressed(&lab).1 > 0 {
        flips += 1;
        let timeout = (4 + flips % 20).to_string();
        let body = json!({"metadata": {"annotations": {TIMEOUT: timeout}}});
        patch(&mut lab, "services", "default", "web-1000", body);
        lab.pass(500);
        assert!(lab.now_ms < start + HOUR_MS);
    }
    let took = lab.now_ms - start;
    let writes = lab.calls().0 as u64;
    let busy = writes - least_writes(401);
    // Its writes are few beside its changes, and cost the others no more than their calls.
    let floor = floor_ms(writes);
    println!(
        "beside a busy one: {took} ms, floor {floor} ms, {busy}/{writes} writes, {flips} flips"
    );
    assert!(busy * 2 <= flips, "{busy} writes for {flips} changes");
    let most = floor * 115 / 100 + CHAIN_MS;
    assert!(took <= most, "{took} ms beside a busy one, {floor} ms are the least");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes: cargo test --release -p sim --test it budget::")]
fn a_stranger_that_uses_half_is_noticed() {
    let mut lab = limited();
    (0..800).for_each(|n| create(&mut lab, service(n)));
    let start = lab.now_ms;
    let path = network("publicIPAddresses/stranger");
    let mut strangers = 0;
    while addressed(&lab).1 > 0 {
        // Five writes a second of the ten that come.
        lab.pass(200);
        let body = json!({"location": "eastus", "sku": {"name": "Standard"}, "tags": {"n":
            strangers.to_string()}, "properties": {"publicIPAllocationMethod": "Static"}});
        let mut request = Request::new("PUT", &path);
        request.body = Some(body);
        request.correlation_id = Some("stranger".into());
        lab.azure.handle(request, lab.now_ms);
        strangers += 1;
        assert!(lab.now_ms < start + HOUR_MS, "{:?}", addressed(&lab));
    }
    let all = lab.azure.calls().iter();
    let (theirs, ours): (Vec<_>, Vec<_>) = all.partition(|c| c.path.ends_with("/stranger"));
    let refused = ours.iter().filter(|c| c.status == 429).count();
    let took = lab.now_ms - start;
    println!("beside a stranger: {took} ms, {refused} of {} refused", ours.len());
    assert!(refused * 100 < ours.len(), "{refused} of {} calls refused", ours.len());
    assert!(theirs.len() > 300, "{}", theirs.len());
    // In the first span the network provider takes 1,000 from both; in the second all is done.
    assert!(took < 345_000, "{took} ms");
}

/// Azure has too many writes.
fn storm(retry_after_s: Option<u64>) -> Fault {
    let kind = refusal(429, "TooManyRequests", retry_after_s);
    Fault::new(kind).on_method("PUT").always()
}

#[test]
fn in_a_storm_of_refusals_few_calls_are_made() {
    let mut lab = limited();
    lab.azure.add_fault(storm(Some(20)));
    (0..100).for_each(|n| create(&mut lab, service(n)));
    lab.pass(600_000);
    let writes = lab.calls().0;
    // Ten public IPs have left before the first refusal is known: Azure had answered no write
    // before, so nothing was known of what is left. Then five times
    // the twenty seconds that Azure asks for; then our own back-off is longer: 32 seconds, and
    // then a minute each.
    assert!((10 + 12..=10 + 14).contains(&writes), "{writes} in ten minutes");
    lab.azure.clear_faults();
    lab.azure.add_fault(storm(None));
    lab.azure.clear_calls();
    lab.pass(600_000);
    let writes = lab.calls().0;
    assert!(writes <= 12, "{writes} in ten minutes: without a word, one a minute");
    lab.azure.clear_faults();
    let start = lab.now_ms;
    assert!(lab.settle(HOUR_MS));
    assert_eq!(addressed(&lab), (100, 0));
    // So many refusals leave a sixteenth of the limit to be believed in: 62 writes in five minutes.
    // The minute that our own back-off lasts at most, and seconds to learn that there is more.
    assert!(lab.now_ms - start < 90_000, "{} ms", lab.now_ms - start);
    println!("after the storm: {} ms", lab.now_ms - start);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes: cargo test --release -p sim --test it budget::")]
fn a_restart_in_the_middle_takes_up_what_is_left() {
    let mut lab = limited();
    (0..500).for_each(|n| create(&mut lab, service(n)));
    let start = lab.now_ms;
    lab.pass(21_000);
    lab.restart();
    while addressed(&lab).1 > 0 {
        lab.pass(500);
        assert!(lab.now_ms < start + HOUR_MS);
    }
    let refused = refused(&lab);
    let calls = lab.azure.calls().len();
    assert!(refused * 100 < calls, "{refused} of {calls} calls refused");
    let took = lab.now_ms - start;
    let floor = floor_ms(least_writes(500));
    println!("restarted: {took} ms, floor {floor} ms");
    let most = floor * 115 / 100 + CHAIN_MS;
    assert!(took <= most, "{took} ms, {floor} ms are the least");
}

#[test]
fn the_published_limits_are_where_it_starts() {
    assert_eq!(Options::default().limits, control::budget::Limits::Published);
}

#[test]
fn a_write_whose_gathering_is_over_wakes_nobody_before_there_is_budget() {
    let mut lab = limited();
    (0..300).for_each(|n| create(&mut lab, service(n)));
    // The first public IPs are made; then Azure takes nothing more for five minutes.
    lab.pass(1_300);
    lab.azure.add_fault(storm(Some(300)));
    lab.pass(30_000);
    assert!(!lab.controller().waiting_for_budget().is_empty(), "else nothing is shown");
    let plans = lab.controller().counts().plans;
    for _ in 0..200 {
        lab.pass(1_000);
        let wake_ms = lab.controller().next_wake_ms();
        assert!(wake_ms.is_none_or(|at| at > lab.now_ms), "{wake_ms:?} at {}", lab.now_ms);
    }
    let plans = lab.controller().counts().plans - plans;
    assert!(plans <= 10, "{plans} plans although nothing happened");
}

#[test]
fn what_somebody_else_keeps_busy_is_read_at_growing_intervals() {
    let mut lab = laboratory(&json!({}));
    create(&mut lab, service(0));
    assert!(lab.settle(HOUR_MS));
    // Somebody's operation on a public IP that takes ten hours.
    lab.azure.options_mut().lro_ms = 10 * HOUR_MS;
    let body = json!({"location": "eastus", "sku": {"name": "Standard"}, "tags": {"theirs": "1"},
        "properties": {"publicIPAllocationMethod": "Static"}});
    call(&mut lab, "PUT", &network("publicIPAddresses/byo-pip"), Some(body));
    // Until the look for drift has met it.
    lab.pass(130_000);
    lab.azure.clear_calls();
    lab.pass(600_000);
    let lists = lab.azure.calls().iter().filter(|c| c.path.ends_with("/publicIPAddresses"));
    let lists = lists.count();
    // 1, 2, 4, 8, 16 and then each 30 seconds.
    assert!((20..=25).contains(&lists), "{lists} lists in ten minutes");
}
