//! Kubernetes objects as they come over the wire.

use model::kubernetes::{
    Affinity, Deletion, Gate, LoadBalancerType, Membership, NodeRole, Others, PodPhase, Readiness,
    Service, Target, TargetPort, TrafficPolicy, Wish,
};
use model::{Family, Group, Protocol, ServiceUid};
use observe::Interner;
use observe::kubernetes::{
    RawPod, RawService, gated_pod_from_value, namespace_from_value, node_from_value, pod,
    pod_from_value, service, service_from_value, slice_from_value,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

fn read(spec: Value, metadata: Value) -> Service {
    let mut all =
        json!({"name": "web", "namespace": "default", "uid": "u", "resourceVersion": "5"});
    all.as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
    let classes = BTreeSet::from(["ours".to_owned()]);
    let value = json!({"kind": "Service", "metadata": all, "spec": spec});
    service_from_value(&value, &classes, &mut Interner::default()).unwrap()
}

/// In a longer text it would count as none of the Service's: it would be taken out of the status
/// while something else is still to be written.
#[test]
fn an_address_of_a_status_is_read_in_its_shortest_form() {
    let told = json!([{"ip": "2603:0:0:0:0:0:0:1"}, {"ip": "20.1.2.3"}, {"ip": "?"}]);
    let value = json!({"kind": "Service", "spec": {"type": "LoadBalancer"},
        "metadata": {"name": "web", "namespace": "default", "uid": "u"},
        "status": {"loadBalancer": {"ingress": told}}});
    let found = service_from_value(&value, &BTreeSet::new(), &mut Interner::default()).unwrap();
    let texts: Vec<_> = found.ingress.iter().map(|entry| entry.ip.as_deref()).collect();
    assert_eq!(texts, [Some("2603::1"), Some("20.1.2.3"), Some("?")]);
}

#[test]
fn a_service_is_read_from_bytes() {
    let bytes = br#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"web",
        "namespace":"default","uid":"u","resourceVersion":"7","managedFields":[
            {"manager":"helm","operation":"Apply","time":"2026-01-02T03:04:05Z",
             "fieldsV1":{"f:spec":{"f:ports":{}}}},
            {"manager":"kubectl-edit","time":"2026-01-03T03:04:05Z","fieldsV1":{"f:spec":{}}},
            {"manager":"ballast","time":"2026-01-04T03:04:05Z"},
            {"manager":"other","subresource":"status","time":"2026-01-05T03:04:05Z"}],
        "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}",
        "service.beta.kubernetes.io/azure-pip-name":"p"},"labels":{"a":"b"},
        "finalizers":["service.kubernetes.io/load-balancer-cleanup"]},
        "spec":{"type":"LoadBalancer","ports":[
            {"name":"http","protocol":"TCP","port":80,"targetPort":"web","nodePort":30080,
             "appProtocol":"http"},
            {"protocol":"SCTP","port":81,"targetPort":8081},{"port":82}],
        "ipFamilies":["IPv6","IPv4"],"sessionAffinity":"ClientIP",
        "externalTrafficPolicy":"Local","healthCheckNodePort":32000,"loadBalancerIP":"1.2.3.4",
        "loadBalancerSourceRanges":["10.0.0.0/8"],"clusterIP":"10.0.0.1"},
        "status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4","ipMode":"VIP"}]}}}"#;
    let raw: RawService = serde_json::from_slice(bytes).unwrap();
    let found = service(&raw, &BTreeSet::new(), &mut Interner::default()).unwrap();
    assert_eq!(found.name.to_string(), "default/web");
    let editors = found.editors.as_deref().unwrap();
    assert_eq!((&*editors.to_string(), &*editors.time), ("kubectl-edit", "2026-01-03T03:04:05Z"));
    assert_eq!(found.annotation("azure-pip-name"), Some("p"));
    assert_eq!(found.annotations.len(), 1);
    assert_eq!((found.wish, found.deletion), (Wish::LoadBalancer, Deletion::None));
    assert_eq!(found.families, [Family::V6, Family::V4]);
    assert_eq!(found.affinity, Affinity::ClientIp);
    assert_eq!(found.traffic_policy, TrafficPolicy::Local);
    assert_eq!(found.health_check_node_port, Some(32_000));
    assert_eq!(found.load_balancer_ip.as_deref(), Some("1.2.3.4"));
    assert_eq!(found.cluster_ips, [IpAddr::from([10, 0, 0, 1])]);
    assert_eq!(found.ingress[0].ip.as_deref(), Some("1.2.3.4"));
    let ports: Vec<_> = found
        .ports
        .iter()
        .map(|p| (p.protocol, p.port, p.node_port, p.target_port.clone()))
        .collect();
    assert_eq!(
        ports,
        [
            (Protocol::Tcp, 80, Some(30_080), TargetPort::Name("web".into())),
            (Protocol::Sctp, 81, None, TargetPort::Number(8_081)),
            (Protocol::Tcp, 82, None, TargetPort::Number(0)),
        ]
    );
}

