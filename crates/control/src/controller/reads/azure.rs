//! Reads what planning needs, and reads it again at an interval to notice drift.

use crate::budget::Urgency;
use crate::budget::limit::limits_of;
use crate::calls::Caller;
use crate::controller::Controller;
use crate::effect::NoticeKind;
use crate::reads::keep;
use crate::reads::read::{Coming, Missing, Read, UnderWay};
use crate::trouble::Failure;
use arm::error::ErrorKind;
use arm::page::PageStep;
use arm::{Answer, Request};
use model::obstacle::{Obstacle, Subject};
use model::world::{Azure, Need};
use model::{Group, ResourceId};
use observe::Applied;
use std::collections::BTreeSet;

impl Controller {
    /// Sends the reads that planning asked for and those that are due.
    pub(crate) fn read_needs(&mut self, now_ms: u64) {
        let reads = self.reads.store.iter();
        let mut wanted: Vec<(Urgency, Need)> =
            reads.filter_map(|(need, read)| Some((read.urgency()?, need.clone()))).collect();
        wanted
            .extend(self.planning.report.needs.iter().map(|need| (Urgency::Normal, need.clone())));
        // What planning waits for comes before the look for drift.
        wanted.sort_by(|a, b| (b.0, &a.1).cmp(&(a.0, &b.1)));
        for (urgency, need) in wanted {
            if self.is_in_flux(&need) {
                continue;
            }
            let read = self.reads.store.entry(need.clone()).or_default();
            if read.is_free(now_ms) {
                self.read(need, urgency, now_ms);
            }
        }
    }

    /// When reads need attention without an answer. One that waits for the end of a write is looked
    /// at when that comes: until then its time may be over, and waking for it would be spinning.
    pub(crate) fn wake_reads_ms(&self) -> impl Iterator<Item = u64> {
        let ready = |(need, read): &(&Need, &Read)| read.is_under_way() || !self.is_in_flux(need);
        let interval_ms = self.options.check_interval_ms;
        self.reads.store.iter().filter(ready).filter_map(move |(_, read)| read.wake_ms(interval_ms))
    }

    fn read(&mut self, need: Need, urgency: Urgency, now_ms: u64) {
        let correlation = self.correlation();
        let request = observe::need::request(&need, &self.policy, &correlation);
        let read = self.reads.store.entry(need.clone()).or_default();
        if let Err(refusal) = self.budget.limits.ask(&limits_of(&request), urgency, now_ms) {
            read.put_off(refusal.ready_ms);
            return;
        }
        read.begin(&request, now_ms);
        self.request(Caller::Read(need), request, now_ms);
    }

    /// Asks for next pages that waited for budget.
    pub(crate) fn go_on_reading(&mut self, now_ms: u64) {
        let reads = self.reads.store.iter_mut();
        let due = reads.filter_map(|(need, read)| read.take_held(now_ms).map(|page| (need, page)));
        let pages: Vec<(Need, Request)> = due.map(|(need, page)| (need.clone(), page)).collect();
        for (need, page) in pages {
            self.next_page(&need, page, now_ms);
        }
    }

    /// Asks for the next page as soon as there is budget: the list is of no use without it.
    fn next_page(&mut self, need: &Need, request: Request, now_ms: u64) {
        match self.budget.limits.ask(&limits_of(&request), Urgency::Urgent, now_ms) {
            Ok(()) => self.request(Caller::Read(need.clone()), request, now_ms),
            Err(refusal) => {
                let read = self.reads.store.entry(need.clone()).or_default();
                read.hold(request, refusal.ready_ms);
            }
        }
    }

    /// Asks for a read as soon as possible.
    pub(crate) fn read_now(&mut self, need: Need) {
        self.reads.store.entry(need).or_default().read_again();
        self.planning.dirty = true;
    }

    /// Asks for a read after all others: a tenant can ask for one with each edit of a Service.
    pub(crate) fn read_in_turn(&mut self, need: Need) {
        self.reads.store.entry(need).or_default().read_in_turn();
        self.planning.dirty = true;
    }

    /// Asks for a read that begins now: what is under way was asked for too early.
    pub(crate) fn read_anew(&mut self, need: Need) {
        self.reads.store.entry(need).or_default().read_anew();
        self.planning.dirty = true;
    }

    /// Reads what planning does not ask for yet: for whoever wants to know how plans go on.
    pub fn read_ahead(&mut self, needs: impl IntoIterator<Item = Need>) {
        for need in needs {
            if self.reads.store.get(&need).is_none_or(|read| !read.is_under_way()) {
                self.read_now(need);
            }
        }
    }

    /// Everything that was read is read again.
    pub(crate) fn reread_everything(&mut self) {
        self.reads.store.values_mut().filter(|read| read.is_known()).for_each(Read::read_again);
        self.planning.dirty = true;
    }

