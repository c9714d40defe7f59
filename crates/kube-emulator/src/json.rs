//! Short ways into JSON objects.

use serde_json::{Map, Value};

static NULL: Value = Value::Null;

/// The value at a JSON pointer, or null.
pub fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    find(value, pointer).unwrap_or(&NULL)
}

/// The value at a JSON pointer. Where nothing is escaped it is found without copies.
pub fn find<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    if !pointer.starts_with('/') || pointer.contains('~') {
        return value.pointer(pointer);
    }
    pointer.split('/').skip(1).try_fold(value, |value, key| match value {
        Value::Object(map) => member(map, key),
        Value::Array(_) => value.pointer(&format!("/{key}")),
        _ => None,
    })
}

/// A member of an object. To look at a few keys is faster than to hash one.
fn member<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    const FEW: usize = 16;
    if map.len() > FEW {
        return map.get(key);
    }
    map.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// The text at a JSON pointer, or the empty text.
pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    at(value, pointer).as_str().unwrap_or("")
}

/// The items of the list at a JSON pointer; none when there is no list.
pub fn items<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    at(value, pointer).as_array().map_or(&[], Vec::as_slice)
}

/// The texts of the list at a JSON pointer.
pub fn texts(value: &Value, pointer: &str) -> Vec<String> {
    items(value, pointer).iter().filter_map(|item| item.as_str().map(str::to_string)).collect()
}

/// The member as an object, made if it is missing or something else.
pub fn child<'a>(value: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    let slot = object(value).entry(key).or_insert(Value::Null);
    object(slot)
}

/// The value as an object, made one if it is something else.
pub fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("made an object above")
}

/// Whether a value carries nothing: null, empty text, empty list or empty object.
pub fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Sets a member unless it already carries something.
pub fn set_default(map: &mut Map<String, Value>, key: &str, value: Value) {
    if map.get(key).is_none_or(is_blank) {
        map.insert(key.to_string(), value);
    }
}

/// Removes a member and keeps the order of the rest.
pub fn drop_key(map: &mut Map<String, Value>, key: &str) -> Option<Value> {
    map.shift_remove(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pointers_lead_where_those_of_serde_json_do() {
        let wide: Map<String, Value> = (0..20).map(|n| (format!("k{n}"), json!(n))).collect();
        let value = json!({"a": [{"b": 1}, [2]], "": {"": 3}, "x/y": 4, "~": 5, "wide": wide});
        let pointers = [
            "",
            "/",
            "//",
            "a",
            "/a",
            "/a/0/b",
            "/a/1/0",
            "/a/01/0",
            "/a/+1",
            "/a/2",
            "/a/-",
            "/x~1y",
            "/~0",
            "/wide/k17",
            "/wide/k20",
            "/a/0/b/c",
            "/a/",
        ];
        for pointer in pointers {
            assert_eq!(find(&value, pointer), value.pointer(pointer), "{pointer:?}");
        }
    }
}
