//! One request and its answer, as they are recorded.

use arm::{Answer, Condition, Item, Method, Reply, Request, Target, TransportFault};
use model::Etag;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The header with the address of an operation.
pub(crate) const ASYNC: &str = "azure-asyncoperation";

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Makes or reads what a probe needs.
    Setup,
    /// Tries an assumption.
    Probe,
    /// Follows an operation.
    Poll,
    /// Deletes what was made.
    Clean,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sent {
    /// The method.
    pub method: String,
    /// Path and query. Of an address that Azure gave, `api-version` is all that stays of the query.
    pub path: String,
    /// `If-Match`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_match: Option<String>,
    /// `If-None-Match`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_none_match: Option<String>,
    /// The body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Came {
    /// HTTP status; 0 where there was no answer.
    pub status: u16,
    /// The headers that the controller reads, in lower case.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Why there was no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// A request and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// When it was sent: milliseconds since the run began.
    pub t_ms: u64,
    /// How long the answer took, in milliseconds.
    pub took_ms: u64,
    /// Id of the assumption, or `clean`.
    pub of: String,
    /// What it is for.
    pub part: Part,
    /// The request.
    pub request: Sent,
    /// The answer.
    pub answer: Came,
}

impl Sent {
    pub(crate) fn of(request: &Request) -> Self {
        let path = match &request.target {
            Target::Path(path) => path.clone(),
            Target::Url(url) => unsigned(url),
        };
        Self {
            method: request.method.name().to_owned(),
            path,
            if_match: request.condition.if_match().map(|etag| etag.as_str().to_owned()),
            if_none_match: request.condition.if_none_match().map(str::to_owned),
            body: request.body.as_ref().map(|body| body.tree().into_owned()),
        }
    }

    /// The request once more.
    pub(crate) fn request(&self, correlation: String) -> Request {
        let method = match self.method.as_str() {
            "PUT" => Method::Put,
            "PATCH" => Method::Patch,
            "POST" => Method::Post,
            "DELETE" => Method::Delete,
            _ => Method::Get,
        };
        let condition = match (&self.if_match, &self.if_none_match) {
            (Some(etag), _) => Condition::Unchanged(Etag::new(etag)),
            (None, Some(_)) => Condition::Absent,
            (None, None) => Condition::None,
        };
        Request {
            method,
            target: Target::Path(self.path.clone()),
            condition,
            body: self.body.clone().map(Into::into),
            correlation,
        }
    }

    /// Method and resource without subscription and group: `PUT publicIPAddresses/x`.
    #[must_use]
    pub fn short(&self) -> String {
        let path = self.path.split('?').next().unwrap_or_default();
        let short = match path.rsplit_once("/providers/") {
            Some((_, rest)) => rest.split_once('/').map_or(rest, |(_, types)| types),
            None => path,
        };
        format!("{} {short}", self.method)
    }

    /// The path without its query.
    #[must_use]
    pub fn bare(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }
}

impl Came {
    pub(crate) fn of(answer: &Answer) -> Self {
        match answer {
            Answer::Reply(reply) => Self::of_reply(reply),
            Answer::Fault(
                TransportFault::NotSent(why)
                | TransportFault::Foreign(why)
                | TransportFault::Ambiguous(why),
            ) => Self { fault: Some(why.clone()), ..Self::default() },
        }
    }

    fn of_reply(reply: &Reply) -> Self {
        let mut headers: BTreeMap<String, String> =
            reply.remaining.iter().map(|(name, left)| (name.clone(), left.to_string())).collect();
        let mut add = |name: &str, value: Option<String>| {
            headers.extend(value.map(|value| (name.to_owned(), value)));
        };
        add(ASYNC, reply.async_operation.as_deref().map(unsigned));
        add("location", reply.location.as_deref().map(unsigned));
        add("retry-after", reply.retry_after_ms.map(|ms| ms.div_ceil(1_000).to_string()));
        add("x-ms-error-code", reply.error_code.clone());
        let page = reply.page.as_ref().map(|page| {
            let items: Vec<Value> = page.items.iter().map(item).collect();
            match &page.next {
                Some(next) => json!({"value": items, "nextLink": unsigned(next)}),
                None => json!({ "value": items }),
            }
        });
        let body = page.or_else(|| reply.body.as_deref().cloned());
        Self { status: reply.status, headers, body, fault: None }
    }

    /// `error.code` of the body.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        let body = self.body.as_ref()?;
        let error = body.get("error").unwrap_or(body);
        error.get("code")?.as_str()
    }

    /// `code` of the first of the error's details.
    pub(crate) fn detail(&self) -> Option<&str> {
        self.body.as_ref()?.pointer("/error/details/0/code")?.as_str()
    }

    /// `error.message` of the body.
    pub(crate) fn message(&self) -> &str {
        let message = self.body.as_ref().and_then(|body| body.pointer("/error/message"));
        message.and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether Azure took the request.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// `properties.provisioningState` of the body.
    pub(crate) fn state(&self) -> Option<&str> {
        self.body.as_ref()?.pointer("/properties/provisioningState")?.as_str()
    }

    /// Status and code, in a few words.
    #[must_use]
    pub fn short(&self) -> String {
        match (&self.fault, self.code()) {
            (Some(fault), _) => fault.clone(),
            (None, Some(code)) => format!("{} {code}", self.status),
            (None, None) => self.status.to_string(),
        }
    }
}

fn item(item: &Item) -> Value {
    match item {
        Item::Parsed(value) => (**value).clone(),
        Item::Text(text, at) => text
            .get(at.clone())
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default(),
    }
}

/// What stays of the query of an address that Azure gave.
const KEPT: [&str; 2] = ["api-version", "$skiptoken"];

/// An address that Azure gave, without its server and without the signature that stands in the
/// query of operations: whoever has that may ask for the operation without signing in.
fn unsigned(url: &str) -> String {
    let below = url.split_once("://").map(|(_, rest)| rest);
    let path = below.map_or(url, |rest| &rest[rest.find('/').unwrap_or(rest.len())..]);
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let kept: Vec<&str> = query
        .split('&')
        .filter(|pair| {
            let name = pair.split('=').next().unwrap_or_default();
            KEPT.iter().any(|kept| kept.eq_ignore_ascii_case(name))
        })
        .collect();
    if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_azure_signs_an_address_with_is_left_out() {
        let url = "https://management.azure.com/subscriptions/s/providers/Microsoft.Network/\
                   locations/e/operations/1?api-version=2025-05-01&t=1&c=MII&s=sig&h=hash";
        let path = "/subscriptions/s/providers/Microsoft.Network/locations/e/operations/1\
                    ?api-version=2025-05-01";
        assert_eq!(unsigned(url), path);
        assert_eq!(unsigned(path), path);
        assert_eq!(unsigned("https://x"), "");
        let reply = Reply {
            status: 202,
            async_operation: Some(url.to_owned()),
            location: Some(url.replace("operations", "operationResults")),
            ..Reply::default()
        };
        let came = Came::of(&Answer::Reply(Box::new(reply)));
        let text = serde_json::to_string(&came).unwrap();
        assert!(!text.contains("sig") && !text.contains("MII"), "{text}");
    }

    #[test]
    fn a_request_comes_back_as_it_was() {
        let request = Request {
            method: Method::Put,
            target: Target::Path("/subscriptions/s/x?api-version=1".to_owned()),
            condition: Condition::Unchanged(Etag::new("W/\"1\"")),
            body: Some(json!({"a": 1}).into()),
            correlation: "c".to_owned(),
        };
        assert_eq!(Sent::of(&request).request("c".to_owned()), request);
    }
}