    /// What was read before this process could write is no ground to write on: whoever could until
    /// now may have changed it. It is read anew; what is under way began too early.
    pub(crate) fn take_over_reads(&mut self) {
        self.world.azure = Azure::default();
        self.reads.store.values_mut().for_each(Read::take_over);
        self.planning.dirty = true;
    }

    /// What was read before of these is read again.
    pub(crate) fn read_known_again(&mut self, is_it: impl Fn(&Need) -> bool) {
        for (need, read) in &mut self.reads.store {
            if is_it(need) && read.is_known() {
                read.read_again();
                self.planning.dirty = true;
            }
        }
    }

    /// A write failed because something it refers to is not as we think: read what it may be.
    pub(crate) fn forget_lists(&mut self, id: &ResourceId) {
        if self.is_behind_gateway(id) {
            self.doubt_tables();
            return;
        }
        let group = id.group().unwrap_or_else(|| Group::new(self.policy.group.as_str()));
        let related = |need: &Need| match need {
            Need::Balancers => true,
            Need::PublicIps(_) | Need::Subnet(_) => true,
            Need::PrivateLinks(of) => *of == group,
            // The list it stands in: a machine may be gone from its scale set.
            _ => keep::covers(need, id),
        };
        for (_, read) in self.reads.store.iter_mut().filter(|(need, _)| related(need)) {
            read.read_again();
        }
    }

    /// Reads that are older than the check interval are read again, where planning uses them.
    pub(crate) fn check_drift(&mut self, now_ms: u64) {
        let interval_ms = self.options.check_interval_ms;
        for read in self.reads.store.values_mut() {
            self.planning.look |= read.grow_old(interval_ms, now_ms);
        }
    }

    /// Whether a read is under way or about to be repeated.
    pub(crate) fn is_reading(&self) -> bool {
        self.reads.store.values().any(Read::is_active)
    }

    /// An answer to a read.
    pub(crate) fn advance_read(&mut self, need: &Need, answer: Answer, now_ms: u64) {
        let Some(read) = self.reads.store.get_mut(need) else { return };
        let Some(mut under_way) = read.take_under_way() else { return };
        match under_way.pages.advance(answer) {
            PageStep::Next { .. } | PageStep::Done(_) if under_way.early => {
                read.recover();
                self.planning.look = true;
            }
            PageStep::Next { items, request } => {
                under_way.gathering.take(&self.world.azure, &self.policy, need, &items);
                read.go_on(under_way);
                self.next_page(need, request, now_ms);
            }
            PageStep::Done(items) => {
                let UnderWay { mut gathering, sent_ms, pages, .. } = under_way;
                gathering.take(&self.world.azure, &self.policy, need, &items);
                drop(items);
                read.memo = gathering.memo();
                read.end(now_ms);
                note_group(&mut self.world.azure, need);
                // What was told of failures and of silence is taken back by the next plan.
                let told = |obstacle: &Obstacle| obstacle.about == Subject::Read(need.clone());
                let recovered = self.planning.report.obstacles.iter().any(told);
                let before = std::mem::take(&mut read.left_out);
                let coming = if pages.count() > 1 { Coming::Pages(before) } else { Coming::Whole };
                let news = self.store_read(need, gathering, (sent_ms, now_ms), coming);
                // What was awaited may be as unreadable as before; the plan says what then.
                let awaited = self.planning.report.needs.contains(need);
                let unnoted = self.term.is_held() && !self.drift.noted;
                if news == Applied::Changed || awaited || unnoted || recovered {
                    // What the next plan leaves alone is as it should be.
                    (self.drift.settled_due, self.drift.marks_due) = (true, true);
                    self.reads.left.stir();
                    self.planning.dirty = true;
                }
                self.planning.look = true;
            }
            PageStep::Failed(error) => {
                self.planning.dirty = true;
                let gone = error.kind == ErrorKind::Missing;
                if gone && under_way.early {
                    return;
                }
                if gone {
                    let missing = read.miss(&error, now_ms);
                    self.miss(need, missing);
                    return;
                }
                let failure = Failure::of_read(need.operation(), &error);
                let wait_ms = read.fail(failure, error.retry_after_ms, now_ms);
                if read.is_lasting(&error, need) {
                    note_group(&mut self.world.azure, need);
                    let why = format!("{}: {}", error.code, error.message);
                    observe::azure::apply_unreadable(&mut self.world.azure, need, &why);
                }
                let text =
                    format!("reading {need} failed, next try in {} s: {error}", wait_ms / 1_000);
                self.say(now_ms, NoticeKind::Failed, &BTreeSet::new(), text, None);
            }
        }
    }

