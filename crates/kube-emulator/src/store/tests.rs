use crate::{
    Body, EventType, Failure, Fault, Method, ObjectRef, Part, Patch, Request, Response, Store,
    StoreOptions,
};
use serde_json::{Value, json};

const NOW: u64 = 1_700_000_000_000;
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

fn store() -> Store {
    Store::new(StoreOptions { started_ms: NOW, ..StoreOptions::default() })
}

fn send(store: &mut Store, request: &Request) -> Response {
    store.handle(request, NOW)
}

fn ok(store: &mut Store, request: &Request) -> Value {
    let response = send(store, request);
    assert!(response.code < 300, "{request:?}: {}", response.json());
    response.json()
}

fn refused(store: &mut Store, request: &Request, code: u16, reason: &str) -> Value {
    let response = send(store, request);
    let status = response.json();
    assert_eq!((response.code, &status["reason"]), (code, &json!(reason)), "{status}");
    assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(code)));
    status
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

fn add_maps(store: &mut Store, names: &[&str]) {
    for name in names {
        ok(store, &Request::post(MAPS, &map(name)));
    }
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

fn service(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}})
}

#[test]
fn a_new_store_has_what_every_cluster_has() {
    let mut store = store();
    let list = ok(&mut store, &Request::get("/api/v1/namespaces"));
    assert_eq!(names(&list), ["default", "kube-node-lease", "kube-public", "kube-system"]);
    let first = ok(&mut store, &Request::get(&format!("{SERVICES}/kubernetes")));
    assert_eq!(first["spec"]["clusterIP"], "10.0.0.1");
}

#[test]
fn objects_are_created_with_metadata() {
    let mut store = store();
    let made = ok(&mut store, &Request::post(&format!("{MAPS}?fieldManager=me"), &map("a")));
    assert_eq!(made["metadata"]["creationTimestamp"], "2023-11-14T22:13:20Z");
    assert_eq!(made["metadata"]["namespace"], "default");
    assert!(made["metadata"]["resourceVersion"].is_string());
    refused(&mut store, &Request::post(MAPS, &map("a")), 409, "AlreadyExists");
    refused(&mut store, &Request::post(MAPS, &map("A")), 422, "Invalid");
    refused(&mut store, &Request::post(MAPS, &map("")), 422, "Invalid");
    let elsewhere = "/api/v1/namespaces/none/configmaps";
    refused(&mut store, &Request::post(elsewhere, &map("a")), 404, "NotFound");
    refused(&mut store, &Request::post(SERVICES, &map("a")), 400, "BadRequest");
    let generated = json!({"metadata": {"generateName": "x-"}});
    let made = ok(&mut store, &Request::post(MAPS, &generated));
    let name = made["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("x-") && name.len() == 7, "{name}");
}

#[test]
fn dry_runs_leave_nothing() {
    let mut store = store();
    let before = store.revision();
    let made = ok(&mut store, &Request::post(&format!("{SERVICES}?dryRun=All"), &service("s")));
    assert_eq!(made["spec"]["clusterIP"], "10.0.0.2");
    assert_eq!(store.revision(), before);
    refused(&mut store, &Request::get(&format!("{SERVICES}/s")), 404, "NotFound");
    let made = ok(&mut store, &Request::post(SERVICES, &service("s")));
    assert_eq!(made["spec"]["clusterIP"], "10.0.0.2");
}

#[test]
fn updates_with_an_old_revision_conflict() {
    let mut store = store();
    let first = ok(&mut store, &Request::post(MAPS, &map("a")));
    let path = format!("{MAPS}/a");
    let mut next = first.clone();
    next["data"] = json!({"k": "v"});
    let second = ok(&mut store, &Request::put(&path, &next));
    assert_ne!(first["metadata"]["resourceVersion"], second["metadata"]["resourceVersion"]);
    next["data"] = json!({"k": "w"});
    refused(&mut store, &Request::put(&path, &next), 409, "Conflict");
    let before = store.revision();
    ok(&mut store, &Request::put(&path, &second));
    assert_eq!(store.revision(), before, "nothing changed, nothing is written");
    let wrong = json!({"metadata": {"name": "a", "uid": "other"}});
    refused(&mut store, &Request::put(&path, &wrong), 409, "Conflict");
    refused(&mut store, &Request::put(&path, &map("b")), 400, "BadRequest");
    refused(&mut store, &Request::put(&format!("{MAPS}/z"), &map("z")), 404, "NotFound");
}

#[test]
fn status_is_apart() {
    let mut store = store();
    ok(&mut store, &Request::post(SERVICES, &service("s")));
    let path = format!("{SERVICES}/s");
    let ingress = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}});
    let both = json!({"spec": {"sessionAffinity": "ClientIP"}, "status": ingress});
    let main = ok(&mut store, &Request::patch(&path, MERGE, &both));
    assert_eq!(main["spec"]["sessionAffinity"], "ClientIP");
    assert_eq!(main["status"], json!({"loadBalancer": {}}));
    let more = json!({"metadata": {"finalizers": ["x/y"], "annotations": {"a": "b"}},
        "spec": {"sessionAffinity": "None"}, "status": ingress});
    let status = ok(&mut store, &Request::patch(&format!("{path}/status"), STRATEGIC, &more));
    assert_eq!(status["spec"]["sessionAffinity"], "ClientIP");
    assert_eq!(status["metadata"]["finalizers"], json!(["x/y"]));
    assert_eq!(status["metadata"]["annotations"], json!({"a": "b"}));
    let entry = &status["status"]["loadBalancer"]["ingress"][0];
    assert_eq!(entry, &json!({"ip": "192.0.2.1", "ipMode": "VIP"}));
    let plain = json!({"spec": {"type": "ClusterIP"}});
    ok(&mut store, &Request::patch(&path, MERGE, &plain));
    let late = json!({"status": ingress});
    refused(&mut store, &Request::patch(&format!("{path}/status"), MERGE, &late), 422, "Invalid");
}

