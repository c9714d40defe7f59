//! Bodies in the protobuf form. Some clients (kubectl's typed commands among them) send it
//! without asking and do not fall back, so the kinds they send are read here. Answers are JSON.

mod schema;

use crate::time::format_time;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schema::{Shape, message};
use serde_json::{Map, Value, json};

const MAGIC: &[u8] = b"k8s\0";

/// One field as it lies on the wire.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Reads an enveloped object into its JSON form; `None` if it is broken or holds something this
/// reader does not know (nothing is dropped silently).
pub(crate) fn decode(body: &[u8]) -> Option<Value> {
    let envelope = fields(body.strip_prefix(MAGIC)?)?;
    let (mut version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for (number, wire) in envelope {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => {
                for (number, wire) in fields(bytes)? {
                    match (number, wire) {
                        (1, Wire::Bytes(bytes)) => version = text(bytes)?,
                        (2, Wire::Bytes(bytes)) => kind = text(bytes)?,
                        _ => return None,
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let name = match (version.as_str(), kind.as_str()) {
        ("events.k8s.io/v1", "Event") => "NewEvent",
        (_, kind) => kind,
    };
    let mut object = read(name, raw)?;
    object.insert("apiVersion".to_string(), json!(version));
    object.insert("kind".to_string(), json!(kind));
    Some(Value::Object(object))
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Wire<'_>)>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let wire = match tag & 7 {
            0 => Wire::Number(varint(&mut bytes)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let (value, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                Wire::Bytes(value)
            }
            _ => return None,
        };
        found.push((tag >> 3, wire));
    }
    Some(found)
}

fn read(name: &str, bytes: &[u8]) -> Option<Map<String, Value>> {
    let known = message(name)?;
    let mut object = Map::new();
    for (number, wire) in fields(bytes)? {
        let Some((_, key, shape)) = known.iter().find(|field| field.0 == number) else {
            // The wire holds every plain member, also those that are not set.
            match is_unset(&wire) {
                true => continue,
                false => return None,
            }
        };
        match (shape, wire) {
            (Shape::Map, Wire::Bytes(bytes)) => {
                let (key_text, value) = entry(bytes)?;
                crate::json::object(object.entry(*key).or_insert(json!({})))
                    .insert(key_text, json!(text(value)?));
            }
            (Shape::BytesMap, Wire::Bytes(bytes)) => {
                let (key_text, value) = entry(bytes)?;
                crate::json::object(object.entry(*key).or_insert(json!({})))
                    .insert(key_text, json!(STANDARD.encode(value)));
            }
            (Shape::Texts, Wire::Bytes(bytes)) => push(&mut object, key, json!(text(bytes)?)),
            (Shape::Many(inner), Wire::Bytes(bytes)) => {
                push(&mut object, key, Value::Object(read(inner, bytes)?));
            }
            (shape, wire) => {
                if let Some(value) = single(shape, wire)? {
                    object.insert((*key).to_string(), value);
                }
            }
        }
    }
    Some(object)
}

/// Whether a member holds nothing but members that are not set.
fn is_unset(wire: &Wire<'_>) -> bool {
    match wire {
        Wire::Number(number) => *number == 0,
        Wire::Bytes(bytes) => {
            fields(bytes).is_some_and(|inner| inner.iter().all(|(_, wire)| is_unset(wire)))
        }
    }
}

fn push(object: &mut Map<String, Value>, key: &str, value: Value) {
    let slot = object.entry(key.to_string()).or_insert_with(|| json!([]));
    if let Value::Array(list) = slot {
        list.push(value);
    }
}

fn entry(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (mut key, mut value) = (String::new(), &[][..]);
    for (number, wire) in fields(bytes)? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => key = text(bytes)?,
            (2, Wire::Bytes(bytes)) => value = bytes,
            _ => return None,
        }
    }
    Some((key, value))
}

/// A member that is there once; the inner `None` is a member that is not set.
#[expect(clippy::option_option, reason = "broken and unset are two things")]
fn single(shape: &Shape, wire: Wire<'_>) -> Option<Option<Value>> {
    Some(match (shape, wire) {
        (Shape::Text, Wire::Bytes(bytes)) => {
            Some(text(bytes)?).filter(|text| !text.is_empty()).map(Value::from)
        }
        (Shape::Int, Wire::Number(number)) => Some(number).filter(|n| *n != 0).map(signed),
        (Shape::OptInt, Wire::Number(number)) => Some(signed(number)),
        (Shape::Bool, Wire::Number(number)) => (number != 0).then(|| json!(true)),
        (Shape::OptBool, Wire::Number(number)) => Some(json!(number != 0)),
        (Shape::Time, Wire::Bytes(bytes)) => {
            time(bytes)?.map(|(s, _)| json!(format_time(s.saturating_mul(1000))))
        }
        (Shape::MicroTime, Wire::Bytes(bytes)) => time(bytes)?.map(|(s, nanos)| {
            let whole = format_time(s.saturating_mul(1000));
            let whole = whole.trim_end_matches('Z');
            json!(format!("{whole}.{:06}Z", nanos / 1000))
        }),
        (Shape::IntOrText, Wire::Bytes(bytes)) => int_or_text(bytes)?,
        (Shape::One(inner), Wire::Bytes(bytes)) => {
            let object = read(inner, bytes)?;
            (!object.is_empty()).then_some(Value::Object(object))
        }
        _ => return None,
    })
}

/// Numbers on the wire are two's complement in 64 bits.
fn signed(number: u64) -> Value {
    json!(number.cast_signed())
}

#[expect(clippy::option_option, reason = "broken and unset are two things")]
fn time(bytes: &[u8]) -> Option<Option<(u64, u64)>> {
    let (mut seconds, mut nanos) = (0, 0);
    for (number, wire) in fields(bytes)? {
        match (number, wire) {
            (1, Wire::Number(value)) => seconds = value,
            (2, Wire::Number(value)) => nanos = value,
            _ => return None,
        }
    }
    // The zero time of Go lies before 1970.
    Some((seconds != 0 && seconds.cast_signed() > 0).then_some((seconds, nanos)))
}

#[expect(clippy::option_option, reason = "broken and unset are two things")]
fn int_or_text(bytes: &[u8]) -> Option<Option<Value>> {
    let (mut is_text, mut int, mut word) = (false, 0, String::new());
    for (number, wire) in fields(bytes)? {
        match (number, wire) {
            (1, Wire::Number(value)) => is_text = value == 1,
            (2, Wire::Number(value)) => int = value,
            (3, Wire::Bytes(bytes)) => word = text(bytes)?,
            _ => return None,
        }
    }
    Some(match is_text {
        true => Some(json!(word)).filter(|_| !word.is_empty()),
        false => Some(signed(int)).filter(|_| int != 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(number: u8, bytes: &[u8]) -> Vec<u8> {
        let length = u8::try_from(bytes.len()).unwrap();
        [&[number << 3 | 2, length], bytes].concat()
    }

    fn envelope(kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [put(1, b"v1"), put(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), put(1, &meta), put(2, raw)].concat()
    }

    #[test]
    fn objects_are_read() {
        let labels = put(11, &[put(1, b"a"), put(2, b"b")].concat());
        let metadata = [put(1, b"x"), put(2, b""), put(8, b""), labels].concat();
        let data = put(2, &[put(1, b"k"), put(2, b"v")].concat());
        let raw = [put(1, &metadata), data.clone()].concat();
        let want = json!({"metadata": {"name": "x", "labels": {"a": "b"}}, "data": {"k": "v"},
            "apiVersion": "v1", "kind": "ConfigMap"});
        assert_eq!(decode(&envelope("ConfigMap", &raw)), Some(want));
        let secret = decode(&envelope("Secret", &data)).unwrap();
        assert_eq!(secret["data"]["k"], "dg==");
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert_eq!(decode(&envelope("ConfigMap", &put(15, b"x"))), None);
        assert_eq!(decode(&envelope("Widget", b"")), None);
        assert_eq!(decode(b"{}"), None);
        assert_eq!(decode(&envelope("ConfigMap", &[0x0a, 9, 1])), None);
    }
}
