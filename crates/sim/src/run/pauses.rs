//! An operator pauses writes to Azure while a guest comes, and ends the pause.

use super::Play;
use crate::check::pauses::{HEARD_MS, PAUSES};
use crate::tally::count;

/// How long a guest waits, before and after a restart.
const PAUSED_MS: u64 = 90_000;
/// In how many pauses of a thousand there is one.
const RESTARTED: u64 = 500;
/// In how many of a thousand the operator has paused something else just before.
const OTHER_FIRST: u64 = 500;

impl Play {
    /// S5 and L4 during a pause; L1 and L4 once it has ended.
    pub(super) fn be_paused(&mut self) {
        if self.stage.breach.is_some() {
            return;
        }
        let mut random = self.late.fork("pause of all writes");
        let which = usize::try_from(random.below(PAUSES.len() as u64)).unwrap_or(0);
        self.stage.note_settled();
        if random.permille(OTHER_FIRST) {
            // What is paused may change while a pause lasts.
            self.stage.pause_writes(Some((which + 1) % PAUSES.len()));
            self.stage.advance(self.stage.now_ms + HEARD_MS);
        }
        self.stage.pause_writes(Some(which));
        self.stage.advance(self.stage.now_ms + HEARD_MS);
        let guest = ("default", 46);
        self.come(guest);
        self.stage.advance(self.stage.now_ms + PAUSED_MS);
        if random.permille(RESTARTED) {
            for number in 0..self.stage.processes.len() {
                self.stage.kill(number, "restarted during a pause");
            }
            self.stage.advance(self.stage.now_ms + PAUSED_MS);
        }
        count(&mut self.stage.tally.checks, "L4");
        if let Some(text) = self.stage.untold_pause("default", "web-46") {
            self.stage.fail("L4", text);
        }
        self.stage.pause_writes(None);
        self.stage.advance(self.stage.now_ms + HEARD_MS);
        self.heal();
        self.judge_end();
        self.go(guest);
        self.come_to_rest();
    }
}
