//! An operator pauses a Service, resumes it, and has what Azure rejected attempted at once.

use crate::support::{Emulators, ballast, http, outcome, run, wait_for};
use serde_json::{Value, json};

const TIMEOUT: &str = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";
const BALANCER: &str = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg/\
                        providers/Microsoft.Network/loadBalancers/kubernetes\
                        ?api-version=2024-05-01";

fn minutes(emulators: &Emulators) -> Value {
    let (_, body) = http(&emulators.azure, "GET", BALANCER, None);
    body["properties"]["loadBalancingRules"][0]["properties"]["idleTimeoutInMinutes"].clone()
}

fn status(server: &str, part: &str) -> String {
    wait_for(part, || {
        let (_, out, _) = run(&["status", "--server", server]);
        out.contains(part).then_some(out)
    })
}

/// A command about the cluster, without a cloud config.
fn told(emulators: &Emulators, words: &[&str]) -> (i32, String, String) {
    let kubeconfig = emulators.path("kubeconfig");
    outcome(ballast().args(words).arg("--kubeconfig").arg(kubeconfig).output().unwrap())
}

#[test]
fn an_operator_holds_a_service_back_and_pushes_it() {
    let emulators = Emulators::start();
    let (controller, pages) = emulators.controller();
    let server = format!("http://{pages}");
    emulators.create_service("web");
    let address = emulators.address_of("web");
    let (code, out, err) = told(&emulators, &["pause", "web"]);
    assert!(code == 0 && out.contains("Service default/web is paused"), "{out}{err}");
    let out = status(&server, "held by its owner");
    assert!(out.contains("! ballast.dev/pause: nothing of the Service is written"), "{out}");
    assert!(out.contains(&address), "{out}");
    emulators.patch_service("web", &json!({"metadata": {"annotations": {TIMEOUT: "9"}}}));
    // What comes after it is written: the paused one had its turn.
    emulators.create_service("beside");
    emulators.address_of("beside");
    assert_eq!(minutes(&emulators), 4);
    let (code, out, _) = emulators.run(&["plan"]);
    assert!(code == 0 && out.contains("1 held by its owner"), "{out}");
    let held = "On hold, written once the owner removes the annotation or confirms the change:\n  \
                ~ change load balancer kubernetes in rg for default/web\n    ~ loadBalancingRules";
    assert!(out.contains(held) && out.contains("idleTimeoutInMinutes: 4 → 9"), "{out}");
    let (_, out, _) = emulators.run(&["plan", "--service", "beside"]);
    assert!(!out.contains("On hold"), "{out}");
    let (code, out, _) = emulators.run(&["plan", "-o", "json", "--exit-code"]);
    let plan: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, &plan["changes"], &plan["heldBack"][0]["services"]),
        (0, &json!([]), &json!(["default/web"]))
    );
    let (code, out, err) = told(&emulators, &["resume", "default/web"]);
    assert!(code == 0 && out.contains("Service default/web is resumed"), "{out}{err}");
    wait_for("the edit in Azure", || (minutes(&emulators) == 9).then_some(()));
    // What Azure rejects is attempted at once.
    let limit = json!([{"method": "PUT", "path": "publicIPAddresses/", "times": "always",
        "status": 409, "code": "PublicIPCountLimitReached", "message": "No more."}]);
    assert_eq!(http(&emulators.azure, "POST", "/_/fail", Some(&limit)).0, 200);
    emulators.create_service("late");
    status(&server, "PublicIPCountLimitReached");
    assert_eq!(http(&emulators.azure, "POST", "/_/fail", Some(&json!([]))).0, 200);
    let (code, out, err) = told(&emulators, &["retry", "late"]);
    assert!(code == 0 && out.contains("Service default/late is attempted again"), "{out}{err}");
    assert!(!emulators.address_of("late").is_empty());
    let (_, out, _) = run(&["history", "late", "--server", &server]);
    assert!(out.contains("was edited by kubectl-ballast"), "{out}");
    let (code, _, err) = told(&emulators, &["pause", "nothing"]);
    assert!(code != 0 && err.contains("there is no Service default/nothing"), "{err}");
    // What a deletion would take away, while a protection holds it back.
    let protection =
        json!({"metadata": {"annotations": {"ballast.dev/deletion-protection": "true"}}});
    emulators.patch_service("beside", &protection);
    let beside = "/api/v1/namespaces/default/services/beside";
    assert_eq!(http(&emulators.kube, "DELETE", beside, None).0, 200);
    status(&server, "ballast.dev/deletion-protection: ");
    let (code, out, _) = emulators.run(&["plan", "--service", "beside"]);
    assert!(code == 0 && out.contains("\n  - delete public IP kubernetes-"), "{out}");
    assert_eq!(controller.terminate(), 0);
}

#[test]
fn an_owner_confirms_an_interruption() {
    const INTERNAL: &str = "service.beta.kubernetes.io/azure-load-balancer-internal";
    let emulators = Emulators::start();
    let (controller, pages) = emulators.controller();
    let server = format!("http://{pages}");
    emulators.create_service("web");
    let address = emulators.address_of("web");
    let (code, _, err) = told(&emulators, &["confirm", "web"]);
    assert!(code != 0 && err.contains("lists nothing that waits for a confirmation"), "{err}");
    let edit = json!({"metadata": {"annotations":
        {"ballast.dev/confirm": "true", INTERNAL: "true"}}});
    emulators.patch_service("web", &edit);
    let out = status(&server, "held by its owner");
    let lost = format!("(address {address} → a new one, load balancer kubernetes → ");
    let list = format!("ballast.dev/confirmed lists \"{address}, kubernetes\"");
    assert!(out.contains(&lost) && out.contains(&list), "{out}");
    let (code, out, _) = emulators.run(&["plan"]);
    let held = "On hold, written once the owner removes the annotation or confirms the change:";
    assert!(code == 0 && out.contains(held) && out.contains("kubernetes-internal"), "{out}");
    let (code, out, err) = told(&emulators, &["confirm", "default/web"]);
    assert!(code == 0 && out.contains(&lost), "{out}{err}");
    assert!(out.contains("Service default/web is confirmed: it loses what is listed"), "{out}");
    wait_for("the move", || (emulators.address_of("web") != address).then_some(()));
    let (code, _, err) = told(&emulators, &["confirm", "nothing"]);
    assert!(code != 0 && err.contains("there is no Service default/nothing"), "{err}");
    assert_eq!(controller.terminate(), 0);
}
