use crate::json::{items, text, texts};
use crate::{ObjectRef, Part, Patch, Store, StoreOptions};
use serde_json::{Value, json};
use std::sync::Arc;

const NOW: u64 = 1_700_000_000_000;

fn store() -> Store {
    Store::new(StoreOptions::default())
}

fn add_service(store: &mut Store, name: &str, selector: &Value) -> Arc<Value> {
    let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": selector, "ports": [{"port": 80, "targetPort": "web"}]}});
    store.create(object, NOW).unwrap()
}

fn add_pod(store: &mut Store, name: &str, labels: &Value) {
    let object = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"nodeName": "n1", "containers": [{"name": "c",
            "ports": [{"name": "web", "containerPort": 8080}]}]}});
    store.create(object, NOW).unwrap();
}

fn set_pod(store: &mut Store, name: &str, address: &str, ready: &str) {
    let patch = Patch::Merge(json!({"status": {"podIP": address,
        "podIPs": [{"ip": address}], "conditions": [{"type": "Ready", "status": ready}]}}));
    store.patch(ObjectRef::new("pods", "default", name), Part::Status, &patch, NOW).unwrap();
}

fn slices(store: &Store) -> Vec<Arc<Value>> {
    store.list("endpointslices", None)
}

fn addresses(store: &Store) -> Vec<String> {
    let all = slices(store);
    let mut found: Vec<String> = all
        .iter()
        .flat_map(|slice| items(slice, "/endpoints").to_vec())
        .flat_map(|endpoint| texts(&endpoint, "/addresses"))
        .collect();
    found.sort();
    found
}

#[test]
fn no_pods_no_slice_and_made_slices_stay() {
    let mut store = store();
    let made = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": "s-made", "namespace": "default",
            "labels": {"kubernetes.io/service-name": "s"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.1"]}], "ports": []});
    let made = store.create(made, NOW).unwrap();
    add_service(&mut store, "s", &json!({"app": "x"}));
    assert_eq!(slices(&store), std::slice::from_ref(&made));
    add_pod(&mut store, "other", &json!({"app": "y"}));
    set_pod(&mut store, "other", "10.1.0.9", "True");
    assert_eq!(slices(&store), [made]);
}

#[test]
fn ready_pods_fill_a_slice() {
    let mut store = store();
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1",
        "labels": {"topology.kubernetes.io/zone": "z1"}}});
    store.create(node, NOW).unwrap();
    let service = add_service(&mut store, "s", &json!({"app": "x"}));
    add_pod(&mut store, "p1", &json!({"app": "x"}));
    assert!(slices(&store).is_empty(), "a pod without an address is nowhere");
    set_pod(&mut store, "p1", "10.1.0.1", "False");
    let slice = &slices(&store)[0];
    assert_eq!(slice["endpoints"][0]["conditions"]["ready"], false);
    set_pod(&mut store, "p1", "10.1.0.1", "True");
    let slice = &slices(&store)[0];
    let name = text(slice, "/metadata/name");
    assert!(name.starts_with("s-") && name.len() == 7, "{name}");
    let endpoint = &slice["endpoints"][0];
    let ready = json!({"ready": true, "serving": true, "terminating": false});
    assert_eq!(endpoint["conditions"], ready);
    assert_eq!(endpoint["nodeName"], "n1");
    assert_eq!(endpoint["zone"], "z1");
    assert_eq!(endpoint["targetRef"]["name"], "p1");
    assert_eq!(slice["ports"], json!([{"name": "", "port": 8080, "protocol": "TCP"}]));
    assert_eq!(slice["addressType"], "IPv4");
    let owner = &slice["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["controller"]), (&json!("Service"), &json!(true)));
    assert_eq!(owner["uid"], service["metadata"]["uid"]);
    let labels = &slice["metadata"]["labels"];
    assert_eq!(labels["kubernetes.io/service-name"], "s");
    let by = "endpointslice.kubernetes.io/managed-by";
    assert_eq!(labels[by], "endpointslice-controller.k8s.io");
}

