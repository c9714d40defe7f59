//! Sends requests to Azure Resource Manager.
//!
//! # Guarantees
//! A bearer token goes to the ARM endpoint's own origin only, and never over plain HTTP. A request
//! that may have reached ARM is never reported as not sent.
//!
//! # Assumptions
//! Retrying, waiting and budgets are the controller's business; the one thing repeated here is a
//! request refused with 401, once, with a fresh token.

pub mod headers;

use crate::clock::Clock;
use crate::credential::{Token, TokenSource};
use crate::lease::Held;
use crate::origin::{Origin, OriginError, Scheme};
use crate::random;
use crate::web::{Web, WebFault, WebReply};
use arm::{Answer, Reply, Request, Target, TransportFault};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH, USER_AGENT};
use http::{HeaderValue, StatusCode};
use http_body_util::Full;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How long one request may take.
pub const REQUEST_LIMIT: Duration = Duration::from_secs(60);

/// Sends requests to one ARM endpoint. Clones share connections and tokens.
#[derive(Clone, Debug)]
pub struct Sender {
    web: Web,
    endpoint: Origin,
    tokens: Option<Arc<dyn TokenSource>>,
    user_agent: HeaderValue,
    limit: Duration,
    lease: Option<(Held, Clock)>,
}

/// Why no sender can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SenderError {
    /// The endpoint is refused.
    #[error("the ARM endpoint cannot be used: {0}")]
    Endpoint(#[from] OriginError),
    /// An endpoint behind TLS wants tokens and there are none.
    #[error(
        "no credential is configured for the ARM endpoint {0}. Set one in the cloud config: \
         useFederatedWorkloadIdentityExtension, useManagedIdentityExtension, or aadClientId with \
         aadClientSecret or aadClientCertPath"
    )]
    NoCredential(String),
    /// The user agent is no header value.
    #[error("the user agent \"{0}\" has characters that a header cannot hold; change userAgent")]
    UserAgent(String),
}

impl Sender {
    /// A sender to `endpoint`. On plain HTTP, which is for loopback only, `tokens` is not used.
    ///
    /// # Errors
    /// Plain HTTP to another machine; no credential for an endpoint behind TLS.
    pub fn new(
        web: Web,
        endpoint: &str,
        tokens: Option<Arc<dyn TokenSource>>,
        user_agent: &str,
    ) -> Result<Self, SenderError> {
        let endpoint = Origin::parse("resourceManagerEndpoint", endpoint)?;
        let tokens = match endpoint.scheme() {
            Scheme::LoopbackHttp => None,
            Scheme::Https if tokens.is_none() => {
                return Err(SenderError::NoCredential(endpoint.to_string()));
            }
            Scheme::Https => tokens,
        };
        let user_agent = HeaderValue::from_str(user_agent)
            .map_err(|_| SenderError::UserAgent(user_agent.to_string()))?;
        Ok(Self { web, endpoint, tokens, user_agent, limit: REQUEST_LIMIT, lease: None })
    }

    /// The same sender with another time-out.
    #[must_use]
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The same sender, which looks at the lease again when a write is about to go out: to wait for
    /// a token may have taken longer than the lease lasts.
    #[must_use]
    pub fn under_lease(mut self, held: Held, clock: Clock) -> Self {
        self.lease = Some((held, clock));
        self
    }

