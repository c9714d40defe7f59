//! Facts from Kubernetes enter the World.

use model::kubernetes::{Node, SERVICE_FINALIZER, Service};
use model::world::{Kind, Kubernetes};
use model::{Group, NodeName, ServiceName, ServiceUid};
use observe::apply::is_outdated;
use observe::kubernetes::{
    gated_pod_from_value, node_from_value, pod_from_value, service_from_value, slice_from_value,
};
use observe::{Applied, Interner, KubernetesFact, Listing, apply};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;

fn service(name: &str, uid: &str, revision: u32, kind: &str, finalizers: &[&str]) -> Service {
    let value = json!({"metadata": {"name": name, "namespace": "d", "uid": uid,
        "resourceVersion": revision.to_string(), "finalizers": finalizers},
        "spec": {"type": kind}});
    service_from_value(&value, &BTreeSet::new(), &mut Interner::default()).unwrap()
}

fn node(name: &str, revision: u32, address: &str) -> Node {
    let value = json!({"metadata": {"name": name, "resourceVersion": revision.to_string()},
        "status": {"addresses": [{"type": "InternalIP", "address": address}]}});
    node_from_value(&value, &Group::new("rg"), &mut Interner::default()).unwrap()
}

/// A World with what belongs to it.
#[derive(Default)]
struct Held {
    kubernetes: Kubernetes,
    listing: Listing,
}

impl Held {
    fn take(&mut self, fact: KubernetesFact) -> Applied {
        apply(&mut self.kubernetes, &mut self.listing, fact)
    }

    fn service(&mut self, service: Service) -> Applied {
        self.take(KubernetesFact::Service(Box::new(service)))
    }

    fn uids(&self) -> Vec<&str> {
        self.kubernetes.services.keys().map(ServiceUid::as_str).collect()
    }
}

#[test]
fn only_services_that_matter_are_kept() {
    let mut held = Held::default();
    assert_eq!(held.service(service("a", "1", 1, "LoadBalancer", &[])), Applied::Changed);
    assert_eq!(held.service(service("b", "2", 1, "ClusterIP", &[])), Applied::Unchanged);
    let cleaning = service("c", "3", 1, "ClusterIP", &[SERVICE_FINALIZER]);
    assert_eq!(held.service(cleaning), Applied::Changed);
    assert_eq!(held.uids(), ["1", "3"]);
    assert_eq!(held.service(service("c", "3", 2, "ClusterIP", &[])), Applied::Changed);
    assert_eq!(held.uids(), ["1"]);
    let gone = KubernetesFact::ServiceGone(ServiceUid::new("1"));
    assert_eq!(held.take(gone.clone()), Applied::Changed);
    assert_eq!(held.take(gone), Applied::Unchanged);
}

/// A watch may tell the same twice.
#[test]
fn what_a_service_was_before_it_was_let_go_is_no_news() {
    let mut held = Held::default();
    held.service(service("a", "1", 1, "LoadBalancer", &[]));
    held.service(service("a", "1", 3, "ClusterIP", &[]));
    let old = || service("a", "1", 2, "LoadBalancer", &[]);
    assert!(is_outdated(&held.kubernetes, &held.listing, &old()));
    assert_eq!(held.service(old()), Applied::Unchanged);
    assert_eq!(held.uids(), Vec::<&str>::new());
    assert_eq!(held.service(service("a", "1", 4, "LoadBalancer", &[])), Applied::Changed);
    held.service(service("a", "1", 5, "ClusterIP", &[]));
    held.take(KubernetesFact::ServiceGone(ServiceUid::new("1")));
    held.listing.take_left();
    assert_eq!(held.listing, Listing::default(), "nothing of it is kept");
}

#[test]
fn another_uid_of_the_same_name_is_another_service() {
    let mut held = Held::default();
    held.service(service("a", "1", 1, "LoadBalancer", &[]));
    held.service(service("a", "2", 5, "LoadBalancer", &[]));
    assert_eq!(held.uids(), ["2"]);
    let late = service("a", "1", 2, "LoadBalancer", &[]);
    assert_eq!(held.service(late), Applied::Unchanged);
    assert_eq!(held.uids(), ["2"]);
    held.service(service("a", "3", 9, "ClusterIP", &[]));
    assert_eq!(held.uids(), Vec::<&str>::new());
}

