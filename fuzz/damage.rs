//! The documents of `corpus` and every damage of them, for `cargo test`.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "it is a part of tests, each of which uses its own"
)]

use serde_json::{Value, json};
use std::path::Path;

/// The documents of a door, by name.
pub fn corpus(door: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(door);
    let mut found: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), std::fs::read(&path).unwrap()))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "{door} has no documents");
    found
}

/// What takes the place of a value.
fn strangers() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(-1),
        json!(u64::MAX),
        json!(1e300),
        json!(""),
        json!("65536"),
        json!("ä/../%00\u{202e}"),
        json!("x".repeat(300)),
        json!([null, {}, "a"]),
        json!({"id": {"id": []}}),
    ]
}

/// Pointers to all values of a document but itself.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let escape = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let place = format!("{at}/{}", escape(key));
                found.push(place.clone());
                places(value, &place, found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                let place = format!("{at}/{index}");
                found.push(place.clone());
                places(value, &place, found);
            }
        }
        _ => {}
    }
}

fn without(document: &Value, place: &str) -> Value {
    let mut damaged = document.clone();
    let (parent, key) = place.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/").replace("~0", "~");
    match damaged.pointer_mut(parent).unwrap() {
        Value::Object(fields) => drop(fields.remove(&key)),
        Value::Array(items) => drop(items.remove(key.parse().unwrap())),
        _ => {}
    }
    damaged
}

/// Every damage of a JSON document; gives how many there were.
pub fn damages(document: &Value, mut take: impl FnMut(&Value)) -> usize {
    let mut found = Vec::new();
    places(document, "", &mut found);
    let mut count = 0;
    for place in &found {
        take(&without(document, place));
        for stranger in strangers() {
            let mut damaged = document.clone();
            *damaged.pointer_mut(place).unwrap() = stranger;
            take(&damaged);
        }
        count += 1 + strangers().len();
    }
    count
}

/// All documents of a door with all damages of their JSON, which begins after `head` bytes.
pub fn damaged(door: &str, head: impl Fn(&[u8]) -> usize, open: impl Fn(&[u8])) -> usize {
    let mut count = 0;
    for (name, bytes) in corpus(door) {
        open(&bytes);
        let head = head(&bytes);
        // As long as it is, a cut at every byte is no more than the cuts of its first part.
        for end in (0..bytes.len()).step_by(1 + bytes.len() / 200) {
            open(&bytes[..end]);
        }
        let Ok(document) = serde_json::from_slice::<Value>(&bytes[head..]) else {
            assert!(!name.ends_with(".json"), "{name} is no JSON");
            continue;
        };
        count += damages(&document, |damaged| {
            let mut whole = bytes[..head].to_vec();
            whole.extend_from_slice(damaged.to_string().as_bytes());
            open(&whole);
        });
    }
    count
}

/// Where a document begins that is a file of its own.
pub fn whole(_: &[u8]) -> usize {
    0
}

/// Where a document begins after a line.
pub fn after_line(bytes: &[u8]) -> usize {
    bytes.iter().position(|b| *b == b'\n').map_or(0, |at| at + 1)
}

/// Where a document begins after an empty line.
pub fn after_head(bytes: &[u8]) -> usize {
    bytes.windows(2).position(|two| two == b"\n\n").map_or(0, |at| at + 2)
}