/// The API server notes whole seconds, and sorts those of one second by name.
#[test]
fn of_two_editors_within_a_second_only_the_new_one_counts() {
    let at = |edits: &[(&str, &str)]| {
        let entry = |edit: &(&str, &str)| {
            let time = format!("2026-01-02T03:04:{}Z", edit.1);
            json!({"manager": edit.0, "time": time})
        };
        let fields: Vec<Value> = edits.iter().map(entry).collect();
        let found = read(json!({"type": "LoadBalancer"}), json!({"managedFields": fields}));
        found.editors.expect("it was edited")
    };
    let made = at(&[("unknown", "05")]);
    let edited = at(&[("kubectl-edit", "05"), ("unknown", "05")]);
    assert_eq!(edited.to_string(), "kubectl-edit or unknown");
    assert_eq!(edited.since(&made).to_string(), "kubectl-edit");
    assert_eq!(edited.since(&edited).to_string(), "kubectl-edit or unknown");
    let later = at(&[("kubectl-edit", "05"), ("unknown", "06")]);
    assert_eq!(later.since(&edited).to_string(), "unknown");
}

#[test]
fn what_a_service_is_to_us() {
    let ours = (Wish::LoadBalancer, LoadBalancerType::Ours);
    let not = (Wish::Nothing, LoadBalancerType::Other);
    let theirs = (Wish::Nothing, LoadBalancerType::Foreign);
    let table = [
        (json!({"type": "LoadBalancer"}), ours),
        (json!({"type": "LoadBalancer", "loadBalancerClass": null}), ours),
        (json!({"type": "LoadBalancer", "loadBalancerClass": "ours"}), ours),
        (json!({"type": "LoadBalancer", "loadBalancerClass": "theirs"}), theirs),
        (json!({"type": "ClusterIP"}), not),
        (json!({}), not),
    ];
    for (spec, want) in table {
        let found = read(spec.clone(), json!({}));
        assert_eq!((found.wish, found.load_balancer_type), want, "{spec}");
    }
    let going =
        read(json!({"type": "LoadBalancer"}), json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}));
    assert_eq!((going.wish, going.load_balancer_type), (Wish::Nothing, LoadBalancerType::Ours));
    assert_eq!(going.families, [Family::V4]);
}

