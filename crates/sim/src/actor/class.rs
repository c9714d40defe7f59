//! Owners of Services of our class, of no class and of another controller's, which change hands by
//! way of ClusterIP: the API server lets a class be changed no other way.

use super::Company;
use crate::fault::Fault;
use crate::random::Random;
use crate::scene::{CLASS, OTHER_CLASS, objects};
use crate::stage::Stage;
use crate::tally::count;
use kube_emulator::{ObjectRef, Part, Patch};
use model::kubernetes::SERVICE_FINALIZER;
use serde_json::{Value, json};

/// Services that are made here.
const SERVICES: u64 = 3;
/// The first of their numbers.
const FIRST: u64 = 50;

fn class(random: &mut Random) -> Value {
    random.pick(&[json!(CLASS), json!(OTHER_CLASS), json!(OTHER_CLASS), Value::Null]).clone()
}

fn service(number: u64, random: &mut Random) -> Value {
    let mut service = objects::service("default", FIRST + number);
    service["metadata"]["name"] = json!(format!("class-{number}"));
    let class = class(random);
    if class == OTHER_CLASS {
        // Its controller has claimed it; all service controllers do so in the same words.
        service["metadata"]["finalizers"] = json!([SERVICE_FINALIZER]);
    }
    if !class.is_null() {
        service["spec"]["loadBalancerClass"] = class;
    }
    service
}

impl Company {
    /// The other controller takes the finalizer off its Services that go: all service controllers
    /// have the same one, so that nobody can tell afterwards who put it there. So does who has a
    /// finalizer of another name.
    pub fn release_others(&self, stage: &mut Stage) {
        self.release_backups(stage);
        if !self.scene.with.contains(&Fault::Classes) {
            return;
        }
        for service in stage.kubernetes.list("services", None) {
            let meta = &service["metadata"];
            let theirs = service["spec"]["loadBalancerClass"] == OTHER_CLASS;
            if theirs && !meta["deletionTimestamp"].is_null() {
                let name = meta["name"].as_str().unwrap_or("");
                let object = ObjectRef::new("services", "default", name);
                let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                let _ = stage.kubernetes.patch(object, Part::Main, &patch, stage.now_ms);
            }
        }
    }

    pub(super) fn class(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
        count(&mut stage.tally.faults, Fault::Classes.name());
        let number = random.below(SERVICES);
        let place = ("default".to_owned(), format!("class-{number}"));
        let fresh = service(number, random);
        let Some(standing) = self.services.get(&place) else {
            self.services.insert(place, fresh);
            self.tend(stage);
            return "create a Service with a class";
        };
        let balanced = standing["spec"]["type"] == "LoadBalancer";
        match random.below(8) {
            0 => {
                self.services.remove(&place);
                self.delete(stage, &place);
                "delete a Service with a class"
            }
            1 => {
                self.services.insert(place.clone(), fresh);
                self.delete(stage, &place);
                self.tend(stage);
                "create a Service with a class again"
            }
            2 => {
                let label = random.below(9).to_string();
                self.apply(stage, &place, &json!({"metadata": {"labels": {"rank": label}}}));
                "label a Service with a class"
            }
            _ => {
                let mut ports = fresh["spec"]["ports"].clone();
                let spec = if balanced {
                    if let Some(port) = ports[0].as_object_mut() {
                        port.shift_remove("nodePort");
                    }
                    json!({"type": "ClusterIP", "loadBalancerClass": null, "ports": ports})
                } else {
                    let class = class(random);
                    json!({"type": "LoadBalancer", "loadBalancerClass": class, "ports": ports})
                };
                self.apply(stage, &place, &json!({ "spec": spec }));
                if balanced { "take the class from a Service" } else { "give a Service a class" }
            }
        }
    }
}
