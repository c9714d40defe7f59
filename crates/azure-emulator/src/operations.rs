//! Long-running operations: how they start, how they are polled, how they end.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::azure::Azure;
use crate::faults::FaultKind;
use crate::json::{fill, list_mut, properties};
use crate::message::{Answer, Checked, Refusal, refusal};
use crate::options::Overlap;
use crate::path::{Route, kind};
use crate::store::Entry;

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Write,
    Delete,
    Action,
}

#[derive(Debug, Clone, PartialEq)]
enum End {
    Succeeds,
    LosesPool,
    Fails { code: String },
    Cancels { code: String },
}

#[derive(Debug, Clone, PartialEq)]
enum State {
    Running,
    Ended { status: &'static str, error: Option<(String, String)> },
}

#[derive(Debug, Clone)]
struct Operation {
    key: String,
    change: Change,
    end: End,
    due_ms: u64,
    /// What stood there before a write; `None` if nothing did.
    previous: Option<Box<Entry>>,
    state: State,
}

/// All operations, running and ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Operations {
    by_id: BTreeMap<String, Operation>,
    due: BTreeSet<(u64, u64, String)>,
    count: u64,
}

const SUPERSEDED: &str = "CanceledAndSupersededDueToAnotherOperation";

/// How long the outcome of an operation can be asked for.
const KEPT_MS: u64 = 60 * 60 * 1000;

impl Azure {
    /// Whether `key` may be written now.
    pub(crate) fn check_overlap(&self, key: &str) -> Checked {
        let Some(entry) = self.store.get(key) else { return Ok(()) };
        let Some(running) = &entry.operation else { return Ok(()) };
        let deleting = self.operations.by_id.get(running).map(|op| op.change);
        let policy = match entry.kind.as_str() {
            _ if deleting == Some(Change::Delete) => Overlap::Conflict,
            kind::LB => self.options.load_balancer_overlap,
            _ => self.options.overlap,
        };
        let message = format!(
            "Another operation on this or dependent resource {} is in progress. \
             To retrieve status of the operation use uri: {}.",
            entry.id,
            self.operation_url(key, "operations", running)
        );
        match policy {
            Overlap::Accept | Overlap::Supersede => Ok(()),
            Overlap::Conflict => Err(refusal(409, "AnotherOperationInProgress", message)),
            Overlap::Throttle => {
                let refused = refusal(429, "RetryableErrorDueToAnotherOperation", message);
                Err(refused.retry_after(self.options.retry_after_s.max(1)))
            }
        }
    }

    /// Ends the operation that a new write on `key` supersedes, if that is the policy.
    pub(crate) fn supersede(&mut self, key: &str) {
        let Some(entry) = self.store.get_mut(key) else { return };
        let policy = match entry.kind.as_str() {
            kind::LB => self.options.load_balancer_overlap,
            _ => self.options.overlap,
        };
        if policy != Overlap::Supersede {
            return;
        }
        let Some(id) = entry.operation.take() else { return };
        if let Some(operation) = self.operations.by_id.get_mut(&id) {
            let message = format!(
                "Operation was canceled. Operation {id} was canceled and superseded by another \
                 operation on {}.",
                entry.id
            );
            let error = Some((SUPERSEDED.to_owned(), message));
            operation.state = State::Ended { status: "Canceled", error };
        }
    }

    /// Starts the operation of a change already made (or, for a delete, only announced) and
    /// returns its headers; none if it has ended at once.
    pub(crate) fn start(
        &mut self,
        key: &str,
        change: Change,
        previous: Option<Entry>,
    ) -> Vec<(String, String)> {
        let end = match &self.fault {
            Some(FaultKind::OperationFails { code }) => End::Fails { code: code.clone() },
            Some(FaultKind::OperationCanceled { code }) => End::Cancels { code: code.clone() },
            Some(FaultKind::SucceedsButLosesPool) => End::LosesPool,
            Some(FaultKind::GatewayAcceptedThenFails { code }) => End::Fails { code: code.clone() },
            _ => End::Succeeds,
        };
        let due_ms = self.now_ms + self.options.lro_ms;
        let previous = previous.map(Box::new);
        let key = key.to_owned();
        let operation = Operation { key, change, end, due_ms, previous, state: State::Running };
        let good = matches!(operation.end, End::Succeeds | End::LosesPool);
        if self.options.lro_ms == 0 && good && change != Change::Action {
            self.conclude(&operation, None);
            return Vec::new();
        }
        let id = self.guids.guid();
        let headers = self.headers(&operation, &id);
        let state = if change == Change::Delete { "Deleting" } else { "Updating" };
        if change != Change::Action
            && let Some(entry) = self.store.get_mut(&operation.key)
        {
            entry.operation = Some(id.clone());
            properties(&mut entry.value).insert("provisioningState".to_owned(), json!(state));
        }
        self.operations.count += 1;
        self.operations.due.insert((due_ms, self.operations.count, id.clone()));
        self.operations.by_id.insert(id, operation);
        headers
    }

