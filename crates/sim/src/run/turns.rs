//! The operator has Services move from container load balancers to load balancers over nodes, and
//! turns the config back on the way.

use super::Play;
use crate::scene::Layout;
use crate::tally::count;
use azure_emulator::Switch;
use model::kubernetes::Backends;

/// In how many runs of a thousand with container load balancers.
const TURNED: u64 = 600;
/// How long Services go one way. By its end some have the addresses of both, and some have left the
/// former.
const LEGS_MS: [u64; 5] = [60_000, 90_000, 150_000, 240_000, 420_000];
/// How long they are to have both addresses.
const KEPT: [&str; 4] = ["10s", "3m", "10m", "untilTold"];
/// How long on the last way.
const KEPT_LAST: &str = "3m";
/// Within so long lists are certain to show all that was written before a restart.
const SHOWN_MS: u64 = 180_000;

impl Play {
    /// S3 and L4 while the config turns; L1 once all are back.
    pub(super) fn be_turned(&mut self) {
        let mut random = self.late.fork("moves that turn");
        let stage = &self.stage;
        let suits = stage.scene.layout == Layout::Containers && random.permille(TURNED);
        // A Service that container load balancers refuse would stay over nodes, as what a Service
        // has left that went without its finalizer.
        let all_can = || stage.refused().is_empty() && stage.stripped_names().is_empty();
        if stage.breach.is_some() || !suits || !all_can() {
            return;
        }
        let usual = self.company.changes.clone();
        let turns = if random.permille(500) { 2 } else { 4 };
        for turn in 1..=turns {
            let to = if turn % 2 == 1 { Backends::Nodes } else { Backends::Pods };
            let keep_both = if turn == turns { KEPT_LAST } else { *random.pick(&KEPT) };
            self.stage.ledger.inputs += 1;
            self.company.send_to(to, keep_both, &usual, &mut self.stage);
            if turn < turns {
                let leg_ms = *random.pick(&LEGS_MS);
                self.stage.advance(self.stage.now_ms + leg_ms);
                self.judge_direction();
            }
        }
        self.heal();
        self.judge_end();
        self.stage.advance(self.stage.now_ms + SHOWN_MS);
        self.stage.ledger.inputs += 1;
        self.company.reconfigure(usual, &mut self.stage);
        self.heal();
        self.judge_end();
    }

    /// L4: conditions name the way that Services go. Azure's buckets may keep a process that begins
    /// from reading what it plans on.
    fn judge_direction(&mut self) {
        if self.stage.azure.options().throttle == Switch::On {
            return;
        }
        count(&mut self.stage.tally.checks, "L4");
        if let Some(text) = self.stage.misdirected() {
            self.stage.fail("L4", text);
        }
    }
}
