//! Where probes make their calls: each is carried to its end, recorded, and what it made is
//! remembered until it is deleted.

use crate::assumption::{Assumption, Blocked, Verdict};
use crate::estate;
use crate::exchange::{Came, Exchange, Part, Sent};
use crate::site::Site;
use arm::body::read_provisioning;
use arm::path::{Action, Contract, action_path, resource_path};
use arm::{
    Answer, ArmError, Body, Condition, ErrorKind, Method, Operation, Reply, Request, Step, Target,
    TransportFault,
};
use model::ResourceId;
use model::azure::Provisioning;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What sends requests, waits and tells the time.
pub trait Client {
    /// Sends a request and waits for its answer.
    fn send(&mut self, request: &Request) -> Answer;
    /// Waits, unless the client is stopped.
    fn wait(&mut self, ms: u64);
    /// The time, in milliseconds from any beginning.
    fn now_ms(&self) -> u64;
    /// Whether the user wants the run to end: nothing more is tried, and what was made is deleted.
    fn is_stopped(&self) -> bool;
    /// Hears what came of an assumption. Nothing depends on it.
    fn hear(&mut self, _assumption: &Assumption, _verdict: &Verdict) {}
}

/// How often a request is sent again that Azure puts off.
const MOST_REPEATS: u32 = 12;
/// How often a request is sent again that fails in Azure or on the way.
const MOST_RETRIES: u32 = 2;
/// The pause between, where Azure does not say.
const PAUSE_MS: u64 = 5_000;
/// How often everything that is left is deleted once more: some resources go only after others.
const CLEAN_ROUNDS: u32 = 4;
/// PUTs whose operation is looked at although they say that they have ended.
const MOST_BESIDE: usize = 3;

/// What became of a request.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    /// Its first answer.
    pub(crate) came: Came,
    /// Its end.
    pub(crate) result: Result<Option<Value>, ArmError>,
}

impl Done {
    /// The reason to give where it should have succeeded.
    pub(crate) fn blocked(&self, what: &str) -> Blocked {
        match &self.result {
            Ok(_) => Blocked(format!("{what}: answered with {}", self.came.short())),
            Err(error) if error.status == 0 => Blocked(format!("{what}: {}", error.message)),
            Err(error) => {
                Blocked(format!("{what}: {} ({}: {})", error.status, error.code, error.message))
            }
        }
    }
}

/// Where probes make their calls.
pub struct Lab<'a> {
    client: &'a mut dyn Client,
    site: Site,
    begun_ms: u64,
    exchanges: Vec<Exchange>,
    /// In the order in which they were made.
    made: Vec<ResourceId>,
    /// What several probes need, by short name.
    shared: BTreeMap<String, Result<ResourceId, Blocked>>,
    /// Method and kind, and how long it took from the first request to the end.
    durations: Vec<(String, u64)>,
    of: &'static str,
    beside: usize,
    cleaning: bool,
}

impl<'a> Lab<'a> {
    pub(crate) fn new(client: &'a mut dyn Client, site: Site) -> Self {
        Self {
            begun_ms: client.now_ms(),
            client,
            site,
            exchanges: Vec::new(),
            made: Vec::new(),
            shared: BTreeMap::new(),
            durations: Vec::new(),
            of: "",
            beside: 0,
            cleaning: false,
        }
    }

    pub(crate) fn site(&self) -> &Site {
        &self.site
    }

    pub(crate) fn exchanges(&self) -> &[Exchange] {
        &self.exchanges
    }

    pub(crate) fn durations(&self) -> &[(String, u64)] {
        &self.durations
    }

    pub(crate) fn into_exchanges(self) -> Vec<Exchange> {
        self.exchanges
    }

    pub(crate) fn begin(&mut self, of: &'static str) {
        self.of = of;
    }

    pub(crate) fn tell(&mut self, assumption: &Assumption, verdict: &Verdict) {
        self.client.hear(assumption, verdict);
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.client.now_ms()
    }

    pub(crate) fn wait(&mut self, ms: u64) {
        self.client.wait(ms);
    }

    /// Whether nothing more is to be sent.
    pub(crate) fn is_halted(&self) -> bool {
        !self.cleaning && self.client.is_stopped()
    }

    fn send(&mut self, part: Part, request: &Request) -> Answer {
        if self.is_halted() {
            return Answer::Fault(TransportFault::NotSent("the run was interrupted".to_owned()));
        }
        let sent_ms = self.client.now_ms();
        let answer = self.client.send(request);
        let mut came = Came::of(&answer);
        if let Some(items) = came.body.as_mut().and_then(list_in) {
            items.retain(|item| self.site.may_show(item));
        }
        self.exchanges.push(Exchange {
            t_ms: sent_ms.saturating_sub(self.begun_ms),
            took_ms: self.client.now_ms().saturating_sub(sent_ms),
            of: self.of.to_owned(),
            part,
            request: Sent::of(request),
            answer: came,
        });
        answer
    }

