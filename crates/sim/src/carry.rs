//! Steps of controllers and what becomes of their effects.

use crate::fault::Fault;
use crate::path::bare_path;
use crate::process::Hold;
use crate::refusal::azure_fault;
use crate::scene;
use crate::stage::{Happening, Rightful, Sent, Stage};
use crate::tally::count;
use crate::weather::{Crash, Side, Weather, suiting};
use crate::wire;
use arm::{Answer, Method, Request, TransportFault};
use azure_emulator::Fault as AzureFault;
use control::{CallId, Effect, Event, KubernetesAnswer, KubernetesCall};
use kube_emulator::{Failure, Fault as ApiFault};
use model::world::Kind;
use std::sync::Arc;

/// Wake-ups in a row that may lead to nothing before it counts as spinning.
const IDLE_WAKES: u32 = 200;

/// A write in a few words: method, kind and name.
fn describe(method: &str, path: &str) -> String {
    let mut segments = path.rsplit('/');
    let (name, kind) = (segments.next().unwrap_or(""), segments.next().unwrap_or(""));
    format!("{method} {kind}/{name}")
}

/// An effect by what it writes, for counts.
fn label(effect: &Effect) -> String {
    match effect {
        Effect::Azure { request, .. } if !request.method.is_write() => "GET".to_owned(),
        Effect::Azure { request, .. } => {
            let path = bare_path(request);
            let kind = match request.method {
                Method::Post => path.rsplit('/').next(),
                _ => path.rsplit('/').nth(1),
            };
            // Azure gives ids in whatever letters it likes, and takes them so.
            format!("{} {}", request.method.name(), kind.unwrap_or("").to_lowercase())
        }
        Effect::Kubernetes { request, .. } if is_ledger(request) => {
            format!("{} ledger", request.method)
        }
        Effect::Kubernetes { request, .. } if request.method == "POST" => "POST event".to_owned(),
        Effect::Kubernetes { request, .. } if request.method == "GET" => "GET".to_owned(),
        Effect::Kubernetes { request, .. } => {
            let what = if request.path.ends_with("/status") { "status" } else { "finalizers" };
            let kind = if request.path.contains("/pods/") { "pod" } else { "service" };
            format!("PATCH {kind} {what}")
        }
        Effect::Say(_) => "say".to_owned(),
    }
}

/// Whether a call is about the ledger.
pub(crate) fn is_ledger(request: &KubernetesCall) -> bool {
    request.path.contains("/configmaps")
}

/// Whether an effect writes nothing.
fn reads(effect: &Effect) -> bool {
    match effect {
        Effect::Azure { request, .. } => !request.method.is_write(),
        Effect::Kubernetes { request, .. } => request.method == "GET",
        Effect::Say(_) => true,
    }
}

impl Stage {
    /// A controller takes in what has arrived and its effects are carried out.
    pub(crate) fn step(&mut self, number: usize) {
        let mut events = std::mem::take(&mut self.processes[number].inbox);
        if let Some(mut mutant) = self.mutant.take() {
            events = mutant.events(events);
            self.mutant = Some(mutant);
        }
        let waited = events.is_empty();
        let process = &mut self.processes[number];
        let now_ms = process.clock_ms(self.now_ms);
        let plans = process.controller.counts().plans;
        let effects = process.controller.step(events, now_ms);
        self.tally.controller_steps += 1;
        self.check_step(number, plans, &effects);
        let effects = match self.mutant.take() {
            Some(mut mutant) => {
                let effects = mutant.effects(effects, self, number);
                self.mutant = Some(mutant);
                effects
            }
            None => effects,
        };
        let idle = effects.iter().all(|effect| matches!(effect, Effect::Say(_)));
        for effect in effects {
            if !self.carry_out(number, effect) {
                return;
            }
        }
        self.note_idleness(number, waited && idle);
        self.arrange_wake(number);
    }

