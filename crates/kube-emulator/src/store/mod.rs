//! The store: every object, one revision counter, and the rules of the API.

mod admission;
mod create;
mod read;
mod remove;
mod settle;
mod shelf;
mod typed;
mod update;

use crate::calls::LoggedCall;
use crate::discovery;
use crate::faults::Fault;
use crate::json::{items, text};
use crate::kinds::{KINDS, Kind};
use crate::request::{Body, Method, Request, Response};
use crate::route::{self, Route, Target};
use crate::service::Numbers;
use crate::slices::Filling;
use crate::status::ApiError;
use crate::tables::{Coding, Form};
use crate::time::format_time;
use crate::uid::UidSource;
use ipnet::IpNet;
use serde_json::{Value, json};
pub(crate) use shelf::{Change, Key, Shelf};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;
pub use typed::ObjectRef;

/// Whether ordinary writes are recorded in `managedFields`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// As the real API does.
    Tracked,
    /// Only applied configurations are; cheaper for simulations.
    AppliedOnly,
}

/// How a store is set up.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Where UIDs and random name endings come from.
    pub seed: u64,
    /// Changes remembered for each kind; older ones make watches expire. A change of an
    /// EndpointSlice counts one more for every ten endpoints.
    pub history_limit: usize,
    /// Ranges of cluster IPs; the first one names the cluster's main family.
    pub service_ranges: Vec<IpNet>,
    /// Range of node ports.
    pub node_ports: RangeInclusive<u16>,
    /// Whether field owners are recorded.
    pub ownership: Ownership,
    /// The time of the objects that exist from the start.
    pub started_ms: u64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        let ranges = ["10.0.0.0/16", "fd00:10::/112"];
        Self {
            seed: 0,
            history_limit: 10_000,
            service_ranges: ranges
                .iter()
                .map(|range| range.parse().expect("a constant range parses"))
                .collect(),
            node_ports: 30_000..=32_767,
            ownership: Ownership::Tracked,
            started_ms: 0,
        }
    }
}

/// The emulated API.
#[derive(Debug, Clone)]
pub struct Store {
    ownership: Ownership,
    history_limit: usize,
    revision: u64,
    shelves: BTreeMap<&'static str, Shelf>,
    uids: UidSource,
    numbers: Numbers,
    filling: Filling,
    /// Owner UID to the objects it owns.
    owned: BTreeMap<String, BTreeSet<(&'static str, Key)>>,
    /// UIDs of owners that went and whose objects have to go, too.
    orphaned: BTreeSet<String>,
    /// Namespaces being emptied at which something happened.
    ending: BTreeSet<String>,
    faults: Vec<Fault>,
    calls: VecDeque<LoggedCall>,
}

/// Whether a write is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Run {
    Real,
    Dry,
}

/// Who writes, and when.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) manager: String,
    pub(crate) run: Run,
    pub(crate) now: u64,
}

impl Call {
    pub(crate) fn time(&self) -> String {
        format_time(self.now)
    }

    fn from_request(request: &Request, now: u64) -> Result<Self, ApiError> {
        let agent = request.user_agent.split('/').next().filter(|agent| !agent.is_empty());
        let manager = request.param("fieldManager").or(agent).unwrap_or("unknown").to_string();
        let run = match request.param("dryRun") {
            None => Run::Real,
            Some("All") => Run::Dry,
            Some(other) => {
                let message = format!("dryRun: Unsupported value: {other:?}: use \"All\"");
                return Err(ApiError::bad_request(message));
            }
        };
        Ok(Self { manager, run, now })
    }
}

impl Store {
    /// A store with what every cluster has from the start.
    pub fn new(options: StoreOptions) -> Self {
        let numbers = Numbers::new(&options.service_ranges, &options.node_ports);
        let mut store = Self {
            ownership: options.ownership,
            history_limit: options.history_limit.max(1),
            revision: 0,
            shelves: KINDS.iter().map(|kind| (kind.plural, Shelf::default())).collect(),
            uids: UidSource::new(options.seed),
            numbers,
            filling: Filling::default(),
            owned: BTreeMap::new(),
            orphaned: BTreeSet::new(),
            ending: BTreeSet::new(),
            faults: Vec::new(),
            calls: VecDeque::new(),
        };
        store.populate(options.started_ms);
        store
    }

