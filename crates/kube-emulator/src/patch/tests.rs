use super::apply::{Force, Writer, applied, record_update};
use super::*;
use crate::kinds::by_plural;
use crate::route::Part;
use serde_json::json;

fn service() -> &'static Kind {
    by_plural("services").unwrap()
}

fn run(live: &Value, patch: Patch) -> Value {
    patched(service(), live, &patch).unwrap()
}

#[test]
fn json_patch_operations() {
    let live = json!({"a": {"b/c": 1}, "list": [1, 2]});
    let patch = json!([
        {"op": "test", "path": "/a/b~1c", "value": 1},
        {"op": "add", "path": "/list/-", "value": 3},
        {"op": "add", "path": "/list/0", "value": 0},
        {"op": "replace", "path": "/a/b~1c", "value": 2},
        {"op": "copy", "from": "/a", "path": "/copy"},
        {"op": "move", "from": "/a", "path": "/moved"},
        {"op": "remove", "path": "/list/1"},
    ]);
    let want = json!({"list": [0, 2, 3], "copy": {"b/c": 2}, "moved": {"b/c": 2}});
    assert_eq!(run(&live, Patch::Json(patch)), want);
    for (bad, unfit) in [
        (json!([{"op": "test", "path": "/a", "value": 1}]), true),
        (json!([{"op": "remove", "path": "/none"}]), true),
        (json!([{"op": "add", "path": "/none/x", "value": 1}]), true),
        (json!([{"op": "dance", "path": "/a"}]), false),
        (json!({"a": 1}), false),
    ] {
        let fault = patched(service(), &live, &Patch::Json(bad)).unwrap_err();
        assert_eq!(matches!(fault, PatchFault::Unfit(_)), unfit, "{fault:?}");
    }
}

#[test]
fn merge_patch_replaces_lists_and_removes_nulls() {
    let live = json!({"a": {"b": 1, "c": 2}, "list": [1, 2]});
    let patch = json!({"a": {"b": null, "d": {"e": 1, "f": null}}, "list": [3]});
    let want = json!({"a": {"c": 2, "d": {"e": 1}}, "list": [3]});
    assert_eq!(run(&live, Patch::Merge(patch)), want);
}

fn two_ports() -> Value {
    json!({"spec": {"ports": [
        {"name": "a", "port": 53, "protocol": "TCP", "nodePort": 30001},
        {"name": "b", "port": 53, "protocol": "UDP", "nodePort": 30002},
        {"name": "c", "port": 80, "protocol": "TCP"},
    ]}})
}

#[test]
fn strategic_patch_knows_ports_by_number_and_protocol() {
    let patch = json!({"spec": {"ports": [
        {"port": 53, "protocol": "UDP", "name": "dns"}, {"port": 80, "targetPort": 8080},
    ]}});
    let next = run(&two_ports(), Patch::Strategic(patch));
    assert_eq!(next["spec"]["ports"][0]["name"], "a");
    assert_eq!(next["spec"]["ports"][1]["name"], "dns");
    assert_eq!(next["spec"]["ports"][1]["nodePort"], 30002);
    assert_eq!(next["spec"]["ports"][2]["targetPort"], 8080);
    assert_eq!(next["spec"]["ports"].as_array().unwrap().len(), 3);
}

#[test]
fn strategic_patch_changes_the_protocol_of_a_lone_port() {
    let live = json!({"spec": {"ports": [{"port": 80, "protocol": "TCP"}]}});
    let change = json!({"spec": {"$setElementOrder/ports": [{"port": 80}],
        "ports": [{"port": 80, "protocol": "UDP"}]}});
    let next = run(&live, Patch::Strategic(change));
    assert_eq!(next["spec"]["ports"], json!([{"port": 80, "protocol": "UDP"}]));
    let addition = json!({"spec": {"$setElementOrder/ports": [{"port": 80}, {"port": 80}],
        "ports": [{"port": 80, "protocol": "UDP"}]}});
    let next = run(&live, Patch::Strategic(addition));
    assert_eq!(next["spec"]["ports"].as_array().unwrap().len(), 2);
}

#[test]
fn strategic_patch_directives() {
    let live = json!({
        "metadata": {"finalizers": ["a", "b"], "labels": {"x": "1"},
            "ownerReferences": [{"uid": "1", "name": "o"}]},
        "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}, {"port": 81}]},
        "status": {"conditions": [{"type": "A", "status": "True"}]},
    });
    let patch = json!({
        "metadata": {
            "$deleteFromPrimitiveList/finalizers": ["a"],
            "$setElementOrder/finalizers": ["c", "b"],
            "finalizers": ["c"],
            "labels": {"x": null, "y": "2"},
            "ownerReferences": [{"uid": "2"}],
        },
        "spec": {"selector": {"$patch": "replace", "c": "d"},
            "ports": [{"port": 81, "$patch": "delete"}, {"port": 82}],
            "$setElementOrder/ports": [{"port": 82}, {"port": 80}]},
        "status": {"conditions": [{"type": "A", "status": "False"}, {"type": "B"}]},
    });
    let next = run(&live, Patch::Strategic(patch));
    assert_eq!(next["metadata"]["finalizers"], json!(["c", "b"]));
    assert_eq!(next["metadata"]["labels"], json!({"y": "2"}));
    assert_eq!(next["metadata"]["ownerReferences"].as_array().unwrap().len(), 2);
    assert_eq!(next["spec"]["selector"], json!({"c": "d"}));
    assert_eq!(next["spec"]["ports"], json!([{"port": 82}, {"port": 80}]));
    let want = json!([{"type": "A", "status": "False"}, {"type": "B"}]);
    assert_eq!(next["status"]["conditions"], want);
}

