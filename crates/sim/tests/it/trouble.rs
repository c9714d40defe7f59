//! What stands in the way is told: Azure answers reads, writes, or one Service's public IP with an
//! error, or not at all.

use crate::support::container::refusal;
use crate::support::*;
use azure_emulator::{Fault, FaultKind};
use control::Options;
use model::report::State;
use model::{Obstacle, Report};
use serde_json::{Value, json};

/// Within so long after the first call everything has to be told.
const TOLD_MS: u64 = 10_000;

/// What Azure answers, and the code that is told.
const ANSWERS: [(Option<u16>, &str); 5] = [
    (Some(403), "AuthorizationFailed"),
    (Some(500), "InternalServerError"),
    (Some(429), "TooManyRequests"),
    (Some(409), "ScopeLocked"),
    (None, "NoAnswer"),
];

fn fault((status, code): (Option<u16>, &str)) -> Fault {
    let kind = match status {
        None => FaultKind::Hang,
        Some(status) => refusal(status, code, None),
    };
    Fault::new(kind).always()
}

fn on_lists(answer: (Option<u16>, &str)) -> Vec<Fault> {
    vec![fault(answer).on_method("GET")]
}

fn on_writes(answer: (Option<u16>, &str)) -> Vec<Fault> {
    ["PUT", "DELETE", "POST"].map(|method| fault(answer).on_method(method)).into()
}

fn on_public_ip(answer: (Option<u16>, &str)) -> Vec<Fault> {
    let path = "/publicIPAddresses/kubernetes-[^/]+$";
    vec![fault(answer).on_method("PUT").on_path(path).expect("the path is a regular expression")]
}

/// Events and the condition of the Service.
fn told(lab: &mut sim::Laboratory) -> (Vec<String>, Option<Value>) {
    let events = lab.kubernetes.list("events", None);
    let warnings = events.iter().filter(|event| event["type"] == "Warning");
    let messages = warnings.map(|event| event["message"].as_str().unwrap_or("").to_owned());
    let messages = messages.collect();
    let services = lab.kubernetes.list("services", None);
    let own = services.iter().find(|service| service["metadata"]["name"] == "web-0001");
    let conditions = own.and_then(|service| service["status"]["conditions"].as_array());
    (messages, conditions.and_then(|all| all.first().cloned()))
}

/// How often planning takes the writes under way to have been attempted, at most.
fn most_attempts(lab: &sim::Laboratory) -> u32 {
    let calls = lab.controller().world().in_flight.values();
    calls.map(|call| call.attempt).max().unwrap_or(0)
}

/// Writes of the paths that contain this.
fn puts(lab: &sim::Laboratory, path: &str) -> usize {
    let calls = lab.azure.calls().iter();
    calls.filter(|call| call.method == "PUT" && call.path.contains(path)).count()
}

/// Nothing stands in the way once this time has passed.
fn clear_after(lab: &mut sim::Laboratory, ms: u64) {
    lab.pass(ms);
    let report = lab.controller().report();
    assert!(report.is_clear(), "{:#?}", report.obstacles);
}

fn texts(report: &Report, now_ms: u64) -> Vec<String> {
    report.obstacles.iter().map(|obstacle| Obstacle::text(obstacle, now_ms)).collect()
}

