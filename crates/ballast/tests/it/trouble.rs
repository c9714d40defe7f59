//! Azure answers reads, writes, or the write of one Service's public IP with an error, or not at
//! all: everything that tells of trouble names it, and is clear once it ends.

use crate::support::{Emulators, Process, http, http_text, run};
use serde_json::{Value, json};
use std::time::Duration;

/// Azure's status, and the code that is told; without a status no answer comes.
const ANSWERS: [(u16, &str); 5] = [
    (403, "AuthorizationFailed"),
    (500, "InternalServerError"),
    (429, "TooManyRequests"),
    (409, "ScopeLocked"),
    (0, "no answer"),
];

/// An obstacle is told within so long, by the program's own clock.
const TOLD_MS: i64 = 10_000;

/// All is clear again within so long: the longest time between two attempts.
const INTERVAL_MS: i64 = 120_000;

/// What fails, with every answer.
struct Outage {
    /// Methods, and the path as a regular expression.
    calls: &'static [(&'static str, &'static str)],
    /// What is attempted, as it is told.
    operation: &'static str,
    /// The status of the condition meanwhile.
    condition: &'static str,
}

/// A cluster, Azure, and the program between them.
struct Place {
    emulators: Emulators,
    pages: String,
    _controller: Process,
}

impl Place {
    fn start() -> Self {
        let emulators = Emulators::start();
        let flags = ["--check-interval", "2", "--azure-limits", "unknown"];
        let (controller, pages) = emulators.controller_with(&flags);
        Self { emulators, pages, _controller: controller }
    }

    fn order(&self, rules: &[Value]) {
        self.emulators.order(&json!(rules));
    }

    fn page(&self, path: &str) -> String {
        http_text(&self.pages, "GET", path, None).1
    }

    /// A page of the console: its head, and what stands below.
    fn console(&self, path: &str) -> (String, String) {
        let page = self.page(path);
        let (_, main) = page.split_once("<main").unwrap();
        let notice = main.split_once("class=\"notice\"");
        let cut = notice.and_then(|(_, rest)| rest.split_once("</section>"));
        let (head, rest) = cut.unwrap_or(("", main));
        (head.to_owned(), rest.to_owned())
    }

    fn condition(&self, name: &str) -> Value {
        let path = format!("/api/v1/namespaces/default/services/{name}");
        let (_, service) = http(&self.emulators.kube, "GET", &path, None);
        service.pointer("/status/conditions/0").cloned().unwrap_or_default()
    }

    /// Warnings about a Service: when, and what.
    fn warnings(&self, name: &str) -> Vec<(i64, String)> {
        let path = "/api/v1/namespaces/default/events";
        let (_, events) = http(&self.emulators.kube, "GET", path, None);
        let events = events["items"].as_array().unwrap().clone();
        let own = |event: &&Value| {
            let about = event.get("involvedObject").or(event.get("regarding"));
            event["type"] == "Warning" && about.is_some_and(|object| object["name"] == name)
        };
        let text = |event: &Value, key: &str| event[key].as_str().map(str::to_owned);
        let when = |event: &Value| {
            let keys = ["eventTime", "firstTimestamp", "deprecatedFirstTimestamp"];
            let time = keys.iter().find_map(|key| text(event, key)).unwrap();
            time.parse::<jiff::Timestamp>().unwrap().as_millisecond()
        };
        let message = |event: &Value| text(event, "message").or(text(event, "note")).unwrap();
        events.iter().filter(own).map(|event| (when(event), message(event))).collect()
    }

    fn table(&self) -> String {
        run(&["status", "--server", &format!("http://{}", self.pages)]).1
    }
}

