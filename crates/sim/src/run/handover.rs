//! A public IP that was made for one Service goes over to another: the former leaves it at the same
//! moment at which the heir comes to it, so that one plan has both.

use super::Play;
use crate::actor::merge;
use crate::check::form::told;
use crate::scene::Layout;
use crate::scene::objects::service;
use crate::stage::Stage;
use kube_emulator::ObjectRef;
use plan::ask::annotation::full;
use serde_json::{Map, Value, json};

/// In how many seeds of a thousand with one load balancer: an address chooses among several.
const HANDED_OVER: u64 = 400;
/// In how many of a thousand of them each of these is so.
const HALF: u64 = 500;
/// In how many of a thousand of them the heir is a Service that was not there before.
const FRESH: u64 = 350;
/// The Service that the public IP is made for.
const FORMER: (&str, u64) = ("default", 800);
/// The one that comes to it.
const HEIR: (&str, u64) = ("default", 801);

const INTERNAL: &str = "azure-load-balancer-internal";

fn place((namespace, slot): (&str, u64)) -> (String, String) {
    (namespace.to_owned(), format!("web-{slot}"))
}

/// A patch of annotations.
fn annotations(all: &[(&str, Value)]) -> Value {
    let all = all.iter().map(|(key, value)| (full(key), value.clone()));
    json!({"metadata": {"annotations": Value::Object(all.collect::<Map<String, Value>>())}})
}

/// The name and the address of the public IP that a Service tells.
fn public_ip(stage: &Stage, whose: (&str, u64)) -> Option<(String, String)> {
    let (namespace, name) = place(whose);
    let service = stage.kubernetes.get(ObjectRef::new("services", &namespace, &name)).ok()?;
    let all = stage.azure.resources_of("Microsoft.Network/publicIPAddresses");
    let mut own = all.iter().filter_map(|ip| {
        let (name, address) = (ip["name"].as_str()?, ip["properties"]["ipAddress"].as_str()?);
        told(&service).any(|told| told == address).then(|| (name.to_owned(), address.to_owned()))
    });
    own.next()
}

impl Play {
    /// L1: the public IP is the heir's: its tag names the heir alone, and it goes with the heir.
    pub(super) fn be_handed_over(&mut self) {
        let mut random = self.late.fork("handed over");
        let single = matches!(self.stage.scene.layout, Layout::Single | Layout::Nics);
        let on = random.permille(HANDED_OVER) && single;
        if self.stage.breach.is_some() || !on {
            return;
        }
        let mut heir = service(HEIR.0, HEIR.1);
        // It comes for the first time, leaves a public IP of its own, or comes from inside.
        let fresh = random.fork("fresh").permille(FRESH);
        if random.permille(HALF) && !fresh {
            heir["metadata"]["annotations"][full(INTERNAL)] = json!("true");
        }
        if !fresh {
            self.company.services.insert(place(HEIR), heir.clone());
        }
        self.come(FORMER);
        self.heal();
        self.judge_end();
        let Some((name, address)) = public_ip(&self.stage, FORMER) else { return };
        let (key, value) = match random.permille(HALF) {
            true => ("azure-pip-name", name),
            false => ("azure-load-balancer-ipv4", address),
        };
        let comes = annotations(&[(key, json!(value)), (INTERNAL, Value::Null)]);
        let goes = annotations(&[(INTERNAL, json!("true"))]);
        self.stage.ledger.inputs += 1;
        if fresh {
            merge(&mut heir, &comes);
            self.company.services.insert(place(HEIR), heir);
            self.tend();
        } else {
            self.company.apply(&mut self.stage, &place(HEIR), &comes);
        }
        match random.permille(HALF) {
            true => self.company.apply(&mut self.stage, &place(FORMER), &goes),
            false => self.go(FORMER),
        }
        self.heal();
        self.judge_end();
        self.go(FORMER);
        self.go(HEIR);
        self.come_to_rest();
    }
}