fn trouble(name: &str, faults: fn((Option<u16>, &str)) -> Vec<Fault>, operation: &str) {
    for answer in ANSWERS {
        let what = format!("{name}, {answer:?}");
        let mut lab = laboratory(&json!({}));
        for fault in faults(answer) {
            lab.azure.add_fault(fault);
        }
        create(&mut lab, service(1));
        lab.pass(TOLD_MS + Options::default().gather_ms);
        let now_ms = lab.now_ms;
        let report = lab.controller().report().clone();
        assert!(!report.is_clear(), "{what}");
        let texts = texts(&report, now_ms);
        let named = |text: &&String| {
            let code = answer.0.is_none() || text.contains(answer.1);
            text.contains(operation) && code
        };
        assert!(texts.iter().any(|text| named(&text)), "{what}: {texts:#?}");
        let (events, condition) = told(&mut lab);
        assert!(events.iter().any(|text| named(&text)), "{what}: {events:#?}");
        let condition = condition.unwrap_or_default();
        assert_eq!(condition["status"], "False", "{what}: {condition}");
        let message = condition["message"].as_str().unwrap_or_default().to_owned();
        let code = answer.0.is_none() || message.contains(answer.1);
        assert!(code && message.contains("attempt"), "{what}: {message}");
        // However often it is attempted, it is told once.
        lab.pass(3 * INTERVAL_MS);
        let (events, _) = told(&mut lab);
        assert!(events.len() <= 8, "{what}: {events:#?}");
        lab.azure.clear_faults();
        lab.pass(INTERVAL_MS);
        let report = lab.controller().report();
        assert!(report.is_clear(), "{what}: {:#?}", report.obstacles);
        let states: Vec<State> = report.services.values().map(|s| s.state).collect();
        assert_eq!(states, [State::Programmed], "{what}");
        let (_, condition) = told(&mut lab);
        assert_eq!(condition.unwrap_or_default()["status"], "True", "{what}");
    }
}

#[test]
fn every_read() {
    trouble("reads", on_lists, "GET ");
}

#[test]
fn every_write() {
    trouble("writes", on_writes, "PUT ");
}

#[test]
fn one_public_ip() {
    trouble("a public IP", on_public_ip, "PUT publicIPAddresses/kubernetes-");
}

/// Azure says that a load balancer's write succeeded, and its pool is empty: again and again. It is
/// written again at once, then less and less often, and the condition says why.
#[test]
fn a_write_that_azure_does_not_keep() {
    let mut lab = laboratory(&json!({}));
    let loses = Fault::new(FaultKind::SucceedsButLosesPool).always().on_method("PUT");
    lab.azure.add_fault(loses.on_path("loadBalancers/kubernetes$").expect("it parses"));
    create(&mut lab, service(1));
    lab.pass(INTERVAL_MS);
    let puts = puts(&lab, "loadBalancers/");
    // Two that follow at once: to the first of them belongs what Azure has filled in by itself, so
    // it is another than the one before. Then after 2, 4, 8, 16 and 32 seconds.
    assert_eq!(puts, 3 + 5);
    let texts = texts(lab.controller().report(), lab.now_ms);
    assert!(texts.iter().any(|text| text.contains("NotKept")), "{texts:#?}");
    let (_, condition) = told(&mut lab);
    let message = condition.unwrap_or_default()["message"].to_string();
    assert!(message.contains("did not keep it"), "{message}");
    lab.azure.clear_faults();
    clear_after(&mut lab, INTERVAL_MS);
    // What comes later has nothing to do with it: it is repaired at once, however often.
    for _ in 0..3 {
        edit(&mut lab, "loadBalancers/kubernetes", |body| {
            body["properties"]["backendAddressPools"] = json!([]);
            body["properties"]["loadBalancingRules"] = json!([]);
        });
        clear_after(&mut lab, 2 * INTERVAL_MS);
    }
}

/// Services name one resource group after the other that has to be read before anything is planned.
/// That nothing is planned meanwhile does not say that the write was kept.
#[test]
fn a_write_that_azure_does_not_keep_while_other_lists_are_read() {
    let mut lab = laboratory(&json!({}));
    let loses = Fault::new(FaultKind::SucceedsButLosesPool).always().on_method("PUT");
    lab.azure.add_fault(loses.on_path("loadBalancers/kubernetes$").expect("it parses"));
    create(&mut lab, service(1));
    let key = "service.beta.kubernetes.io/azure-load-balancer-resource-group";
    for other in 2..14 {
        lab.pass(INTERVAL_MS / 12);
        create(&mut lab, annotated(other, json!({key: format!("gone-{other}")})));
    }
    let puts = puts(&lab, "loadBalancers/");
    assert!(puts <= 3 + 5, "{puts} writes: the pauses do not begin anew");
}