    fn note_idleness(&mut self, number: usize, idle: bool) {
        let now_ms = self.now_ms;
        let process = &mut self.processes[number];
        let spins = idle && process.next_wake_ms().is_some_and(|at| at <= now_ms);
        process.idle_wakes = if spins { process.idle_wakes + 1 } else { 0 };
        if process.idle_wakes > IDLE_WAKES {
            let text = format!("process {number} wakes again and again and does nothing");
            self.fail("L3", text);
        }
    }

    /// Carries out one effect. False when the process died of it.
    pub(crate) fn carry_out(&mut self, number: usize, effect: Effect) -> bool {
        if let Effect::Say(notice) = &effect {
            self.check_secret(&notice.text);
            self.trace.say(self.now_ms, || format!("process {number}: {}", notice.text));
            return true;
        }
        self.numbers.0 += 1;
        let name = label(&effect);
        let crash = self.weather.crash(self.numbers.0);
        count(&mut self.tally.effects, name.clone());
        if crash != Crash::None {
            let (side, fault) = match crash {
                Crash::Before => ("before", Fault::CrashBefore),
                Crash::After | Crash::None => ("after", Fault::CrashAfter),
            };
            count(&mut self.tally.faults, fault.name());
            count(&mut self.tally.crashes, format!("{side} {name}"));
            if crash == Crash::After {
                self.send(number, effect);
            }
            self.kill(number, &format!("{side} {name}"));
            return false;
        }
        self.send(number, effect);
        true
    }

    fn sent(&self, number: usize) -> Sent {
        let process = &self.processes[number];
        let view = |kind: Kind| process.streams.get(&kind).map_or(0, |stream| stream.revision);
        // An older list takes back nothing that is known of slices.
        let known = |kind: Kind| process.streams.get(&kind).map_or(0, |stream| stream.known);
        let rightful = match process.hold {
            Hold::Always => Rightful::Yes,
            _ if self.lease.holder == Some((number, process.epoch)) => Rightful::Yes,
            _ => Rightful::No,
        };
        Sent {
            process: number,
            epoch: process.epoch,
            call: self.numbers.1,
            at_ms: self.now_ms,
            leaves_ms: self.now_ms,
            nodes: view(Kind::Nodes),
            services: view(Kind::Services),
            slices: known(Kind::EndpointSlices),
            pods: view(Kind::Pods),
            term: self.lease.term,
            rightful,
        }
    }

    fn send(&mut self, number: usize, effect: Effect) {
        self.numbers.1 += 1;
        let id = self.numbers.1;
        let mut sent = self.sent(number);
        let allowed = self.processes[number].may_write(self.now_ms)
            || self.mutant.as_ref().is_some_and(|m| m.ignores_lease());
        self.processes[number].outstanding += 1;
        let reads = reads(&effect);
        if matches!(self.weather, Weather::Scripted(_)) {
            self.pairs.extend(self.under_way.keys().map(|other| (*other, id)));
            self.under_way.insert(id, ());
            self.writes.extend((!reads).then_some(id));
            self.suiting.extend(suiting(&effect).into_iter().map(|fault| (id, fault)));
        }
        // Standing still between the look at the lease and the sending is what fencing is for.
        let pause_ms = self.weather.pause_ms(id).unwrap_or(0);
        if pause_ms > 0 {
            count(&mut self.tally.faults, Fault::Pause.name());
            self.trace.say(self.now_ms, || format!("process {number} pauses for {pause_ms} ms"));
            let process = &mut self.processes[number];
            process.paused_until = process.paused_until.max(self.now_ms + pause_ms);
        }
        let start = self.processes[number].paused_until.max(self.now_ms);
        sent.leaves_ms = start;
        match effect {
            Effect::Azure { call, request } => {
                let write = request.method.is_write();
                if write && !allowed {
                    let why = "the lease is not held".to_owned();
                    let answer = Box::new(Answer::Fault(TransportFault::NotSent(why)));
                    let back = Happening::AzureAnswers(number, sent.epoch, call, answer, id);
                    self.queue_at(self.now_ms, back);
                    return;
                }
                self.check_sending(&sent, call, &request);
                if write {
                    self.trace.say(self.now_ms, || {
                        let what = describe(request.method.name(), bare_path(&request));
                        format!("process {number} sends {what}")
                    });
                }
                let at = start + self.weather.jitter_ms(self.pace.azure_ms);
                self.queue_at(at, Happening::AzureArrives(sent, call, Box::new(request), id));
            }
            Effect::Kubernetes { call, request } => {
                if !allowed && !reads {
                    let why = "not sent: the lease is not held".to_owned();
                    let answer = Box::new(KubernetesAnswer::Fault(why));
                    let back = Happening::ApiAnswers(number, sent.epoch, call, answer, id);
                    self.queue_at(self.now_ms, back);
                    return;
                }
                self.check_calling(&sent, call, &request);
                self.check_gate(&sent, &request);
                self.check_conditions(&sent, &request);
                self.check_event(&sent, &request);
                let at = start + self.weather.jitter_ms(self.pace.api_ms);
                self.queue_at(at, Happening::ApiArrives(sent, call, Box::new(request), id));
            }
            Effect::Say(_) => {}
        }
    }

