//! Private Link Services before Services that are reached from inside.

use super::Company;
use super::user::{annotation, key};
use crate::fault::Fault;
use crate::random::Random;
use crate::scene::{SUBSCRIPTION, objects};
use crate::stage::Stage;
use crate::tally::count;
use azure_emulator::Request;
use serde_json::{Value, json};
use std::collections::btree_map::Entry;

/// Services that are made here.
const SERVICES: u64 = 2;

fn service(number: u64) -> Value {
    let mut service = objects::service("default", 30 + number);
    service["metadata"]["name"] = json!(format!("link-{number}"));
    service["metadata"]["annotations"][key("azure-load-balancer-internal")] = json!("true");
    service["metadata"]["annotations"][key("azure-pls-create")] = json!("true");
    if !number.is_multiple_of(2) {
        // Its Private Link Service has addresses there, too.
        service["metadata"]["annotations"][key("azure-load-balancer-internal-subnet")] =
            json!("apps");
    }
    // Somebody may be connected when it goes.
    service["metadata"]["annotations"]["ballast.dev/disconnect-private-endpoints"] = json!("true");
    service
}

/// Somebody connects a private endpoint to a Private Link Service of these Services.
fn connect(random: &mut Random, stage: &mut Stage) {
    let mut links = stage.azure.resources_of("Microsoft.Network/privateLinkServices");
    let owner = |link: &Value| link["tags"]["k8s-azure-owner-service"].as_str().map(str::to_owned);
    links.retain(|link| owner(link).is_some_and(|owner| owner.starts_with("default/link-")));
    let Some(id) = random.choose(&links).and_then(|link| link["id"].as_str()) else { return };
    let status = *random.pick(&["Approved", "Pending"]);
    let body = json!({"properties": {"privateLinkServiceConnectionState": {"status": status}}});
    let connection = format!("{id}/privateEndpointConnections/somebody");
    let answer = stage.azure.handle(Request::new("PUT", &connection).with_body(body), stage.now_ms);
    stage.azure.clear_calls();
    let status = answer.status;
    stage.trace.say(stage.now_ms, || format!("somebody connects to {id} -> {status}"));
}

impl Company {
    pub(super) fn link(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
        count(&mut stage.tally.faults, Fault::Links.name());
        let what = self.change_link(random, stage);
        if random.permille(250) {
            connect(random, stage);
        }
        what
    }

    fn change_link(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
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
