//! Follows writes to their end.

use crate::backoff;
use crate::controller::Controller;
use crate::effect::NoticeKind;
use crate::lanes::lane::{Acknowledged, Lane, Outcome, Pending, Stage, Work};
use crate::lanes::tables;
use crate::observers::history::WriteOutcome;
use crate::reads::{BUSY_MS, LONGEST_BUSY_MS, UNFOLLOWED_MS, keep};
use crate::request;
use crate::trouble::Failure;
use arm::error::{ArmError, ErrorKind};
use arm::operation::Step;
use arm::{Answer, Method, Reply};
use model::azure::{Provisioning, Sku};
use model::kubernetes::{Deletion, POD_FINALIZER, Pod};
use model::plan::{Action, Change, Resource};
use model::report::{ServiceReport, State, Wait};
use model::{ResourceId, ServiceUid};
use plan::own::pod_names;
use serde_json::Value;
use std::sync::Arc;

/// Writes in a row that may find another ETag before there are pauses: a resource whose ETag
/// never fits is not read and written without end.
const STALE: u32 = 2;

impl Controller {
    /// An answer to a lane's call.
    pub(crate) fn advance_lane(&mut self, id: &ResourceId, answer: &Answer, now_ms: u64) {
        let Some(work) = self.lanes.all.get_mut(id).and_then(|l| l.work.as_mut()) else { return };
        match &mut work.stage {
            Stage::Operating(operation) => {
                // That a write is under way is a fact; that it still is, is none.
                self.planning.dirty |= !operation.is_accepted();
                match operation.advance(answer) {
                    Step::Poll { request, after_ms } => {
                        work.pending =
                            Pending::Poll { request, at_ms: now_ms + after_ms, held_ms: 0 };
                    }
                    Step::ReadBack { request } => self.call_lane(id, request, now_ms),
                    Step::Done { body } => self.succeeded(id, body, now_ms),
                    Step::Failed(error) => self.failed(id, &error, now_ms),
                }
            }
            Stage::Verifying | Stage::Rereading(_) => self.reread(id, answer, now_ms),
        }
    }

    fn succeeded(&mut self, id: &ResourceId, body: Option<Arc<Value>>, now_ms: u64) {
        self.planning.dirty = true;
        let contract = self.contract();
        let Some(lane) = self.lanes.all.get_mut(id) else { return };
        let Some(work) = lane.work.as_mut() else { return };
        self.observers.tally.write_ended(id, None);
        let took = now_ms.saturating_sub(work.sent_ms);
        let text = format!("{} done in {took} ms", describe(&work.change));
        let (causes, correlation) = (work.change.causes.clone(), work.correlation.clone());
        let tried = work.tried();
        let sent_ms = Some(work.sent_ms).filter(|_| !tables::is_table(&work.change.action));
        let read = match &work.stage {
            Stage::Operating(operation) if operation.has_read() => Read::Back,
            _ => Read::NotYet,
        };
        let verify = must_verify(&work.change, body.as_deref(), read);
        if verify {
            work.stage = Stage::Verifying;
            lane.members_shown = self.lanes.member_writes;
            let read = request::of_read(contract, id, correlation.clone());
            self.call_lane(id, read, now_ms);
        } else {
            let Some(work) = lane.work.take() else { return };
            self.store(&work.change, body);
            self.lanes.touched.note(&work.change.action, now_ms);
            self.widen_table_search(id, &work.change.action);
            self.end(id, Some(work.change.action), now_ms);
        }
        self.observers.history.end(&correlation, WriteOutcome::Done, now_ms);
        self.say(now_ms, NoticeKind::Answered, &causes, text, Some(correlation));
        self.acquit(id, &tried);
        // A search on a table has gone on already.
        sent_ms.into_iter().for_each(|sent_ms| self.pass_search(id, &tried, sent_ms));
    }