    /// Whether the operation that makes a resource still runs.
    pub(crate) fn is_being_made(&self, key: &str) -> bool {
        let id = self.store.get(key).and_then(|entry| entry.operation.as_ref());
        id.and_then(|id| self.operations.by_id.get(id)).is_some_and(|operation| {
            operation.previous.is_none()
                && operation.change == Change::Write
                && matches!(operation.state, State::Running)
        })
    }

    fn headers(&self, operation: &Operation, id: &str) -> Vec<(String, String)> {
        let key = &operation.key;
        let mut headers = vec![
            ("Azure-AsyncOperation".to_owned(), self.operation_url(key, "operations", id)),
            ("Azure-AsyncNotification".to_owned(), "Enabled".to_owned()),
        ];
        if operation.change != Change::Write {
            let url = self.operation_url(key, "operationResults", id);
            headers.push(("Location".to_owned(), url));
        }
        headers.extend(self.retry_after());
        headers
    }

    fn retry_after(&self) -> Option<(String, String)> {
        let seconds = self.options.retry_after_s;
        (seconds > 0).then(|| ("Retry-After".to_owned(), seconds.to_string()))
    }

    fn operation_url(&self, key: &str, what: &str, id: &str) -> String {
        let subscription = key.split('/').nth(2).unwrap_or("");
        let (namespace, version) = if key.contains("/providers/microsoft.compute/") {
            ("Microsoft.Compute", "2025-04-01")
        } else {
            ("Microsoft.Network", "2025-05-01")
        };
        format!(
            "{}/subscriptions/{subscription}/providers/{namespace}/locations/{}/{what}/{id}\
             ?api-version={version}",
            self.options.base_url, self.options.location
        )
    }

    /// Ends what is due.
    pub(crate) fn settle(&mut self) {
        while let Some(first) = self.operations.due.first().cloned() {
            let (due_ms, _, id) = &first;
            if *due_ms > self.now_ms {
                break;
            }
            self.operations.due.remove(&first);
            self.revision += 1;
            let Some(operation) = self.operations.by_id.get(id).cloned() else { continue };
            if operation.state == State::Running {
                let state = self.conclude(&operation, Some(id));
                if let Some(stored) = self.operations.by_id.get_mut(id) {
                    stored.state = state;
                    stored.previous = None;
                }
            }
        }
        let oldest = self.now_ms.saturating_sub(KEPT_MS);
        if self.operations.by_id.len() > 10_000 {
            self.operations.by_id.retain(|_, op| op.state == State::Running || op.due_ms >= oldest);
        }
    }

    /// Makes the end of an operation true in the store; returns its final state.
    fn conclude(&mut self, operation: &Operation, id: Option<&str>) -> State {
        let key = &operation.key;
        let current = self.store.get(key).is_some_and(|entry| entry.operation.as_deref() == id);
        let error = match &operation.end {
            End::Succeeds | End::LosesPool => None,
            End::Fails { code } => Some(("Failed", code)),
            End::Cancels { code } => Some(("Canceled", code)),
        };
        if current && operation.change != Change::Action {
            match (operation.change, &operation.end) {
                (Change::Delete, End::Succeeds | End::LosesPool) => self.remove_now(key),
                (_, End::Cancels { .. }) => self.put_back(operation),
                (_, End::Fails { .. }) => self.set_state(key, "Failed"),
                (_, end) => {
                    if *end == End::LosesPool {
                        self.empty_pools(key);
                    }
                    self.set_state(key, "Succeeded");
                }
            }
            self.settle_addresses(key);
        }
        match error {
            None => State::Ended { status: "Succeeded", error: None },
            Some((status, code)) => {
                let message = format!("The operation on {key} ended as {status}.");
                State::Ended { status, error: Some((code.clone(), message)) }
            }
        }
    }

