//! Resources in forms that can be compared.

use crate::scene::objects::{OTHER_ADDRESS, OTHER_CLUSTERS, is_theirs};
use serde_json::Value;
use std::collections::BTreeMap;

/// What Azure fills in by itself.
const FILLED_IN: [&str; 9] = [
    "etag",
    "provisioningState",
    "resourceGuid",
    "loadBalancingRules",
    "inboundNatRules",
    "outboundRules",
    "backendIPConfigurations",
    "ipConfiguration",
    "ipConfigurations",
];

/// A value's text, which is empty where it is none.
#[must_use]
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// The conditions of an object's status.
pub fn conditions(object: &Value) -> impl Iterator<Item = &Value> {
    object["status"]["conditions"].as_array().into_iter().flatten()
}

/// Elements of one collection of a resource, by name.
#[must_use]
pub fn parts<'a>(resource: &'a Value, collection: &str) -> BTreeMap<String, &'a Value> {
    let items = resource["properties"][collection].as_array();
    let items = items.into_iter().flatten();
    items.filter_map(|item| Some((item["name"].as_str()?.to_owned(), item))).collect()
}

/// Whether a path or an id leads through this collection. Azure compares ids without regard to
/// case, and a client may write them as it likes.
#[must_use]
pub fn is_in(id: &str, collection: &str) -> bool {
    id.split('/').any(|part| part.eq_ignore_ascii_case(collection))
}

/// What a security rule says as one value, in a field, or as several, in the field of its plural.
pub fn values<'a>(rule: &'a Value, one: &str, several: &str) -> impl Iterator<Item = &'a str> {
    let inside = &rule["properties"];
    let list = inside[several].as_array().into_iter().flatten();
    list.chain([&inside[one]]).filter_map(Value::as_str)
}

/// Where a security rule leads.
pub fn destinations(rule: &Value) -> impl Iterator<Item = &str> {
    values(rule, "destinationAddressPrefix", "destinationAddressPrefixes")
}

/// Addresses that a Service's status tells.
pub fn told(service: &Value) -> impl Iterator<Item = &str> {
    let ingress = service["status"]["loadBalancer"]["ingress"].as_array();
    ingress.into_iter().flatten().filter_map(|entry| entry["ip"].as_str())
}

/// The seconds since 1970 at a time as the API server writes it.
pub(super) fn seconds(time: &str) -> Option<u64> {
    let number = |from: usize, to: usize| time.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    // Counted from March on, the day that not every year has is the last one of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    let days = year * 365 + leap_days + (month * 153 + 2) / 5 + day;
    let hours = days.checked_sub(719_469)? * 24 + number(11, 13)?;
    Some((hours * 60 + number(14, 16)?) * 60 + number(17, 19)?)
}

/// A resource without what Azure fills in by itself.
#[must_use]
pub fn plain(resource: &Value) -> Value {
    let mut out = resource.clone();
    if let Some(fields) = out.as_object_mut() {
        for key in ["etag", "provisioningState"] {
            fields.shift_remove(key);
        }
        if let Some(inside) = fields.get_mut("properties").and_then(Value::as_object_mut) {
            inside.shift_remove("provisioningState");
            inside.shift_remove("resourceGuid");
        }
    }
    out
}

/// A part without what Azure fills in, ids in small letters.
#[must_use]
pub fn bare(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(key, _)| !FILLED_IN.contains(&key.as_str()));
            let kept = kept.map(|(key, value)| match value.as_str() {
                // Letter case of ids is nobody's.
                Some(id) if key == "id" => (key.clone(), Value::String(id.to_lowercase())),
                _ => (key.clone(), bare(value)),
            });
            Value::Object(kept.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(bare).collect()),
        other => other.clone(),
    }
}

