//! Tokens of the machine's managed identity, from the instance metadata service.

use super::entra::form;
use super::{CredentialError, Retry, Token, TokenSource, reply};
use crate::clock::Clock;
use crate::origin::{Origin, Scheme};
use crate::web::Web;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_body_util::Full;
use std::time::Duration;

/// The service's fixed link-local address: plain HTTP that never leaves the machine.
pub const METADATA_SERVICE: &str = "http://169.254.169.254";

const LIMIT: Duration = Duration::from_secs(30);

/// Whose token it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The machine's own.
    System,
    /// A user-assigned one by its client id.
    Client(String),
    /// A user-assigned one by its resource id.
    Resource(String),
}

impl Identity {
    /// Reads `userAssignedIdentityID`: empty, a client id, or a resource id.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        if text.is_empty() {
            Self::System
        } else if text.to_ascii_lowercase().contains("/subscriptions/") {
            Self::Resource(text.to_string())
        } else {
            Self::Client(text.to_string())
        }
    }
}

/// A managed identity.
#[derive(Clone, Debug)]
pub struct Managed {
    web: Web,
    clock: Clock,
    base: String,
    audience: String,
    identity: Identity,
}

impl Managed {
    /// The identity as [`METADATA_SERVICE`] gives it.
    #[must_use]
    pub fn new(web: Web, clock: Clock, audience: &str, identity: Identity) -> Self {
        let base = METADATA_SERVICE.to_string();
        Self { web, clock, base, audience: audience.to_string(), identity }
    }

    /// Asks a service on loopback instead; any other address is not taken.
    #[must_use]
    pub fn with_service(mut self, base: &Origin) -> Self {
        if base.scheme() == Scheme::LoopbackHttp {
            self.base = base.to_string();
        }
        self
    }

    async fn fetch(&self) -> Result<Token, CredentialError> {
        let mut fields = vec![("api-version", "2018-02-01"), ("resource", &self.audience)];
        match &self.identity {
            Identity::System => {}
            Identity::Client(id) => fields.push(("client_id", id)),
            Identity::Resource(id) => fields.push(("msi_res_id", id)),
        }
        let url = format!("{}/metadata/identity/oauth2/token?{}", self.base, form(&fields));
        let request = http::Request::get(url)
            .header("Metadata", "true")
            .body(Full::new(Bytes::new()))
            .map_err(|e| self.failed(e.to_string(), None, "Check userAssignedIdentityID"))?;
        let answer = self.web.send(request, LIMIT).await.map_err(|e| {
            let advice = "Managed identities work on Azure machines only; elsewhere set another \
                          credential. In a cluster check that no network policy forbids \
                          169.254.169.254";
            self.failed(e.to_string(), None, advice)
        })?;
        if !answer.status.is_success() {
            let refusal = reply::refusal(answer.status.as_u16(), &answer.body, &[]);
            let retry = retry(answer.status.as_u16());
            let advice = match (&self.identity, retry) {
                (_, Retry::Updating) => {
                    "The service is being updated, for at most 70 s; it is asked every 10 s"
                }
                (_, Retry::BackOff) => {
                    "The service is busy or restarting; it is asked again, after longer each time"
                }
                (Identity::System, _) => "Turn on the machine's system-assigned identity",
                _ => "Check userAssignedIdentityID, and that this machine has the identity",
            };
            let failed = self.failed(refusal.reason, refusal.code, advice);
            return Err(CredentialError { retry, ..failed });
        }
        serde_json::from_slice(&answer.body)
            .ok()
            .and_then(|body| reply::token(&body, self.clock.now_ms()))
            .ok_or_else(|| {
                let advice = "Check that nothing intercepts the metadata service";
                self.failed("the answer holds no token".into(), None, advice)
            })
    }

    fn failed(&self, reason: String, code: Option<String>, advice: &str) -> CredentialError {
        let whose = match &self.identity {
            Identity::System => "the system-assigned identity".to_string(),
            Identity::Client(id) => format!("the identity with client id {id}"),
            Identity::Resource(id) => format!("the identity {id}"),
        };
        CredentialError {
            attempt: format!("getting a token for {whose}"),
            endpoint: format!("{}/metadata/identity", self.base),
            reason,
            code,
            retry: Retry::Shortly,
            advice: advice.into(),
        }
    }
}

/// When to ask again after a refusal: as the page "How to use managed identities … to acquire an
/// access token" asks for under error handling. Other refusals are answered by changing the
/// settings.
fn retry(status: u16) -> Retry {
    match status {
        410 => Retry::Updating,
        404 | 429 | 500.. => Retry::BackOff,
        _ => Retry::Shortly,
    }
}

impl TokenSource for Managed {
    fn token(&self) -> BoxFuture<'_, Result<Token, CredentialError>> {
        self.fetch().boxed()
    }
}
