//! A Service on a container load balancer with many Pods, that come and go one by one.

use super::{Company, living, merge};
use crate::scene::objects;
use crate::stage::Stage;
use kube_emulator::{ObjectRef, Part, Patch};
use serde_json::{Value, json};
use std::ops::Range;

/// The Service, by its namespace and its number.
pub(crate) const CROWD: (&str, u64) = ("default", 60);
/// Its slice.
const SLICE: &str = "web-60-crowd";

fn service() -> Value {
    let mut service = objects::service(CROWD.0, CROWD.1);
    // No other actor fills its slice.
    merge(&mut service["spec"], &json!({"selector": null}));
    service
}

/// A Pod of it that is ready.
fn endpoint(number: u64, node: &Value) -> Value {
    json!({"addresses": [format!("10.244.10.{}", 10 + number)], "nodeName": node,
        "targetRef": {"kind": "Pod", "namespace": CROWD.0, "name": format!("crowd-{number}")},
        "conditions": {"ready": true, "serving": true, "terminating": false}})
}

impl Company {
    /// The Service has these Pods from now on.
    pub(crate) fn crowd(&mut self, pods: Range<u64>, stage: &mut Stage) {
        let name = format!("web-{}", CROWD.1);
        self.services.entry((CROWD.0.to_owned(), name.clone())).or_insert_with(service);
        self.tend(stage);
        let owner = living(stage, "services", CROWD.0, &name);
        let node = self.nodes.values().next().map(|node| node["metadata"]["name"].clone());
        let (Some(owner), Some(node)) = (owner, node) else { return };
        let endpoints: Vec<Value> = pods.map(|number| endpoint(number, &node)).collect();
        let now_ms = stage.now_ms;
        if living(stage, "endpointslices", CROWD.0, SLICE).is_some() {
            let patch = Patch::Merge(json!({ "endpoints": endpoints }));
            let object = ObjectRef::new("endpointslices", CROWD.0, SLICE);
            let _ = stage.kubernetes.patch(object, Part::Main, &patch, now_ms);
        } else {
            let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": {"name": SLICE, "namespace": CROWD.0,
                    "labels": {"kubernetes.io/service-name": name},
                    "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": name,
                        "uid": owner["metadata"]["uid"], "controller": true,
                        "blockOwnerDeletion": true}]},
                "addressType": "IPv4", "endpoints": endpoints,
                "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]});
            let _ = stage.kubernetes.create(slice, now_ms);
        }
        stage.trace.say(now_ms, || format!("pods: {name} has {} of them", endpoints.len()));
        stage.follow();
    }

    /// Its slice goes.
    pub(crate) fn disperse(stage: &mut Stage) {
        let object = ObjectRef::new("endpointslices", CROWD.0, SLICE);
        let _ = stage.kubernetes.delete(object, stage.now_ms);
        stage.follow();
    }
}
