//! Long-running operations, faults, throttling, the admin paths.

use crate::common::{self, *};
use azure_emulator::{Fate, Fault, FaultKind, Options, Overlap, Request, Switch};
use serde_json::json;
use std::sync::Arc;

fn slow() -> Cloud {
    Cloud::with(Options { lro_ms: 1000, base_url: "http://h".to_owned(), ..Options::default() })
}

impl Cloud {
    fn poll(&mut self, url: &str) -> azure_emulator::Answer {
        let path = url.strip_prefix("http://h").expect("an absolute URL").to_owned();
        self.call(Request::new("GET", &path))
    }
}

#[test]
fn a_write_is_updating_until_its_operation_ends() {
    let mut cloud = slow();
    cloud.azure.options_mut().late_public_ip_address = Switch::On;
    let pip = net("publicIPAddresses/a");
    let answer = cloud.try_put(&pip, common::pip("IPv4", "Standard"));
    assert_eq!((answer.status, answer.header("retry-after")), (201, Some("1")));
    let body = answer.body.clone().unwrap();
    assert_eq!(body["properties"]["provisioningState"], "Updating");
    assert!(body["properties"]["ipAddress"].is_null());
    // The option may change any time.
    for (late, address) in [(Switch::Off, json!("20.0.0.1")), (Switch::On, json!(null))] {
        cloud.azure.options_mut().late_public_ip_address = late;
        assert_eq!(cloud.get(&pip)["properties"]["ipAddress"], address);
    }
    let url = answer.header("azure-asyncoperation").unwrap().to_owned();
    assert_eq!(cloud.poll(&url).body.unwrap(), json!({"status": "InProgress"}));
    let busy = cloud.try_put(&lb_id(), balancer(&pip, vec![]));
    assert_eq!((busy.status, busy.code()), (429, Some("ReferencedResourceNotProvisioned")));
    assert!(busy.body.unwrap()["error"]["message"].as_str().unwrap().contains(&pip));
    let again = cloud.try_put(&pip, common::pip("IPv4", "Standard"));
    assert_eq!((again.status, again.code()), (409, Some("AnotherOperationInProgress")));
    cloud.now_ms += 1000;
    assert_eq!(cloud.poll(&url).body.unwrap(), json!({"status": "Succeeded"}));
    let shown = cloud.get(&pip);
    assert_eq!(shown["properties"]["provisioningState"], "Succeeded");
    assert_eq!(shown["properties"]["ipAddress"], "20.0.0.1");
    // Only a new one has no address yet.
    cloud.try_put(&pip, common::pip("IPv4", "Standard"));
    let shown = cloud.get(&pip);
    assert_eq!(shown["properties"]["provisioningState"], "Updating");
    assert_eq!(shown["properties"]["ipAddress"], "20.0.0.1");
}

/// A client that lists again parses only values that are not the same in memory.
#[test]
fn what_has_not_changed_is_the_same_value_though_addresses_come_late() {
    let mut cloud = slow();
    cloud.azure.options_mut().late_public_ip_address = Switch::On;
    let pip = cloud.pip("a");
    cloud.now_ms += 1000;
    cloud.get(&pip);
    let shown = || cloud.azure.shown_by_id(&pip).expect("it has just been read");
    assert!(Arc::ptr_eq(&shown(), &shown()));
}

#[test]
fn a_delete_is_polled_at_its_location() {
    let mut cloud = slow();
    let pip = cloud.pip("a");
    cloud.now_ms += 1000;
    let answer = cloud.delete(&pip);
    assert_eq!(answer.status, 202);
    let url = answer.header("location").unwrap().to_owned();
    assert_eq!(cloud.poll(&url).status, 202);
    assert_eq!(cloud.get(&pip)["properties"]["provisioningState"], "Deleting");
    let busy = cloud.try_put(&pip, common::pip("IPv4", "Standard"));
    assert_eq!(busy.code(), Some("AnotherOperationInProgress"));
    cloud.now_ms += 1000;
    assert_eq!(cloud.poll(&url).status, 204);
    assert_eq!(cloud.call(Request::new("GET", &pip)).status, 404);
}

