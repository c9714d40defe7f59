//! One list or resource that is read: how far it is, and when it is read again.

use crate::budget::Urgency;
use crate::reads::{BUSY_MS, LIST_LAG_MS, LONGEST_BUSY_MS};
use crate::retry::Retry;
use crate::trouble::{Failure, Trouble};
use arm::Request;
use arm::error::{ArmError, ErrorKind};
use arm::page::Pages;
use model::ResourceId;
use model::world::Need;
use observe::azure::{Gathering, Memo};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

/// How long the look for drift gives way to other reads.
const LONGEST_DRIFT_WAIT_MS: u64 = 120_000;

/// The status for a token that has expired, or is none.
const UNAUTHORIZED: u16 = 401;

/// Refusals in a row after which a region's zones count as unreadable.
const ZONES_PATIENCE: u32 = 4;

/// What a list of several pages lacked: resources, or entries of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub resources: BTreeSet<ResourceId>,
    pub services: BTreeSet<Arc<str>>,
    pub locations: BTreeSet<IpAddr>,
}

/// How a list came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Coming {
    /// In one answer.
    Whole,
    /// In pages; what the read before this one lacked is gone if this one lacks it, too.
    Pages(LeftOut),
}

/// What Azure's answer that there is nothing to be read is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// It is asked for again.
    Doubted,
    /// There is nothing.
    Believed,
}

/// One list or resource that is read.
#[derive(Debug, Default)]
pub(crate) struct Read {
    /// How far it is, while it is under way.
    under_way: Option<UnderWay>,
    /// When it was last read to its end.
    read_ms: Option<u64>,
    retry: Retry,
    /// When Azure first answered that its resource group is not there, if it was not seen since.
    missing_ms: Option<u64>,
    /// It has to be read again as soon as possible.
    stale: Staleness,
    /// Why the last attempts failed.
    pub trouble: Option<Trouble>,
    /// The next page, which waits for budget until a time.
    held: Option<(Request, u64)>,
    /// Since when neither a Service nor planning has needed the list.
    pub unused_ms: Option<u64>,
    /// How often in a row it was read again because something in it was being changed.
    busy_rounds: u32,
    /// What the last read lacked in its pages although it was held.
    pub left_out: LeftOut,
    /// What the items of the last read said.
    pub memo: Memo,
}

/// A read under way.
#[derive(Debug)]
pub(crate) struct UnderWay {
    pub pages: Pages,
    pub sent_ms: u64,
    /// What the pages so far have brought.
    pub gathering: Gathering,
    /// Whether it began before this process could write, or before the outcome of a write became
    /// unknown: nothing that it brings is stored.
    pub early: bool,
}

/// Whether something has to be read again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Staleness {
    #[default]
    Fresh,
    /// It is old, nothing else: what others changed in it can be looked at a little later.
    Old,
    Stale,
}

impl Read {
    /// Whether it may be asked for now.
    pub fn is_free(&self, now_ms: u64) -> bool {
        self.under_way.is_none() && self.retry.is_due(now_ms)
    }

    /// How much it is worth to read it again; nothing where it need not be.
    pub fn urgency(&self) -> Option<Urgency> {
        match self.stale {
            Staleness::Fresh => None,
            Staleness::Old => Some(Urgency::Background),
            Staleness::Stale => Some(Urgency::Normal),
        }
    }

    /// It is not asked for before a time.
    pub fn put_off(&mut self, until_ms: u64) {
        self.retry.put_off(until_ms);
    }

    /// It is asked for.
    pub fn begin(&mut self, request: &Request, now_ms: u64) {
        let gathering = Gathering::again(std::mem::take(&mut self.memo));
        let pages = Pages::start(request);
        self.under_way = Some(UnderWay { pages, sent_ms: now_ms, gathering, early: false });
        self.retry.resume();
        self.stale = Staleness::Fresh;
    }

    /// The next page waits for budget.
    pub fn hold(&mut self, page: Request, until_ms: u64) {
        self.held = Some((page, until_ms));
    }

    /// The next page, if it has waited for long enough.
    pub fn take_held(&mut self, now_ms: u64) -> Option<Request> {
        self.held.take_if(|(_, at)| *at <= now_ms).map(|(page, _)| page)
    }

    /// It was answered: what was under way, to go on with or to end.
    pub fn take_under_way(&mut self) -> Option<UnderWay> {
        self.under_way.take()
    }

    /// Another page is asked for.
    pub fn go_on(&mut self, under_way: UnderWay) {
        self.under_way = Some(under_way);
    }

    /// It was read to its end.
    pub fn end(&mut self, now_ms: u64) {
        self.missing_ms = None;
        self.read_ms = Some(now_ms);
        self.recover();
    }

