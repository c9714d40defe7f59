//! Lists take long, and meanwhile an owner edits a Service: when a list comes it shows what stood
//! before writes that have ended since.

use super::Play;
use crate::check::history::Edits;
use crate::scene::Layout;
use crate::scene::objects::pod;
use crate::tally::count;
use azure_emulator::Switch;
use kube_emulator::ObjectRef;
use plan::ask::annotation::full;
use serde_json::{Map, Value, json};

/// In how many runs of a thousand.
const OVERTAKEN: u64 = 300;
/// How long a list takes: less than the minute after which the edge gives up on an answer.
const LIST_MS: u64 = 55_000;
/// How often the owner edits the Service, and how many times: each list of one interval is
/// overtaken by a write, which has ended when the list comes.
const EVERY_MS: u64 = 40_000;
const EDITS: u64 = 10;
/// The Service that comes and is edited.
const GUEST: (&str, u64) = ("default", 57);
/// What its owner edits, and what follows from it.
const KEY: &str = "azure-load-balancer-tcp-idle-timeout";
const FIELD: &str = "idleTimeoutInMinutes";

impl Play {
    /// L4 and L5: each edit is written once, the history names the edit, and no drift is counted.
    /// S5 judges each write.
    pub(super) fn be_overtaken(&mut self) {
        let on = self.late.fork("lists that take long").permille(OVERTAKEN);
        if self.stage.breach.is_some() || !on {
            return;
        }
        self.add_guests_pod(0);
        self.come(GUEST);
        self.heal();
        self.judge_end();
        let noticed = self.stage.drift_noticed();
        let before = self.stage.ledger.attempts;
        let history = self.stage.history_end();
        self.stage.list_ms = LIST_MS;
        for edit in 1..=EDITS {
            self.edit_guest(edit);
            self.stage.advance(self.stage.now_ms + EVERY_MS);
        }
        self.stage.list_ms = 0;
        let written = self.stage.ledger.attempts - before;
        // What Azure's buckets refuse is sent again.
        if self.stage.azure.options().throttle == Switch::Off {
            count(&mut self.stage.tally.checks, "L5");
            if written > EDITS {
                let text = format!("{written} writes for {EDITS} edits while lists took long");
                self.stage.fail("L5", text);
            }
            let service = format!("{}/web-{}", GUEST.0, GUEST.1);
            let edits = Edits { service: &service, key: KEY, field: FIELD };
            self.stage.check_history(history, &edits);
        }
        self.stage.check_peace(noticed);
        self.heal();
        self.judge_end();
        self.go(GUEST);
        for number in 0..=EDITS {
            let name = pod_name(number);
            if self.company.pods.remove(&name).is_some() {
                let object = ObjectRef::new("pods", "default", &name);
                let _ = self.stage.kubernetes.delete(object, self.stage.now_ms);
            }
        }
        self.stage.follow();
        self.come_to_rest();
    }

    /// One edit that one write of one resource carries out: behind a Service Gateway every other
    /// one is a Pod that comes, which the table of addresses has.
    fn edit_guest(&mut self, edit: u64) {
        self.stage.ledger.inputs += 1;
        let containers = self.stage.scene.layout == Layout::Containers;
        if containers && edit.is_multiple_of(2) {
            self.add_guests_pod(edit);
            self.tend();
            return;
        }
        let turn = if containers { edit / 2 } else { edit };
        let minutes = if turn.is_multiple_of(2) { "10" } else { "20" };
        let key = full(KEY);
        let annotations = Map::from_iter([(key, json!(minutes))]);
        let patch = json!({"metadata": {"annotations": Value::Object(annotations)}});
        let place = (GUEST.0.to_owned(), format!("web-{}", GUEST.1));
        self.company.apply(&mut self.stage, &place, &patch);
    }

    /// A Pod of the guest's comes, where container load balancers lead to Pods.
    fn add_guests_pod(&mut self, number: u64) {
        let node = self.company.nodes.keys().next().copied();
        let containers = self.stage.scene.layout == Layout::Containers;
        let Some(node) = node.filter(|_| containers) else { return };
        let (name, labels) = (pod_name(number), json!({"app": format!("web-{}", GUEST.1)}));
        let pod = pod(&name, &labels, node, &format!("10.244.7.{}", 10 + number));
        self.company.pods.insert(name, pod);
    }
}

fn pod_name(number: u64) -> String {
    format!("late-{number}")
}
