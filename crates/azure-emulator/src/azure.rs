//! The state machine: one request and the time in, one answer out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use data_path::Probed;
use serde_json::Value;

use crate::calls::Call;
use crate::faults::{Fault, FaultKind, Faults};
use crate::gateway::Gateway;
use crate::ids::Guids;
use crate::message::{Answer, Checked, Fate, Request, refusal};
use crate::operations::Operations;
use crate::options::Options;
use crate::path::Route;
use crate::store::Store;
use crate::throttle::{Provider, Throttle, unlimited};
use crate::{quirks, sign_in};

/// An emulated Azure. It has no clock and no threads: the caller says what time it is.
#[derive(Debug, Clone)]
pub struct Azure {
    pub(crate) options: Options,
    pub(crate) store: Store,
    /// Lower-case `/subscriptions/{s}/resourcegroups/{rg}` -> the group.
    pub(crate) groups: BTreeMap<String, Value>,
    /// Lower-case id of a Service Gateway -> its tables.
    pub(crate) gateways: BTreeMap<String, Gateway>,
    pub(crate) operations: Operations,
    pub(crate) guids: Guids,
    pub(crate) public_addresses: u64,
    pub(crate) public_prefixes: u64,
    /// Dynamic public IPs whose address waits for the end of an operation, by the resource that the
    /// operation writes.
    pub(crate) unsettled: BTreeMap<String, BTreeSet<String>>,
    pub(crate) now_ms: u64,
    /// The fault that befalls the call being handled, for the places deep inside that act on it.
    pub(crate) fault: Option<FaultKind>,
    faults: Faults,
    throttle: Throttle,
    calls: Vec<Call>,
    uneven: quirks::Uneven,
    /// Grows whenever a resource may have changed.
    pub(crate) revision: u64,
    /// What the probes of a data path have found.
    pub(crate) probed: Vec<Probed>,
}

impl Azure {
    /// An Azure with nothing in it.
    pub fn new(options: Options) -> Self {
        Azure {
            guids: Guids::new(options.seed),
            options,
            store: Store::default(),
            groups: BTreeMap::new(),
            gateways: BTreeMap::new(),
            operations: Operations::default(),
            public_addresses: 0,
            public_prefixes: 0,
            unsettled: BTreeMap::new(),
            now_ms: 0,
            fault: None,
            faults: Faults::default(),
            throttle: Throttle::default(),
            calls: Vec::new(),
            uneven: quirks::Uneven::default(),
            revision: 0,
            probed: Vec::new(),
        }
    }

    /// The settings.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The settings, to be changed while running.
    pub fn options_mut(&mut self) -> &mut Options {
        &mut self.options
    }

    /// A number that grows whenever a resource may have changed.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Every call so far, oldest first. Polls count; sign-in and admin paths do not.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Forgets the calls.
    pub fn clear_calls(&mut self) {
        self.calls.clear();
    }

    /// (reads, writes) so far.
    pub fn call_counts(&self) -> (usize, usize) {
        let writes = self.calls.iter().filter(|call| call.is_write()).count();
        (self.calls.len() - writes, writes)
    }

    /// Adds a rule; the first rule that matches a call befalls it.
    pub fn add_fault(&mut self, fault: Fault) {
        self.faults.rules.push(fault);
    }

    /// Removes all rules.
    pub fn clear_faults(&mut self) {
        self.faults.rules.clear();
        self.faults.cleared += 1;
    }

    /// How many times the rules were cleared.
    pub(crate) fn faults_cleared(&self) -> u64 {
        self.faults.cleared
    }

    /// Every resource as a GET would show it, in the order of their lower-case ids.
    pub fn resources(&self) -> Vec<Value> {
        self.shown().map(|shown| (*shown).clone()).collect()
    }

    /// The same, without copies.
    pub fn shown(&self) -> impl Iterator<Item = Arc<Value>> {
        self.store.keys().filter_map(|key| self.view(key))
    }

    /// The names of all resource groups, lower case.
    pub fn group_names(&self) -> BTreeSet<String> {
        let name = |key: &String| key.rsplit('/').next().map(str::to_owned);
        self.groups.keys().filter_map(name).collect()
    }

    /// Every resource of a kind, such as `Microsoft.Network/loadBalancers`.
    pub fn resources_of(&self, kind: &str) -> Vec<Arc<Value>> {
        let kind = kind.to_lowercase();
        self.store.keys_of(&kind, "").filter_map(|key| self.view(key)).collect()
    }

    /// One resource (or an element of one) as a GET would show it, by an id in any letters.
    pub fn resource(&self, id: &str) -> Option<Value> {
        self.view_any(id).map(Arc::unwrap_or_clone)
    }

    /// The same, without a copy.
    pub fn shown_by_id(&self, id: &str) -> Option<Arc<Value>> {
        self.view_any(id)
    }

    /// Lets time pass: operations that are due by then have ended. `now_ms` must never go back.
    pub fn pass(&mut self, now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
        self.settle();
    }

    /// Carries out one request. `now_ms` must never go back.
    pub fn handle(&mut self, request: Request, now_ms: u64) -> Answer {
        self.handle_shared(request, now_ms).whole()
    }

