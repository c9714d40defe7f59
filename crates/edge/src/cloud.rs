//! Which Azure this is: built-in clouds, or what an ARM endpoint says of itself.

use crate::origin::{Origin, OriginError};
use crate::web::{Web, WebFault};
use bytes::Bytes;
use http_body_util::Full;
use observe::config::{Cloud, CloudSettings};
use serde::Deserialize;
use std::time::Duration;

const METADATA_PATH: &str = "/metadata/endpoints?api-version=2019-05-01";
const LIMIT: Duration = Duration::from_secs(30);

/// The endpoints of one Azure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Name.
    pub name: String,
    /// ARM endpoint.
    pub endpoint: String,
    /// Audience of ARM tokens.
    pub audience: String,
    /// Login endpoint.
    pub authority: String,
}

/// Why the cloud's endpoints are not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloudError {
    /// The address is refused.
    #[error(transparent)]
    Endpoint(#[from] OriginError),
    /// An Azure Stack without an address.
    #[error(
        "cloud is AZURESTACKCLOUD, whose endpoints are not built in; set resourceManagerEndpoint \
         or name a file in the environment variable AZURE_ENVIRONMENT_FILEPATH"
    )]
    NoEndpoint,
    /// There was no answer.
    #[error(
        "asking {url} for the cloud's endpoints failed: {fault}; check resourceManagerEndpoint"
    )]
    Unreachable {
        /// Where.
        url: String,
        /// Why.
        fault: WebFault,
    },
    /// The answer is of no use.
    #[error("{url} does not describe the cloud: {why}; check resourceManagerEndpoint and cloud")]
    Unusable {
        /// Where.
        url: String,
        /// Why.
        why: String,
    },
}

impl Endpoints {
    /// Those of a built-in cloud; an Azure Stack has none. The audiences are those of Azure's own
    /// clients (azure-mgmt-core 1.6.0, `get_arm_endpoints`).
    #[must_use]
    pub fn builtin(cloud: Cloud) -> Option<Self> {
        let (endpoint, audience, authority) = match cloud {
            Cloud::Public => (
                "https://management.azure.com",
                "https://management.azure.com",
                "https://login.microsoftonline.com",
            ),
            Cloud::China => (
                "https://management.chinacloudapi.cn",
                "https://management.chinacloudapi.cn",
                "https://login.chinacloudapi.cn",
            ),
            Cloud::UsGovernment => (
                "https://management.usgovcloudapi.net",
                "https://management.core.usgovcloudapi.net",
                "https://login.microsoftonline.us",
            ),
            Cloud::Stack => return None,
        };
        Some(Self {
            name: name(cloud).into(),
            endpoint: endpoint.into(),
            audience: audience.into(),
            authority: authority.into(),
        })
    }

    /// The endpoints of a config: `resourceManagerEndpoint` is asked if it is set, otherwise the
    /// cloud decides. `environment_file` is the content of the file that
    /// `AZURE_ENVIRONMENT_FILEPATH` names, for an Azure Stack.
    ///
    /// # Errors
    /// See [`CloudError`].
    pub async fn select(
        settings: &CloudSettings,
        environment_file: Option<&str>,
        web: &Web,
    ) -> Result<Self, CloudError> {
        if let Some(resource_manager) = &settings.resource_manager_endpoint {
            return Self::ask(web, name(settings.cloud), resource_manager).await;
        }
        match (Self::builtin(settings.cloud), environment_file) {
            (Some(endpoints), _) => Ok(endpoints),
            (None, Some(text)) => Self::from_environment_file(text),
            (None, None) => Err(CloudError::NoEndpoint),
        }
    }

    async fn ask(web: &Web, name: &str, resource_manager: &str) -> Result<Self, CloudError> {
        let endpoint = Origin::parse("resourceManagerEndpoint", resource_manager)?;
        let url = endpoint.join(METADATA_PATH);
        let unusable = |why: String| CloudError::Unusable { url: url.clone(), why };
        let request = http::Request::get(&url)
            .header(http::header::ACCEPT, "application/json")
            .body(Full::new(Bytes::new()))
            .map_err(|e| unusable(e.to_string()))?;
        let answer = web
            .send(request, LIMIT)
            .await
            .map_err(|fault| CloudError::Unreachable { url: url.clone(), fault })?;
        if !answer.status.is_success() {
            return Err(unusable(format!("it answered HTTP {}", answer.status.as_u16())));
        }
        Self::from_metadata(&answer.body, name, &endpoint).map_err(unusable)
    }

