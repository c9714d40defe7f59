//! `ballast migrate` against emulators in processes of their own.

use crate::support::{Emulators, Process, ballast, http, outcome};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

fn writes(emulators: &Emulators) -> usize {
    emulators.azure_calls().iter().filter(|c| c["method"] != "GET").count()
}

/// The cloud config with these keys in place of its own.
fn write_config(emulators: &Emulators, name: &str, keys: &Value) {
    let text = fs::read_to_string(emulators.path("azure.json")).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    for (key, value) in keys.as_object().unwrap() {
        config[key] = value.clone();
    }
    fs::write(emulators.path(name), config.to_string()).unwrap();
}

fn migrate(emulators: &Emulators, config: &str, more: &[&str]) -> (i32, String, String) {
    let path = |name: &str| emulators.path(name).display().to_string();
    let mut words = vec!["migrate".to_owned()];
    words.extend(["--kubeconfig".to_owned(), path("kubeconfig")]);
    words.extend(["--cloud-config".to_owned(), path(config)]);
    words.extend(more.iter().map(ToString::to_string));
    let command = ballast().args(words).current_dir(emulators.folder()).output();
    outcome(command.unwrap())
}

fn journal(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Two Services behind two nodes of two sets, on one load balancer.
fn estate() -> Emulators {
    let emulators = Emulators::start();
    emulators.create_node_on("pool000000", "10.224.0.5", "pool", 0);
    emulators.create_service("api");
    emulators.create_service("web");
    emulators.patch_service("web", &json!({"metadata": {"labels": {"team": "odd"}}}));
    let (controller, _) = emulators.controller();
    emulators.address_of("api");
    emulators.address_of("web");
    assert_eq!(controller.terminate(), 0);
    write_config(
        &emulators,
        "several.json",
        &json!({"multipleStandardLoadBalancerConfigurations": [
            {"name": "kubernetes", "primaryVMSet": "vmss"},
            {"name": "odd", "primaryVMSet": "pool",
                "serviceLabelSelector": {"matchLabels": {"team": "odd"}}}]}),
    );
    emulators
}

#[test]
fn a_service_moves_to_another_load_balancer_and_back_with_its_address() {
    let emulators = estate();
    let addresses = || (emulators.address_of("api"), emulators.address_of("web"));
    let (before, made) = (addresses(), writes(&emulators));

    let (code, out, err) = migrate(&emulators, "several.json", &["--to=multiple", "--dry-run"]);
    assert_eq!(code, 0, "{out}{err}");
    let shown = [
        "2 Azure writes in 2 rounds",
        "cut off: default/web\n",
        "back: default/web\n",
        "1 Service from write 1 to write 2: 2 writes, 2 rounds (default/web)",
        "2 addresses are kept.",
    ];
    shown.iter().for_each(|part| assert!(out.contains(part), "{part:?} is missing in:\n{out}"));
    let (code, _, err) = migrate(&emulators, "several.json", &[]);
    assert_eq!(code, 64);
    assert!(err.contains("no confirmation is possible"), "{err}");
    assert_eq!(writes(&emulators), made, "nothing was written so far");

    let go = ["--yes", "--leader-elect=false", "--journal=there.jsonl"];
    let (code, out, err) = migrate(&emulators, "several.json", &go);
    assert_eq!(code, 0, "{out}{err}");
    assert!(err.contains("Done with 2 Azure writes"), "{err}");
    assert_eq!((addresses(), writes(&emulators)), (before.clone(), made + 2));
    let lines = journal(&emulators.path("there.jsonl"));
    let events: Vec<&str> = lines.iter().map(|l| l["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["begin", "write", "answered", "write", "answered", "end"]);
    assert_eq!(lines[1]["method"], "PUT");
    let frontends = |body: &Value| {
        body["properties"]["frontendIPConfigurations"].as_array().map_or(0, Vec::len)
    };
    assert_eq!((frontends(&lines[1]["before"]), frontends(&lines[1]["body"])), (2, 1));
    assert_eq!((&lines[3]["before"], frontends(&lines[3]["body"])), (&Value::Null, 1));
    assert_eq!(lines[5]["outcome"], "done");

    let (code, out, _) = migrate(&emulators, "several.json", &go);
    assert_eq!(code, 0);
    assert!(out.contains("Nothing to migrate"), "{out}");

    // The way back, after a beginning that was cut short.
    let cut = "{\"at\":\"then\",\"event\":\"begin\"}\n{\"event\":\"write\"}\n{\"event\":\"wri";
    fs::write(emulators.path("back.jsonl"), format!("{cut}\n")).unwrap();
    let back = ["--to=single", "--yes", "--leader-elect=false", "--journal=back.jsonl"];
    let (code, out, err) = migrate(&emulators, "several.json", &back);
    assert_eq!(code, 0, "{out}{err}");
    assert!(err.contains("Goes on with the migration begun at then: 1 writes"), "{err}");
    assert!(err.contains("Put this into the cloud config"), "{err}");
    assert_eq!(addresses(), before);
}

#[test]
fn it_ends_when_it_was_told_to_and_what_is_done_stays() {
    let emulators = estate();
    // Somebody else holds the lease.
    let words = emulators.words(&["run", "--port=0"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut other = Process::start_logging(&words);
    other.line_with("became leader");
    let made = writes(&emulators);
    let (code, _, err) = migrate(&emulators, "several.json", &["--yes", "--limit=4"]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("Run the same command again to go on"), "{err}");
    assert_eq!(writes(&emulators), made, "nobody writes without the lease");
    assert_eq!(other.terminate(), 0);
    let (code, _, err) = migrate(&emulators, "several.json", &["--yes"]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("Goes on with the migration"), "{err}");
}

/// Two Services over nodes beside a Service Gateway.
fn over_nodes() -> Emulators {
    let emulators = Emulators::start_with(&["--service-gateway"]);
    emulators.configure(&json!({"loadBalancerSku": "standard", "serviceGatewayEnabled": false,
        "loadBalancerBackendPoolConfigurationType": "nodeIP",
        "layoutMigration": {"drainSeconds": 1}}));
    emulators.create_service("api");
    emulators.create_service("web");
    let (controller, _) = emulators.controller();
    emulators.address_of("api");
    emulators.address_of("web");
    assert_eq!(controller.terminate(), 0);
    emulators
}

/// The SKU of each load balancer.
fn skus(emulators: &Emulators) -> Vec<String> {
    let all = emulators.resources();
    let balancers = all.iter().filter(|r| r["type"] == "Microsoft.Network/loadBalancers");
    balancers.map(|r| r["sku"]["name"].as_str().unwrap_or("").to_owned()).collect()
}

/// There and back: each Service has both addresses for a while, and in the end only the new one;
/// nothing of the former load balancers is left.
#[test]
fn services_move_to_container_load_balancers_and_back() {
    let emulators = over_nodes();
    let before = (emulators.address_of("api"), emulators.address_of("web"));

    let to_pods = ["--to=container-load-balancer", "--keep-both=2s"];
    let (code, out, err) =
        migrate(&emulators, "azure.json", &[&to_pods[..], &["--dry-run"]].concat());
    assert_eq!(code, 0, "{out}{err}");
    for part in ["No Service is interrupted.", "Addresses change: default/api, default/web"] {
        assert!(out.contains(part), "{part:?} is missing in:\n{out}");
    }
    let go = ["--yes", "--leader-elect=false"];
    let (code, out, err) = migrate(&emulators, "azure.json", &[&to_pods[..], &go].concat());
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        err.contains("\"from\":{\"loadBalancerBackendPoolConfigurationType\":\"nodeIP\""),
        "{err}"
    );
    let now = (emulators.address_of("api"), emulators.address_of("web"));
    assert!(now.0 != before.0 && now.1 != before.1, "{before:?} {now:?}");
    assert_eq!(skus(&emulators), ["Service", "Service"]);

    write_config(
        &emulators,
        "pods.json",
        &json!({"loadBalancerSku": "service", "serviceGatewayEnabled": true,
            "loadBalancerBackendPoolConfigurationType": "podIP",
            "layoutMigration": {"drainSeconds": 1}}),
    );
    let back = ["--to=standard", "--keep-both=2s"];
    let (code, out, err) = migrate(&emulators, "pods.json", &[&back[..], &go].concat());
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(skus(&emulators), ["Standard"]);
}

/// Signal 9 after a write, three times: the same command goes on where it was, and no status is
/// ever without an address.
#[test]
fn a_migration_that_is_killed_goes_on_and_comes_to_its_end() {
    let emulators = over_nodes();
    let before = (emulators.address_of("api"), emulators.address_of("web"));
    let journal_flag = format!("--journal={}", emulators.path("killed.jsonl").display());
    let words = [
        "migrate",
        "--to=container-load-balancer",
        "--keep-both=2s",
        "--yes",
        "--leader-elect=false",
        &journal_flag,
    ];
    let all = emulators.words(&words);
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    for _ in 0..3 {
        let mut killed = Process::start_logging(&all);
        killed.line_with("  answered: ");
        killed.kill();
        for name in ["api", "web"] {
            let path = format!("/api/v1/namespaces/default/services/{name}");
            let (_, service) = http(&emulators.kube, "GET", &path, None);
            let told = service.pointer("/status/loadBalancer/ingress/0/ip");
            assert!(told.is_some(), "{service:#}");
        }
    }
    let (code, out, err) = emulators.run(&words);
    assert_eq!(code, 0, "{out}{err}");
    assert!(err.contains("Goes on with the migration begun at "), "{err}");
    let lines = journal(&emulators.path("killed.jsonl"));
    assert_eq!(
        (&lines[0]["event"], &lines[lines.len() - 1]["outcome"]),
        (&json!("begin"), &json!("done"))
    );
    let now = (emulators.address_of("api"), emulators.address_of("web"));
    assert!(now.0 != before.0 && now.1 != before.1, "{before:?} {now:?}");
    assert_eq!(skus(&emulators), ["Service", "Service"]);
}