    /// The same, where the caller does without a copy of what the answer shows.
    pub fn handle_shared(&mut self, request: Request, now_ms: u64) -> Answer {
        self.pass(now_ms);
        if !matches!(request.method.as_str(), "GET" | "HEAD") {
            self.revision += 1;
        }
        let bare = request.path.split('?').next().unwrap_or("").trim_end_matches('/').to_owned();
        if bare.starts_with("/_/") {
            return self.admin(&request, &bare);
        }
        let route = Route::parse(&request.path);
        let collection = route.as_ref().is_some_and(Route::is_collection);
        let fault = self.faults.take(&request, &bare, collection);
        let (early, fate) = self.before(fault.as_ref());
        let mut answer = match (early, &route) {
            (Some(answer), _) => answer,
            (None, Some(route)) => {
                self.fault = fault;
                let answer = self.admitted(route, &request).unwrap_or_else(Answer::from);
                self.fault = None;
                answer
            }
            (None, None) => match sign_in::answer(&self.options, &request, &bare) {
                Some(answer) => answer,
                None => Answer::from(refusal(404, "NotFound", bare.clone())),
            },
        };
        answer.fate = fate;
        quirks::apply(&self.options, &mut self.uneven, &mut answer);
        self.stamp(&mut answer, &request, route.is_some());
        if route.is_some() {
            self.log(request, bare, &answer);
        }
        answer
    }

    /// What a fault does before the request is looked at, and to the answer afterwards.
    fn before(&self, fault: Option<&FaultKind>) -> (Option<Answer>, Fate) {
        let usual = match self.options.latency_ms {
            0 => Fate::Deliver,
            ms => Fate::Delay(ms),
        };
        match fault {
            Some(FaultKind::Status { status, code, message, retry_after_s, headers }) => {
                let mut refused = refusal(*status, code, message.clone());
                refused.retry_after_s = *retry_after_s;
                (Some(Answer::from(refused).with_headers(headers.clone())), usual)
            }
            Some(FaultKind::ConnectionResetBefore) => {
                (Some(Answer::new(0, None)), Fate::ResetBefore)
            }
            Some(FaultKind::Hang) => (Some(Answer::new(0, None)), Fate::Hang),
            Some(FaultKind::AppliedThenReset) => (None, Fate::ResetAfter),
            Some(FaultKind::TruncatedBody) => (None, Fate::Truncated),
            Some(FaultKind::Latency { ms }) => (None, Fate::Delay(ms + self.options.latency_ms)),
            _ => (None, usual),
        }
    }

    fn admitted(&mut self, route: &Route, request: &Request) -> Checked<Answer> {
        crate::contract::check_version(&self.options, route)?;
        if let (Some(limit), Some(body)) = (self.options.max_request_bytes, &request.body)
            && body.to_string().len() > limit
        {
            let message = format!("The request is larger than {limit} bytes.");
            return Err(refusal(413, "RequestEntityTooLarge", message));
        }
        self.check_permission(route, &request.method)?;
        let mut left = unlimited(&request.method);
        if self.options.throttle.is_on() {
            let method = &request.method;
            left = self.throttle.take(&route.subscription, method, provider(route), self.now_ms)?;
        }
        let mut answer = self.dispatch(route, request).unwrap_or_else(Answer::from);
        answer.headers.extend(left);
        Ok(answer)
    }

    fn dispatch(&mut self, route: &Route, request: &Request) -> Checked<Answer> {
        if route.namespace.is_empty() || (route.types.is_empty() && route.group.is_none()) {
            return self.subscription_level(route, request);
        }
        if let [locations, what, ..] = route.types.as_slice()
            && locations.eq_ignore_ascii_case("locations")
        {
            let results = what.eq_ignore_ascii_case("operationResults");
            return self.poll(route, results);
        }
        let method = request.method.as_str();
        if let ("GET", Some(answer)) = (method, self.own_permissions(route)) {
            return Ok(answer);
        }
        if let ("GET", Some(answer)) = (method, self.metrics(route)) {
            return answer;
        }
        match (method, route.is_collection()) {
            ("GET", true) => self.list(route),
            ("GET" | "HEAD", false) => self.get(route),
            ("PUT", false) => self.put(route, request),
            ("PATCH", false) => self.patch(route, request),
            ("DELETE", false) => self.delete(route, request),
            ("POST", true) => self.act(route, request),
            _ => Err(not_allowed(method, route)),
        }
    }

    /// Headers every answer has.
    fn stamp(&mut self, answer: &mut Answer, request: &Request, arm: bool) {
        let mut add = |name: &str, value: String| answer.headers.push((name.to_owned(), value));
        let id = self.guids.guid();
        add("x-ms-request-id", id.clone());
        if arm {
            let correlation = request.correlation_id.clone().unwrap_or(id);
            add("x-ms-correlation-request-id", correlation);
        }
    }

    fn log(&mut self, request: Request, path: String, answer: &Answer) {
        let code = answer.code().map(str::to_owned);
        let body = if self.options.log_bodies.is_on() { request.body } else { None };
        let Request { method, correlation_id: correlation, .. } = request;
        let (t_ms, status) = (self.now_ms, answer.status);
        self.calls.push(Call { t_ms, method, path, status, code, body, correlation });
    }
}

/// Who counts a call beside Resource Manager.
fn provider(route: &Route) -> Provider {
    if route.kind().contains("/locations/operation") {
        return Provider::Other;
    }
    match route.namespace.to_lowercase().as_str() {
        "microsoft.network" => Provider::Network,
        "microsoft.compute" => Provider::Compute,
        _ => Provider::Other,
    }
}

pub(crate) fn not_allowed(method: &str, route: &Route) -> crate::message::Refusal {
    let message = format!("The requested resource {} does not support {method}.", route.path);
    refusal(405, "MethodNotAllowed", message)
}

/// Why a request whose body is not JSON is refused.
pub(crate) fn not_json() -> crate::message::Refusal {
    let message = "The request content was invalid and could not be deserialized.";
    refusal(400, "InvalidRequestContent", message)
}
