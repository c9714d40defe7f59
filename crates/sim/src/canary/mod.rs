//! Controllers with something wrong on purpose. Each mutant stands between the production
//! controller and its world and spoils what goes through; every one must be caught.

mod api;
mod azure;
mod tables;
mod timeouts;

use crate::path::bare_path;
use crate::scene::SECRET;
use crate::stage::Stage;
use arm::{Answer, Request};
use azure::is_list;
use control::{CallId, Effect, Event, KubernetesAnswer, KubernetesCall, Leadership, NoticeKind};
use model::world::Kind;
use observe::KubernetesFact;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use timeouts::Timeouts;

named! {
    /// What is wrong with the controller.
    pub enum Canary;
    /// Every canary.
    pub const CANARIES;
    ForgetsFinalizer, "forgets-finalizer", "takes a finalizer for written that was never sent";
    DropsFinalizerEarly, "drops-finalizer-early", "takes the finalizer off before Azure is clean";
    KeepsFinalizer, "keeps-finalizer", "never takes the finalizer off";
    DropsForeignParts, "drops-foreign-parts", "leaves others' rules and probes out of a PUT";
    DropsForeignTags, "drops-foreign-tags", "leaves others' tags out of a PUT";
    IgnoresIfMatch, "ignores-if-match", "sends PUTs without their ETag";
    DeletesNeighbour, "deletes-neighbour", "deletes another cluster's public IP";
    DeletesByoIp, "deletes-byo-ip", "deletes a BYO public IP";
    EmptiesPoolOnError, "empties-pool-on-error", "sends empty pools after a failed call";
    BelievesHalfList, "believes-half-list", "takes the first half of a list for the whole";
    SwapsAddress, "swaps-address", "gives a frontend another address";
    ForgetsPublicIp, "forgets-public-ip", "takes a public IP for deleted that was not";
    ForgetsRule, "forgets-security-rule", "leaves a security rule out of a PUT";
    SpoilsRules, "spoils-rules", "sends rules with another idle timeout than was asked for";
    TrustsOldList, "trusts-old-list", "believes the first list for ever";
    DropsWakeUp, "drops-wake-up", "loses every third event of a watch";
    LosesAnswer, "loses-answer", "loses every fifth answer, and does not wait for it";
    IgnoresLease, "ignores-lease", "writes although the lease is another's";
    NoBackOff, "no-back-off", "repeats a failed write at once";
    IgnoresRetryAfter, "ignores-retry-after", "does not see Retry-After";
    StatusFirst, "status-first", "writes an address into status before anything stands";
    KeepsStatus, "keeps-status", "never takes an address out of status";
    TellsSecret, "tells-secret", "says a secret";
    WritesWhenQuiet, "writes-when-quiet", "writes the security group with every check";
    WritesTwice, "writes-twice", "sends every write twice";
    WaitsForTheBroken, "waits-for-the-broken", "writes nothing while one Service is refused";
    KeepsEgressAddress, "keeps-egress-address",
        "takes an egress gateway's second public IP for deleted that was not";
    NeverChangesTimeouts, "never-changes-timeouts",
        "never changes the idle timeout of a rule that stands";
    SpoilsTheirRow, "spoils-their-row", "writes another client's row in the Service Gateway";
    ReplacesLocations, "replaces-locations",
        "writes the addresses of a node that are new as if they were all";
    RegistersEarly, "registers-early", "registers a Service before its load balancer exists";
    UnregistersEarly, "unregisters-early",
        "takes a registration away while addresses lead to it";
    DoesNotDrain, "does-not-drain", "takes nodes that are going out of pools at once";
    KeepsOpen, "keeps-open", "takes a security rule for removed that was not";
    ReleasesPodsEarly, "releases-pods-early",
        "takes the finalizer off a Pod before its egress gateway stands";
    ForgetsFailedObject, "forgets-failed-object",
        "does not wake for a Kubernetes write that failed";
    ForgetsFailedRead, "forgets-failed-read", "does not wake for a list that could not be read";
    ForgetsOperation, "forgets-operation", "does not wake for the next poll of an operation";
}

/// A controller with something wrong.
#[derive(Debug)]
pub struct Mutant {
    canary: Canary,
    /// Calls and what they asked for.
    asked: BTreeMap<CallId, Request>,
    /// First answers, by what was asked.
    first: BTreeMap<String, Answer>,
    seen: u64,
    failed: bool,
    refused: bool,
    timeouts: Timeouts,
    /// The last Pod that was marked.
    marked: Option<KubernetesCall>,
    /// Events that the mutant makes up.
    made_up: Vec<Event>,
    next_call: u64,
}

impl Mutant {
    /// Makes one.
    #[must_use]
    pub fn new(canary: Canary) -> Self {
        Self {
            canary,
            asked: BTreeMap::new(),
            first: BTreeMap::new(),
            seen: 0,
            failed: false,
            refused: false,
            timeouts: Timeouts::default(),
            marked: None,
            made_up: Vec::new(),
            next_call: 1 << 40,
        }
    }

    /// The process starts again: what is wrong with it stays.
    pub fn restart(&mut self) {
        self.asked.clear();
        self.made_up.clear();
        self.failed = false;
        self.refused = false;
    }

    /// Whether the shell's look at the lease is left out.
    #[must_use]
    pub fn ignores_lease(&self) -> bool {
        self.canary == Canary::IgnoresLease
    }

