//! Tokens from Microsoft Entra ID or AD FS, by the client credentials grant.

use super::assertion::Reader;
use super::certificate::Certificate;
use super::{CredentialError, Retry, Secret, Token, TokenSource, assertion, reply};
use crate::clock::{Clock, wall_ms};
use crate::origin::Origin;
use crate::web::Web;
use arm::path::query_escaped;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE};
use http_body_util::Full;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);
const JWT_BEARER: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// What proves who the client is. Files are read anew for every token, because they are renewed.
#[derive(Clone, Debug)]
pub enum Proof {
    /// A client secret.
    Secret(Secret),
    /// A certificate with its key.
    Certificate {
        /// PEM or PFX file.
        path: PathBuf,
        /// Password of a PFX file.
        password: Secret,
    },
    /// The bytes of a certificate file without a password, in base64.
    InlineCertificate(Secret),
    /// A service account token (workload identity).
    Federated {
        /// The file it is projected into.
        path: PathBuf,
    },
}

/// A client of a tenant.
#[derive(Clone, Debug)]
pub struct Entra {
    web: Web,
    clock: Clock,
    token_url: String,
    reader: Reader,
    client_id: String,
    audience: String,
    proof: Proof,
}

impl Entra {
    /// A client. For AD FS the authority ends in `/adfs`, or the tenant is `adfs`.
    ///
    /// # Errors
    /// The authority is plain HTTP to another machine, or no URL.
    pub fn new(
        web: Web,
        clock: Clock,
        authority: &str,
        tenant: &str,
        client_id: &str,
        audience: &str,
        proof: Proof,
    ) -> Result<Self, CredentialError> {
        let authority =
            Origin::parse("the login endpoint", authority).map_err(|e| CredentialError {
                attempt: proof.attempt(client_id),
                endpoint: authority.to_string(),
                reason: e.to_string(),
                code: None,
                retry: Retry::Shortly,
                advice: "Check cloud and resourceManagerEndpoint in the cloud config".into(),
            })?;
        let (token_url, reader) = if authority.to_string().ends_with("/adfs") {
            (authority.join("/oauth2/token"), Reader::Adfs)
        } else if tenant.eq_ignore_ascii_case("adfs") {
            (authority.join("/adfs/oauth2/token"), Reader::Adfs)
        } else {
            (
                authority.join(&format!("/{}/oauth2/v2.0/token", query_escaped(tenant))),
                Reader::Entra,
            )
        };
        Ok(Self {
            web,
            clock,
            token_url,
            reader,
            client_id: client_id.to_string(),
            audience: audience.to_string(),
            proof,
        })
    }

    async fn fetch(&self) -> Result<Token, CredentialError> {
        let proof = self.prove().await?;
        let scope = format!("{}/.default", self.audience);
        let mut fields = vec![
            ("grant_type", "client_credentials"),
            ("client_id", &self.client_id),
            ("scope", &scope),
        ];
        match &self.proof {
            Proof::Secret(_) => fields.push(("client_secret", proof.expose())),
            Proof::Certificate { .. } | Proof::InlineCertificate(_) | Proof::Federated { .. } => {
                fields.push(("client_assertion_type", JWT_BEARER));
                fields.push(("client_assertion", proof.expose()));
            }
        }
        let request = http::Request::post(&self.token_url)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Full::new(Bytes::from(form(&fields))))
            .map_err(|e| self.failed(e.to_string(), "Check tenantId in the cloud config"))?;
        let advice = "Check that this machine reaches the login endpoint (firewall, proxy, DNS)";
        let answer =
            self.web.send(request, LIMIT).await.map_err(|e| self.failed(e.to_string(), advice))?;
        if !answer.status.is_success() {
            let secrets = [proof.expose()];
            let refusal = reply::refusal(answer.status.as_u16(), &answer.body, &secrets);
            let attempt = self.proof.attempt(&self.client_id);
            return Err(reply::refused(&attempt, &self.token_url, refusal));
        }
        serde_json::from_slice(&answer.body)
            .ok()
            .and_then(|body| reply::token(&body, self.clock.now_ms()))
            .ok_or_else(|| {
                let advice = "Check that the login endpoint is the cloud's own";
                self.failed("the answer holds no token".into(), advice)
            })
    }

    async fn prove(&self) -> Result<Secret, CredentialError> {
        match &self.proof {
            Proof::Secret(secret) => Ok(secret.clone()),
            Proof::Federated { path } => {
                let bytes = self.read(path).await?;
                let text = String::from_utf8(bytes).unwrap_or_default();
                let text = text.trim();
                if text.is_empty() {
                    let why = format!("the token file {} is empty or no text", path.display());
                    let advice = "Check aadFederatedTokenFile (AZURE_FEDERATED_TOKEN_FILE) and \
                                  that the pod is labelled azure.workload.identity/use";
                    return Err(self.failed(why, advice));
                }
                Ok(Secret::new(text))
            }
            Proof::Certificate { path, password } => {
                let bytes = self.read(path).await?;
                self.sign(&bytes, password, &path.display().to_string())
            }
            Proof::InlineCertificate(base64) => {
                let text = base64.expose().trim();
                let bytes = STANDARD.decode(text).unwrap_or_default();
                self.sign(&bytes, &Secret::new(""), "client_secret of the identity file")
            }
        }
    }

    fn sign(&self, bytes: &[u8], password: &Secret, from: &str) -> Result<Secret, CredentialError> {
        let unfit = |why: String| {
            let advice = "Check aadClientCertPath and aadClientCertPassword";
            self.failed(format!("the certificate in {from} is of no use: {why}"), advice)
        };
        let certificate =
            Certificate::read(bytes, password.expose()).map_err(|e| unfit(e.to_string()))?;
        // The login endpoint compares the times in it with its own clock.
        let now_ms = wall_ms();
        assertion::sign(&certificate, &self.client_id, &self.token_url, now_ms, self.reader)
            .map(Secret::new)
            .map_err(|_| unfit("its key does not sign".into()))
    }

    async fn read(&self, path: &Path) -> Result<Vec<u8>, CredentialError> {
        tokio::fs::read(path).await.map_err(|e| {
            let why = format!("cannot read {}: {e}", path.display());
            self.failed(why, "Check the path in the cloud config, and the file's permissions")
        })
    }

    fn failed(&self, reason: String, advice: &str) -> CredentialError {
        CredentialError {
            attempt: self.proof.attempt(&self.client_id),
            endpoint: self.token_url.clone(),
            reason,
            code: None,
            retry: Retry::Shortly,
            advice: advice.into(),
        }
    }
}

impl Proof {
    fn attempt(&self, client_id: &str) -> String {
        let with = match self {
            Self::Secret(_) => "a client secret",
            Self::Certificate { .. } | Self::InlineCertificate(_) => "a client certificate",
            Self::Federated { .. } => "workload identity",
        };
        format!("getting a token for client {client_id} with {with}")
    }
}

impl TokenSource for Entra {
    fn token(&self) -> BoxFuture<'_, Result<Token, CredentialError>> {
        self.fetch().boxed()
    }
}

/// Fields as a form, or as a query.
pub(crate) fn form(fields: &[(&str, &str)]) -> String {
    let pairs: Vec<String> =
        fields.iter().map(|(name, value)| format!("{name}={}", query_escaped(value))).collect();
    pairs.join("&")
}
