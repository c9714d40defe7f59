//! Three Services of one namespace on one BYO public IP: its tag names all of them, whoever comes
//! and goes.

use super::Company;
use crate::random::Random;
use crate::scene::{Layout, objects};
use crate::stage::Stage;
use serde_json::{Value, json};

/// How many there are.
const SERVICES: u64 = 3;
/// The public IP; no other Service names it.
const PUBLIC_IP: &str = "byo-pip2";

fn place(number: u64) -> (String, String) {
    ("default".to_owned(), format!("sharer-{number}"))
}

fn service(number: u64) -> Value {
    let mut service = objects::service("default", 700 + number);
    service["metadata"]["name"] = json!(place(number).1);
    let key = "service.beta.kubernetes.io/azure-pip-name";
    service["metadata"]["annotations"] = json!({ key: PUBLIC_IP });
    service
}

impl Company {
    /// Whether load balancers are Standard, and all of them one: an address chooses among several.
    fn can_share(&self) -> bool {
        matches!(self.scene.layout, Layout::Single | Layout::Nics)
    }

    /// All of them come.
    pub(crate) fn share(&mut self, stage: &mut Stage) {
        if self.can_share() {
            self.services.extend((0..SERVICES).map(|number| (place(number), service(number))));
            self.tend(stage);
        }
    }

    /// One of them goes, or comes back.
    pub(crate) fn share_otherwise(&mut self, random: &mut Random, stage: &mut Stage) {
        let number = random.below(SERVICES);
        if !self.can_share() {
            return;
        }
        if self.services.remove(&place(number)).is_some() {
            self.delete(stage, &place(number));
        } else {
            self.services.insert(place(number), service(number));
        }
        self.tend(stage);
    }
}