/// An answer may be newer than the watch.
#[test]
fn what_an_answer_has_told_to_be_gone_stays_gone() {
    let mut held = Held::default();
    held.service(service("a", "1", 1, "LoadBalancer", &[]));
    let gone = KubernetesFact::ServiceGone(ServiceUid::new("1"));
    held.listing.note_gone(&held.kubernetes, &gone);
    assert_eq!(held.take(gone.clone()), Applied::Changed);
    assert_eq!(held.listing.take_left().len(), 1);
    let late = || service("a", "1", 2, "LoadBalancer", &[]);
    assert!(is_outdated(&held.kubernetes, &held.listing, &late()));
    assert_eq!(held.service(late()), Applied::Unchanged);
    // So is what an old list still names.
    held.take(KubernetesFact::ListBegin(Kind::Services));
    held.service(late());
    held.take(KubernetesFact::ListEnd(Kind::Services, None));
    assert_eq!(held.service(late()), Applied::Unchanged);
    assert_eq!(held.uids(), Vec::<&str>::new());
    // Then the watch tells its end, and nothing of it is kept.
    assert_eq!(held.take(gone), Applied::Unchanged);
    assert_eq!(held.listing, Listing::default());
}

/// Pods are known by their names: the next one of that name is another.
#[test]
fn a_pod_that_an_answer_has_told_to_be_gone_stays_gone() {
    let pod = |uid: &str, revision: &str| {
        let value = json!({"metadata": {"name": "p", "namespace": "d", "uid": uid,
            "resourceVersion": revision,
            "labels": {"kubernetes.azure.com/service-egress-gateway": "out"}}});
        KubernetesFact::Pod(pod_from_value(&value, &mut Interner::default()).unwrap())
    };
    let mut held = Held::default();
    assert_eq!(held.take(pod("1", "1")), Applied::Changed);
    let name = held.kubernetes.pods.keys().next().unwrap().clone();
    let gone = KubernetesFact::PodGone(name);
    held.listing.note_gone(&held.kubernetes, &gone);
    held.take(gone.clone());
    assert_eq!(held.take(pod("1", "2")), Applied::Unchanged);
    assert_eq!(held.take(pod("2", "4")), Applied::Changed);
    held.take(gone.clone());
    held.take(gone);
    assert_eq!(held.listing, Listing::default());
}

#[test]
fn a_fact_that_says_nothing_new_changes_nothing() {
    let mut held = Held::default();
    let name = NodeName::new("n");
    assert_eq!(held.take(KubernetesFact::Node(node("n", 5, "10.0.0.1"))), Applied::Changed);
    let place = Arc::as_ptr(&held.kubernetes.nodes[&name]);
    assert_eq!(held.take(KubernetesFact::Node(node("n", 6, "10.0.0.1"))), Applied::Unchanged);
    assert_eq!(held.take(KubernetesFact::Node(node("n", 4, "10.0.0.9"))), Applied::Unchanged);
    let kept = &held.kubernetes.nodes[&name];
    assert_eq!((&*kept.revision, Arc::as_ptr(kept)), ("6", place));
    assert_eq!(held.take(KubernetesFact::Node(node("n", 10, "10.0.0.9"))), Applied::Changed);
}

#[test]
fn a_list_takes_away_what_it_does_not_name() {
    let mut held = Held::default();
    held.take(KubernetesFact::Node(node("old", 1, "10.0.0.1")));
    assert_eq!(held.take(KubernetesFact::ListEnd(Kind::Nodes, None)), Applied::Unchanged);
    assert!(held.kubernetes.complete.is_empty());
    held.take(KubernetesFact::ListBegin(Kind::Nodes));
    held.take(KubernetesFact::Node(node("new", 2, "10.0.0.2")));
    assert_eq!(held.kubernetes.nodes.len(), 2, "until the end all are there");
    assert_eq!(held.take(KubernetesFact::ListEnd(Kind::Nodes, None)), Applied::Changed);
    let names: Vec<&str> = held.kubernetes.nodes.keys().map(NodeName::as_str).collect();
    assert_eq!(names, ["new"]);
    held.take(KubernetesFact::ListBegin(Kind::Nodes));
    held.take(KubernetesFact::Node(node("new", 2, "10.0.0.2")));
    assert_eq!(held.take(KubernetesFact::ListEnd(Kind::Nodes, None)), Applied::Unchanged);
    held.take(KubernetesFact::ListBegin(Kind::Services));
    assert_eq!(held.take(KubernetesFact::ListEnd(Kind::Services, None)), Applied::Changed);
    assert_eq!(held.kubernetes.complete, BTreeSet::from([Kind::Services, Kind::Nodes]));
}

