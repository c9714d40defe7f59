//! What the emulators say becomes what the controller's edge would have made of it.

use arm::exchange::read_remaining;
use arm::{Answer, Item, Page, Reply, Request, Target, TransportFault};
use azure_emulator::{Answer as AzureAnswer, Fate, Request as AzureRequest, Shown};
use control::{KubernetesAnswer, KubernetesCall};
use kube_emulator::{Body, Method, Request as KubernetesRequest, Response, Store};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A request as the Azure emulator takes it; URLs lose the emulator's base.
#[must_use]
pub fn azure_request(request: &Request, base: &str) -> AzureRequest {
    let path = match &request.target {
        Target::Path(path) => path.clone(),
        Target::Url(url) => url.strip_prefix(base).unwrap_or(url).to_owned(),
    };
    AzureRequest {
        method: request.method.name().to_owned(),
        path,
        if_match: request.condition.if_match().map(|e| e.as_str().to_owned()),
        if_none_match: request.condition.if_none_match().map(str::to_owned),
        body: request.body.as_ref().map(|body| body.tree().into_owned()),
        correlation_id: Some(request.correlation.clone()),
    }
}

/// What reaches the controller of an answer, and after how long.
#[must_use]
pub fn azure_answer(answer: AzureAnswer) -> (Answer, u64) {
    let headers: BTreeMap<String, String> =
        answer.headers.into_iter().map(|(k, v)| (k.to_lowercase(), v)).collect();
    let header = |name: &str| headers.get(name).cloned();
    let remaining = headers.iter().flat_map(|(name, value)| read_remaining(name, value)).collect();
    let (body, page) = match answer.shown {
        Shown::Nothing => (answer.body.map(Arc::new), None),
        Shown::One(one) => (Some(one), None),
        Shown::Page { items, next } => {
            (None, Some(Page { items: items.into_iter().map(Item::Parsed).collect(), next }))
        }
    };
    let reply = Reply {
        status: answer.status,
        async_operation: header("azure-asyncoperation"),
        location: header("location"),
        retry_after_ms: header("retry-after")
            .and_then(|s| s.parse::<u64>().ok())
            .map(|s| s * 1_000),
        error_code: header("x-ms-error-code"),
        remaining,
        body,
        page,
    };
    fated(answer.fate, Answer::Reply(Box::new(reply)))
}

/// A minute: when the edge gives up on an answer.
const TIMEOUT_MS: u64 = 60_000;

fn fated(fate: Fate, answer: Answer) -> (Answer, u64) {
    let broken = || Answer::Fault(TransportFault::Ambiguous("the connection broke".to_owned()));
    match fate {
        Fate::Deliver => (answer, 0),
        Fate::Delay(ms) => (answer, ms),
        Fate::ResetBefore | Fate::ResetAfter | Fate::Truncated => (broken(), 0),
        Fate::Hang => {
            let late = TransportFault::Ambiguous("no answer within 60 s".to_owned());
            (Answer::Fault(late), TIMEOUT_MS)
        }
    }
}

/// Sends a call to the store.
pub fn kubernetes_call(store: &mut Store, call: &KubernetesCall, now_ms: u64) -> KubernetesAnswer {
    let method = Method::parse(call.method).unwrap_or(Method::Get);
    let request = KubernetesRequest::new(method, &call.path);
    let request = match &call.body {
        serde_json::Value::Null => request,
        body => request.with_body(call.content_type, body),
    };
    let response = store.handle(&request, now_ms);
    answer(&response)
}

fn answer(response: &Response) -> KubernetesAnswer {
    let body = match &response.body {
        Body::Document(value) => Some(value.clone()),
        Body::Object(object) => Some(object.as_ref().clone()),
        Body::List { head, items } => {
            let mut list = head.clone();
            list["items"] = items.iter().map(|item| item.as_ref().clone()).collect();
            Some(list)
        }
        Body::Bytes(_) | Body::Watch(_) => None,
    };
    KubernetesAnswer::Reply {
        status: response.code,
        retry_after_ms: response.retry_after_s.map(|s| u64::from(s) * 1_000),
        body,
    }
}
