//! Get, list and watch.

use super::Store;
use super::shelf::{Change, Key, Shelf};
use crate::events;
use crate::kinds::Kind;
use crate::request::{Body, Request, Response};
use crate::route::Target;
use crate::selectors::{FieldSelector, LabelSelector};
use crate::status::ApiError;
use crate::tables::{self, Coding, Form};
use crate::watch::{
    Bookmarks, Continuation, DEFAULT_TIMEOUT_S, EventType, WatchEvent, WatchSpec, WatchStart,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where the next page of a list starts.
struct Page {
    revision: u64,
    after: Key,
}

impl Page {
    fn encode(&self) -> String {
        let token = json!({"v": "ballast/v1", "rv": self.revision, "start": self.after});
        URL_SAFE_NO_PAD.encode(token.to_string())
    }

    fn decode(token: &str) -> Result<Self, ApiError> {
        let parsed = URL_SAFE_NO_PAD
            .decode(token)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok())
            .and_then(|value| {
                let after = serde_json::from_value(value.get("start")?.clone()).ok()?;
                Some(Self { revision: value.get("rv")?.as_u64()?, after })
            });
        parsed.ok_or_else(|| {
            ApiError::bad_request("continue key is not valid: it was not made by this server")
        })
    }
}

impl Store {
    pub(super) fn read_one(
        &self,
        target: &Target,
        form: Form,
        now: u64,
    ) -> Result<Response, ApiError> {
        let object = self.find(target)?;
        let object = events::outward(target.kind, &object);
        Ok(match form {
            Form::Plain => Response::new(200, Body::Object(object)),
            _ => {
                let head = tables::TableHead::Shown;
                Response::document(tables::show(form, target.kind, &object, now, head))
            }
        })
    }

    pub(crate) fn find(&self, target: &Target) -> Result<Arc<Value>, ApiError> {
        let key = target.key();
        let found = self.shelf(target.kind).objects.get(&key);
        found.cloned().ok_or_else(|| ApiError::not_found(target.kind, &key.1))
    }

    pub(super) fn read_many(
        &self,
        target: &Target,
        request: &Request,
        form: Form,
        now: u64,
    ) -> Result<Response, ApiError> {
        let spec = watch_spec(target, request, form)?;
        let page = request.param("continue").map(Page::decode).transpose()?;
        let revision = self.list_revision(request, page.as_ref())?;
        let limit = match request.param("limit").map(str::parse::<usize>) {
            None | Some(Ok(0)) => usize::MAX,
            Some(Ok(limit)) => limit,
            Some(Err(_)) => {
                return Err(ApiError::bad_request("limit must be a number of objects"));
            }
        };
        let after = page.map(|page| page.after);
        let shelf = self.shelf(target.kind);
        let (items, left) = if shelf.changed_after(revision) {
            let then = shelf.at_revision(revision)?;
            select(&then, &spec, after.as_ref(), limit)
        } else {
            select(&shelf.objects, &spec, after.as_ref(), limit)
        };
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if let (Some(last), true) = (items.last(), left > 0) {
            let after = super::key_of(last);
            metadata["continue"] = json!(Page { revision, after }.encode());
            metadata["remainingItemCount"] = json!(left);
        }
        let items: Vec<_> = items.iter().map(|item| events::outward(target.kind, item)).collect();
        Ok(list_response(target.kind, form, metadata, items, now))
    }

    /// The revision a list shows.
    fn list_revision(&self, request: &Request, page: Option<&Page>) -> Result<u64, ApiError> {
        if let Some(page) = page {
            return Ok(page.revision);
        }
        let wanted = revision_param(request)?;
        let exact = match request.param("resourceVersionMatch") {
            None | Some("NotOlderThan") => false,
            Some("Exact") => true,
            Some(other) => {
                return Err(ApiError::bad_request(format!(
                    "resourceVersionMatch: Unsupported value: {other:?}: supported values: \
                     \"Exact\", \"NotOlderThan\""
                )));
            }
        };
        let wanted = wanted.unwrap_or(0);
        if wanted > self.revision {
            return Err(self.too_large(wanted));
        }
        Ok(if exact && wanted > 0 { wanted } else { self.revision })
    }

    fn too_large(&self, wanted: u64) -> ApiError {
        let message = format!("Too large resource version: {wanted}, current: {}", self.revision);
        let cause = json!({"reason": "ResourceVersionTooLarge",
            "message": "Too large resource version"});
        let details = json!({"causes": [cause], "retryAfterSeconds": 1});
        ApiError::with_details(504, "Timeout", message, details)
    }

    /// Starts a watch: the first events and where to go on.
    pub(super) fn watch_open(
        &self,
        target: &Target,
        request: &Request,
        form: Form,
    ) -> Result<WatchStart, ApiError> {
        let spec = watch_spec(target, request, form)?;
        let wanted = revision_param(request)?;
        if wanted.is_some_and(|wanted| wanted > self.revision) {
            return Err(self.too_large(wanted.unwrap_or_default()));
        }
        let initial = request.param("sendInitialEvents").map(|_| request.flag("sendInitialEvents"));
        let from = wanted.filter(|wanted| *wanted > 0);
        if from.is_none() && initial != Some(false) || initial == Some(true) {
            let objects = &self.shelf(spec.kind).objects;
            let (items, _) = select(objects, &spec, None, usize::MAX);
            let mut events: Vec<WatchEvent> = items
                .iter()
                .map(|item| WatchEvent {
                    event: EventType::Added,
                    object: events::outward(spec.kind, item),
                    revision: super::revision_of(item),
                })
                .collect();
            if initial == Some(true) && spec.bookmarks == Bookmarks::Wanted {
                events.push(spec.initial_bookmark(self.revision));
            }
            let revision = self.revision;
            return Ok(WatchStart { spec, events, revision, continuation: Continuation::Open });
        }
        let from = from.unwrap_or(self.revision);
        // The real server answers 200 and says "expired" inside the stream.
        let (events, continuation) = match self.watch_from(&spec, from) {
            Ok(events) => (events, Continuation::Open),
            Err(error) => (vec![WatchEvent::error(&error)], Continuation::Ended),
        };
        Ok(WatchStart { spec, events, revision: self.revision, continuation })
    }

