//! Processes wake, hold the lease, die and start again.

use crate::config::Config;
use crate::process::{Hold, Process};
use crate::stage::{Happening, Stage};
use model::kubernetes::Backends;
use serde_json::Value;

/// The lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// The process and its life that hold it.
    pub holder: Option<(usize, u64)>,
    /// When it was renewed.
    pub renewed_ms: u64,
    /// How often it changed hands.
    pub term: u64,
}

/// How a process ends for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was asked to, and gave the lease back.
    Released,
    /// It crashed, and its lease has to run out.
    Crashed,
}

impl Stage {
    /// Wakes a process when it wants to be.
    pub(crate) fn arrange_wake(&mut self, number: usize) {
        let process = &mut self.processes[number];
        let Some(wish) = process.next_wake_ms() else { return };
        let soonest = if wish <= self.now_ms { self.now_ms + 1 } else { wish };
        if process.wake_at.is_none_or(|at| at > soonest) {
            process.wake_at = Some(soonest);
            let epoch = process.epoch;
            self.queue_at(soonest, Happening::Wake(number, epoch, soonest));
        }
    }

    /// The process that leads stands still for so long.
    pub(crate) fn hold_leader(&mut self, still_ms: u64) {
        let Some((number, _)) = self.lease.holder else { return };
        let until_ms = self.now_ms + still_ms;
        self.trace.say(self.now_ms, || format!("process {number} stands still for {still_ms} ms"));
        let process = &mut self.processes[number];
        process.paused_until = process.paused_until.max(until_ms);
    }

    /// A process dies and another starts in its place. `how` goes into the trace.
    pub fn kill(&mut self, number: usize, how: &str) {
        self.trace.say(self.now_ms, || format!("process {number} dies: {how}"));
        self.drop_unsent(number);
        let old = &self.processes[number];
        let hold = if old.hold == Hold::Always { Hold::Always } else { Hold::Not };
        let epoch = old.epoch + 1;
        let mut fresh = Process::start(&self.cluster(), number, epoch, hold);
        fresh.skew_ms = self.weather.skew_ms();
        if hold == Hold::Always {
            fresh.inbox.extend(self.heard_of_pause());
        }
        self.processes[number] = fresh;
        self.open_book((number, epoch));
        if hold == Hold::Not {
            self.queue_at(self.now_ms + 1 + number as u64, Happening::Renew(number, epoch));
        }
        if let Some(mutant) = &mut self.mutant {
            mutant.restart();
        }
        self.arrange_watches();
    }

    /// What a process that stands still has not sent yet dies with it; what it sent goes on.
    fn drop_unsent(&mut self, number: usize) {
        let now_ms = self.now_ms;
        let before = self.queue.len();
        self.queue.retain(|_, happening| match happening {
            Happening::AzureArrives(sent, ..) | Happening::ApiArrives(sent, ..) => {
                sent.process != number || sent.leaves_ms <= now_ms
            }
            _ => true,
        });
        self.busy -= (before - self.queue.len()) as u64;
    }

    /// A process ends for good, and what it sent is still on its way.
    pub fn end(&mut self, number: usize, ending: Ending) {
        if ending == Ending::Released {
            self.resign(number);
        }
        self.kill(number, "for good");
        self.processes[number].hold = Hold::Ended;
    }

    /// Every process ends in order and starts again with this cloud config.
    pub fn reconfigure(&mut self, config: Config) {
        let before = std::mem::replace(&mut self.config, config);
        if course(&before) != course(&self.config) {
            self.begin_moves(&before);
        }
        for number in 0..self.processes.len() {
            self.resign(number);
            self.kill(number, "restarted with another cloud config");
        }
    }
}

/// Which load balancers a cloud config has Services on in the end, and how they get there.
fn course(config: &Config) -> (Backends, &Value) {
    (config.backends(), &config.written["layoutMigration"])
}
