//! A Service leaves a shared public IP on which another one remains that its owner holds back or
//! that is refused, and a third one comes to it. Azure takes a public IP on one frontend at a time:
//! the frontend that is called after the first one stays, and the third one comes there.

use super::Play;
use crate::check::form::told;
use crate::scene::Layout;
use crate::scene::objects::service;
use crate::stage::Stage;
use kube_emulator::ObjectRef;
use plan::ask::annotation::{PAUSE, full};
use serde_json::{Value, json};

/// In how many seeds of a thousand with one load balancer: an address chooses among several.
const SHARED: u64 = 400;
/// In how many of a thousand of them the first Service goes inside; otherwise it is deleted.
const INSIDE: u64 = 650;
/// In how many of a thousand of them each of the others is so.
const HALF: u64 = 500;
/// The Service that the frontend is called after.
const FIRST: (&str, u64) = ("default", 802);
/// The one that remains.
const REMAINING: (&str, u64) = ("default", 803);
/// The one that comes.
const NEWCOMER: (&str, u64) = ("default", 804);

const ADDRESS: &str = "azure-load-balancer-ipv4";

fn place((namespace, slot): (&str, u64)) -> (String, String) {
    (namespace.to_owned(), format!("web-{slot}"))
}

/// A patch of one annotation.
fn annotation(key: &str, value: &Value) -> Value {
    json!({"metadata": {"annotations": {(key): value}}})
}

/// The address that a Service tells.
fn address(stage: &Stage, whose: (&str, u64)) -> Option<String> {
    let (namespace, name) = place(whose);
    let service = stage.kubernetes.get(ObjectRef::new("services", &namespace, &name)).ok()?;
    told(&service).next().map(str::to_owned)
}

impl Play {
    /// L1: the newcomer has the address, and the Service that remains keeps it.
    pub(super) fn be_remained_on(&mut self) {
        let mut random = self.late.fork("remaining on a public IP");
        let single = matches!(self.stage.scene.layout, Layout::Single | Layout::Nics);
        let on = random.permille(SHARED) && single;
        if self.stage.breach.is_some() || !on {
            return;
        }
        self.come(FIRST);
        self.heal();
        let Some(address) = address(&self.stage, FIRST) else { return };
        self.come_to(REMAINING, &address);
        self.heal();
        self.judge_end();
        self.stage.note_settled();
        let (key, value) = match random.permille(HALF) {
            true => (PAUSE.to_owned(), "true"),
            false => (full("azure-load-balancer-tcp-idle-timeout"), "soon"),
        };
        self.stage.ledger.inputs += 1;
        let held = annotation(&key, &json!(value));
        self.company.apply(&mut self.stage, &place(REMAINING), &held);
        match random.permille(INSIDE) {
            true => {
                let inside = annotation(&full("azure-load-balancer-internal"), &json!("true"));
                self.company.apply(&mut self.stage, &place(FIRST), &inside);
            }
            false => self.go(FIRST),
        }
        // It comes while the first one leaves, or after that.
        if random.permille(HALF) {
            self.heal();
            self.judge_end();
        }
        self.come_to(NEWCOMER, &address);
        self.heal();
        self.judge_end();
        self.stage.ledger.inputs += 1;
        let free = annotation(&key, &Value::Null);
        self.company.apply(&mut self.stage, &place(REMAINING), &free);
        self.heal();
        self.judge_end();
        [FIRST, REMAINING, NEWCOMER].into_iter().for_each(|guest| self.go(guest));
        self.come_to_rest();
    }

    /// A Service comes to an address that others have.
    fn come_to(&mut self, (namespace, slot): (&str, u64), address: &str) {
        let mut guest = service(namespace, slot);
        guest["metadata"]["annotations"][full(ADDRESS)] = json!(address);
        self.company.services.insert(place((namespace, slot)), guest);
        self.stage.ledger.inputs += 1;
        self.tend();
        self.stage.follow();
    }
}
