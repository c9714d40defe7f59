//! Events have two faces over one stored object: `v1` (the stored form) and `events.k8s.io/v1`.

use crate::json::{drop_key, object};
use crate::kinds::Kind;
use serde_json::{Value, json};
use std::sync::Arc;

/// Stored name and name in `events.k8s.io/v1`, where they differ.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

fn is_new_face(kind: &Kind) -> bool {
    kind.plural == "events" && kind.group == "events.k8s.io"
}

fn rename(event: &mut Value, pairs: impl Iterator<Item = (&'static str, &'static str)>) {
    let map = object(event);
    for (from, to) in pairs {
        if let Some(value) = drop_key(map, from) {
            map.insert(to.to_string(), value);
        }
    }
}

/// The stored object as clients of this kind see it.
pub(crate) fn outward(kind: &Kind, stored: &Arc<Value>) -> Arc<Value> {
    if !is_new_face(kind) {
        return Arc::clone(stored);
    }
    let mut event = stored.as_ref().clone();
    rename(&mut event, RENAMED.into_iter());
    event["apiVersion"] = json!("events.k8s.io/v1");
    Arc::new(event)
}

/// What a client of this kind sent, in the stored form.
pub(crate) fn inward(kind: &Kind, mut sent: Value) -> Value {
    if is_new_face(kind) {
        rename(&mut sent, RENAMED.into_iter().map(|(stored, new)| (new, stored)));
        sent["apiVersion"] = json!("v1");
    }
    sent
}

/// Members every stored Event has.
pub(crate) fn fill(event: &mut Value) {
    let map = object(event);
    for (key, value) in [
        ("source", json!({})),
        ("firstTimestamp", Value::Null),
        ("lastTimestamp", Value::Null),
        ("eventTime", Value::Null),
        ("reportingComponent", json!("")),
        ("reportingInstance", json!("")),
    ] {
        map.entry(key.to_string()).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::by_object;

    #[test]
    fn both_faces_show_one_event() {
        let new = by_object("events.k8s.io/v1", "Event").unwrap();
        let sent = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "note": "hello",
            "reason": "Tested", "regarding": {"kind": "Pod"}, "reportingController": "c"});
        let stored = inward(new, sent.clone());
        assert_eq!(stored["message"], "hello");
        assert_eq!(stored["involvedObject"]["kind"], "Pod");
        assert_eq!(stored["reportingComponent"], "c");
        assert_eq!(outward(new, &Arc::new(stored)).as_ref(), &sent);
    }
}