    /// Stores what a write has come to.
    fn store(&mut self, change: &Change, body: Option<Arc<Value>>) {
        self.look_at_names(&change.causes);
        // Each gives the load balancers that it is about another ETag.
        if let Action::Put {
            after: Resource::PoolMember(_) | Resource::PrivateLinkService(_),
            ..
        }
        | Action::Delete { before: Resource::PrivateLinkService(_) } = &change.action
        {
            self.lanes.member_writes += 1;
        }
        let (azure, policy) = (&mut self.world.azure, &self.policy);
        let unreadable = match (&change.action, body) {
            (Action::Put { .. }, Some(body)) => {
                observe::azure::apply_resource(azure, policy, &change.target, &body).is_err()
            }
            (Action::Delete { .. } | Action::DeleteChild, _) => {
                observe::azure::remove(azure, &change.target);
                self.look_at_released();
                false
            }
            (Action::UpdateServices(update), _) => {
                observe::azure::apply_services_update(azure, update);
                false
            }
            (Action::UpdateLocations(update), _) => {
                observe::azure::apply_locations_update(azure, update);
                false
            }
            (Action::MigratePools { .. } | Action::Put { .. }, _) => false,
        };
        if unreadable {
            self.reread_everything();
        }
    }

    fn end(&mut self, id: &ResourceId, done: Option<Action>, now_ms: u64) {
        if let Some(action) = &done {
            self.confirm_written(id, action);
        }
        let Some(lane) = self.lanes.all.get_mut(id) else { return };
        lane.work = None;
        lane.overruled = false;
        lane.hidden = false;
        lane.ended_ms = Some(now_ms);
        let Some(action) = done else {
            lane.last = None;
            return;
        };
        // Whether Azure keeps what it did not keep before shows when it is planned on.
        if !lane.last.as_ref().is_some_and(|last| last.lost && last.is(&action)) {
            lane.recover();
        }
        lane.last = Some(Acknowledged { action, lost: false });
    }

    /// The resource was read after a write.
    fn reread(&mut self, id: &ResourceId, answer: &Answer, now_ms: u64) {
        self.planning.dirty = true;
        let contract = self.contract();
        let Some(lane) = self.lanes.all.get_mut(id) else { return };
        let Some(work) = lane.work.take() else { return };
        let reply = match answer {
            Answer::Reply(reply) if is_told(reply) => reply,
            Answer::Reply(_) | Answer::Fault(_) => {
                let error = match answer {
                    Answer::Reply(reply) => ArmError::of_reply(reply),
                    Answer::Fault(fault) => ArmError::of_fault(Method::Get, fault),
                };
                self.reread_failed(id, work, &error, now_ms);
                return;
            }
        };
        match (reply.body.as_deref(), reply.status) {
            (Some(body), 200) if is_undecided(&work, body, now_ms) => {
                let passed_ms = now_ms - work.sent_ms;
                let pause_ms = passed_ms.div_ceil(4).clamp(BUSY_MS, LONGEST_BUSY_MS);
                lane.look_again(contract, id, work, now_ms + pause_ms);
                return;
            }
            (Some(body), 200) => {
                let azure = &mut self.world.azure;
                if observe::azure::apply_resource(azure, &self.policy, id, body).is_err() {
                    self.reread_everything();
                }
            }
            _ => {
                observe::azure::remove(&mut self.world.azure, id);
            }
        }
        self.look_at_names(&work.change.causes);
        let verified = matches!(work.stage, Stage::Verifying);
        self.end(id, verified.then_some(work.change.action), now_ms);
    }

    /// Not knowing is no reason to guess: read again in a while. What others do until then cannot
    /// be told from what the write has come to, but by what it asked for.
    fn reread_failed(&mut self, id: &ResourceId, work: Work, error: &ArmError, now_ms: u64) {
        let contract = self.contract();
        let stage = match work.stage {
            Stage::Rereading(outcome) => Stage::Rereading(outcome),
            Stage::Operating(_) | Stage::Verifying => {
                self.note_sent(id, &work.change.action);
                Stage::Rereading(Outcome::Not)
            }
        };
        let Some(lane) = self.lanes.all.get_mut(id) else { return };
        let failure = Failure::of_read(format!("GET {}", id.short()), error);
        lane.note(failure, &work.change.causes, now_ms);
        // Whatever was in the way, each time makes the next pause longer.
        match error.kind {
            ErrorKind::Throttled => lane.turned_away += 1,
            _ => drop(lane.retry.count()),
        }
        let times = lane.turned_away + lane.retry.failures();
        let at_ms = now_ms + backoff::after(times, error.retry_after_ms);
        lane.look_again(contract, id, Work { stage, ..work }, at_ms);
    }

