//! The real binary against emulators in processes of their own.

use crate::support::{Emulators, Process, http, http_text, run, wait_for};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;

/// The part of the output that lies below a heading line.
fn changed_lines(plan: &str) -> Vec<&str> {
    plan.lines().map(str::trim).filter(|l| l.starts_with(['+', '-', '~'])).collect()
}

#[test]
fn up_gives_two_services_their_addresses_and_ends_by_itself() {
    let (code, out, err) = run(&["up", "--for", "3"]);
    assert_eq!(code, 0, "{err}");
    for part in [
        "Service default/web is programmed at 20.",
        "Service default/api is programmed at 10.",
        "Stopped: 2 of 2 Services programmed",
        "--kubeconfig",
    ] {
        assert!(out.contains(part), "{part:?} is missing in:\n{out}");
    }
    assert!(!out.contains('\u{1b}'), "no escape sequence where nobody sees colours");
}

#[test]
fn up_with_a_data_path_carries_a_request_to_a_node() {
    let mut up = Process::start(&["up", "--data-path", "--data-path-second", "50"]);
    let line = up.line_with("data path: 20.");
    let at = line.rsplit(" is at ").next().unwrap().trim().to_owned();
    let answer = wait_for("an answer of a node", || {
        // Until the probe has asked, connections are reset.
        let mut stream = TcpStream::connect(&at).ok()?;
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        (!answer.is_empty()).then_some(answer)
    });
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("\r\n\r\nnode vmss00000"), "{answer}");
    assert_eq!(up.terminate(), 0);
}

#[test]
fn up_ends_on_sigterm_and_removes_its_files() {
    let mut up = Process::start(&["up"]);
    let line = up.line_with("kubeconfig");
    let path = line.split_whitespace().last().unwrap().to_owned();
    up.line_with("is programmed at");
    assert!(std::path::Path::new(&path).exists());
    assert_eq!(up.terminate(), 0);
    assert!(!std::path::Path::new(&path).exists(), "{path} is left over");
}

#[test]
fn up_leaves_its_files_in_the_directory_that_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let asked = folder.path().join("new/demo");
    let words = ["up", "--for", "1", "--directory", asked.to_str().unwrap()];
    let (code, out, err) = run(&words);
    assert_eq!(code, 0, "{out}{err}");
    let config = std::fs::read_to_string(asked.join("cloud-config.json")).unwrap();
    assert!(config.contains("subscriptionId") && asked.join("kubeconfig").exists(), "{config}");

    let taken = folder.path().join("file");
    std::fs::write(&taken, "").unwrap();
    let (code, _, err) = run(&["up", "--for", "1", "--directory", taken.to_str().unwrap()]);
    assert!(code == 73 && err.contains("--directory"), "{code} {err}");
}

#[test]
fn a_service_is_programmed_planned_shown_edited_and_deleted() {
    let emulators = Emulators::start();
    emulators.create_service("web");

    let (code, out, err) = emulators.run(&["plan", "--exit-code"]);
    assert_eq!(code, 2, "{out}{err}");
    assert!(out.contains("+ create public IP"), "{out}");
    let calls = emulators.azure_calls();
    assert!(!calls.is_empty() && calls.iter().all(|c| c["method"] == "GET"), "plan never writes");

    let (controller, pages) = emulators.controller();
    let address = emulators.address_of("web");
    let status = wait_for("the status", || {
        let (code, status) = http(&pages, "GET", "/status", None);
        let state = status.pointer("/services/0/state").and_then(Value::as_str);
        (code == 200 && state == Some("programmed")).then_some(status)
    });
    assert_eq!(status.pointer("/services/0/addresses"), Some(&json!([address])));
    assert_eq!(http_text(&pages, "GET", "/readyz", None), (200, "ok\n".to_owned()));
    let metrics = http_text(&pages, "GET", "/metrics", None).1;
    assert!(metrics.contains("ballast_services{state=\"programmed\"} 1"), "{metrics}");
    let (code, out, _) = run(&["status", "--server", &format!("http://{pages}")]);
    assert!(code == 0 && out.contains("default/web") && out.contains(&address), "{out}");
    assert_eq!(controller.terminate(), 0);

    let (code, out, err) = emulators.run(&["plan", "--exit-code"]);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(out, "Nothing to do for 1 Service.\n");
    let (code, out, _) = emulators.run(&["plan", "--against-existing"]);
    assert!(code == 0 && out.starts_with("default/web: nothing would change"), "{out}");
    let (code, out, _) = emulators.run(&["status"]);
    assert!(code == 0 && out.contains("programmed"), "{out}");

    edit(&emulators);
    delete(&emulators);
}

