//! All Pods of an egress gateway are replaced at once, as by `kubectl delete pods --all`: the new
//! ones are there at once, and have no address until they run. The gateway stays for them.

use super::{Company, merge};
use crate::random::Random;
use crate::scene::network;
use crate::scene::objects::gateway_of;
use crate::stage::Stage;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What the name of every other Pod of a row ends in: a name is free once its Pod is gone.
const SUCCESSOR: &str = "-b";

/// Whether a Pod has no address yet.
pub(super) fn is_homeless(pod: &Value) -> bool {
    pod["status"]["podIP"].is_null()
}

/// The name of the Pod that comes after one of this name.
fn successor(name: &str) -> String {
    name.strip_suffix(SUCCESSOR).map_or_else(|| format!("{name}{SUCCESSOR}"), str::to_owned)
}

/// The Pod as it is when it has just been created.
fn fresh(pod: &Value, name: &str) -> Value {
    let mut fresh = pod.clone();
    fresh["metadata"]["name"] = json!(name);
    let status = json!({"phase": "Pending", "podIP": null, "podIPs": null,
        "conditions": [{"type": "Ready", "status": "False"}]});
    merge(&mut fresh["status"], &status);
    fresh
}

impl Company {
    /// The name by which a Pod of this first name is there: its own or its successor's.
    pub(super) fn name_of(&self, first: String) -> String {
        let second = successor(&first);
        if self.pods.contains_key(&second) { second } else { first }
    }

    /// A gateway that stands, and that Pods ask for.
    pub(crate) fn pick_crew(&self, random: &mut Random, stage: &Stage) -> Option<String> {
        let asked: BTreeSet<String> = self.pods.values().filter_map(gateway_of).collect();
        let stands = |name: &String| {
            let id = network(&format!("natGateways/{name}"));
            stage.azure.shown_by_id(&id).is_some()
        };
        let standing: Vec<String> = asked.into_iter().filter(stands).collect();
        random.choose(&standing).cloned()
    }

    /// Its Pods go, and as many others come.
    pub(crate) fn replace_crew(&mut self, gateway: &str, stage: &mut Stage) {
        let of_it = self.pods.iter().filter(|(_, pod)| gateway_of(pod).as_deref() == Some(gateway));
        let old: Vec<String> = of_it.map(|(name, _)| name.clone()).collect();
        for name in &old {
            if let Some(pod) = self.pods.remove(name) {
                let name = successor(name);
                self.pods.insert(name.clone(), fresh(&pod, &name));
            }
        }
        old.iter().for_each(|name| self.remove_pod(stage, name));
        self.tend_pods(stage);
        stage.follow();
    }

    /// A Pod runs, and has this address.
    pub(super) fn house(&mut self, name: &str, address: &str, stage: &mut Stage) {
        let status = json!({"phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
            "conditions": [{"type": "Ready", "status": "True"}]});
        self.set_status(stage, name, &json!({ "status": status }));
        stage.trace.say(stage.now_ms, || format!("pod {name} runs at {address}"));
    }

    /// All Pods have an address.
    pub(crate) fn house_all(&mut self, stage: &mut Stage) {
        let homeless = self.pods.iter().filter(|(_, pod)| is_homeless(pod));
        let homeless: Vec<String> = homeless.map(|(name, _)| name.clone()).collect();
        for name in homeless {
            let address = self.free_address();
            self.house(&name, &address, stage);
        }
        stage.follow();
    }

    /// An address that no Pod has.
    fn free_address(&self) -> String {
        let taken: BTreeSet<&str> =
            self.pods.values().filter_map(|pod| pod["status"]["podIP"].as_str()).collect();
        let mut all = (10..250).map(|last| format!("10.244.8.{last}"));
        all.find(|address| !taken.contains(&**address)).unwrap_or_default()
    }

    /// A Pod that has been replaced, and that our finalizer still holds.
    pub(crate) fn kept_after(&self, gateway: &str, stage: &Stage) -> Option<String> {
        let pods = stage.kubernetes.list("pods", None);
        let mut kept = pods.iter().filter(|pod| {
            let meta = &pod["metadata"];
            !meta["deletionTimestamp"].is_null() && gateway_of(pod).as_deref() == Some(gateway)
        });
        kept.find_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::objects;

    #[test]
    fn a_pod_and_its_successor_take_turns_and_a_new_one_has_no_address() {
        assert_eq!(successor("pod-7"), "pod-7-b");
        assert_eq!(successor("pod-7-b"), "pod-7");
        let pod =
            objects::pod("pod-7", &json!({(objects::EGRESS_LABEL): "Team-1"}), 0, "10.244.0.10");
        assert!(!is_homeless(&pod));
        let fresh = fresh(&pod, "pod-7-b");
        assert!(is_homeless(&fresh) && fresh["status"]["podIPs"].is_null());
        assert_eq!(fresh["status"]["phase"], "Pending");
        assert_eq!(fresh["spec"], pod["spec"]);
        assert_eq!(gateway_of(&fresh).as_deref(), Some("team-1"));
    }
}
