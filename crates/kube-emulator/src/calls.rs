//! The log of calls, in the words of access rules: verb, group, resource.

use crate::request::{Method, Request, Response};
use crate::route::{self, Part, Route, Target};
use crate::status::ApiError;
use crate::store::Store;
use serde_json::{Value, json};

/// So many calls are kept; older ones are forgotten.
const KEPT: usize = 20_000;

/// One call, as an access rule would have to allow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedCall {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The `User-Agent` header.
    pub user_agent: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: &'static str,
    /// The API group, empty for the core group.
    pub group: &'static str,
    /// The plural, with `/status` where that part was meant; empty for a path without objects.
    pub resource: String,
    /// The namespace; empty for cluster resources and for lists of all namespaces.
    pub namespace: String,
    /// The name; empty for lists and where the body has it.
    pub name: String,
    /// The path.
    pub path: String,
    /// The HTTP code answered.
    pub code: u16,
}

impl LoggedCall {
    fn new(request: &Request, code: u16, at_ms: u64) -> Self {
        let target = match route::parse(&request.path) {
            Ok(Route::Objects(target)) => Some(target),
            Ok(_) | Err(_) => None,
        };
        let named = target.as_ref().is_none_or(|target| target.name.is_some());
        let text = |part: Option<&String>| part.cloned().unwrap_or_default();
        Self {
            at_ms,
            user_agent: request.user_agent.clone(),
            verb: verb(request, named),
            group: target.as_ref().map_or("", |target| target.kind.group),
            resource: target.as_ref().map(resource).unwrap_or_default(),
            namespace: text(target.as_ref().and_then(|target| target.namespace.as_ref())),
            name: text(target.as_ref().and_then(|target| target.name.as_ref())),
            path: request.path.clone(),
            code,
        }
    }

    fn json(&self) -> Value {
        let Self { at_ms, user_agent, verb, group, resource, namespace, name, path, code } = self;
        json!({"t_ms": at_ms, "userAgent": user_agent, "verb": verb, "group": group,
            "resource": resource, "namespace": namespace, "name": name, "path": path,
            "code": code})
    }
}

fn verb(request: &Request, named: bool) -> &'static str {
    match (request.method, named) {
        (Method::Get, true) => "get",
        (Method::Get, false) if request.flag("watch") => "watch",
        (Method::Get, false) => "list",
        (Method::Post, _) => "create",
        (Method::Put, _) => "update",
        (Method::Patch, _) => "patch",
        (Method::Delete, true) => "delete",
        (Method::Delete, false) => "deletecollection",
    }
}

fn resource(target: &Target) -> String {
    let plural = target.kind.plural;
    match target.part {
        Part::Main => plural.to_string(),
        Part::Status => format!("{plural}/status"),
        Part::Finalize => format!("{plural}/finalize"),
    }
}

impl Store {
    /// The calls so far, the oldest first.
    pub fn calls(&self) -> impl Iterator<Item = &LoggedCall> {
        self.log().iter()
    }

    /// Forgets the calls.
    pub fn clear_calls(&mut self) {
        self.log_mut().clear();
    }

    pub(crate) fn note(&mut self, request: &Request, code: u16, now: u64) {
        let log = self.log_mut();
        if log.len() == KEPT {
            log.pop_front();
        }
        log.push_back(LoggedCall::new(request, code, now));
    }

    /// `/_/calls`: GET shows the log, DELETE empties it.
    pub(crate) fn calls_page(&mut self, request: &Request) -> Result<Response, ApiError> {
        match request.method {
            Method::Get => Ok(Response::document(self.calls().map(LoggedCall::json).collect())),
            Method::Delete => {
                self.clear_calls();
                Ok(Response::document(json!([])))
            }
            _ => Err(ApiError::unknown_path()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreOptions;

    #[test]
    fn calls_are_told_in_the_words_of_access_rules() {
        let mut store = Store::new(StoreOptions::default());
        let service = "/api/v1/namespaces/default/services/kubernetes";
        let patch = json!({"metadata": {"labels": {"a": "b"}}});
        let merge = "application/merge-patch+json";
        for request in [
            Request::get("/api/v1/services?watch=0"),
            Request::get("/api/v1/services?watch=true"),
            Request::get(service),
            Request::patch(&format!("{service}/status"), merge, &patch),
            Request::delete("/apis/apps/v1/namespaces/default/deployments"),
            Request::get("/version"),
            Request::get("/api/v1/widgets"),
        ] {
            store.handle(&request, 7);
        }
        let told: Vec<String> = store
            .calls()
            .map(|c| {
                format!(
                    "{} {}/{} {}.{} {}",
                    c.verb, c.group, c.resource, c.namespace, c.name, c.code
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                "list /services . 200",
                "watch /services . 200",
                "get /services default.kubernetes 200",
                "patch /services/status default.kubernetes 200",
                "deletecollection apps/deployments default. 200",
                "get / . 200",
                "get / . 404",
            ]
        );
        let page = store.handle(&Request::get("/_/calls"), 8).json();
        assert_eq!(page.as_array().map(Vec::len), Some(7), "asking for the log is no call");
        store.handle(&Request::delete("/_/calls"), 9);
        assert_eq!(store.calls().count(), 0);
    }

    #[test]
    fn old_calls_are_forgotten() {
        let mut store = Store::new(StoreOptions::default());
        (0..KEPT as u64 + 3).for_each(|at| drop(store.handle(&Request::get("/version"), at)));
        assert_eq!(store.calls().count(), KEPT);
        assert_eq!(store.calls().next().map(|c| c.at_ms), Some(3));
    }
}
