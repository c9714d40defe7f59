//! An operator pauses a Service or all writes, resumes them, and has what Azure rejected attempted
//! at once.

use crate::support::{Emulators, Process, ballast, http, http_text, outcome, run, wait_for};
use serde_json::{Value, json};

const TIMEOUT: &str = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";

fn minutes(emulators: &Emulators) -> Value {
    let body = emulators.balancer();
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
    let address = emulators.serve("web");
    let (code, out, err) = told(&emulators, &["pause", "web"]);
    assert!(code == 0 && out.contains("Service default/web is paused"), "{out}{err}");
    let out = status(&server, "held by its owner");
    assert!(out.contains("! ballast.dev/pause: nothing of the Service is written"), "{out}");
    assert!(out.contains(&address), "{out}");
    emulators.patch_service("web", &json!({"metadata": {"annotations": {TIMEOUT: "9"}}}));
    // What comes after it is written: the paused one had its turn.
    emulators.serve("beside");
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
    emulators.order(&limit);
    emulators.create_service("late");
    status(&server, "PublicIPCountLimitReached");
    emulators.order(&json!([]));
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
    emulators.delete_service("beside");
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
    let address = emulators.serve("web");
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

/// A controller that leads by a Lease, and where it serves its pages.
fn leading(emulators: &Emulators) -> (Process, String) {
    let words = ["run", "--port=0", "--check-interval=1"];
    let words = emulators.words(&words);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut process = Process::start_logging(&words);
    let pages = process.address();
    (process, pages)
}

#[test]
fn an_operator_pauses_all_writes_over_a_restart() {
    const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/ballast";
    let emulators = Emulators::start();
    let (code, _, err) = told(&emulators, &["pause", "--all"]);
    assert!(code == 64 && err.contains("there is no Lease kube-system/ballast"), "{code} {err}");
    let (controller, pages) = leading(&emulators);
    emulators.serve("web");
    let (code, out, err) = told(&emulators, &["pause", "--all"]);
    assert!(code == 0 && out.contains("within 6 s: all writes to Azure. A"), "{out}{err}");
    let line = "! ballast.dev/pause: all writes to Azure are paused by an operator; `ballast \
                resume --all` ends the pause";
    status(&format!("http://{pages}"), line);
    let metrics = http_text(&pages, "GET", "/metrics", None).1;
    assert!(metrics.contains("\nballast_obstacles{kind=\"paused\"} 1\n"), "{metrics}");
    for page in ["/", "/findings", "/plan"] {
        let text = http_text(&pages, "GET", page, None).1;
        assert!(text.contains("all writes to Azure are paused"), "{page}: {text}");
    }
    // Another client changes what a new process would repair at once.
    emulators.delete_rules();
    status(&format!("http://{pages}"), "left so (writes are paused)");
    assert_eq!(controller.terminate(), 0);
    let (controller, pages) = leading(&emulators);
    let server = format!("http://{pages}");
    let out = status(&server, "; 1 Service is held up");
    assert!(out.contains(line) && minutes(&emulators).is_null(), "{out}");
    let (code, out, err) = emulators.run(&["plan"]);
    let note = "Paused by an operator until `ballast resume --all`: all writes to Azure.";
    assert!(code == 0 && out.contains(note), "{out}{err}");
    assert!(minutes(&emulators).is_null());
    // What is no kind is refused, and one kind is as good as all for who needs another one.
    let (code, _, err) = told(&emulators, &["pause", "--all", "--kind", "rules"]);
    assert!(code == 64 && err.contains("loadBalancers"), "{err}");
    let (code, _, err) = told(&emulators, &["pause", "web", "--kind", "loadBalancers"]);
    assert!(code == 64 && err.contains("--kind"), "a Service is paused as a whole: {err}");
    let (code, out, err) = told(&emulators, &["pause", "--all", "--kind", "loadbalancers"]);
    assert!(code == 0 && out.contains("within 6 s: writes of loadBalancers."), "{out}{err}");
    let lease = http(&emulators.kube, "GET", LEASE, None).1;
    assert_eq!(lease["metadata"]["annotations"]["ballast.dev/pause"], "loadbalancers");
    status(&server, "writes of loadBalancers are paused by an operator");
    let (code, out, err) = told(&emulators, &["resume", "--all"]);
    assert!(code == 0 && out.starts_with("Writes to Azure go on"), "{out}{err}");
    wait_for("the repair", || (minutes(&emulators) == 4).then_some(()));
    for words in [&["pause"][..], &["pause", "web", "--all"], &["resume", "--all", "-n", "shop"]] {
        assert_eq!(told(&emulators, words).0, 64, "{words:?}");
    }
    assert_eq!(controller.terminate(), 0);
}

/// A process that takes no Lease reads it all the same, before it writes.
#[test]
fn a_pause_of_all_writes_holds_without_leader_election() {
    let emulators = Emulators::start();
    let (controller, pages) = emulators.controller();
    emulators.serve("web");
    let (code, out, err) = told(&emulators, &["pause", "--all"]);
    assert!(code == 0 && out.contains("within 6 s: all writes to Azure. A"), "{out}{err}");
    status(&format!("http://{pages}"), "all writes to Azure are paused by an operator");
    assert_eq!(controller.terminate(), 0);
    emulators.patch_service("web", &json!({"metadata": {"annotations": {TIMEOUT: "9"}}}));
    let (controller, pages) = emulators.controller();
    let out = status(&format!("http://{pages}"), "; 1 Service is held up");
    assert_eq!(minutes(&emulators), 4, "{out}");
    let (code, out, err) = told(&emulators, &["resume", "--all"]);
    assert!(code == 0 && out.starts_with("Writes to Azure go on"), "{out}{err}");
    wait_for("the edit in Azure", || (minutes(&emulators) == 9).then_some(()));
    assert_eq!(controller.terminate(), 0);
}

/// As with kubectl: the context that a flag names, else the current one, says cluster and
/// namespace.
#[test]
fn a_context_of_the_kubeconfig_says_cluster_and_namespace() {
    let emulators = Emulators::start();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    emulators.create("/api/v1/namespaces", &namespace);
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}});
    emulators.create("/api/v1/namespaces/shop/services", &service);
    let text = std::fs::read_to_string(emulators.path("kubeconfig")).unwrap();
    let two = text.replace(
        "current-context: ballast\n",
        "- name: shop\n  context: {cluster: ballast, user: ballast, namespace: shop}\n\
         current-context: none\n",
    );
    assert_ne!(text, two);
    std::fs::write(emulators.path("two"), two).unwrap();
    let told = |words: &[&str]| {
        let kubeconfig = emulators.path("two");
        outcome(ballast().args(words).env("KUBECONFIG", kubeconfig).output().unwrap())
    };
    let config = emulators.path("azure.json").display().to_string();
    // Nothing of it is in Azure yet; without the Service there would be an error.
    for (flag, says) in [("--service", "shop/web"), ("--as-if-deleted", "Nothing to do")] {
        let words = ["plan", flag, "web", "--context", "shop", "--cloud-config", &config];
        let (code, out, err) = told(&words);
        assert!(code == 0 && out.contains(says), "{words:?}: {out}{err}");
    }
    let words =
        ["plan", "--service", "default/web", "--context", "shop", "--cloud-config", &config];
    let (code, out, err) = told(&words);
    let says =
        "Service default/web neither asks for a load balancer nor has one; there is shop/web.";
    assert!(code == 0 && out.contains(says), "{out}{err}");
    let (code, out, err) = told(&["pause", "web", "--context", "shop"]);
    assert!(code == 0 && out.contains("Service shop/web is paused"), "{out}{err}");
    let (code, _, err) = told(&["resume", "web", "--context", "shop", "-n", "default"]);
    assert!(code == 64 && err.contains("there is no Service default/web"), "{code} {err}");
    let (code, _, err) = told(&["resume", "web", "--context", "nowhere"]);
    assert!(code == 64 && err.contains("nowhere") && err.contains("KUBECONFIG"), "{code} {err}");
    // A context means its cluster, and not the controller of this machine.
    for command in ["status", "history"] {
        let (code, _, err) = told(&[command, "--context", "shop"]);
        let lease = "cannot find the leading pod: Lease kube-system/ballast does not exist";
        assert!(code == 69 && err.contains(lease), "{command}: {code} {err}");
    }
}
