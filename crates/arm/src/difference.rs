//! What differs between two JSON bodies, field by field.

use model::id::fold_ids;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Field {
    /// Where, as in `properties.probes[name].properties.port`.
    pub path: String,
    /// What it was; absent where there was nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    /// What it becomes; absent where it goes away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
}

/// The differences: fields of the old value in its order, then those that are new. Lists of named
/// elements are compared by name. Absent, null and empty are the same, and ids in any letter case.
#[must_use]
pub fn diff(old: &Value, new: &Value) -> Vec<Field> {
    let mut fields = Vec::new();
    compare("", Some(old), Some(new), &mut fields);
    fields
}

/// Whether there is nothing in a value.
#[must_use]
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.values().all(is_empty),
        _ => false,
    }
}

/// Objects, and lists of named elements, are compared member by member.
fn is_same(old: &Value, new: &Value) -> bool {
    let text = |value: &Value| matches!(value, Value::String(_) | Value::Array(_));
    old == new || text(old) && text(new) && fold_ids(old.clone()) == fold_ids(new.clone())
}

fn compare(path: &str, old: Option<&Value>, new: Option<&Value>, fields: &mut Vec<Field>) {
    let old = old.filter(|v| !is_empty(v));
    let new = new.filter(|v| !is_empty(v));
    match (old, new) {
        (None, None) => {}
        (Some(old), Some(new)) if is_same(old, new) => {}
        (Some(Value::Object(old)), Some(Value::Object(new))) => objects(path, old, new, fields),
        (Some(Value::Array(old)), Some(Value::Array(new))) if named(old) && named(new) => {
            lists(path, old, new, fields);
        }
        // What is new below something that was empty is shown where it stands; an element of a
        // list is shown as a whole.
        (None, Some(Value::Object(new))) if !path.ends_with(']') => {
            objects(path, &Map::new(), new, fields);
        }
        (Some(Value::Object(old)), None) if !path.ends_with(']') => {
            objects(path, old, &Map::new(), fields);
        }
        (None, Some(Value::Array(new))) if named(new) => lists(path, &[], new, fields),
        (Some(Value::Array(old)), None) if named(old) => lists(path, old, &[], fields),
        (old, new) => {
            fields.push(Field { path: path.to_owned(), old: old.cloned(), new: new.cloned() })
        }
    }
}

fn objects(
    path: &str,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    fields: &mut Vec<Field>,
) {
    let keys = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
    for key in keys {
        let dot = if path.is_empty() { "" } else { "." };
        compare(&format!("{path}{dot}{key}"), old.get(key), new.get(key), fields);
    }
}

fn lists(path: &str, old: &[Value], new: &[Value], fields: &mut Vec<Field>) {
    let (of_old, of_new) = (by_name(old), by_name(new));
    let added = new.iter().filter(|v| !of_old.contains_key(&folded(v)));
    for element in old.iter().chain(added) {
        let key = folded(element);
        let at = format!("{path}[{}]", name(element));
        compare(&at, of_old.get(&key).copied(), of_new.get(&key).copied(), fields);
    }
}

/// Of elements with one name the first counts.
fn by_name(list: &[Value]) -> BTreeMap<String, &Value> {
    let mut all = BTreeMap::new();
    for element in list {
        all.entry(folded(element)).or_insert(element);
    }
    all
}

fn folded(value: &Value) -> String {
    name(value).to_ascii_lowercase()
}

fn named(list: &[Value]) -> bool {
    list.iter().all(|v| !name(v).is_empty())
}

fn name(value: &Value) -> &str {
    value.get("name").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn named_elements_are_compared_by_name_and_empty_is_absent() {
        let old = json!({"properties": {"rules": [{"name": "a", "port": 1}, {"name": "b"}]}});
        let new = json!({"tags": {}, "properties": {
            "rules": [{"name": "c"}, {"name": "A", "port": 2}]}});
        let shown: Vec<String> = diff(&old, &new)
            .iter()
            .map(|f| format!("{} {:?} {:?}", f.path, f.old, f.new))
            .collect();
        assert_eq!(shown.len(), 4, "{shown:#?}");
        assert!(shown[0].starts_with("properties.rules[a].name"));
        assert!(shown[1].starts_with("properties.rules[a].port"));
        assert!(shown[2].starts_with("properties.rules[b] Some"));
        assert!(shown[3].starts_with("properties.rules[c] None"));
    }

    #[test]
    fn ids_do_not_differ_by_their_letters() {
        let old = json!({"id": "/SUBSCRIPTIONS/S", "of": [{"id": "/subscriptions/S"}], "a": "X"});
        let new = json!({"id": "/subscriptions/s", "of": [{"id": "/subscriptions/s"}], "a": "x"});
        let fields: Vec<String> = diff(&old, &new).into_iter().map(|field| field.path).collect();
        assert_eq!(fields, ["a"], "a value that is no id differs by its letters");
    }

    #[test]
    fn equal_values_do_not_differ() {
        let value = json!({"a": [1, {"b": null}]});
        assert_eq!(diff(&value, &value), Vec::new());
    }
}
