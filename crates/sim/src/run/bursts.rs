//! A process begins while a limit of Azure's is used up: what it reads first is refused at once.

use super::Play;
use crate::shortage::Shortage;

/// In how many runs of a thousand.
const REFUSED: u64 = 500;
/// Within so long everything has been read.
const READ_MS: u64 = 60_000;

impl Play {
    /// L3: however many of the first reads are refused, the next one comes when Azure and one step
    /// of the back-off allow it. L1: all is as before.
    pub(super) fn be_refused_at_once(&mut self) {
        let mut random = self.late.fork("limit used up at once");
        if self.stage.breach.is_some() || !random.permille(REFUSED) {
            return;
        }
        self.stage.shortage = Some(Shortage::draw(&mut random));
        for number in 0..self.stage.processes.len() {
            self.stage.kill(number, "restarted while a limit is used up");
        }
        self.stage.advance(self.stage.now_ms + READ_MS);
        self.stage.shortage = None;
        self.heal();
        self.judge_end();
    }
}
