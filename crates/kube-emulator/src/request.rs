//! Requests and responses as plain values.

use crate::protobuf;
use crate::status::ApiError;
use crate::tables::Coding;
use crate::watch::WatchStart;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Value, json};
use std::sync::Arc;

/// The HTTP verbs the API knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Read one, read many, or watch.
    Get,
    /// Create.
    Post,
    /// Replace.
    Put,
    /// Change parts.
    Patch,
    /// Delete one or many.
    Delete,
}

impl Method {
    /// Reads the verb's name.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "GET" | "HEAD" => Self::Get,
            "POST" => Self::Post,
            "PUT" => Self::Put,
            "PATCH" => Self::Patch,
            "DELETE" => Self::Delete,
            _ => return None,
        })
    }
}

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The verb.
    pub method: Method,
    /// The path without the query.
    pub path: String,
    /// The query, decoded, in order.
    pub query: Vec<(String, String)>,
    /// The `Accept` header, empty if absent.
    pub accept: String,
    /// The `Content-Type` header, empty if absent.
    pub content_type: String,
    /// The `User-Agent` header, empty if absent; its first word names the field owner.
    pub user_agent: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// A request without a body; `target` may carry a query.
    pub fn new(method: Method, target: &str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self {
            method,
            path: path.to_string(),
            query: parse_query(query),
            accept: String::new(),
            content_type: String::new(),
            user_agent: String::new(),
            body: Vec::new(),
        }
    }

    /// A GET.
    pub fn get(target: &str) -> Self {
        Self::new(Method::Get, target)
    }

    /// A POST with a JSON body.
    pub fn post(target: &str, body: &Value) -> Self {
        Self::new(Method::Post, target).with_body("application/json", body)
    }

    /// A PUT with a JSON body.
    pub fn put(target: &str, body: &Value) -> Self {
        Self::new(Method::Put, target).with_body("application/json", body)
    }

    /// A PATCH; the content type says which kind of patch.
    pub fn patch(target: &str, content_type: &str, body: &Value) -> Self {
        Self::new(Method::Patch, target).with_body(content_type, body)
    }

    /// A DELETE.
    pub fn delete(target: &str) -> Self {
        Self::new(Method::Delete, target)
    }

    /// The same with a body.
    #[must_use]
    pub fn with_body(mut self, content_type: &str, body: &Value) -> Self {
        self.content_type = content_type.to_string();
        self.body = body.to_string().into_bytes();
        self
    }

    /// The same with an `Accept` header.
    #[must_use]
    pub fn accepting(mut self, accept: &str) -> Self {
        self.accept = accept.to_string();
        self
    }

    /// The first value of a query parameter that is not empty.
    pub fn param(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, value)| key == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }

    /// Whether a query parameter says yes.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.param(name).is_some_and(|value| matches!(value, "1" | "true" | "True" | "t"))
    }
}

/// Decodes a query string.
fn parse_query(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key), decode(value))
        })
        .collect()
}

/// Decodes percent signs; `+` is a blank in queries.
fn decode(text: &str) -> String {
    decode_percent(&text.replace('+', " "))
}

