//! Processes wake, hold the lease, die and start again.

use crate::config::Config;
use crate::process::{Hold, LEASE_MS, Process, RENEW_MS, RETRY_MS};
use crate::stage::{Happening, Stage};
use control::{Event, Leadership};

/// How a process ends for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was asked to, and gave the lease back.
    Released,
    /// It crashed, and its lease has to run out.
    Crashed,
}

impl Stage {
    /// A process renews the lease, asks for it, or notices that it has lost it.
    pub(crate) fn renew(&mut self, number: usize) {
        self.queue_at(self.now_ms + RETRY_MS, Happening::Renew(number));
        let now_ms = self.now_ms;
        let down = self.api_down_until > now_ms;
        let process = &mut self.processes[number];
        let me = (number, process.epoch);
        let free = self.lease.holder.is_none() || self.lease.renewed_ms + LEASE_MS <= now_ms;
        let mine = self.lease.holder == Some(me);
        let news = match process.hold {
            Hold::Since(_) if mine && !down => {
                process.hold = Hold::Since(now_ms);
                self.lease.renewed_ms = now_ms;
                None
            }
            Hold::Since(renewed) if !mine || renewed + RENEW_MS <= now_ms => {
                process.hold = Hold::Not;
                Some(Leadership::Lost)
            }
            Hold::Not if !down && (free || mine) => {
                process.hold = Hold::Since(now_ms);
                self.lease.renewed_ms = now_ms;
                if !mine {
                    self.lease.holder = Some(me);
                    self.lease.term += 1;
                }
                Some(Leadership::Held)
            }
            Hold::Since(_) | Hold::Not | Hold::Always | Hold::Ended => None,
        };
        if let Some(leadership) = news {
            process.inbox.push(Event::Leadership(leadership));
            self.trace.say(now_ms, || format!("process {number}: the lease is {leadership:?}"));
            self.queue_step(number);
        }
    }

    /// Wakes a process when it wants to be.
    pub(crate) fn arrange_wake(&mut self, number: usize) {
        let process = &mut self.processes[number];
        let Some(wish) = process.controller.next_wake_ms() else { return };
        let soonest = if wish <= self.now_ms { self.now_ms + 1 } else { wish };
        if process.wake_at.is_none_or(|at| at > soonest) {
            process.wake_at = Some(soonest);
            let epoch = process.epoch;
            self.queue_at(soonest, Happening::Wake(number, epoch, soonest));
        }
    }

    /// A process dies and another starts in its place. `how` goes into the trace.
    pub fn kill(&mut self, number: usize, how: &str) {
        self.trace.say(self.now_ms, || format!("process {number} dies: {how}"));
        self.drop_unsent(number);
        let old = &self.processes[number];
        let hold = if old.hold == Hold::Always { Hold::Always } else { Hold::Not };
        let epoch = old.epoch + 1;
        let layout = self.scene.layout;
        let fresh = Process::start(self.config.policy().clone(), layout, number, epoch, hold);
        self.processes[number] = fresh;
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
        let me = (number, self.processes[number].epoch);
        self.kill(number, "for good");
        self.processes[number].hold = Hold::Ended;
        if ending == Ending::Released && self.lease.holder == Some(me) {
            self.lease.holder = None;
        }
    }

    /// Every process ends in order and starts again with this cloud config.
    pub fn reconfigure(&mut self, config: Config) {
        self.config = config;
        self.lease.holder = None;
        for number in 0..self.processes.len() {
            self.kill(number, "restarted with another cloud config");
        }
    }
}
