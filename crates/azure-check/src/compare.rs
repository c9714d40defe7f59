//! Sends recorded requests to another Azure and lists where its answers differ.
//!
//! What each Azure makes up by itself (ETags, addresses of operations, IP addresses) cannot be the
//! same. It is learnt where it first appears, and later requests carry the other Azure's in place
//! of the recorded one. Polls are sent until the other Azure's operation has ended, and its end is
//! compared with the recorded one.

use crate::exchange::{ASYNC, Came, Exchange, Part, Sent};
use crate::lab::Client;
use crate::recording::Recording;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Where answers differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The line of the recording.
    pub line: usize,
    /// Id of the assumption.
    pub of: String,
    /// Method and resource.
    pub request: String,
    /// What differs: what the recording has, and what the other Azure has.
    pub what: String,
    /// How often, for requests of this method and kind.
    pub times: usize,
}

/// Members whose values each Azure makes up.
const MADE_UP: [&str; 9] = [
    "etag",
    "resourceGuid",
    "ipAddress",
    "privateIPAddress",
    "alias",
    "fqdn",
    "macAddress",
    "uniqueId",
    "vmId",
];

/// Headers of which it counts whether they are there.
const HEADERS: [&str; 4] = [ASYNC, "location", "retry-after", "x-ms-error-code"];

/// How often an operation of the other Azure is asked for.
const MOST_POLLS: u32 = 100_000;

/// Sends a recording's requests; `client` speaks to an Azure that has the recording's resource
/// group and nothing else.
pub fn compare(recording: &Recording, client: &mut dyn Client) -> Vec<Difference> {
    let begun_ms = client.now_ms();
    let mut replay = Replay { client, learnt: BTreeMap::new(), found: BTreeMap::new() };
    for (at, exchange) in recording.exchanges.iter().enumerate() {
        let due_ms = begun_ms + exchange.t_ms;
        let early_ms = due_ms.saturating_sub(replay.client.now_ms());
        if early_ms > 0 {
            replay.client.wait(early_ms);
        }
        // The first line is the head.
        replay.play(at + 2, exchange);
    }
    let mut found: Vec<Difference> = replay.found.into_values().collect();
    found.sort_by_key(|difference| difference.line);
    found
}

struct Replay<'a> {
    client: &'a mut dyn Client,
    /// What was recorded -> what the other Azure has in its place.
    learnt: BTreeMap<String, String>,
    /// By method and kind, and what differs.
    found: BTreeMap<(String, String), Difference>,
}

impl Replay<'_> {
    fn play(&mut self, line: usize, exchange: &Exchange) {
        let polls_operation = is_operation(&exchange.request.path);
        if exchange.part == Part::Poll && (!has_ended(&exchange.answer)) {
            return;
        }
        if polls_operation && !self.learnt.contains_key(&exchange.request.path) {
            // The other Azure named no operation, which was said of the write.
            return;
        }
        let request = self.translated(&exchange.request);
        let mut came = self.send(line, &request);
        let mut polls = 0;
        while (exchange.part == Part::Poll || polls_operation)
            && !has_ended(&came)
            && polls < MOST_POLLS
        {
            polls += 1;
            self.client.wait(1_000);
            came = self.send(line, &request);
        }
        if exchange.answer.fault.is_some() {
            return;
        }
        self.learn(&exchange.answer, &came);
        let mut whats = BTreeSet::new();
        differences(&exchange.answer, &came, polls_operation, &mut whats);
        for what in whats {
            self.note(line, exchange, what);
        }
    }

    fn send(&mut self, line: usize, sent: &Sent) -> Came {
        let request = sent.request(format!("00000000-0000-4000-8000-{line:012x}"));
        Came::of(&self.client.send(&request))
    }

    fn note(&mut self, line: usize, exchange: &Exchange, what: String) {
        let short = exchange.request.short();
        let kind: Vec<&str> = short.split('/').step_by(2).collect();
        let new = Difference {
            line,
            of: exchange.of.clone(),
            request: short.clone(),
            what: what.clone(),
            times: 0,
        };
        self.found.entry((kind.join("/"), what)).or_insert(new).times += 1;
    }

    /// The request with what the other Azure has in the place of what was recorded.
    fn translated(&self, sent: &Sent) -> Sent {
        let own = |text: &String| self.learnt.get(text).unwrap_or(text).clone();
        let mut body = sent.body.clone();
        if let Some(body) = &mut body {
            self.translate(body);
        }
        Sent {
            method: sent.method.clone(),
            path: own(&sent.path),
            if_match: sent.if_match.as_ref().map(own),
            if_none_match: sent.if_none_match.clone(),
            body,
        }
    }

    fn translate(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(own) = self.learnt.get(text.as_str()) {
                    text.clone_from(own);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.translate(item)),
            Value::Object(members) => members.values_mut().for_each(|item| self.translate(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn learn(&mut self, recorded: &Came, came: &Came) {
        for name in [ASYNC, "location"] {
            if let (Some(theirs), Some(own)) = (recorded.headers.get(name), came.headers.get(name))
            {
                self.learnt.insert(theirs.clone(), own.clone());
            }
        }
        if let (Some(theirs), Some(own)) = (&recorded.body, &came.body) {
            self.learn_members(theirs, own);
        }
    }

    fn learn_members(&mut self, recorded: &Value, came: &Value) {
        match (recorded, came) {
            (Value::Object(theirs), Value::Object(own)) => {
                for (name, theirs) in theirs {
                    let Some(own) = own.get(name) else { continue };
                    match (theirs, own) {
                        (Value::String(theirs), Value::String(own))
                            if MADE_UP.contains(&name.as_str()) =>
                        {
                            self.learnt.insert(theirs.clone(), own.clone());
                        }
                        _ => self.learn_members(theirs, own),
                    }
                }
            }
            (Value::Array(theirs), Value::Array(_)) => {
                for (at, item) in theirs.iter().enumerate() {
                    if let Some(own) = partner(item, at, came) {
                        self.learn_members(item, own);
                    }
                }
            }
            _ => {}
        }
    }
}

fn is_operation(path: &str) -> bool {
    let path = path.to_lowercase();
    path.contains("/operations/") || path.contains("/operationresults/")
}

/// Whether an answer to a poll says that there is nothing more to wait for.
fn has_ended(came: &Came) -> bool {
    let passing = |state: &str| {
        ["inprogress", "updating", "deleting", "running", "creating", "accepted"]
            .contains(&state.to_lowercase().as_str())
    };
    let body = came.body.as_ref();
    let status = body.and_then(|body| body["status"].as_str()).or(came.state());
    came.fault.is_none() && came.status != 202 && !status.is_some_and(passing)
}

/// The element of a list that stands for another: of the same name, or else at the same place.
fn partner<'a>(item: &Value, at: usize, list: &'a Value) -> Option<&'a Value> {
    let list = list.as_array()?;
    let name = |item: &Value| item.get("name").and_then(Value::as_str).map(str::to_lowercase);
    match name(item) {
        Some(own) => list.iter().find(|other| name(other).as_deref() == Some(own.as_str())),
        None => list.get(at),
    }
}