    /// What was to be read does not exist. While the cluster's own groups go, nothing is left in
    /// them; one that a Service names and that is not there is a mistake.
    fn miss(&mut self, need: &Need, missing: Missing) {
        let named = self.named_group(need).cloned();
        let azure = &mut self.world.azure;
        if named.is_some() {
            observe::azure::apply_unreadable(azure, need, "there is no such resource group");
        }
        match (missing, named) {
            (Missing::Doubted, _) => {}
            (Missing::Believed, Some(group)) => drop(azure.absent_groups.insert(group)),
            (Missing::Believed, None) => drop(observe::azure::apply_missing(azure, need)),
        }
    }

    /// The resource group that is listed, where it is not the cluster's own: Services name it.
    pub(crate) fn named_group<'n>(&self, need: &'n Need) -> Option<&'n Group> {
        let (Need::PublicIps(group) | Need::PrivateLinks(group)) = need else { return None };
        let policy = &self.policy;
        let own = [&policy.group, &policy.balancer_group, &policy.private_link_group];
        (!own.contains(&group)).then_some(group)
    }

    /// What is being read, or will be soon.
    pub fn readings(&self) -> impl Iterator<Item = &Need> {
        self.reads.store.iter().filter(|(_, read)| read.is_active()).map(|(need, _)| need)
    }
}

/// The group of a list is there, or may be.
fn note_group(azure: &mut Azure, need: &Need) {
    if let Need::PublicIps(group) | Need::PrivateLinks(group) = need {
        azure.absent_groups.remove(group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::reads::LIST_LAG_MS;
    use arm::Reply;
    use fixture::policy;
    use model::world::Fact;
    use serde_json::{Value, json};
    use std::sync::Arc;

    /// The controller is answered this to a read that it begins now.
    fn answered(controller: &mut Controller, need: &Need, status: u16, body: Value, now_ms: u64) {
        controller.read(need.clone(), Urgency::Urgent, now_ms);
        let reply = Reply { status, body: Some(Arc::new(body)), ..Reply::default() };
        controller.advance_read(need, Answer::Reply(Box::new(reply)), now_ms);
    }

    fn missing(code: &str) -> Value {
        json!({"error": {"code": code, "message": "on order"}})
    }

    #[test]
    fn a_group_that_azure_does_not_find_once_keeps_all_that_stands_in_it() {
        let group = || missing("ResourceGroupNotFound");
        for (again_ms, body, kept) in [
            (5_000, group(), 1),
            (LIST_LAG_MS, group(), 0),
            (LIST_LAG_MS, missing("InternalServerError"), 1),
        ] {
            let mut controller = Controller::new(policy(), Options::default());
            let balancer = Arc::new(fixture::balancer());
            let known = Fact::Known([(balancer.id.clone(), balancer)].into());
            controller.world.azure.balancers = known;
            let stand = |c: &Controller| c.world.azure.balancers.each().count();
            answered(&mut controller, &Need::Balancers, 404, group(), 0);
            assert_eq!(stand(&controller), 1, "one answer may be a passing one");
            let status = if kept == 1 && again_ms == LIST_LAG_MS { 500 } else { 404 };
            answered(&mut controller, &Need::Balancers, status, body, again_ms);
            assert_eq!(stand(&controller), kept, "after {again_ms} ms");
            let read = &controller.reads.store[&Need::Balancers];
            assert_eq!(read.next_ms().is_some(), kept == 1, "it is asked again");
        }
    }

    #[test]
    fn a_group_that_a_service_names_is_absent_until_it_is_there() {
        let mut controller = Controller::new(policy(), Options::default());
        let far = Group::new("far");
        let need = Need::PublicIps(far.clone());
        let mut absent = |status, body, now_ms| {
            answered(&mut controller, &need, status, body, now_ms);
            let azure = &controller.world.azure;
            let unread = matches!(azure.public_ips[&far], Fact::Unreadable(_));
            (unread, azure.absent_groups.contains(&far))
        };
        let group = || missing("ResourceGroupNotFound");
        assert_eq!(absent(404, group(), 0), (true, false), "its owner learns it at once");
        assert_eq!(absent(404, group(), LIST_LAG_MS), (true, true));
        assert_eq!(absent(200, json!({"value": []}), 60_000), (false, false));
        assert!(!absent(404, group(), 120_000).1, "it was there since");
    }

    #[test]
    fn a_resource_that_azure_does_not_find_is_not_there() {
        let mut controller = Controller::new(policy(), Options::default());
        answered(&mut controller, &Need::SecurityGroup, 404, missing("ResourceNotFound"), 0);
        assert_eq!(controller.world.azure.security_group, Fact::Known(None));
    }
}