    /// A request reaches Azure.
    pub(crate) fn azure_arrives(&mut self, sent: Sent, call: CallId, request: Request, id: u64) {
        let lost = self.weather.lose(id);
        let drawn = self.weather.azure(&request, id);
        let ambiguous =
            || Answer::Fault(TransportFault::Ambiguous("the answer is lost".to_owned()));
        if lost == Some(Side::Before) {
            self.answer_azure(&sent, call, ambiguous(), id, 0);
            return;
        }
        if let Some((fault, _)) = drawn {
            count(&mut self.tally.faults, fault.name());
            self.trace.say(self.now_ms, || {
                let what = describe(request.method.name(), bare_path(&request));
                format!("{what}: {}", fault.what())
            });
        }
        if let Some((Fault::TokenEndpointDown, _)) = drawn {
            let why = "no token: the token endpoint does not answer".to_owned();
            self.answer_azure(&sent, call, Answer::Fault(TransportFault::NotSent(why)), id, 0);
            return;
        }
        let usual_ms = self.azure.options().lro_ms;
        if let Some((fault, number)) = drawn {
            match fault {
                Fault::Stuck => self.azure.options_mut().lro_ms = 60_000 + number % 600_000,
                _ => {
                    let kind = azure_fault(fault, &request, number);
                    self.azure.add_fault(AzureFault::new(kind));
                }
            }
        }
        if let Some(kind) = self.refused_on_order(&request) {
            self.azure.clear_faults();
            self.azure.add_fault(AzureFault::new(kind));
        }
        let write = request.method.is_write();
        let before = if write { self.azure_view(&request) } else { None };
        let base = self.azure.options().base_url.clone();
        let answer = self.azure.handle_shared(wire::azure_request(&request, &base), self.now_ms);
        self.azure.clear_faults();
        self.azure.clear_calls();
        self.azure.options_mut().lro_ms = usual_ms;
        if write {
            let status = answer.status;
            self.trace.say(self.now_ms, || {
                let what = describe(request.method.name(), bare_path(&request));
                format!("Azure: {what} -> {status} {}", answer.code().unwrap_or(""))
            });
            self.ledger.fenced += u64::from(status == 412 && self.is_late(&sent));
            let after = self.azure_view(&request);
            if answer.status < 300 {
                self.trace.say(self.now_ms, || match (request.method, &request.body) {
                    (Method::Post, Some(body)) => format!("  asked {}", rows(&body.tree())),
                    (Method::Delete, _) => "  to go".to_owned(),
                    _ => format!("  now {}", summary(after.as_deref())),
                });
            }
            self.check_azure_write(&sent, &request, before.as_deref(), after.as_deref(), &answer);
        }
        let (answer, delay) = wire::azure_answer(self.garbled(&request, answer));
        let answer = if lost == Some(Side::After) { ambiguous() } else { answer };
        self.answer_azure(&sent, call, answer, id, delay);
    }