/// Azure answers each write of a load balancer that it has changed meanwhile, though it has not:
/// what is read has another ETag than what is compared with.
#[test]
fn a_write_whose_etag_never_fits() {
    let mut lab = served([service(1)]);
    let stale = fault((Some(412), "PreconditionFailed")).on_method("PUT");
    lab.azure.add_fault(stale.on_path("loadBalancers/kubernetes$").expect("it parses"));
    lab.azure.clear_calls();
    create(&mut lab, service(2));
    lab.pass(INTERVAL_MS);
    let puts = puts(&lab, "loadBalancers/");
    // The first, two at once, and those after 4, 8, 16, 32 and 60 seconds.
    assert_eq!(puts, 3 + 5);
    assert_eq!(most_attempts(&lab), 1, "what waits for the write goes on waiting");
    let texts = texts(lab.controller().report(), lab.now_ms);
    assert!(texts.iter().any(|text| text.contains("PreconditionFailed")), "{texts:#?}");
    lab.azure.clear_faults();
    clear_after(&mut lab, INTERVAL_MS);
}

/// Another client writes the load balancer every two seconds. However often that comes before our
/// write, it is written: nothing lies between the read that it is planned on and the write.
#[test]
fn a_load_balancer_that_another_client_writes_all_the_time() {
    let mut lab = served([service(1)]);
    let stale = fault((Some(412), "PreconditionFailed")).times(3).on_method("PUT");
    lab.azure.add_fault(stale.on_path("loadBalancers/kubernetes$").expect("it parses"));
    create(&mut lab, service(2));
    lab.pass(3_000);
    for round in 0..INTERVAL_MS / 2_000 {
        let round = round.to_string();
        edit(&mut lab, "loadBalancers/kubernetes", |body| body["tags"]["round"] = json!(round));
        lab.pass(2_000);
    }
    assert_eq!(addressed(&lab), (2, 0));
}

/// A write was not answered, and had taken effect: once that is read nothing stands in the way, and
/// a Service that comes later gets no warning.
#[test]
fn a_failure_that_is_over_is_not_told_to_who_comes_later() {
    let mut lab = laboratory(&json!({}));
    let reset = Fault::new(FaultKind::AppliedThenReset).on_method("PUT");
    lab.azure.add_fault(reset.on_path("loadBalancers/kubernetes$").expect("it parses"));
    create(&mut lab, service(1));
    assert!(lab.settle(INTERVAL_MS));
    lab.pass(20_000);
    // While its load balancer is written.
    lab.azure.options_mut().lro_ms = 5_000;
    create(&mut lab, service(2));
    for _ in 0..20 {
        lab.pass(1_000);
        let texts = texts(lab.controller().report(), lab.now_ms);
        assert!(texts.is_empty(), "{texts:#?}");
    }
    assert_eq!(addressed(&lab), (2, 0));
    let events = lab.kubernetes.list("events", None);
    let about = |name: &str| {
        let own = events.iter().filter(|event| event["involvedObject"]["name"] == name);
        own.filter(|event| event["type"] == "Warning").count()
    };
    assert_eq!(about("web-0002"), 0, "{events:#?}");
}

/// Azure has too many requests of one public IP, and does not say for how long; those of others it
/// takes.
#[test]
fn a_write_that_is_throttled_without_a_word_on_when_it_may_come_again() {
    let mut lab = laboratory(&json!({}));
    create(&mut lab, service(1));
    let base = base_of(&lab, "web-0001");
    let path = format!("/publicIPAddresses/kubernetes-{base}$");
    let throttled = fault((Some(429), "TooManyRequests")).on_method("PUT").on_path(&path);
    lab.azure.add_fault(throttled.expect("the path is a regular expression"));
    for other in 2..122 {
        create(&mut lab, service(other));
        lab.pass(1_000);
    }
    let puts = puts(&lab, &base);
    // The first, and those after 1, 2, 4, 8, 16, 32 seconds.
    assert_eq!(puts, 7);
    assert_eq!(most_attempts(&lab), 1, "what waits for the write goes on waiting");
}