#[test]
fn writes_on_one_balancer_supersede_each_other() {
    let mut cloud = slow();
    let pip = cloud.pip("a");
    cloud.now_ms += 1000;
    let first = cloud.try_put(&lb_id(), balancer(&pip, vec![]));
    let url = first.header("azure-asyncoperation").unwrap().to_owned();
    let pool = format!("{}/backendAddressPools/pool", lb_id());
    let second = cloud.try_put(&pool, json!({"properties": {}}));
    assert_eq!(second.status, 200);
    let poll = cloud.poll(&url).body.unwrap();
    assert_eq!(poll["status"], "Canceled");
    assert_eq!(poll["error"]["code"], "CanceledAndSupersededDueToAnotherOperation");
    cloud.azure.options_mut().load_balancer_overlap = Overlap::Throttle;
    let third = cloud.try_put(&lb_id(), balancer(&pip, vec![]));
    assert_eq!((third.status, third.code()), (429, Some("RetryableErrorDueToAnotherOperation")));
    cloud.azure.options_mut().load_balancer_overlap = Overlap::Accept;
    assert_eq!(cloud.try_put(&lb_id(), balancer(&pip, vec![])).status, 200);
}

#[test]
fn operations_fail_on_order() {
    let mut cloud = slow();
    let pip = net("publicIPAddresses/a");
    cloud.azure.add_fault(Fault::new(FaultKind::OperationFails { code: "Boom".to_owned() }));
    let url = cloud.try_put(&pip, common::pip("IPv4", "Standard"));
    let url = url.header("azure-asyncoperation").unwrap().to_owned();
    cloud.now_ms += 1000;
    let poll = cloud.poll(&url).body.unwrap();
    assert_eq!((&poll["status"], &poll["error"]["code"]), (&json!("Failed"), &json!("Boom")));
    assert_eq!(cloud.get(&pip)["properties"]["provisioningState"], "Failed");
    let refers = cloud.try_put(&lb_id(), balancer(&pip, vec![]));
    assert_eq!(refers.code(), Some("ReferencedResourceNotProvisioned"));
    cloud.put(&pip, common::pip("IPv4", "Standard"));
    cloud.now_ms += 1000;
    let canceled = FaultKind::OperationCanceled { code: "OperationPreempted".to_owned() };
    cloud.azure.add_fault(Fault::new(canceled));
    let mut tagged = common::pip("IPv4", "Standard");
    tagged["tags"] = json!({"new": "1"});
    cloud.put(&pip, tagged);
    assert_eq!(cloud.get(&pip)["tags"]["new"], "1");
    cloud.now_ms += 1000;
    let shown = cloud.get(&pip);
    assert!(shown["tags"].is_null(), "what was before is back");
    assert_eq!(shown["properties"]["provisioningState"], "Succeeded");
}

#[test]
fn a_pool_is_lost_on_order() {
    let mut cloud = Cloud::new();
    let pip = cloud.pip("a");
    cloud.put(&lb_id(), balancer(&pip, vec![]));
    let pool = format!("{}/backendAddressPools/pool", lb_id());
    cloud.azure.add_fault(Fault::new(FaultKind::SucceedsButLosesPool).on_path("pools/").unwrap());
    let body = json!({"properties": {"virtualNetwork": {"id": net("virtualNetworks/vnet")},
        "loadBalancerBackendAddresses": [
            {"name": "n", "properties": {"ipAddress": "10.224.0.4"}}]}});
    assert_eq!(cloud.try_put(&pool, body.clone()).status, 200);
    let addresses = |pool: serde_json::Value| {
        pool["properties"]["loadBalancerBackendAddresses"].as_array().unwrap().len()
    };
    assert_eq!(addresses(cloud.get(&pool)), 0);
    cloud.put(&pool, body);
    assert_eq!(addresses(cloud.get(&pool)), 1);
}

#[test]
fn connections_break_before_or_after_the_effect() {
    let mut cloud = Cloud::new();
    let pip = net("publicIPAddresses/a");
    cloud.azure.add_fault(Fault::new(FaultKind::ConnectionResetBefore));
    cloud.azure.add_fault(Fault::new(FaultKind::AppliedThenReset));
    let first = cloud.try_put(&pip, common::pip("IPv4", "Standard"));
    assert_eq!(first.fate, Fate::ResetBefore);
    assert!(cloud.azure.resource(&pip).is_none());
    let second = cloud.try_put(&pip, common::pip("IPv4", "Standard"));
    assert_eq!(second.fate, Fate::ResetAfter);
    assert!(cloud.azure.resource(&pip).is_some());
    cloud.azure.add_fault(Fault::new(FaultKind::TruncatedBody));
    assert_eq!(cloud.call(Request::new("GET", &pip)).fate, Fate::Truncated);
    cloud.azure.add_fault(Fault::new(FaultKind::Latency { ms: 5 }));
    assert_eq!(cloud.call(Request::new("GET", &pip)).fate, Fate::Delay(5));
}

#[test]
fn a_list_can_lack_what_is_new() {
    let mut cloud = Cloud::new();
    cloud.pip("old");
    cloud.now_ms = 100_000;
    cloud.pip("new");
    cloud.azure.add_fault(Fault::new(FaultKind::StaleList { age_ms: 1000 }));
    let names = |list: serde_json::Value| list["value"].as_array().unwrap().len();
    let stale = cloud.get(&net("publicIPAddresses"));
    assert_eq!(names(stale), 1);
    assert_eq!(names(cloud.get(&net("publicIPAddresses"))), 2);
}

