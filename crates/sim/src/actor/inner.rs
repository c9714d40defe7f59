//! Two Services of one namespace on one private address: the second one comes to the first one's,
//! and leaves it again for one of its own, while the first one stays. In the end the first one may
//! go and leave its frontend to the second one, which then goes last.

use super::Company;
use super::user::{annotation, key};
use crate::check::form::told;
use crate::random::Random;
use crate::scene::{Layout, objects};
use crate::stage::Stage;
use kube_emulator::ObjectRef;
use serde_json::{Value, json};

const NAMESPACE: &str = "default";
/// The first of their numbers.
const FIRST: u64 = 710;
const PINNED: &str = "azure-load-balancer-ipv4";
/// In how many of a thousand seeds the first one leaves its frontend to the second one.
const LEFT: u64 = 600;

fn place(number: u64) -> (String, String) {
    (NAMESPACE.to_owned(), format!("inner-{number}"))
}

fn service(number: u64) -> Value {
    let mut service = objects::service(NAMESPACE, FIRST + number);
    service["metadata"]["name"] = json!(place(number).1);
    service["metadata"]["annotations"][key("azure-load-balancer-internal")] = json!("true");
    // Without sources an internal Service opens nothing, and there would be nothing to leave open.
    service["spec"]["loadBalancerSourceRanges"] = json!(["203.0.113.0/24"]);
    service
}

fn is_pinned(service: &Value) -> bool {
    !service["metadata"]["annotations"][key(PINNED)].is_null()
}

/// The address that the first one has.
fn address(stage: &Stage) -> Option<String> {
    let (namespace, name) = place(0);
    let service = stage.kubernetes.get(ObjectRef::new("services", &namespace, &name)).ok()?;
    told(&service).find(|address| !address.contains(':')).map(str::to_owned)
}

impl Company {
    /// The first one comes. Only where all load balancers are one: an address chooses among
    /// several.
    pub(crate) fn move_in(&mut self, stage: &mut Stage) {
        if matches!(self.scene.layout, Layout::Single | Layout::Nics) {
            self.services.insert(place(0), service(0));
            self.tend(stage);
        }
    }

    /// The second one comes to the first one's address, or leaves it, by turns.
    pub(crate) fn move_about(&mut self, stage: &mut Stage) {
        let Some(address) = address(stage) else { return };
        let Some(standing) = self.services.get(&place(1)) else {
            let mut second = service(1);
            second["metadata"]["annotations"][key(PINNED)] = json!(address);
            self.services.insert(place(1), second);
            self.tend(stage);
            return;
        };
        let pinned = if is_pinned(standing) { Value::Null } else { json!(address) };
        self.apply(stage, &place(1), &annotation(PINNED, pinned));
    }

    /// The first one goes while the second one is at its address.
    pub(crate) fn leave_frontend(&mut self, random: &mut Random, stage: &mut Stage) {
        let shares = self.services.get(&place(1)).is_some_and(is_pinned);
        if random.permille(LEFT) && shares && self.services.remove(&place(0)).is_some() {
            self.delete(stage, &place(0));
        }
    }
}
