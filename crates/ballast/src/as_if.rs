//! Services as they would be if manifests were applied to a running cluster, or if they were
//! deleted.
//!
//! # Guarantees
//! Nothing is written: each Service is read, the manifest laid over it as `kubectl apply` would,
//! and the outcome is what the API server says that it would store (`dryRun=All`), its webhooks
//! included. Where this user may not try a write, the emulated API server says it. What the
//! manifest does not name stays as it is in the cluster, except for what its last `kubectl apply`
//! named. What a server makes up for a new Service, such as node ports, is made up here, the same
//! at every run.

use crate::cluster::{self, Rehearsal};
use crate::exit::{Exit, Failure};
use crate::manifest::{self, Manifest};
use kube::Client;
use model::kubernetes::Service;
use model::{Policy, ServiceName};
use observe::{Interner, KubernetesFact};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// Where kubectl keeps what was applied last.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Services to plan with in place of those in the cluster.
#[derive(Debug, Default)]
pub struct AsIf {
    /// What the cluster would tell of them.
    pub facts: Vec<KubernetesFact>,
    /// The manifests, laid over what there is.
    pub manifests: Vec<Manifest>,
}

/// Reads manifests, and the Services that they are about from the cluster.
///
/// # Errors
/// A manifest cannot be read or is not of a Service, an API server would refuse the outcome, or the
/// cluster cannot be read.
pub async fn read(
    asked: Asked<'_>,
    client: &Client,
    policy: &Policy,
    classes: &BTreeSet<String>,
) -> Result<AsIf, Failure> {
    let mut manifests = manifest::read(asked.manifests)?;
    let mut revisions = BTreeMap::new();
    for manifest in &mut manifests {
        // As kubectl does where the manifest names none.
        if let Some(Value::Object(metadata)) = manifest.object.pointer_mut("/metadata") {
            metadata.entry("namespace").or_insert_with(|| json!(client.default_namespace()));
        }
        let (name, path) = address(manifest)?;
        let live = cluster::find(client, &path).await?;
        let revision = live.as_ref().and_then(|s| s["metadata"]["resourceVersion"].as_str());
        revisions.insert(name, Arc::<str>::from(revision.unwrap_or_default()));
        let wanted = applied(live.as_ref(), &manifest.object);
        manifest.object = stored(client, live.as_ref(), wanted, (manifest, &path)).await?;
    }
    let mut facts = deleted(asked.deleted, client, classes).await?;
    let services = manifest::cluster(&manifests, policy, classes)?.services;
    let fact = |service: Arc<Service>| {
        let mut service = Arc::unwrap_or_clone(service);
        // One that is older than what the cluster tells would be taken for late news.
        if let Some(revision) = revisions.remove(&service.name) {
            service.revision = revision;
        }
        KubernetesFact::Service(Box::new(service))
    };
    facts.extend(services.into_values().map(fact));
    Ok(AsIf { facts, manifests })
}

/// What is supposed.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Manifests that are applied.
    pub manifests: &'a [PathBuf],
    /// Services that are deleted, as `[namespace/]name`.
    pub deleted: &'a [String],
}