#[test]
fn a_list_takes_nothing_away_that_came_after_it() {
    let mut held = Held::default();
    held.take(KubernetesFact::Node(node("before", 6, "10.0.0.1")));
    held.take(KubernetesFact::Node(node("after", 8, "10.0.0.2")));
    let names = |held: &Held| -> Vec<String> {
        held.kubernetes.nodes.keys().map(ToString::to_string).collect()
    };
    held.take(KubernetesFact::ListBegin(Kind::Nodes));
    held.take(KubernetesFact::ListEnd(Kind::Nodes, Some("7".into())));
    assert_eq!(names(&held), ["after"]);
    held.take(KubernetesFact::ListBegin(Kind::Nodes));
    held.take(KubernetesFact::ListEnd(Kind::Nodes, Some("8".into())));
    assert_eq!(names(&held), Vec::<String>::new());
}

#[test]
fn a_service_that_a_list_leaves_out_frees_its_name() {
    let mut held = Held::default();
    held.service(service("a", "1", 9, "LoadBalancer", &[]));
    held.take(KubernetesFact::ListBegin(Kind::Services));
    held.take(KubernetesFact::ListEnd(Kind::Services, None));
    assert_eq!(held.uids(), Vec::<&str>::new());
    assert_eq!(held.service(service("a", "2", 3, "LoadBalancer", &[])), Applied::Changed);
}

#[test]
fn a_pod_without_label_and_finalizer_is_dropped() {
    let pod = |revision: &str, labels, finalizers| {
        let value = json!({"metadata": {"name": "p", "namespace": "d", "uid": "u",
            "resourceVersion": revision, "labels": labels, "finalizers": finalizers}});
        KubernetesFact::Pod(pod_from_value(&value, &mut Interner::default()).unwrap())
    };
    let label = json!({"kubernetes.azure.com/service-egress-gateway": "a"});
    let finalizer = json!(["servicegateway.azure.com/pod-cleanup"]);
    let mut held = Held::default();
    assert_eq!(held.take(pod("1", json!({}), json!([]))), Applied::Unchanged);
    assert_eq!(held.take(pod("2", label, finalizer.clone())), Applied::Changed);
    assert_eq!(held.take(pod("3", json!({}), finalizer)), Applied::Changed);
    assert_eq!(held.kubernetes.pods.len(), 1);
    assert_eq!(held.take(pod("4", json!({}), json!([]))), Applied::Changed);
    assert_eq!(held.kubernetes.pods.len(), 0);
}

#[test]
fn a_pod_with_our_finalizer_that_a_list_leaves_out_has_lost_its_label_only() {
    let pod = |name: &str, finalizers| {
        let value = json!({"metadata": {"name": name, "namespace": "d", "uid": name,
            "resourceVersion": "1", "finalizers": finalizers,
            "labels": {"kubernetes.azure.com/service-egress-gateway": "a"}}});
        KubernetesFact::Pod(pod_from_value(&value, &mut Interner::default()).unwrap())
    };
    let mut held = Held::default();
    held.take(pod("claimed", json!(["servicegateway.azure.com/pod-cleanup"])));
    held.take(pod("free", json!([])));
    held.take(KubernetesFact::ListBegin(Kind::Pods));
    assert_eq!(held.take(KubernetesFact::ListEnd(Kind::Pods, None)), Applied::Changed);
    let left: Vec<_> = held.kubernetes.pods.values().map(|p| (&*p.uid, p.egress.clone())).collect();
    assert_eq!(left, [("claimed", None)]);
}

