//! Two internal Services of one pool, each with one rule for all ports, whose owners have switched
//! floating IP off: the Go cloud provider leaves it on for such a rule, so that both have room.

use super::Company;
use super::user::key;
use super::values::key::{ALL_PORTS, INTERNAL, NO_FLOATING_IP};
use crate::scene::{Layout, objects};
use crate::stage::Stage;
use serde_json::json;

const NAMESPACE: &str = "default";
/// Their numbers.
const NUMBERS: [u64; 2] = [760, 761];

fn place(number: u64) -> (String, String) {
    (NAMESPACE.to_owned(), format!("all-ports-{number}"))
}

impl Company {
    /// They come. Floating IP that is off is not drawn with pools of NICs: docs/dev/simulation.md.
    pub(crate) fn bring_all_ports(&mut self, stage: &mut Stage) {
        if self.scene.layout != Layout::Single || self.scene.other_pools {
            return;
        }
        for number in NUMBERS {
            let mut service = objects::service(NAMESPACE, number);
            service["metadata"]["name"] = json!(place(number).1);
            for suffix in [INTERNAL, ALL_PORTS, NO_FLOATING_IP] {
                service["metadata"]["annotations"][key(suffix)] = json!("true");
            }
            self.services.insert(place(number), service);
        }
        self.tend(stage);
    }

    /// They go.
    pub(crate) fn dismiss_all_ports(&mut self, stage: &mut Stage) {
        for number in NUMBERS {
            if self.services.remove(&place(number)).is_some() {
                self.delete(stage, &place(number));
            }
        }
    }
}
