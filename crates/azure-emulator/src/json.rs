//! Short ways through untyped JSON. Azure's bodies are kept as they came, so that nothing the
//! emulator does not know is lost.

use serde_json::{Map, Value};

/// The string at `path`, or "".
pub(crate) fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    at(value, path).as_str().unwrap_or("")
}

/// The whole number at `path`; a number in a string counts, as it does for Azure.
pub(crate) fn number(value: &Value, path: &[&str]) -> Option<i64> {
    let found = at(value, path);
    found.as_i64().or_else(|| found.as_str()?.trim().parse().ok())
}

/// What stands at `path`, or null.
pub(crate) fn at<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    let found = path.iter().try_fold(value, |value, key| member(value.as_object()?, key));
    found.unwrap_or(&NULL)
}

static NULL: Value = Value::Null;

/// A member of an object. To look at a few keys is faster than to hash one.
fn member<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    const FEW: usize = 16;
    if map.len() > FEW {
        return map.get(key);
    }
    map.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// The list at `path`; anything else counts as empty.
pub(crate) fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    at(value, path).as_array().map_or(&[], Vec::as_slice)
}

/// The members of an object; anything else is replaced by an empty object first.
pub(crate) fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("made an object just above")
}

/// The `properties` of a resource or of one of its elements.
pub(crate) fn properties(value: &mut Value) -> &mut Map<String, Value> {
    object(object(value).entry("properties").or_insert(Value::Null))
}

/// The list under `key` of the properties, to be changed; `None` if there is none.
pub(crate) fn list_mut<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Vec<Value>> {
    value.get_mut("properties")?.get_mut(key)?.as_array_mut()
}

/// Takes keys out of an object, keeping the order of the rest.
pub(crate) fn drop_keys(map: &mut Map<String, Value>, keys: &[&str]) {
    for key in keys {
        map.shift_remove(*key);
    }
}

/// Sets a key that is absent or null.
pub(crate) fn fill(map: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    if map.get(key).is_none_or(Value::is_null) {
        map.insert(key.to_owned(), value.into());
    }
}

/// The names of elements, compared as Azure does.
pub(crate) fn same(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right)
}

/// An element of a list by name.
pub(crate) fn named<'a>(elements: &'a [Value], name: &str) -> Option<&'a Value> {
    elements.iter().find(|element| same(text(element, &["name"]), name))
}

/// All that references under a key name: `{"id"}` or a list of it.
pub(crate) fn references(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(items) => items.iter().filter_map(|item| item["id"].as_str()).collect(),
        other => other["id"].as_str().into_iter().collect(),
    }
}

/// Cuts references down to their id: Azure answers with no more than that.
pub(crate) fn bare_reference(map: &mut Map<String, Value>, key: &str) {
    let bare = |value: &Value| match value["id"].as_str() {
        Some(id) => serde_json::json!({ "id": id }),
        None => value.clone(),
    };
    match map.get_mut(key) {
        Some(Value::Array(items)) => items.iter_mut().for_each(|item| *item = bare(item)),
        Some(value @ Value::Object(_)) => *value = bare(value),
        _ => {}
    }
}

/// Merges objects key by key; null removes, everything else replaces.
pub(crate) fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                match into.get_mut(key) {
                    Some(old) if old.is_object() && value.is_object() => merge(old, value),
                    _ if value.is_null() => {
                        into.shift_remove(key);
                    }
                    _ => {
                        into.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (into, from) => *into = from.clone(),
    }
}
