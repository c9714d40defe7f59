//! Ballast starts on what the reference left: each recorded end state, loaded as the estate.

use crate::support::network;
use crate::support::replay::{Case, Run, cases};
use kube_emulator::{ObjectRef, Part, Patch};
use serde_json::{Value, json};
use sim::Laboratory;
use std::collections::BTreeMap;

const LIMIT_MS: u64 = 100_000;

/// What the reference left stands in Azure and in Kubernetes when Ballast starts.
struct Inherited {
    lab: Laboratory,
    /// Recorded UID → live UID.
    uids: BTreeMap<String, String>,
}

impl Inherited {
    fn of(case: &Case) -> Self {
        let mut run = Run::asleep(case);
        let mut data = case.data.clone();
        for object in data["objects"].as_array_mut().into_iter().flatten() {
            if object["kind"] == "Pod" {
                // The reference guards the Pods of an egress; the recordings keep Services only.
                object["metadata"]["finalizers"] = json!(["servicegateway.azure.com/pod-cleanup"]);
            }
        }
        run.play(&Case { name: case.name.clone(), data });
        let uids = run.uids.iter().map(|(live, old)| (old.clone(), live.clone())).collect();
        let mut inherited = Self { lab: run.lab, uids };
        inherited.load_azure(&case.data["expect"]);
        inherited.load_kubernetes(&case.data["expect"]["services"]);
        inherited
    }

    fn renamed(&self, value: &Value) -> Value {
        let mut text = value.to_string();
        for (old, live) in &self.uids {
            let base = |uid: &str| model::ServiceUid::new(uid).base_name();
            text = text.replace(&base(old), &base(live)).replace(old, live);
        }
        serde_json::from_str(&text).expect("still JSON")
    }

    fn load_azure(&mut self, expect: &Value) {
        let expect = self.renamed(expect);
        for (id, resource) in expect["resources"].as_object().into_iter().flatten() {
            if resource.is_null() {
                continue;
            }
            let mut whole = self.lab.azure.resource(id).unwrap_or_default();
            if !id.contains("/microsoft.compute/") {
                whole = Value::Null;
            }
            merge(&mut whole, resource);
            whole["id"] = whole.get("id").cloned().unwrap_or_else(|| json!(id));
            self.lab.azure.seed(vec![whole]);
        }
        let mut tables = json!({"services": {}, "locations": {}});
        let rows = expect["gateway"].as_object().cloned().unwrap_or_default();
        for (row, value) in &rows {
            if let Some(name) = row.strip_prefix("service ") {
                let pools = value["pools"].as_array().cloned().unwrap_or_default();
                let pools: Vec<Value> = pools.iter().map(|id| json!({"id": id})).collect();
                let mut properties =
                    json!({"serviceType": value["type"], "loadBalancerBackendPools": pools});
                if value["natGateway"].as_str().is_some_and(|id| !id.is_empty()) {
                    properties["publicNatGatewayId"] = value["natGateway"].clone();
                }
                tables["services"][name] = json!({"name": name, "properties": properties});
            } else if let Some(location) = row.strip_prefix("location ") {
                tables["locations"][location] = value.clone();
            }
        }
        if !rows.is_empty() {
            self.lab.azure.seed_gateway(&network("serviceGateways/servicegateway"), &tables);
        }
    }

    fn load_kubernetes(&mut self, services: &Value) {
        let now = self.lab.now_ms;
        for (key, state) in services.as_object().into_iter().flatten() {
            let (namespace, name) = key.split_once('/').expect("namespace/name");
            let object = || ObjectRef::new("services", namespace, name);
            if state["gone"] == true || self.lab.kubernetes.get(object()).is_err() {
                continue;
            }
            let finalizers = json!({"metadata": {"finalizers": state["finalizers"]}});
            let patch = Patch::Merge(finalizers);
            self.lab.kubernetes.patch(object(), Part::Main, &patch, now).expect("finalizers");
            let ingress = state["ingress"].as_array().cloned().unwrap_or_default();
            if !ingress.is_empty() {
                let body = json!({"status": {"loadBalancer": {"ingress": ingress}}});
                let patch = Patch::Merge(body);
                self.lab.kubernetes.patch(object(), Part::Status, &patch, now).expect("status");
            }
        }
    }
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(from)) if into.len() == from.len() => {
            into.iter_mut().zip(from).for_each(|(into, from)| merge(into, from));
        }
        (into, from) => *into = from.clone(),
    }
}

#[test]
fn what_the_reference_left_is_taken_over_without_a_write() {
    let mut wrong = Vec::new();
    for case in cases() {
        let mut inherited = Inherited::of(&case);
        inherited.lab.azure.clear_calls();
        inherited.lab.settle(LIMIT_MS);
        let writes: Vec<String> = inherited
            .lab
            .azure
            .calls()
            .iter()
            .filter(|call| call.is_write())
            .map(|call| {
                format!("{} {} {}", call.method, call.path, call.body.clone().unwrap_or_default())
            })
            .collect();
        let controller = inherited.lab.controller();
        let forecast = explain::forecast::forecast(controller.world(), controller.policy());
        assert!(forecast.is_empty(), "{}: {forecast:#?}", case.name);
        if !writes.is_empty() {
            wrong.push(format!("{}\n    {}", case.name, writes.join("\n    ")));
        }
    }
    assert!(wrong.is_empty(), "{} cases are changed:\n{}", wrong.len(), wrong.join("\n"));
}