#[test]
fn what_is_empty_in_the_metadata_is_left_out() {
    let mut store = store();
    let path = format!("{SERVICES}/s");
    ok(&mut store, &Request::post(SERVICES, &service("s")));
    let merge = |annotations: Value| {
        let body = json!({"metadata": {"annotations": annotations}});
        Request::patch(&format!("{path}?fieldManager=one"), MERGE, &body)
    };
    let with = ok(&mut store, &merge(json!({"a": "b"})));
    assert_eq!(with["metadata"]["annotations"], json!({"a": "b"}));
    let other = merge(json!({"a": null}));
    let without = ok(&mut store, &other);
    assert_eq!(without["metadata"].get("annotations"), None);
    let before = store.revision();
    ok(&mut store, &other);
    assert_eq!(store.revision(), before, "nothing was there to be taken away");
}

#[test]
fn finalizers_hold_deletion_back() {
    let mut store = store();
    let mut held = map("a");
    held["metadata"]["finalizers"] = json!(["x/y"]);
    ok(&mut store, &Request::post(MAPS, &held));
    let path = format!("{MAPS}/a");
    let marked = ok(&mut store, &Request::delete(&path));
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    let more = json!({"metadata": {"finalizers": ["x/y", "z/z"]}});
    refused(&mut store, &Request::patch(&path, MERGE, &more), 422, "Invalid");
    let before = store.revision();
    let free = json!({"metadata": {"finalizers": null}});
    ok(&mut store, &Request::patch(&path, MERGE, &free));
    refused(&mut store, &Request::get(&path), 404, "NotFound");
    let events = store.events_since("configmaps", before).unwrap();
    assert_eq!(events.iter().map(|one| one.event).collect::<Vec<_>>(), [EventType::Deleted]);
}

#[test]
fn deletions_honour_preconditions() {
    let mut store = store();
    let made = ok(&mut store, &Request::post(MAPS, &map("a")));
    let path = format!("{MAPS}/a");
    let wrong = json!({"preconditions": {"uid": "other"}});
    let request = Request::delete(&path).with_body("application/json", &wrong);
    refused(&mut store, &request, 409, "Conflict");
    let right = json!({"preconditions": {"uid": made["metadata"]["uid"]}});
    let gone = ok(&mut store, &Request::delete(&path).with_body("application/json", &right));
    assert_eq!((&gone["kind"], &gone["status"]), (&json!("Status"), &json!("Success")));
}