    fn failed(&mut self, id: &ResourceId, error: &ArmError, now_ms: u64) {
        self.planning.dirty = true;
        self.observers.counts.failures += 1;
        self.observers.tally.write_ended(id, Some(error.kind));
        let Some(lane) = self.lanes.all.get_mut(id) else { return };
        let Some(work) = lane.work.take() else { return };
        let outcome = outcome(&work, error.kind);
        lane.last = None;
        lane.hidden = false;
        let overruled = std::mem::take(&mut lane.overruled);
        if outcome.is_some() {
            lane.ended_ms = Some(now_ms);
        } else if overruled {
            // A write that changed nothing is no reason to doubt a list.
            self.read_known_again(|need| keep::covers(need, id));
        }
        if outcome == Some(Outcome::Open) {
            self.note_sent(id, &work.change.action);
        }
        self.observers.latencies.failed(&work.addresses);
        self.observers.history.end(&work.correlation, WriteOutcome::failed(error), now_ms);
        let text = format!("{} failed: {error}", describe(&work.change));
        let correlation = work.correlation.clone();
        self.say(now_ms, NoticeKind::Failed, &work.change.causes, text, Some(correlation));
        let mut read_ms = now_ms;
        match error.kind {
            ErrorKind::Stale if !tables::is_table(&work.change.action) => {
                read_ms = self.outrun(id, &work, error, now_ms);
            }
            ErrorKind::Refused => self.refused(id, &work, error, now_ms),
            ErrorKind::Throttled => self.throttled(id, &work, error, now_ms),
            ErrorKind::Missing => {
                self.forget_lists(id);
                self.back_off(id, &work, error, now_ms);
            }
            ErrorKind::Stale
            | ErrorKind::Unreachable
            | ErrorKind::Busy
            | ErrorKind::Locked
            | ErrorKind::Forbidden
            | ErrorKind::Transient
            | ErrorKind::Ambiguous => self.back_off(id, &work, error, now_ms),
        }
        if let Some(outcome) = outcome {
            self.read_again(id, work, outcome, (read_ms, now_ms));
        }
    }

    fn back_off(&mut self, id: &ResourceId, work: &Work, error: &ArmError, now_ms: u64) {
        let Some(lane) = self.lanes.all.get_mut(id) else { return };
        lane.turned_away = 0;
        if error.kind == ErrorKind::Locked {
            lane.retry.count_at_least(backoff::BEFORE_LOCK);
        }
        lane.retry.failed(error.retry_after_ms, now_ms);
        lane.note(Failure::of_write(&work.change.action, id, error), &work.change.causes, now_ms);
    }

    /// Azure has too many requests. The budget is closed for as long as Azure says; where it says
    /// nothing, the pause grows with each attempt.
    fn throttled(&mut self, id: &ResourceId, work: &Work, error: &ArmError, now_ms: u64) {
        let Some(lane) = self.lanes.all.get_mut(id) else { return };
        let asked = error.retry_after_ms;
        lane.turned_away += u32::from(asked.is_none());
        let times = if asked.is_none() { lane.turned_away } else { 1 };
        lane.retry.put_off(now_ms + backoff::after(times, asked));
        lane.note(Failure::of_write(&work.change.action, id, error), &work.change.causes, now_ms);
    }

    /// Another client's write came first. Returns when to read the resource: at once, but after a
    /// pause where Azure asks for one, or where this happens repeatedly. The pause comes before the
    /// read and not after it: else the next write of that client would win again.
    fn outrun(&mut self, id: &ResourceId, work: &Work, error: &ArmError, now_ms: u64) -> u64 {
        let Some(lane) = self.lanes.all.get_mut(id) else { return now_ms };
        lane.turned_away += 1;
        if lane.turned_away <= STALE {
            return now_ms + error.retry_after_ms.unwrap_or(0);
        }
        lane.note(Failure::of_write(&work.change.action, id, error), &work.change.causes, now_ms);
        now_ms + backoff::after(lane.turned_away, error.retry_after_ms)
    }

    /// Reads the resource at a time, before anything else is done with it.
    fn read_again(
        &mut self,
        id: &ResourceId,
        work: Work,
        outcome: Outcome,
        (at_ms, now_ms): (u64, u64),
    ) {
        if tables::is_table(&work.change.action) {
            self.forget_tables();
            return;
        }
        let contract = self.contract();
        let Some(lane) = self.lanes.all.get_mut(id) else { return };
        let stage = Stage::Rereading(outcome);
        lane.look_again(contract, id, Work { stage, ..work }, at_ms);
        self.wake_lane(id, now_ms);
    }