#[test]
fn a_frontend_can_be_refused_by_its_name() {
    let mut cloud = Cloud::new();
    let pip = cloud.pip("a");
    let kind = FaultKind::Status {
        status: 400,
        code: "PoisonedFrontend".to_owned(),
        message: String::new(),
        retry_after_s: None,
        headers: Vec::new(),
    };
    let poison = Fault::new(kind).on_method("PUT").on_path("/loadBalancers/").unwrap();
    cloud.azure.add_fault(poison.on_body("\"front\"").always());
    for _ in 0..3 {
        let refused = cloud.try_put(&lb_id(), balancer(&pip, vec![]));
        assert_eq!(refused.code(), Some("PoisonedFrontend"));
    }
    let mut fine = balancer(&pip, vec![]);
    fine["properties"]["frontendIPConfigurations"][0]["name"] = json!("other");
    cloud.put(&lb_id(), fine);
}

#[test]
fn throttling_counts_and_says_when_to_come_back() {
    let mut cloud = Cloud::with(Options { throttle: Switch::On, ..Options::default() });
    for n in 0..200 {
        cloud.pip(&format!("p{n}"));
    }
    let answer = cloud.try_put(&net("publicIPAddresses/x"), pip("IPv4", "Standard"));
    assert_eq!((answer.status, answer.code()), (429, Some("SubscriptionRequestsThrottled")));
    assert_eq!(answer.header("retry-after"), Some("1"));
    let read = cloud.call(Request::new("GET", &net("publicIPAddresses")));
    let left = read.header("x-ms-ratelimit-remaining-subscription-reads");
    assert_eq!(left, Some("249"));
    cloud.now_ms += 1000;
    cloud.pip("x");
}

#[test]
fn the_admin_paths_speak_the_stand_ins_language() {
    let mut cloud = Cloud::new();
    let rules = json!([{"method": "PUT", "path": "publicIPAddresses", "status": 503,
        "code": "Down", "headers": {"Retry-After": "7"}}]);
    assert_eq!(cloud.post("/_/fail", rules).status, 200);
    let pip = net("publicIPAddresses/a");
    let answer = cloud.try_put(&pip, common::pip("IPv4", "Standard"));
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("7")));
    cloud.pip("a");
    let calls = cloud.get("/_/calls");
    assert_eq!(calls.as_array().unwrap().len(), 2);
    assert_eq!((&calls[0]["status"], &calls[0]["code"]), (&json!(503), &json!("Down")));
    assert_eq!(calls[1]["path"], pip);
    assert_eq!(calls[1]["body"]["sku"]["name"], "Standard");
    cloud.post("/_/reset", json!(null));
    assert_eq!(cloud.get("/_/calls"), json!([]));
    let seeded = net("loadBalancers/seeded");
    cloud.post(
        "/_/seed",
        json!([{"id": seeded, "properties": {"backendAddressPools":
        [{"name": "p", "properties": {}}]}}]),
    );
    let id = &cloud.get(&seeded)["properties"]["backendAddressPools"][0]["id"];
    assert_eq!(id, &json!(format!("{seeded}/backendAddressPools/p")));
    let state = cloud.get("/_/state");
    assert!(state.as_array().unwrap().iter().any(|one| one["id"] == json!(seeded)));
    let options = cloud.post("/_/options", json!({"lro_ms": 9, "overlap": "throttle"}));
    assert_eq!(options.body.unwrap()["lro_ms"], 9);
    assert_eq!(cloud.post("/_/options", json!({"nonsense": 9})).status, 400);
    assert_eq!(cloud.post("/_/fail", json!([{"kind": "nonsense"}])).status, 400);
    let alone = json!({"method": "PUT", "path": "publicIPAddresses", "status": 503});
    assert_eq!(cloud.post("/_/fail", alone.clone()).status, 400, "it is no list");
    assert_eq!(cloud.post("/_/seed", alone).status, 400, "nor is this");
    let unknown = cloud.call(Request::new("GET", "/_/nonsense"));
    assert_eq!(unknown.status, 404);
}

#[test]
fn two_runs_are_the_same() {
    let run = || {
        let mut cloud = slow();
        let pip = cloud.pip("a");
        cloud.now_ms += 1000;
        let answer = cloud.try_put(&lb_id(), balancer(&pip, vec![rule("r", "front", 80)]));
        (answer, cloud.azure.resources())
    };
    assert_eq!(run(), run());
}