/// A step may come to what the first one has no need of: Private Link Services are looked for once
/// there is a private frontend. The plan is shown to its end all the same.
#[test]
fn a_plan_is_shown_to_its_end() {
    let emulators = Emulators::start();
    let (controller, _) = emulators.controller();
    emulators.serve("web");
    wait_for("an empty plan", || (emulators.run(&["plan", "--exit-code"]).0 == 0).then_some(()));
    assert_eq!(controller.terminate(), 0);
    let annotation = "service.beta.kubernetes.io/azure-load-balancer-internal";
    emulators.patch_service("web", &json!({"metadata": {"annotations": {annotation: "true"}}}));
    let (code, out, err) = emulators.run(&["plan", "--exit-code"]);
    assert_eq!(code, 2, "{out}{err}");
    let lines = changed_lines(&out);
    let has = |words: &str| lines.iter().any(|line| line.starts_with(words));
    assert!(has("+ create load balancer kubernetes-internal in rg for default/web"), "{out}");
    assert!(has("- delete load balancer kubernetes in rg for default/web"), "{out}");
    assert!(has("- delete public IP kubernetes-"), "{out}");
    assert!(!out.contains("waits on"), "{out}");
}

/// What `plan` shows before an edit and after it is what `run` then writes.
fn edit(emulators: &Emulators) {
    let annotation = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";
    let manifest = emulators.path("edited.json");
    let edited = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "annotations": {annotation: "10"}}});
    std::fs::write(&manifest, edited.to_string()).unwrap();
    let supposed = emulators.run(&["plan", "--exit-code", "--as-if", manifest.to_str().unwrap()]);
    let (code, out, _) = emulators.run(&["plan", "--exit-code"]);
    assert_eq!(code, 0, "nothing has been edited yet: {out}");
    emulators.patch_service("web", &json!({"metadata": {"annotations": {annotation: "10"}}}));
    let (code, out, _) = emulators.run(&["plan", "--exit-code"]);
    assert_eq!(code, 2, "{out}");
    assert_eq!((supposed.0, &supposed.1), (code, &out), "{}", supposed.2);
    let lines = changed_lines(&out);
    assert_eq!(lines.len(), 2, "{out}");
    assert!(lines[0].starts_with("~ change load balancer kubernetes in rg for default/web"));
    assert!(lines[1].ends_with("-TCP-80].properties.idleTimeoutInMinutes: 4 → 10"), "{out}");
    let (controller, _) = emulators.controller();
    wait_for("the change", || {
        let (code, _, _) = emulators.run(&["plan", "--exit-code"]);
        (code == 0).then_some(())
    });
    assert_eq!(controller.terminate(), 0);
}

fn delete(emulators: &Emulators) {
    let path = "/api/v1/namespaces/default/services/web";
    assert_eq!(http(&emulators.kube, "DELETE", path, None).0, 200);
    let (controller, _) = emulators.controller();
    wait_for("the Service's end", || {
        (http(&emulators.kube, "GET", path, None).0 == 404).then_some(())
    });
    assert_eq!(controller.terminate(), 0);
    let (code, out, _) = emulators.run(&["plan", "--exit-code"]);
    assert_eq!((code, out.as_str()), (0, "Nothing to do: no Service asks for a load balancer.\n"));
}

#[test]
fn the_cloud_config_may_be_in_a_secret_and_a_second_process_waits_for_the_lease() {
    let emulators = Emulators::start();
    let text = std::fs::read_to_string(emulators.path("azure.json")).unwrap();
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "azure", "namespace": "default"},
        "stringData": {"cloud-config": text}});
    let made = http(&emulators.kube, "POST", "/api/v1/namespaces/default/secrets", Some(&secret));
    assert_eq!(made.0, 201, "{}", made.1);
    emulators.create_service("web");
    let kubeconfig = emulators.path("kubeconfig").display().to_string();
    let words = [
        "run",
        "--kubeconfig",
        &kubeconfig,
        "--cloud-config-secret-namespace=default",
        "--cloud-config-secret-name=azure",
        "--leader-elect-resource-namespace=default",
        "--port=0",
    ];
    let mut first = Process::start_logging(&words);
    let summary = first.line_with("Ballast starts");
    for part in [env!("CARGO_PKG_VERSION"), "kubernetes", "repair", "default/ballast"] {
        assert!(summary.contains(part), "{part:?}: {summary}");
    }
    emulators.address_of("web");
    let mut second = Process::start_logging(&words);
    second.line_with("the lease is not ours");
    assert_eq!(first.terminate(), 0);
    second.line_with("became leader");
    assert_eq!(second.terminate(), 0);
}
