use super::*;
use crate::fake::{Act, Fake};
use crate::kubernetes::{ConnectFrom, connect};
use serde_json::json;

fn call() -> KubernetesCall {
    KubernetesCall {
        method: "PATCH",
        path: "/api/v1/namespaces/n/services/s?fieldManager=ballast".into(),
        content_type: "application/merge-patch+json",
        body: json!({"metadata": {"finalizers": ["f"]}}),
    }
}

#[tokio::test]
async fn a_call_goes_out_as_it_is_and_is_not_repeated() {
    let fake = Fake::start(|_, _| {
        Act::Reply(429, vec![("Retry-After", "2".into())], r#"{"message":"slow down"}"#.into())
    })
    .await;
    let client = connect(&ConnectFrom::Address(fake.url.clone()), "ballast/test").await.unwrap();
    let answer = Sender::new(client).send(&call()).await;
    let body = Some(json!({"message": "slow down"}));
    let expected = KubernetesAnswer::Reply { status: 429, retry_after_ms: Some(2000), body };
    assert_eq!(answer, expected);
    let seen = fake.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].method.as_str(), &seen[0].path), ("PATCH", &call().path));
    assert_eq!(seen[0].header("content-type"), "application/merge-patch+json");
    assert_eq!(seen[0].header("user-agent"), "ballast/test");
    assert_eq!(seen[0].body, call().body.to_string());
}

#[tokio::test]
async fn no_answer_is_a_fault_that_says_of_what() {
    let fake = Fake::start(|_, _| Act::Drop).await;
    let client = connect(&ConnectFrom::Address(fake.url.clone()), "t").await.unwrap();
    let KubernetesAnswer::Fault(why) = Sender::new(client).send(&call()).await else {
        panic!("no fault")
    };
    assert!(why.starts_with("PATCH /api/v1/namespaces/n/services/s at the API server: "), "{why}");
}