    /// The run's id and a number: the same run asks with the same ids.
    fn correlation(&self) -> String {
        format!("{}-0000-4000-8000-{:012x}", self.site.run, self.exchanges.len())
    }

    /// A request to a resource, by the contract that the controller uses for its kind.
    fn request(&self, method: Method, id: &ResourceId, body: Option<Value>) -> Request {
        self.request_to(method, resource_path(Contract::Nodes, id), body)
    }

    /// A request to any path.
    fn request_to(&self, method: Method, path: String, body: Option<Value>) -> Request {
        Request {
            method,
            target: Target::Path(path),
            condition: Condition::None,
            body: body.map(Body::Tree),
            correlation: self.correlation(),
        }
    }

    /// Tries something on a resource.
    pub(crate) fn ask(
        &mut self,
        method: Method,
        id: &ResourceId,
        condition: Condition,
        body: Option<Value>,
    ) -> Done {
        let request = Request { condition, ..self.request(method, id, body) };
        self.carry(Part::Probe, &request)
    }

    /// Tries something on any path.
    pub(crate) fn ask_path(&mut self, method: Method, path: String, body: Option<Value>) -> Done {
        let request = self.request_to(method, path, body);
        self.carry(Part::Probe, &request)
    }

    /// Makes what a probe needs; returns what stands.
    pub(crate) fn make(&mut self, id: &ResourceId, body: Value) -> Result<Value, Blocked> {
        let request = self.request(Method::Put, id, Some(body));
        self.set_up(&request)
    }

    /// Reads what a probe needs.
    pub(crate) fn read(&mut self, id: &ResourceId) -> Result<Value, Blocked> {
        let request = self.request(Method::Get, id, None);
        self.set_up(&request)
    }

    fn set_up(&mut self, request: &Request) -> Result<Value, Blocked> {
        let done = self.carry(Part::Setup, request);
        match &done.result {
            Ok(Some(body)) => Ok(body.clone()),
            _ => Err(done.blocked(&Sent::of(request).short())),
        }
    }

    /// Something that several probes need, made once. One failure is enough, too.
    pub(crate) fn once(
        &mut self,
        short: &str,
        make: impl FnOnce(&mut Self) -> Result<ResourceId, Blocked>,
    ) -> Result<ResourceId, Blocked> {
        if let Some(found) = self.shared.get(short) {
            return found.clone();
        }
        let found = make(self);
        self.shared.insert(short.to_owned(), found.clone());
        found
    }

    /// Carries a request to its end, as often as Azure puts it off.
    fn carry(&mut self, part: Part, request: &Request) -> Done {
        let new = self.remember(request);
        let begun_ms = self.client.now_ms();
        let mut repeats = 0;
        let mut refused = true;
        loop {
            let at = self.exchanges.len();
            let result = self.once_through(part, request);
            let came = self.exchanges.get(at).map(|first| first.answer.clone());
            let came = came.unwrap_or_default();
            // Whatever the last attempt comes to, one before it may have made the resource.
            refused &= (400..500).contains(&came.status);
            if let Err(error) = &result
                && repeats < repeats_of(error.kind)
                && !self.is_halted()
            {
                repeats += 1;
                self.client.wait(error.retry_after_ms.unwrap_or(PAUSE_MS).max(1_000));
                continue;
            }
            if let Some(id) = new.filter(|_| refused) {
                self.made.retain(|made| *made != id);
            }
            if result.is_ok() {
                let took_ms = self.client.now_ms().saturating_sub(begun_ms);
                self.durations.push((label(&Sent::of(request)), took_ms));
            }
            return Done { came, result };
        }
    }

    fn once_through(&mut self, part: Part, request: &Request) -> Result<Option<Value>, ArmError> {
        let mut operation = Operation::start(request);
        let (mut next, mut part) = (request.clone(), part);
        loop {
            let first = !operation.is_accepted();
            let answer = self.send(part, &next);
            if let (true, Answer::Reply(reply)) = (first, &answer) {
                self.look_beside(request, reply);
            }
            match operation.advance(&answer) {
                Step::Done { body } => return Ok(body.map(Arc::unwrap_or_clone)),
                Step::Failed(error) => return Err(error),
                Step::ReadBack { request } => next = request,
                Step::Poll { request, after_ms } => {
                    self.client.wait(after_ms);
                    next = request;
                }
            }
            if self.is_halted() {
                let fault = TransportFault::NotSent("the run was interrupted".to_owned());
                return Err(ArmError::of_fault(Method::Get, &fault));
            }
            part = Part::Poll;
        }
    }

    /// A PUT that has ended, by its body, and names an operation all the same: how that stands.
    fn look_beside(&mut self, request: &Request, reply: &Reply) {
        let state = reply.body.as_deref().and_then(read_provisioning);
        let ended = reply.status != 202 && state == Some(Provisioning::Succeeded);
        let (true, Method::Put, Some(url)) = (ended, request.method, &reply.async_operation) else {
            return;
        };
        if self.beside == MOST_BESIDE {
            return;
        }
        self.beside += 1;
        let of = std::mem::replace(&mut self.of, crate::probes::operations::BESIDE);
        let poll = Request {
            method: Method::Get,
            target: Target::Url(url.clone()),
            condition: Condition::None,
            body: None,
            correlation: request.correlation.clone(),
        };
        self.send(Part::Probe, &poll);
        self.of = of;
    }