#[test]
fn pods_that_leave_are_taken_out() {
    let mut store = store();
    add_pod(&mut store, "p1", &json!({"app": "x"}));
    add_pod(&mut store, "p2", &json!({"app": "x"}));
    set_pod(&mut store, "p1", "10.1.0.1", "True");
    set_pod(&mut store, "p2", "10.1.0.2", "True");
    add_service(&mut store, "s", &json!({"app": "x"}));
    assert_eq!(addresses(&store), ["10.1.0.1", "10.1.0.2"]);
    let relabel = Patch::Merge(json!({"metadata": {"labels": {"app": "y"}}}));
    let one = ObjectRef::new("pods", "default", "p1");
    store.patch(one, Part::Main, &relabel, NOW).unwrap();
    assert_eq!(addresses(&store), ["10.1.0.2"]);
    store.delete(ObjectRef::new("pods", "default", "p2"), NOW).unwrap();
    assert!(addresses(&store).is_empty());
    assert_eq!(slices(&store).len(), 1, "one empty slice stays");
    let service = ObjectRef::new("services", "default", "s");
    let select = Patch::Merge(json!({"spec": {"selector": {"app": "y"}}}));
    store.patch(service, Part::Main, &select, NOW).unwrap();
    assert_eq!(addresses(&store), ["10.1.0.1"]);
    assert_eq!(slices(&store).len(), 1, "the empty slice is used again");
    store.delete(service, NOW).unwrap();
    assert!(slices(&store).is_empty(), "slices go with their Service");
}

#[test]
fn one_pod_changes_one_slice() {
    let mut store = store();
    add_service(&mut store, "s", &json!({"app": "x"}));
    for index in 0..250 {
        let name = format!("p{index:03}");
        add_pod(&mut store, &name, &json!({"app": "x"}));
        set_pod(&mut store, &name, &format!("10.1.{}.{}", index / 100, index % 100), "True");
    }
    let all = slices(&store);
    let sizes: Vec<usize> = all.iter().map(|slice| items(slice, "/endpoints").len()).collect();
    assert_eq!((all.len(), sizes.iter().sum::<usize>()), (3, 250));
    assert!(sizes.iter().all(|size| *size <= 100));
    let before = store.revision();
    set_pod(&mut store, "p120", "10.1.1.20", "False");
    assert_eq!(store.events_since("endpointslices", before).unwrap().len(), 1);
}

#[test]
fn dual_stack_services_have_slices_of_both_families() {
    let mut store = store();
    let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"selector": {"app": "x"}, "ipFamilyPolicy": "PreferDualStack",
            "ports": [{"port": 80}]}});
    store.create(object, NOW).unwrap();
    add_pod(&mut store, "p", &json!({"app": "x"}));
    let patch = Patch::Merge(json!({"status": {"podIPs": [{"ip": "10.1.0.1"}, {"ip": "fd00::1"}],
        "conditions": [{"type": "Ready", "status": "True"}]}}));
    store.patch(ObjectRef::new("pods", "default", "p"), Part::Status, &patch, NOW).unwrap();
    assert_eq!(addresses(&store), ["10.1.0.1", "fd00::1"]);
    let single = Patch::Merge(json!({"spec": {"ipFamilyPolicy": "SingleStack"}}));
    let service = ObjectRef::new("services", "default", "s");
    store.patch(service, Part::Main, &single, NOW).unwrap();
    assert_eq!(addresses(&store), ["10.1.0.1"]);
    assert_eq!(slices(&store).len(), 1);
}

#[test]
fn a_filled_slice_that_was_removed_comes_back() {
    let mut store = store();
    add_service(&mut store, "s", &json!({"app": "x"}));
    add_pod(&mut store, "p", &json!({"app": "x"}));
    set_pod(&mut store, "p", "10.1.0.1", "True");
    let slice = slices(&store)[0].clone();
    let name = text(&slice, "/metadata/name");
    store.delete(ObjectRef::new("endpointslices", "default", name), NOW).unwrap();
    assert_eq!(addresses(&store), ["10.1.0.1"]);
}
