//! From a change of a Service to the calls that follow from it, by ids.

use azure_emulator::{Azure, Options as AzureOptions, SampleOptions, Switch, sample_estate};
use control::{Notice, NoticeKind, Options};
use kube_emulator::{ObjectRef, Ownership, Part, Patch, Store, StoreOptions};
use serde_json::json;
use sim::Laboratory;
use std::collections::BTreeSet;
use std::sync::Arc;

const HOUR_MS: u64 = 3_600_000;

/// Two Services are created one after the other, and the first is changed.
fn story() -> Laboratory {
    let sample = SampleOptions { machines: 1, ..SampleOptions::default() };
    let mut azure = Azure::new(AzureOptions { defaults: Switch::Off, ..AzureOptions::default() });
    azure.seed(sample_estate(&sample));
    let store =
        Store::new(StoreOptions { ownership: Ownership::AppliedOnly, ..StoreOptions::default() });
    let options = Options { instance: "feedf00d".to_owned(), ..Options::default() };
    let mut lab = Laboratory::new(store, azure, crate::support::policy(&json!({})), options);
    for name in ["web", "api"] {
        let object = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}});
        lab.kubernetes.create(object, lab.now_ms).expect("the Service is created");
        assert!(lab.settle(HOUR_MS));
    }
    let timeout = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { timeout: "10" } } }));
    let object = ObjectRef::new("services", "default", "web");
    lab.kubernetes.patch(object, Part::Main, &patch, lab.now_ms).expect("it is patched");
    assert!(lab.settle(HOUR_MS));
    lab
}

fn of(lab: &Laboratory, kind: NoticeKind) -> Vec<&Notice> {
    lab.notices.iter().filter(|notice| notice.kind == kind).collect()
}

#[test]
fn what_the_log_says_was_sent_is_what_azure_got() {
    let lab = story();
    let said: Vec<&str> =
        of(&lab, NoticeKind::Sent).iter().filter_map(|n| n.correlation.as_deref()).collect();
    let writes = lab.azure.calls().iter().filter(|call| call.is_write());
    let got: Vec<&str> = writes.filter_map(|call| call.correlation.as_deref()).collect();
    assert!(got.len() > 6, "{got:?}");
    assert_eq!(said, got);
    assert_eq!(got.iter().collect::<BTreeSet<_>>().len(), got.len(), "each write has its own");
    let answered: BTreeSet<&str> =
        of(&lab, NoticeKind::Answered).iter().filter_map(|n| n.correlation.as_deref()).collect();
    assert_eq!(answered, got.into_iter().collect());
}

#[test]
fn a_change_is_followed_to_its_calls_and_to_its_end() {
    let lab = story();
    let asked: Vec<&Arc<str>> =
        of(&lab, NoticeKind::Asked).into_iter().flat_map(|n| &n.changes).collect();
    let ids = [1, 2, 3].map(|n| format!("feedf00d-0001-4000-8000-{n:012x}"));
    assert_eq!(asked.iter().map(|id| &***id).collect::<Vec<_>>(), ids);
    let sent = |id: &str| {
        let sent = of(&lab, NoticeKind::Sent);
        let own = sent.into_iter().filter(|n| n.changes.iter().any(|change| **change == *id));
        own.map(|n| n.text.split(' ').next().unwrap_or("").to_owned()).collect::<Vec<_>>()
    };
    // Public IP, load balancer, security group; the change of an annotation is one write.
    assert_eq!(ids.each_ref().map(|id| sent(id).len()), [3, 3, 1]);
    for id in &ids {
        let programmed = of(&lab, NoticeKind::Programmed);
        let ends = programmed.iter().filter(|n| n.changes.iter().any(|change| **change == **id));
        assert_eq!(ends.count(), 1, "{id}");
    }
}

#[test]
fn the_same_run_has_the_same_ids() {
    let (first, second) = (story(), story());
    assert_eq!(first.notices, second.notices);
    let ids = |lab: &Laboratory| -> Vec<Option<String>> {
        lab.azure.calls().iter().map(|call| call.correlation.clone()).collect()
    };
    assert_eq!(ids(&first), ids(&second));
    assert!(ids(&first).iter().all(Option::is_some));
}