    fn set_state(&mut self, key: &str, state: &str) {
        let late =
            (self.options.late_etag.is_on() && self.options.lro_ms > 0).then(|| self.guids.etag());
        if let Some(entry) = self.store.get_mut(key) {
            entry.operation = None;
            properties(&mut entry.value).insert("provisioningState".to_owned(), json!(state));
            if let Some(etag) = late {
                entry.value["etag"] = json!(etag);
            }
        }
    }

    fn put_back(&mut self, operation: &Operation) {
        let key = &operation.key;
        match (&operation.previous, operation.change) {
            (Some(previous), Change::Write) => {
                let mut entry = (**previous).clone();
                self.keep_address(key, &mut entry);
                entry.value["etag"] = json!(self.guids.etag());
                let touched = self.store.insert(key.clone(), entry);
                self.touch(&touched);
                self.set_state(key, "Succeeded");
            }
            (_, Change::Delete) => self.set_state(key, "Succeeded"),
            _ => self.set_state(key, "Failed"),
        }
    }

    fn empty_pools(&mut self, key: &str) {
        let Some(mut entry) = self.store.get(key).cloned() else { return };
        for pool in list_mut(&mut entry.value, "backendAddressPools").into_iter().flatten() {
            let inside = properties(pool);
            if inside.contains_key("loadBalancerBackendAddresses") {
                inside.insert("loadBalancerBackendAddresses".to_owned(), json!([]));
            }
        }
        entry.value["etag"] = json!(self.guids.etag());
        let touched = self.store.insert(key.to_owned(), entry);
        self.touch(&touched);
    }

    /// Answers a poll of an operation (or, with `results`, of its `Location`).
    pub(crate) fn poll(&self, route: &Route, results: bool) -> Checked<Answer> {
        let unknown = || refusal(404, "NotFound", format!("There is no {}.", route.path));
        let id = route.names.get(1).ok_or_else(unknown)?;
        let operation = self.operations.by_id.get(id).ok_or_else(unknown)?;
        let (status, error) = match &operation.state {
            State::Running => {
                let mut headers: Vec<_> = self.retry_after().into_iter().collect();
                if !results {
                    let body = json!({"status": "InProgress"});
                    return Ok(Answer::new(200, Some(body)).with_headers(headers));
                }
                let url = self.operation_url(&operation.key, "operationResults", id);
                headers.push(("Location".to_owned(), url));
                return Ok(Answer::new(202, None).with_headers(headers));
            }
            State::Ended { status, error } => (*status, error),
        };
        let mut body = json!({"status": status});
        if let Some((code, message)) = error {
            let details = json!({"code": code, "message": message, "details": []});
            fill(crate::json::object(&mut body), "error", details);
        }
        Ok(match (results, error) {
            (true, None) => match operation.change {
                Change::Delete => Answer::new(204, None),
                _ => Answer::new(200, Some(Value::Object(serde_json::Map::new()))),
            },
            _ => Answer::new(200, Some(body)),
        })
    }

    /// The state of a resource that another one wants to refer to.
    pub(crate) fn check_provisioned(&self, entry: &Entry, user: &str) -> Checked {
        let state = crate::json::text(&entry.value, &["properties", "provisioningState"]);
        if !self.options.referenced_state.is_on() || matches!(state, "Succeeded" | "") {
            return Ok(());
        }
        Err(not_provisioned(&entry.id, user, state, self.options.retry_after_s))
    }
}

fn not_provisioned(id: &str, user: &str, state: &str, retry_after_s: u64) -> Refusal {
    let message = format!(
        "Cannot proceed with operation because resource {id} used by resource {user} is not in \
         Succeeded state. Resource is in {state} state and the last operation that updated/is \
         updating the resource is PutOperation."
    );
    refusal(429, "ReferencedResourceNotProvisioned", message).retry_after(retry_after_s.max(1))
}