    /// Notes what a PUT is about to make; its id, where it was not known.
    fn remember(&mut self, request: &Request) -> Option<ResourceId> {
        let Target::Path(path) = &request.target else { return None };
        let id = ResourceId::new(path.split('?').next().unwrap_or_default());
        let new = request.method == Method::Put
            && self.site.is_ours(&id)
            && !self.made.contains(&id)
            && !self.is_halted();
        new.then(|| {
            self.made.push(id.clone());
            id
        })
    }

    /// Notes that a resource is gone.
    pub(crate) fn forget(&mut self, id: &ResourceId) {
        self.made.retain(|made| made != id);
    }

    /// Deletes everything that was made, the last first; returns what could not be, and why.
    pub(crate) fn clean(&mut self) -> Vec<(ResourceId, String)> {
        self.cleaning = true;
        self.of = "clean";
        let mut left = Vec::new();
        for round in 0..CLEAN_ROUNDS {
            left.clear();
            for id in std::mem::take(&mut self.made).into_iter().rev() {
                let request = self.request(Method::Delete, &id, None);
                if let Err(error) = self.carry(Part::Clean, &request).result {
                    left.push((id, error.to_string()));
                }
            }
            self.made.extend(left.iter().rev().map(|(id, _)| id.clone()));
            if left.is_empty() {
                break;
            }
            if round + 1 < CLEAN_ROUNDS {
                self.let_go(&left);
                self.client.wait(PAUSE_MS);
            }
        }
        left
    }

    /// Parts Service Gateways and NAT gateways that are left, in the controller's order. One may
    /// hold the other by a registration, the other the one by its reference: no order of deletions
    /// gets rid of both.
    fn let_go(&mut self, left: &[(ResourceId, String)]) {
        let of = |kind: &str| {
            let kind = format!("/providers/{kind}/").to_lowercase();
            left.iter().map(|(id, _)| id).filter(move |id| id.folded().contains(&kind))
        };
        of(estate::GATEWAY).for_each(|gateway| self.unregister(gateway));
        of(estate::NAT).for_each(|nat| self.detach(nat));
    }

    /// Takes the services of a Service Gateway away that name a NAT gateway.
    fn unregister(&mut self, gateway: &ResourceId) {
        let list = action_path(Contract::Nodes, gateway, Action::Services);
        let request = self.request_to(Method::Get, list, None);
        let services = self.carry(Part::Clean, &request).came.body.unwrap_or_default();
        let services = services["value"].as_array().into_iter().flatten();
        let named = services.filter(|service| {
            let nat = service["properties"]["publicNatGatewayId"].as_str();
            nat.is_some_and(|id| !id.is_empty())
        });
        let gone = named.map(|service| {
            let kind = &service["properties"]["serviceType"];
            json!({"isDelete": true, "service": {"name": service["name"], "properties": {
                "serviceType": kind, "loadBalancerBackendPools": []}}})
        });
        let gone: Vec<Value> = gone.collect();
        if !gone.is_empty() {
            let path = action_path(Contract::Nodes, gateway, Action::UpdateServices);
            let body = json!({"action": "PartialUpdate", "serviceRequests": gone});
            let request = self.request_to(Method::Post, path, Some(body));
            self.carry(Part::Clean, &request);
        }
    }

    /// Clears the reference of a NAT gateway to its Service Gateway.
    fn detach(&mut self, nat: &ResourceId) {
        let request = self.request(Method::Get, nat, None);
        let Ok(Some(mut body)) = self.carry(Part::Clean, &request).result else { return };
        if body["properties"]["serviceGateway"].is_null() {
            return;
        }
        body["properties"]["serviceGateway"] = Value::Null;
        let request = self.request(Method::Put, nat, Some(body));
        self.carry(Part::Clean, &request);
    }
}

fn repeats_of(kind: ErrorKind) -> u32 {
    match kind {
        ErrorKind::Busy | ErrorKind::Throttled => MOST_REPEATS,
        ErrorKind::Transient | ErrorKind::Unreachable => MOST_RETRIES,
        ErrorKind::Stale
        | ErrorKind::Locked
        | ErrorKind::Missing
        | ErrorKind::Forbidden
        | ErrorKind::Refused
        | ErrorKind::Ambiguous => 0,
    }
}

/// Method and kind: `PUT loadBalancers`.
fn label(sent: &Sent) -> String {
    let short = sent.short();
    let kinds: Vec<&str> =
        short.split_once(' ').map_or(Vec::new(), |(_, path)| path.split('/').step_by(2).collect());
    format!("{} {}", sent.method, kinds.join("/"))
}

/// The items of a list.
fn list_in(body: &mut Value) -> Option<&mut Vec<Value>> {
    body.get_mut("value")?.as_array_mut()
}
