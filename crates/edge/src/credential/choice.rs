//! The token source of a config.

use super::cli::Cli;
use super::entra::{Entra, Proof};
use super::identity_file::IdentityFile;
use super::managed::{Identity, Managed};
use super::{Cached, CredentialError, Retry, TokenSource};
use crate::clock::Clock;
use crate::cloud::Endpoints;
use crate::web::Web;
use observe::config::{CloudSettings, Credential, IdentitySystem};
use std::path::PathBuf;
use std::sync::Arc;

/// Where the process runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// In a pod: nobody is logged in.
    #[default]
    Cluster,
    /// On somebody's machine: the Azure CLI may be asked.
    Outside,
}

impl Place {
    /// Kubernetes tells every pod where its API server is.
    #[must_use]
    pub fn detect() -> Self {
        if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
            Self::Cluster
        } else {
            Self::Outside
        }
    }
}

/// The source of the config's credential, and outside a cluster, if none is set, the Azure CLI.
/// `None`: there is none.
///
/// # Errors
/// A credential is set but incomplete, or one of another tenant is wanted besides.
pub fn choose(
    settings: &CloudSettings,
    endpoints: &Endpoints,
    web: &Web,
    clock: Clock,
    place: Place,
) -> Result<Option<Arc<dyn TokenSource>>, CredentialError> {
    refuse_second_tenant(settings, endpoints)?;
    let proven = |proof| entra(settings, endpoints, web, clock, proof);
    let audience = &endpoints.audience;
    let source: Arc<dyn TokenSource> = match &settings.credential {
        Credential::FederatedToken { file } => {
            proven(Proof::Federated { path: PathBuf::from(file) })?
        }
        Credential::ManagedIdentity { user_assigned } => {
            let identity = Identity::parse(user_assigned.as_deref().unwrap_or(""));
            Arc::new(Managed::new(web.clone(), clock, audience, identity))
        }
        Credential::ClientSecret(secret) => proven(Proof::Secret(secret.clone()))?,
        Credential::ClientCertificate { path, password } => {
            proven(Proof::Certificate { path: PathBuf::from(path), password: password.clone() })?
        }
        Credential::IdentityFile { path } => {
            let path = PathBuf::from(path);
            let authority = &endpoints.authority;
            Arc::new(IdentityFile::new(web.clone(), clock, path, audience, authority))
        }
        Credential::None if place == Place::Outside => {
            Arc::new(Cli::new(audience, settings.tenant_id.as_deref()))
        }
        Credential::None => return Ok(None),
    };
    Ok(Some(Arc::new(Cached::new(source, clock))))
}

fn refuse_second_tenant(
    settings: &CloudSettings,
    endpoints: &Endpoints,
) -> Result<(), CredentialError> {
    let other = settings.network_tenant_id.as_ref().filter(|t| !t.is_empty());
    let other = other.filter(|t| Some(*t) != settings.tenant_id.as_ref());
    let Some(other) = other else { return Ok(()) };
    Err(CredentialError {
        attempt: "setting up the credential".into(),
        endpoint: endpoints.authority.clone(),
        reason: format!(
            "networkResourceTenantID is another tenant ({other}), and Ballast asks \
                         one tenant for tokens"
        ),
        code: None,
        retry: Retry::Shortly,
        advice: "Run Ballast with a credential of the tenant that owns the network resources, as \
                 tenantId, and remove networkResourceTenantID"
            .into(),
    })
}

fn entra(
    settings: &CloudSettings,
    endpoints: &Endpoints,
    web: &Web,
    clock: Clock,
    proof: Proof,
) -> Result<Arc<dyn TokenSource>, CredentialError> {
    let authority = &endpoints.authority;
    let missing = |key: &str, environment: &str| CredentialError {
        attempt: "setting up the credential".into(),
        endpoint: authority.clone(),
        reason: format!("{key} is not set"),
        code: None,
        retry: Retry::Shortly,
        advice: format!("Set {key} in the cloud config, or {environment} in the environment")
            .into(),
    };
    let client = settings.client_id.as_deref().filter(|c| !c.is_empty());
    let client = client.ok_or_else(|| missing("aadClientId", "AZURE_CLIENT_ID"))?;
    let tenant = match settings.identity_system {
        IdentitySystem::Adfs => "adfs",
        IdentitySystem::EntraId => settings
            .tenant_id
            .as_deref()
            .filter(|t| !t.is_empty())
            .ok_or_else(|| missing("tenantId", "AZURE_TENANT_ID"))?,
    };
    let (web, audience) = (web.clone(), &endpoints.audience);
    Ok(Arc::new(Entra::new(web, clock, authority, tenant, client, audience, proof)?))
}
