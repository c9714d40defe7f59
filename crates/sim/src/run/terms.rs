//! A leader stands still for longer than its lease lasts, and another process leads and writes;
//! then that one stands still, and the first leads again.

use super::Play;
use crate::process::{Hold, LEASE_MS};
use plan::ask::annotation::full;
use serde_json::json;

/// In how many of a thousand seeds with several processes.
const SWAPPED: u64 = 500;
/// How long a leader stands still.
const STILL_MS: u64 = 4 * LEASE_MS;
/// Within so long lists are certain to show all that was written before.
const SHOWN_MS: u64 = 180_000;
/// The Service that is edited in each term, and what its owner edits.
const GUEST: (&str, u64) = ("default", 809);
const KEY: &str = "azure-load-balancer-tcp-idle-timeout";

impl Play {
    /// L1: each term's edit is written. L4: what another leader wrote counts as drift to none.
    pub(super) fn be_led_in_turns(&mut self) {
        let on = self.late.fork("terms in turns").permille(SWAPPED);
        let elected = self.stage.processes.iter().all(|process| process.hold != Hold::Always);
        let suits = self.stage.processes.len() > 1 && elected;
        if self.stage.breach.is_some() || !on || !suits {
            return;
        }
        self.come(GUEST);
        self.heal();
        self.judge_end();
        self.stage.advance(self.stage.now_ms + SHOWN_MS);
        let noticed = self.stage.drift_noticed();
        for minutes in ["10", "20"] {
            self.stage.hold_leader(STILL_MS);
            self.stage.advance(self.stage.now_ms + STILL_MS);
            self.stage.ledger.inputs += 1;
            let place = (GUEST.0.to_owned(), format!("web-{}", GUEST.1));
            let patch = json!({"metadata": {"annotations": {full(KEY): minutes}}});
            self.company.apply(&mut self.stage, &place, &patch);
            self.heal();
            self.judge_end();
            self.stage.advance(self.stage.now_ms + SHOWN_MS);
        }
        self.stage.check_peace(noticed);
        self.go(GUEST);
        self.come_to_rest();
    }
}