#[test]
fn null_is_as_good_as_absent_and_nonsense_is_an_error() {
    let found = read(
        json!({"type": "LoadBalancer", "ports": null, "ipFamilies": null}),
        json!({"labels": null, "annotations": null, "finalizers": null}),
    );
    assert_eq!((found.ports.len(), found.finalizers.len()), (0, 0));
    let read = |value: Value| {
        service_from_value(&value, &BTreeSet::new(), &mut Interner::default())
            .unwrap_err()
            .to_string()
    };
    insta::assert_snapshot!(read(json!({"metadata": {"name": "web", "namespace": "d"}})),
        @r#"cannot read the Service "d/web": it has no uid"#);
    insta::assert_snapshot!(read(json!({"metadata": {"name": "web", "labels": 5}})),
        @r#"cannot read the Service "web": invalid type: integer `5`, expected a map"#);
}

fn node(metadata: Value, spec: Value) -> model::kubernetes::Node {
    let mut all = json!({"name": "n1", "resourceVersion": "1"});
    all.as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
    let value = json!({"metadata": all, "spec": spec, "status": {"addresses": [
        {"type": "Hostname", "address": "n1"}, {"type": "InternalIP", "address": "10.0.0.4"},
        {"type": "InternalIP", "address": "oops"}, {"type": "ExternalIP", "address": "1.1.1.1"},
        {"type": "InternalIP", "address": "FD00:0::4"}]}});
    node_from_value(&value, &Group::new("rg"), &mut Interner::default()).unwrap()
}

#[test]
fn a_node_takes_traffic_unless_something_says_no() {
    let label = |key: &str, value: &str| json!({"labels": {key: value}});
    let exclude = "node.kubernetes.io/exclude-from-external-load-balancers";
    let group = "kubernetes.azure.com/resource-group";
    let taint = |key: &str| json!({"taints": [{"key": key, "effect": "NoSchedule"}]});
    let table = [
        (json!({}), json!({}), Membership::Member),
        (label(exclude, "true"), json!({}), Membership::Excluded),
        (label(exclude, ""), json!({}), Membership::Excluded),
        (label(exclude, "no"), json!({}), Membership::Excluded),
        (label(exclude, "false"), json!({}), Membership::Excluded),
        (label("kubernetes.azure.com/managed", "False"), json!({}), Membership::Excluded),
        (label("kubernetes.azure.com/managed", "true"), json!({}), Membership::Member),
        (label(group, "RG"), json!({}), Membership::Member),
        (label(group, "other"), json!({}), Membership::Excluded),
        (label(group, ""), json!({}), Membership::Member),
        (json!({}), taint("ToBeDeletedByClusterAutoscaler"), Membership::Draining),
        (json!({}), taint("node.kubernetes.io/not-ready"), Membership::Member),
        (json!({"deletionTimestamp": "t"}), json!({}), Membership::Draining),
        (
            json!({"deletionTimestamp": "t", "labels": {exclude: "1"}}),
            json!({}),
            Membership::Leaving,
        ),
        (label(exclude, ""), taint("ToBeDeletedByClusterAutoscaler"), Membership::Leaving),
        (label("ballast.dev/drain", ""), json!({}), Membership::Draining),
        (label("ballast.dev/drain", "no"), json!({}), Membership::Draining),
        (json!({"labels": {exclude: "", "ballast.dev/drain": ""}}), json!({}), Membership::Leaving),
    ];
    for (metadata, spec, want) in table {
        assert_eq!(node(metadata.clone(), spec.clone()).membership, want, "{metadata} {spec}");
    }
}

#[test]
fn a_node_has_ranges_of_pods_and_external_addresses() {
    let ranges = |spec: Value| {
        let all = node(json!({}), spec).ranges;
        all.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let spec = json!({"podCIDR": "10.244.1.0/24", "podCIDRs": ["10.244.1.0/24", "oops"]});
    assert_eq!(ranges(spec), ["1.1.1.1/32", "10.244.1.0/24"]);
    assert_eq!(ranges(json!({"podCIDR": "10.244.1.0/24"})), ["1.1.1.1/32", "10.244.1.0/24"]);
}

#[test]
fn cluster_ips_of_both_families() {
    let both = json!({"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7", "fd02::7"]});
    let texts = |spec: Value| {
        let all = read(spec, json!({})).cluster_ips;
        all.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(texts(both), ["10.0.0.7", "fd02::7"]);
    assert_eq!(texts(json!({"clusterIP": "None", "clusterIPs": ["None"]})), Vec::<String>::new());
}

#[test]
fn a_node_has_internal_addresses_and_a_role() {
    let found = node(json!({}), json!({"providerID": "azure:///x"}));
    let addresses: Vec<String> = found.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["10.0.0.4", "fd00::4"]);
    assert_eq!(found.provider_id.as_deref(), Some("azure:///x"));
    assert_eq!(found.role, NodeRole::Worker);
    for key in ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"] {
        let found = node(json!({"labels": {key: ""}}), json!({}));
        assert_eq!(found.role, NodeRole::ControlPlane, "{key}");
    }
}

#[test]
fn a_slice_belongs_to_its_owner() {
    let value = |deleted: Value| {
        json!({
        "metadata": {"name": "web-x", "namespace": "d", "resourceVersion": "1",
            "deletionTimestamp": deleted, "labels": {"kubernetes.io/service-name": "web"},
            "ownerReferences": [{"kind": "Other", "uid": "o"}, {"kind": "Service", "uid": "u"}]},
        "endpoints": [
            {"addresses": ["10.1.0.1"], "nodeName": "n1", "conditions": {"ready": true}},
            {"addresses": ["fd00:0::1", "host.name"], "nodeName": "n1", "conditions": null},
            {"addresses": ["10.1.0.2"], "conditions": {"ready": false, "serving": true},
                "targetRef": {"kind": "Pod", "name": "web-1"}},
            {"addresses": ["10.1.0.3"], "conditions": {"ready": false}},
            {"addresses": ["10.1.0.4"],
                "conditions": {"ready": false, "serving": true, "terminating": true}},
            {"addresses": ["10.1.0.5"], "conditions": {"ready": false, "terminating": true}}]})
    };
    let mut interner = Interner::default();
    let slice = slice_from_value(&value(json!(null)), &mut interner).unwrap();
    assert_eq!(slice.owner, Some(ServiceUid::new("u")));
    assert_eq!(slice.service.as_ref().map(ToString::to_string).as_deref(), Some("d/web"));
    let endpoints: Vec<_> = slice
        .endpoints
        .iter()
        .map(|e| (e.address.to_string(), e.node.as_ref().map(|n| n.as_str()), e.readiness))
        .collect();
    assert_eq!(
        endpoints,
        [
            ("10.1.0.1".to_owned(), Some("n1"), Readiness::Ready),
            ("fd00::1".to_owned(), Some("n1"), Readiness::Ready),
            ("10.1.0.2".to_owned(), None, Readiness::NotReady),
            ("10.1.0.3".to_owned(), None, Readiness::NotReady),
            ("10.1.0.4".to_owned(), None, Readiness::Terminating),
            ("10.1.0.5".to_owned(), None, Readiness::NotReady),
        ]
    );
    let unready: Vec<_> = slice.unready.iter().map(|(a, pod)| (a.to_string(), &**pod)).collect();
    assert_eq!(unready, [("10.1.0.2".to_owned(), "web-1")]);
    let going = slice_from_value(&value(json!("t")), &mut interner).unwrap();
    assert_eq!(going.endpoints, []);
}

#[test]
fn an_endpoint_says_whether_its_pod_is_of_the_slices_namespace() {
    let endpoint = |n: u8, target: Value| {
        json!({"addresses": [format!("10.1.0.{n}")], "nodeName": "n1", "targetRef": target,
            "conditions": {"ready": n.is_multiple_of(2)}})
    };
    let value = json!({"metadata": {"name": "web-x", "namespace": "d"}, "endpoints": [
        endpoint(1, json!(null)),
        endpoint(2, json!({"kind": "Pod", "name": "p"})),
        endpoint(3, json!({"kind": "Pod", "name": "p", "namespace": "d"})),
        endpoint(4, json!({"kind": "Pod", "name": "p", "namespace": "e"})),
        endpoint(5, json!({"kind": "Pod", "name": "p", "namespace": "e"})),
        endpoint(6, json!({"kind": "Machine", "name": "m", "namespace": "e"})),
    ]});
    let slice = slice_from_value(&value, &mut Interner::default()).unwrap();
    use Target::{Foreign, Own};
    let found: Vec<Target> = slice.endpoints.iter().map(|e| e.target).collect();
    assert_eq!(found, [Own, Own, Own, Foreign, Foreign, Own]);
    let unready: Vec<_> = slice.unready.iter().map(|(a, _)| a.to_string()).collect();
    assert_eq!(unready, ["10.1.0.3"]);
    let endpoint = size_of::<model::kubernetes::Endpoint>();
    assert_eq!(endpoint, 32, "an endpoint takes no more room for it");
}

#[test]
fn a_pod_leaves_through_a_folded_name() {
    let bytes = br#"{"metadata":{"name":"p","namespace":"d","uid":"u","resourceVersion":"3",
        "labels":{"kubernetes.azure.com/service-egress-gateway":"Team-A"},
        "finalizers":["servicegateway.azure.com/pod-cleanup"]},
        "spec":{"containers":[{"name":"c"}]},
        "status":{"phase":"Running","hostIP":"10.0.0.4","podIP":"10.1.0.1",
        "podIPs":[{"ip":"10.1.0.1"},{"ip":"FD00::1"}]}}"#;
    let raw: RawPod = serde_json::from_slice(bytes).unwrap();
    let found = pod(&raw, &mut Interner::default()).unwrap();
    assert_eq!(found.egress.as_deref(), Some("team-a"));
    assert_eq!((found.phase, found.addresses.len(), found.hosts.len()), (PodPhase::Alive, 2, 1));
    let bare = json!({"metadata": {"name": "p", "uid": "u"}, "status": {"phase": "Succeeded"}});
    let found = pod_from_value(&bare, &mut Interner::default()).unwrap();
    assert_eq!((found.egress, found.phase), (None, PodPhase::Ended));
}