    /// What a write writes, as it is now.
    fn azure_view(&self, request: &Request) -> Option<Arc<serde_json::Value>> {
        if request.method == Method::Post {
            return self.azure.gateway(&scene::gateway()).map(Arc::new);
        }
        self.azure.shown_by_id(bare_path(request))
    }

    fn answer_azure(&mut self, sent: &Sent, call: CallId, answer: Answer, id: u64, delay: u64) {
        let back = self.weather.jitter_ms(self.pace.azure_ms);
        let at = self.now_ms + back + delay.max(self.late_ms(sent, call));
        self.note_answer(sent, call, &answer);
        let happening =
            Happening::AzureAnswers(sent.process, sent.epoch, call, Box::new(answer), id);
        self.queue_answer(at, id, happening);
    }

    /// Puts an answer into the queue; one that changes places with another waits for that one.
    fn queue_answer(&mut self, at: u64, id: u64, happening: Happening) {
        match self.weather.swap(id) {
            Some(other) => match self.swapped.remove(&other) {
                Some(held) => {
                    self.queue_at(at, happening);
                    self.queue_at(at + 1, held);
                }
                None => {
                    self.swapped.insert(id, happening);
                }
            },
            None => self.queue_at(at, happening),
        }
    }

    /// A call reaches the API server.
    pub(crate) fn api_arrives(
        &mut self,
        sent: Sent,
        call: CallId,
        request: KubernetesCall,
        id: u64,
    ) {
        let fault = self.weather.api(&request.path, id);
        let lost = match (self.weather.lose(id), fault) {
            (None, Some(Fault::ApiAnswerLostApplied)) => Some(Side::After),
            (None, Some(Fault::ApiAnswerLostNotApplied)) => Some(Side::Before),
            (lost, _) => lost,
        };
        let down = self.api_down_until > self.now_ms;
        let why = || KubernetesAnswer::Fault("the API server does not answer".to_owned());
        let answer = if down || lost == Some(Side::Before) {
            why()
        } else {
            match fault {
                Some(Fault::ApiThrottled) => self.kubernetes.inject(next(throttled(id))),
                Some(Fault::ApiError) => self.kubernetes.inject(next(Failure::Internal)),
                Some(Fault::ApiUnavailable) => self.kubernetes.inject(next(Failure::Unavailable)),
                Some(Fault::ApiConflict) => self.kubernetes.inject(next(Failure::Conflict)),
                _ => {}
            }
            let answer = self.api_call(&sent, &request);
            if lost == Some(Side::After) { why() } else { answer }
        };
        if let Some(fault) = fault.filter(|_| !down) {
            count(&mut self.tally.faults, fault.name());
            self.trace.say(self.now_ms, || {
                format!("{}: {}", describe(request.method, &request.path), fault.what())
            });
        }
        self.note_api_answer(&sent, call, &answer);
        let at = self.now_ms + self.weather.jitter_ms(self.pace.api_ms);
        let happening = Happening::ApiAnswers(sent.process, sent.epoch, call, Box::new(answer), id);
        self.queue_answer(at, id, happening);
    }

    fn api_call(&mut self, sent: &Sent, request: &KubernetesCall) -> KubernetesAnswer {
        let before = self.object_at(&request.path);
        let answer = wire::kubernetes_call(&mut self.kubernetes, request, self.now_ms);
        self.kubernetes.clear_calls();
        if let KubernetesAnswer::Reply { status, .. } = &answer
            && (request.method == "PATCH" || is_ledger(request))
        {
            self.trace.say(self.now_ms, || {
                let what = describe(request.method, &request.path);
                format!("API server: {what} {} -> {status}", request.body)
            });
        }
        let after = self.object_at(&request.path);
        self.check_api_write(sent, request, before.as_deref(), after.as_deref());
        answer
    }