/// Looks until nothing is missing; the limit is only there so that a failure ends.
fn until(what: &str, mut missing: impl FnMut() -> Vec<String>) {
    let mut last = Vec::new();
    for _ in 0..3_000 {
        last = missing();
        if last.is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{what}: {last:#?}");
}

/// Everything that tells of trouble, and does not tell of this.
fn untold(place: &Place, name: &str, outage: &Outage, code: &str) -> Vec<String> {
    let names = |text: &str, next: &str| {
        text.contains(outage.operation) && text.contains(code) && text.contains(next)
    };
    let condition = place.condition(name);
    let warnings = place.warnings(name);
    let (head, findings) = place.console("/findings");
    let (_, plan) = place.console("/plan");
    let (overview, _) = place.console("/");
    let table = place.table();
    let next = if code == "no answer" { "" } else { "attempt" };
    let all = [
        (warnings.iter().any(|(_, text)| names(text, "attempt")), format!("Event: {warnings:?}")),
        (
            condition["status"] == outage.condition
                && names(condition["message"].as_str().unwrap_or_default(), "attempt"),
            format!("condition: {condition}"),
        ),
        (names(&table, next), format!("status: {table}")),
        (names(&findings, "ttempt"), format!("Findings: {findings}")),
        (names(&plan, "attempt"), format!("Plan: {plan}")),
        (names(&head, next), format!("head: {head}")),
        (names(&overview, next), format!("overview's head: {overview}")),
    ];
    all.into_iter().filter(|(told, _)| !told).map(|(_, what)| what).collect()
}

/// Everything that still tells of trouble.
fn unclear(place: &Place, name: &str) -> Vec<String> {
    let condition = place.condition(name);
    let status: Value = serde_json::from_str(&place.page("/status")).unwrap_or_default();
    let Some(services) = status["services"].as_array() else {
        return vec!["there is no status yet".to_owned()];
    };
    let (head, findings) = place.console("/findings");
    let (_, plan) = place.console("/plan");
    let ready = place.page("/readyz");
    let states: Vec<&Value> = services.iter().map(|service| &service["state"]).collect();
    let none = |key: &str| status[key].as_array().is_none_or(Vec::is_empty);
    let all = [
        (condition["status"] == "True", format!("condition: {condition}")),
        (condition["reason"] == "Programmed", format!("condition: {condition}")),
        (states.iter().all(|state| *state == "programmed"), format!("states: {states:?}")),
        (none("obstacles") && none("troubles"), format!("status: {status}")),
        (head.is_empty(), format!("head: {head}")),
        (findings.contains("Nothing is wrong."), format!("Findings: {findings}")),
        (plan.contains("Nothing to do."), format!("Plan: {plan}")),
        (ready == "ok\n", format!("/readyz: {ready}")),
    ];
    all.into_iter().filter(|(clear, _)| !clear).map(|(_, what)| what).collect()
}

/// The program's own times: from the first failure of what the first Event names to that Event.
/// Other obstacles concern no Service: the list of zones is one. While Azure has too many requests
/// it may be the only list that is read, because looks for drift come last then.
fn assert_soon(place: &Place, name: &str, outage: &Outage, code: &str) {
    let status: Value = serde_json::from_str(&place.page("/status")).unwrap();
    let obstacles = status["obstacles"].as_array().unwrap().iter();
    let warnings = place.warnings(name);
    let told = warnings.iter().filter(|(_, text)| text.contains(outage.operation));
    let (told, text) = told.filter(|(_, text)| text.contains(code)).min().unwrap();
    let named = obstacles.filter(|o| text.contains(o["operation"].as_str().unwrap()));
    let since = named.filter_map(|obstacle| obstacle["sinceMs"].as_i64()).min().unwrap();
    assert!(told - since <= TOLD_MS, "{code}: told {} ms after the failure", told - since);
}

/// The program's own time of the Service's last transition, and when Azure was well again.
fn assert_clear_soon(place: &Place, name: &str, ended: jiff::Timestamp) {
    let condition = place.condition(name);
    let at: jiff::Timestamp = condition["lastTransitionTime"].as_str().unwrap().parse().unwrap();
    let took = at.as_millisecond() - ended.as_millisecond();
    assert!(took <= INTERVAL_MS, "{name} was told clear {took} ms after Azure was well again");
}

fn trouble(outage: &Outage, service_before: bool) {
    let place = Place::start();
    for (round, (status, code)) in ANSWERS.into_iter().enumerate() {
        let name = format!("web-{round}");
        if service_before {
            place.emulators.create_service(&name);
            until("programmed before", || unclear(&place, &name));
        }
        let rules = outage.calls.iter().map(|(method, path)| match status {
            0 => json!({"kind": "hang", "times": "always", "method": method, "path": path}),
            _ => json!({"status": status, "code": code, "message": "on order", "times": "always",
                "method": method, "path": path}),
        });
        place.order(&rules.collect::<Vec<_>>());
        if !service_before {
            place.emulators.create_service(&name);
        }
        let what = format!("{} answered {status} {code}", outage.operation);
        until(&what, || untold(&place, &name, outage, code));
        assert_soon(&place, &name, outage, code);
        let ended = jiff::Timestamp::now();
        place.order(&[]);
        until(&format!("{what}, after it"), || unclear(&place, &name));
        assert_clear_soon(&place, &name, ended);
    }
}

#[test]
fn all_lists() {
    let calls = &[("GET", "/subscriptions/")];
    trouble(&Outage { calls, operation: "GET ", condition: "True" }, true);
}

#[test]
fn all_writes() {
    let calls = &[("PUT", "."), ("DELETE", "."), ("POST", "/subscriptions/")];
    trouble(&Outage { calls, operation: "PUT ", condition: "False" }, false);
}

#[test]
fn one_public_ip() {
    let calls = &[("PUT", "/publicIPAddresses/kubernetes-[^/]+$")];
    let operation = "PUT publicIPAddresses/kubernetes-";
    trouble(&Outage { calls, operation, condition: "False" }, false);
}
