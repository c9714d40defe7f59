//! What the controller wants done.

use model::ServiceName;
use serde_json::Value;
use std::sync::Arc;

/// Number of a call; never used twice by one controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// Something to do. Effects are carried out in order, calls side by side.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send a request to ARM and bring back [`crate::Event::Azure`]. Before a write is sent the
    /// shell checks that the lease is still held.
    Azure {
        /// Names the answer.
        call: CallId,
        /// What to send.
        request: arm::Request,
    },
    /// Send a request to the API server and bring back [`crate::Event::KubernetesWritten`].
    Kubernetes {
        /// Names the answer.
        call: CallId,
        /// What to send.
        request: KubernetesCall,
    },
    /// Say something to whoever watches: log, console, terminal.
    Say(Notice),
}

/// A request to the Kubernetes API server.
#[derive(Clone, Debug, PartialEq)]
pub struct KubernetesCall {
    /// `GET`, `PATCH` or `POST`. Reads are sent by processes that may not write, too.
    pub method: &'static str,
    /// Path below the server's address.
    pub path: String,
    /// Content type of the body.
    pub content_type: &'static str,
    /// Body; null: there is none.
    pub body: Value,
}

/// Something worth saying.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// When, in milliseconds of the controller's clock.
    pub at_ms: u64,
    /// What kind of thing.
    pub kind: NoticeKind,
    /// The Services it is about.
    pub services: Vec<ServiceName>,
    /// One line, no secret in it.
    pub text: String,
    /// Ids of the changes of these Services that it is about or follows from: each change of a
    /// Service by its owner has one.
    pub changes: Vec<Arc<str>>,
    /// Correlation id of the Azure call it belongs to: `x-ms-correlation-request-id` of the write,
    /// its polls and its read-back.
    pub correlation: Option<String>,
}

/// Kinds of notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoticeKind {
    /// A Service was created, changed or deleted.
    Asked,
    /// A plan was made.
    Planned,
    /// An Azure call was sent.
    Sent,
    /// An Azure call was answered.
    Answered,
    /// A Service is programmed.
    Programmed,
    /// A Service is refused or set aside.
    Refused,
    /// A finding of severity note: the Service is served, and its owner should know of it.
    Noted,
    /// Something failed and will be tried again.
    Failed,
    /// Somebody else changed what is ours.
    Drifted,
}
