//! Documents of a running controller.

use crate::exit::{Exit, Failure};
use bytes::Bytes;
use edge::web::Web;
use http_body_util::Full;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Where a controller on this machine serves its documents.
pub const SERVER: &str = "http://127.0.0.1:10270";
/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Asks a controller for a document; `noun` is what it is called.
///
/// # Errors
/// No controller answers, or it answers something else.
pub async fn ask<T: DeserializeOwned>(server: &str, path: &str, noun: &str) -> Result<T, Failure> {
    let url = format!("{}{path}", server.trim_end_matches('/'));
    let failed = |exit: Exit, why: &str| {
        let advice = "Check --server: it is where `ballast run` or `ballast up` serves health and \
                      metrics";
        Failure::new(exit, format!("no {noun} from {url}: {why}. {advice}"))
    };
    let request = http::Request::get(&url)
        .body(Full::new(Bytes::new()))
        .map_err(|e| failed(Exit::Usage, &e.to_string()))?;
    let web = if url.starts_with("https:") { Web::new() } else { Web::loopback() };
    let web = web.map_err(|e| Failure::new(Exit::Usage, e))?;
    let reply =
        web.send(request, LIMIT).await.map_err(|e| failed(Exit::Unavailable, &e.to_string()))?;
    if !reply.status.is_success() {
        let text = String::from_utf8_lossy(&reply.body);
        let why = format!("HTTP {}: {}", reply.status.as_u16(), text.trim());
        return Err(failed(Exit::Unavailable, &why));
    }
    serde_json::from_slice(&reply.body)
        .map_err(|e| failed(Exit::Unavailable, &format!("the answer is no {noun}: {e}")))
}
