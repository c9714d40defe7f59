//! How Azure is reached, and as whom.

use super::error::{clash, missing};
use super::fields::Fields;
use std::collections::BTreeMap;
use std::fmt;

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Which of Azure's clouds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cloud {
    /// The public one.
    Public,
    /// China.
    China,
    /// US Government.
    UsGovernment,
    /// Azure Stack Hub.
    Stack,
}

/// What proves who we are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// Nothing is configured.
    None,
    /// A token that Kubernetes writes to a file (workload identity).
    FederatedToken {
        /// The file.
        file: String,
    },
    /// A managed identity.
    ManagedIdentity {
        /// Client id, or resource id, of a user-assigned one.
        user_assigned: Option<String>,
    },
    /// A client secret.
    ClientSecret(Secret),
    /// A client certificate.
    ClientCertificate {
        /// Its file.
        path: String,
        /// The file's password.
        password: Secret,
    },
    /// A file with a user-assigned identity's credentials.
    IdentityFile {
        /// The file.
        path: String,
    },
}

/// Where tokens come from that another tenant's network asks for besides ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuxiliaryToken {
    /// Subscription of the vault.
    pub subscription: String,
    /// Resource group of the vault.
    pub group: String,
    /// Name of the vault.
    pub vault: String,
    /// Name of the secret.
    pub secret_name: String,
}

/// `cloudConfigType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigType {
    /// Only the file counts.
    File,
    /// Only the Secret counts.
    Secret,
    /// The Secret's keys take the place of the file's.
    Merge,
}

/// `identitySystem`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentitySystem {
    /// Microsoft Entra ID.
    EntraId,
    /// AD FS, on Azure Stack Hub.
    Adfs,
}

/// How Azure is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudSettings {
    /// Which cloud.
    pub cloud: Cloud,
    /// `disableAzureStackCloud` and the like: whether API versions of Azure Stack are kept.
    pub stack_quirks: StackQuirks,
    /// `resourceManagerEndpoint`.
    pub resource_manager_endpoint: Option<String>,
    /// Tenant.
    pub tenant_id: Option<String>,
    /// Tenant of network resources, where it is another one.
    pub network_tenant_id: Option<String>,
    /// Subscription of nodes.
    pub subscription: String,
    /// Subscription of network resources.
    pub network_subscription: String,
    /// Who vouches for us.
    pub identity_system: IdentitySystem,
    /// `aadClientId`.
    pub client_id: Option<String>,
    /// What proves who we are.
    pub credential: Credential,
    /// Where the network tenant's tokens come from.
    pub auxiliary_token: Option<AuxiliaryToken>,
    /// `userAgent`.
    pub user_agent: Option<String>,
    /// `cloudConfigType`.
    pub config_type: ConfigType,
}

/// Whether Azure Stack Hub is spoken to in its own, older API versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackQuirks {
    /// It is.
    Kept,
    /// `disableAzureStackCloud`, or another cloud: it is not.
    Off,
}

impl CloudSettings {
    /// Whether Basic load balancers still exist there: on Azure Stack Hub, and on an emulator of
    /// one's own.
    #[must_use]
    pub fn has_basic(&self) -> bool {
        self.cloud == Cloud::Stack || self.is_loopback()
    }

    /// Whether the endpoint is on this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let Some(endpoint) = &self.resource_manager_endpoint else { return false };
        let rest = endpoint.split_once("://").map_or(endpoint.as_str(), |(_, rest)| rest);
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let authority = authority.rsplit('@').next().unwrap_or_default();
        let host = match authority.strip_prefix('[') {
            Some(v6) => v6.split(']').next().unwrap_or_default(),
            None => authority.split(':').next().unwrap_or_default(),
        };
        let address = host.parse::<std::net::IpAddr>();
        host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|a| a.is_loopback())
    }
}

/// Environment variables that take the place of keys.
const TENANT: &str = "AZURE_TENANT_ID";
const CLIENT: &str = "AZURE_CLIENT_ID";
const CLIENT_SECRET: &str = "AZURE_CLIENT_SECRET";
const TOKEN_FILE: &str = "AZURE_FEDERATED_TOKEN_FILE";

pub(super) fn read(fields: &mut Fields, environment: &BTreeMap<String, String>) -> CloudSettings {
    let variable = |name: &str| environment.get(name).filter(|v| !v.is_empty()).cloned();
    let cloud = read_cloud(fields);
    let quirks_off = fields.flag("disableAzureStackCloud") == Some(true);
    let kept = cloud == Cloud::Stack && !quirks_off;
    let subscription = fields.required("subscriptionId", "the subscription of the nodes");
    let network_subscription = fields.text("networkResourceSubscriptionID");
    let tenant = fields.text("tenantId");
    let tenant_id = variable(TENANT).or(tenant);
    let network_tenant_id = fields.text("networkResourceTenantID");
    let client = fields.text("aadClientId");
    let config_type = read_config_type(fields);
    let credential = read_credential(fields, &variable);
    let settings = CloudSettings {
        cloud,
        stack_quirks: if kept { StackQuirks::Kept } else { StackQuirks::Off },
        resource_manager_endpoint: fields.text("resourceManagerEndpoint"),
        network_tenant_id: network_tenant_id.filter(|id| Some(id) != tenant_id.as_ref()),
        tenant_id,
        network_subscription: network_subscription.unwrap_or_else(|| subscription.clone()),
        subscription,
        identity_system: identity_system(fields),
        client_id: variable(CLIENT).or(client),
        credential,
        auxiliary_token: auxiliary_token(fields),
        user_agent: fields.text("userAgent"),
        config_type,
    };
    check(fields, &settings);
    settings
}

