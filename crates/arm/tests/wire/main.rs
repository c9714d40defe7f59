//! What goes over the wire, as tables.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be unwrapped has failed it")]

mod bodies;
mod errors;
mod gateway;
mod members;
mod operations;
mod pages;
mod paths;
mod properties;

use arm::{Answer, Method, Reply, Request, Target, TransportFault};
use serde_json::Value;

/// Below this everything of a test lies.
pub const NET: &str = "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network";

/// An id below `Microsoft.Network`.
pub fn net(path: &str) -> String {
    format!("{NET}/{path}")
}

/// A request for some path.
pub fn request(method: Method) -> Request {
    Request {
        method,
        target: Target::Path("/r?api-version=1".to_owned()),
        condition: arm::Condition::None,
        body: None,
        correlation: "c".to_owned(),
    }
}

/// An answer with a status and a body; `Null` is none.
pub fn reply(status: u16, body: Value) -> Reply {
    Reply { status, body: (!body.is_null()).then(|| body.into()), ..Reply::default() }
}

/// The same as an answer.
pub fn answer(status: u16, body: Value) -> Answer {
    Answer::Reply(Box::new(reply(status, body)))
}

/// A connection that broke.
pub fn broken() -> Answer {
    Answer::Fault(TransportFault::Ambiguous("reset".to_owned()))
}

/// A connection that was never made.
pub fn unsent() -> Answer {
    Answer::Fault(TransportFault::NotSent("refused".to_owned()))
}