    /// Azure answers that there is nothing to be read. That counts at once of one resource. Of a
    /// resource group it counts once it is answered again as long after as a list may be behind:
    /// else one passing answer would end all that stands in the group.
    pub fn miss(&mut self, error: &ArmError, now_ms: u64) -> Missing {
        let since_ms = *self.missing_ms.get_or_insert(now_ms);
        if error.is_about_group() && now_ms < since_ms + LIST_LAG_MS {
            self.retry.put_off(since_ms + LIST_LAG_MS);
            return Missing::Doubted;
        }
        self.read_ms = Some(now_ms);
        self.recover();
        Missing::Believed
    }

    /// Nothing is wrong with it any more.
    pub fn recover(&mut self) {
        self.retry.succeeded();
        self.trouble = None;
    }

    /// An attempt failed; gives the pause before the next.
    pub fn fail(&mut self, failure: Failure<'_>, asked_ms: Option<u64>, now_ms: u64) -> u64 {
        let wait_ms = self.retry.failed(asked_ms, now_ms);
        let before = self.trouble.take();
        self.trouble = Some(Trouble::after(before, failure, &BTreeSet::new(), now_ms));
        wait_ms
    }

    /// Whether planning goes on without what was refused. An expired token says nothing of what was
    /// asked for. Public IPs and frontends that were made without zones never get any: zones count
    /// as unreadable once nothing else than a missing right explains it.
    pub fn is_lasting(&self, error: &ArmError, need: &Need) -> bool {
        let patience = if *need == Need::Zones { ZONES_PATIENCE } else { 1 };
        error.kind == ErrorKind::Forbidden
            && error.status != UNAUTHORIZED
            && self.retry.failures() >= patience
    }

    /// It is read again as soon as possible.
    pub fn read_again(&mut self) {
        self.stale = Staleness::Stale;
    }

    /// Asks for another read, after all reads that are more urgent.
    pub fn read_in_turn(&mut self) {
        if self.stale == Staleness::Fresh {
            self.stale = Staleness::Old;
        }
    }

    /// It is read again: what is under way was asked for too early.
    pub fn read_anew(&mut self) {
        self.disregard();
        self.read_again();
    }

    /// What is under way counts for nothing once it is answered.
    fn disregard(&mut self) {
        // What waits for budget for a next page waits for no answer.
        let under_way = self.under_way.take().filter(|_| self.held.take().is_none());
        self.under_way = under_way.map(|under_way| UnderWay { early: true, ..under_way });
    }

    /// Asks for another read when this process begins to lead, if there was one: at once, unless
    /// reads have failed. A pause that a standby made for another process's operation, or for
    /// budget, does not delay a leader.
    pub fn take_over(&mut self) {
        let known = self.is_awaited() || self.is_known();
        self.disregard();
        let stale = if known { Staleness::Stale } else { Staleness::Fresh };
        let Self { under_way, retry, trouble, .. } = std::mem::take(self);
        let retry = if retry.failures() == 0 { Retry::default() } else { retry };
        let rest = Self::default();
        *self = Self { under_way, retry, trouble, stale, ..rest };
    }

    /// Time passes. Whether it is to be read again: its pause is over, or it is older than the
    /// interval.
    pub fn grow_old(&mut self, interval_ms: u64, now_ms: u64) -> bool {
        let waits = self.retry.is_over(now_ms);
        let old = self.read_ms.is_some_and(|at| at + interval_ms <= now_ms);
        let due = self.under_way.is_none() && (waits || (old && !self.retry.is_put_off()));
        if due {
            let longest_ms = interval_ms + LONGEST_DRIFT_WAIT_MS;
            let overdue = self.read_ms.is_some_and(|at| at + longest_ms <= now_ms);
            self.stale = match self.stale {
                Staleness::Old if !overdue => Staleness::Old,
                Staleness::Fresh if !waits => Staleness::Old,
                _ => Staleness::Stale,
            };
        }
        due
    }

    /// Whether it was read to its end at some time.
    pub fn is_known(&self) -> bool {
        self.read_ms.is_some()
    }

    /// Whether it is under way, or has a time at which it is attempted again.
    pub fn is_active(&self) -> bool {
        self.under_way.is_some() || self.retry.is_put_off()
    }

    /// Nothing in the list is being changed any more.
    pub fn rest(&mut self) {
        self.busy_rounds = 0;
    }

    /// Something in the list is being changed: it is read again, later each time.
    pub fn follow(&mut self, now_ms: u64) {
        let idle = !self.is_active();
        if idle && self.stale == Staleness::Fresh {
            let pause_ms = (BUSY_MS << self.busy_rounds.min(8)).min(LONGEST_BUSY_MS);
            self.busy_rounds += 1;
            self.retry.put_off(now_ms + pause_ms);
        }
    }

