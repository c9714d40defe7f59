//! Messages into JSON objects.

use super::schema::{Entry, Field, Presence, Shape, message};
use super::wire::{Wire, fields, varint};
use crate::json::object;
use crate::time::{format_micro_time, format_seconds};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// Reads a message. Fields that the schema does not have are left out, as the real API server
/// leaves them out; `None` if the message is damaged.
pub(super) fn read(name: &str, bytes: &[u8]) -> Option<Map<String, Value>> {
    let mut found = Map::new();
    read_into(&mut found, name, bytes)?;
    Some(found)
}

fn read_into(found: &mut Map<String, Value>, name: &str, bytes: &[u8]) -> Option<()> {
    let known = message(name)?;
    for (number, wire) in fields(bytes)? {
        let Some(field) = known.iter().find(|field| field.number == number) else { continue };
        match (field, field.shape, wire) {
            (Field { name: None, .. }, Shape::Message(inner), Wire::Bytes(bytes)) => {
                read_into(found, inner, bytes)?;
            }
            (Field { name: Some(key), .. }, Shape::Map(kind), Wire::Bytes(bytes)) => {
                let (word, value) = entry(kind, bytes)?;
                object(found.entry(*key).or_insert(json!({}))).insert(word, value);
            }
            (Field { name: Some(key), presence: Presence::Repeated, .. }, shape, wire) => {
                let slot = found.entry(*key).or_insert_with(|| json!([]));
                push(slot.as_array_mut()?, shape, wire)?;
            }
            (Field { name: Some(key), presence, .. }, shape, wire) => {
                let value = value(shape, wire)?;
                if *presence == Presence::Kept || !is_zero(shape, &value) {
                    found.insert((*key).to_string(), value);
                }
            }
            (Field { name: None, .. }, _, _) => return None,
        }
    }
    Some(())
}

/// Numbers may come packed, many in one field.
fn push(list: &mut Vec<Value>, shape: Shape, wire: Wire<'_>) -> Option<()> {
    match (shape, wire) {
        (Shape::Int, Wire::Bytes(mut packed)) => {
            while !packed.is_empty() {
                list.push(value(shape, Wire::Number(varint(&mut packed)?))?);
            }
        }
        (shape, wire) => list.push(value(shape, wire)?),
    }
    Some(())
}

/// A struct is never left out, even when it is empty: Go writes it, on the wire and as JSON.
fn is_zero(shape: Shape, value: &Value) -> bool {
    match (shape, value) {
        (Shape::Message(_), _) => false,
        (_, Value::Null | Value::Bool(false)) => true,
        (_, Value::Number(number)) => number.as_i64() == Some(0),
        (_, Value::String(text)) => text.is_empty(),
        _ => false,
    }
}

fn value(shape: Shape, wire: Wire<'_>) -> Option<Value> {
    Some(match (shape, wire) {
        (Shape::Int, Wire::Number(number)) => json!(number.cast_signed()),
        (Shape::Bool, Wire::Number(number)) => json!(number != 0),
        (Shape::Text, Wire::Bytes(bytes)) => json!(text(bytes)?),
        (Shape::Bytes, Wire::Bytes(bytes)) => json!(STANDARD.encode(bytes)),
        (Shape::Time, Wire::Bytes(bytes)) => {
            instant(bytes)?.map_or(Value::Null, |(seconds, _)| json!(format_seconds(seconds)))
        }
        (Shape::MicroTime, Wire::Bytes(bytes)) => instant(bytes)?
            .map_or(Value::Null, |(seconds, nanos)| json!(format_micro_time(seconds, nanos))),
        (Shape::Quantity, Wire::Bytes(bytes)) => quantity(bytes)?,
        (Shape::IntOrText, Wire::Bytes(bytes)) => int_or_text(bytes)?,
        (Shape::Json, Wire::Bytes(bytes)) => {
            let raw = fields(bytes)?.into_iter().find_map(|field| match field {
                (1, Wire::Bytes(raw)) => Some(raw),
                _ => None,
            });
            serde_json::from_slice(raw.unwrap_or(b"null")).ok()?
        }
        (Shape::Texts, Wire::Bytes(bytes)) => {
            let mut list = Vec::new();
            for (number, wire) in fields(bytes)? {
                match (number, wire) {
                    (1, Wire::Bytes(bytes)) => list.push(json!(text(bytes)?)),
                    _ => return None,
                }
            }
            Value::Array(list)
        }
        (Shape::Message(inner), Wire::Bytes(bytes)) => Value::Object(read(inner, bytes)?),
        _ => return None,
    })
}

pub(super) fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

/// A map's entry is a message: the key is field 1, the value field 2.
fn entry(kind: Entry, bytes: &[u8]) -> Option<(String, Value)> {
    let (mut key, mut value) = (String::new(), &[][..]);
    for (number, wire) in fields(bytes)? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => key = text(bytes)?,
            (2, Wire::Bytes(bytes)) => value = bytes,
            _ => {}
        }
    }
    Some((key, self::value(kind.shape(), Wire::Bytes(value))?))
}

fn quantity(bytes: &[u8]) -> Option<Value> {
    let mut written = "0".to_string();
    for (number, wire) in fields(bytes)? {
        if let (1, Wire::Bytes(bytes)) = (number, wire) {
            written = text(bytes)?;
        }
    }
    Some(json!(written))
}

/// Seconds since 1970 and nanoseconds; `None` inside for Go's zero time, which is no bytes at all.
#[expect(clippy::option_option, reason = "damaged and not set are two things")]
fn instant(bytes: &[u8]) -> Option<Option<(i64, i64)>> {
    let (mut seconds, mut nanos) = (0, 0);
    for (number, wire) in fields(bytes)? {
        match (number, wire) {
            (1, Wire::Number(value)) => seconds = value.cast_signed(),
            (2, Wire::Number(value)) => nanos = value.cast_signed(),
            _ => {}
        }
    }
    Some((!bytes.is_empty()).then_some((seconds, nanos)))
}

fn int_or_text(bytes: &[u8]) -> Option<Value> {
    let (mut is_text, mut int, mut word) = (false, 0, String::new());
    for (number, wire) in fields(bytes)? {
        match (number, wire) {
            (1, Wire::Number(value)) => is_text = value == 1,
            (2, Wire::Number(value)) => int = value.cast_signed(),
            (3, Wire::Bytes(bytes)) => word = text(bytes)?,
            _ => {}
        }
    }
    Some(if is_text { json!(word) } else { json!(int) })
}
