//! `tags` and `tagsMap`.

use super::fields::Fields;
use model::azure::Tags;
use serde_json::Value;
use std::sync::Arc;

/// Tags of both keys; `tagsMap` wins, its keys compared ignoring case.
pub(super) fn read(fields: &mut Fields) -> Tags {
    let mut tags = Tags::new();
    let text = match fields.take("tags") {
        Some(Value::String(text)) => text,
        Some(other) => {
            fields.refuse("tags", &other, "text such as a=b,c=d; an object belongs in tagsMap");
            String::new()
        }
        None => String::new(),
    };
    for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
        match read_pair(pair) {
            Some((key, value)) => {
                put(&mut tags, key, value);
            }
            None => fields.warn(&format!("tags: {pair:?} is no key=value and is left out")),
        }
    }
    match fields.take("tagsMap") {
        None => {}
        Some(Value::Object(map)) => {
            for (key, value) in map {
                match value.as_str().map(trimmed) {
                    Some(value) if !key.trim().is_empty() => put(&mut tags, key.trim(), value),
                    _ => fields.refuse(&format!("tagsMap.{key}"), &value, "a key and a text"),
                }
            }
        }
        Some(other) => fields.refuse("tagsMap", &other, "an object of keys and texts"),
    }
    tags
}

fn read_pair(pair: &str) -> Option<(&str, &str)> {
    let (key, value) = pair.split_once('=')?;
    let key = key.trim();
    (!key.is_empty() && !value.contains('=')).then(|| (key, trimmed(value)))
}

/// A value `null` keeps its blanks: with them it is text, without them some tools drop the tag.
fn trimmed(value: &str) -> &str {
    let short = value.trim();
    if short.eq_ignore_ascii_case("null") { value } else { short }
}

fn put(tags: &mut Tags, key: &str, value: &str) {
    tags.retain(|held, _| !held.eq_ignore_ascii_case(key));
    tags.insert(Arc::from(key), Arc::from(value));
}
