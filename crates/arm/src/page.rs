//! Lists that come in pages.

use crate::error::{ArmError, ErrorKind};
use crate::exchange::{Answer, Item, Method, Page, Reply, Request, Target};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// More pages than any list has: 10,000 NICs come in 40. A list that never ends is a fault.
const MAX_PAGES: usize = 2_000;

/// Goes through a list page by page. The answer to a read of one resource is a list of that one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pages {
    correlation: String,
    pages: usize,
}

/// Something that is JSON, or can be made JSON for as long as it is looked at.
pub trait JsonItem {
    /// The JSON; null for a text that is none.
    fn json(&self) -> Cow<'_, Value>;

    /// The item of a page, where it is one: it can be compared with others without being parsed.
    fn item(&self) -> Option<&Item> {
        None
    }
}

impl JsonItem for Value {
    fn json(&self) -> Cow<'_, Value> {
        Cow::Borrowed(self)
    }
}

impl JsonItem for Item {
    fn json(&self) -> Cow<'_, Value> {
        match self {
            Self::Text(page, at) => {
                let text = page.get(at.clone()).unwrap_or_default();
                Cow::Owned(serde_json::from_str(text).unwrap_or_default())
            }
            Self::Parsed(value) => Cow::Borrowed(value),
        }
    }

    fn item(&self) -> Option<&Item> {
        Some(self)
    }
}

/// What comes after an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageStep {
    /// The list goes on.
    Next {
        /// Items of the page that came.
        items: Vec<Item>,
        /// Send this for the next page.
        request: Request,
    },
    /// The items of the last page.
    Done(Vec<Item>),
    /// The list could not be read.
    Failed(ArmError),
}

impl Pages {
    /// Starts with the request for the first page.
    #[must_use]
    pub fn start(request: &Request) -> Self {
        Self { correlation: request.correlation.clone(), pages: 0 }
    }

    /// How many pages have come.
    #[must_use]
    pub fn count(&self) -> usize {
        self.pages
    }

    /// Takes the answer to the request before.
    pub fn advance(&mut self, answer: Answer) -> PageStep {
        let reply = match answer {
            Answer::Reply(reply) => *reply,
            Answer::Fault(fault) => {
                return PageStep::Failed(ArmError::of_fault(Method::Get, &fault));
            }
        };
        if reply.status != 200 {
            return PageStep::Failed(self.failure(&reply));
        }
        let status = reply.status;
        let (items, next) = match (reply.page, reply.body) {
            (Some(Page { items, next }), _) => (items, next),
            (None, Some(body)) => take_apart(body),
            (None, None) => {
                let message = "the answer to a read has no JSON body";
                let error = ArmError::own(ErrorKind::Transient, status, "NoBody", message);
                return PageStep::Failed(error);
            }
        };
        self.pages += 1;
        match next.filter(|link| !link.is_empty()) {
            None => PageStep::Done(items),
            Some(_) if self.pages >= MAX_PAGES => PageStep::Failed(ArmError::own(
                ErrorKind::Transient,
                status,
                "EndlessList",
                format!("the list did not end after {MAX_PAGES} pages"),
            )),
            Some(link) => {
                let request = Request {
                    method: Method::Get,
                    target: target(&link),
                    condition: crate::Condition::None,
                    body: None,
                    correlation: self.correlation.clone(),
                };
                PageStep::Next { items, request }
            }
        }
    }

    /// A list of which a page has come is there: that a later one is not, is a fault of the link
    /// to it (Azure/azure-cli, issue 33770), and never the end of all that the list had.
    fn failure(&self, reply: &Reply) -> ArmError {
        let error = ArmError::of_reply(reply);
        match error.kind {
            ErrorKind::Missing if self.pages > 0 => {
                ArmError { kind: ErrorKind::Transient, ..error }
            }
            _ => error,
        }
    }
}

/// The items of a body, and where the list goes on.
fn take_apart(body: Arc<Value>) -> (Vec<Item>, Option<String>) {
    if body.get("value").is_none() && body.get("nextLink").is_none() {
        return (vec![Item::Parsed(body)], None);
    }
    let mut body = Arc::unwrap_or_clone(body);
    let next = body.get("nextLink").and_then(Value::as_str).map(str::to_owned);
    let items = match body.get_mut("value").map(Value::take) {
        Some(Value::Array(items)) => items.into_iter().map(parsed).collect(),
        Some(Value::Null) => Vec::new(),
        Some(other) if body.get("nextLink").is_none() => {
            // No list at all, but a resource with a field of this name.
            body["value"] = other;
            vec![parsed(body)]
        }
        Some(_) | None => Vec::new(),
    };
    (items, next)
}

fn parsed(item: Value) -> Item {
    Item::Parsed(Arc::new(item))
}

/// Where a link leads that ARM gave: a whole URL, or a path below its endpoint.
pub(crate) fn target(link: &str) -> Target {
    let link = link.trim();
    if link.starts_with('/') && !link.starts_with("//") {
        Target::Path(link.to_owned())
    } else {
        Target::Url(link.to_owned())
    }
}