    /// Azure refuses the write: some Service's part in it is wrong.
    fn refused(&mut self, id: &ResourceId, work: &Work, error: &ArmError, now_ms: u64) {
        self.forget_lists(id);
        // The tables were not as we thought: once they are read, the write is another one.
        let first = self.lanes.all.get(id).is_none_or(|lane| lane.retry.failures() == 0);
        if first && tables::is_still_mapped(error) {
            self.back_off(id, work, error, now_ms);
            return;
        }
        // What was refused is not what its owner asks for any more: that is tried at once.
        let changed = |uid: &ServiceUid| self.lanes.is_changed_since(uid, work.sent_ms);
        if !work.change.causes.is_empty() && work.change.causes.iter().all(changed) {
            return;
        }
        let deletes = matches!(work.change.action, Action::Delete { .. } | Action::DeleteChild);
        if deletes || !self.blame(id, work, error, now_ms) {
            self.back_off(id, work, error, now_ms);
        }
    }

    fn nothing_waits_for_lists(&self) -> bool {
        let ends = |pod: &Pod| {
            pod.deletion == Deletion::Requested && pod.finalizers.contains(POD_FINALIZER)
        };
        let waits =
            |s: &ServiceReport| s.state == State::Removing || s.waits.contains(&Wait::Listing);
        !self.planning.report.services.values().any(|s| waits(s))
            && !self.world.kubernetes.pods.values().any(|pod| ends(pod))
    }

    /// Lanes that are wholly free of work: for tests and the simulator.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.lanes.all.values().all(|l| l.work.is_none() && !l.retry.is_put_off())
            && self.kubernetes.objects.values().all(|o| o.call.is_none())
            && self.planning.plan.is_empty()
            && (self.kubernetes.ledger.is_idle() || !self.uses_ledger())
            && self.world.holds.is_empty()
            && self.planning.report.needs.is_empty()
            && !self.is_reading()
            && self.world.unseen.is_empty()
            && self.wake_moves_ms().is_none()
            && (self.world.inherited.is_empty() || self.nothing_waits_for_lists())
            && !self.owes_names()
            && !self.owes_holders()
    }

    /// The change that is carried out under a correlation id.
    #[must_use]
    pub fn under_way(&self, correlation: &str) -> Option<&Change> {
        let mut work = self.lanes.all.values().filter_map(|lane| lane.work.as_ref());
        work.find(|work| work.correlation == correlation).map(|work| &work.change)
    }

    /// Resources that are being written, and since when.
    pub fn writing(&self) -> impl Iterator<Item = (&ResourceId, u64)> {
        self.lanes.all.iter().filter_map(|(id, lane)| Some((id, lane.work.as_ref()?.sent_ms)))
    }

    /// Why a resource's writes wait, and until when.
    pub fn waiting(&self) -> impl Iterator<Item = (&ResourceId, String, Option<u64>)> {
        self.lanes.all.iter().filter_map(|(id, lane): (_, &Lane)| {
            Some((id, lane.trouble.as_ref()?.cause(), lane.retry.next_ms()))
        })
    }
}

/// Whether a resource was read after it was written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    /// What is known of it is the answer to the write.
    NotYet,
    /// It was.
    Back,
}

/// A load balancer is always read back: Azure is known to acknowledge a pool and lose it.
/// Where the operation was polled to its end, that was its last answer.
fn must_verify(change: &Change, body: Option<&Value>, read: Read) -> bool {
    match &change.action {
        Action::Put { after, .. } => {
            // The pool of a container load balancer is empty: there is nothing to lose.
            let pooled = matches!(after, Resource::LoadBalancer(b) if b.sku != Sku::Service);
            body.is_none() || (pooled && read == Read::NotYet)
        }
        Action::MigratePools { .. } => true,
        Action::Delete { .. }
        | Action::DeleteChild
        | Action::UpdateServices(_)
        | Action::UpdateLocations(_) => false,
    }
}

/// Whether the answer to a read tells how the resource is, or that there is none. A 200 without a
/// body does not, and neither does a 404 that is about the subscription.
fn is_told(reply: &Reply) -> bool {
    match reply.status {
        200 => reply.body.is_some(),
        404 => ArmError::of_reply(reply).kind == ErrorKind::Missing,
        _ => false,
    }
}

