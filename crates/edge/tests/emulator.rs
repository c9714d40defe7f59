//! Watches, writes and the lease against the Kubernetes emulator.

#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test is a failed test")]

use control::{Event, KubernetesAnswer, KubernetesCall, Leadership};
use edge::clock::Clock;
use edge::kubernetes::{ConnectFrom, Sender, SourceSettings, connect, sources, watch_all};
use edge::lease::{Election, LeaseSettings};
use edge::vital::Vital;
use kube_emulator::{Shared, Store, StoreOptions, serve};
use model::Group;
use model::world::Kind;
use observe::KubernetesFact;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

async fn emulator(stop: CancellationToken) -> kube::Client {
    let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let store = Shared::new(Store::new(StoreOptions::default()));
    tokio::spawn(async move { serve(socket, store, stop.cancelled_owned()).await.unwrap() });
    connect(&ConnectFrom::Address(format!("http://{address}")), "ballast/test").await.unwrap()
}

async fn create(client: &kube::Client, path: &str, body: Value) {
    let call = KubernetesCall {
        method: "POST",
        path: path.into(),
        content_type: "application/json",
        body,
    };
    let answer = Sender::new(client.clone()).send(&call).await;
    assert!(matches!(answer, KubernetesAnswer::Reply { status: 201, .. }), "{answer:?}");
}

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP"}]},
    })
}

/// Stops watches, and waits until each has dropped its sender. None has ended before.
async fn end(
    mut watches: Vital,
    (sender, mut events): (mpsc::Sender<Event>, mpsc::Receiver<Event>),
    stop: &CancellationToken,
) {
    let (_, whole) = watches.guard(tokio::task::yield_now(), stop).await;
    assert_eq!(whole, Ok(()));
    stop.cancel();
    drop(sender);
    while events.recv().await.is_some() {}
}

#[tokio::test]
async fn services_are_listed_and_watched() {
    let stop = CancellationToken::new();
    let client = emulator(stop.clone()).await;
    let services = "/api/v1/namespaces/default/services";
    create(&client, services, service("before")).await;
    let settings = SourceSettings { classes: BTreeSet::new(), group: Group::new("rg") };
    let (sender, mut events) = mpsc::channel(64);
    let mut watches = Vital::default();
    let sources = sources(&[Kind::Services], &settings);
    watch_all(&client, sources, &sender, &stop, &mut watches);
    let mut seen = Vec::new();
    loop {
        match events.recv().await.expect("the watch goes on") {
            Event::Kubernetes(KubernetesFact::ListBegin(Kind::Services)) => seen.push("<".into()),
            Event::Kubernetes(KubernetesFact::ListEnd(Kind::Services, _)) => {
                seen.push(">".into());
                create(&client, services, service("after")).await;
            }
            Event::Kubernetes(KubernetesFact::Service(service)) => {
                seen.push(service.name.to_string());
                if service.name.to_string() == "default/after" {
                    break;
                }
            }
            other => panic!("{other:?}"),
        }
    }
    seen.retain(|word| word != "default/kubernetes");
    assert_eq!(seen, ["<", "default/before", ">", "default/after"]);
    end(watches, (sender, events), &stop).await;
}

#[tokio::test]
async fn a_pod_that_lost_its_label_while_nobody_watched_is_found() {
    let stop = CancellationToken::new();
    let client = emulator(stop.clone()).await;
    let pod = |name: &str, finalizers: Value| {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "finalizers": finalizers},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        })
    };
    let pods = "/api/v1/namespaces/default/pods";
    create(&client, pods, pod("other", json!([]))).await;
    create(&client, pods, pod("lost", json!(["servicegateway.azure.com/pod-cleanup"]))).await;
    let settings = SourceSettings { classes: BTreeSet::new(), group: Group::new("rg") };
    let (sender, mut events) = mpsc::channel(64);
    let mut watches = Vital::default();
    let sources = sources(&[Kind::Pods], &settings);
    watch_all(&client, sources, &sender, &stop, &mut watches);
    loop {
        match events.recv().await.expect("the watch goes on") {
            Event::Kubernetes(KubernetesFact::Pod(pod)) => {
                assert_eq!(pod.name.to_string(), "default/lost");
                assert_eq!((pod.egress, pod.finalizers.len()), (None, 1));
                break;
            }
            Event::Kubernetes(KubernetesFact::ListBegin(_) | KubernetesFact::ListEnd(..)) => {}
            other => panic!("{other:?}"),
        }
    }
    end(watches, (sender, events), &stop).await;
}

#[tokio::test]
async fn a_released_lease_goes_to_the_next_candidate() {
    let stop = CancellationToken::new();
    let client = emulator(stop.clone()).await;
    let clock = Clock::start();
    let run = |identity: &str| {
        let settings = LeaseSettings {
            identity: identity.into(),
            lease_ms: 60_000,
            renew_deadline_ms: 40_000,
            retry_ms: 10,
            ..LeaseSettings::default()
        };
        let (sender, events) = mpsc::channel(8);
        (Election::start(client.clone(), settings, clock, sender).unwrap(), events)
    };
    let (first, mut first_events) = run("first");
    assert_eq!(first_events.recv().await, Some(Event::Leadership(Leadership::Held)));
    let (second, mut second_events) = run("second");
    assert!(!second.held().allows(clock.now_ms()));
    first.release().await;
    assert_eq!(second_events.recv().await, Some(Event::Leadership(Leadership::Held)));
    assert!(second.held().allows(clock.now_ms()));
    second.release().await;
    stop.cancel();
}
