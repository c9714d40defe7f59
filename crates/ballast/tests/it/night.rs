//! The ten questions of docs/three-in-the-morning.md, each answered by one command within ten
//! seconds.

use crate::support::{Emulators, Process, http, run, wait_for};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

const TIMEOUT: &str = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";
const QUOTA: &str = "PublicIPCountLimitReached";
/// How long an answer may take: no limit of the test, but what is promised.
const PROMISED: Duration = Duration::from_secs(10);

/// A command's output, which came within the time promised and has all of these parts.
fn answer(question: &str, emulators: Option<&Emulators>, words: &[&str], parts: &[&str]) -> String {
    let from = Instant::now();
    let (_, out, err) = match emulators {
        Some(emulators) => emulators.run(words),
        None => run(words),
    };
    let took = from.elapsed();
    assert!(took < PROMISED, "{question} took {took:?}");
    for part in parts {
        assert!(out.contains(part), "{question}: no {part:?} in:\n{out}{err}");
    }
    println!("# {question}\n$ ballast {}\n{out}", words.join(" "));
    out
}

/// Two Services work; then one is edited, a third is created for which Azure has no address, and
/// an operator deletes a rule by hand.
fn trouble(emulators: &Emulators, server: &str) {
    emulators.create_service("web");
    emulators.create_service("shop");
    let address = emulators.address_of("web");
    assert!(!address.is_empty());
    emulators.address_of("shop");
    let path = "/api/v1/namespaces/default/services/web?fieldManager=kubectl-edit";
    let patch = json!({"metadata": {"annotations": {TIMEOUT: "9"}}});
    assert_eq!(http(&emulators.kube, "PATCH", path, Some(&patch)).0, 200);
    let is_written = |body: &Value| {
        let rules = body["properties"]["loadBalancingRules"].as_array().cloned();
        let rules = rules.unwrap_or_default();
        let minutes = |rule: &Value| rule.pointer("/properties/idleTimeoutInMinutes").cloned();
        rules.len() == 2 && rules.iter().any(|rule| minutes(rule) == Some(json!(9)))
    };
    wait_for("the edit in Azure", || is_written(&emulators.balancer()).then_some(()));
    let limit = json!([{"method": "PUT", "path": "publicIPAddresses/", "times": "always",
        "status": 409, "code": QUOTA, "message": "The limit of 3 is reached."}]);
    emulators.order(&limit);
    emulators.create_service("broken");
    wait_for("Azure's answer", || {
        let (_, out, _) = run(&["status", "--server", server]);
        out.contains(QUOTA).then_some(())
    });
    let mut body = emulators.balancer();
    let rules = body["properties"]["loadBalancingRules"].as_array_mut().unwrap();
    rules.pop();
    emulators.write("loadBalancers/kubernetes", &body);
    wait_for("the repair", || {
        let (_, out, _) = run(&["history", "--server", server]);
        out.contains("because repairs drift").then_some(())
    });
}

#[test]
fn ten_questions_have_one_command_each() {
    let emulators = Emulators::start();
    let (controller, pages) = emulators.controller_with(&["--check-interval", "1"]);
    let server = format!("http://{pages}");
    trouble(&emulators, &server);
    let of = |words: &[&'static str]| -> Vec<String> {
        let more = ["--server", &server].map(str::to_owned);
        words.iter().map(|word| (*word).to_owned()).chain(more).collect()
    };
    let ask = |question: &str, words: &[&'static str], parts: &[&str]| {
        let words = of(words);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        answer(question, None, &words, parts)
    };
    let broken = "default/broken  rejected by Azure";
    ask("Which Service is broken?", &["status"], &[broken, "default/web"]);
    let out = ask("Since when?", &["status"], &["SINCE"]);
    let line = out.lines().find(|line| line.starts_with("default/broken")).unwrap();
    let since = line.split("rejected by Azure").nth(1).unwrap().trim();
    assert!(since.starts_with(|c: char| c.is_ascii_digit()), "{line}");
    ask("Why?", &["status"], &[QUOTA, "The limit of 3 is reached."]);
    let tried = ["PUT publicIPAddresses/kubernetes-", "rejected by Azure after", QUOTA];
    ask("What was tried, and Azure's answer?", &["history", "broken"], &tried);
    ask("What comes next?", &["status"], &["attempt ", "next in "]);
    let changed = ["DRIFT loadBalancers/kubernetes: rule ", "is gone", "az monitor activity-log"];
    ask("What changed in Azure in the last hour?", &["history", "--since", "1h"], &changed);
    let edit = ["default/web was edited by kubectl-edit: metadata.annotations[", "nothing → \"9\""];
    ask("Which edit, by whom, caused it?", &["history", "web"], &edit);
    let manifest = emulators.path("edited.json");
    let edited = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web"}, "spec": {"type": "ClusterIP"}});
    std::fs::write(&manifest, edited.to_string()).unwrap();
    let web = emulators.address_of("web");
    let taken = format!("releases {web}");
    let words = ["plan", "--service", "web", "--as-if", manifest.to_str().unwrap()];
    let parts = ["- delete public IP kubernetes-", "→ removed", &taken];
    // As the API server takes it: node ports and the status go, which a ClusterIP cannot have.
    answer("What would my edit change?", Some(&emulators), &words, &parts);
    let words = ["plan", "--service", "web", "--as-if-deleted", "web"];
    answer("What will a deletion take away?", Some(&emulators), &words, &parts);
    let kubeconfig = emulators.path("kubeconfig").display().to_string();
    let words = ["pause", "web", "--kubeconfig", &kubeconfig];
    answer("How do I stop it?", None, &words, &["Service default/web is paused"]);
    // Without the controller nothing is written, and what works goes on.
    assert_eq!(controller.terminate(), 0);
    assert_eq!(emulators.address_of("web"), web);
    assert_eq!(
        emulators.balancer()["properties"]["loadBalancingRules"].as_array().unwrap().len(),
        2
    );
    stops_everything(&emulators, &kubeconfig);
}