#[test]
fn namespaces_are_emptied() {
    let mut store = store();
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    ok(&mut store, &Request::post("/api/v1/namespaces", &space));
    let inside = "/api/v1/namespaces/n/configmaps";
    let mut held = map("held");
    held["metadata"]["finalizers"] = json!(["x/y"]);
    ok(&mut store, &Request::post(inside, &held));
    ok(&mut store, &Request::post(inside, &map("free")));
    ok(&mut store, &Request::delete("/api/v1/namespaces/n"));
    let left = ok(&mut store, &Request::get("/api/v1/namespaces/n"));
    assert_eq!(left["status"]["phase"], "Terminating");
    assert_eq!(names(&ok(&mut store, &Request::get(inside))), ["held"]);
    let status = refused(&mut store, &Request::post(inside, &map("late")), 403, "Forbidden");
    assert_eq!(status["details"]["causes"][0]["reason"], "NamespaceTerminating");
    let free = json!({"metadata": {"finalizers": []}});
    ok(&mut store, &Request::patch(&format!("{inside}/held"), MERGE, &free));
    refused(&mut store, &Request::get("/api/v1/namespaces/n"), 404, "NotFound");
    refused(&mut store, &Request::delete("/api/v1/namespaces/default"), 403, "Forbidden");
}

#[test]
fn lists_come_in_consistent_pages() {
    let mut store = store();
    add_maps(&mut store, &["a", "b", "c", "d", "e"]);
    let first = ok(&mut store, &Request::get(&format!("{MAPS}?limit=2")));
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    ok(&mut store, &Request::delete(&format!("{MAPS}/c")));
    add_maps(&mut store, &["f"]);
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = ok(&mut store, &Request::get(&format!("{MAPS}?limit=9&continue={token}")));
    assert_eq!(names(&second), ["c", "d", "e"], "as it was at the first page");
    let same = &first["metadata"]["resourceVersion"];
    assert_eq!(&second["metadata"]["resourceVersion"], same);
    let exact =
        format!("{MAPS}?resourceVersion={}&resourceVersionMatch=Exact", same.as_str().unwrap());
    assert_eq!(names(&ok(&mut store, &Request::get(&exact))), ["a", "b", "c", "d", "e"]);
    store.compact();
    let late = Request::get(&format!("{MAPS}?limit=9&continue={token}"));
    refused(&mut store, &late, 410, "Expired");
    let future = Request::get(&format!("{MAPS}?resourceVersion=9999"));
    refused(&mut store, &future, 504, "Timeout");
}

fn watch(store: &mut Store, path: &str) -> crate::WatchStart {
    match send(store, &Request::get(path)).body {
        Body::Watch(start) => *start,
        other => panic!("not a watch: {other:?}"),
    }
}

#[test]
fn watches_see_objects_enter_and_leave_a_selection() {
    let mut store = store();
    let start = watch(&mut store, &format!("{MAPS}?watch=1&labelSelector=a%3Db"));
    assert!(start.events.is_empty());
    add_maps(&mut store, &["m", "other"]);
    for labels in [json!({"a": "b"}), json!({"a": "b", "c": "d"}), json!({"a": null})] {
        let patch = json!({"metadata": {"labels": labels}});
        ok(&mut store, &Request::patch(&format!("{MAPS}/m"), MERGE, &patch));
    }
    let events = store.watch_from(&start.spec, start.revision).unwrap();
    let words: Vec<&str> = events.iter().map(|one| one.event.word()).collect();
    assert_eq!(words, ["ADDED", "MODIFIED", "DELETED"]);
    assert_eq!(events[2].object["metadata"]["labels"]["a"], "b", "the last state that fitted");
    assert!(store.watch_from(&start.spec, store.revision()).unwrap().is_empty());
}

#[test]
fn watches_start_where_they_are_told() {
    let mut store = store();
    add_maps(&mut store, &["a"]);
    let middle = store.revision();
    add_maps(&mut store, &["b"]);
    assert_eq!(watch(&mut store, &format!("{MAPS}?watch=1")).events.len(), 2);
    let later = watch(&mut store, &format!("{MAPS}?watch=1&resourceVersion={middle}"));
    assert_eq!(later.events.len(), 1);
    let query = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true\
                 &resourceVersionMatch=NotOlderThan";
    let initial = watch(&mut store, &format!("{MAPS}?{query}"));
    assert_eq!(initial.events.len(), 3);
    let last = &initial.events[2];
    assert_eq!(last.event, EventType::Bookmark);
    let mark = &last.object["metadata"]["annotations"]["k8s.io/initial-events-end"];
    assert_eq!(mark, "true");
}