    /// What a watch sees after a revision, up to [`Store::revision`].
    pub fn watch_from(&self, spec: &WatchSpec, revision: u64) -> Result<Vec<WatchEvent>, ApiError> {
        let changes = self.shelf(spec.kind).since(revision)?;
        let covered = changes.filter(|change| spec.covers(&change.key));
        Ok(covered.filter_map(|change| seen(spec, change)).collect())
    }

    pub(super) fn shelf(&self, kind: &Kind) -> &Shelf {
        self.shelves.get(kind.plural).expect("every kind of the table has a shelf")
    }
}

/// A change as one watch sees it: what leaves its selection is gone for it.
fn seen(spec: &WatchSpec, change: &Change) -> Option<WatchEvent> {
    let was = change.before.as_ref().is_some_and(|object| spec.selects(object));
    let is = change.after.as_ref().is_some_and(|object| spec.selects(object));
    let (event, object) = match (was, is) {
        (false, false) => return None,
        (false, true) => (EventType::Added, &change.shown),
        (true, true) => (EventType::Modified, &change.shown),
        (true, false) if change.after.is_none() => (EventType::Deleted, &change.shown),
        (true, false) => {
            let mut last = change.before.as_ref()?.as_ref().clone();
            last["metadata"]["resourceVersion"] = json!(change.revision.to_string());
            let object = events::outward(spec.kind, &Arc::new(last));
            return Some(WatchEvent {
                event: EventType::Deleted,
                object,
                revision: change.revision,
            });
        }
    };
    let object = events::outward(spec.kind, object);
    Some(WatchEvent { event, object, revision: change.revision })
}

fn watch_spec(target: &Target, request: &Request, form: Form) -> Result<WatchSpec, ApiError> {
    let labels = LabelSelector::parse(request.param("labelSelector").unwrap_or(""))?;
    let field_text = request.param("fieldSelector").unwrap_or("");
    let fields = FieldSelector::parse(field_text, target.kind)?;
    let name = target.name.clone().or_else(|| fields.pinned_name().map(str::to_string));
    let bookmarks = match request.flag("allowWatchBookmarks") {
        true => Bookmarks::Wanted,
        false => Bookmarks::Unwanted,
    };
    let timeout_s = match request.param("timeoutSeconds").map(str::parse::<u64>) {
        None | Some(Ok(0)) => DEFAULT_TIMEOUT_S,
        Some(Ok(seconds)) => seconds,
        Some(Err(_)) => {
            return Err(ApiError::bad_request("timeoutSeconds must be a number of seconds"));
        }
    };
    let namespace = target.namespace.clone();
    let kind = target.kind;
    Ok(WatchSpec {
        kind,
        namespace,
        name,
        labels,
        fields,
        bookmarks,
        timeout_s,
        form,
        coding: Coding::Json,
    })
}

fn revision_param(request: &Request) -> Result<Option<u64>, ApiError> {
    let text = request.param("resourceVersion");
    text.map(|text| {
        text.parse::<u64>().map_err(|_| {
            let message = format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint");
            ApiError::bad_request(message)
        })
    })
    .transpose()
}

/// The selected objects of a page, and how many are left after it.
fn select(
    objects: &BTreeMap<Key, Arc<Value>>,
    spec: &WatchSpec,
    after: Option<&Key>,
    limit: usize,
) -> (Vec<Arc<Value>>, usize) {
    if let (Some(namespace), Some(name)) = (&spec.namespace, &spec.name) {
        let found = objects.get(&(namespace.clone(), name.clone()));
        let found = found.filter(|object| spec.selects(object));
        return (found.cloned().into_iter().collect(), 0);
    }
    let from = (spec.namespace.clone().unwrap_or_default(), String::new());
    let inside = |(key, _): &(&Key, &Arc<Value>)| {
        spec.namespace.as_ref().is_none_or(|wanted| *wanted == key.0)
    };
    let mut chosen = objects
        .range(from..)
        .take_while(inside)
        .filter(|(key, _)| after.is_none_or(|after| *key > after))
        .filter(|(key, object)| spec.covers(key) && spec.selects(object))
        .map(|(_, object)| object);
    let page: Vec<Arc<Value>> = chosen.by_ref().take(limit).cloned().collect();
    let left = chosen.count();
    (page, left)
}

fn list_response(
    kind: &'static Kind,
    form: Form,
    metadata: Value,
    items: Vec<Arc<Value>>,
    now: u64,
) -> Response {
    if form != Form::Plain {
        return Response::document(tables::show_list(form, kind, &metadata, &items, now));
    }
    let head = json!({
        "kind": format!("{}List", kind.kind), "apiVersion": kind.api_version(),
        "metadata": metadata,
    });
    Response::new(200, Body::List { head, items })
}