    /// The endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &Origin {
        &self.endpoint
    }

    /// Sends a request and brings back what ARM said.
    pub async fn send(&self, request: &Request) -> Answer {
        match self.exchange(request).await {
            Ok(reply) => Answer::Reply(Box::new(reply)),
            Err(fault) => Answer::Fault(fault),
        }
    }

    async fn exchange(&self, request: &Request) -> Result<Reply, TransportFault> {
        let url = self.url(&request.target)?;
        let token = self.token().await?;
        let mut reply = self.once(request, &url, token.as_ref()).await?;
        if let (StatusCode::UNAUTHORIZED, Some(tokens), Some(token)) =
            (reply.status, &self.tokens, &token)
        {
            // The first answer stands if there is no other token: it says why.
            tokens.forget(token);
            if let Ok(fresh) = tokens.token().await
                && fresh.secret != token.secret
            {
                reply = self.once(request, &url, Some(&fresh)).await?;
            }
        }
        Ok(headers::reply(reply, request.method, SystemTime::now()))
    }

    fn url(&self, target: &Target) -> Result<String, TransportFault> {
        match target {
            Target::Path(path) => Ok(self.endpoint.join(path)),
            Target::Url(url) => {
                let refused = |why: String| {
                    let shown = crate::origin::without_query(url);
                    TransportFault::Foreign(format!("refused to follow {shown}: {why}"))
                };
                let there = Origin::parse("the address in ARM's answer", url)
                    .map_err(|e| refused(e.to_string()))?;
                if !there.is_same_server(&self.endpoint) {
                    let endpoint = &self.endpoint;
                    return Err(refused(format!("only addresses of {endpoint} are followed")));
                }
                Ok(url.clone())
            }
        }
    }

    async fn token(&self) -> Result<Option<Token>, TransportFault> {
        let Some(tokens) = &self.tokens else { return Ok(None) };
        match tokio::time::timeout(self.limit, tokens.token()).await {
            Ok(Ok(token)) => Ok(Some(token)),
            Ok(Err(error)) => Err(TransportFault::NotSent(format!("no access token: {error}"))),
            Err(_) => {
                let seconds = self.limit.as_secs_f32();
                let why = format!("no access token: none came within {seconds} s");
                Err(TransportFault::NotSent(why))
            }
        }
    }

    async fn once(
        &self,
        request: &Request,
        url: &str,
        token: Option<&Token>,
    ) -> Result<WebReply, TransportFault> {
        if request.method.is_write()
            && let Some((held, clock)) = &self.lease
            && !held.allows(clock.now_ms())
        {
            return Err(TransportFault::NotSent("the lease is not held any more".to_owned()));
        }
        let name = request.method.name();
        let shown = crate::origin::without_query(url);
        let wire = self.build(request, url, token).map_err(|e| {
            TransportFault::NotSent(format!("{name} {shown} cannot be put on the wire: {e}"))
        })?;
        self.web.send(wire, self.limit).await.map_err(|fault| match fault {
            WebFault::NotSent(_) => TransportFault::NotSent(format!("{name} {shown}: {fault}")),
            WebFault::Ambiguous(_) => TransportFault::Ambiguous(format!("{name} {shown}: {fault}")),
        })
    }

    fn build(
        &self,
        request: &Request,
        url: &str,
        token: Option<&Token>,
    ) -> Result<http::Request<Full<Bytes>>, http::Error> {
        let mut wire = http::Request::builder()
            .method(request.method.name())
            .uri(url)
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, self.user_agent.clone())
            .header("x-ms-client-request-id", random::uuid())
            .header("x-ms-return-client-request-id", "true")
            .header("x-ms-correlation-request-id", &request.correlation);
        if let Some(etag) = request.condition.if_match() {
            wire = wire.header(IF_MATCH, etag.as_str());
        }
        if let Some(any) = request.condition.if_none_match() {
            wire = wire.header(IF_NONE_MATCH, any);
        }
        if let Some(token) = token {
            let text = format!("Bearer {}", token.secret.expose());
            let mut value = HeaderValue::from_str(&text)?;
            value.set_sensitive(true);
            wire = wire.header(AUTHORIZATION, value);
        }
        let body = match &request.body {
            Some(body) => {
                wire = wire.header(CONTENT_TYPE, "application/json");
                Bytes::from_owner(Text(body.text()))
            }
            None => Bytes::new(),
        };
        wire.body(Full::new(body))
    }
}

/// A body's text on its way to the wire: the one that the request holds, and no copy of it.
struct Text(Arc<str>);

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

#[cfg(test)]
mod tests;
