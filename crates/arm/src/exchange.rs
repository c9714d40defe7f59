//! One HTTP request to Azure Resource Manager and what came back.

use model::Etag;
use serde_json::Value;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// HTTP methods that ARM uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Read.
    Get,
    /// Create or replace.
    Put,
    /// Change some fields.
    Patch,
    /// Run an action.
    Post,
    /// Delete.
    Delete,
}

impl Method {
    /// The word on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }

    /// Whether a request of this method changes anything.
    #[must_use]
    pub fn is_write(self) -> bool {
        self != Self::Get
    }
}

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Path and query below the ARM endpoint, `api-version` included.
    Path(String),
    /// A whole URL that ARM gave us: a next page or an operation to poll. The sender refuses one
    /// that does not lead to the ARM endpoint's own origin.
    Url(String),
}

/// What has to be so for Azure to carry out a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// Nothing.
    #[default]
    None,
    /// `If-Match`: the resource is as it was read.
    Unchanged(Etag),
    /// `If-None-Match: *`: there is no such resource.
    Absent,
}

impl Condition {
    /// The ETag that has to stand.
    #[must_use]
    pub fn if_match(&self) -> Option<&Etag> {
        match self {
            Self::Unchanged(etag) => Some(etag),
            Self::None | Self::Absent => None,
        }
    }

    /// What must not stand: `*` is anything.
    #[must_use]
    pub fn if_none_match(&self) -> Option<&'static str> {
        (*self == Self::Absent).then_some("*")
    }
}

/// The JSON body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// As a tree, for one resource.
    Tree(Value),
    /// As text, for tens of thousands of addresses: as a tree they take twenty times the room.
    Text(Arc<str>),
}

impl Body {
    /// The body as a tree.
    #[must_use]
    pub fn tree(&self) -> Cow<'_, Value> {
        match self {
            Self::Tree(tree) => Cow::Borrowed(tree),
            Self::Text(text) => Cow::Owned(serde_json::from_str(text).unwrap_or_default()),
        }
    }

    /// The tree, to change it, where it is one.
    pub fn tree_mut(&mut self) -> Option<&mut Value> {
        match self {
            Self::Tree(tree) => Some(tree),
            Self::Text(_) => None,
        }
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> Arc<str> {
        match self {
            Self::Tree(tree) => Arc::from(tree.to_string()),
            Self::Text(text) => Arc::clone(text),
        }
    }
}

impl From<Value> for Body {
    fn from(tree: Value) -> Self {
        Self::Tree(tree)
    }
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// Where to.
    pub target: Target,
    /// What has to be so for Azure to carry it out.
    pub condition: Condition,
    /// Body.
    pub body: Option<Body>,
    /// `x-ms-correlation-request-id`: the same for a write, its polls and its read-back.
    pub correlation: String,
}

/// What ARM said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// `Azure-AsyncOperation`.
    pub async_operation: Option<String>,
    /// `Location`.
    pub location: Option<String>,
    /// `Retry-After` in milliseconds (also from `Retry-After-Ms` and HTTP dates).
    pub retry_after_ms: Option<u64>,
    /// `x-ms-error-code`: Azure's error code, which comes with failures and, from a Service
    /// Gateway's actions, also with a 200.
    pub error_code: Option<String>,
    /// What is left of limits, by what says so: see [`read_remaining`].
    pub remaining: Vec<(String, u64)>,
    /// The body; `None` when empty, not JSON, or a page. Shared: the sender may keep it, too.
    pub body: Option<Arc<Value>>,
    /// The body of a page of a list, where it was taken apart.
    pub page: Option<Page>,
}

/// A page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Its items. As texts: parsed, a list of thousands takes ten times the room.
    pub items: Vec<Item>,
    /// `nextLink`.
    pub next: Option<String>,
}

/// One item of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Its place in the JSON text of a page, parsed when it is looked at.
    Text(Arc<String>, Range<usize>),
    /// Parsed.
    Parsed(Arc<Value>),
}

/// What a header says about calls that are left; nothing for other headers. The name is the
/// header's in lower case, or the limit's own where the header lists several, as Compute's does:
/// `Microsoft.Compute/LowCostGet3Min;107,Microsoft.Compute/LowCostGet30Min;807`.
#[must_use]
pub fn read_remaining(header: &str, value: &str) -> Vec<(String, u64)> {
    let header = header.to_lowercase();
    if !header.starts_with("x-ms-ratelimit-remaining-") {
        return Vec::new();
    }
    let parts = value.split(',').filter_map(|part| match part.rsplit_once(';') {
        Some((name, left)) => Some((name.trim().to_lowercase(), left.trim().parse().ok()?)),
        None => Some((header.clone(), part.trim().parse().ok()?)),
    });
    parts.collect()
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// ARM answered.
    Reply(Box<Reply>),
    /// It did not.
    Fault(TransportFault),
}

/// Why there was no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportFault {
    /// The request was not sent: no connection, no token. Safe to repeat.
    NotSent(String),
    /// It is never sent: an answer of ARM's gave the address, and it is none of the ARM endpoint's.
    Foreign(String),
    /// The request may have been carried out: the connection broke, or time ran out.
    Ambiguous(String),
}
