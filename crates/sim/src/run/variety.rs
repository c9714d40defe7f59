//! L1 over Services of every kind, while nothing goes wrong.

use super::{HEAL_MS, Play};
use crate::actor::{Company, between};
use crate::check::cost::snapshot;
use crate::check::fair::Round;
use crate::interrupt::LATE_MS;
use crate::random::Random;
use crate::scene::Layout;
use crate::tally::count;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node that goes has drained after so many minutes.
const DRAIN_MIN: u64 = 8;

/// How long another client's outbound rule uses a frontend whose Service goes.
const LENT_MS: u64 = 120_000;

/// So long after the API server begins to refuse a finalizer another controller writes.
const REMARKED_MS: u64 = 1_500;

/// In how many rounds of a thousand watches break, and lists show what has changed.
const MISSED: u64 = 350;

/// Within so long everything has been read in pages, and what others made has its address.
const PAGED_MS: u64 = 180_000;

/// In how many seeds of a thousand pools hold the other kind of members for a while.
const TURNED: u64 = 400;

/// How often each of them changes.
const CHANGES: usize = 3;

/// How long the new Pods of an egress gateway have no address.
const HOMELESS_MS: [u64; 3] = [2_000, 45_000, 300_000];
/// Within so long a Pod that is replaced is let go.
const LET_GO_MS: u64 = 240_000;

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
        let mut missing = self.late.fork("missing");
        let mut robbing = self.late.fork("robbing");
        let mut sharing = self.late.fork("sharing");
        let mut contesting = self.late.fork("contesting");
        let mut failing = self.late.fork("failing");
        let mut failing_member = self.late.fork("failing member");
        let mut leaving = self.late.fork("left frontends");
        for round in 0..CHANGES + 2 {
            if self.stage.breach.is_some() {
                return;
            }
            self.stage.ledger.inputs += 1;
            self.stage.note_settled();
            self.stage.ledger.round = Round::default();
            let mut earlier: Vec<Arc<Value>> = Vec::new();
            let revision = self.stage.kubernetes.revision();
            match round {
                0 => {
                    earlier.extend(self.stage.azure.shown());
                    self.bring_all(&mut random, &mut doubts);
                }
                round if round > CHANGES => {
                    self.company.leave_frontend(&mut leaving, &mut self.stage);
                    self.dismiss_some(&mut random);
                }
                _ => {
                    if missing.permille(MISSED) {
                        self.stage.break_watches();
                    }
                    self.company.doubt_otherwise((&mut doubts, &mut holds), &mut self.stage);
                    self.company.change_all(&mut random, &mut self.stage);
                    self.company.scale_in(&mut shrinking, &mut self.stage);
                    self.company.share_otherwise(&mut sharing, &mut self.stage);
                    self.move_some(round);
                    if round > 1 {
                        self.company.contest(&mut contesting, &mut self.stage);
                    }
                }
            }
            if round <= CHANGES {
                self.company.roll(round, &mut self.stage);
            }
            self.stage.follow();
            self.come_right();
            self.judge_between(revision);
            self.stage.check_round(round == 0);
            if round == 0 {
                self.judge_newcomers(&earlier);
                self.hear_late(revision);
                Company::meddle(&mut random, &mut self.stage);
                Company::fail_group(&mut failing, &mut self.stage);
                Company::fail_member(&mut failing_member, &mut self.stage);
                Company::age(&mut aging, &mut self.stage);
                self.come_right();
                self.be_spoiled(&mut spoiling);
                self.read_in_pages(&mut robbing);
                self.suffer_mishaps();
                self.scale_out();
                self.replace_crew();
            }
        }
        self.turn_pools();
    }

    /// Services come to another place, owners write what has no effect, and other controllers open
    /// and shut readiness gates.
    fn move_some(&mut self, round: usize) {
        let mut odd = self.late.fork(&format!("odd annotations {round}"));
        self.company.misspell(&mut odd, &mut self.stage);
        self.company.attend(round, &mut self.stage);
        self.company.move_about(&mut self.stage);
        self.company.move_on(&mut self.stage);
        self.company.move_between(&mut self.stage);
    }

    /// S3: a Service that goes to another load balancer tells its addresses on the way.
    fn judge_between(&mut self, revision: u64) {
        if self.stage.scene.layout != Layout::Several {
            return;
        }
        count(&mut self.stage.tally.checks, "S3");
        if let Some(address) = between::lost(&self.stage, revision) {
            self.stage.fail("S3", format!("default/between no longer tells {address}"));
        }
    }

    /// All of them come.
    fn bring_all(&mut self, random: &mut Random, doubts: &mut Random) {
        self.company.doubt(doubts, &mut self.stage);
        self.company.show(random, &mut self.stage);
        self.company.share(&mut self.stage);
        self.company.bring_bared(&mut self.stage);
        self.company.move_in(&mut self.stage);
        self.company.bring_movers(&mut self.stage);
        self.company.bring_front(&mut self.stage);
        self.company.bring_titled(&mut self.stage);
        let mut alone = self.late.fork("IPv6 alone");
        self.company.bring_ipv6_alone(&mut alone, &mut self.stage);
    }

    /// Some go, one of them while another client's outbound rule uses its frontend.
    fn dismiss_some(&mut self, random: &mut Random) {
        let lent = self.company.lend(random, &mut self.stage);
        self.company.doubt_no_more(&mut self.stage);
        self.company.contest_no_more(&mut self.stage);
        self.company.dismiss(random, &mut self.stage);
        if let Some(balancer) = lent {
            self.stage.advance(self.stage.now_ms + LENT_MS);
            Company::take_back(&balancer, &mut self.stage);
        }
    }

    /// The operator has pools hold the other kind of members, and then the first one again, while
    /// nothing else goes wrong.
    fn turn_pools(&mut self) {
        let turned = self.late.fork("pool kinds").permille(TURNED);
        for _ in 0..2 {
            let goes_on = turned && self.stage.breach.is_none();
            if !goes_on || !self.company.turn_pools(&mut self.stage) {
                return;
            }
            self.stage.ledger.inputs += 1;
            self.stage.follow();
            self.come_right();
        }
    }

    /// The API server refuses a few calls, and meanwhile a finalizer is taken off and a Pod goes.
    fn suffer_mishaps(&mut self) {
        if self.stage.breach.is_some() {
            return;
        }
        self.stage.ledger.inputs += 1;
        Company::bare(&mut self.stage);
        self.stage.advance(self.stage.now_ms + REMARKED_MS);
        Company::remark(&mut self.stage);
        self.come_right();
        Company::cover(&mut self.stage);
        if self.stage.breach.is_none() {
            self.stage.ledger.inputs += 1;
            self.company.flee(&mut self.stage);
            self.come_right();
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

    /// All Pods of an egress gateway are replaced at once: S3 judges what becomes of it. L1: the
    /// old ones do not wait until the new ones have an address: these may wait for what the old
    /// ones have.
    fn replace_crew(&mut self) {
        let mut random = self.late.fork("replaced pods");
        let gateway = self.company.pick_crew(&mut random, &self.stage);
        let Some(gateway) = gateway.filter(|_| self.stage.breach.is_none()) else { return };
        self.stage.ledger.inputs += 1;
        self.company.replace_crew(&gateway, &mut self.stage);
        let homeless_ms = *random.pick(&HOMELESS_MS);
        self.stage.advance(self.stage.now_ms + homeless_ms);
        if homeless_ms > LET_GO_MS {
            count(&mut self.stage.tally.checks, "L1");
            if let Some(pod) = self.company.kept_after(&gateway, &self.stage) {
                let text = format!("Pod {pod} of egress gateway {gateway} is replaced and kept");
                self.stage.fail("L1", text);
            }
        }
        self.company.house_all(&mut self.stage);
        self.come_right();
    }

    /// L1: lists come that are older than what has come since, and the watches behind them are
    /// late. Nothing has gone because an old list does not name it.
    fn hear_late(&mut self, revision: u64) {
        if self.stage.breach.is_some() {
            return;
        }
        count(&mut self.stage.tally.checks, "L1");
        let before = self.stage.ledger.attempts;
        self.stage.list_from(revision);
        self.stage.advance(self.stage.now_ms + 2 * LATE_MS);
        self.stage.settle(60_000);
        let written = self.stage.ledger.attempts - before;
        if written > 0 {
            let text = format!("{written} writes because lists were old");
            self.stage.fail("L1", text);
        }
    }

    /// L1 for Services or nodes that came together.
    pub(super) fn judge_newcomers(&mut self, earlier: &[Arc<Value>]) {
        count(&mut self.stage.tally.checks, "L1");
        if let Some(broken) = self.stage.unkept_to_newcomers(earlier).first() {
            self.stage.fail("L1", broken.to_string());
        }
    }

    /// An operator changes what is ours, and it is put back. L4: that is counted as drift.
    fn be_spoiled(&mut self, random: &mut Random) {
        if self.stage.breach.is_some() {
            return;
        }
        let before = self.stage.before_hands();
        let (stood, noticed) = (snapshot(&self.stage), self.stage.drift_noticed());
        Company::spoil(random, &mut self.stage);
        let spoilt = changed(&stood, &snapshot(&self.stage));
        self.stage.after_hands(&before);
        self.come_right();
        count(&mut self.stage.tally.checks, "L4");
        let now = snapshot(&self.stage);
        let repaired = spoilt.iter().find(|id| now.get(*id) == stood.get(*id));
        let uncounted = noticed.is_some() && noticed == self.stage.drift_noticed();
        if let Some(id) = repaired.filter(|_| uncounted) {
            self.stage.fail("L4", format!("{id} was spoilt and put back, and no drift is counted"));
        }
    }

    /// L1: lists come in pages of one. What one of several pages lacks is not gone because others
    /// have gone while it was read; what all of them lack is.
    fn read_in_pages(&mut self, random: &mut Random) {
        if self.stage.breach.is_some() {
            return;
        }
        count(&mut self.stage.tally.checks, "L1");
        let usual = std::mem::replace(&mut self.stage.azure.options_mut().page_size, 1);
        let written = self.stage.ledger.attempts;
        Company::hoard(&mut self.stage);
        self.stage.advance(self.stage.now_ms + PAGED_MS);
        Company::shift_pages(&mut self.stage);
        let written = self.stage.ledger.attempts - written;
        if written > 0 {
            let text = format!("{written} writes because others deleted what is theirs");
            self.stage.fail("L1", text);
            return;
        }
        let before = self.stage.before_hands();
        self.company.rob(random, &mut self.stage);
        self.stage.after_hands(&before);
        self.come_right();
        self.stage.azure.options_mut().page_size = usual;
    }

    /// Everything is as it should be once whoever drains has drained.
    pub(super) fn come_right(&mut self) {
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
        let mut drained = false;
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
                    let drains_ms = stage.drains_yet_ms().filter(|_| !drained);
                    let Some(drains_ms) = drains_ms else { break };
                    drained = true;
                    self.stage.advance(self.stage.now_ms + drains_ms);
                    continue;
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

/// Load balancers and security groups that differ.
fn changed(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) -> Vec<String> {
    let kinds = ["/loadbalancers/", "/networksecuritygroups/"];
    let differs = |(id, was): &(&String, &Value)| {
        kinds.iter().any(|kind| id.contains(kind)) && after.get(*id) != Some(*was)
    };
    before.iter().filter(differs).map(|(id, _)| id.clone()).collect()
}
