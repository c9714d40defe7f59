//! Requests, answers and refusals.

use std::sync::Arc;

use serde_json::{Map, Value, json};

/// One HTTP request, as far as Azure looks at it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// The method in capital letters.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The `If-Match` header.
    pub if_match: Option<String>,
    /// The `If-None-Match` header.
    pub if_none_match: Option<String>,
    /// The body; `None` when there was none.
    pub body: Option<Value>,
    /// The `x-ms-correlation-request-id` header, which the answer repeats.
    pub correlation_id: Option<String>,
}

impl Request {
    /// A request without body and headers.
    pub fn new(method: &str, path: &str) -> Self {
        Request { method: method.to_owned(), path: path.to_owned(), ..Request::default() }
    }

    /// The same with a body.
    #[must_use]
    pub fn with_body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// The same with an `If-Match` header.
    #[must_use]
    pub fn with_if_match(mut self, etag: &str) -> Self {
        self.if_match = Some(etag.to_owned());
        self
    }
}

/// What happens to an answer on its way to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fate {
    /// It arrives.
    #[default]
    Deliver,
    /// It arrives after so many milliseconds.
    Delay(u64),
    /// The connection breaks before the request had any effect.
    ResetBefore,
    /// The connection breaks after the request took effect: the client cannot know.
    ResetAfter,
    /// Status and half of the body arrive, then the connection breaks.
    Truncated,
    /// Nothing ever arrives.
    Hang,
}

/// Azure's answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Headers, in the order they are sent.
    pub headers: Vec<(String, String)>,
    /// The body; `None` is an empty one, or one that is still shared.
    pub body: Option<Value>,
    /// The body, where it shows resources that nobody has copied yet.
    pub shown: Shown,
    /// What happens to the answer on its way.
    pub fate: Fate,
}

/// Resources in a body, as the store holds them for all who look at them. Lists are most of what
/// is read, and most of it is as it was at the last look.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Shown {
    /// There are none.
    #[default]
    Nothing,
    /// The body is this one.
    One(Arc<Value>),
    /// The body is a page of a list.
    Page {
        /// Its items.
        items: Vec<Arc<Value>>,
        /// `nextLink`.
        next: Option<String>,
    },
}

impl Answer {
    pub(crate) fn new(status: u16, body: Option<Value>) -> Self {
        Answer { status, body, ..Answer::default() }
    }

    pub(crate) fn showing(status: u16, shown: Shown) -> Self {
        Answer { status, shown, ..Answer::default() }
    }

    /// The same with a body of its own.
    #[must_use]
    pub fn whole(mut self) -> Self {
        match std::mem::take(&mut self.shown) {
            Shown::Nothing => {}
            Shown::One(one) => self.body = Some(Arc::unwrap_or_clone(one)),
            Shown::Page { items, next } => {
                let items = Value::Array(items.into_iter().map(Arc::unwrap_or_clone).collect());
                let next = next.map(|link| ("nextLink".to_owned(), Value::String(link)));
                let fields = std::iter::once(("value".to_owned(), items)).chain(next);
                self.body = Some(Value::Object(Map::from_iter(fields)));
            }
        }
        self
    }

    pub(crate) fn with_headers(mut self, headers: Vec<(String, String)>) -> Self {
        self.headers.extend(headers);
        self
    }

    /// The value of a header, if it is there; names are compared without case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The `error.code` of the body, if it has one.
    pub fn code(&self) -> Option<&str> {
        self.body.as_ref()?.get("error")?.get("code")?.as_str()
    }
}

/// Why a request is not carried out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) retry_after_s: Option<u64>,
    /// Code and message of the one detail, where there is one.
    pub(crate) detail: Option<(String, String)>,
}

pub(crate) type Checked<T = ()> = Result<T, Refusal>;

/// A refusal with a status of its own.
pub(crate) fn refusal(status: u16, code: &str, message: impl Into<String>) -> Refusal {
    let (code, message) = (code.to_owned(), message.into());
    Refusal { status, code, message, retry_after_s: None, detail: None }
}

/// The usual refusal: 400.
pub(crate) fn refuse<T>(code: &str, message: impl Into<String>) -> Checked<T> {
    Err(refusal(400, code, message))
}

impl Refusal {
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// The same with a detail.
    pub(crate) fn because(mut self, code: &str, message: String) -> Self {
        self.detail = Some((code.to_owned(), message));
        self
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Answer {
        let Refusal { status, code, message, retry_after_s, detail } = refusal;
        let detail = detail.map(|(code, message)| json!({"code": code, "message": message}));
        let details: Vec<Value> = detail.into_iter().collect();
        let body = json!({"error": {"code": code, "message": message, "details": details}});
        let mut answer = Answer::new(status, Some(body));
        if let Some(seconds) = retry_after_s {
            answer.headers.push(("Retry-After".to_owned(), seconds.to_string()));
        }
        answer
    }
}
