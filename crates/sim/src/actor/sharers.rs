//! Three Services of one namespace on one public IP of ours: its tag names all of them, whoever
//! comes and goes.

use super::Company;
use crate::check::form::told;
use crate::random::Random;
use crate::scene::{Layout, objects};
use crate::stage::Stage;
use kube_emulator::ObjectRef;
use serde_json::{Value, json};

/// How many there are.
const SERVICES: u64 = 3;
const NAMESPACE: &str = "default";

fn place(number: u64) -> (String, String) {
    (NAMESPACE.to_owned(), format!("sharer-{number}"))
}

/// One of them, at an address that others have or, without one, at one of its own.
fn service(number: u64, address: Option<&str>) -> Value {
    let mut service = objects::service(NAMESPACE, 700 + number);
    service["metadata"]["name"] = json!(place(number).1);
    if let Some(address) = address {
        let key = "service.beta.kubernetes.io/azure-load-balancer-ipv4";
        service["metadata"]["annotations"] = json!({ key: address });
    }
    service
}

/// The address that those of them have that are there.
fn address(stage: &Stage) -> Option<String> {
    let all = (0..SERVICES).filter_map(|number| {
        let (namespace, name) = place(number);
        stage.kubernetes.get(ObjectRef::new("services", &namespace, &name)).ok()
    });
    let addresses: Vec<String> =
        all.flat_map(|service| told(&service).map(str::to_owned).collect::<Vec<_>>()).collect();
    addresses.into_iter().find(|address| !address.contains(':'))
}

impl Company {
    /// Whether all load balancers are one: an address chooses among several.
    fn can_share(&self) -> bool {
        matches!(self.scene.layout, Layout::Single | Layout::Nics)
    }

    /// The first of them comes.
    pub(crate) fn share(&mut self, stage: &mut Stage) {
        if self.can_share() {
            self.services.insert(place(0), service(0, None));
            self.tend(stage);
        }
    }

    /// The others come; once they are there one of them goes, or comes back.
    pub(crate) fn share_otherwise(&mut self, random: &mut Random, stage: &mut Stage) {
        let number = random.below(SERVICES);
        let Some(address) = address(stage).filter(|_| self.can_share()) else { return };
        let there = (0..SERVICES).filter(|n| self.services.contains_key(&place(*n))).count();
        if there == 1 {
            for number in 0..SERVICES {
                let made = || service(number, Some(&address));
                self.services.entry(place(number)).or_insert_with(made);
            }
        } else if self.services.remove(&place(number)).is_some() {
            self.delete(stage, &place(number));
        } else {
            self.services.insert(place(number), service(number, Some(&address)));
        }
        self.tend(stage);
    }
}