/// Azure has too many requests of the load balancer, which is read because another's write came
/// first: the write has not failed for that.
#[test]
fn a_read_between_two_writes_that_is_throttled() {
    let mut lab = served([service(1)]);
    let path = "loadBalancers/kubernetes$";
    let stale = fault((Some(412), "PreconditionFailed")).times(1).on_method("PUT");
    lab.azure.add_fault(stale.on_path(path).expect("it parses"));
    let throttled = fault((Some(429), "TooManyRequests")).on_method("GET");
    lab.azure.add_fault(throttled.on_path(path).expect("it parses"));
    create(&mut lab, service(2));
    lab.pass(INTERVAL_MS / 2);
    let texts = texts(lab.controller().report(), lab.now_ms);
    assert!(texts.iter().any(|text| text.contains("TooManyRequests")), "{texts:#?}");
    assert_eq!(most_attempts(&lab), 1, "what waits for the write goes on waiting");
    lab.azure.clear_faults();
    clear_after(&mut lab, 2 * INTERVAL_MS);
}

/// Azure answers with `Retry-After`: to the write that another client's write preceded, or to the
/// read that follows.
#[test]
fn a_read_between_two_writes_comes_when_azure_says() {
    for (to_write_s, to_read_s) in [(Some(20), None), (None, Some(20))] {
        let mut lab = served([service(1)]);
        let path = "loadBalancers/kubernetes$";
        let stale = Fault::new(refusal(412, "PreconditionFailed", to_write_s)).on_method("PUT");
        lab.azure.add_fault(stale.on_path(path).expect("it parses"));
        if to_read_s.is_some() {
            let busy = Fault::new(refusal(503, "ServerBusy", to_read_s)).on_method("GET");
            lab.azure.add_fault(busy.on_path(path).expect("it parses"));
        }
        lab.azure.clear_calls();
        create(&mut lab, service(2));
        lab.pass(INTERVAL_MS / 2);
        let calls = lab.azure.calls().iter();
        let about = calls.filter(|call| call.path.ends_with("loadBalancers/kubernetes"));
        let times: Vec<u64> = about.map(|call| call.t_ms).take(3).collect();
        assert!(times.windows(2).any(|pair| pair[1] - pair[0] >= 20_000), "{times:?}");
        assert_eq!(addressed(&lab), (2, 0));
    }
}

/// What a Service's condition was over a time: each change.
fn conditions(lab: &mut sim::Laboratory, ms: u64) -> Vec<(String, String)> {
    let mut seen: Vec<(String, String)> = Vec::new();
    for _ in 0..ms / 1_000 {
        lab.pass(1_000);
        let (_, condition) = told(lab);
        let condition = condition.unwrap_or_default();
        let text = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
        let now = (text("status"), text("reason"));
        if seen.last() != Some(&now) {
            seen.push(now);
        }
    }
    seen
}

/// A Service that serves is told that it cannot be checked, and never that it does not serve.
#[test]
fn every_read_after_the_service_is_programmed() {
    for answer in ANSWERS {
        let mut lab = served([service(1)]);
        for fault in on_lists(answer) {
            lab.azure.add_fault(fault);
        }
        let seen = conditions(&mut lab, INTERVAL_MS + TOLD_MS);
        let reason = match answer.0 {
            Some(429) => "AzureThrottled",
            None => "AzureNoAnswer",
            Some(_) => "AzureUnreadable",
        };
        let pair = |reason: &str| ("True".to_owned(), reason.to_owned());
        assert_eq!(seen, [pair("Programmed"), pair(reason)], "{answer:?}");
        let (events, condition) = told(&mut lab);
        let named =
            |text: &str| text.contains("GET ") && (answer.0.is_none() || text.contains(answer.1));
        assert!(events.iter().any(|text| named(text)), "{answer:?}: {events:#?}");
        let message = condition.unwrap_or_default()["message"].to_string();
        assert!(named(&message) && message.contains("attempt"), "{answer:?}: {message}");
        let seen = conditions(&mut lab, 5 * INTERVAL_MS);
        assert!(seen.len() <= 3 && seen.iter().all(|c| c.0 == "True"), "{answer:?}: {seen:?}");
        let (events, _) = told(&mut lab);
        assert!(events.len() <= 6, "{answer:?}: {events:#?}");
        lab.azure.clear_faults();
        let seen = conditions(&mut lab, INTERVAL_MS);
        assert_eq!(seen.last(), Some(&pair("Programmed")), "{answer:?}");
        assert!(lab.controller().report().is_clear(), "{answer:?}");
    }
}