    fn populate(&mut self, now: u64) {
        for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": name}});
            self.create(namespace, now).expect("namespaces of a new store are in order");
        }
        let service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "kubernetes", "namespace": "default",
                "labels": {"component": "apiserver", "provider": "kubernetes"}},
            "spec": {"ports": [{"name": "https", "port": 443, "targetPort": 6443}]}});
        self.create(service, now).expect("the first Service of a new store is in order");
    }

    pub(crate) fn filling_mut(&mut self) -> &mut Filling {
        &mut self.filling
    }

    pub(crate) fn faults_mut(&mut self) -> &mut Vec<Fault> {
        &mut self.faults
    }

    pub(crate) fn log(&self) -> &VecDeque<LoggedCall> {
        &self.calls
    }

    pub(crate) fn log_mut(&mut self) -> &mut VecDeque<LoggedCall> {
        &mut self.calls
    }

    /// The revision of the last change.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Answers one request. `now` is in milliseconds since 1970.
    pub fn handle(&mut self, request: &Request, now: u64) -> Response {
        let refused = |error| Response::refusal(&error);
        if request.path == "/_/calls" {
            return self.calls_page(request).unwrap_or_else(refused);
        }
        let asked = Form::from_accept(&request.accept);
        let coding = asked.as_ref().map_or(Coding::Json, |(_, coding)| *coding);
        let answer = asked.and_then(|(form, _)| self.answer(request, form, now));
        let response = answer.unwrap_or_else(refused);
        self.note(request, response.code, now);
        response.coded(coding)
    }

    fn answer(&mut self, request: &Request, form: Form, now: u64) -> Result<Response, ApiError> {
        let target = match route::parse(&request.path)? {
            Route::Objects(target) => target,
            other => return discovery::answer(&other, request),
        };
        self.strike(request, &target)?;
        match (request.method, &target.name) {
            (Method::Get, None) if request.flag("watch") => self.watch(&target, request, form),
            (Method::Get, None) => self.read_many(&target, request, form, now),
            (Method::Get, Some(_)) => self.read_one(&target, form, now),
            (Method::Post, None) => {
                let call = Call::from_request(request, now)?;
                let body = body_of(request)?;
                let object = self.create_at(&target, body, &call)?;
                Ok(Self::shown(201, &target, &object, form, now))
            }
            (Method::Put, Some(_)) => {
                let call = Call::from_request(request, now)?;
                let body = body_of(request)?;
                let (code, object) = self.replace_at(&target, body, &call)?;
                Ok(Self::shown(code, &target, &object, form, now))
            }
            (Method::Patch, Some(_)) => {
                let call = Call::from_request(request, now)?;
                let (code, object) = self.patch_request(&target, request, &call)?;
                Ok(Self::shown(code, &target, &object, form, now))
            }
            (Method::Delete, Some(_)) => self.delete_request(&target, request, now),
            (Method::Delete, None) => self.delete_many(&target, request, now),
            _ => Err(ApiError::method_not_allowed(target.kind)),
        }
    }

    fn watch(&self, target: &Target, request: &Request, form: Form) -> Result<Response, ApiError> {
        let start = self.watch_open(target, request, form)?;
        Ok(Response::new(200, Body::Watch(Box::new(start))))
    }

    fn shown(code: u16, target: &Target, object: &Arc<Value>, form: Form, now: u64) -> Response {
        let object = crate::events::outward(target.kind, object);
        match form {
            Form::Plain => Response::new(code, Body::Object(object)),
            _ => {
                let head = crate::tables::TableHead::Shown;
                let shown = crate::tables::show(form, target.kind, &object, now, head);
                Response::new(code, Body::Document(shown))
            }
        }
    }

    /// Stores an object (or removes it) at the next revision and keeps every index in step.
    pub(crate) fn commit(
        &mut self,
        kind: &Kind,
        key: Key,
        next: Option<Value>,
        last: Option<Value>,
    ) -> Arc<Value> {
        self.revision += 1;
        let revision = self.revision;
        let stamp = |mut object: Value| {
            object["metadata"]["resourceVersion"] = json!(revision.to_string());
            Arc::new(object)
        };
        let after = next.map(stamp);
        let before = self.shelf(kind).objects.get(&key).cloned();
        let shown = after
            .clone()
            .or_else(|| last.map(stamp))
            .or_else(|| before.as_ref().map(|object| stamp(object.as_ref().clone())))
            .expect("a change has a state before or after it");
        self.index(kind, &key, before.as_deref(), after.as_deref());
        let change = Change { revision, key, before, after, shown: Arc::clone(&shown) };
        let limit = self.history_limit;
        let shelf = self.shelves.get_mut(kind.plural).expect("every kind has a shelf");
        shelf.record(change, limit);
        shown
    }

    fn index(&mut self, kind: &Kind, key: &Key, before: Option<&Value>, after: Option<&Value>) {
        if kind.plural == "services" {
            if let Some(before) = before {
                self.numbers.release(before);
            }
            if let Some(after) = after {
                self.numbers.take(after);
            }
        }
        self.filling.note(kind, key, before, after);
        let plural = crate::kinds::by_plural(kind.plural).map_or(kind.plural, |row| row.plural);
        let place = (plural, key.clone());
        for uid in before.map(owner_uids).unwrap_or_default() {
            if let Some(owned) = self.owned.get_mut(&uid) {
                owned.remove(&place);
                if owned.is_empty() {
                    self.owned.remove(&uid);
                }
            }
        }
        for uid in after.map(owner_uids).unwrap_or_default() {
            self.owned.entry(uid).or_default().insert(place.clone());
        }
        if let (Some(before), None) = (before, after) {
            let uid = text(before, "/metadata/uid");
            if self.owned.contains_key(uid) {
                self.orphaned.insert(uid.to_string());
            }
            if self.is_ending(&key.0) {
                self.ending.insert(key.0.clone());
            }
        }
    }

    fn is_ending(&self, namespace: &str) -> bool {
        let key = (String::new(), namespace.to_string());
        let shelf = self.shelves.get("namespaces");
        let found = shelf.and_then(|shelf| shelf.objects.get(&key));
        found.is_some_and(|object| is_deleted(object))
    }
}