fn differences(theirs: &Came, own: &Came, operation: bool, found: &mut BTreeSet<String>) {
    if theirs.status != own.status || theirs.code() != own.code() {
        found.insert(format!("answer: {}, here {}", theirs.short(), own.short()));
        return;
    }
    let counts = |name: &&String| {
        // A limit of Compute's has a name of its own, with its provider before a slash.
        let limit = name.starts_with("x-ms-ratelimit-remaining-") || name.contains('/');
        limit || HEADERS.contains(&name.as_str())
    };
    for name in theirs.headers.keys().filter(counts) {
        if !own.headers.contains_key(name) {
            found.insert(format!("header {name}: not here"));
        }
    }
    for name in own.headers.keys().filter(counts) {
        if !theirs.headers.contains_key(name) {
            found.insert(format!("header {name}: only here"));
        }
    }
    if theirs.detail() != own.detail() {
        let text = |detail: Option<&str>| detail.unwrap_or("none").to_owned();
        found.insert(format!("detail: {}, here {}", text(theirs.detail()), text(own.detail())));
    }
    let (Some(theirs), Some(body)) = (&theirs.body, &own.body) else {
        if theirs.body.is_some() != own.body.is_some() {
            let place = if own.body.is_some() { "only here" } else { "not here" };
            found.insert(format!("body: {place}"));
        }
        return;
    };
    if operation {
        let status = |body: &Value| body["status"].as_str().map(str::to_owned);
        if status(theirs) != status(body) {
            found.insert(format!("status: {}, here {}", theirs["status"], body["status"]));
        }
    } else if own.is_taken() {
        members(theirs, body, "", found);
    }
}

/// `null`, an empty list and nothing are the same thing to Azure.
fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

fn members(theirs: &Value, own: &Value, place: &str, found: &mut BTreeSet<String>) {
    let below =
        |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    match (theirs, own) {
        (Value::Object(theirs), Value::Object(own)) => {
            for (name, value) in theirs.iter().filter(|(_, value)| !is_nothing(value)) {
                match own.get(name).filter(|value| !is_nothing(value)) {
                    None => {
                        found.insert(format!("{}: not here", below(name)));
                    }
                    Some(own) if MADE_UP.contains(&name.as_str()) => {
                        if own.is_string() != value.is_string() {
                            found.insert(format!("{}: {value}, here {own}", below(name)));
                        }
                    }
                    Some(own) => members(value, own, &below(name), found),
                }
            }
            for (name, _) in own.iter().filter(|(_, value)| !is_nothing(value)) {
                if theirs.get(name).is_none_or(is_nothing) {
                    found.insert(format!("{}: only here", below(name)));
                }
            }
        }
        (Value::Array(all), Value::Array(others)) => {
            let place = format!("{place}[]");
            if all.len() != others.len() {
                found.insert(format!("{place}: {} items, here {}", all.len(), others.len()));
            }
            for (at, item) in all.iter().enumerate() {
                if let Some(own) = partner(item, at, own) {
                    members(item, own, &place, found);
                }
            }
        }
        (Value::String(theirs), Value::String(own)) => {
            let id = theirs.starts_with('/');
            if (id && !theirs.eq_ignore_ascii_case(own)) || (!id && theirs != own) {
                found.insert(format!("{place}: \"{theirs}\", here \"{own}\""));
            }
        }
        (theirs, own) if theirs != own => {
            found.insert(format!("{place}: {theirs}, here {own}"));
        }
        _ => {}
    }
}
