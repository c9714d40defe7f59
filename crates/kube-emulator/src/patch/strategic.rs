//! Strategic merge patch with its directives.

use super::PatchFault;
use super::rules::{ListRule, list_rule, same_item};
use crate::json::{drop_key, object};
use serde_json::{Map, Value};

const ORDER: &str = "$setElementOrder/";
const DELETE_VALUES: &str = "$deleteFromPrimitiveList/";

pub(super) fn patched(kind: &str, live: &Value, patch: &Value) -> Result<Value, PatchFault> {
    let Some(members) = patch.as_object() else {
        return Err(PatchFault::Malformed("a strategic merge patch is an object".to_string()));
    };
    let mut target = live.clone();
    Merger { kind }.merge_map(&mut Vec::new(), object(&mut target), members);
    Ok(target)
}

struct Merger<'a> {
    kind: &'a str,
}

impl<'a> Merger<'a> {
    fn merge_map(
        &self,
        path: &mut Vec<&'a str>,
        live: &mut Map<String, Value>,
        patch: &'a Map<String, Value>,
    ) {
        match patch.get("$patch").and_then(Value::as_str) {
            Some("delete") => return live.clear(),
            Some("replace") => {
                live.clear();
                live.extend(plain_members(patch).map(|(key, value)| (key.clone(), value.clone())));
                return;
            }
            _ => {}
        }
        if let Some(retained) = patch.get("$retainKeys").and_then(Value::as_array) {
            live.retain(|key, _| retained.iter().any(|name| name.as_str() == Some(key)));
        }
        for (key, value) in patch {
            if let Some(field) = key.strip_prefix(DELETE_VALUES) {
                delete_values(live, field, value);
            }
        }
        for (key, value) in plain_members(patch) {
            path.push(key);
            let order = patch.get(&format!("{ORDER}{key}"));
            self.merge_member(path, live, (key, value), order);
            path.pop();
        }
        for (key, value) in patch {
            if let Some(field) = key.strip_prefix(ORDER) {
                path.push(field);
                let rule = list_rule(self.kind, path);
                path.pop();
                if let Some(Value::Array(list)) = live.get_mut(field) {
                    reorder(list, rule, value.as_array().map_or(&[], Vec::as_slice));
                }
            }
        }
    }

    fn merge_member(
        &self,
        path: &mut Vec<&'a str>,
        live: &mut Map<String, Value>,
        (key, value): (&str, &'a Value),
        order: Option<&Value>,
    ) {
        match value {
            Value::Null => {
                drop_key(live, key);
            }
            Value::Object(members) => {
                if members.get("$patch").and_then(Value::as_str) == Some("delete") {
                    drop_key(live, key);
                    return;
                }
                let slot = live.entry(key.to_string()).or_insert(Value::Null);
                self.merge_map(path, object(slot), members);
            }
            Value::Array(items) => {
                let slot = live.entry(key.to_string()).or_insert(Value::Null);
                self.merge_list(path, slot, items, order);
            }
            scalar => {
                live.insert(key.to_string(), scalar.clone());
            }
        }
    }

    fn merge_list(
        &self,
        path: &mut Vec<&'a str>,
        slot: &mut Value,
        items: &'a [Value],
        order: Option<&Value>,
    ) {
        let directive =
            |item: &Value| item.get("$patch").and_then(Value::as_str) == Some("replace");
        let replace = items.iter().any(directive);
        if replace || !slot.is_array() {
            *slot = Value::Array(Vec::new());
        }
        let Value::Array(list) = slot else { return };
        match list_rule(self.kind, path) {
            ListRule::Atomic => {
                *list = items.iter().filter(|item| !directive(item)).cloned().collect();
            }
            ListRule::Set => {
                for item in items {
                    if !list.contains(item) {
                        list.push(item.clone());
                    }
                }
            }
            ListRule::Keyed(keys) => {
                for item in items.iter().filter(|item| !directive(item)) {
                    self.merge_item(path, list, item, (keys, order));
                }
            }
        }
    }

    fn merge_item(
        &self,
        path: &mut Vec<&'a str>,
        list: &mut Vec<Value>,
        item: &'a Value,
        (keys, order): (&[&str], Option<&Value>),
    ) {
        let Some(members) = item.as_object() else { return };
        if members.get("$patch").and_then(Value::as_str) == Some("delete") {
            list.retain(|live| !fits_given_keys(keys, live, item));
            return;
        }
        let place = find_item(list, item, keys, order);
        let at = place.unwrap_or_else(|| {
            list.push(Value::Object(Map::new()));
            list.len() - 1
        });
        self.merge_map(path, object(&mut list[at]), members);
    }
}

/// Finds the live item a patch item means. All keys must agree; but where clients know a list by
/// its first key only (Service ports), a lone item with that key is the one that is meant, unless
/// the order that came with the patch shows that there shall be two.
fn find_item(list: &[Value], item: &Value, keys: &[&str], order: Option<&Value>) -> Option<usize> {
    if let Some(at) = list.iter().position(|live| same_item(keys, live, item)) {
        return Some(at);
    }
    let (first, rest) = keys.split_first()?;
    if rest.is_empty() {
        return None;
    }
    let with_first = |value: &&Value| value.get(*first) == item.get(*first);
    let live_count = list.iter().filter(with_first).count();
    let ordered = order.and_then(Value::as_array);
    let wanted = ordered.map(|order| order.iter().filter(with_first).count());
    let names_rest = rest.iter().any(|key| item.get(*key).is_some());
    let lone = live_count == 1 && (wanted == Some(1) || !names_rest);
    lone.then(|| list.iter().position(|live| with_first(&live))).flatten()
}

/// Whether a live item has the keys a deletion names; keys it does not name do not count.
fn fits_given_keys(keys: &[&str], live: &Value, item: &Value) -> bool {
    let named = keys.iter().filter(|key| item.get(**key).is_some());
    named.clone().count() > 0 && named.clone().all(|key| live.get(*key) == item.get(*key))
}

fn plain_members(patch: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    patch.iter().filter(|(key, _)| !key.starts_with('$'))
}

fn delete_values(live: &mut Map<String, Value>, field: &str, values: &Value) {
    let gone = values.as_array().map_or(&[][..], Vec::as_slice);
    if let Some(Value::Array(list)) = live.get_mut(field) {
        list.retain(|value| !gone.contains(value));
    }
}

/// Puts items in the wanted order; items the order does not name stay behind them.
fn reorder(list: &mut [Value], rule: ListRule, order: &[Value]) {
    let rank = |item: &Value| {
        let place = match rule {
            ListRule::Keyed(keys) => {
                order.iter().position(|wanted| fits_given_keys(keys, item, wanted))
            }
            ListRule::Set => order.iter().position(|wanted| wanted == item),
            ListRule::Atomic => Some(0),
        };
        place.unwrap_or(usize::MAX)
    };
    list.sort_by_key(rank);
}