#[test]
fn a_list_of_pods_takes_none_away_that_came_after_it() {
    let value = json!({"metadata": {"name": "p", "namespace": "d", "uid": "u",
        "resourceVersion": "8", "labels": {"kubernetes.azure.com/service-egress-gateway": "a"}}});
    let pod = pod_from_value(&value, &mut Interner::default()).unwrap();
    let mut held = Held::default();
    held.take(KubernetesFact::Pod(pod));
    for (revision, left) in [("7", 1), ("8", 0)] {
        held.take(KubernetesFact::ListBegin(Kind::Pods));
        held.take(KubernetesFact::ListEnd(Kind::Pods, Some(revision.into())));
        assert_eq!(held.kubernetes.pods.len(), left, "{revision}");
    }
}

/// Facts about a few objects, each with a few revisions.
fn facts() -> Vec<KubernetesFact> {
    let mut facts = Vec::new();
    for revision in [9, 10, 11] {
        for name in ["a", "b"] {
            // The second revision says the same as the first.
            let content = revision.max(10);
            let address = format!("10.0.0.{content}");
            facts.push(KubernetesFact::Node(node(name, revision, &address)));
            let port = json!([{"port": content}]);
            let value = json!({"metadata": {"name": name, "namespace": "d", "uid": name,
                "resourceVersion": revision.to_string()},
                "spec": {"type": "LoadBalancer", "ports": port}});
            let mut interner = Interner::default();
            let read = service_from_value(&value, &BTreeSet::new(), &mut interner).unwrap();
            facts.push(KubernetesFact::Service(Box::new(read)));
            let value = json!({"metadata": {"name": name, "namespace": "d",
                "resourceVersion": revision.to_string()},
                "endpoints": [{"addresses": [address]}]});
            facts.push(KubernetesFact::Slice(slice_from_value(&value, &mut interner).unwrap()));
        }
    }
    facts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None,
        ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_facts_does_not_matter(
        order in Just((0..18).chain(0..18).collect::<Vec<usize>>()).prop_shuffle())
    {
        let facts = facts();
        let mut straight = Held::default();
        for fact in &facts {
            straight.take(fact.clone());
        }
        let mut mixed = Held::default();
        for i in order {
            mixed.take(facts[i].clone());
        }
        prop_assert_eq!(straight.kubernetes, mixed.kubernetes);
    }
}

#[test]
fn gated_pods_are_listed_apart_from_the_others() {
    let gate = "ballast.dev/load-balancer-ready";
    let pod = |name: &str, revision: u32| {
        let value = json!({"metadata": {"name": name, "namespace": "d", "uid": name,
            "resourceVersion": revision.to_string(), "labels": {gate: ""}},
            "spec": {"readinessGates": [{"conditionType": gate}]}});
        let pod = gated_pod_from_value(&value, &mut Interner::default()).unwrap();
        KubernetesFact::GatedPod(pod.expect("it is gated"))
    };
    let mut held = Held::default();
    held.take(KubernetesFact::ListBegin(Kind::GatedPods));
    assert_eq!(held.take(pod("a", 1)), Applied::Changed);
    assert_eq!(held.take(pod("b", 1)), Applied::Changed);
    held.take(KubernetesFact::ListEnd(Kind::GatedPods, None));
    assert!(held.kubernetes.complete.contains(&Kind::GatedPods));
    for fact in [KubernetesFact::ListBegin(Kind::Pods), KubernetesFact::ListEnd(Kind::Pods, None)] {
        held.take(fact);
    }
    assert_eq!(held.kubernetes.gated_pods.len(), 2, "a list of other Pods says nothing of these");
    assert_eq!(held.take(pod("a", 2)), Applied::Unchanged);
    let gone = KubernetesFact::GatedPodGone(ServiceName::new("d", "b"));
    assert_eq!(held.take(gone), Applied::Changed);
    held.take(KubernetesFact::ListBegin(Kind::GatedPods));
    held.take(KubernetesFact::ListEnd(Kind::GatedPods, None));
    assert!(held.kubernetes.gated_pods.is_empty());
}
