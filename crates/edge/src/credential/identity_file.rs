//! Tokens by a file with a user-assigned identity's credentials (`aadMSIDataPlaneIdentityPath`).

use super::entra::{Entra, Proof};
use super::{CredentialError, Retry, Secret, Token, TokenSource};
use crate::clock::Clock;
use crate::web::Web;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use std::path::PathBuf;

/// Such a file. It is read anew for every token, because it is renewed in place.
#[derive(Clone, Debug)]
pub struct IdentityFile {
    web: Web,
    clock: Clock,
    path: PathBuf,
    audience: String,
    authority: String,
}

#[derive(Deserialize)]
struct Content {
    client_id: String,
    tenant_id: String,
    /// A certificate with its key, in base64.
    client_secret: String,
    authentication_endpoint: Option<String>,
}

impl IdentityFile {
    /// The file at `path`; it may name another login endpoint than `authority`.
    #[must_use]
    pub fn new(web: Web, clock: Clock, path: PathBuf, audience: &str, authority: &str) -> Self {
        Self { web, clock, path, audience: audience.into(), authority: authority.into() }
    }

    async fn fetch(&self) -> Result<Token, CredentialError> {
        let failed = |reason: String| CredentialError {
            attempt: "getting a token with the identity file".into(),
            endpoint: self.path.display().to_string(),
            reason,
            code: None,
            retry: Retry::Shortly,
            advice: "Check aadMSIDataPlaneIdentityPath, and what writes the file".into(),
        };
        let bytes = tokio::fs::read(&self.path).await.map_err(|e| failed(e.to_string()))?;
        // The parser's own words may repeat what is in the file.
        let content: Content = serde_json::from_slice(&bytes).map_err(|_| {
            failed("it is no JSON with client_id, tenant_id and client_secret".into())
        })?;
        let authority = content.authentication_endpoint.filter(|a| !a.is_empty());
        let authority = authority.as_deref().unwrap_or(&self.authority);
        let proof = Proof::InlineCertificate(Secret::new(content.client_secret));
        let (tenant, client) = (&content.tenant_id, &content.client_id);
        let web = self.web.clone();
        Entra::new(web, self.clock, authority, tenant, client, &self.audience, proof)?.token().await
    }
}

impl TokenSource for IdentityFile {
    fn token(&self) -> BoxFuture<'_, Result<Token, CredentialError>> {
        self.fetch().boxed()
    }
}
