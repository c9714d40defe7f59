//! Reads what planning needs, and reads it again at an interval to notice drift.

use crate::backoff;
use crate::budget::Urgency;
use crate::budget::limit::limits_of;
use crate::controller::{Caller, Controller};
use crate::effect::NoticeKind;
use crate::obstacles::{Failure, Trouble};
use crate::reads::busy::{BUSY_MS, LONGEST_BUSY_MS};
use crate::reads::keep;
use crate::reads::lists::{Coming, LeftOut};
use arm::error::{ArmError, ErrorKind};
use arm::page::{PageStep, Pages};
use arm::{Answer, Request};
use model::obstacle::{Obstacle, Subject};
use model::world::{Azure, Need};
use model::{Group, ResourceId};
use observe::Applied;
use observe::azure::{Gathering, Memo};
use std::collections::BTreeSet;

/// Lists may lack what was just made: for this long our own write is believed instead.
pub(crate) const LIST_LAG_MS: u64 = 10_000;

/// The end of an operation that nobody can poll is awaited at most so long.
pub(crate) const UNFOLLOWED_MS: u64 = 15 * 60_000;

/// How long the look for drift gives way to other reads.
const LONGEST_DRIFT_WAIT_MS: u64 = 120_000;

/// The status for a token that has expired, or is none.
const UNAUTHORIZED: u16 = 401;

/// Refusals in a row after which a region's zones count as unreadable.
const ZONES_PATIENCE: u32 = 4;

/// One list or resource that is read.
#[derive(Debug, Default)]
pub(crate) struct Read {
    /// How far it is, while it is under way.
    under_way: Option<UnderWay>,
    /// When it was last read to its end.
    read_ms: Option<u64>,
    /// Failures in a row.
    failures: u32,
    /// Not before.
    wait_until_ms: Option<u64>,
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
    memo: Memo,
}

/// A read under way.
#[derive(Debug)]
struct UnderWay {
    pages: Pages,
    sent_ms: u64,
    /// What the pages so far have brought.
    gathering: Gathering,
    /// Whether it began before this process could write, or before the outcome of a write became
    /// unknown: nothing that it brings is stored.
    early: bool,
}

/// Whether something has to be read again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Staleness {
    #[default]
    Fresh,
    /// It is old, nothing else: whether somebody has changed it can be looked at a little later.
    Old,
    Stale,
}

impl Read {
    /// Nothing in the list is being changed any more.
    pub fn rest(&mut self) {
        self.busy_rounds = 0;
    }