    /// The Service or Pod that a call is about.
    pub(crate) fn object_at(&self, path: &str) -> Option<Arc<serde_json::Value>> {
        let mut segments = path.split('/').skip_while(|s| *s != "namespaces").skip(1);
        let (namespace, plural, name) = (segments.next()?, segments.next()?, segments.next()?);
        matches!(plural, "services" | "pods").then_some(())?;
        self.kubernetes.get(kube_emulator::ObjectRef::new(plural, namespace, name)).ok()
    }

    /// Puts an event before a process, as if it had arrived.
    pub fn tell(&mut self, number: usize, event: Event) {
        self.processes[number].inbox.push(event);
        self.queue_step(number);
    }
}

/// With a `Retry-After` of a few seconds: less than a back-off comes to, or more.
fn throttled(call: u64) -> Failure {
    Failure::Throttled(if call.is_multiple_of(3) { 9 } else { 2 })
}

fn next(failure: Failure) -> ApiFault {
    ApiFault::next(failure)
}

/// Parts of resources that are told, and what they are called.
const PARTS: [(&str, &str); 4] = [
    ("frontendIPConfigurations", "frontend"),
    ("loadBalancingRules", "rule"),
    ("probes", "probe"),
    ("securityRules", "rule"),
];

/// What stands in a resource after a write, in a few words.
pub(crate) fn summary(after: Option<&serde_json::Value>) -> String {
    let Some(after) = after else { return "nothing is there".to_owned() };
    let inside = &after["properties"];
    let mut words: Vec<String> = ["ipAddress", "provisioningState"]
        .iter()
        .filter_map(|field| inside[*field].as_str())
        .map(str::to_owned)
        .collect();
    if let Some(tags) = after["tags"].as_object() {
        let tags: Vec<String> =
            tags.iter().map(|(key, value)| format!("{key}={}", word(value))).collect();
        words.push(format!("tags {}", tags.join(" ")));
    }
    for (collection, kind) in PARTS {
        for (name, part) in crate::check::form::parts(after, collection) {
            let inside = &part["properties"];
            let to = [
                &inside["destinationAddressPrefix"],
                &inside["destinationAddressPrefixes"],
                &inside["publicIPAddress"]["id"],
                &inside["privateIPAddress"],
            ];
            let to: Vec<String> = to.iter().filter(|to| !to.is_null()).map(|to| word(to)).collect();
            let to = to.join(" ");
            words.push(match to.is_empty() {
                true => format!("{kind} {name}"),
                false => format!("{kind} {name} at {to}"),
            });
        }
    }
    for (name, pool) in crate::check::form::parts(after, "backendAddressPools") {
        let held = pool["properties"]["loadBalancerBackendAddresses"].as_array();
        let held = held.into_iter().flatten();
        let held: Vec<&str> = held.filter_map(|a| a["properties"]["ipAddress"].as_str()).collect();
        words.push(format!("pool {name} of [{}]", held.join(" ")));
    }
    words.join(", ")
}

/// A value without quotes; of an id its last segment, and several one after the other.
fn word(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Array(all) => all.iter().map(word).collect::<Vec<_>>().join(" "),
        serde_json::Value::String(text) if text.starts_with("/subscriptions/") => {
            text.rsplit('/').next().unwrap_or(text).to_owned()
        }
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The rows that a write of one of a Service Gateway's tables asks for.
fn rows(body: &serde_json::Value) -> String {
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let services = list(&body["serviceRequests"]).into_iter().map(|entry| {
        let delete = entry["isDelete"].as_bool() == Some(true);
        let service = &entry["service"];
        let verb = if delete { "without" } else { "with" };
        format!("{verb} {} {}", word(&service["properties"]["serviceType"]), word(&service["name"]))
    });
    let locations = list(&body["addressLocations"]).into_iter().map(|location| {
        let addresses = list(&location["addresses"]).into_iter().map(|address| {
            format!("{} of [{}]", word(&address["address"]), word(&address["services"]))
        });
        let addresses: Vec<String> = addresses.collect();
        format!("{}: {}", word(&location["addressLocation"]), addresses.join(", "))
    });
    services.chain(locations).collect::<Vec<_>>().join("; ")
}
