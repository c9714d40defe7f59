//! Sets Services aside that Azure refuses, and finds them in a batch.

use crate::backoff;
use crate::controller::Controller;
use crate::lanes::Strike;
use crate::lanes::lane::Work;
use crate::lanes::search::{Search, Verdict};
use crate::lanes::tables;
use crate::trouble::{Failure, Trouble};
use arm::error::ArmError;
use model::plan::{Action, change_of};
use model::report::State;
use model::world::Hold;
use model::{ResourceId, ServiceUid};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Controller {
    /// Finds out whose part of a refused write is wrong. False when it is no Service's.
    pub(crate) fn blame(
        &mut self,
        id: &ResourceId,
        work: &Work,
        error: &ArmError,
        now_ms: u64,
    ) -> bool {
        let mut batch = work.tried();
        // A Service that was set aside since, for another resource, is at fault there.
        batch.retain(|uid| !self.world.holds.contains_key(uid));
        let failed = self.lanes.strikes.iter().filter(|(_, strike)| strike.target == *id);
        let failed = failed.map(|(uid, _)| uid.clone()).collect();
        let search = self.lanes.searches.entry(id.clone()).or_default();
        search.code = Arc::from(error.code.as_str());
        let code = Arc::clone(&search.code);
        match search.refused(&batch, &failed) {
            Verdict::Nobody => false,
            Verdict::Guilty(uid) => {
                self.set_aside(&uid, id, work, error, now_ms);
                true
            }
            Verdict::Hold(held) => {
                self.hold_back(id, held, &code);
                true
            }
        }
    }

    /// Holds Services back until those who are tried without them are known.
    fn hold_back(&mut self, id: &ResourceId, held: BTreeSet<ServiceUid>, code: &Arc<str>) {
        let reason: Arc<str> =
            Arc::from(format!("{} is refused with other Services in it", id.name()));
        for uid in held {
            let attempt = self.lanes.strikes.get(&uid).map_or(0, |s| s.trouble.attempt);
            let (target, reason, code) = (id.clone(), Arc::clone(&reason), Arc::clone(code));
            let hold = Hold { target, reason, code, until_ms: None, attempt };
            self.world.holds.insert(uid, hold);
        }
    }

    fn set_aside(
        &mut self,
        uid: &ServiceUid,
        id: &ResourceId,
        work: &Work,
        error: &ArmError,
        now_ms: u64,
    ) {
        let before = self.lanes.strikes.remove(uid).map(|strike| strike.trouble);
        let failure = Failure::of_write(&work.change.action, id, error);
        let trouble = Trouble::after(before, failure, &BTreeSet::from([uid.clone()]), now_ms);
        let attempt = trouble.attempt;
        // A refusal repeats until somebody changes something: not worth a call a second.
        let wait = backoff::after(attempt + 2, error.retry_after_ms);
        let hold = Hold {
            target: id.clone(),
            reason: Arc::from(trouble.cause()),
            code: Arc::from(error.code.as_str()),
            until_ms: Some(now_ms + wait),
            attempt,
        };
        self.lanes.strikes.insert(uid.clone(), Strike { target: id.clone(), trouble });
        self.world.holds.insert(uid.clone(), hold);
    }

    /// A write went through in which these Services were tried: Azure takes what it refused of them
    /// before. What was written of other resources says nothing of that, nor what was sent while
    /// they were set aside ([`Work::tried`]): addresses of their Pods come and go all the while.
    pub(crate) fn acquit(&mut self, id: &ResourceId, tried: &BTreeSet<ServiceUid>) {
        self.lanes.strikes.retain(|uid, strike| strike.target != *id || !tried.contains(uid));
    }

    /// A Service that is as it asks is not rejected, whatever has made it so. It stays programmed
    /// while addresses of its Pods are still to be written: until nothing is to be written for it
    /// where it was rejected, it may be again.
    pub(crate) fn acquit_programmed(&mut self) {
        let mut strikes = std::mem::take(&mut self.lanes.strikes);
        let (holds, services) = (&self.world.holds, &self.planning.report.services);
        let done = |uid: &ServiceUid| {
            let programmed = services.get(uid).is_some_and(|s| s.state == State::Programmed);
            programmed && !holds.contains_key(uid)
        };
        strikes.retain(|uid, strike| self.is_asked(&strike.target, uid) || !done(uid));
        self.lanes.strikes = strikes;
    }

    /// Whether something is still to be written to a resource on account of a Service. While it is
    /// being written, for whomever, planning may leave out what comes next.
    pub(crate) fn is_asked(&self, id: &ResourceId, uid: &ServiceUid) -> bool {
        let planned = change_of(&self.planning.plan.changes, id);
        planned.is_some_and(|change| change.causes.contains(uid))
            || self.lanes.all.get(id).is_some_and(|lane| lane.work.is_some())
    }

    /// A write that was sent at a time went through: a search on its resource goes on without the
    /// Services that were tried with it.
    pub(crate) fn pass_search(
        &mut self,
        id: &ResourceId,
        tried: &BTreeSet<ServiceUid>,
        sent_ms: u64,
    ) {
        let is_changed = |uid: &&ServiceUid| self.lanes.is_changed_since(uid, sent_ms);
        let changed = tried.iter().filter(is_changed).cloned().collect();
        if let Some(search) = self.lanes.searches.get_mut(id) {
            search.passed(tried, &changed);
        }
    }

    /// Where a lane at rest has nothing more to send for those who are tried, the next half has its
    /// turn, and joins what is to be sent for others: they may come all the time.
    pub(crate) fn go_on_searching(&mut self) {
        let rests = |id: &ResourceId| {
            let lane = self.lanes.all.get(id);
            lane.is_none_or(|l| l.work.is_none() && !l.retry.is_put_off())
        };
        let changes = &self.planning.plan.changes;
        let goes_on = |id: &ResourceId, search: &Search| {
            change_of(changes, id).is_some_and(|change| {
                // A call about a table may be full: who is not in it may be in the next one.
                let open = tables::is_table(&change.action) && !change.causes.is_empty();
                open || search.tries_any_of(&change.causes)
            })
        };
        let searches = self.lanes.searches.iter();
        let over = searches.filter(|(id, search)| rests(id) && !goes_on(id, search));
        let over: Vec<ResourceId> = over.map(|(id, _)| id.clone()).collect();
        for id in over {
            self.take_next_half(&id);
        }
        self.hold_newcomers();
    }

    /// Who comes while a search goes on waits for its end. A table is written for others all the
    /// time: there who comes is tried with the rest.
    fn hold_newcomers(&mut self) {
        let (holds, services) = (&self.world.holds, &self.planning.report.services);
        let stays = |uid: &ServiceUid| {
            let leaves = services.get(uid).is_none_or(|s| s.state == State::Removing);
            !leaves && !holds.contains_key(uid)
        };
        let mut come = Vec::new();
        for change in &self.planning.plan.changes {
            let Some(search) = self.lanes.searches.get_mut(&change.target) else { continue };
            if tables::is_table(&change.action) {
                continue;
            }
            let batch = change.causes.iter().filter(|uid| stays(uid)).cloned().collect();
            let new = search.hold_back(&batch);
            come.push((change.target.clone(), new, Arc::clone(&search.code)));
        }
        for (id, new, code) in come.into_iter().filter(|(_, new, _)| !new.is_empty()) {
            self.hold_back(&id, new, &code);
            self.planning.dirty = true;
        }
    }

    /// A table is written all the time on somebody's account: the next half does not wait for its
    /// lane to rest, but for a write without it that went through.
    pub(crate) fn widen_table_search(&mut self, id: &ResourceId, action: &Action) {
        if tables::is_table(action) {
            self.take_next_half(id);
        }
    }

    fn take_next_half(&mut self, id: &ResourceId) {
        let Some(search) = self.lanes.searches.get_mut(id) else { return };
        if let Some(half) = search.take_half() {
            for uid in half {
                if self.world.holds.get(&uid).is_some_and(|h| h.until_ms.is_none()) {
                    self.world.holds.remove(&uid);
                }
            }
            self.planning.dirty = true;
        }
        if self.lanes.searches.get(id).is_some_and(Search::is_over) {
            self.lanes.searches.remove(id);
        }
    }

    /// A Service was changed by its owner: what was refused may be right now.
    pub(crate) fn forgive(&mut self, uid: &ServiceUid) {
        self.lanes.strikes.remove(uid);
        self.lanes.searches.values_mut().for_each(|search| search.forget(uid));
        if self.world.holds.remove(uid).is_some() {
            self.planning.dirty = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use fixture::policy;
    use model::gateway::{LocationsUpdate, UpdateAction};
    use model::obstacle::ObstacleKind;
    use model::plan::Change;
    use model::report::Report;
    use plan::own::pod_names;

    /// Azure rejects a Service for the write of a resource; returns the Service.
    fn reject(controller: &mut Controller, target: &ResourceId) -> BTreeSet<ServiceUid> {
        let causes = BTreeSet::from([ServiceUid::new("uid")]);
        let failure = Failure {
            kind: ObstacleKind::Rejected,
            operation: "PUT".to_owned(),
            code: "BadRequest",
            message: "on order",
        };
        let trouble = Trouble::after(None, failure, &causes, 0);
        let strike = Strike { target: target.clone(), trouble };
        controller.lanes.strikes.insert(ServiceUid::new("uid"), strike);
        causes
    }

    /// Other resources are written for it all the while.
    #[test]
    fn a_write_acquits_of_what_was_refused_of_its_resource() {
        let mut controller = Controller::new(policy(), Options::default());
        let [target, other] = ["publicIPAddresses/a", "loadBalancers/b"]
            .map(|name| ResourceId::new(format!("/subscriptions/s/{name}")));
        let causes = reject(&mut controller, &target);
        controller.acquit(&other, &causes);
        assert_eq!(controller.lanes.strikes.len(), 1);
        controller.acquit(&target, &causes);
        assert!(controller.lanes.strikes.is_empty());
    }

    /// A write with the first Service succeeded before its owner edited it. That write says nothing
    /// of the edit: the first Service is at fault for the next refusal, not the one that waits.
    #[test]
    fn a_service_that_was_cleared_is_suspected_again_once_it_is_edited() {
        let mut controller = Controller::new(policy(), Options::default());
        let target = policy().balancer_id("kubernetes");
        let (first, second) = (ServiceUid::new("a"), ServiceUid::new("b"));
        let alone = BTreeSet::from([first.clone()]);
        let both = BTreeSet::from([first.clone(), second.clone()]);
        let none = BTreeSet::new();
        let search = controller.lanes.searches.entry(target.clone()).or_default();
        assert_eq!(search.refused(&both, &none), Verdict::Hold(BTreeSet::from([second])));
        assert!(search.take_half().is_some(), "the second one has its turn");
        assert_eq!(search.clone().refused(&alone, &none), Verdict::Nobody);
        controller.forgive(&first);
        let search = controller.lanes.searches.entry(target).or_default();
        assert_eq!(search.refused(&alone, &none), Verdict::Guilty(first));
    }

    /// The Pod goes whose address was refused. What the Service waits for hours later has nothing
    /// to do with it.
    #[test]
    fn a_refusal_of_what_is_asked_for_no_longer_is_forgotten() {
        let mut controller = Controller::new(policy(), Options::default());
        let target = pod_names::locations_table(&controller.policy);
        let causes = reject(&mut controller, &target);
        let service = Arc::new(fixture::service_report(State::Programmed));
        let services = causes.iter().map(|uid| (uid.clone(), Arc::clone(&service))).collect();
        controller.planning.report = Report { services, ..Report::default() };
        let (action, locations) = (UpdateAction::PartialUpdate, Vec::new());
        let action = Action::UpdateLocations(LocationsUpdate { action, locations });
        let change = Change { target, action, guard: None, causes, waits: Vec::new() };
        for (planned, known) in [(vec![Arc::new(change)], 1), (Vec::new(), 0)] {
            controller.planning.plan.changes = planned;
            controller.acquit_programmed();
            assert_eq!(controller.lanes.strikes.len(), known);
        }
    }
}
