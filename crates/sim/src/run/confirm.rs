//! An owner has interruptions of a guest wait until they are confirmed, asks for one after the
//! other, and confirms the first (docs/operating.md, `ballast.dev/confirm`).

use super::Play;
use crate::check::tenants::is_refused;
use crate::random::Random;
use crate::scene::Layout;
use crate::scene::objects::service;
use crate::tally::count;
use kube_emulator::ObjectRef;
use plan::ask::annotation::{CONFIRM, CONFIRMED, full};
use plan::ask::hold::to_confirm;
use serde_json::{Value, json};

/// In how many of a thousand seeds with load balancers over nodes.
const ASKED: u64 = 350;
/// In how many of these the processes begin anew while the guest waits.
const RESTARTED: u64 = 300;
/// Within so long lists are certain to show all that was written before a restart.
const SHOWN_MS: u64 = 180_000;
/// The guest, and its ports: the second one may go.
const GUEST: (&str, u64) = ("default", 45);
const SECOND: (u64, u64) = (7_045, 32_640);
/// An address that no other internal Service asks for.
const PINNED: &str = "10.224.9.240";

const INTERNAL: &str = "azure-load-balancer-internal";
const PIN: &str = "azure-load-balancer-ipv4";

/// What the guest's owner asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edit {
    /// Its second port goes.
    Port,
    /// It is reached from outside and no longer from inside, or the other way round.
    Side,
    /// Its internal frontend has another address.
    Address,
}

impl Play {
    /// L1: nothing of the guest goes before its owner has confirmed it, and all that was confirmed
    /// goes; one confirmation is not for what is asked for later. L4: the condition lists what
    /// would go.
    pub(super) fn be_asked(&mut self) {
        let mut random = self.late.fork("confirmations");
        let suits = self.stage.scene.layout != Layout::Containers && random.permille(ASKED);
        if self.stage.breach.is_some() || !suits {
            return;
        }
        let internal = random.permille(500);
        self.bring_asking(internal);
        let first = match internal {
            true => *random.pick(&[Edit::Port, Edit::Side, Edit::Address]),
            false => *random.pick(&[Edit::Port, Edit::Side]),
        };
        self.ask(first, internal, &mut random);
        self.confirm();
        self.take_notice(first);
        // The annotation still lists the first interruption, which confirms no second one.
        let (second, internal) = match first {
            Edit::Port | Edit::Address => (Edit::Side, internal),
            Edit::Side => (Edit::Port, !internal),
        };
        self.ask(second, internal, &mut random);
        self.annotate(json!({ CONFIRM: null, CONFIRMED: null }));
        self.come_to_terms();
        self.take_notice(second);
        self.go(GUEST);
        self.come_to_rest();
    }

    /// The guest comes, and its owner wants to be asked.
    fn bring_asking(&mut self, internal: bool) {
        let mut guest = service(GUEST.0, GUEST.1);
        let (port, node_port) = SECOND;
        let second = json!({"name": "second", "protocol": "TCP", "port": port,
            "targetPort": 8081, "nodePort": node_port});
        let ports = guest["spec"]["ports"].as_array_mut();
        ports.into_iter().for_each(|ports| ports.push(second.clone()));
        guest["metadata"]["annotations"][CONFIRM] = json!("true");
        if internal {
            guest["metadata"]["annotations"][full(INTERNAL)] = json!("true");
        }
        let place = (GUEST.0.to_owned(), format!("web-{}", GUEST.1));
        self.company.services.insert(place, guest);
        self.stage.ledger.inputs += 1;
        self.come_to_terms();
    }

    /// The owner asks for an interruption, and it waits.
    fn ask(&mut self, edit: Edit, internal: bool, random: &mut Random) {
        if self.stage.breach.is_some() {
            return;
        }
        self.stage.note_settled();
        let (told, before) = (self.told_address(), self.stage.ledger.attempts);
        let (patch, due) = match edit {
            Edit::Port => {
                let first = service(GUEST.0, GUEST.1)["spec"]["ports"].clone();
                (json!({"spec": {"ports": first}}), format!("TCP/{}", SECOND.0))
            }
            Edit::Side => {
                let value = if internal { Value::Null } else { json!("true") };
                let (side, pin) = (full(INTERNAL), full(PIN));
                // A private address cannot be that of a public load balancer.
                (json!({"metadata": {"annotations": {side: value, pin: null}}}), told)
            }
            Edit::Address => {
                let pin = full(PIN);
                (json!({"metadata": {"annotations": {pin: PINNED}}}), told)
            }
        };
        self.edit_asking(&patch);
        self.come_to_terms();
        if random.permille(RESTARTED) && self.stage.breach.is_none() {
            for number in 0..self.stage.processes.len() {
                self.stage.kill(number, "restarted before a confirmation");
            }
            self.stage.advance(self.stage.now_ms + SHOWN_MS);
            self.come_to_terms();
        }
        let written = self.stage.ledger.attempts - before;
        self.judge_asked(written, &due);
    }

    /// L1: nothing is written for what is not confirmed. L4: the condition lists what would go.
    fn judge_asked(&mut self, written: u64, due: &str) {
        if self.stage.breach.is_some() {
            return;
        }
        count(&mut self.stage.tally.checks, "L1");
        if written > 0 {
            let text = format!("{written} writes before an owner has confirmed that {due} goes");
            self.stage.fail("L1", text);
            return;
        }
        count(&mut self.stage.tally.checks, "L4");
        let list = self.to_confirm().unwrap_or_default();
        if !list.split(',').any(|one| one.trim() == due) {
            let text = format!("an owner is to confirm {list:?}, and {due} is to go");
            self.stage.fail("L4", text);
        }
    }

    /// The owner confirms what the condition lists.
    fn confirm(&mut self) {
        let list = self.to_confirm().unwrap_or_default();
        self.annotate(json!({ CONFIRMED: list }));
        self.come_to_terms();
    }

    /// L1: what was confirmed is done.
    fn take_notice(&mut self, edit: Edit) {
        if self.stage.breach.is_some() {
            return;
        }
        count(&mut self.stage.tally.checks, "L1");
        if self.guest().is_none_or(|guest| is_refused(&guest)) {
            self.stage.fail("L1", format!("{edit:?} was confirmed, and is not done"));
        }
    }

    fn annotate(&mut self, annotations: Value) {
        self.edit_asking(&json!({"metadata": {"annotations": annotations}}));
    }

    fn edit_asking(&mut self, patch: &Value) {
        let place = (GUEST.0.to_owned(), format!("web-{}", GUEST.1));
        self.stage.ledger.inputs += 1;
        self.company.apply(&mut self.stage, &place, patch);
    }

    /// Everything comes to rest, and is judged.
    fn come_to_terms(&mut self) {
        self.heal();
        self.judge_end();
    }

    fn guest(&self) -> Option<Value> {
        let name = format!("web-{}", GUEST.1);
        let object = self.stage.kubernetes.get(ObjectRef::new("services", GUEST.0, &name));
        object.ok().map(|object| Value::clone(&object))
    }

    /// The first address that the guest's status tells.
    fn told_address(&self) -> String {
        let guest = self.guest().unwrap_or_default();
        guest["status"]["loadBalancer"]["ingress"][0]["ip"].as_str().unwrap_or("").to_owned()
    }

    /// What the guest's condition asks its owner to confirm.
    fn to_confirm(&self) -> Option<String> {
        let guest = self.guest()?;
        let conditions = guest["status"]["conditions"].as_array()?;
        let mut messages = conditions.iter().filter_map(|condition| condition["message"].as_str());
        messages.find_map(to_confirm).map(str::to_owned)
    }
}
