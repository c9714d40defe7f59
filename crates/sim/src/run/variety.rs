//! L1 over Services of every kind, while nothing goes wrong.

use super::{HEAL_MS, Play};
use crate::actor::Company;
use crate::check::fair::Round;
use crate::random::Random;
use crate::tally::count;
use serde_json::Value;
use std::sync::Arc;

/// A node that goes has drained after so many minutes.
const DRAIN_MIN: u64 = 8;

/// How long another client's outbound rule uses a frontend whose Service goes.
const LENT_MS: u64 = 120_000;

/// How often each of them changes.
const CHANGES: usize = 3;

impl Play {
    /// Services with annotations and fields of all kinds come, change, and some of them go. Each
    /// time everything is judged.
    pub(super) fn vary(&mut self) {
        let mut random = self.late.fork("variety");
        let mut doubts = self.late.fork("doubts");
        let mut aging = self.late.fork("old tags");
        let mut holds = self.late.fork("holds");
        let mut shrinking = self.late.fork("shrinking");
        let mut spoiling = self.late.fork("spoiling");
        let mut sharing = self.late.fork("sharing");
        let mut failing = self.late.fork("failing");
        for round in 0..CHANGES + 2 {
            if self.stage.breach.is_some() {
                return;
            }
            self.stage.ledger.inputs += 1;
            self.stage.note_settled();
            self.stage.ledger.round = Round::default();
            let mut earlier: Vec<Arc<Value>> = Vec::new();
            match round {
                0 => {
                    earlier.extend(self.stage.azure.shown());
                    self.company.doubt(&mut doubts, &mut self.stage);
                    self.company.show(&mut random, &mut self.stage);
                    self.company.share(&mut self.stage);
                }
                round if round > CHANGES => {
                    let lent = self.company.lend(&mut random, &mut self.stage);
                    self.company.doubt_no_more(&mut self.stage);
                    self.company.dismiss(&mut random, &mut self.stage);
                    if let Some(balancer) = lent {
                        self.stage.advance(self.stage.now_ms + LENT_MS);
                        Company::take_back(&balancer, &mut self.stage);
                    }
                }
                _ => {
                    self.company.doubt_otherwise((&mut doubts, &mut holds), &mut self.stage);
                    self.company.change_all(&mut random, &mut self.stage);
                    self.company.scale_in(&mut shrinking, &mut self.stage);
                    self.company.share_otherwise(&mut sharing, &mut self.stage);
                }
            }
            self.stage.follow();
            self.come_right();
            self.stage.check_round(round == 0);
            if round == 0 {
                self.judge_newcomers(&earlier);
                Company::meddle(&mut random, &mut self.stage);
                Company::fail_group(&mut failing, &mut self.stage);
                Company::age(&mut aging, &mut self.stage);
                self.come_right();
                self.be_spoiled(&mut spoiling);
                self.scale_out();
            }
        }
    }

    /// Nodes come, and nothing else changes.
    fn scale_out(&mut self) {
        if self.stage.breach.is_some() {
            return;
        }
        let earlier: Vec<Arc<Value>> = self.stage.azure.shown().collect();
        self.company.scale_out(&mut self.stage);
        self.stage.follow();
        self.come_right();
        self.judge_newcomers(&earlier);
    }

    /// L1 for Services or nodes that came together.
    fn judge_newcomers(&mut self, earlier: &[Arc<Value>]) {
        count(&mut self.stage.tally.checks, "L1");
        if let Some(broken) = self.stage.unkept_to_newcomers(earlier).first() {
            self.stage.fail("L1", broken.to_string());
        }
    }

    /// An operator changes what is ours, and it is put back.
    fn be_spoiled(&mut self, random: &mut Random) {
        if self.stage.breach.is_some() {
            return;
        }
        let before = self.stage.before_hands();
        Company::spoil(random, &mut self.stage);
        self.stage.after_hands(&before);
        self.come_right();
    }

    /// Everything is as it should be once whoever drains has drained.
    fn come_right(&mut self) {
        for _ in 0..DRAIN_MIN {
            self.tend();
            self.stage.advance(self.stage.now_ms + 60_000);
        }
        self.heal();
        self.judge_end();
    }

    /// Lets all come right.
    pub(super) fn heal(&mut self) {
        let start = self.stage.now_ms;
        while self.stage.breach.is_none() && self.stage.now_ms < start + HEAL_MS {
            self.tend();
            if self.stage.settle(60_000) {
                // Who waited for a name to be free can make it now.
                let before = self.stage.kubernetes.revision();
                self.tend();
                if self.stage.kubernetes.revision() != before {
                    continue;
                }
                let stage = &self.stage;
                if self.company.is_content(stage) && !stage.is_azure_busy() && !stage.are_moving() {
                    break;
                }
                // All is done, and a Service still lacks what it asks for or has two addresses, or
                // an operation of Azure still runs: time has to pass.
                self.stage.advance(self.stage.now_ms + 60_000);
            }
        }
        let moves = self.stage.are_moving();
        let stuck = !self.stage.is_quiet() || !self.company.is_content(&self.stage);
        if stuck || moves {
            let mut text = self.stage.unsettled();
            if moves {
                text.push_str(" load balancers stand that Services are to leave;");
            }
            if !self.company.is_content(&self.stage) {
                text.push_str(" the actors have not got what they want;");
            }
            self.stage.fail("L1", text);
        }
    }
}
