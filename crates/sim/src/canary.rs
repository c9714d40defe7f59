//! Controllers with something wrong on purpose. Each mutant stands between the production
//! controller and its world and spoils what goes through; every one must be caught.

use crate::carry::bare_path;
use crate::scene::objects::{OTHER_CLUSTERS, is_theirs};
use crate::scene::{self, SECRET};
use crate::stage::Stage;
use arm::{Answer, Method, Reply, Request, Target};
use control::{CallId, Effect, Event, KubernetesAnswer, KubernetesCall, Leadership, NoticeKind};
use model::world::Kind;
use observe::KubernetesFact;
use serde_json::{Value, json};
use std::collections::BTreeMap;

macro_rules! canaries {
    ($($canary:ident, $name:literal, $what:literal;)*) => {
        /// What is wrong with the controller.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Canary {
            $(#[doc = $what] $canary,)*
        }

        /// Every canary.
        pub const CANARIES: &[Canary] = &[$(Canary::$canary,)*];

        impl Canary {
            /// Its name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$canary => $name,)*
                }
            }

            /// What is wrong.
            #[must_use]
            pub fn what(self) -> &'static str {
                match self {
                    $(Self::$canary => $what,)*
                }
            }
        }
    };
}

canaries! {
    ForgetsFinalizer, "forgets-finalizer", "takes a finalizer for written that was never sent";
    DropsFinalizerEarly, "drops-finalizer-early", "takes the finalizer off before Azure is clean";
    KeepsFinalizer, "keeps-finalizer", "never takes the finalizer off";
    DropsForeignParts, "drops-foreign-parts", "leaves others' rules and probes out of a PUT";
    DropsForeignTags, "drops-foreign-tags", "leaves others' tags out of a PUT";
    IgnoresIfMatch, "ignores-if-match", "sends PUTs without their ETag";
    DeletesNeighbour, "deletes-neighbour", "deletes another cluster's public IP";
    DeletesBroughtIp, "deletes-brought-ip", "deletes a public IP that was brought";
    EmptiesPoolOnError, "empties-pool-on-error", "sends empty pools after a failed call";
    BelievesHalfList, "believes-half-list", "takes the first half of a list for the whole";
    SwapsAddress, "swaps-address", "gives a frontend another address";
    ForgetsPublicIp, "forgets-public-ip", "takes a public IP for deleted that was not";
    ForgetsRule, "forgets-security-rule", "leaves a security rule out of a PUT";
    SpoilsRules, "spoils-rules", "sends rules with another idle timeout than was asked for";
    TrustsOldList, "trusts-old-list", "believes the first list for ever";
    DropsWakeUp, "drops-wake-up", "loses every third event of a watch";
    LosesAnswer, "loses-answer", "loses every fifth answer, and nobody waits for it";
    IgnoresLease, "ignores-lease", "writes although the lease is another's";
    NoBackOff, "no-back-off", "repeats a failed write at once";
    IgnoresRetryAfter, "ignores-retry-after", "does not see Retry-After";
    StatusFirst, "status-first", "writes an address into status before anything stands";
    KeepsStatus, "keeps-status", "never takes an address out of status";
    TellsSecret, "tells-secret", "says a secret";
    WritesWhenQuiet, "writes-when-quiet", "writes the security group with every check";
    WritesTwice, "writes-twice", "sends every write twice";
    WaitsForTheBroken, "waits-for-the-broken", "writes nothing while one Service is refused";
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

    /// Whether a controller that waits for nothing counts as broken: not one that was made deaf,
    /// which has to be found by what does not come about.
    #[must_use]
    pub fn may_be_asleep(&self) -> bool {
        self.canary != Canary::DropsWakeUp
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
                    Event::Kubernetes(KubernetesFact::ListEnd(Kind::Nodes)),
                ) => {
                    self.seen += 1;
                    // The first list of a process is whole: later ones are half.
                    let half = if self.seen > 1 { nodes.len() / 2 } else { nodes.len() };
                    out.extend(nodes.drain(..).take(half));
                    out.push(Event::Kubernetes(KubernetesFact::ListEnd(Kind::Nodes)));
                }
                // Neither its shell nor the controller hears that it is over.
                (Canary::IgnoresLease, Event::Leadership(Leadership::Lost)) => {}
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
            (Canary::IgnoresRetryAfter, _) => {
                if let Answer::Reply(reply) = &mut answer {
                    reply.retry_after_ms = None;
                    if let Some(message) = reply.body.as_mut().map(|b| &mut b["error"]["message"])
                        && message.is_string()
                    {
                        *message = json!("");
                    }
                }
            }
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

    /// What becomes of a PUT's body.
    fn spoil(&self, request: &mut Request, path: &str) {
        match self.canary {
            Canary::DropsForeignParts => each_list(request, |list| {
                list.retain(|part| !is_theirs(part["name"].as_str().unwrap_or("")));
            }),
            Canary::DropsForeignTags => {
                if let Some(tags) = tree(request).and_then(|b| b["tags"].as_object_mut()) {
                    tags.retain(|key, _| !is_theirs(key));
                }
            }
            Canary::EmptiesPoolOnError if self.failed => each_list(request, |list| {
                for part in list.iter_mut().filter(|part| !is_theirs_part(part)) {
                    let held = part.pointer_mut("/properties/loadBalancerBackendAddresses");
                    if let Some(held) = held.filter(|held| held.is_array()) {
                        *held = json!([]);
                    }
                }
            }),
            Canary::SwapsAddress if path.contains("/loadBalancers/") => {
                swap_address(request);
            }
            Canary::ForgetsRule if path.contains("/networkSecurityGroups/") => {
                each_list(request, |list| {
                    let foreign = |part: &Value| {
                        is_theirs_part(part) || part["name"] == json!(OTHER_CLUSTERS)
                    };
                    if let Some(at) = list.iter().position(|part| !foreign(part)) {
                        list.remove(at);
                    }
                });
            }
            Canary::SpoilsRules => each_list(request, |list| {
                for part in list.iter_mut().filter(|part| !is_theirs_part(part)) {
                    let minutes = part.pointer_mut("/properties/idleTimeoutInMinutes");
                    if let Some(minutes) = minutes.filter(|minutes| minutes.is_number()) {
                        *minutes = json!(13);
                    }
                }
            }),
            _ => {}
        }
    }

    fn azure(
        &mut self,
        call: CallId,
        mut request: Request,
        stage: &mut Stage,
        number: usize,
        out: &mut Vec<Effect>,
    ) {
        let path = bare_path(&request).to_owned();
        if request.method == Method::Put {
            self.spoil(&mut request, &path);
        }
        let delete = request.method == Method::Delete;
        match self.canary {
            Canary::IgnoresIfMatch => request.condition = arm::Condition::None,
            Canary::DeletesNeighbour if delete => {
                out.push(
                    self.extra(Method::Delete, &scene::network("publicIPAddresses/theirs-ip")),
                );
            }
            Canary::DeletesBroughtIp if delete => {
                out.push(self.extra(Method::Delete, &scene::network("publicIPAddresses/byo-pip")));
            }
            Canary::ForgetsPublicIp if delete && path.contains("/publicIPAddresses/") => {
                self.pretend_azure(call, stage, number);
                return;
            }
            Canary::WritesWhenQuiet if is_list(&request) && path.contains("/loadBalancers") => {
                let id = scene::security_group();
                if let Some(group) = stage.azure.resource(&id) {
                    let mut write = self.extra(Method::Put, &id);
                    if let Effect::Azure { request, .. } = &mut write {
                        request.body = Some(group.into());
                    }
                    out.push(write);
                }
            }
            Canary::WritesTwice if request.method.is_write() => {
                let mut twice = self.extra(request.method, &path);
                if let Effect::Azure { request: again, .. } = &mut twice {
                    again.target = request.target.clone();
                    again.body.clone_from(&request.body);
                }
                out.push(twice);
            }
            Canary::WaitsForTheBroken if request.method.is_write() && self.refused => {
                // The next look at the refused Service may set it free; nothing else does.
                let wait = Reply { status: 409, ..Reply::default() };
                let answer = Answer::Reply(Box::new(wait));
                stage.tell(number, Event::Azure { call, answer });
                return;
            }
            _ => {}
        }
        self.asked.insert(call, request.clone());
        out.push(Effect::Azure { call, request });
    }

    fn api(
        &mut self,
        call: CallId,
        request: KubernetesCall,
        stage: &mut Stage,
        number: usize,
        out: &mut Vec<Effect>,
    ) {
        let finalizers = request.body["metadata"].get("finalizers").cloned();
        let status = request.path.ends_with("/status");
        let shown = request.body["status"].get("loadBalancer").is_some();
        let ingress = request.body["status"]["loadBalancer"]["ingress"].clone();
        match (self.canary, finalizers) {
            (Canary::ForgetsFinalizer, Some(Value::Array(list))) => {
                self.pretend_finalizers(call, &request, list, stage, number);
                return;
            }
            (Canary::KeepsFinalizer, Some(Value::Null)) => {
                stage.tell(number, written(call, None));
                return;
            }
            (Canary::StatusFirst, Some(Value::Array(_))) => {
                let body = json!({"status": {"loadBalancer": {"ingress": [{"ip": "20.9.9.9"}]}}});
                let path = format!("{}/status", request.path);
                let content_type = request.content_type;
                let early = KubernetesCall { method: "PATCH", path, content_type, body };
                out.push(Effect::Kubernetes { call, request });
                out.push(Effect::Kubernetes { call: self.fresh(), request: early });
                return;
            }
            (Canary::DropsFinalizerEarly, None) if status && !ingress.is_null() => {
                let body = json!({"metadata": {"finalizers": null}});
                let path = request.path.trim_end_matches("/status").to_owned();
                let content_type = request.content_type;
                let early = KubernetesCall { method: "PATCH", path, content_type, body };
                out.push(Effect::Kubernetes { call, request });
                out.push(Effect::Kubernetes { call: self.fresh(), request: early });
                return;
            }
            (Canary::KeepsStatus, None) if status && shown && ingress.is_null() => {
                stage.tell(number, written(call, None));
                return;
            }
            _ => {}
        }
        out.push(Effect::Kubernetes { call, request });
    }

    fn fresh(&mut self) -> CallId {
        self.next_call += 1;
        CallId(self.next_call)
    }

    fn extra(&mut self, method: Method, path: &str) -> Effect {
        let request = Request {
            method,
            target: Target::Path(format!("{path}?api-version=2025-05-01")),
            condition: arm::Condition::None,
            body: None,
            correlation: "mutant".to_owned(),
        };
        Effect::Azure { call: self.fresh(), request }
    }

    fn pretend_azure(&self, call: CallId, stage: &mut Stage, number: usize) {
        let reply = Reply { status: 204, ..Reply::default() };
        let answer = Answer::Reply(Box::new(reply));
        stage.tell(number, Event::Azure { call, answer });
    }

    fn pretend_finalizers(
        &self,
        call: CallId,
        request: &KubernetesCall,
        list: Vec<Value>,
        stage: &mut Stage,
        number: usize,
    ) {
        let body = stage.service_at(&request.path).map(|service| {
            let mut service = service.as_ref().clone();
            service["metadata"]["finalizers"] = Value::Array(list);
            service
        });
        stage.tell(number, written(call, body));
    }
}