/// Services as they are once `kubectl delete` has been called: those with a finalizer stay until
/// it goes.
async fn deleted(
    names: &[String],
    client: &Client,
    classes: &BTreeSet<String>,
) -> Result<Vec<KubernetesFact>, Failure> {
    let mut facts = Vec::new();
    for name in names {
        let (namespace, name) = name.split_once('/').unwrap_or((client.default_namespace(), name));
        let path = format!("/api/v1/namespaces/{namespace}/services/{name}");
        let Some(mut live) = cluster::find(client, &path).await? else {
            let text = format!(
                "--as-if-deleted {namespace}/{name}: there is no such Service. Check the name"
            );
            return Err(Failure::new(Exit::Input, text));
        };
        live["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
        let mut interner = Interner::default();
        let read = observe::kubernetes::service_from_value(&live, classes, &mut interner);
        let service = read.map_err(|e| Failure::new(Exit::Input, e))?;
        facts.push(match service.finalizers.is_empty() {
            true => KubernetesFact::ServiceGone(service.uid),
            false => KubernetesFact::Service(Box::new(service)),
        });
    }
    Ok(facts)
}

/// The object as an API server would store it.
async fn stored(
    client: &Client,
    live: Option<&Value>,
    wanted: Value,
    (manifest, path): (&Manifest, &str),
) -> Result<Value, Failure> {
    let mut body = wanted.clone();
    for (key, value) in [("apiVersion", "v1"), ("kind", "Service")] {
        body[key] = json!(value);
    }
    for key in ["resourceVersion", "managedFields"] {
        drop(body["metadata"].as_object_mut().and_then(|m| m.remove(key)));
    }
    let (method, at) = match live {
        Some(_) => ("PUT", path),
        None => ("POST", path.rsplit_once('/').map_or(path, |(list, _)| list)),
    };
    match (cluster::rehearse(client, method, at, &body).await?, live) {
        (Rehearsal::Refused(why), _) => Err(manifest::refused(manifest, &why)),
        (Rehearsal::Stored(object), Some(_)) => Ok(object),
        (Rehearsal::NotAllowed, Some(live)) => {
            manifest::replaced(live, &wanted).map_err(|why| manifest::refused(manifest, &why))
        }
        (Rehearsal::Stored(object), None) => Ok(without_made_up(object, &wanted)),
        (Rehearsal::NotAllowed, None) => Ok(wanted),
    }
}

/// A new Service as the server would store it, webhooks and defaults included, but without what
/// is another value at each answer and is not in the manifest.
fn without_made_up(mut stored: Value, wanted: &Value) -> Value {
    for (part, keys) in [
        ("metadata", ["uid", "creationTimestamp", "resourceVersion", "generation"].as_slice()),
        ("metadata", ["managedFields", "selfLink"].as_slice()),
        ("spec", ["clusterIP", "clusterIPs", "healthCheckNodePort"].as_slice()),
    ] {
        for key in keys {
            forget(&mut stored[part], &wanted[part], key);
        }
    }
    let given = wanted["spec"]["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    for port in stored["spec"]["ports"].as_array_mut().into_iter().flatten() {
        let same = given.iter().find(|g| port_key(g) == port_key(port));
        forget(port, same.unwrap_or(&Value::Null), "nodePort");
    }
    stored
}

fn forget(stored: &mut Value, wanted: &Value, key: &str) {
    if wanted.get(key).is_none()
        && let Some(fields) = stored.as_object_mut()
    {
        fields.remove(key);
    }
}

/// Which Service it is, and where the API server has it.
fn address(manifest: &Manifest) -> Result<(ServiceName, String), Failure> {
    let text = |pointer| manifest.object.pointer(pointer).and_then(Value::as_str);
    let (kind, name) = (text("/kind").unwrap_or_default(), text("/metadata/name"));
    let file = manifest.path.display();
    let wrong = |why: String| Err(Failure::new(Exit::Input, why));
    let Some(name) = name.filter(|n| !n.is_empty()) else {
        return wrong(format!("--as-if {file}: a {kind} without metadata.name. Name it"));
    };
    if kind != "Service" {
        return wrong(format!(
            "--as-if {file}: {kind} {name:?} is no Service, and only Services can be tried out on \
             a running cluster. Leave it out, or give a whole cluster with -f"
        ));
    }
    let namespace = text("/metadata/namespace").unwrap_or("default");
    let path = format!("/api/v1/namespaces/{namespace}/services/{name}");
    Ok((ServiceName::new(namespace, name), path))
}

/// The object as it would be after the manifest was applied to it.
fn applied(live: Option<&Value>, manifest: &Value) -> Value {
    let Some(live) = live else { return manifest.clone() };
    let last = live
        .pointer("/metadata/annotations")
        .and_then(|annotations| annotations.get(LAST_APPLIED))
        .and_then(Value::as_str)
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or(Value::Null);
    let mut object = merged(live, &last, manifest);
    // Whom the cluster knows by this name, whatever the manifest says.
    for key in ["uid", "finalizers", "deletionTimestamp"] {
        match live["metadata"].get(key) {
            Some(value) => object["metadata"][key] = value.clone(),
            None => drop(object["metadata"].as_object_mut().and_then(|m| m.remove(key))),
        }
    }
    object["status"] = live.get("status").cloned().unwrap_or_else(|| json!({}));
    object
}

fn merged(live: &Value, last: &Value, new: &Value) -> Value {
    match (live, new) {
        (Value::Object(live), Value::Object(new)) => {
            let mut whole: Map<String, Value> = live.clone();
            whole.retain(|key, _| last.get(key).is_none() || new.contains_key(key));
            for (key, value) in new {
                let old = live.get(key).unwrap_or(&Value::Null);
                let last = last.get(key).unwrap_or(&Value::Null);
                let value = match key.as_str() {
                    "ports" => ports(old, value),
                    _ => merged(old, last, value),
                };
                if value.is_null() {
                    whole.remove(key);
                } else {
                    whole.insert(key.clone(), value);
                }
            }
            Value::Object(whole)
        }
        _ => new.clone(),
    }
}

/// Ports are told apart by number and protocol.
fn port_key(port: &Value) -> (Option<&Value>, &str) {
    let protocol = port.get("protocol").and_then(Value::as_str).unwrap_or("TCP");
    (port.get("port"), protocol)
}

/// Ports that stay keep their node port.
fn ports(live: &Value, new: &Value) -> Value {
    let Value::Array(new) = new else { return new.clone() };
    let live = live.as_array().map(Vec::as_slice).unwrap_or_default();
    let laid = |port: &Value| {
        let same = live.iter().find(|old| port_key(old) == port_key(port));
        let old = same.unwrap_or(&Value::Null);
        merged(old, &Value::Null, port)
    };
    Value::Array(new.iter().map(laid).collect())
}

#[cfg(test)]
mod tests {
    use super::{address, applied, without_made_up};
    use crate::manifest::Manifest;
    use serde_json::{Value, json};

    fn live() -> Value {
        let last = json!({"metadata": {"annotations": {"gone": "1", "kept": "1"}},
            "spec": {"loadBalancerIP": "10.0.0.9"}});
        json!({
            "metadata": {"name": "web", "uid": "u-1", "finalizers": ["f"], "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": last.to_string(),
                "gone": "1", "kept": "1", "of-others": "1"}},
            "spec": {"type": "LoadBalancer", "loadBalancerIP": "10.0.0.9", "ports": [
                {"port": 80, "protocol": "TCP", "nodePort": 30080, "targetPort": 8080},
                {"port": 53, "protocol": "UDP", "nodePort": 30053}]},
            "status": {"loadBalancer": {"ingress": [{"ip": "20.0.0.1"}]}}
        })
    }

    #[test]
    fn what_the_last_apply_named_goes_and_what_others_wrote_stays() {
        let manifest = json!({"metadata": {"name": "web", "annotations": {"kept": "2"}}});
        let object = applied(Some(&live()), &manifest);
        let annotations = &object["metadata"]["annotations"];
        assert_eq!(annotations.get("gone"), None);
        assert_eq!((&annotations["kept"], &annotations["of-others"]), (&json!("2"), &json!("1")));
        assert_eq!(object["spec"].get("loadBalancerIP"), None);
    }

    #[test]
    fn a_new_service_is_as_webhooks_leave_it_without_numbers_of_one_answer() {
        let wanted = json!({"metadata": {"name": "web"}, "spec": {
            "ports": [{"port": 80}, {"port": 53, "protocol": "UDP", "nodePort": 30053}]}});
        let answer = json!({
            "metadata": {"name": "web", "uid": "u-9", "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {"of-a-webhook": "1"}},
            "spec": {"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"],
                "sessionAffinity": "None", "ports": [
                    {"port": 80, "protocol": "TCP", "nodePort": 31234},
                    {"port": 53, "protocol": "UDP", "nodePort": 30053}]}});
        let expected = json!({
            "metadata": {"name": "web", "annotations": {"of-a-webhook": "1"}},
            "spec": {"sessionAffinity": "None", "ports": [
                {"port": 80, "protocol": "TCP"},
                {"port": 53, "protocol": "UDP", "nodePort": 30053}]}});
        assert_eq!(without_made_up(answer, &wanted), expected);
    }

    #[test]
    fn ports_that_stay_keep_their_node_port_and_others_go() {
        let manifest =
            json!({"spec": {"ports": [{"port": 80, "targetPort": 9090}, {"port": 443}]}});
        let object = applied(Some(&live()), &manifest);
        let expected = json!([
            {"port": 80, "protocol": "TCP", "nodePort": 30080, "targetPort": 9090}, {"port": 443}]);
        assert_eq!(object["spec"]["ports"], expected);
    }

    #[test]
    fn uid_and_status_are_the_clusters_own() {
        let manifest = json!({"metadata": {"name": "web", "uid": "other",
            "deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"loadBalancer": {}}});
        let object = applied(Some(&live()), &manifest);
        assert_eq!(object["metadata"]["uid"], "u-1");
        assert_eq!(object["metadata"]["finalizers"], json!(["f"]));
        assert_eq!(object["metadata"].get("deletionTimestamp"), None);
        assert_eq!(object["status"], live()["status"]);
    }

    #[test]
    fn what_is_no_service_or_has_no_name_is_refused_by_file_and_kind() {
        let refused = |object| {
            let manifest = Manifest { path: "a.yaml".into(), text: "".into(), number: 0, object };
            address(&manifest).unwrap_err().to_string()
        };
        let node = refused(json!({"kind": "Node", "metadata": {"name": "n"}}));
        assert!(node.contains("a.yaml: Node \"n\" is no Service"), "{node}");
        let nameless = refused(json!({"kind": "Service"}));
        assert!(nameless.contains("a.yaml: a Service without metadata.name"), "{nameless}");
    }

    #[test]
    fn a_new_service_is_its_manifest() {
        let manifest = json!({"metadata": {"name": "new"}});
        assert_eq!(applied(None, &manifest), manifest);
    }
}
