//! Lists in pages that shift while they are read: what one of them leaves out is not gone.

mod support;

use azure_emulator::Request;
use model::Group;
use serde_json::json;
use sim::Laboratory;
use support::*;

const DAY_MS: u64 = 86_400_000;
const INTERVAL_MS: u64 = 120_000;

/// Three Services, and somebody's public IP that stands before theirs in the list.
fn stand() -> Laboratory {
    let mut lab = laboratory(&json!({}));
    lab.azure.options_mut().page_size = 2;
    let now = lab.now_ms;
    let path = format!("{}?api-version=2024-05-01", network("publicIPAddresses/aaa"));
    let body = json!({"location": "eastus", "sku": {"name": "Standard"},
        "properties": {"publicIPAllocationMethod": "Static"}});
    let answer = lab.azure.handle(Request { body: Some(body), ..Request::new("PUT", &path) }, now);
    assert!(answer.status < 300, "{} {:?}", answer.status, answer.body);
    (0..3).for_each(|number| create(&mut lab, service(number)));
    assert!(lab.settle(DAY_MS));
    lab
}

fn known_ips(lab: &Laboratory) -> usize {
    let all = lab.controller().world().azure.public_ips.get(&Group::new("rg"));
    all.and_then(|all| all.known()).map_or(0, |all| all.len())
}

#[test]
fn what_pages_leave_out_is_read_again_before_it_counts_as_gone() {
    let mut lab = stand();
    let before = known_ips(&lab);
    // The look for drift: its first page is read, and its second one a second later.
    lab.azure_latency_ms = 1_000;
    lab.azure.clear_calls();
    let listed = |lab: &Laboratory| lab.azure.calls().iter().any(|c| c.path.contains("publicIP"));
    for _ in 0..2 * INTERVAL_MS / 100 {
        if listed(&lab) {
            break;
        }
        lab.pass(100);
    }
    assert!(listed(&lab), "the list is being read");
    let path = format!("{}?api-version=2024-05-01", network("publicIPAddresses/aaa"));
    let now = lab.now_ms;
    let answer = lab.azure.handle(Request::new("DELETE", &path), now);
    assert!(answer.status < 300, "{} {:?}", answer.status, answer.body);
    lab.azure.clear_calls();
    let mut least = before;
    for _ in 0..300 {
        lab.pass(100);
        least = least.min(known_ips(&lab));
    }
    assert!(lab.settle(DAY_MS));
    assert_eq!(lab.calls().0, 0, "nothing is written: {:#?}", lab.azure.calls());
    // The one that was left out was never missed; the one that is gone is, after a second look.
    assert_eq!((least, known_ips(&lab)), (before - 1, before - 1));
    let ips =
        |lab: &Laboratory| lab.controller().world().azure.public_ips[&Group::new("rg")].clone();
    let gone =
        ips(&lab).known().is_some_and(|all| all.keys().any(|id| id.as_str().ends_with("/aaa")));
    assert!(!gone, "what both reads lack is gone");
}
