//! A wrong value on a running Service: what it has stays, and its owner hears of it at once.

mod support;

use serde_json::json;
use support::*;

const DAY_MS: u64 = 86_400_000;

#[test]
fn a_typo_leaves_a_running_service_as_it_is_and_says_so_at_once() {
    let wrong = [
        ("azure-load-balancer-tcp-idle-timeout", "15m", "a whole number of minutes from 4 to 100"),
        ("azure-load-balancer-health-probe-interval", "3", "a whole number of seconds, 5 or more"),
        ("azure-allowed-ip-ranges", "10.0.0.0/99", "ranges as in 203.0.113.0/24"),
        ("port_80_health-probe_port", "admin", "the name or number of a port of the Service"),
        ("azure-pip-name", "nobody", "the name of a public IP in resource group rg"),
    ];
    for (suffix, value, allowed) in wrong {
        let mut lab = laboratory(&json!({}));
        create(&mut lab, service(1));
        create(&mut lab, service(2));
        assert!(lab.settle(DAY_MS));
        let before = lab.azure.resources();
        lab.azure.clear_calls();
        let events = lab.kubernetes.list("events", None).len();
        let key = format!("service.beta.kubernetes.io/{suffix}");
        let body = json!({"metadata": {"annotations": {&key: value}}});
        patch(&mut lab, "services", "default", "web-0001", body);
        lab.turn();
        assert_eq!(lab.calls().0, 0, "{suffix}: nothing is written to Azure");
        let said = lab.kubernetes.list("events", None);
        assert_eq!(said.len(), events + 1, "{suffix}: one Event, at once");
        let warning = said.iter().find(|e| e["type"] == "Warning").expect("it is a warning");
        assert_eq!(warning["reason"], "SyncLoadBalancerFailed");
        assert_eq!(warning["involvedObject"]["name"], "web-0001");
        let text = warning["message"].as_str().unwrap_or("");
        for part in [key.as_str(), value, allowed] {
            assert!(text.contains(part), "{text:?} does not say {part:?}");
        }
        lab.pass(600_000);
        assert_eq!(lab.calls().0, 0, "{suffix}: nor later");
        assert_eq!(lab.azure.resources(), before, "{suffix}");
        assert_eq!(lab.kubernetes.list("events", None).len(), events + 1, "{suffix}: said once");
        assert_eq!(addressed(&lab), (2, 0), "{suffix}: its address stands");
        let mended = json!({"metadata": {"annotations": {&key: null}}});
        patch(&mut lab, "services", "default", "web-0001", mended);
        assert!(lab.settle(DAY_MS));
        assert_eq!(lab.calls().0, 0, "{suffix}: mended, it is as it was");
    }
}