#[test]
fn watches_expire_when_the_history_has_passed() {
    let options = StoreOptions { history_limit: 2, ..StoreOptions::default() };
    let mut store = Store::new(options);
    let early = store.revision();
    add_maps(&mut store, &["a", "b", "c"]);
    assert_eq!(store.events_since("configmaps", early).unwrap_err().code(), 410);
    assert_eq!(store.events_since("configmaps", early + 1).unwrap().len(), 2);
    let start = watch(&mut store, &format!("{MAPS}?watch=1&resourceVersion={early}"));
    assert_eq!(start.events[0].event, EventType::Error);
    assert_eq!(start.events[0].object["reason"], "Expired");
    assert_eq!(start.continuation, crate::Continuation::Ended);
}

#[test]
fn collections_are_deleted_by_selector() {
    let mut store = store();
    add_maps(&mut store, &["a", "b", "c"]);
    let request = Request::delete(&format!("{MAPS}?fieldSelector=metadata.name!%3Db"));
    ok(&mut store, &request);
    assert_eq!(names(&ok(&mut store, &Request::get(MAPS))), ["b"]);
}

#[test]
fn configurations_are_applied() {
    let mut store = store();
    let path = format!("{SERVICES}/s");
    let config = service("s");
    let create = Request::patch(&format!("{path}?fieldManager=one"), APPLY, &config);
    assert_eq!(send(&mut store, &create).code, 201);
    let before = store.revision();
    assert_eq!(send(&mut store, &create).code, 200);
    assert_eq!(store.revision(), before, "applying the same again writes nothing");
    let mut change = config.clone();
    change["spec"]["ports"][0]["targetPort"] = json!(8080);
    let again = Request::patch(&format!("{path}?fieldManager=one"), APPLY, &change);
    let next = ok(&mut store, &again);
    assert_eq!(next["spec"]["ports"][0]["targetPort"], 8080);
    let kept = next["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(kept.len(), 1, "{kept:?}");
    change["spec"]["ports"][0]["targetPort"] = json!(9090);
    let other = Request::patch(&format!("{path}?fieldManager=two"), APPLY, &change);
    let status = refused(&mut store, &other, 409, "Conflict");
    assert_eq!(status["details"]["causes"][0]["reason"], "FieldManagerConflict");
    let forced = Request::patch(&format!("{path}?fieldManager=two&force=true"), APPLY, &change);
    assert_eq!(ok(&mut store, &forced)["spec"]["ports"][0]["targetPort"], 9090);
    refused(&mut store, &Request::patch(&path, APPLY, &config), 422, "Invalid");
}

#[test]
fn bodies_may_be_yaml_and_must_be_known() {
    let mut store = store();
    let mut request = Request::new(Method::Post, MAPS);
    request.content_type = "application/yaml".to_string();
    request.body =
        b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: yam}\ndata: {a: b}\n".to_vec();
    assert_eq!(ok(&mut store, &request)["data"], json!({"a": "b"}));
    request.content_type = "application/vnd.kubernetes.protobuf".to_string();
    refused(&mut store, &request, 400, "BadRequest");
    request.content_type = "application/json".to_string();
    refused(&mut store, &request, 400, "BadRequest");
    let only = Request::get(MAPS).accepting("application/cbor");
    refused(&mut store, &only, 406, "NotAcceptable");
    let odd = Request::patch(&format!("{MAPS}/yam"), "application/json", &json!({}));
    refused(&mut store, &odd, 415, "UnsupportedMediaType");
    refused(
        &mut store,
        &Request::new(Method::Post, &format!("{MAPS}/yam")),
        405,
        "MethodNotAllowed",
    );
}

#[test]
fn injected_faults_strike_once() {
    let mut store = store();
    store.inject(Fault::next(Failure::Throttled(7)).on_kind("configmaps"));
    store.inject(Fault::next(Failure::Conflict).on_method(Method::Put).on_name("a"));
    ok(&mut store, &Request::get(SERVICES));
    let response = send(&mut store, &Request::get(MAPS));
    assert_eq!((response.code, response.retry_after_s), (429, Some(7)));
    let made = ok(&mut store, &Request::post(MAPS, &map("a")));
    let path = format!("{MAPS}/a");
    refused(&mut store, &Request::put(&path, &made), 409, "Conflict");
    ok(&mut store, &Request::put(&path, &made));
}