fn read_cloud(fields: &mut Fields) -> Cloud {
    let Some(name) = fields.text("cloud") else { return Cloud::Public };
    match name.to_uppercase().as_str() {
        "AZURECLOUD" | "AZUREPUBLICCLOUD" => Cloud::Public,
        "AZURECHINACLOUD" => Cloud::China,
        "AZUREUSGOVERNMENT" | "AZUREUSGOVERNMENTCLOUD" => Cloud::UsGovernment,
        "AZURESTACKCLOUD" => Cloud::Stack,
        _ => {
            fields.warn(&format!("cloud {name:?} is not known: the public cloud is used"));
            Cloud::Public
        }
    }
}

fn read_config_type(fields: &mut Fields) -> ConfigType {
    let words =
        [("file", ConfigType::File), ("secret", ConfigType::Secret), ("merge", ConfigType::Merge)];
    fields.word("cloudConfigType", &words).unwrap_or(ConfigType::Merge)
}

fn identity_system(fields: &mut Fields) -> IdentitySystem {
    let words = [
        ("adfs", IdentitySystem::Adfs),
        ("azure_ad", IdentitySystem::EntraId),
        ("azuread", IdentitySystem::EntraId),
    ];
    fields.word("identitySystem", &words).unwrap_or(IdentitySystem::EntraId)
}

/// The first that is there, in the order in which Azure's own provider takes them.
fn read_credential(fields: &mut Fields, variable: &impl Fn(&str) -> Option<String>) -> Credential {
    let federated = fields.flag("useFederatedWorkloadIdentityExtension") == Some(true);
    let token_file = fields.text("aadFederatedTokenFile");
    let forced = variable(TOKEN_FILE);
    let managed = fields.flag("useManagedIdentityExtension") == Some(true);
    let user_assigned = fields.text("userAssignedIdentityID");
    let secret = fields.text("aadClientSecret");
    let secret = variable(CLIENT_SECRET).or(secret);
    let certificate = fields.text("aadClientCertPath");
    let password = fields.text("aadClientCertPassword").unwrap_or_default();
    let identity_file = fields.text("aadMSIDataPlaneIdentityPath");
    if let Some(file) = forced {
        return Credential::FederatedToken { file };
    }
    if federated {
        if token_file.is_none() {
            let purpose = "useFederatedWorkloadIdentityExtension: true reads the token from it";
            fields.error(missing("aadFederatedTokenFile", purpose));
        }
        return Credential::FederatedToken { file: token_file.unwrap_or_default() };
    }
    if managed {
        return Credential::ManagedIdentity { user_assigned };
    }
    match (secret, certificate, identity_file) {
        (Some(secret), _, _) => Credential::ClientSecret(Secret::new(secret)),
        (None, Some(path), _) => {
            Credential::ClientCertificate { path, password: Secret::new(password) }
        }
        (None, None, Some(path)) => Credential::IdentityFile { path },
        (None, None, None) => Credential::None,
    }
}

fn auxiliary_token(fields: &mut Fields) -> Option<AuxiliaryToken> {
    let key = "auxiliaryTokenProvider";
    let value = fields.take(key)?;
    fields.inner(key, value, |inner| {
        let mut text = |key| inner.required(key, "it is part of where the token lies");
        AuxiliaryToken {
            subscription: text("subscriptionID"),
            group: text("resourceGroup"),
            vault: text("vaultName"),
            secret_name: text("secretName"),
        }
    })
}

/// What has to fit together to reach Azure at all.
fn check(fields: &mut Fields, settings: &CloudSettings) {
    let metadata = fields.flag("useInstanceMetadata");
    let client = matches!(
        settings.credential,
        Credential::ClientSecret(_)
            | Credential::ClientCertificate { .. }
            | Credential::FederatedToken { .. }
    );
    if client && settings.client_id.is_none() {
        fields.error(missing("aadClientId", "the credential is that of a client"));
    }
    if client && settings.tenant_id.is_none() {
        fields.error(missing("tenantId", "the credential is that of a client in a tenant"));
    }
    let managed = matches!(settings.credential, Credential::ManagedIdentity { .. });
    if managed && settings.network_tenant_id.is_some() && settings.auxiliary_token.is_none() {
        fields.error(clash(
            "networkResourceTenantID with a managed identity needs auxiliaryTokenProvider",
        ));
    }
    if settings.credential != Credential::None {
        return;
    }
    if settings.config_type == ConfigType::File && metadata != Some(true) {
        fields.error(clash(
            "there is no credential: set one, or useInstanceMetadata: true, or another \
             cloudConfigType than file",
        ));
    } else if !settings.is_loopback() {
        fields.warn(
            "no credential is set; Ballast uses the Azure CLI (az login) outside a cluster, and \
             cannot reach Azure in a Pod",
        );
    }
}
