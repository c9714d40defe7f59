//! `ballast adopt`: a BYO public IP becomes Ballast's; with `--undo` it is taken back.

use crate::support::{Emulators, ballast, http, outcome, run, wait_for, wait_until_programmed};
use serde_json::{Value, json};
use std::process::Stdio;

const BYO: &str = "publicIPAddresses/byo";
const NAME: &str = "service.beta.kubernetes.io/azure-pip-name";

/// A public IP of the network team.
fn bring(emulators: &Emulators) {
    let ip = json!({"location": "eastus", "sku": {"name": "Standard"}, "tags": {"team": "net"},
        "properties": {"publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4"}});
    emulators.write(BYO, &ip);
}

fn tags(emulators: &Emulators) -> Value {
    emulators.read(BYO).1["tags"].clone()
}

/// A Service on the public IP.
fn create(emulators: &Emulators, name: &str, port: u16) {
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "default", "annotations": {NAME: "byo"}},
        "spec": {"type": "LoadBalancer", "ports": [{"port": port}]}});
    emulators.create("/api/v1/namespaces/default/services", &service);
    emulators.address_of(name);
}

fn delete(emulators: &Emulators, name: &str) {
    let path = format!("/api/v1/namespaces/default/services/{name}");
    assert_eq!(http(&emulators.kube, "DELETE", &path, None).0, 200);
    wait_for("the deletion", || (http(&emulators.kube, "GET", &path, None).0 == 404).then_some(()));
}

#[test]
fn an_operator_hands_a_public_ip_over_and_it_goes_with_its_last_service() {
    let emulators = Emulators::start();
    bring(&emulators);
    let (controller, pages) = emulators.controller_with(&["--check-interval", "1"]);
    create(&emulators, "web", 80);
    create(&emulators, "second", 81);
    let address = emulators.address_of("web");
    assert_eq!(emulators.address_of("second"), address);
    wait_until_programmed(&pages);

    let (code, out, err) = emulators.run(&["adopt", "web", "--dry-run"]);
    assert!(code == 0 && out.starts_with("~ change public IP byo in rg"), "{out}{err}");
    let last = "From then on Ballast deletes byo with the last of the Services default/second, \
                default/web.";
    assert!(out.contains("k8s-azure-service") && out.contains(last), "{out}");
    assert!(!out.contains("Ballast then writes"), "{out}");
    // Without a terminal there is no answer.
    let mut command = ballast();
    command.args(emulators.words(&["adopt", "web"])).stdin(Stdio::null());
    let (code, _, err) = outcome(command.output().unwrap());
    assert!(code == 64 && err.contains("no confirmation is possible"), "{code} {err}");
    // What another Service holds is not handed over with this one.
    let (code, _, err) = emulators.run(&["adopt", "second", "--yes"]);
    let holder = "public IP byo is held by Service default/web";
    assert!(code == 1 && err.contains(holder), "{code} {err}");
    assert_eq!(tags(&emulators), json!({"team": "net"}));

    let (code, out, err) = emulators.run(&["adopt", "web", "--yes", "-o", "json"]);
    assert!(code == 0 && err.contains("PUT publicIPAddresses/byo: done"), "{out}{err}");
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["services"], json!(["default/second", "default/web"]), "{out}");
    let adopted = json!({"team": "net", "k8s-azure-cluster-name": "kubernetes",
        "k8s-azure-service": "default/web,default/second"});
    assert_eq!(tags(&emulators), adopted);
    let (code, _, err) = emulators.run(&["adopt", "web", "--yes"]);
    assert!(code == 1 && err.contains("is Ballast's already"), "{code} {err}");
    let (code, out, err) = emulators.run(&["plan", "--exit-code"]);
    assert_eq!(code, 0, "{out}{err}");

    delete(&emulators, "web");
    assert_eq!(emulators.address_of("second"), address);
    delete(&emulators, "second");
    let gone = || (emulators.read(BYO).0 == 404).then_some(());
    wait_for("the end of the public IP", gone);
    assert_eq!(controller.terminate(), 0);
}

