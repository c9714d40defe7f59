//! Kubernetes gives the address of a Pod that has gone to a Pod on another node: for a while two
//! slices of a Service list it, each on a node of its own. The one that was written last is right.

use super::Play;
use crate::actor::{living, merge};
use crate::random::Random;
use crate::scene::Layout;
use crate::scene::objects::service;
use crate::truth::is_going;
use kube_emulator::{ObjectRef, Part, Patch};
use serde_json::{Value, json};

/// In how many seeds of a thousand with container load balancers.
const TAKEN_OVER: u64 = 700;
/// How often the address goes to another node.
const TIMES: usize = 3;
/// In how many of a thousand of these times the process is restarted.
const RESTARTED: u64 = 300;
/// The Service, whose slices nothing else fills.
const OWNER: (&str, u64) = ("default", 805);
const NAME: &str = "web-805";
const SLICES: [&str; 2] = ["web-805-one", "web-805-two"];
/// The address that goes over, and one of each slice that stays where it is.
const ADDRESS: &str = "10.244.12.10";
const OTHERS: [&str; 2] = ["10.244.12.11", "10.244.12.12"];

fn endpoint(address: &str, node: &Value) -> Value {
    json!({"addresses": [address], "nodeName": node,
        "conditions": {"ready": true, "serving": true, "terminating": false}})
}

impl Play {
    /// L1: the address is listed where the slice that was written last says, at once and after a
    /// restart.
    pub(super) fn be_taken_over(&mut self) {
        let mut random = self.late.fork("addresses taken over");
        let on = random.permille(TAKEN_OVER) && self.stage.scene.layout == Layout::Containers;
        let nodes = self.nodes_that_stay();
        if self.stage.breach.is_some() || !on || nodes.len() < 2 {
            return;
        }
        let mut owner = service(OWNER.0, OWNER.1);
        merge(&mut owner["spec"], &json!({"selector": null}));
        self.company.services.insert((OWNER.0.to_owned(), NAME.to_owned()), owner);
        self.stage.ledger.inputs += 1;
        self.tend();
        let mut at = usize::try_from(random.below(nodes.len() as u64)).unwrap_or(0);
        self.write_slice(1, &[endpoint(OTHERS[1], &nodes[at])]);
        self.write_slice(0, &[endpoint(OTHERS[0], &nodes[at]), endpoint(ADDRESS, &nodes[at])]);
        self.heal();
        self.judge_end();
        for time in 0..TIMES {
            // First the slice that is older than the one that has the address.
            let which = if time == 0 { 1 } else { usize::from(random.permille(500)) };
            at = another(at, nodes.len(), &mut random);
            let other = endpoint(OTHERS[which], &nodes[0]);
            self.write_slice(which, &[other, endpoint(ADDRESS, &nodes[at])]);
            self.heal();
            self.judge_end();
            if random.permille(RESTARTED) {
                for number in 0..self.stage.processes.len() {
                    self.stage.kill(number, "restarted while slices disagree");
                }
                self.heal();
                self.judge_end();
            }
        }
        self.go(OWNER);
        self.come_to_rest();
    }

    /// Names of nodes at which the Service Gateway can list addresses of IPv4.
    fn nodes_that_stay(&self) -> Vec<Value> {
        let nodes = self.stage.kubernetes.list("nodes", None);
        let is_inside = |entry: &Value| {
            let address = entry["address"].as_str().unwrap_or("");
            entry["type"] == "InternalIP" && address.contains('.')
        };
        let stays = nodes.iter().filter(|node| {
            let addresses = node["status"]["addresses"].as_array();
            !is_going(node) && addresses.into_iter().flatten().any(is_inside)
        });
        stays.map(|node| node["metadata"]["name"].clone()).collect()
    }

    /// One of the slices lists these endpoints from now on.
    fn write_slice(&mut self, which: usize, endpoints: &[Value]) {
        let (stage, name) = (&mut self.stage, SLICES[which]);
        stage.ledger.inputs += 1;
        let now_ms = stage.now_ms;
        let Some(owner) = living(stage, "services", OWNER.0, NAME) else { return };
        if living(stage, "endpointslices", OWNER.0, name).is_some() {
            let object = ObjectRef::new("endpointslices", OWNER.0, name);
            let patch = Patch::Merge(json!({ "endpoints": endpoints }));
            let _ = stage.kubernetes.patch(object, Part::Main, &patch, now_ms);
        } else {
            let owners = json!([{"apiVersion": "v1", "kind": "Service", "name": NAME,
                "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true}]);
            let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": {"name": name, "namespace": OWNER.0, "ownerReferences": owners,
                    "labels": {"kubernetes.io/service-name": NAME}},
                "addressType": "IPv4", "endpoints": endpoints,
                "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]});
            let _ = stage.kubernetes.create(slice, now_ms);
        }
        stage.follow();
    }
}

/// Another one of so many.
fn another(at: usize, count: usize, random: &mut Random) -> usize {
    let step = usize::try_from(random.below(count as u64 - 1)).unwrap_or(0);
    (at + 1 + step) % count
}
