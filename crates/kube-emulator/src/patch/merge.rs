//! JSON merge patch.

use crate::json::{drop_key, object};
use serde_json::Value;

pub(super) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(members) = patch else {
        *target = patch.clone();
        return;
    };
    let map = object(target);
    for (key, value) in members {
        match value {
            Value::Null => {
                drop_key(map, key);
            }
            _ => merge(map.entry(key.clone()).or_insert(Value::Null), value),
        }
    }
}