    /// Picks the cloud in an endpoint's metadata: that of the address that was asked, or of this
    /// name.
    ///
    /// # Errors
    /// It is no metadata, or holds neither.
    pub fn from_metadata(body: &[u8], name: &str, asked: &Origin) -> Result<Self, String> {
        let entries = entries(body).map_err(|e| format!("it is no list of clouds: {e}"))?;
        Self::from_entries(&entries, name, asked)
    }

    fn from_entries(entries: &[Entry], name: &str, asked: &Origin) -> Result<Self, String> {
        let leads_here = |entry: &&Entry| {
            Origin::parse("resourceManager", &entry.resource_manager)
                .is_ok_and(|there| there.is_same_server(asked))
        };
        let found = entries
            .iter()
            .find(leads_here)
            .or_else(|| entries.iter().find(|e| e.name.eq_ignore_ascii_case(name)))
            .or_else(|| entries.first().filter(|_| entries.len() == 1));
        let Some(found) = found else {
            let names: Vec<&str> = entries.iter().map(|e| e.name.as_str()).collect();
            return Err(format!("it names [{}], but neither {name} nor {asked}", names.join(", ")));
        };
        // A stack may leave its own address out.
        let endpoint = if found.resource_manager.is_empty() {
            asked.to_string()
        } else {
            let there = Origin::parse("resourceManager", &found.resource_manager);
            there.map_err(|e| e.to_string())?.to_string()
        };
        let audience = found.authentication.audiences.first().cloned();
        Ok(Self {
            name: found.name.clone(),
            audience: audience.unwrap_or_else(|| endpoint.clone()),
            endpoint,
            authority: found.authentication.login_endpoint.trim_end_matches('/').to_string(),
        })
    }

    /// Reads the file that `AZURE_ENVIRONMENT_FILEPATH` names.
    ///
    /// # Errors
    /// It is no JSON object with the three endpoints.
    pub fn from_environment_file(text: &str) -> Result<Self, CloudError> {
        let url = "the file in AZURE_ENVIRONMENT_FILEPATH".to_string();
        let file: EnvironmentFile = serde_json::from_str(text)
            .map_err(|e| CloudError::Unusable { url: url.clone(), why: e.to_string() })?;
        let endpoint = Origin::parse("resourceManagerEndpoint", &file.resource_manager_endpoint)?;
        let audience = [file.token_audience, file.service_management_endpoint]
            .into_iter()
            .find(|a| !a.is_empty())
            .unwrap_or_else(|| endpoint.to_string());
        Ok(Self {
            name: file.name,
            endpoint: endpoint.to_string(),
            audience,
            authority: file.active_directory_endpoint.trim_end_matches('/').to_string(),
        })
    }
}

