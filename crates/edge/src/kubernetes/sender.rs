//! Sends the controller's calls to the API server.

use crate::retry_after::retry_after_ms;
use crate::web::chain;
use bytes::{Bytes, BytesMut};
use control::{KubernetesAnswer, KubernetesCall};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// How long one call may take.
pub const CALL_LIMIT: Duration = Duration::from_secs(30);
/// Most bytes of an answer to a write or of a page of a list.
const BODY_CAP: usize = 128 << 20;

/// Sends calls. Clones share connections.
#[derive(Clone)]
pub struct Sender {
    client: Client,
}

/// A whole answer of the API server.
#[derive(Clone, Debug)]
pub(crate) struct ServerReply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Sender {
    /// A sender over a client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Sends a call and brings back what became of it.
    pub async fn send(&self, call: &KubernetesCall) -> KubernetesAnswer {
        let body = match &call.body {
            Value::Null => Body::empty(),
            body => Body::from(body.to_string().into_bytes()),
        };
        let request = Request::builder()
            .method(call.method)
            .uri(&call.path)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, call.content_type)
            .body(body);
        let shown = crate::origin::without_query(&call.path);
        let fault = |why: String| {
            KubernetesAnswer::Fault(format!("{} {shown} at the API server: {why}", call.method))
        };
        let request = match request {
            Ok(request) => request,
            Err(e) => return fault(format!("it cannot be put on the wire: {e}")),
        };
        match exchange(&self.client, request, CALL_LIMIT).await {
            Ok(reply) => KubernetesAnswer::Reply {
                status: reply.status.as_u16(),
                retry_after_ms: retry_after_ms(&reply.headers, SystemTime::now()),
                body: serde_json::from_slice(&reply.body).ok(),
            },
            Err(why) => fault(why),
        }
    }
}

/// Sends a request and reads the whole answer.
pub(crate) async fn exchange(
    client: &Client,
    request: Request<Body>,
    limit: Duration,
) -> Result<ServerReply, String> {
    let work = async {
        let reply = client.send(request).await.map_err(|e| chain(&e))?;
        let (parts, mut incoming) = reply.into_parts();
        let mut body = BytesMut::new();
        while let Some(frame) = incoming.frame().await {
            let frame = frame.map_err(|e| format!("the answer broke off: {}", chain(&e)))?;
            let Ok(piece) = frame.into_data() else { continue };
            if body.len() + piece.len() > BODY_CAP {
                return Err(format!("the answer is longer than {BODY_CAP} bytes"));
            }
            body.extend_from_slice(&piece);
        }
        Ok(ServerReply { status: parts.status, headers: parts.headers, body: body.freeze() })
    };
    match tokio::time::timeout(limit, work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("no whole answer within {} s", limit.as_secs_f32())),
    }
}

/// The reason in an answer of kind Status, for people.
pub(crate) fn status_text(status: StatusCode, body: &[u8]) -> String {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let message = json.get("message").and_then(|m| m.as_str()).unwrap_or("no explanation");
    let advice = match status.as_u16() {
        401 => "; check the service account token or the kubeconfig",
        403 => "; grant it to Ballast's service account (deploy/ has the ClusterRole)",
        404 => "; check that the API server is a Kubernetes that serves this",
        _ => "",
    };
    format!("HTTP {}: {message}{advice}", status.as_u16())
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
