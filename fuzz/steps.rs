//! `Controller::step` on any sequence of events. The bytes are a program: each instruction is an
//! operation and an operand. Owners edit Services, nodes come and go, watches bring old news, the
//! lease moves, time passes, and calls are answered in any order: honestly, not at all, with any
//! status, with a damaged body, with and without having taken effect.
//!
//! After each step: one write at a time per resource, none without the lease, and no flood of
//! effects. In the end everything is answered honestly, and the controller has to settle.

use super::doors::{policy, sample};
use arm::{Answer, Reply, Request, TransportFault};
use azure_emulator::{Azure, sample_estate};
use control::{
    CallId, Controller, Effect, Event, KubernetesAnswer, KubernetesCall, Leadership, Options,
};
use kube_emulator::{Store, StoreOptions};
use model::world::Kind;
use observe::{Interner, KubernetesFact, kubernetes};
use serde_json::{Value, json};
use sim::wire;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Instructions of a program that count.
const LONGEST: usize = 120;
/// More effects than any step of so small a cluster has.
const FLOOD: usize = 200;
/// Within this time and as many turns the controller settles once all answers are honest.
const HEAL_MS: u64 = 4 * 3_600_000;
const HEAL_TURNS: usize = 4_000;

/// Runs a program.
pub fn controller_steps(bytes: &[u8]) {
    let mut machine = Machine::new();
    let instructions = bytes.chunks_exact(2).take(LONGEST);
    instructions.for_each(|pair| machine.execute(pair[0], pair[1]));
    machine.heal();
}

struct Machine {
    azure: Azure,
    store: Store,
    controller: Controller,
    interner: Interner,
    now_ms: u64,
    holds_lease: bool,
    asked: BTreeMap<CallId, Request>,
    written: BTreeMap<CallId, KubernetesCall>,
    /// What watches have brought, to be brought again.
    news: Vec<KubernetesFact>,
}

impl Machine {
    fn new() -> Self {
        let mut azure = Azure::new(azure_emulator::Options::default());
        azure.seed(sample_estate(&sample()));
        let mut machine = Self {
            azure,
            store: Store::new(StoreOptions::default()),
            controller: Controller::new(policy().clone(), Options::default()),
            interner: Interner::default(),
            now_ms: 1_700_000_000_000,
            holds_lease: true,
            asked: BTreeMap::new(),
            written: BTreeMap::new(),
            news: Vec::new(),
        };
        machine.add_node(0);
        machine.add_node(1);
        machine.list();
        machine
    }

