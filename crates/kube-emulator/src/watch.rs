//! Watches as values: a place in the history, and what happened since.

use crate::kinds::Kind;
use crate::protobuf;
use crate::selectors::{FieldSelector, LabelSelector};
use crate::status::ApiError;
use crate::tables::{self, Coding, Form, TableHead};
use serde_json::{Value, json};
use std::sync::Arc;

/// What a watch event says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventType {
    /// An object is there now.
    Added,
    /// An object changed.
    Modified,
    /// An object is gone, or no longer fits the selectors.
    Deleted,
    /// Nothing new up to this revision.
    Bookmark,
    /// The watch cannot go on; the object is a `Status`.
    Error,
}

impl EventType {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Error => "ERROR",
        }
    }
}

/// One event of a watch.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchEvent {
    /// What happened.
    pub event: EventType,
    /// The object after it (for a deletion: the last state).
    pub object: Arc<Value>,
    /// The revision at which it happened.
    pub revision: u64,
}

impl WatchEvent {
    /// The event as sent when the client asked for plain objects.
    pub fn json(&self) -> Value {
        json!({"type": self.event.word(), "object": self.object.as_ref()})
    }

    pub(crate) fn error(error: &ApiError) -> Self {
        Self { event: EventType::Error, object: Arc::new(error.status().clone()), revision: 0 }
    }
}

/// Whether a watch wants bookmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bookmarks {
    /// It does.
    Wanted,
    /// It does not.
    Unwanted,
}

/// What is watched and how events are shown.
#[derive(Debug, Clone)]
pub struct WatchSpec {
    /// The kind.
    pub kind: &'static Kind,
    /// The namespace, or all of them.
    pub namespace: Option<String>,
    /// The name, or all of them.
    pub name: Option<String>,
    /// Labels the objects must have.
    pub labels: LabelSelector,
    /// Fields the objects must have.
    pub fields: FieldSelector,
    /// Whether bookmarks are wanted.
    pub bookmarks: Bookmarks,
    /// Seconds after which the watch ends.
    pub timeout_s: u64,
    pub(crate) form: Form,
    /// How its events are written.
    pub(crate) coding: Coding,
}

impl WatchSpec {
    /// A watch on all objects of a kind.
    pub fn everything(kind: &'static Kind) -> Self {
        Self {
            kind,
            namespace: None,
            name: None,
            labels: LabelSelector::default(),
            fields: FieldSelector::default(),
            bookmarks: Bookmarks::Unwanted,
            timeout_s: DEFAULT_TIMEOUT_S,
            form: Form::Plain,
            coding: Coding::Json,
        }
    }

    pub(crate) fn covers(&self, key: &(String, String)) -> bool {
        self.namespace.as_ref().is_none_or(|wanted| *wanted == key.0)
            && self.name.as_ref().is_none_or(|wanted| *wanted == key.1)
    }

    pub(crate) fn selects(&self, object: &Value) -> bool {
        self.labels.matches(object) && self.fields.matches(object)
    }

    /// The event as this watch's client asked for it.
    pub fn render(&self, event: &WatchEvent, now_ms: u64, head: TableHead) -> Value {
        let object = match event.event {
            EventType::Error => event.object.as_ref().clone(),
            _ => tables::show(self.form, self.kind, &event.object, now_ms, head),
        };
        json!({"type": event.event.word(), "object": object})
    }

    /// The event as it goes over the wire: a line of JSON, or a frame.
    pub fn write(&self, event: &WatchEvent, now_ms: u64, head: TableHead, out: &mut Vec<u8>) {
        let shown = self.render(event, now_ms, head);
        match self.coding {
            Coding::Protobuf => out.extend(protobuf::watch_frame(&shown)),
            Coding::Json => {
                serde_json::to_writer(&mut *out, &shown).expect("JSON values always serialise");
                out.push(b'\n');
            }
        }
    }

    /// The content type of its stream.
    pub fn content_type(&self) -> &'static str {
        match self.coding {
            Coding::Protobuf => protobuf::WATCH_MEDIA,
            Coding::Json => "application/json",
        }
    }

    /// A bookmark at a revision.
    pub fn bookmark(&self, revision: u64) -> WatchEvent {
        let object = json!({
            "kind": self.kind.kind, "apiVersion": self.kind.api_version(),
            "metadata": {"resourceVersion": revision.to_string(), "creationTimestamp": null},
        });
        WatchEvent { event: EventType::Bookmark, object: Arc::new(object), revision }
    }

    pub(crate) fn initial_bookmark(&self, revision: u64) -> WatchEvent {
        let mut event = self.bookmark(revision);
        let object = Arc::make_mut(&mut event.object);
        object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        event
    }
}

/// How long a watch lasts that does not say it.
pub(crate) const DEFAULT_TIMEOUT_S: u64 = 3_600;

/// Whether a watch goes on after its first events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuation {
    /// More may come.
    Open,
    /// It ends here.
    Ended,
}

/// The start of a watch.
#[derive(Debug, Clone)]
pub struct WatchStart {
    /// What is watched.
    pub spec: WatchSpec,
    /// The first events.
    pub events: Vec<WatchEvent>,
    /// The revision to go on from.
    pub revision: u64,
    /// Whether it goes on.
    pub continuation: Continuation,
}