/// A list that comes late was made when it was asked for or before: what was written shortly before
/// that may be missing in it.
#[test]
fn a_slow_list_ends_nothing_that_was_written_before_it() {
    let mut lab = laboratory(&json!({}));
    assert!(lab.settle(24 * 3_600_000));
    lab.azure.options_mut().list_lag_ms = 9_000;
    let slow = Fault::new(FaultKind::Latency { ms: 9_000 }).always().on_method("GET");
    let path = "/publicIPAddresses(\\?|$)";
    lab.azure.add_fault(slow.on_path(path).expect("the path is a regular expression"));
    // Whenever the list is asked for, one of these was written some seconds before.
    for number in 1..=40 {
        create(&mut lab, service(number));
        lab.pass(4_000);
    }
    lab.pass(INTERVAL_MS);
    assert_eq!(puts(&lab, "/publicIPAddresses/"), 40, "each is made once");
}

/// A new process takes from the condition since when a Service is as it is.
#[test]
fn since_when_a_service_is_as_it_is_outlasts_the_process() {
    let mut lab = laboratory(&json!({}));
    create(&mut lab, service(1));
    create(&mut lab, annotated(2, json!({TIMEOUT: "soon"})));
    assert!(lab.settle(24 * 3_600_000));
    let since = |lab: &sim::Laboratory| -> Vec<Option<u64>> {
        let controller = lab.controller();
        controller.report().services.keys().map(|uid| controller.since_ms(uid)).collect()
    };
    let seconds = |all: Vec<Option<u64>>| -> Vec<Option<u64>> {
        all.into_iter().map(|at| at.map(|at| at / 1_000)).collect()
    };
    let before = seconds(since(&lab));
    assert!(before.iter().all(Option::is_some), "{before:?}");
    lab.pass(3_600_000);
    lab.restart();
    lab.pass(60_000);
    assert_eq!(seconds(since(&lab)), before, "a condition has whole seconds");
}

/// A Service that only waits for reads does so since it came, or since a new process looks.
#[test]
fn a_service_that_waits_for_reads_has_waited_since_it_came() {
    let mut lab = laboratory(&json!({}));
    let slow = || Fault::new(FaultKind::Latency { ms: 60_000 }).always().on_method("GET");
    let since = |lab: &mut sim::Laboratory| -> u64 {
        lab.pass(20_000);
        let controller = lab.controller();
        let (uid, own) = controller.report().services.first_key_value().expect("it is reported");
        assert_eq!(own.state, State::Waiting, "{:?}", own.waits);
        controller.since_ms(uid).expect("it was planned")
    };
    lab.azure.add_fault(slow());
    let came_ms = lab.now_ms;
    create(&mut lab, service(1));
    let since_ms = since(&mut lab);
    assert!((came_ms..came_ms + 5_000).contains(&since_ms), "{since_ms}, came at {came_ms}");
    lab.azure.clear_faults();
    assert!(lab.settle(24 * 3_600_000));
    lab.pass(3_600_000);
    lab.azure.add_fault(slow());
    let began_ms = lab.now_ms;
    lab.restart();
    let since_ms = since(&mut lab);
    assert!((began_ms..began_ms + 5_000).contains(&since_ms), "{since_ms}, began at {began_ms}");
}