#[test]
fn events_have_two_faces() {
    let mut store = store();
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"},
        "involvedObject": {"kind": "Service", "name": "s", "namespace": "default"},
        "reason": "Tested", "message": "hello", "type": "Normal"});
    let old = "/api/v1/namespaces/default/events";
    let new = "/apis/events.k8s.io/v1/namespaces/default/events";
    ok(&mut store, &Request::post(old, &event));
    let seen = ok(&mut store, &Request::get(&format!("{new}/e")));
    assert_eq!((&seen["apiVersion"], &seen["note"]), (&json!("events.k8s.io/v1"), &json!("hello")));
    let patch = json!({"note": "bye"});
    ok(&mut store, &Request::patch(&format!("{new}/e"), MERGE, &patch));
    let selector = "fieldSelector=involvedObject.name%3Ds,reason%3DTested";
    let list = ok(&mut store, &Request::get(&format!("{old}?{selector}")));
    assert_eq!(list["items"][0]["message"], "bye");
    let mut stray = event;
    stray["metadata"]["name"] = json!("f");
    stray["involvedObject"]["namespace"] = json!("kube-system");
    refused(&mut store, &Request::post(old, &stray), 422, "Invalid");
}

#[test]
fn pods_lose_their_status_on_creation_and_nodes_keep_it() {
    let mut store = store();
    let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
        "status": ready});
    assert_eq!(store.create(node, NOW).unwrap()["status"], ready);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c"}]}, "status": ready});
    assert_eq!(store.create(pod, NOW).unwrap()["status"]["phase"], "Pending");
    let stored = store.get(ObjectRef::new("pods", "default", "p")).unwrap();
    assert!(stored["status"].get("conditions").is_none());
    let patch = Patch::Strategic(json!({"status": {"podIP": "10.1.0.1"}}));
    let pod = ObjectRef::new("pods", "default", "p");
    let next = store.patch(pod, Part::Status, &patch, NOW).unwrap();
    assert_eq!(next["status"]["podIPs"], json!([{"ip": "10.1.0.1"}]));
}

#[test]
fn the_same_calls_give_the_same_store() {
    let run = || {
        let mut store = store();
        add_maps(&mut store, &["a", "b"]);
        ok(&mut store, &Request::post(SERVICES, &service("s")));
        ok(&mut store, &Request::get("/api/v1/services")).to_string()
    };
    assert_eq!(run(), run());
}

#[test]
fn a_pod_with_readiness_gates_is_ready_when_they_hold() {
    let mut store = store();
    let path = "/api/v1/namespaces/default/pods";
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "c"}],
        "readinessGates": [{"conditionType": "a/one"}, {"conditionType": "a/two"}]}});
    ok(&mut store, &Request::post(path, &pod));
    let mut ready = |kind: &str, status: &str| {
        let conditions = json!([{"type": kind, "status": status, "lastTransitionTime": "t1"}]);
        let body = json!({"status": {"conditions": conditions}});
        let patch = Request::new(Method::Patch, &format!("{path}/p/status"));
        let stored = ok(&mut store, &patch.with_body(STRATEGIC, &body));
        let all = stored["status"]["conditions"].as_array().unwrap().clone();
        all.into_iter().find(|c| c["type"] == "Ready").unwrap()
    };
    assert_eq!(ready("a/one", "True")["reason"], "ContainersNotReady");
    let waiting = ready("ContainersReady", "True");
    let shut = json!({"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady",
        "message": "the status of pod readiness gate \"a/two\" is not \"True\"",
        "lastTransitionTime": "t1"});
    assert_eq!(waiting, shut);
    let done = ready("a/two", "True");
    assert_eq!(done, json!({"type": "Ready", "status": "True", "lastTransitionTime": "t1"}));
    assert_eq!(ready("Ready", "False")["status"], "True", "what a client says is overruled");
    assert_eq!(ready("a/one", "False")["reason"], "ReadinessGatesNotReady");
}
