//! What is wrong on the way to the API server.

use super::{Canary, Mutant};
use crate::stage::Stage;
use control::{CallId, Effect, Event, KubernetesAnswer, KubernetesCall};
use serde_json::{Value, json};

impl Mutant {
    pub(super) fn api(
        &mut self,
        call: CallId,
        mut request: KubernetesCall,
        stage: &mut Stage,
        number: usize,
        out: &mut Vec<Effect>,
    ) {
        let finalizers = request.body["metadata"].get("finalizers").cloned();
        let status = request.path.ends_with("/status");
        let shown = request.body["status"].get("loadBalancer").is_some();
        let ingress = request.body["status"]["loadBalancer"]["ingress"].clone();
        match (self.canary, finalizers) {
            (Canary::ForgetsFinalizer, Some(Value::Array(list))) => {
                self.pretend_finalizers(call, &request, list, stage, number);
                return;
            }
            (Canary::KeepsFinalizer, Some(list)) if !list.is_array() => {
                self.pretend_finalizers(call, &request, Vec::new(), stage, number);
                return;
            }
            (Canary::StatusFirst, Some(Value::Array(_))) => {
                let body = json!({"status": {"loadBalancer": {"ingress": [{"ip": "20.9.9.9"}]}}});
                let path = format!("{}/status", request.path);
                let content_type = request.content_type;
                let early = KubernetesCall { method: "PATCH", path, content_type, body };
                out.push(Effect::Kubernetes { call, request });
                out.push(Effect::Kubernetes { call: self.fresh(), request: early });
                return;
            }
            (Canary::DropsFinalizerEarly, None) if status && !ingress.is_null() => {
                let path = request.path.trim_end_matches("/status").to_owned();
                let content_type = request.content_type;
                let body = without_finalizers(stage, &path);
                let early = KubernetesCall { method: "PATCH", path, content_type, body };
                out.push(Effect::Kubernetes { call: self.fresh(), request: early });
                out.push(Effect::Kubernetes { call, request });
                return;
            }
            (Canary::ReleasesPodsEarly, Some(Value::Array(_)))
                if request.path.contains("/pods/") =>
            {
                self.marked = Some(request.clone());
            }
            (Canary::KeepsStatus, None) if status && ingress.is_array() => {
                let told = stage.object_at(&request.path);
                let told =
                    told.and_then(|s| s["status"]["loadBalancer"]["ingress"].as_array().cloned());
                let mut list = request.body["status"]["loadBalancer"]["ingress"].as_array_mut();
                for entry in told.into_iter().flatten() {
                    if let Some(list) = list.as_mut().filter(|list| !list.contains(&entry)) {
                        list.push(entry);
                    }
                }
            }
            (Canary::KeepsStatus, None) if status && shown && ingress.is_null() => {
                let body = stage.object_at(&request.path).map(|service| {
                    let mut service = service.as_ref().clone();
                    service["status"] = request.body["status"].clone();
                    service
                });
                stage.tell(number, written(call, body));
                return;
            }
            _ => {}
        }
        out.push(Effect::Kubernetes { call, request });
    }

    fn pretend_finalizers(
        &self,
        call: CallId,
        request: &KubernetesCall,
        list: Vec<Value>,
        stage: &mut Stage,
        number: usize,
    ) {
        let body = stage.object_at(&request.path).map(|service| {
            let mut service = service.as_ref().clone();
            service["metadata"]["finalizers"] = Value::Array(list);
            service
        });
        stage.tell(number, written(call, body));
    }
}

fn written(call: CallId, body: Option<Value>) -> Event {
    let answer = KubernetesAnswer::Reply { status: 200, retry_after_ms: None, body };
    Event::KubernetesWritten { call, answer }
}

/// A patch that takes all finalizers off an object as it is now.
pub(super) fn without_finalizers(stage: &Stage, path: &str) -> Value {
    let version = stage.object_at(path).map(|object| object["metadata"]["resourceVersion"].clone());
    json!({"metadata": {"finalizers": null, "resourceVersion": version}})
}