    /// Something in the list is being changed: it is read again, later each time.
    pub fn follow(&mut self, now_ms: u64) {
        let idle = self.under_way.is_none() && self.wait_until_ms.is_none();
        if idle && self.stale == Staleness::Fresh {
            let pause_ms = (BUSY_MS << self.busy_rounds.min(8)).min(LONGEST_BUSY_MS);
            self.busy_rounds += 1;
            self.wait_until_ms = Some(now_ms + pause_ms);
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

    /// Whether it is under way or about to be read.
    pub fn is_awaited(&self) -> bool {
        self.under_way.is_some() || self.stale != Staleness::Fresh || self.wait_until_ms.is_some()
    }

    /// Whether what was read of it, if anything, was read since a time.
    pub fn is_read_since(&self, at_ms: u64) -> bool {
        self.read_ms.is_none_or(|read_ms| read_ms >= at_ms)
    }

    /// When it is attempted again; `None` while it is under way.
    pub fn next_ms(&self) -> Option<u64> {
        self.wait_until_ms.filter(|_| self.under_way.is_none())
    }

    /// When this read needs attention without an answer.
    pub fn wake_ms(&self, interval_ms: u64) -> Option<u64> {
        if self.under_way.is_some() {
            return self.held.as_ref().map(|(_, at)| *at);
        }
        self.wait_until_ms.or_else(|| self.read_ms.map(|at| at + interval_ms))
    }
}

/// Whether planning goes on without what was refused. An expired token says nothing of what was
/// asked for. Public IPs and frontends that were made without zones never get any: zones count as
/// unreadable once nothing else than a missing right explains it.
fn is_lasting(error: &ArmError, need: &Need, failures: u32) -> bool {
    let patience = if *need == Need::Zones { ZONES_PATIENCE } else { 1 };
    error.kind == ErrorKind::Forbidden && error.status != UNAUTHORIZED && failures >= patience
}

impl Controller {
    /// Sends the reads that planning asked for and those that are due.
    pub(crate) fn read_needs(&mut self, now_ms: u64) {
        let stale = self.reads.store.iter().filter(|(_, r)| r.stale != Staleness::Fresh);
        let mut wanted: Vec<(Urgency, Need)> = stale
            .map(|(need, read)| match read.stale {
                Staleness::Old => (Urgency::Background, need.clone()),
                Staleness::Fresh | Staleness::Stale => (Urgency::Normal, need.clone()),
            })
            .collect();
        wanted
            .extend(self.planning.report.needs.iter().map(|need| (Urgency::Normal, need.clone())));
        // What planning waits for comes before the look for drift.
        wanted.sort_by(|a, b| (b.0, &a.1).cmp(&(a.0, &b.1)));
        for (urgency, need) in wanted {
            if self.is_in_flux(&need) {
                continue;
            }
            let read = self.reads.store.entry(need.clone()).or_default();
            if read.under_way.is_none() && read.wait_until_ms.is_none_or(|at| at <= now_ms) {
                self.read(need, urgency, now_ms);
            }
        }
    }

    /// When reads need attention without an answer. One that waits for the end of a write is looked
    /// at when that comes: until then its time may be over, and waking for it would be spinning.
    pub(crate) fn wake_reads_ms(&self) -> impl Iterator<Item = u64> {
        let ready =
            |(need, read): &(&Need, &Read)| read.under_way.is_some() || !self.is_in_flux(need);
        let interval_ms = self.options.check_interval_ms;
        self.reads.store.iter().filter(ready).filter_map(move |(_, read)| read.wake_ms(interval_ms))
    }

    fn read(&mut self, need: Need, urgency: Urgency, now_ms: u64) {
        let correlation = self.correlation();
        let request = observe::need::request(&need, &self.policy, &correlation);
        let read = self.reads.store.entry(need.clone()).or_default();
        if let Err(refusal) = self.budget.limits.ask(&limits_of(&request), urgency, now_ms) {
            read.wait_until_ms = Some(refusal.ready_ms);
            return;
        }
        let gathering = Gathering::again(std::mem::take(&mut read.memo));
        let pages = Pages::start(&request);
        read.under_way = Some(UnderWay { pages, sent_ms: now_ms, gathering, early: false });
        read.wait_until_ms = None;
        read.stale = Staleness::Fresh;
        self.request(Caller::Read(need), request, now_ms);
    }

    /// Asks for next pages that waited for budget.
    pub(crate) fn go_on_reading(&mut self, now_ms: u64) {
        let due = |read: &Read| read.held.as_ref().is_some_and(|(_, at)| *at <= now_ms);
        let needs: Vec<Need> =
            self.reads.store.iter().filter(|(_, r)| due(r)).map(|(need, _)| need.clone()).collect();
        for need in needs {
            let held = self.reads.store.get_mut(&need).and_then(|read| read.held.take());
            if let Some((request, _)) = held {
                self.next_page(&need, request, now_ms);
            }
        }
    }

    /// Asks for the next page as soon as there is budget: the list is of no use without it.
    fn next_page(&mut self, need: &Need, request: Request, now_ms: u64) {
        match self.budget.limits.ask(&limits_of(&request), Urgency::Urgent, now_ms) {
            Ok(()) => self.request(Caller::Read(need.clone()), request, now_ms),
            Err(refusal) => {
                let read = self.reads.store.entry(need.clone()).or_default();
                read.held = Some((request, refusal.ready_ms));
            }
        }
    }

    /// Asks for a read as soon as possible.
    pub(crate) fn read_now(&mut self, need: Need) {
        let read = self.reads.store.entry(need).or_default();
        read.stale = Staleness::Stale;
        self.planning.dirty = true;
    }

    /// Asks for a read that begins now: what is under way was asked for too early.
    pub(crate) fn read_anew(&mut self, need: Need) {
        let read = self.reads.store.entry(need.clone()).or_default();
        // Who waits for budget for a next page waits for no answer.
        let under_way = read.under_way.take().filter(|_| read.held.take().is_none());
        read.under_way = under_way.map(|under_way| UnderWay { early: true, ..under_way });
        self.read_now(need);
    }

    /// Reads what planning does not ask for yet: for whoever wants to know how plans go on.
    pub fn read_ahead(&mut self, needs: impl IntoIterator<Item = Need>) {
        for need in needs {
            if self.reads.store.get(&need).is_none_or(|read| read.under_way.is_none()) {
                self.read_now(need);
            }
        }
    }

    /// Everything that was read is read again.
    pub(crate) fn reread_everything(&mut self) {
        for read in self.reads.store.values_mut().filter(|r| r.read_ms.is_some()) {
            read.stale = Staleness::Stale;
        }
        self.planning.dirty = true;
    }

    /// What was read before this process could write is no ground to write on: whoever could until
    /// now may have changed it. It is read anew; what is under way began too early.
    pub(crate) fn take_over_reads(&mut self) {
        self.world.azure = Azure::default();
        for read in self.reads.store.values_mut() {
            let known = read.is_awaited() || read.read_ms.is_some();
            let stale = if known { Staleness::Stale } else { Staleness::Fresh };
            let Read { mut under_way, failures, wait_until_ms, trouble, held, .. } =
                std::mem::take(read);
            // Who waits for budget for a next page waits for no answer.
            under_way = under_way.filter(|_| held.is_none());
            if let Some(under_way) = &mut under_way {
                under_way.early = true;
            }
            let rest = Read::default();
            *read = Read { under_way, failures, wait_until_ms, trouble, stale, ..rest };
        }
        self.planning.dirty = true;
    }

    /// What was read before of these is read again.
    pub(crate) fn read_known_again(&mut self, is_it: impl Fn(&Need) -> bool) {
        for (need, read) in &mut self.reads.store {
            if is_it(need) && read.read_ms.is_some() {
                read.stale = Staleness::Stale;
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
            read.stale = Staleness::Stale;
        }
    }

    /// Reads that are older than the check interval are read again, where planning uses them.
    pub(crate) fn check_drift(&mut self, now_ms: u64) {
        let interval = self.options.check_interval_ms;
        let mut due = false;
        for read in self.reads.store.values_mut() {
            let waits = read.wait_until_ms.is_some_and(|at| at <= now_ms);
            let old = read.read_ms.is_some_and(|at| at + interval <= now_ms);
            if read.under_way.is_none() && (waits || (old && read.wait_until_ms.is_none())) {
                let overdue =
                    read.read_ms.is_some_and(|at| at + interval + LONGEST_DRIFT_WAIT_MS <= now_ms);
                read.stale = match read.stale {
                    Staleness::Old if !overdue => Staleness::Old,
                    Staleness::Fresh if !waits => Staleness::Old,
                    _ => Staleness::Stale,
                };
                due = true;
            }
        }
        self.planning.look |= due;
    }

    /// Whether a read is under way or about to be repeated.
    pub(crate) fn is_reading(&self) -> bool {
        self.reads.store.values().any(|r| r.under_way.is_some() || r.wait_until_ms.is_some())
    }

    /// An answer to a read.
    pub(crate) fn advance_read(&mut self, need: &Need, answer: Answer, now_ms: u64) {
        let Some(read) = self.reads.store.get_mut(need) else { return };
        let Some(mut under_way) = read.under_way.take() else { return };
        match under_way.pages.advance(answer) {
            PageStep::Next { .. } | PageStep::Done(_) if under_way.early => {
                read.failures = 0;
                read.trouble = None;
                self.planning.look = true;
            }
            PageStep::Next { items, request } => {
                under_way.gathering.take(&self.world.azure, &self.policy, need, &items);
                read.under_way = Some(under_way);
                self.next_page(need, request, now_ms);
            }
            PageStep::Done(items) => {
                let UnderWay { mut gathering, sent_ms, pages, .. } = under_way;
                gathering.take(&self.world.azure, &self.policy, need, &items);
                drop(items);
                read.memo = gathering.memo();
                read.read_ms = Some(now_ms);
                read.failures = 0;
                read.trouble = None;
                // What was told of failures and of silence is taken back by the next plan.
                let told = |obstacle: &Obstacle| obstacle.about == Subject::Read(need.clone());
                let recovered = self.planning.report.obstacles.iter().any(told);
                let before = std::mem::take(&mut read.left_out);
                let coming = if pages.count() > 1 { Coming::Pages(before) } else { Coming::Whole };
                let news = self.store_read(need, gathering, (sent_ms, now_ms), coming);
                // What was awaited may be as unreadable as before; the plan says what then.
                let awaited = self.planning.report.needs.contains(need);
                let unnoted = self.term.is_held() && !self.drift.is_noted();
                if news == Applied::Changed || awaited || unnoted || recovered {
                    self.drift.expect_settled();
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
                    read.read_ms = Some(now_ms);
                    read.failures = 0;
                    read.trouble = None;
                    self.miss(need);
                    return;
                }
                read.failures += 1;
                let failures = read.failures;
                let wait = backoff::after(read.failures, error.retry_after_ms);
                read.wait_until_ms = Some(now_ms + wait);
                let failure = Failure::of_read(need.operation(), &error);
                let before = read.trouble.take();
                read.trouble = Some(Trouble::after(before, failure, &BTreeSet::new(), now_ms));
                if is_lasting(&error, need, failures) {
                    if let Need::PublicIps(group) | Need::PrivateLinks(group) = need {
                        self.world.azure.absent_groups.remove(group);
                    }
                    let why = format!("{}: {}", error.code, error.message);
                    observe::azure::apply_unreadable(&mut self.world.azure, need, &why);
                }
                let text =
                    format!("reading {need} failed, next try in {} s: {error}", wait / 1_000);
                self.say(now_ms, NoticeKind::Failed, &BTreeSet::new(), text, None);
            }
        }
    }

    /// What was to be read does not exist. While the cluster's own groups go, nothing is left in
    /// them; one that a Service names and that is not there is a mistake.
    fn miss(&mut self, need: &Need) {
        let named = self.named_group(need);
        let azure = &mut self.world.azure;
        if let Some(group) = named {
            observe::azure::apply_unreadable(azure, need, "there is no such resource group");
            azure.absent_groups.insert(group.clone());
        } else {
            observe::azure::apply_missing(azure, need);
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
        let active = |r: &Read| r.under_way.is_some() || r.wait_until_ms.is_some();
        self.reads.store.iter().filter(move |(_, r)| active(r)).map(|(need, _)| need)
    }
}