/// A controller that leads by a Lease writes nothing more, whatever it is.
fn stops_everything(emulators: &Emulators, kubeconfig: &str) {
    let words = emulators.words(&["run", "--port=0"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut controller = Process::start_logging(&words);
    let server = format!("http://{}", controller.address());
    wait_for("a leader", || {
        let (_, out, _) = run(&["status", "--server", &server]);
        out.contains("Leader: this process").then_some(())
    });
    let words = ["pause", "--all", "--kubeconfig", kubeconfig];
    answer("How do I stop everything?", None, &words, &["within 6 s: all writes to Azure"]);
    let from = Instant::now();
    wait_for("the pause", || {
        let (_, out, _) = run(&["status", "--server", &server]);
        out.contains("all writes to Azure are paused").then_some(())
    });
    assert!(from.elapsed() < PROMISED, "it took {:?}", from.elapsed());
    assert_eq!(controller.terminate(), 0);
}

/// What will a deletion take away, where consumers are connected to it? The plan says beforehand
/// that it takes nothing, and what would let it.
#[test]
fn a_plan_says_who_is_connected_to_what_would_be_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let scenario = scenarios.join("migrate-behind-private-link.txt");
    let text = std::fs::read_to_string(scenario).unwrap();
    let file = |name: &str| {
        let (_, rest) = text.split_once(&format!("-- {name} --\n")).unwrap();
        rest.split("\n-- ").next().unwrap()
    };
    let mut estate: Value = serde_json::from_str(file("estate.json")).unwrap();
    let link = estate.as_array_mut().unwrap().last_mut().unwrap();
    let id = format!("{}/privateEndpointConnections/shop-front", link["id"].as_str().unwrap());
    link["properties"]["privateEndpointConnections"] = json!([{"name": "shop-front", "id": id,
        "properties": {"privateLinkServiceConnectionState": {"status": "Approved"}}}]);
    let deleted = file("cluster.yaml").replace(
        r#""finalizers": ["#,
        r#""deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["#,
    );
    let create = r#""service.beta.kubernetes.io/azure-pls-create": "true""#;
    let agrees = format!(r#"{create}, "ballast.dev/disconnect-private-endpoints": "true""#);
    let agreed = deleted.replace(create, &agrees);
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (config, estate) =
        (write("azure.json", file("azure.json")), write("estate.json", &estate.to_string()));
    let (deleted, agreed) = (write("deleted.yaml", &deleted), write("agreed.yaml", &agreed));
    let plan = |manifest: &str| {
        let words = ["plan", "-f", manifest, "--azure", &estate, "--cloud-config", &config];
        let (_, out, err) = run(&words);
        assert_eq!(err, "", "{out}");
        out
    };
    let link = "pls-a00000016f3674599954c07992ea9537";
    let goes = |out: &str| out.lines().any(|line| line.starts_with("- delete"));
    let out = plan(&deleted);
    let said = format!(
        "ballast.dev/disconnect-private-endpoints: must be true before Private Link Service {link} \
         is deleted, because private endpoints are connected to it (shop-front)"
    );
    assert!(out.contains(&said) && !goes(&out), "{out}");
    let out = plan(&agreed);
    assert!(!out.contains(&said) && goes(&out) && out.contains(link), "{out}");
}
