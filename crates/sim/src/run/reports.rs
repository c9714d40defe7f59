//! The operator has drift reported and not repaired, another client changes what is ours, and the
//! same resources are written for other reasons.

use super::Play;
use crate::actor::Company;
use crate::check::cost::snapshot;
use crate::scene::Layout;
use crate::scene::objects::service;
use plan::ask::annotation::full;
use serde_json::{Map, Value, json};

/// In how many runs of a thousand over nodes.
const REPORTED: u64 = 350;
/// In how many of these the process is restarted while drift is left.
const RESTARTED: u64 = 500;
/// The key of the cloud config.
const DRIFT: &str = "driftPolicy";
/// Within so long everything has been read in peace, and what others change is noticed: the
/// interval, the time for which the look for drift gives way to other reads, and a takeover.
const NOTICED_MS: u64 = 400_000;
/// How long writes of one Service may take: each resource is an operation of its own.
const WRITTEN_MS: u64 = 240_000;
/// The Service that comes, is edited and goes meanwhile.
const GUEST: (&str, u64) = ("default", 51);
/// What it asks for first and then, of its rules and of its public IP.
const ASKED: [[(&str, &str); 2]; 2] = [
    [(TIMEOUT, "10"), (TAGS, "team=red,owner=us")],
    [(TIMEOUT, "20"), (TAGS, "team=blue,stage=two")],
];
const TIMEOUT: &str = "azure-load-balancer-tcp-idle-timeout";
const TAGS: &str = "azure-pip-tags";

fn annotations(asked: &[(&str, &str)]) -> Value {
    let all = asked.iter().map(|(key, value)| (full(key), json!(value)));
    Value::Object(all.collect::<Map<String, Value>>())
}

impl Play {
    /// S2 while drift is left; L1 once it is repaired.
    pub(super) fn be_reported(&mut self) {
        let mut random = self.late.fork("drift that is left");
        // Where nothing is opened there is no ledger to note it in (docs/drift.md).
        let suits = self.stage.scene.layout != Layout::Containers && random.permille(REPORTED);
        if self.stage.breach.is_some() || !suits {
            return;
        }
        let usual = self.company.changes[DRIFT].clone();
        self.set_key(DRIFT, &json!("report"));
        self.heal();
        self.judge_end();
        self.stage.advance(self.stage.now_ms + NOTICED_MS);
        let before = self.stage.before_hands();
        let stood = snapshot(&self.stage);
        Company::change_ours(&mut random, &mut self.stage);
        self.stage.after_hands(&before);
        self.stage.leave_as_it_is(&stood);
        self.stage.advance(self.stage.now_ms + NOTICED_MS);
        self.bring_newcomer();
        self.stage.advance(self.stage.now_ms + WRITTEN_MS);
        if random.permille(RESTARTED) {
            for number in 0..self.stage.processes.len() {
                self.stage.kill(number, "restarted while drift is left");
            }
            self.stage.advance(self.stage.now_ms + NOTICED_MS);
        }
        self.edit_newcomer();
        self.stage.advance(self.stage.now_ms + WRITTEN_MS);
        self.go(GUEST);
        self.stage.advance(self.stage.now_ms + WRITTEN_MS);
        self.stage.ledger.left.clear();
        self.set_key(DRIFT, &usual);
        // What others changed is put right from now on only.
        self.stage.ledger.touched.renew(self.stage.now_ms);
        self.heal();
        self.judge_end();
    }

    fn bring_newcomer(&mut self) {
        let mut manifest = service(GUEST.0, GUEST.1);
        manifest["metadata"]["annotations"] = annotations(&ASKED[0]);
        self.company.services.insert(newcomer(), manifest);
        self.stage.ledger.inputs += 1;
        self.tend();
        self.stage.follow();
    }

    fn edit_newcomer(&mut self) {
        self.stage.ledger.inputs += 1;
        let patch = json!({"metadata": {"annotations": annotations(&ASKED[1])}});
        self.company.apply(&mut self.stage, &newcomer(), &patch);
    }
}

fn newcomer() -> (String, String) {
    (GUEST.0.to_owned(), format!("web-{}", GUEST.1))
}