    /// What was read, or is awaited, was asked for too early.
    pub fn ask_again(&mut self) {
        if self.read_ms.is_some() || self.under_way.is_some() {
            self.stale = Staleness::Stale;
        }
    }

    /// Whether it has been asked for and is not answered to its end.
    pub fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// When what is under way was asked for.
    pub fn asked_ms(&self) -> Option<u64> {
        self.under_way.as_ref().map(|under_way| under_way.sent_ms)
    }

    /// Whether it is under way or about to be read.
    pub fn is_awaited(&self) -> bool {
        self.is_active() || self.stale != Staleness::Fresh
    }

    /// When it was last read to its end.
    pub fn read_ms(&self) -> Option<u64> {
        self.read_ms
    }

    /// Whether what was read of it, if anything, was read since a time.
    pub fn is_read_since(&self, at_ms: u64) -> bool {
        self.read_ms.is_none_or(|read_ms| read_ms >= at_ms)
    }

    /// When it is attempted again; `None` while it is under way.
    pub fn next_ms(&self) -> Option<u64> {
        self.retry.next_ms().filter(|_| self.under_way.is_none())
    }

    /// When this read needs attention without an answer.
    pub fn wake_ms(&self, interval_ms: u64) -> Option<u64> {
        if self.under_way.is_some() {
            return self.held.as_ref().map(|(_, at)| *at);
        }
        self.retry.next_ms().or_else(|| self.read_ms.map(|at| at + interval_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::policy;
    use model::obstacle::ObstacleKind;

    #[test]
    fn what_is_old_gives_way_to_other_reads_for_a_while() {
        let mut read = Read::default();
        assert!(!read.grow_old(1_000, 1_000_000), "what was never read does not grow old");
        read.end(0);
        assert!(!read.grow_old(1_000, 999));
        assert!(read.grow_old(1_000, 1_000));
        assert_eq!(read.urgency(), Some(Urgency::Background));
        assert!(read.grow_old(1_000, 1_000 + LONGEST_DRIFT_WAIT_MS));
        assert_eq!(read.urgency(), Some(Urgency::Normal));
    }

    fn failure() -> Failure<'static> {
        Failure {
            kind: ObstacleKind::Unreadable,
            operation: "GET load balancers".to_owned(),
            code: "500",
            message: "on order",
        }
    }

    #[test]
    fn a_read_that_failed_is_tried_again_and_not_before() {
        let mut read = Read::default();
        assert_eq!(read.fail(failure(), None, 0), 1_000);
        assert!(!read.is_free(999) && !read.grow_old(60_000, 999));
        assert!(read.is_free(1_000) && read.grow_old(60_000, 1_000));
        assert_eq!(read.urgency(), Some(Urgency::Normal));
    }

    #[test]
    fn an_expired_token_is_no_missing_right() {
        let mut read = Read::default();
        read.fail(failure(), None, 0);
        let refused = |status| ArmError {
            kind: ErrorKind::Forbidden,
            status,
            code: String::new(),
            message: String::new(),
            retry_after_ms: None,
        };
        assert!(read.is_lasting(&refused(403), &Need::Balancers));
        assert!(!read.is_lasting(&refused(UNAUTHORIZED), &Need::Balancers));
    }

    #[test]
    fn what_another_process_may_have_changed_is_read_anew() {
        let mut read = Read::default();
        read.take_over();
        assert_eq!(read.urgency(), None, "it was never read");
        let request = observe::need::request(&Need::Balancers, &policy(), "correlation");
        read.begin(&request, 1);
        read.take_over();
        assert_eq!(read.urgency(), Some(Urgency::Normal));
        assert!(read.take_under_way().is_some_and(|under_way| under_way.early));
        read.end(2);
        read.take_over();
        assert!(!read.is_known() && read.is_awaited());
    }

    /// A standby has seen that another process's operation is running.
    #[test]
    fn a_leader_waits_for_what_has_failed_and_for_no_other_pause_of_a_standby() {
        let mut read = Read::default();
        read.end(0);
        read.follow(0);
        assert!(!read.is_free(500));
        read.take_over();
        assert!(read.is_free(500) && read.is_awaited());
        read.fail(failure(), None, 500);
        read.take_over();
        assert!(!read.is_free(1_000) && read.is_free(1_500));
    }

    #[test]
    fn a_page_that_waits_for_budget_waits_for_no_answer() {
        let request = observe::need::request(&Need::Balancers, &policy(), "correlation");
        let mut read = Read::default();
        read.begin(&request, 0);
        read.hold(request, 500);
        assert_eq!((read.wake_ms(60_000), read.take_held(499)), (Some(500), None));
        read.read_anew();
        assert!(!read.is_under_way() && read.take_held(500).is_none());
    }
}