/// A cloud's name in metadata.
fn name(cloud: Cloud) -> &'static str {
    match cloud {
        Cloud::Public => "AzureCloud",
        Cloud::China => "AzureChinaCloud",
        Cloud::UsGovernment => "AzureUSGovernment",
        Cloud::Stack => "AzureStackCloud",
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Entry {
    name: String,
    resource_manager: String,
    authentication: Authentication,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Authentication {
    login_endpoint: String,
    audiences: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct EnvironmentFile {
    name: String,
    resource_manager_endpoint: String,
    active_directory_endpoint: String,
    service_management_endpoint: String,
    token_audience: String,
}

/// A list of clouds; older stacks answer with one object.
fn entries(body: &[u8]) -> Result<Vec<Entry>, serde_json::Error> {
    match serde_json::from_slice(body) {
        Ok(list) => Ok(list),
        Err(_) => serde_json::from_slice(body).map(|one| vec![one]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, json};

    const METADATA: &str = r#"[
        {"name":"AzureCloud","resourceManager":"https://management.azure.com/",
         "authentication":{"loginEndpoint":"https://login.microsoftonline.com/",
                           "audiences":["https://management.core.windows.net/","x"]}},
        {"name":"Local","resourceManager":"",
         "authentication":{"loginEndpoint":"https://adfs.local/adfs","audiences":[]}}]"#;

    fn asked() -> Origin {
        Origin::parse("resourceManagerEndpoint", "http://127.0.0.1:81").unwrap()
    }

    #[test]
    fn the_entry_is_picked_by_address_or_name_and_may_leave_its_own_address_out() {
        let entries = entries(METADATA.as_bytes()).unwrap();
        let public = Endpoints::from_entries(&entries, "AzureCloud", &asked()).unwrap();
        assert_eq!(public.endpoint, "https://management.azure.com");
        assert_eq!(public.audience, "https://management.core.windows.net/");
        assert_eq!(public.authority, "https://login.microsoftonline.com");
        let local = Endpoints::from_entries(&entries, "local", &asked()).unwrap();
        assert_eq!(local.endpoint, "http://127.0.0.1:81");
        assert_eq!(local.audience, "http://127.0.0.1:81");
        let public = Origin::parse("x", "https://management.azure.com").unwrap();
        let found = Endpoints::from_entries(&entries, "Local", &public).unwrap();
        assert_eq!(found.name, "AzureCloud");
        let error = Endpoints::from_entries(&entries, "AzureChinaCloud", &asked()).unwrap_err();
        assert!(error.contains("AzureCloud, Local"), "{error}");
    }

    #[test]
    fn audiences_are_those_of_azures_own_clients() {
        let audience = |cloud| Endpoints::builtin(cloud).map(|endpoints| endpoints.audience);
        for (cloud, want) in [
            (Cloud::Public, Some("https://management.azure.com")),
            (Cloud::China, Some("https://management.chinacloudapi.cn")),
            (Cloud::UsGovernment, Some("https://management.core.usgovcloudapi.net")),
            (Cloud::Stack, None),
        ] {
            assert_eq!(audience(cloud).as_deref(), want, "{cloud:?}");
        }
    }

    #[test]
    fn metadata_may_not_lead_to_plain_http_elsewhere() {
        let body = br#"[{"name":"A","resourceManager":"http://10.0.0.1/","authentication":{}}]"#;
        let error = Endpoints::from_entries(&entries(body).unwrap(), "", &asked()).unwrap_err();
        assert!(error.contains("plain HTTP"), "{error}");
    }

    #[test]
    fn an_environment_file_describes_a_stack() {
        let text = r#"{"name":"S","resourceManagerEndpoint":"https://management.local/",
            "activeDirectoryEndpoint":"https://adfs.local/adfs","tokenAudience":"https://aud"}"#;
        let cloud = Endpoints::from_environment_file(text).unwrap();
        assert_eq!(
            (cloud.audience.as_str(), cloud.endpoint.as_str()),
            ("https://aud", "https://management.local")
        );
    }

    #[tokio::test]
    async fn a_resource_manager_is_asked_for_its_endpoints() {
        let config = |endpoint: &str| CloudSettings {
            resource_manager_endpoint: Some(endpoint.to_string()),
            ..crate::credential::tests::settings(observe::config::Credential::None)
        };
        let fake = Fake::start(|seen, before| match before {
            0 => {
                let own = format!("http://{}/", seen.header("host"));
                json(
                    200,
                    &serde_json::json!([{"name": "Emulator", "resourceManager": own,
                    "authentication": {"loginEndpoint": own, "audiences": ["aud"]}}]),
                )
            }
            _ => json(500, &serde_json::json!({})),
        })
        .await;
        let web = Web::loopback().unwrap();
        let found = Endpoints::select(&config(&fake.url), None, &web).await.unwrap();
        assert_eq!((&found.endpoint, found.audience.as_str()), (&fake.url, "aud"));
        assert_eq!(fake.seen()[0].path, METADATA_PATH);
        let error = Endpoints::select(&config(&fake.url), None, &web).await.unwrap_err();
        assert!(error.to_string().contains("HTTP 500"), "{error}");
    }
}
