//! An owner writes the values of annotations in another spelling, and the operator the cloud config
//! in other letters.

use super::Play;
use crate::scene::Layout;
use crate::scene::objects::service;
use crate::tally::count;
use plan::ask::annotation::full;
use serde_json::{Map, Value, json};

/// Annotations, each with two spellings of one value: neither the order of ranges nor the letter
/// case of these values has a meaning.
const SPELLINGS: [(&str, [&str; 2]); 4] = [
    ("azure-pip-ip-tags", ["RoutingPreference=Internet", "routingpreference=INTERNET"]),
    ("azure-load-balancer-health-probe-protocol", ["http", "Http"]),
    ("azure-load-balancer-disable-tcp-reset", ["true", "TRUE"]),
    (
        "azure-allowed-ip-ranges",
        ["203.0.113.0/24,198.51.100.0/24", "198.51.100.0/24, 203.0.113.0/24"],
    ),
];
/// With this key of the cloud config IP tags are written in place, and a new spelling is a change.
const IN_PLACE: &str = "enableIPTagMutationForExistingPublicIP";
/// The time within which a change would be written.
const HEARD_MS: u64 = 120_000;
/// In how many of a thousand seeds the operator writes the cloud config in other letters.
const REWRITTEN: u64 = 500;

/// All annotations in one of the two spellings.
fn spelled(which: usize) -> Value {
    let pair = |(key, both): &(&str, [&str; 2])| (full(key), json!(both[which]));
    Value::Object(SPELLINGS.iter().map(pair).collect::<Map<String, Value>>())
}

impl Play {
    /// L1: another spelling of the same values causes no write. IP tags are fixed when a public IP
    /// is made, so that a write for them would replace the address.
    pub(super) fn be_respelled(&mut self) {
        let layout = self.stage.scene.layout;
        // Behind a Service Gateway there is no health probe and no security rule of ours, and Basic
        // load balancers, as most of one for each node set are, take no IP tags.
        let suits = matches!(layout, Layout::Single | Layout::Nics | Layout::Several);
        let in_place = self.stage.config.written[IN_PLACE] == true;
        if self.stage.breach.is_some() || !suits || in_place {
            return;
        }
        let guest = ("default", 49);
        let place = ("default".to_owned(), "web-49".to_owned());
        let mut manifest = service(guest.0, guest.1);
        manifest["metadata"]["annotations"] = spelled(0);
        self.company.services.insert(place.clone(), manifest);
        self.stage.ledger.inputs += 1;
        self.heal();
        self.judge_end();
        if self.stage.breach.is_some() {
            return;
        }
        count(&mut self.stage.tally.checks, "L1");
        let before = self.stage.ledger.attempts;
        self.stage.ledger.inputs += 1;
        let patch = json!({"metadata": {"annotations": spelled(1)}});
        self.company.apply(&mut self.stage, &place, &patch);
        self.stage.advance(self.stage.now_ms + HEARD_MS);
        let written = self.stage.ledger.attempts - before;
        if written > 0 {
            let text = format!("{written} writes for another spelling of the same values");
            self.stage.fail("L1", text);
            return;
        }
        self.judge_end();
        self.go(guest);
        self.come_to_rest();
    }

    /// L1: the same cloud config in other letters causes no write: neither its keys nor names of
    /// what Azure has have a letter case.
    pub(super) fn be_rewritten(&mut self) {
        let on = self.late.fork("letters").permille(REWRITTEN);
        if self.stage.breach.is_some() || !on {
            return;
        }
        count(&mut self.stage.tally.checks, "L1");
        let before = self.stage.ledger.attempts;
        self.stage.ledger.inputs += 1;
        self.company.rewrite_config(&mut self.stage);
        self.stage.advance(self.stage.now_ms + HEARD_MS);
        self.stage.settle(60_000);
        let written = self.stage.ledger.attempts - before;
        if written > 0 {
            let text = format!("{written} writes for the same cloud config in other letters");
            self.stage.fail("L1", text);
            return;
        }
        self.judge_end();
    }
}