/// Whether a part is as it was written down with [`bare`], but for what Azure fills in.
#[must_use]
pub fn same(part: &Value, was: &Value) -> bool {
    match (part, was) {
        (Value::Object(part), Value::Object(was)) => {
            let mut kept = part.iter().filter(|(key, _)| !FILLED_IN.contains(&key.as_str()));
            let as_it_was = kept.all(|(key, value)| match (value.as_str(), was.get(key)) {
                (Some(id), Some(was)) if key == "id" => {
                    was.as_str().is_some_and(|was| was.eq_ignore_ascii_case(id))
                }
                (_, Some(was)) => same(value, was),
                (_, None) => value.is_null(),
            });
            as_it_was && was.iter().all(|(key, was)| was.is_null() || part.contains_key(key))
        }
        (Value::Array(part), Value::Array(was)) => {
            part.len() == was.len() && part.iter().zip(was).all(|(part, was)| same(part, was))
        }
        _ => part == was,
    }
}

/// What of a resource is not ours: parts under others' names, fields and tags that nobody of ours
/// wrote.
#[must_use]
pub fn foreign(resource: &Value) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let inside = resource["properties"].as_object();
    for (key, value) in inside.into_iter().flatten() {
        if is_theirs(key) {
            found.insert(key.clone(), value.clone());
        }
        for part in value.as_array().into_iter().flatten() {
            let name = part["name"].as_str().unwrap_or("");
            if is_theirs(name) {
                found.insert(format!("{key}/{name}"), bare(part));
            } else if name == OTHER_CLUSTERS {
                // Controllers share such rules; what counts is where they lead.
                let inside = &part["properties"];
                let to =
                    [&inside["destinationAddressPrefix"], &inside["destinationAddressPrefixes"]];
                let open = to.iter().any(|to| to.to_string().contains(OTHER_ADDRESS));
                found.insert(format!("{key}/{name}"), Value::Bool(open));
            }
        }
    }
    for (key, value) in resource["tags"].as_object().into_iter().flatten() {
        if is_theirs(key) {
            found.insert(format!("tag {key}"), value.clone());
        }
    }
    found
}

/// Takes a field out of what stands at a place.
pub(super) fn drop_field(resource: &mut Value, place: &str, key: &str) {
    if let Some(fields) = resource.pointer_mut(place).and_then(Value::as_object_mut) {
        fields.shift_remove(key);
    }
}

/// Takes the tags that are not others' off a security group that container load balancers do
/// without: it is written only while Services move over nodes. Whether it comes to that before they
/// turn back depends on when Azure answers. Tags that were written then stay: Azure takes none off
/// by itself, and once the Services are back nothing writes the group.
pub(super) fn drop_tags_of_ours(group: &mut Value) {
    if let Some(tags) = group.pointer_mut("/tags").and_then(Value::as_object_mut) {
        tags.retain(|key, _| is_theirs(key));
    }
    if group["tags"].as_object().is_some_and(serde_json::Map::is_empty) {
        drop_field(group, "", "tags");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_ours_is_told_by_its_name() {
        let balancer = json!({"tags": {"theirs": "x", "k": "y"}, "properties": {
            "theirsToo": 1, "probes": [{"name": "ours"}],
            "outboundRules": [{"name": "theirs-a", "etag": "1", "properties": {"p": 1}}]}});
        let found = foreign(&balancer);
        let keys: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(keys, ["outboundRules/theirs-a", "tag theirs", "theirsToo"]);
        assert_eq!(
            found["outboundRules/theirs-a"],
            json!({"name": "theirs-a", "properties": {"p": 1}})
        );
    }

    #[test]
    fn times_are_read_to_the_second() {
        assert_eq!(seconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(seconds("2023-11-14T22:13:20Z"), Some(1_700_000_000));
        assert_eq!(seconds("2024-02-29T00:00:00Z"), Some(1_709_164_800));
        assert_eq!(seconds("soon"), None);
    }

    #[test]
    fn a_security_group_without_our_tags_keeps_those_of_others() {
        let tagged = |tags: Value| {
            let mut group = json!({"type": "g", "tags": tags});
            drop_tags_of_ours(&mut group);
            group
        };
        assert_eq!(tagged(json!({"cost": "7"})), json!({"type": "g"}));
        let theirs = json!({"type": "g", "tags": {"theirs": "x"}});
        assert_eq!(tagged(json!({"cost": "7", "theirs": "x"})), theirs);
        let mut bare = json!({"type": "g"});
        drop_tags_of_ours(&mut bare);
        assert_eq!(bare, json!({"type": "g"}));
    }
}
