//! What of a resource differs between two moments.

use super::form::{bare, parts};
use serde_json::Value;
use std::collections::BTreeSet;

/// What differs, as it was and as it is: parts of lists. It is the whole resource where something
/// else differs, where it is gone, and where Azure was still at work at it: a write that cancels
/// another one takes away what that one was about to make.
pub(super) fn changed<'v>(was: &'v Value, is: Option<&'v Value>) -> Vec<&'v Value> {
    let Some(is) = is else { return vec![was] };
    let lists: BTreeSet<&str> = lists(was).chain(lists(is)).collect();
    if rest(was, &lists) != rest(is, &lists) {
        return vec![was, is];
    }
    let mut found = Vec::new();
    for list in lists {
        let (old, new) = (parts(was, list), parts(is, list));
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let pair = [old.get(name).copied(), new.get(name).copied()];
            let [before, after] = pair.map(|part| part.map(bare));
            if before != after {
                found.extend(pair.into_iter().flatten());
            }
        }
    }
    let rests = matches!(was["properties"]["provisioningState"].as_str(), Some("Succeeded") | None);
    if rests || found.is_empty() { found } else { vec![was, is] }
}

/// The fields of a resource that are lists of parts with names.
fn lists(resource: &Value) -> impl Iterator<Item = &str> {
    let inside = resource["properties"].as_object().into_iter().flatten();
    let lists = inside.filter(|(_, value)| {
        let all = value.as_array().filter(|all| !all.is_empty());
        all.is_some_and(|all| all.iter().all(|part| part["name"].is_string()))
    });
    lists.map(|(key, _)| key.as_str())
}

/// A resource without these lists.
fn rest(resource: &Value, lists: &BTreeSet<&str>) -> Value {
    let mut rest = bare(resource);
    if let Some(inside) = rest.get_mut("properties").and_then(Value::as_object_mut) {
        inside.retain(|key, _| !lists.contains(key.as_str()));
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn balancer(state: &str, rules: &Value) -> Value {
        json!({"etag": state, "tags": {"a": "b"}, "properties": {"provisioningState": state,
            "probes": [{"name": "p", "properties": {"port": 1}}], "loadBalancingRules": rules}})
    }

    fn rule(name: &str, minutes: u64) -> Value {
        json!({"name": name, "etag": minutes, "properties": {"idleTimeoutInMinutes": minutes}})
    }

    #[test]
    fn what_differs_is_a_part_as_it_was_and_as_it_is() {
        let was = balancer("Succeeded", &json!([rule("one", 4), rule("two", 4)]));
        let is = balancer("Updating", &json!([rule("two", 7), rule("one", 4)]));
        let parts = [rule("two", 4), rule("two", 7)];
        assert_eq!(changed(&was, Some(&is)), parts.iter().collect::<Vec<_>>());
        let is = balancer("Updating", &json!([]));
        let parts = [rule("one", 4), rule("two", 4)];
        assert_eq!(changed(&was, Some(&is)), parts.iter().collect::<Vec<_>>());
        assert_eq!(changed(&was, Some(&was)), Vec::<&Value>::new());
        assert_eq!(changed(&was, None), [&was]);
    }

    #[test]
    fn all_of_it_differs_where_another_field_does_and_where_azure_was_at_work() {
        let was = balancer("Updating", &json!([rule("one", 4)]));
        let is = balancer("Updating", &json!([rule("one", 7)]));
        assert_eq!(changed(&was, Some(&is)), [&was, &is]);
        let mut tagged = balancer("Succeeded", &json!([rule("one", 4)]));
        let was = tagged.clone();
        tagged["tags"]["a"] = json!("c");
        assert_eq!(changed(&was, Some(&tagged)), [&was, &tagged]);
    }
}