/// Whether a fact is a change and no part of a list's frame.
fn is_news(fact: &KubernetesFact) -> bool {
    !matches!(fact, KubernetesFact::ListBegin(_) | KubernetesFact::ListEnd(_))
}

fn is_list(request: &Request) -> bool {
    let path = bare_path(request);
    request.method == Method::Get
        && matches!(request.target, Target::Path(_))
        && (path.ends_with("/loadBalancers") || path.ends_with("/publicIPAddresses"))
}

fn is_theirs_part(part: &Value) -> bool {
    is_theirs(part["name"].as_str().unwrap_or(""))
}

fn tree(request: &mut Request) -> Option<&mut Value> {
    request.body.as_mut()?.tree_mut()
}

fn each_list(request: &mut Request, mut change: impl FnMut(&mut Vec<Value>)) {
    let inside = tree(request).and_then(|body| body["properties"].as_object_mut());
    for (_, value) in inside.into_iter().flatten() {
        if let Some(list) = value.as_array_mut() {
            change(list);
        }
    }
}

fn swap_address(request: &mut Request) {
    let Some(body) = tree(request) else { return };
    let frontends = body["properties"]["frontendIPConfigurations"].as_array_mut();
    let ours = frontends.into_iter().flatten().filter(|f| !is_theirs_part(f));
    let mut ours: Vec<&mut Value> =
        ours.filter(|f| f["properties"]["publicIPAddress"].is_object()).collect();
    if let [first, second, ..] = ours.as_mut_slice() {
        let one = first["properties"]["publicIPAddress"].take();
        let two = second["properties"]["publicIPAddress"].take();
        first["properties"]["publicIPAddress"] = two;
        second["properties"]["publicIPAddress"] = one;
    }
}

fn written(call: CallId, body: Option<Value>) -> Event {
    let answer = KubernetesAnswer::Reply { status: 200, retry_after_ms: None, body };
    Event::KubernetesWritten { call, answer }
}