    fn execute(&mut self, operation: u8, operand: u8) {
        match operation % 16 {
            0 => self.pass(1 << (operand % 20)),
            1 | 2 => self.edit_service(operand),
            3 => self.delete_service(operand),
            4 => self.bring_again(operand),
            5..=7 => self.answer(operand, Fate::Honest),
            8 => self.answer(operand, Fate::Lost),
            9 => self.answer(operand, Fate::NotSent),
            10 => self.answer(operand, Fate::Refused(operand)),
            11 => self.answer(operand, Fate::Damaged(operand)),
            12 => self.answer_kubernetes(operand),
            13 => self.move_lease(operand),
            14 => self.change_node(operand),
            _ => self.list(),
        }
    }

    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        self.step(Vec::new());
    }

    fn step(&mut self, events: Vec<Event>) {
        let effects = self.controller.step(events, self.now_ms);
        assert!(effects.len() < FLOOD, "{} effects of one step", effects.len());
        for effect in effects {
            match effect {
                Effect::Azure { call, request } => {
                    self.judge(&request);
                    assert!(self.asked.insert(call, request).is_none(), "{call:?} twice");
                }
                Effect::Kubernetes { call, request } => {
                    assert!(self.written.insert(call, request).is_none(), "{call:?} twice");
                }
                Effect::Say(_) => {}
            }
        }
    }

    fn judge(&self, request: &Request) {
        if !request.method.is_write() {
            return;
        }
        assert!(self.holds_lease, "a write without the lease: {:?}", request.target);
        let same = |other: &&Request| other.method.is_write() && other.target == request.target;
        let other = self.asked.values().find(same);
        assert!(other.is_none(), "two writes at a time of {:?}", request.target);
    }

    fn service(&self, operand: u8) -> Value {
        let mut service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name(operand), "annotations": {}},
            "spec": {"type": "LoadBalancer", "ports": [
                {"name": "a", "port": 80 + u16::from(operand / 64), "protocol": "TCP"}]}});
        let prefix = "service.beta.kubernetes.io/azure-load-balancer-";
        let annotations = &mut service["metadata"]["annotations"];
        match operand / 4 % 8 {
            1 => annotations[format!("{prefix}internal")] = json!("true"),
            2 => annotations[format!("{prefix}tcp-idle-timeout")] = json!("soon"),
            3 => annotations[format!("{prefix}disable-floating-ip")] = json!("true"),
            4 => service["spec"]["type"] = json!("ClusterIP"),
            5 => service["spec"]["externalTrafficPolicy"] = json!("Local"),
            6 => service["spec"]["ports"][0]["protocol"] = json!("UDP"),
            7 => service["spec"]["loadBalancerSourceRanges"] = json!(["192.0.2.0/24"]),
            _ => {}
        }
        service
    }

    /// Creates a Service or gives it other wishes, and the watch brings it.
    fn edit_service(&mut self, operand: u8) {
        let wanted = self.service(operand);
        let path = format!("/api/v1/namespaces/default/services/{}", name(operand));
        if self.object("services", name(operand)).is_none() {
            let _ = self.store.create(wanted, self.now_ms);
        } else {
            let patch = json!({"metadata": {"annotations": wanted["metadata"]["annotations"]},
                "spec": wanted["spec"]});
            let request =
                kube_emulator::Request::patch(&path, "application/merge-patch+json", &patch);
            self.store.handle(&request, self.now_ms);
        }
        self.bring("services", name(operand));
    }

    fn delete_service(&mut self, operand: u8) {
        let path = format!("/api/v1/namespaces/default/services/{}", name(operand));
        let before = self.object("services", name(operand));
        self.store.handle(&kube_emulator::Request::delete(&path), self.now_ms);
        match (self.object("services", name(operand)), before) {
            (None, Some(gone)) => {
                let uid = gone["metadata"]["uid"].as_str().unwrap_or_default();
                let fact = KubernetesFact::ServiceGone(model::ServiceUid::new(uid));
                self.step(vec![Event::Kubernetes(fact)]);
            }
            _ => self.bring("services", name(operand)),
        }
    }

    fn object(&self, plural: &str, name: &str) -> Option<Value> {
        let all = self.store.list(plural, None);
        all.into_iter().find(|o| o["metadata"]["name"] == name).map(|o| (*o).clone())
    }

    fn bring(&mut self, plural: &str, name: &str) {
        let Some(fact) = self.object(plural, name).and_then(|o| self.fact(plural, &o)) else {
            return;
        };
        self.news.push(fact.clone());
        self.step(vec![Event::Kubernetes(fact)]);
    }

    fn fact(&mut self, plural: &str, object: &Value) -> Option<KubernetesFact> {
        let interner = &mut self.interner;
        if plural == "nodes" {
            let node = kubernetes::node_from_value(object, &policy().group, interner);
            return node.ok().map(KubernetesFact::Node);
        }
        let service = kubernetes::service_from_value(object, &BTreeSet::new(), interner).ok()?;
        Some(KubernetesFact::Service(Box::new(service)))
    }

    /// A watch brings what it has brought before.
    fn bring_again(&mut self, operand: u8) {
        let at = usize::from(operand) % self.news.len().max(1);
        if let Some(fact) = self.news.get(at).cloned() {
            self.step(vec![Event::Kubernetes(fact)]);
        }
    }

    /// New lists of everything.
    fn list(&mut self) {
        let mut events = Vec::new();
        for (kind, plural) in [(Kind::Services, "services"), (Kind::Nodes, "nodes")] {
            events.push(KubernetesFact::ListBegin(kind));
            let objects = self.store.list(plural, None);
            events.extend(objects.iter().filter_map(|object| self.fact(plural, object)));
            events.push(KubernetesFact::ListEnd(kind, None));
        }
        for kind in [Kind::EndpointSlices, Kind::Pods, Kind::GatedPods, Kind::Namespaces] {
            events.extend([KubernetesFact::ListBegin(kind), KubernetesFact::ListEnd(kind, None)]);
        }
        self.step(events.into_iter().map(Event::Kubernetes).collect());
    }

    fn add_node(&mut self, number: u8) {
        let node = json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": format!("vmss00000{number}")},
            "status": {"addresses": [
                {"type": "InternalIP", "address": format!("10.224.0.{}", number + 4)}]}});
        let _ = self.store.create(node, self.now_ms);
    }

    fn change_node(&mut self, operand: u8) {
        let number = operand % 2;
        let name = format!("vmss00000{number}");
        if self.object("nodes", &name).is_none() {
            self.add_node(number);
            self.bring("nodes", &name);
        } else {
            let path = format!("/api/v1/nodes/{name}");
            self.store.handle(&kube_emulator::Request::delete(&path), self.now_ms);
            let gone = KubernetesFact::NodeGone(model::NodeName::new(name));
            self.step(vec![Event::Kubernetes(gone)]);
        }
    }

    fn move_lease(&mut self, operand: u8) {
        self.holds_lease = operand.is_multiple_of(2);
        let held = if self.holds_lease { Leadership::Held } else { Leadership::Lost };
        self.step(vec![Event::Leadership(held)]);
    }

    fn handle(&mut self, request: &Request) -> Answer {
        let base = self.azure.options().base_url.clone();
        let answer = self.azure.handle(wire::azure_request(request, &base), self.now_ms);
        wire::azure_answer(answer).0
    }

    /// One of the calls that are under way is answered.
    fn answer(&mut self, operand: u8, fate: Fate) {
        let at = usize::from(operand) % self.asked.len().max(1);
        let Some((call, request)) = self.asked.iter().nth(at).map(|(c, r)| (*c, r.clone())) else {
            return;
        };
        self.asked.remove(&call);
        let broken = || "the connection broke".to_owned();
        let answer = match fate {
            Fate::Honest => self.handle(&request),
            Fate::Lost => {
                if operand.is_multiple_of(2) {
                    self.handle(&request);
                }
                Answer::Fault(TransportFault::Ambiguous(broken()))
            }
            Fate::NotSent => Answer::Fault(TransportFault::NotSent(broken())),
            Fate::Refused(number) => Answer::Reply(Box::new(refusal(number))),
            Fate::Damaged(number) => damaged(self.handle(&request), number),
        };
        self.step(vec![Event::Azure { call, answer }]);
    }

    fn answer_kubernetes(&mut self, operand: u8) {
        let Some((call, request)) = self.written.pop_first() else { return };
        let applied = (operand % 4 != 1)
            .then(|| wire::kubernetes_call(&mut self.store, &request, self.now_ms));
        let answer = match (operand % 4, applied) {
            (0, Some(answer)) => answer,
            (1, _) => KubernetesAnswer::Reply {
                status: [404, 409, 422, 500][usize::from(operand / 4) % 4],
                retry_after_ms: None,
                body: None,
            },
            (2, Some(KubernetesAnswer::Reply { status, .. })) => {
                KubernetesAnswer::Reply { status, retry_after_ms: None, body: None }
            }
            _ => KubernetesAnswer::Fault("the connection broke".to_owned()),
        };
        self.step(vec![Event::KubernetesWritten { call, answer }]);
    }

    /// Everything is answered honestly until the controller has nothing left to do.
    fn heal(&mut self) {
        if !self.holds_lease {
            self.move_lease(0);
        }
        self.list();
        let end = self.now_ms + HEAL_MS;
        for _ in 0..HEAL_TURNS {
            let asked = std::mem::take(&mut self.asked);
            let written = std::mem::take(&mut self.written);
            let mut events: Vec<Event> = Vec::new();
            for (call, request) in asked {
                events.push(Event::Azure { call, answer: self.handle(&request) });
            }
            for (call, request) in written {
                let answer = wire::kubernetes_call(&mut self.store, &request, self.now_ms);
                events.push(Event::KubernetesWritten { call, answer });
            }
            let quiet = events.is_empty();
            self.step(events);
            if !quiet {
                self.list();
            } else if self.controller.is_settled() {
                return;
            } else {
                let wake = self.controller.next_wake_ms().unwrap_or(end);
                self.now_ms = wake.max(self.now_ms + 1);
            }
            if self.now_ms >= end {
                break;
            }
        }
        panic!("it does not settle: {:#?}", self.controller.plan());
    }
}

