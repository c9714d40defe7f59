//! The controller's identity loses the right to read a list, and gets it back: what stands stays,
//! and Services say for so long that they cannot be checked. Or the items of a list have a form
//! that is not known.

use super::Play;
use crate::check::form::{conditions, text};
use crate::poison::{Poison, UNREADABLE};
use crate::tally::count;
use azure_emulator::Switch;
use kube_emulator::ObjectRef;
use model::kubernetes::SERVICE_CONDITION;

/// In how many runs of a thousand.
const BLINDED: u64 = 250;
/// Lists that what every Service has stands in.
const LISTS: [&str; 2] = ["/loadbalancers", "/publicipaddresses"];
/// Within so long a list is read again, and conditions of its Services say that it cannot be.
const TOLD_MS: u64 = 300_000;
/// Within so long after that it is read again: reads that fail are retried once a minute.
const READ_MS: u64 = 180_000;
const GUEST: (&str, u64) = ("default", 59);

/// In how many runs of a thousand the items of a list have a form that is not known.
const GARBLED: u64 = 400;
/// For so long: several looks for drift.
const GARBLED_MS: u64 = 300_000;

impl Play {
    /// L1: what a list names and cannot be read is there as it was, and nothing is written for it.
    pub(super) fn be_puzzled(&mut self) {
        let mut random = self.late.fork("unreadable items");
        let throttled = self.stage.azure.options().throttle == Switch::On;
        if self.stage.breach.is_some() || throttled || !random.permille(GARBLED) {
            return;
        }
        self.heal();
        self.judge_end();
        let list = *random.pick(&LISTS);
        let written = self.stage.ledger.attempts;
        self.stage.poison = Some(Poison::of_items(list));
        self.stage.advance(self.stage.now_ms + GARBLED_MS);
        let met = self.stage.poison.take().is_some_and(|poison| poison.met);
        if met && self.stage.breach.is_none() {
            count(&mut self.stage.tally.checks, "L1");
            if self.stage.ledger.attempts > written {
                let text = format!("something is written because items of {list} are unreadable");
                self.stage.fail("L1", text);
            }
        }
        self.heal();
        self.judge_end();
    }

    /// L1: nothing is written for want of a list. L4: the guest's condition is True and says that
    /// the guest cannot be checked, until the list is read again.
    pub(super) fn be_blinded(&mut self) {
        let mut random = self.late.fork("unreadable lists");
        // Azure's buckets may keep a process from reading its lists for longer than is waited here.
        let throttled = self.stage.azure.options().throttle == Switch::On;
        if self.stage.breach.is_some() || throttled || !random.permille(BLINDED) {
            return;
        }
        self.come(GUEST);
        self.heal();
        self.judge_end();
        let list = *random.pick(&LISTS);
        let written = self.stage.ledger.attempts;
        self.stage.poison = Some(Poison::of_list(list));
        self.stage.advance(self.stage.now_ms + TOLD_MS);
        let met = self.stage.poison.take().is_some_and(|poison| poison.met);
        if met && self.stage.breach.is_none() {
            count(&mut self.stage.tally.checks, "L1");
            if self.stage.ledger.attempts > written {
                let text = format!("something is written because {list} cannot be read");
                self.stage.fail("L1", text);
            }
            self.judge_doubt(true, list);
            self.stage.advance(self.stage.now_ms + READ_MS);
            self.heal();
            self.judge_doubt(false, list);
        }
        self.judge_end();
        self.go(GUEST);
        self.come_to_rest();
    }

    /// Whether the guest's condition is True, and says that the guest cannot be checked while that
    /// is so. Where it says nothing there is no condition.
    fn judge_doubt(&mut self, doubted: bool, list: &str) {
        if self.stage.breach.is_some() {
            return;
        }
        count(&mut self.stage.tally.checks, "L4");
        let name = format!("web-{}", GUEST.1);
        let object = self.stage.kubernetes.get(ObjectRef::new("services", GUEST.0, &name));
        let Ok(guest) = object else { return };
        let own = conditions(&guest).find(|condition| condition["type"] == SERVICE_CONDITION);
        let status = own.map_or("True", |condition| text(&condition["status"]));
        let says = own.map_or("", |condition| text(&condition["message"]));
        if status != "True" || says.contains(UNREADABLE) != doubted {
            let can = if doubted { "cannot" } else { "can" };
            let text = format!("{list} {can} be read; web-{} is {status}: {says}", GUEST.1);
            self.stage.fail("L4", text);
        }
    }
}
