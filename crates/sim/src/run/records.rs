//! The ledger is deleted by hand, as an operator does who takes the ConfigMap for a leftover: the
//! leader writes it again, and the next opening is recorded as any other (docs/security.md).

use super::Play;
use crate::tally::count;
use kube_emulator::ObjectRef;

/// In how many of a thousand seeds.
const DELETED: u64 = 300;
/// Within so long the leader has read that it is gone.
const READ_MS: u64 = 180_000;
/// Who comes after that.
const GUEST: (&str, u64) = ("default", 808);
const LEDGER: (&str, &str) = ("kube-system", "ballast-ledger");

impl Play {
    /// L1: who comes once the ledger is gone gets its address.
    pub(super) fn be_unrecorded(&mut self) {
        let mut random = self.late.fork("ledger deleted");
        if self.stage.breach.is_some() || !random.permille(DELETED) {
            return;
        }
        let object = ObjectRef::new("configmaps", LEDGER.0, LEDGER.1);
        let gone = self.stage.kubernetes.delete(object, self.stage.now_ms).is_ok();
        self.stage.trace.say(self.stage.now_ms, || format!("the ledger is deleted: {gone}"));
        self.stage.ledger.inputs += 1;
        self.stage.follow();
        if random.permille(500) {
            self.stage.advance(self.stage.now_ms + READ_MS);
        }
        count(&mut self.stage.tally.checks, "L1");
        self.come(GUEST);
        // What is written to a ledger that is gone is refused once, and then makes one.
        self.stage.advance(self.stage.now_ms + READ_MS);
        self.heal();
        self.judge_end();
        self.go(GUEST);
        self.come_to_rest();
    }
}