/// What becomes of a call.
enum Fate {
    Honest,
    Lost,
    NotSent,
    Refused(u8),
    Damaged(u8),
}

fn name(operand: u8) -> &'static str {
    ["web", "shop", "api", "mail"][usize::from(operand % 4)]
}

fn refusal(number: u8) -> Reply {
    const REFUSALS: [(u16, &str); 8] = [
        (400, "InvalidRequestFormat"),
        (429, "TooManyRequests"),
        (409, "AnotherOperationInProgress"),
        (412, "PreconditionFailed"),
        (403, "AuthorizationFailed"),
        (404, "ResourceNotFound"),
        (500, "InternalServerError"),
        (401, "ExpiredAuthenticationToken"),
    ];
    let (status, code) = REFUSALS[usize::from(number) % REFUSALS.len()];
    let wait = (number / 8).is_multiple_of(2).then_some(u64::from(number) * 100);
    Reply {
        status,
        body: Some(json!({"error": {"code": code, "message": "no"}}).into()),
        retry_after_ms: wait,
        ..Reply::default()
    }
}

/// An answer of which something is missing.
fn damaged(answer: Answer, number: u8) -> Answer {
    let Answer::Reply(mut reply) = answer else { return answer };
    match number % 6 {
        0 => reply.body = None,
        1 => reply.page = None,
        2 => reply.body = Some(json!({"value": null, "properties": []}).into()),
        3 => reply.status = 202,
        4 => {
            if let Some(Value::Object(fields)) = reply.body.as_mut().map(Arc::make_mut) {
                let key = fields.keys().nth(usize::from(number / 6) % fields.len().max(1)).cloned();
                key.map(|key| fields.shift_remove(&key));
            }
        }
        _ => {
            reply.async_operation = Some("https://elsewhere.example/operations/1".to_owned());
            reply.location = None;
        }
    }
    Answer::Reply(reply)
}