fn owner_uids(object: &Value) -> Vec<String> {
    let owners = items(object, "/metadata/ownerReferences").iter();
    owners.map(|owner| text(owner, "/uid").to_string()).collect()
}

/// Whether an object waits for its finalizers.
pub(crate) fn is_deleted(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

pub(crate) fn key_of(object: &Value) -> Key {
    let word = |pointer| text(object, pointer).to_string();
    (word("/metadata/namespace"), word("/metadata/name"))
}

pub(crate) fn revision_of(object: &Value) -> u64 {
    text(object, "/metadata/resourceVersion").parse().unwrap_or_default()
}

/// The body of a request, JSON or YAML.
pub(crate) fn body_of(request: &Request) -> Result<Value, ApiError> {
    let media = request.content_type.split(';').next().unwrap_or("").trim();
    let yaml = || {
        let text = std::str::from_utf8(&request.body).map_err(|error| error.to_string())?;
        serde_saphyr::from_str::<Value>(text).map_err(|error| error.to_string())
    };
    let read = match media {
        "" | "*/*" | "application/json" => {
            serde_json::from_slice(&request.body).map_err(|error| error.to_string())
        }
        _ if media.ends_with("+json") => {
            serde_json::from_slice(&request.body).map_err(|error| error.to_string())
        }
        "application/yaml" | "application/apply-patch+yaml" => {
            serde_json::from_slice(&request.body).or_else(|_| yaml())
        }
        crate::protobuf::MEDIA => crate::protobuf::decode(&request.body),
        _ => Err(String::new()),
    };
    read.map_err(|why| match why.is_empty() {
        true => {
            let message = format!(
                "the body of the request was in an unknown format - accepted media types \
                 include: application/json, application/yaml, {} (it was {media:?})",
                crate::protobuf::MEDIA
            );
            ApiError::new(415, "UnsupportedMediaType", message)
        }
        false => ApiError::bad_request(format!("the object provided is unrecognized: {why}")),
    })
}

#[cfg(test)]
mod tests;
