//! Lists that come in pages.

use crate::error::{ArmError, ErrorKind};
use crate::exchange::{Answer, Method, Request, Target};
use serde_json::Value;

/// More pages than any list has: 10,000 NICs come in 40. A list that never ends is a fault.
const MAX_PAGES: usize = 2_000;

/// Gathers the items of a list, page by page. The answer to a read of one resource is a list of
/// that one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pages {
    correlation: String,
    items: Vec<Value>,
    pages: usize,
}

/// What comes after an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageStep {
    /// Send this for the next page.
    Next(Request),
    /// All items.
    Done(Vec<Value>),
    /// The list could not be read.
    Failed(ArmError),
}

impl Pages {
    /// Starts with the request for the first page.
    #[must_use]
    pub fn start(request: &Request) -> Self {
        Self { correlation: request.correlation.clone(), items: Vec::new(), pages: 0 }
    }

    /// Takes the answer to the request before.
    pub fn advance(&mut self, answer: &Answer) -> PageStep {
        let reply = match answer {
            Answer::Reply(reply) => reply,
            Answer::Fault(fault) => {
                return PageStep::Failed(ArmError::of_fault(Method::Get, fault));
            }
        };
        if reply.status != 200 {
            return PageStep::Failed(ArmError::of_reply(reply));
        }
        let Some(body) = &reply.body else {
            let message = "the answer to a read has no JSON body";
            return PageStep::Failed(ArmError::own(
                ErrorKind::Transient,
                reply.status,
                "NoBody",
                message,
            ));
        };
        match body.get("value") {
            Some(Value::Array(items)) => self.items.extend(items.iter().cloned()),
            Some(Value::Null) => {}
            _ if body.get("nextLink").is_none() => self.items.push(body.clone()),
            _ => {}
        }
        self.pages += 1;
        match body.get("nextLink").and_then(Value::as_str).filter(|link| !link.is_empty()) {
            None => PageStep::Done(std::mem::take(&mut self.items)),
            Some(_) if self.pages >= MAX_PAGES => PageStep::Failed(ArmError::own(
                ErrorKind::Transient,
                reply.status,
                "EndlessList",
                format!("the list did not end after {MAX_PAGES} pages"),
            )),
            Some(link) => PageStep::Next(Request {
                method: Method::Get,
                target: target(link),
                if_match: None,
                body: None,
                correlation: self.correlation.clone(),
            }),
        }
    }
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