#[test]
fn the_one_host_address_counts_for_a_family_that_the_list_lacks() {
    let hosts = |status: Value| {
        let value = json!({"metadata": {"name": "p", "uid": "u"}, "status": status});
        let found = pod_from_value(&value, &mut Interner::default()).unwrap();
        found.hosts.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let both = hosts(json!({"hostIP": "10.0.0.4", "hostIPs": [{"ip": "fd00::4"}]}));
    assert_eq!(both, ["fd00::4", "10.0.0.4"]);
    let same = hosts(json!({"hostIP": "10.0.0.4",
        "hostIPs": [{"ip": "10.0.0.9"}, {"ip": "10.0.0.4"}]}));
    assert_eq!(same, ["10.0.0.9", "10.0.0.4"], "the list comes first");
}

#[test]
fn equal_labels_are_held_once() {
    let mut interner = Interner::default();
    let value = |name: &str| json!({"metadata": {"name": name, "labels": {"a": "b"}}});
    let (one, labels) = namespace_from_value(&value("one"), &mut interner).unwrap();
    let (_, others) = namespace_from_value(&value("two"), &mut interner).unwrap();
    assert_eq!(&*one, "one");
    assert!(Arc::ptr_eq(&labels, &others));
}

#[test]
fn a_gated_pod_says_how_far_it_is() {
    let gate = "ballast.dev/load-balancer-ready";
    let read = |labels: Value, gates: &[&str], conditions: &[(&str, &str)], more: &str| {
        let gates: Vec<Value> = gates.iter().map(|g| json!({"conditionType": g})).collect();
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(t, s)| json!({"type": t, "status": s, "reason": "R"}))
            .collect();
        let deleted = if more == "deleted" { json!("t") } else { json!(null) };
        let phase = if more == "ended" { "Succeeded" } else { "Running" };
        let value = json!({"metadata": {"name": "p", "namespace": "d", "uid": "u",
            "resourceVersion": "3", "labels": labels, "deletionTimestamp": deleted},
            "spec": {"readinessGates": gates},
            "status": {"phase": phase, "podIP": "10.1.0.1", "conditions": conditions}});
        gated_pod_from_value(&value, &mut Interner::default()).unwrap()
    };
    let label = || json!({gate: "", "app": "web"});
    let ready = ("ContainersReady", "True");
    assert_eq!(read(json!({"app": "web"}), &[gate], &[ready], ""), None, "it has no label");
    assert_eq!(read(label(), &["other"], &[ready], ""), None, "it has no gate");
    for (gates, conditions, more, others) in [
        (&[gate][..], &[ready][..], "", Others::Hold),
        (&[gate], &[], "", Others::Missing),
        (&[gate], &[("ContainersReady", "False")], "", Others::Missing),
        (&[gate, "other"], &[ready], "", Others::Missing),
        (&[gate, "other"], &[ready, ("other", "False")], "", Others::Missing),
        (&[gate, "other"], &[ready, ("other", "True")], "", Others::Hold),
        (&[gate], &[ready], "deleted", Others::Over),
        (&[gate], &[ready], "ended", Others::Over),
    ] {
        let pod = read(label(), gates, conditions, more).expect("it is gated");
        assert_eq!((pod.others, pod.gate), (others, Gate::Shut), "{gates:?} {conditions:?} {more}");
    }
    let pod = read(label(), &[gate], &[ready, (gate, "True")], "").expect("it is gated");
    assert_eq!((pod.gate, &*pod.reason, pod.addresses.len()), (Gate::Open, "R", 1));
    assert_eq!(pod.labels.len(), 2);
}
