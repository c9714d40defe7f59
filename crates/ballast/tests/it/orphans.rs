//! `ballast orphans` with the real binary between emulators.

use crate::support::{Emulators, ballast, http, outcome, run, wait_until_programmed};
use serde_json::{Value, json};

fn is_there(emulators: &Emulators, kind_and_name: &str) -> bool {
    emulators.read(kind_and_name).0 == 200
}

/// Two Services, one of which vanishes while nobody watches, without its finalizer.
fn one_is_left_over(emulators: &Emulators) {
    for name in ["web", "gone"] {
        emulators.create_service(name);
    }
    let (controller, pages) = emulators.controller();
    for name in ["web", "gone"] {
        emulators.address_of(name);
    }
    wait_until_programmed(&pages);
    assert_eq!(controller.terminate(), 0);
    emulators.patch_service("gone", &json!({"metadata": {"finalizers": null}}));
    emulators.delete_service("gone");
}

#[test]
fn what_is_left_over_is_listed_and_deleted_and_nothing_else() {
    let emulators = Emulators::start();
    one_is_left_over(&emulators);
    // What only looks like ours: a name of our form without our tags, and another cluster's.
    let base = "a00000000000000000000000000000bad";
    let ip = json!({"location": "eastus", "sku": {"name": "Standard"}, "properties": {
        "publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4"}});
    let alike = format!("publicIPAddresses/kubernetes-{base}");
    emulators.write(&alike, &ip);
    let mut theirs = ip.clone();
    theirs["tags"] = json!({"k8s-azure-service": "default/theirs",
        "k8s-azure-cluster-name": "another"});
    emulators.write("publicIPAddresses/theirs", &theirs);

    let (code, out, err) = emulators.run(&["orphans", "-o", "json"]);
    assert_eq!(code, 2, "{out}{err}");
    let document: Value = serde_json::from_str(&out).unwrap();
    let kinds: Vec<&str> = document["orphans"]
        .as_array()
        .unwrap()
        .iter()
        .map(|orphan| orphan["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["security rule", "frontend", "probe", "rule", "public IP"], "{out}");
    assert!(!out.contains(base) && !out.contains("theirs"), "{out}");

    // Nobody is there to be asked: nothing is deleted.
    let delete = ["orphans", "--delete", "--leader-elect=false"];
    let mut command = ballast();
    command.args(emulators.words(&delete)).stdin(std::process::Stdio::null());
    let (code, _, err) = outcome(command.output().unwrap());
    assert!(code == 64 && err.contains("no confirmation is possible"), "{code} {err}");
    assert_eq!(emulators.run(&["orphans"]).0, 2);

    let (code, out, err) = emulators.run(&[&delete[..], &["--yes"]].concat());
    assert_eq!(code, 0, "{out}{err}");
    let (code, out, err) = emulators.run(&["orphans"]);
    assert_eq!((code, out.as_str()), (0, "Nothing of cluster kubernetes is left over.\n"), "{err}");
    assert!(is_there(&emulators, &alike) && is_there(&emulators, "publicIPAddresses/theirs"));
    // The other Service lacks nothing.
    let (code, out, _) = emulators.run(&["plan", "--exit-code"]);
    assert_eq!(code, 0, "{out}");
    let path = "/api/v1/namespaces/default/services/web";
    let web = http(&emulators.kube, "GET", path, None).1;
    assert!(web.pointer("/status/loadBalancer/ingress/0/ip").is_some());
}

#[test]
fn the_last_service_may_be_the_one_that_is_left_over() {
    let emulators = Emulators::start();
    one_is_left_over(&emulators);
    emulators.patch_service("web", &json!({"metadata": {"finalizers": null}}));
    emulators.delete_service("web");
    let (code, out, err) = emulators.run(&["orphans", "--delete", "--yes", "--leader-elect=false"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("load balancer  kubernetes"), "{out}");
    let group = emulators.read("networkSecurityGroups/nsg").1;
    let rules = group["properties"]["securityRules"].as_array().cloned().unwrap_or_default();
    assert_eq!(rules, Vec::<Value>::new(), "no rule leads to an address that is gone");
    assert_eq!(emulators.run(&["orphans"]).0, 0);
}

#[test]
fn nothing_is_deleted_while_something_else_is_due() {
    let emulators = Emulators::start();
    one_is_left_over(&emulators);
    emulators.create_service("new");
    let (code, _, err) = emulators.run(&["orphans", "--delete", "--yes", "--leader-elect=false"]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("other changes are due"), "{err}");
    assert_eq!(emulators.run(&["orphans"]).0, 2, "it is all there");
}

/// The controller before it took no Lease, and yet there is one to annotate.
#[test]
fn nothing_is_deleted_while_writes_are_paused() {
    let emulators = Emulators::start();
    one_is_left_over(&emulators);
    let kubeconfig = emulators.path("kubeconfig").display().to_string();
    let (code, _, err) = run(&["pause", "--all", "--kubeconfig", &kubeconfig]);
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = emulators.run(&["orphans", "--delete", "--yes", "--leader-elect=false"]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("all writes to Azure are paused by an operator"), "{err}");
    assert_eq!(emulators.run(&["orphans"]).0, 2, "it is all there");
}
