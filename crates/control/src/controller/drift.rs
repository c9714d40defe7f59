//! Notices drift, and plans around it where it is left.

use crate::budget::queue;
use crate::controller::Controller;
use crate::term::TakeoverBarrier;
use model::ResourceId;
use model::drift::Drift;
use model::plan::{Action, Change};
use model::policy::DriftPolicy;
use plan_drift::{Confirmed, Kept};
use std::sync::Arc;

impl Controller {
    /// How many fields differ now.
    #[must_use]
    pub fn drift_fields(&self) -> u64 {
        self.drift.now.iter().map(Drift::fields).sum()
    }

    /// What others made of a resource, in words.
    pub(crate) fn drift_of(&self, id: &ResourceId) -> impl Iterator<Item = String> {
        self.drift.now.iter().filter(move |drift| drift.target == *id).map(Drift::deed)
    }

    /// Whoever may write now, another one may have written meanwhile.
    pub(crate) fn forget_drift(&mut self) {
        self.drift.confirmed = Confirmed::default();
        self.observers.drift.forget();
        (self.drift.kept, self.drift.seen) = (Kept::default(), false);
        self.drift.now.clear();
        self.drift.unmarked.clear();
    }

    /// Drift is found by comparing with the result of a write.
    pub(crate) fn confirm_written(&mut self, id: &ResourceId, action: &Action) {
        // What was repaired is not kept as others had made it.
        let left = match self.policy.drift {
            DriftPolicy::Report => self.drift.now.as_slice(),
            DriftPolicy::Repair => &[],
        };
        self.drift.confirmed.note_written(id, action, &self.world.azure, left);
    }

    /// A write failed in a way that leaves open what it has come to: it is our own all the same.
    pub(crate) fn note_sent(&mut self, id: &ResourceId, action: &Action) {
        self.drift.confirmed.note_sent(id, action, &self.world.azure);
    }

    /// Compares what the plan is about to change with what we left.
    pub(crate) fn look_for_drift(&mut self, before: &[Arc<Change>], now_ms: u64) {
        self.drift.noted = false;
        self.drift.seen = false;
        if !self.term.is_held() {
            return;
        }
        let blocked = self.has_finding(plan::OTHER_LAYOUT_STANDS);
        // For want of a list a plan is cut short, and before the barrier of a term it leaves alone
        // what lists may not show yet: that was not looked at.
        let is_whole = (self.planning.report.draining.is_some() || !self.has_ledger())
            && self.term.barrier == TakeoverBarrier::Done
            && self.world.unseen.is_empty();
        let log = &mut self.drift;
        if std::mem::take(&mut log.marks_due) {
            log.unmarked = plan_drift::unmarked(&log.confirmed, &self.world);
        }
        if blocked {
            return;
        }
        plan_drift::restore_marks(
            &log.confirmed,
            &self.world,
            &log.unmarked,
            &mut self.planning.plan,
        );
        self.recall_left();
        let log = &mut self.drift;
        let mut now = if log.now.is_empty() {
            // What was planned before was looked at then, and what is left of it is as it was.
            let changes = &self.planning.plan.changes;
            let new = queue::news(before, changes).into_iter().map(|at| changes[at].as_ref());
            plan_drift::find_among(&log.confirmed, &self.world, new)
        } else {
            plan_drift::find(&log.confirmed, &self.world, &self.planning.plan)
        };
        // While a resource is written nothing is planned for it: what was known of it still holds.
        let busy = &self.world.in_flight;
        let changes = &self.planning.plan.changes;
        let is_planned = |id: &ResourceId| changes.iter().any(|change| change.target == *id);
        let known = log.now.iter();
        let known = known.filter(|d| busy.contains_key(&d.target) && !is_planned(&d.target));
        now.extend(known.cloned());
        let is_read = is_whole && self.planning.report.needs.is_empty();
        let is_quiet = is_read && self.world.holds.is_empty();
        log.noted = log.settled_due && is_quiet;
        if log.noted {
            log.settled_due = false;
            log.confirmed.note_settled(&self.world, &self.planning.plan);
        }
        let wanted = match now.is_empty() {
            true => Vec::new(),
            false => self.planning.plan.changes.clone(),
        };
        if self.policy.drift == DriftPolicy::Report && !now.is_empty() {
            let (world, policy) = (&mut self.world, &self.policy);
            let (plan, report) =
                plan_drift::plan_around(&mut log.planner, world, policy, &log.confirmed, &mut now);
            self.planning.plan = plan;
            self.planning.report = report;
        }
        let reports = self.policy.drift == DriftPolicy::Report;
        let left = now.iter().filter(|drift| reports || self.is_paused(&drift.target));
        let kept = self.drift.kept.noted(left, &wanted);
        self.drift.kept = kept;
        self.drift.seen = is_quiet;
        self.drift.now.clone_from(&now);
        self.show_drift(&now, now_ms);
    }

    /// What a process before this one has left is left.
    fn recall_left(&mut self) {
        if self.policy.drift == DriftPolicy::Report
            && self.world.kubernetes.ledger.known().is_some()
        {
            let (kept, changes) =
                (&self.kubernetes.ledger.noted.drift, &self.planning.plan.changes);
            plan_drift::recall(&mut self.drift.confirmed, kept, changes);
        }
    }
}
