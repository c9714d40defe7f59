//! Sets of fields in the `FieldsV1` form, and who owns them.

use super::rules::{ListRule, is_atomic_map, key_value, list_rule, same_item};
use crate::json::drop_key;
use serde_json::{Map, Value};

/// A set of fields: nested maps whose leaves are empty.
pub(crate) type Fields = Map<String, Value>;

const SELF: &str = ".";

fn leaf() -> Value {
    Value::Object(Map::new())
}

/// The name of a keyed list item inside a set.
fn item_name(keys: &[&str], item: &Value) -> String {
    let named: Map<String, Value> =
        keys.iter().map(|key| ((*key).to_string(), key_value(item, key))).collect();
    format!("k:{}", Value::Object(named))
}

/// Fields every object has and nobody owns.
fn is_ownerless(path: &[&str]) -> bool {
    match path {
        ["apiVersion" | "kind"] => true,
        ["metadata", name] => matches!(
            *name,
            "name"
                | "namespace"
                | "generateName"
                | "uid"
                | "resourceVersion"
                | "creationTimestamp"
                | "deletionTimestamp"
                | "deletionGracePeriodSeconds"
                | "generation"
                | "managedFields"
                | "selfLink"
        ),
        _ => false,
    }
}

/// What differs between two objects: fields set or changed, and fields gone.
#[derive(Debug, Default)]
pub(crate) struct Difference {
    pub(crate) changed: Fields,
    pub(crate) removed: Fields,
}

/// All fields of an object.
pub(crate) fn all_fields(kind: &str, object: &Value) -> Fields {
    difference(kind, &Value::Null, object).changed
}

/// Compares two objects field by field.
pub(crate) fn difference(kind: &str, old: &Value, new: &Value) -> Difference {
    let mut found = Difference::default();
    Comparer { kind }.compare_members(&mut Vec::new(), (old, new), &mut found);
    found
}

struct Comparer<'a> {
    kind: &'a str,
}

impl<'a> Comparer<'a> {
    fn compare_members(
        &self,
        path: &mut Vec<&'a str>,
        (old, new): (&'a Value, &'a Value),
        found: &mut Difference,
    ) {
        let new_map = new.as_object();
        let old_map = old.as_object();
        for (key, value) in new_map.into_iter().flatten() {
            path.push(key);
            if !is_ownerless(path) && !value.is_null() {
                let before = old_map.and_then(|map| map.get(key)).unwrap_or(&Value::Null);
                self.compare(path, format!("f:{key}"), (before, value), found);
            }
            path.pop();
        }
        for (key, value) in old_map.into_iter().flatten() {
            path.push(key);
            let kept = new_map.is_some_and(|map| map.get(key).is_some_and(|new| !new.is_null()));
            if !kept && !is_ownerless(path) && !value.is_null() {
                found.removed.insert(format!("f:{key}"), leaf());
            }
            path.pop();
        }
    }

    fn compare(
        &self,
        path: &mut Vec<&'a str>,
        name: String,
        (old, new): (&'a Value, &'a Value),
        found: &mut Difference,
    ) {
        if old == new {
            return;
        }
        let mut inner = Difference::default();
        let mut leaf_changed = false;
        match new {
            Value::Object(map) if !map.is_empty() && !is_atomic_map(path) => {
                self.compare_members(path, (old, new), &mut inner);
            }
            Value::Array(items) if !items.is_empty() => match list_rule(self.kind, path) {
                ListRule::Keyed(keys) => self.compare_items(path, keys, (old, items), &mut inner),
                ListRule::Set => compare_values(old, items, &mut inner),
                ListRule::Atomic => leaf_changed = true,
            },
            _ => leaf_changed = true,
        }
        if leaf_changed {
            found.changed.insert(name, leaf());
            return;
        }
        if !inner.changed.is_empty() {
            found.changed.insert(name.clone(), Value::Object(inner.changed));
        }
        if !inner.removed.is_empty() {
            found.removed.insert(name, Value::Object(inner.removed));
        }
    }

    fn compare_items(
        &self,
        path: &mut Vec<&'a str>,
        keys: &[&str],
        (old, items): (&'a Value, &'a [Value]),
        found: &mut Difference,
    ) {
        let before = old.as_array().map_or(&[][..], Vec::as_slice);
        for item in items {
            let twin = before.iter().find(|one| same_item(keys, one, item));
            if twin == Some(item) {
                continue;
            }
            let mut inner = Difference::default();
            self.compare_members(path, (twin.unwrap_or(&Value::Null), item), &mut inner);
            if twin.is_none() {
                inner.changed.insert(SELF.to_string(), leaf());
            }
            let name = item_name(keys, item);
            if !inner.removed.is_empty() {
                found.removed.insert(name.clone(), Value::Object(inner.removed));
            }
            found.changed.insert(name, Value::Object(inner.changed));
        }
        for item in before {
            if !items.iter().any(|one| same_item(keys, one, item)) {
                found.removed.insert(item_name(keys, item), leaf());
            }
        }
    }
}

