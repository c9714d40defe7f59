use super::*;
use crate::fake::{Act, Fake, Seen, json};
use crate::kubernetes::{ConnectFrom, SourceSettings, connect, sources};
use model::Group;
use model::world::Kind;
use observe::KubernetesFact;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// An API server that grants what the ClusterRole in deploy/ has: Pods are listed and watched.
fn granted(seen: &Seen) -> Act {
    let (path, query) = seen.path.split_once('?').unwrap_or((seen.path.as_str(), ""));
    let list =
        |items: &[Value]| json(200, &json!({"metadata": {"resourceVersion": "9"}, "items": items}));
    let pod = |finalizers: &[&str]| {
        json!({"metadata": {"name": "left", "namespace": "s", "uid": "u", "resourceVersion": "7",
            "finalizers": finalizers}})
    };
    match path {
        "/api/v1/pods" => list(&[pod(&[]), pod(&[POD_FINALIZER])]),
        "/api/v1/namespaces/s/pods" if query.contains("fieldSelector=metadata.name%3Dleft") => {
            list(&[pod(&[POD_FINALIZER])])
        }
        _ => json(403, &json!({"message": "pods \"left\" is forbidden: cannot get"})),
    }
}

#[tokio::test]
async fn a_pod_that_lost_its_label_is_found_with_the_right_to_list_alone() {
    let fake = Fake::start(|seen, _| granted(seen)).await;
    let client = connect(&ConnectFrom::Address(fake.url.clone()), "t").await.unwrap();
    let settings = SourceSettings { classes: BTreeSet::new(), group: Group::new("rg") };
    let source = sources(&[Kind::Pods], &settings).remove(0);
    let (sender, mut receiver) = mpsc::channel(4);
    let stop = CancellationToken::new();
    let pace = Pace { first_ms: 1, cap_ms: 5 };
    let search = tokio::spawn(Strays::new(client, source, sender, pace).run(stop.clone()));
    let found = tokio::time::timeout(Duration::from_secs(10), receiver.recv()).await;
    let Ok(Some(Event::Kubernetes(KubernetesFact::Pod(pod)))) = found else {
        panic!("the Pod is not found: {:?}", fake.seen())
    };
    assert_eq!(pod.name.to_string(), "s/left");
    assert!(pod.finalizers.contains(POD_FINALIZER));
    stop.cancel();
    search.await.unwrap();
    assert_eq!(fake.seen().len(), 2, "one list of all, and one of the Pod");
}
