//! JSON objects into messages.

use super::schema::{Field, Presence, Shape, message};
use super::wire::{put_bytes, put_number};
use crate::time::parse_instant;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// Writes an object as a message. Members that the schema does not have are left out, as the real
/// API server prunes them; so are members of another type, which it would have refused.
pub(super) fn write(out: &mut Vec<u8>, name: &str, object: &Map<String, Value>) {
    for field in message(name).unwrap_or_default() {
        let Field { number, name, shape, presence } = field;
        let (value, shape) = match (name, shape) {
            (Some(name), shape) => (object.get(*name), shape),
            (None, Shape::Message(inner)) => {
                let mut inlined = Vec::new();
                write(&mut inlined, inner, object);
                put_bytes(out, *number, &inlined);
                continue;
            }
            (None, _) => continue,
        };
        match (value, presence) {
            (Some(Value::Array(list)), Presence::Repeated) => {
                list.iter().for_each(|item| one(out, *number, *shape, item));
            }
            (Some(value), _) => one(out, *number, *shape, value),
            (None, _) => {}
        }
    }
}

fn one(out: &mut Vec<u8>, number: u64, shape: Shape, value: &Value) {
    match (shape, value) {
        (Shape::Text, Value::String(text)) => put_bytes(out, number, text.as_bytes()),
        (Shape::Int, Value::Number(value)) => {
            if let Some(value) = value.as_i64() {
                put_number(out, number, value.cast_unsigned());
            }
        }
        (Shape::Bool, Value::Bool(value)) => put_number(out, number, u64::from(*value)),
        (Shape::Bytes, Value::String(text)) => {
            put_bytes(out, number, &STANDARD.decode(text).unwrap_or_default());
        }
        (Shape::Time | Shape::MicroTime, Value::String(text)) => {
            if let Some((seconds, nanos)) = parse_instant(text) {
                let nanos = if shape == Shape::Time { 0 } else { nanos };
                let mut instant = Vec::new();
                put_number(&mut instant, 1, seconds.cast_unsigned());
                put_number(&mut instant, 2, nanos.cast_unsigned());
                put_bytes(out, number, &instant);
            }
        }
        (Shape::Quantity, value) => put_bytes(out, number, &quantity(value)),
        (Shape::IntOrText, value) => put_bytes(out, number, &int_or_text(value)),
        (Shape::Json, value) if !value.is_null() => {
            let mut raw = Vec::new();
            put_bytes(&mut raw, 1, value.to_string().as_bytes());
            put_bytes(out, number, &raw);
        }
        (Shape::Texts, Value::Array(list)) => {
            let mut items = Vec::new();
            list.iter().for_each(|item| one(&mut items, 1, Shape::Text, item));
            put_bytes(out, number, &items);
        }
        (Shape::Map(kind), Value::Object(map)) => {
            for (key, value) in map {
                let mut entry = Vec::new();
                put_bytes(&mut entry, 1, key.as_bytes());
                one(&mut entry, 2, kind.shape(), value);
                put_bytes(out, number, &entry);
            }
        }
        (Shape::Message(inner), Value::Object(object)) => {
            let mut nested = Vec::new();
            write(&mut nested, inner, object);
            put_bytes(out, number, &nested);
        }
        _ => {}
    }
}

/// A quantity is its text; JSON may have a plain number instead.
fn quantity(value: &Value) -> Vec<u8> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
    let mut out = Vec::new();
    put_bytes(&mut out, 1, text.as_bytes());
    out
}

fn int_or_text(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        Value::String(text) => {
            put_number(&mut out, 1, 1);
            put_bytes(&mut out, 3, text.as_bytes());
        }
        value => {
            put_number(&mut out, 1, 0);
            put_number(&mut out, 2, value.as_i64().unwrap_or(0).cast_unsigned());
        }
    }
    out
}