fn compare_values(old: &Value, items: &[Value], found: &mut Difference) {
    let before = old.as_array().map_or(&[][..], Vec::as_slice);
    for item in items.iter().filter(|item| !before.contains(item)) {
        found.changed.insert(format!("v:{item}"), leaf());
    }
    for item in before.iter().filter(|item| !items.contains(item)) {
        found.removed.insert(format!("v:{item}"), leaf());
    }
}

/// Adds all fields of `more`.
pub(crate) fn unite(fields: &mut Fields, more: &Fields) {
    for (name, inner) in more {
        let slot = fields.entry(name.clone()).or_insert_with(leaf);
        if let (Value::Object(slot), Value::Object(inner)) = (slot, inner) {
            unite(slot, inner);
        }
    }
}

/// Takes away all fields of `less`. A leaf there takes whatever is below it.
pub(crate) fn subtract(fields: &mut Fields, less: &Fields) {
    for (name, inner) in less {
        let Some(Value::Object(mine)) = fields.get_mut(name) else { continue };
        let Some(inner) = inner.as_object() else { continue };
        if inner.is_empty() {
            drop_key(fields, name);
        } else if !mine.is_empty() {
            subtract(mine, inner);
            if mine.is_empty() {
                drop_key(fields, name);
            }
        }
    }
}

/// The fields in both sets. A leaf meets whatever lies below the same name in the other set.
pub(crate) fn intersect(left: &Fields, right: &Fields) -> Fields {
    let mut both = Map::new();
    for (name, mine) in left.iter().filter(|(name, _)| *name != SELF) {
        let (Value::Object(mine), Some(Value::Object(theirs))) = (mine, right.get(name)) else {
            continue;
        };
        if mine.is_empty() || theirs.is_empty() {
            both.insert(name.clone(), leaf());
            continue;
        }
        let inner = intersect(mine, theirs);
        if !inner.is_empty() {
            both.insert(name.clone(), Value::Object(inner));
        }
    }
    both
}

/// The fields as the paths error messages show.
pub(crate) fn paths(fields: &Fields) -> Vec<String> {
    let mut found = Vec::new();
    collect_paths("", fields, &mut found);
    found
}

fn collect_paths(prefix: &str, fields: &Fields, found: &mut Vec<String>) {
    for (name, inner) in fields {
        let step = match name.split_at_checked(2) {
            Some(("f:", field)) => format!(".{field}"),
            Some(("v:", value)) => format!("[={value}]"),
            Some(("k:", keys)) => {
                let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let pairs: Vec<String> = keys.iter().map(|(k, v)| format!("{k}={v}")).collect();
                format!("[{}]", pairs.join(","))
            }
            _ => continue,
        };
        let path = format!("{prefix}{step}");
        match inner.as_object() {
            Some(inner) if !inner.is_empty() => collect_paths(&path, inner, found),
            _ => found.push(path),
        }
    }
}

/// Removes the fields from an object. `kept` are the fields others own: a list item in which
/// somebody else owns something stays, without the fields that go.
pub(crate) fn erase(object: &mut Value, fields: &Fields, kept: &Fields) {
    for (name, inner) in fields {
        let inner = inner.as_object();
        let is_leaf = inner.is_none_or(Map::is_empty);
        let empty = Map::new();
        let kept_inner = kept.get(name).and_then(Value::as_object);
        match (name.split_at_checked(2), &mut *object) {
            (Some(("f:", field)), Value::Object(map)) => {
                let Some(value) = map.get_mut(field) else { continue };
                if let (false, Some(inner)) = (is_leaf, inner) {
                    erase(value, inner, kept_inner.unwrap_or(&empty));
                }
                if is_leaf || crate::json::is_blank(value) {
                    drop_key(map, field);
                }
            }
            (Some(("v:", text)), Value::Array(list)) => {
                let gone: Value = serde_json::from_str(text).unwrap_or(Value::Null);
                list.retain(|value| *value != gone);
            }
            (Some(("k:", keys)), Value::Array(list)) => {
                let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let fits = |item: &Value| keys.iter().all(|(k, v)| key_value(item, k) == *v);
                let whole = is_leaf || inner.is_some_and(|inner| inner.contains_key(SELF));
                if whole && kept_inner.is_none() {
                    list.retain(|item| !fits(item));
                } else if let (Some(item), Some(inner)) =
                    (list.iter_mut().find(|item| fits(item)), inner)
                {
                    erase(item, inner, kept_inner.unwrap_or(&empty));
                }
            }
            _ => {}
        }
    }
}