fn writer(manager: &str) -> Writer<'_> {
    let time = "2024-01-01T00:00:00Z".to_string();
    Writer { manager, api_version: "v1".to_string(), part: Part::Main, time }
}

fn apply(manager: &str, live: &Value, config: &Value, force: Force) -> Value {
    applied("Service", &writer(manager), live, config, force).unwrap()
}

#[test]
fn applying_less_removes_what_only_this_manager_owned() {
    let first = json!({"metadata": {"labels": {"a": "1", "b": "1"}},
        "spec": {"ports": [{"name": "x", "port": 80}, {"name": "y", "port": 81}]}});
    let live = apply("one", &Value::Null, &first, Force::Refuse);
    let mut live = live;
    live["spec"]["ports"][1]["nodePort"] = json!(30000);
    let second = json!({"metadata": {"labels": {"a": "1"}},
        "spec": {"ports": [{"name": "x", "port": 80}]}});
    let live = apply("one", &live, &second, Force::Refuse);
    assert_eq!(live["metadata"]["labels"], json!({"a": "1"}));
    assert_eq!(live["spec"]["ports"], json!([{"name": "x", "port": 80}]));
}

#[test]
fn fields_of_others_stay_and_clash() {
    let live = apply("one", &Value::Null, &json!({"spec": {"a": 1, "b": 1}}), Force::Refuse);
    let live = apply("two", &live, &json!({"spec": {"a": 1, "c": 1}}), Force::Refuse);
    let live = apply("one", &live, &json!({"spec": {"b": 1}}), Force::Refuse);
    assert_eq!(live["spec"], json!({"a": 1, "b": 1, "c": 1}), "two still owns a");
    let change = json!({"spec": {"c": 2}});
    let clashes = applied("Service", &writer("one"), &live, &change, Force::Refuse).unwrap_err();
    assert_eq!(clashes[0].manager, "two");
    assert_eq!(clashes[0].fields, [".spec.c"]);
    let live = apply("one", &live, &change, Force::TakeOver);
    assert_eq!(live["spec"], json!({"a": 1, "c": 2}), "b was given up");
    let live = apply("two", &live, &json!({}), Force::Refuse);
    assert_eq!(live["spec"], json!({"c": 2}), "c belongs to one now");
}

#[test]
fn updates_take_fields_over() {
    let mut live = apply("one", &Value::Null, &json!({"spec": {"a": 1, "b": 1}}), Force::Refuse);
    let entries = live["metadata"]["managedFields"].as_array().unwrap().clone();
    let mut next = live.clone();
    next["spec"]["a"] = json!(2);
    let owners = record_update("Service", &writer("ed"), &entries, (&live, &next));
    assert_eq!(owners[0]["fieldsV1"], json!({"f:spec": {"f:b": {}}}));
    assert_eq!(owners[1]["manager"], "ed");
    assert_eq!(owners[1]["fieldsV1"], json!({"f:spec": {"f:a": {}}}));
    next["metadata"]["managedFields"] = json!(owners);
    let mut less = next.clone();
    less["spec"].as_object_mut().unwrap().remove("a");
    let later = Writer { time: "2025-01-01T00:00:00Z".to_string(), ..writer("one") };
    let mut entries = owners.clone();
    entries[0]["operation"] = json!("Update");
    let left = record_update("Service", &later, &entries, (&next, &less));
    assert_eq!(left, entries[..1], "who takes a field away has nothing new");
    live = next;
    let change = json!({"spec": {"a": 3, "b": 1}});
    assert!(applied("Service", &writer("one"), &live, &change, Force::Refuse).is_err());
    let same = json!({"spec": {"a": 2, "b": 1}});
    assert!(applied("Service", &writer("one"), &live, &same, Force::Refuse).is_ok());
}

#[test]
fn revisions_alone_change_no_owner() {
    let old = json!({"metadata": {"name": "a", "resourceVersion": "1", "finalizers": ["x", "y"]}});
    let new = json!({"metadata": {"name": "a", "resourceVersion": "2", "finalizers": ["y", "x"]}});
    assert!(record_update("Service", &writer("ed"), &[], (&old, &new)).is_empty());
}
