//! Who owns which field (`managedFields`), and applying a configuration (server-side apply).

use super::fields::{self, Fields};
use super::rules::{ListRule, is_atomic_map, list_rule, same_item};
use crate::json::{child, drop_key, items, text};
use crate::route::Part;
use serde_json::{Map, Value, json};

/// Who writes, and how the writing is recorded.
#[derive(Debug, Clone)]
pub(crate) struct Writer<'a> {
    pub(crate) manager: &'a str,
    pub(crate) api_version: String,
    pub(crate) part: Part,
    pub(crate) time: String,
}

impl Writer<'_> {
    fn subresource(&self) -> &'static str {
        match self.part {
            Part::Main => "",
            Part::Status => "status",
            Part::Finalize => "finalize",
        }
    }

    fn is_entry(&self, entry: &Value, operation: &str) -> bool {
        text(entry, "/manager") == self.manager
            && text(entry, "/operation") == operation
            && text(entry, "/apiVersion") == self.api_version
            && text(entry, "/subresource") == self.subresource()
    }

    fn entry(&self, operation: &str, owned: Fields) -> Value {
        let mut entry = json!({
            "manager": self.manager, "operation": operation, "apiVersion": self.api_version,
            "time": self.time, "fieldsType": "FieldsV1", "fieldsV1": owned,
        });
        if !self.subresource().is_empty() {
            entry["subresource"] = json!(self.subresource());
        }
        entry
    }
}

/// A field somebody else owns with another value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Clash {
    pub(crate) manager: String,
    pub(crate) api_version: String,
    pub(crate) fields: Vec<String>,
}

/// What to do about clashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Force {
    /// Refuse.
    Refuse,
    /// Take the fields over.
    TakeOver,
}

fn owned(entry: &Value) -> Fields {
    entry.get("fieldsV1").and_then(Value::as_object).cloned().unwrap_or_default()
}

fn take_away(entry: &mut Value, gone: &[&Fields]) -> bool {
    let mut left = owned(entry);
    let before = left.clone();
    for fields in gone {
        fields::subtract(&mut left, fields);
    }
    if left != before {
        entry["fieldsV1"] = Value::Object(left.clone());
    }
    !left.is_empty()
}

/// The entries after an ordinary write. `base` are the entries before it.
pub(crate) fn record_update(
    kind: &str,
    writer: &Writer<'_>,
    base: &[Value],
    (old, new): (&Value, &Value),
) -> Vec<Value> {
    let difference = fields::difference(kind, old, new);
    if difference.changed.is_empty() && difference.removed.is_empty() {
        return base.to_vec();
    }
    // Who only takes fields away owns none for it: no entry is new, and none is of a new time.
    let takes_only = difference.changed.is_empty();
    let mut entries = Vec::new();
    let mut mine = None;
    for entry in base {
        let mut entry = entry.clone();
        if writer.is_entry(&entry, "Update") && !takes_only {
            let mut left = owned(&entry);
            fields::subtract(&mut left, &difference.removed);
            mine = Some(left);
            continue;
        }
        if take_away(&mut entry, &[&difference.changed, &difference.removed]) {
            entries.push(entry);
        }
    }
    let mut mine = mine.unwrap_or_default();
    fields::unite(&mut mine, &difference.changed);
    if !mine.is_empty() {
        entries.push(writer.entry("Update", mine));
    }
    entries
}

/// The object after a manager applied its configuration to it.
pub(crate) fn applied(
    kind: &str,
    writer: &Writer<'_>,
    live: &Value,
    config: &Value,
    force: Force,
) -> Result<Value, Vec<Clash>> {
    let mut config = config.clone();
    if let Some(metadata) = config.get_mut("metadata").and_then(Value::as_object_mut) {
        drop_key(metadata, "managedFields");
    }
    let wanted = fields::all_fields(kind, &config);
    let mut merged = live.clone();
    merge(kind, &mut Vec::new(), &mut merged, &config);

    let (mine, mut others): (Vec<Value>, Vec<Value>) = items(live, "/metadata/managedFields")
        .iter()
        .cloned()
        .partition(|entry| writer.is_entry(entry, "Apply"));
    let changed = fields::difference(kind, live, &merged).changed;
    let clashes: Vec<Clash> = others.iter().filter_map(|entry| clash(entry, &changed)).collect();
    if !clashes.is_empty() && force == Force::Refuse {
        return Err(clashes);
    }
    others.retain_mut(|entry| clash(entry, &changed).is_none() || take_away(entry, &[&changed]));

    let mut kept = wanted.clone();
    for entry in &others {
        fields::unite(&mut kept, &owned(entry));
    }
    let previous = mine.first().map(owned).unwrap_or_default();
    let mut gone = previous.clone();
    fields::subtract(&mut gone, &kept);
    fields::erase(&mut merged, &gone, &kept);

    let unchanged = mine.first().filter(|_| previous == wanted).cloned();
    others.push(unchanged.unwrap_or_else(|| writer.entry("Apply", wanted)));
    child(&mut merged, "metadata").insert("managedFields".to_string(), Value::Array(others));
    Ok(merged)
}

fn clash(entry: &Value, changed: &Fields) -> Option<Clash> {
    let both = fields::intersect(changed, &owned(entry));
    (!both.is_empty()).then(|| Clash {
        manager: text(entry, "/manager").to_string(),
        api_version: text(entry, "/apiVersion").to_string(),
        fields: fields::paths(&both),
    })
}

fn merge<'a>(kind: &str, path: &mut Vec<&'a str>, live: &mut Value, config: &'a Value) {
    match (&mut *live, config) {
        (Value::Object(map), Value::Object(members)) if !is_atomic_map(path) => {
            for (key, value) in members.iter().filter(|(_, value)| !value.is_null()) {
                path.push(key);
                merge(kind, path, map.entry(key.clone()).or_insert(Value::Null), value);
                path.pop();
            }
        }
        (Value::Array(list), Value::Array(items)) => match list_rule(kind, path) {
            ListRule::Atomic => *live = config.clone(),
            ListRule::Set => {
                for item in items {
                    if !list.contains(item) {
                        list.push(item.clone());
                    }
                }
            }
            ListRule::Keyed(keys) => {
                for item in items {
                    match list.iter_mut().find(|one| same_item(keys, one, item)) {
                        Some(twin) => merge(kind, path, twin, item),
                        None => list.push(item.clone()),
                    }
                }
            }
        },
        (Value::Null, Value::Object(_)) if !is_atomic_map(path) => {
            *live = Value::Object(Map::new());
            merge(kind, path, live, config);
        }
        _ => *live = config.clone(),
    }
}
