//! A rolling update that changes the number of a port with a name, on a container load balancer:
//! for a while some Pods of the Service say one number, and some the other.

use super::{Company, living, merge};
use crate::scene::{Layout, objects};
use crate::stage::Stage;
use kube_emulator::{ObjectRef, Part, Patch};
use serde_json::{Value, json};

const NAMESPACE: &str = "default";
const NAME: &str = "rolling";
const NUMBER: u64 = 740;
/// The port's numbers before and after.
const NUMBERS: [u16; 2] = [8_080, 9_090];
/// Its other port leads to this one.
const PLAIN: u16 = 8_081;

fn service() -> Value {
    let mut service = objects::service(NAMESPACE, NUMBER);
    service["metadata"]["name"] = json!(NAME);
    // No other actor fills its slices.
    let spec = json!({"selector": null, "ports": [
        {"name": "http", "port": 820, "targetPort": "http", "protocol": "TCP", "nodePort": 32_700},
        {"name": "plain", "port": 821, "targetPort": PLAIN, "protocol": "TCP",
            "nodePort": 32_701}]});
    merge(&mut service["spec"], &spec);
    service
}

/// Which number the Pods of a slice say in a round: first one, then one each, then the other.
fn number(slice: usize, round: usize) -> u16 {
    NUMBERS[usize::from(round > 2 || (round == 2 && slice == 1))]
}

impl Company {
    /// The Service comes, with Pods in two slices, and is rolled out anew round by round.
    pub(crate) fn roll(&mut self, round: usize, stage: &mut Stage) {
        if self.scene.layout != Layout::Containers {
            return;
        }
        let place = (NAMESPACE.to_owned(), NAME.to_owned());
        self.services.entry(place).or_insert_with(service);
        self.tend(stage);
        let owner = living(stage, "services", NAMESPACE, NAME);
        let node = self.nodes.values().next().map(|node| node["metadata"]["name"].clone());
        let (Some(owner), Some(node)) = (owner, node) else { return };
        for slice in 0..2 {
            let wanted = self::slice(slice, &owner["metadata"]["uid"], &node, number(slice, round));
            write(stage, &wanted);
        }
        stage.follow();
    }
}

fn slice(slice: usize, owner: &Value, node: &Value, number: u16) -> Value {
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": format!("{NAME}-{slice}"), "namespace": NAMESPACE,
            "labels": {"kubernetes.io/service-name": NAME},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": NAME, "uid": owner,
                "controller": true, "blockOwnerDeletion": true}]},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [format!("10.244.4.{}", 10 + slice)], "nodeName": node,
            "targetRef": {"kind": "Pod", "namespace": NAMESPACE, "name": format!("{NAME}-{slice}")},
            "conditions": {"ready": true, "serving": true, "terminating": false}}],
        "ports": [{"name": "http", "port": number, "protocol": "TCP"},
            {"name": "plain", "port": PLAIN, "protocol": "TCP"}]})
}

/// Writes a slice as it is to be.
fn write(stage: &mut Stage, wanted: &Value) {
    let name = wanted["metadata"]["name"].as_str().unwrap_or("").to_owned();
    let now_ms = stage.now_ms;
    if living(stage, "endpointslices", NAMESPACE, &name).is_none() {
        let _ = stage.kubernetes.create(wanted.clone(), now_ms);
        return;
    }
    let patch = json!({"endpoints": wanted["endpoints"], "ports": wanted["ports"]});
    let object = ObjectRef::new("endpointslices", NAMESPACE, &name);
    let _ = stage.kubernetes.patch(object, Part::Main, &Patch::Merge(patch), now_ms);
}