/// Whether a resource that was read after a write of unknown outcome is still being changed.
fn is_undecided(work: &Work, body: &Value, now_ms: u64) -> bool {
    matches!(work.stage, Stage::Rereading(Outcome::Open))
        && arm::body::read_provisioning(body) == Some(Provisioning::Busy)
        && now_ms < work.sent_ms + UNFOLLOWED_MS
}

/// What is known of a failed write that may have changed the resource, or was planned on another
/// state of it; nothing where it is as it was.
fn outcome(work: &Work, kind: ErrorKind) -> Option<Outcome> {
    let accepted = matches!(&work.stage, Stage::Operating(operation) if operation.is_accepted());
    match kind {
        _ if accepted => Some(Outcome::Open),
        ErrorKind::Transient | ErrorKind::Ambiguous => Some(Outcome::Open),
        ErrorKind::Stale => Some(Outcome::Not),
        ErrorKind::Busy if !tables::is_table(&work.change.action) => Some(Outcome::Not),
        _ => None,
    }
}

/// A change in a few words.
pub(crate) fn describe(change: &Change) -> String {
    let name = change.target.short();
    let gateways = change.causes.iter().filter(|cause| pod_names::is_gateway(cause)).count();
    let counts = [(change.causes.len() - gateways, "Service"), (gateways, "egress gateway")];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts = counts.map(|(count, noun)| match count {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    });
    let counts: Vec<String> = counts.collect();
    match counts.is_empty() {
        true => name.to_owned(),
        false => format!("{name} for {}", counts.join(" and ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arm::operation::Operation;
    use arm::{Condition, Request, Target};
    use serde_json::json;
    use std::collections::BTreeSet;

    #[test]
    fn services_and_egress_gateways_are_counted_apart() {
        let of = |causes: &[&str]| {
            let causes = causes.iter().map(ServiceUid::new).collect();
            let target = ResourceId::new("/a/providers/n/natGateways/team-a");
            describe(&Change::new(target, Action::DeleteChild, causes, Vec::new()))
        };
        let service = |n: u8| format!("{n:08x}-1111-4222-8333-0123456789ab");
        let (one, two) = (service(1), service(2));
        assert_eq!(of(&[]), "natGateways/team-a");
        assert_eq!(of(&["team-a"]), "natGateways/team-a for 1 egress gateway");
        assert_eq!(of(&[&one]), "natGateways/team-a for 1 Service");
        let both = of(&[&one, &two, "team-a", "team-b"]);
        assert_eq!(both, "natGateways/team-a for 2 Services and 2 egress gateways");
    }

    /// The same error as a first answer would mean that the write had no effect.
    #[test]
    fn what_azure_has_accepted_it_may_have_taken() {
        let request = Request {
            method: Method::Delete,
            target: Target::Path("/r".to_owned()),
            condition: Condition::None,
            body: None,
            correlation: String::new(),
        };
        let work = |operation| Work {
            change: Change {
                target: ResourceId::new("/r"),
                action: Action::MigratePools { pools: Vec::new() },
                guard: None,
                causes: BTreeSet::new(),
                waits: Vec::new(),
            },
            correlation: String::new(),
            stage: Stage::Operating(Box::new(operation)),
            pending: Pending::Answer,
            sent_ms: 0,
            addresses: Arc::default(),
            held: BTreeSet::new(),
        };
        let accepted = Answer::Reply(Box::new(Reply { status: 202, ..Reply::default() }));
        let mut operation = Operation::start(&request);
        let step = operation.advance(&accepted);
        assert!(matches!(step, Step::Poll { .. }), "{step:?}");
        assert_eq!(outcome(&work(operation), ErrorKind::Stale), Some(Outcome::Open));
        let sent = Operation::start(&request);
        assert_eq!(outcome(&work(sent), ErrorKind::Stale), Some(Outcome::Not));
    }

    #[test]
    fn only_an_answer_about_the_resource_tells_of_it() {
        let reply = |status, body: Option<Value>| {
            let body = body.map(Arc::new);
            Reply { status, body, ..Reply::default() }
        };
        let coded = |code: &str| Some(json!({"error": {"code": code, "message": "m"}}));
        for (told, reply) in [
            (true, reply(200, Some(json!({"id": "/r"})))),
            (false, reply(200, None)),
            (true, reply(404, None)),
            (true, reply(404, coded("ResourceNotFound"))),
            (false, reply(404, coded("SubscriptionNotFound"))),
            (false, reply(500, None)),
        ] {
            assert_eq!(is_told(&reply), told, "{reply:?}");
        }
    }
}