pub(crate) fn decode_percent(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = text.get(at + 1..at + 3).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        match (bytes[at], hex) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// What a response carries.
#[derive(Debug, Clone)]
pub enum Body {
    /// A document made for this response.
    Document(Value),
    /// One stored object.
    Object(Arc<Value>),
    /// A list: its head without `items`, and the objects.
    List {
        /// `kind`, `apiVersion` and `metadata`.
        head: Value,
        /// The objects, shared with the store.
        items: Vec<Arc<Value>>,
    },
    /// Text or bytes that are not JSON.
    Bytes(Vec<u8>),
    /// A watch: the first events and the place to go on from.
    Watch(Box<WatchStart>),
}

/// One response.
#[derive(Debug, Clone)]
pub struct Response {
    /// The HTTP code.
    pub code: u16,
    /// The content type.
    pub content_type: &'static str,
    /// The `Retry-After` header.
    pub retry_after_s: Option<u32>,
    /// The body.
    pub body: Body,
}

const JSON: &str = "application/json";

impl Response {
    pub(crate) fn new(code: u16, body: Body) -> Self {
        Self { code, content_type: JSON, retry_after_s: None, body }
    }

    /// The same in the coding that the client asked for. What has no protobuf form (discovery's
    /// version, tables, texts) stays as it is.
    #[must_use]
    pub(crate) fn coded(mut self, coding: Coding) -> Self {
        if coding == Coding::Json {
            return self;
        }
        let written = match &mut self.body {
            Body::Document(value) => protobuf::encode(value),
            Body::Object(value) => protobuf::encode(value),
            Body::List { head, items } => protobuf::encode_list(head, items),
            Body::Bytes(_) => None,
            Body::Watch(start) => {
                start.spec.coding = coding;
                self.content_type = protobuf::WATCH_MEDIA;
                None
            }
        };
        if let Some(bytes) = written {
            self.content_type = protobuf::MEDIA;
            self.body = Body::Bytes(bytes);
        }
        self
    }

    pub(crate) fn document(document: Value) -> Self {
        Self::new(200, Body::Document(document))
    }

    pub(crate) fn text(text: &str) -> Self {
        let body = Body::Bytes(text.as_bytes().to_vec());
        Self { content_type: "text/plain; charset=utf-8", ..Self::new(200, body) }
    }

    pub(crate) fn refusal(error: &ApiError) -> Self {
        let body = Body::Document(error.status().clone());
        Self { retry_after_s: error.retry_after_s(), ..Self::new(error.code(), body) }
    }

    /// The body as a JSON value; a watch shows its first events as a list.
    pub fn json(&self) -> Value {
        match &self.body {
            Body::Document(value) => value.clone(),
            Body::Object(value) => value.as_ref().clone(),
            Body::List { .. } | Body::Bytes(_) => {
                serde_json::from_slice(&self.bytes()).unwrap_or(Value::Null)
            }
            Body::Watch(start) => {
                let events: Vec<Value> = start.events.iter().map(|event| event.json()).collect();
                json!(events)
            }
        }
    }

    /// The body as sent; a watch has none, because it is a stream.
    pub fn bytes(&self) -> Vec<u8> {
        let written = match &self.body {
            Body::Document(value) => serde_json::to_vec(value),
            Body::Object(value) => serde_json::to_vec(value),
            Body::List { head, items } => serde_json::to_vec(&WholeList { head, items }),
            Body::Bytes(bytes) => return bytes.clone(),
            Body::Watch(_) => return Vec::new(),
        };
        written.expect("JSON values always serialise")
    }
}

struct WholeList<'a> {
    head: &'a Value,
    items: &'a [Arc<Value>],
}

impl Serialize for WholeList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.head.as_object().into_iter().flatten() {
            map.serialize_entry(key, value)?;
        }
        map.serialize_entry("items", &Items(self.items))?;
        map.end()
    }
}

struct Items<'a>(&'a [Arc<Value>]);

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for item in self.0 {
            list.serialize_element(&Item(item))?;
        }
        list.end()
    }
}

/// An object inside a list carries no `kind` and `apiVersion`: the real API leaves them out, and
/// clients that rely on them there would break on it.
struct Item<'a>(&'a Value);

impl Serialize for Item<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.0.as_object().into_iter().flatten() {
            if key != "kind" && key != "apiVersion" {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded() {
        let request = Request::get("/api/v1/pods?labelSelector=app%3Dx%2Cb&watch=1&limit=&a=b+c");
        assert_eq!(request.path, "/api/v1/pods");
        assert_eq!(request.param("labelSelector"), Some("app=x,b"));
        assert_eq!(request.param("a"), Some("b c"));
        assert_eq!(request.param("limit"), None);
        assert!(request.flag("watch"));
    }

    #[test]
    fn listed_objects_carry_no_kind() {
        let item = Arc::new(json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}));
        let body = Body::List { head: json!({"kind": "PodList"}), items: vec![item] };
        let want = json!({"kind": "PodList", "items": [{"metadata": {"name": "a"}}]});
        assert_eq!(Response::new(200, body).json(), want);
    }
}