    /// What reaches the controller.
    pub fn events(&mut self, events: Vec<Event>) -> Vec<Event> {
        let mut out = std::mem::take(&mut self.made_up);
        let mut nodes = Vec::new();
        for event in events {
            match (self.canary, event) {
                (Canary::DropsWakeUp, Event::Kubernetes(fact)) if is_news(&fact) => {
                    self.seen += 1;
                    if !self.seen.is_multiple_of(3) {
                        out.push(Event::Kubernetes(fact));
                    }
                }
                (Canary::BelievesHalfList, Event::Kubernetes(KubernetesFact::Node(node))) => {
                    nodes.push(Event::Kubernetes(KubernetesFact::Node(node)));
                }
                (
                    Canary::BelievesHalfList,
                    Event::Kubernetes(KubernetesFact::ListEnd(Kind::Nodes, _)),
                ) => {
                    self.seen += 1;
                    // The first list of a process is whole: later ones are half.
                    let half = if self.seen > 1 { nodes.len() / 2 } else { nodes.len() };
                    out.extend(nodes.drain(..).take(half));
                    out.push(Event::Kubernetes(KubernetesFact::ListEnd(Kind::Nodes, None)));
                }
                // Neither its shell nor the controller hears that it is over.
                (Canary::IgnoresLease, Event::Leadership(Leadership::Lost)) => {}
                (
                    Canary::ForgetsFailedObject,
                    Event::KubernetesWritten { call, answer: KubernetesAnswer::Fault(why) },
                ) => {
                    self.seen += 1;
                    if !self.seen.is_multiple_of(2) {
                        let answer = KubernetesAnswer::Fault(why);
                        out.push(Event::KubernetesWritten { call, answer });
                    }
                }
                (_, Event::Azure { call, answer }) => {
                    if let Some(answer) = self.answer(call, answer) {
                        out.push(Event::Azure { call, answer });
                    }
                }
                (_, event) => out.push(event),
            }
        }
        out.extend(nodes);
        out
    }

    fn answer(&mut self, call: CallId, mut answer: Answer) -> Option<Answer> {
        let asked = self.asked.remove(&call);
        let failed = match &answer {
            Answer::Reply(reply) => reply.status >= 400,
            Answer::Fault(_) => true,
        };
        self.failed = failed;
        if let Answer::Reply(reply) = &answer {
            self.refused |= reply.status == 400;
        }
        match (self.canary, asked) {
            (Canary::LosesAnswer, Some(_)) => {
                self.seen += 1;
                return (!self.seen.is_multiple_of(5)).then_some(answer);
            }
            (Canary::ForgetsFailedRead, Some(asked)) if is_list(&asked) && failed => return None,
            (Canary::ForgetsOperation, Some(asked)) if asked.method.is_write() => {
                let runs = matches!(&answer, Answer::Reply(r) if matches!(r.status, 201 | 202));
                return (!runs).then_some(answer);
            }
            (Canary::IgnoresRetryAfter, _) => {
                if let Answer::Reply(reply) = &mut answer {
                    reply.retry_after_ms = None;
                    let body = reply.body.as_mut().map(Arc::make_mut);
                    if let Some(message) = body.map(|b| &mut b["error"]["message"])
                        && message.is_string()
                    {
                        *message = json!("");
                    }
                }
            }
            (Canary::NeverChangesTimeouts, _) => self.timeouts.show(&mut answer),
            (Canary::TrustsOldList, Some(asked)) if is_list(&asked) && !failed => {
                let key = bare_path(&asked).to_owned();
                return Some(self.first.entry(key).or_insert(answer).clone());
            }
            (Canary::NoBackOff, Some(asked)) if asked.method.is_write() && failed => {
                // The controller does not learn of it; the call is simply made again.
                self.asked.insert(call, asked);
                self.seen += 1;
                return None;
            }
            _ => {}
        }
        Some(answer)
    }

    /// What leaves the controller.
    pub fn effects(
        &mut self,
        effects: Vec<Effect>,
        stage: &mut Stage,
        number: usize,
    ) -> Vec<Effect> {
        let mut out = Vec::new();
        if self.canary == Canary::NoBackOff && self.seen > 0 {
            self.seen = 0;
            let again = self.asked.iter().filter(|(_, asked)| asked.method.is_write());
            out.extend(
                again.map(|(call, asked)| Effect::Azure { call: *call, request: asked.clone() }),
            );
        }
        for effect in effects {
            match effect {
                Effect::Azure { call, request } => {
                    self.azure(call, request, stage, number, &mut out);
                }
                Effect::Kubernetes { call, request } => {
                    self.api(call, request, stage, number, &mut out);
                }
                Effect::Say(mut notice) => {
                    if self.canary == Canary::TellsSecret && notice.kind == NoticeKind::Failed {
                        notice.text.push_str(SECRET);
                    }
                    out.push(Effect::Say(notice));
                }
            }
        }
        out
    }

    fn fresh(&mut self) -> CallId {
        self.next_call += 1;
        CallId(self.next_call)
    }
}

/// Whether a fact is a change and no part of a list's frame.
fn is_news(fact: &KubernetesFact) -> bool {
    !matches!(fact, KubernetesFact::ListBegin(_) | KubernetesFact::ListEnd(..))
}
