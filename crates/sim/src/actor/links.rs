//! Private Link Services before Services that are reached from inside.

use super::Company;
use super::user::{annotation, key};
use crate::fault::Fault;
use crate::random::Random;
use crate::scene::{SUBSCRIPTION, objects};
use crate::stage::Stage;
use crate::tally::count;
use serde_json::{Value, json};
use std::collections::btree_map::Entry;

/// Services that are made here.
const SERVICES: u64 = 2;

fn service(number: u64) -> Value {
    let mut service = objects::service("default", 30 + number);
    service["metadata"]["name"] = json!(format!("link-{number}"));
    service["metadata"]["annotations"][key("azure-load-balancer-internal")] = json!("true");
    service["metadata"]["annotations"][key("azure-pls-create")] = json!("true");
    service
}

impl Company {
    pub(super) fn link(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
        count(&mut stage.tally.faults, Fault::Links.name());
        let number = random.below(SERVICES);
        let place = ("default".to_owned(), format!("link-{number}"));
        if let Entry::Vacant(free) = self.services.entry(place.clone()) {
            free.insert(service(number));
            self.tend(stage);
            return "create a Service behind a Private Link Service";
        }
        let (what, suffix, value) = match random.below(9) {
            0 => {
                self.services.remove(&place);
                self.delete(stage, &place);
                return "delete a Service behind a Private Link Service";
            }
            1 => {
                self.services.insert(place.clone(), service(number));
                self.delete(stage, &place);
                self.tend(stage);
                return "create a Service behind a Private Link Service again";
            }
            2 => {
                let kind = if random.permille(400) { "ClusterIP" } else { "LoadBalancer" };
                let mut ports = objects::service("default", 30 + number)["spec"]["ports"].clone();
                if kind == "ClusterIP"
                    && let Some(port) = ports[0].as_object_mut()
                {
                    port.shift_remove("nodePort");
                }
                self.apply(stage, &place, &json!({"spec": {"type": kind, "ports": ports}}));
                return "change the type of a Service behind a Private Link Service";
            }
            3 => {
                let names = json!(format!("a{}.example.com b.example.com", random.below(9)));
                ("name a Private Link Service", "azure-pls-fqdns", names)
            }
            4 => {
                let count = json!(random.between(1, 3).to_string());
                let key = "azure-pls-ip-configuration-ip-address-count";
                ("change the addresses of a Private Link Service", key, count)
            }
            5 => {
                let who = *random.pick(&["*", SUBSCRIPTION]);
                ("show a Private Link Service", "azure-pls-visibility", json!(who))
            }
            6 => ("turn the PROXY protocol on", "azure-pls-proxy-protocol", json!("true")),
            7 => ("want no Private Link Service", "azure-pls-create", Value::Null),
            _ => ("want a Private Link Service", "azure-pls-create", json!("true")),
        };
        let value = if value.is_null() || random.permille(700) || suffix == "azure-pls-create" {
            value
        } else {
            Value::Null
        };
        self.apply(stage, &place, &annotation(suffix, value));
        what
    }
}
