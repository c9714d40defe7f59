//! The protobuf form of objects, which client-go programs send and ask for.
//!
//! An object is four bytes, `k8s\0`, and a message `Unknown`: its field 1 says apiVersion and kind,
//! its field 2 is the object's own message (k8s.io/apimachinery, pkg/runtime/generated.proto). A
//! watch is a row of frames, each with its length in four bytes, big-endian, before a bare
//! `WatchEvent` whose object is such an envelope (apimachinery, pkg/util/framer).

mod decode;
mod encode;
mod schema;
mod wire;

use crate::json::text;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use wire::{Wire, fields, put_bytes};

/// The media type.
pub(crate) const MEDIA: &str = "application/vnd.kubernetes.protobuf";
/// The media type of a watch.
pub(crate) const WATCH_MEDIA: &str = "application/vnd.kubernetes.protobuf;stream=watch";

const MAGIC: &[u8] = b"k8s\0";

/// Reads an enveloped object into its JSON form.
///
/// # Errors
/// In words: it is no envelope, is damaged, or holds a kind that is not served.
pub(crate) fn decode(body: &[u8]) -> Result<Value, String> {
    let damaged = || "the protobuf message is damaged".to_string();
    let envelope = body.strip_prefix(MAGIC).ok_or(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
    )?;
    let (mut version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for (number, wire) in fields(envelope).ok_or_else(damaged)? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => {
                for (number, wire) in fields(bytes).ok_or_else(damaged)? {
                    match (number, wire) {
                        (1, Wire::Bytes(bytes)) => {
                            version = decode::text(bytes).ok_or_else(damaged)?;
                        }
                        (2, Wire::Bytes(bytes)) => {
                            kind = decode::text(bytes).ok_or_else(damaged)?;
                        }
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let name = schema::of_kind(&version, &kind)
        .ok_or_else(|| format!("no kind {kind:?} is registered for version {version:?}"))?;
    let mut object = decode::read(name, raw).ok_or_else(damaged)?;
    object.insert("apiVersion".to_string(), json!(version));
    object.insert("kind".to_string(), json!(kind));
    Ok(Value::Object(object))
}

/// Writes an object or a list with its envelope; `None` if its kind has no protobuf form.
pub(crate) fn encode(object: &Value) -> Option<Vec<u8>> {
    let (version, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
    let members = object.as_object()?;
    let mut raw = Vec::new();
    match (schema::of_kind(version, kind), kind.strip_suffix("List")) {
        (Some(name), _) => encode::write(&mut raw, name, members),
        (None, Some(item)) => {
            let items = members.get("items").and_then(Value::as_array);
            let items = items.into_iter().flatten().filter_map(Value::as_object);
            raw = list(version, item, members, items)?;
        }
        (None, None) => return None,
    }
    Some(envelope(version, kind, &raw))
}

/// Writes a list whose objects stand apart from its head; `None` as for [`encode`].
pub(crate) fn encode_list(head: &Value, items: &[Arc<Value>]) -> Option<Vec<u8>> {
    let (version, kind) = (text(head, "/apiVersion"), text(head, "/kind"));
    let item = kind.strip_suffix("List")?;
    let items = items.iter().filter_map(|item| item.as_object());
    let raw = list(version, item, head.as_object()?, items)?;
    Some(envelope(version, kind, &raw))
}

/// Every list is its metadata in field 1 and its objects, without envelopes, in field 2.
fn list<'a>(
    version: &str,
    item: &str,
    head: &Map<String, Value>,
    items: impl Iterator<Item = &'a Map<String, Value>>,
) -> Option<Vec<u8>> {
    let name = schema::of_kind(version, item)?;
    let mut metadata = Vec::new();
    if let Some(members) = head.get("metadata").and_then(Value::as_object) {
        encode::write(&mut metadata, "ListMeta", members);
    }
    let mut raw = Vec::new();
    put_bytes(&mut raw, 1, &metadata);
    for object in items {
        let mut bytes = Vec::new();
        encode::write(&mut bytes, name, object);
        put_bytes(&mut raw, 2, &bytes);
    }
    Some(raw)
}

fn envelope(version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut meta = Vec::new();
    put_bytes(&mut meta, 1, version.as_bytes());
    put_bytes(&mut meta, 2, kind.as_bytes());
    let mut out = MAGIC.to_vec();
    put_bytes(&mut out, 1, &meta);
    put_bytes(&mut out, 2, raw);
    // contentEncoding and contentType: the server writes them empty.
    put_bytes(&mut out, 3, b"");
    put_bytes(&mut out, 4, b"");
    out
}

/// One frame of a watch, made from an event in its JSON form.
pub(crate) fn watch_frame(event: &Value) -> Vec<u8> {
    let mut raw = Vec::new();
    put_bytes(&mut raw, 1, &encode(crate::json::at(event, "/object")).unwrap_or_default());
    let mut message = Vec::new();
    put_bytes(&mut message, 1, text(event, "/type").as_bytes());
    put_bytes(&mut message, 2, &raw);
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], &message].concat()
}

#[cfg(test)]
mod tests;