/// Nothing is written through a pause, nor while the API server does not say whether there is one.
#[test]
fn a_pause_keeps_a_public_ip_from_being_handed_over() {
    let emulators = Emulators::start();
    bring(&emulators);
    let (controller, pages) = emulators.controller();
    create(&emulators, "web", 80);
    wait_until_programmed(&pages);
    assert_eq!(controller.terminate(), 0);

    let config = emulators.path("azure.json").display().to_string();
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/";
    let through = |front: &str| {
        let front = front.to_owned();
        run(&["adopt", "web", "--yes", "--kubeconfig", &front, "--cloud-config", &config])
    };
    let (code, _, err) = through(&emulators.refusing(lease, 503));
    assert!(code == 69 && err.contains("HTTP 503: on order"), "{code} {err}");
    let kubeconfig = emulators.path("kubeconfig").display().to_string();
    let (code, _, err) = run(&["pause", "--all", "--kubeconfig", &kubeconfig]);
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = through(&kubeconfig);
    assert!(code == 1 && err.contains("are paused by an operator"), "{code} {err}");
    assert_eq!(tags(&emulators), json!({"team": "net"}));
    // A user who may not read the Lease learns that.
    let (code, _, err) = through(&emulators.refusing(lease, 403));
    assert!(code == 0 && err.contains("`ballast pause --all` is not heeded"), "{code} {err}");
}

/// How many times public IPs were listed.
fn lists(emulators: &Emulators) -> usize {
    let is_list = |call: &&Value| {
        let path = call["path"].as_str().unwrap_or_default();
        call["method"] == "GET" && path.ends_with("/publicIPAddresses")
    };
    emulators.azure_calls().iter().filter(is_list).count()
}

#[test]
fn an_operator_takes_a_public_ip_back_and_it_outlives_its_service() {
    let emulators = Emulators::start();
    let (controller, pages) = emulators.controller_with(&["--check-interval", "1"]);
    emulators.serve("web");
    wait_until_programmed(&pages);
    let found = || {
        let list = emulators.read("publicIPAddresses").1["value"].clone();
        let is_made =
            |ip: &&Value| ip["name"].as_str().is_some_and(|n| n.starts_with("kubernetes-"));
        list.as_array().unwrap().iter().find(is_made).cloned().unwrap()
    };
    let made = found();

    let (code, out, err) = emulators.run(&["adopt", "web", "--undo", "--dry-run"]);
    assert!(code == 0 && out.starts_with("~ change public IP kubernetes-"), "{out}{err}");
    assert!(out.contains("Ballast never deletes kubernetes-"), "{out}");
    assert_eq!(found()["tags"], made["tags"]);

    let (code, out, err) = emulators.run(&["adopt", "web", "--undo", "--yes", "-o", "json"]);
    assert!(code == 0 && err.contains("PUT publicIPAddresses/kubernetes-"), "{out}{err}");
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["action"], "undo", "{out}");
    let byo = json!({"k8s-azure-cluster-name": "", "k8s-azure-service": ""});
    assert_eq!(found()["tags"], byo);
    let (code, _, err) = emulators.run(&["adopt", "web", "--undo", "--yes"]);
    assert!(code == 1 && err.contains("is a BYO public IP already"), "{code} {err}");
    let before = lists(&emulators);
    wait_for("the next check", || (lists(&emulators) > before + 1).then_some(()));
    wait_until_programmed(&pages);
    assert_eq!(found()["tags"], byo, "the controller takes it for no drift");

    delete(&emulators, "web");
    assert_eq!(found()["id"], made["id"]);
    assert_eq!(controller.terminate(), 0);
}

#[test]
fn a_service_on_a_public_ip_of_ballasts_has_nothing_to_hand_over() {
    let emulators = Emulators::start();
    let (controller, _) = emulators.controller();
    emulators.serve("web");
    let (code, _, err) = emulators.run(&["adopt", "web", "--yes"]);
    assert!(code == 1 && err.contains("is Ballast's already"), "{code} {err}");
    let (code, _, err) = emulators.run(&["adopt", "none", "--yes"]);
    assert!(code == 64 && err.contains("no Service of type LoadBalancer"), "{code} {err}");
    assert_eq!(controller.terminate(), 0);
}
