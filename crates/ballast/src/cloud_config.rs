//! Where the cloud config comes from.

mod layout;

use crate::cluster;
use crate::exit::{Exit, Failure};
use base64::Engine as _;
use kube::Client;
use observe::config::{self, Config, ConfigType};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The key of a Secret that holds a cloud config.
const SECRET_KEY: &str = "cloud-config";

/// Where the cloud config is, and which cluster it is for.
#[derive(Clone, Debug, clap::Args)]
pub struct CloudConfigArgs {
    /// Read the cloud config from this file: that of the Go cloud provider, JSON or YAML
    #[arg(long, value_name = "FILE")]
    pub cloud_config: Option<PathBuf>,
    /// Read the cloud config from the key `cloud-config` of this Secret
    #[arg(long, value_name = "NAME")]
    pub cloud_config_secret_name: Option<String>,
    /// Namespace of the Secret
    #[arg(long, value_name = "NAMESPACE", default_value = "kube-system")]
    pub cloud_config_secret_namespace: String,
    /// Name of the cluster and of its load balancer: the --cluster-name of the Go cloud provider
    #[arg(long, value_name = "NAME", default_value = "kubernetes")]
    pub cluster_name: String,
    /// Keys that count in place of what is read.
    #[arg(skip)]
    pub overrides: Map<String, Value>,
    /// Those keys, completed by what they make of the config that was read last.
    #[arg(skip)]
    pub completed: Arc<OnceLock<Map<String, Value>>>,
}

impl CloudConfigArgs {
    /// A file, or nothing.
    #[must_use]
    pub fn of_file(cloud_config: Option<PathBuf>, cluster_name: &str) -> Self {
        Self {
            cloud_config,
            cloud_config_secret_name: None,
            cloud_config_secret_namespace: String::new(),
            cluster_name: cluster_name.to_owned(),
            overrides: Map::new(),
            completed: Arc::default(),
        }
    }

    /// Whether the cluster is asked for a Secret.
    #[must_use]
    pub fn is_in_cluster(&self) -> bool {
        self.cloud_config_secret_name.is_some()
    }

    /// Reads it; `client` is needed for a Secret.
    ///
    /// # Errors
    /// There is none, it cannot be read, or it is wrong.
    pub async fn load(&self, client: Option<&Client>) -> Result<Config, Failure> {
        let file = self.cloud_config.as_deref().map(|path| self.read_file(path)).transpose()?;
        let name = self.cloud_config_secret_name.as_deref();
        match (file, name.zip(client)) {
            (Some((_, config)), None) => Ok(config),
            (Some((_, config)), Some(_)) if config.settings.config_type == ConfigType::File => {
                Ok(config)
            }
            (Some((text, config)), Some((name, client))) => {
                let (secret, place) = self.secret(client, name).await?;
                if config.settings.config_type == ConfigType::Secret {
                    return self.parse(&secret, &place);
                }
                let file = self.cloud_config.as_deref().unwrap_or_else(|| Path::new(""));
                let place = format!("{} with {place}", file.display());
                self.parse(&merge(&text, &secret), &place)
            }
            (None, Some((name, client))) => {
                let (secret, place) = self.secret(client, name).await?;
                self.parse(&secret, &place)
            }
            (None, None) if self.is_in_cluster() => Err(Failure::new(
                Exit::Usage,
                "--cloud-config-secret-name names a Secret of a cluster, and manifests are read in \
                 place of one. Give --cloud-config FILE",
            )),
            (None, None) => Err(Failure::new(
                Exit::Usage,
                "there is no cloud config. Give --cloud-config FILE, the file that the Go cloud \
                 provider reads (or --cloud-config-secret-name NAME for one in a Secret); \
                 `ballast azure-emulator --write-cloud-config FILE` writes one for an emulated \
                 Azure",
            )),
        }
    }

    fn read_file(&self, path: &Path) -> Result<(String, Config), Failure> {
        let text = std::fs::read_to_string(path).map_err(|e| {
            let path = path.display();
            Failure::new(
                Exit::Usage,
                format!("cannot read the cloud config {path}: {e}. Check --cloud-config"),
            )
        })?;
        let config = self.parse(&text, &path.display().to_string())?;
        Ok((text, config))
    }

    fn parse(&self, text: &str, place: &str) -> Result<Config, Failure> {
        let environment = environment();
        let text = match self.overrides.is_empty() {
            true => text.to_owned(),
            false => {
                let read = serde_saphyr::from_str::<Map<String, Value>>(text).unwrap_or_default();
                let keys = layout::complete(&read, &self.overrides);
                // A file and a Secret are read one after the other; the keys are the same.
                let _ = self.completed.set(keys.clone());
                merge(text, &Value::Object(keys).to_string())
            }
        };
        let sources =
            config::Sources { text: &text, cluster: &self.cluster_name, environment: &environment };
        config::read(&sources).map_err(|errors| {
            let lines: Vec<String> = errors.iter().map(|e| format!("\n  {e}")).collect();
            let lines = lines.concat();
            Failure::new(Exit::Usage, format!("the cloud config {place} cannot be used:{lines}"))
        })
    }

    async fn secret(&self, client: &Client, name: &str) -> Result<(String, String), Failure> {
        let namespace = &self.cloud_config_secret_namespace;
        let place = format!("in the Secret {namespace}/{name}");
        let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
        let secret = cluster::get(client, &path).await?;
        let unusable = |why: &str| {
            let advice = format!("Put the cloud config under the key {SECRET_KEY}");
            Failure::new(Exit::Usage, format!("no cloud config {place}: {why}. {advice}"))
        };
        let encoded = secret
            .pointer(&format!("/data/{SECRET_KEY}"))
            .and_then(Value::as_str)
            .ok_or_else(|| unusable("the key is missing"))?;
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(encoded)
            .map_err(|_| unusable("the value is no base64"))?;
        let text = String::from_utf8(bytes).map_err(|_| unusable("the value is no text"))?;
        Ok((text, place))
    }
}

/// The Secret's keys take the place of the file's, in any letter case.
#[must_use]
pub fn merge(file: &str, secret: &str) -> String {
    let read = |text: &str| serde_saphyr::from_str::<Map<String, Value>>(text);
    match (read(file), read(secret)) {
        (Ok(mut merged), Ok(over)) => {
            for (key, value) in over {
                merged.retain(|held, _| !held.eq_ignore_ascii_case(&key));
                merged.insert(key, value);
            }
            Value::Object(merged).to_string()
        }
        // What cannot be read is named when it is parsed.
        _ => secret.to_owned(),
    }
}

fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
        .filter(|(key, _)| key.starts_with("AZURE_"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_takes_the_place_of_the_files_keys_in_any_letters() {
        let merged = merge(r#"{"location": "eastus", "tenantId": "a"}"#, "TenantID: b\n");
        let merged: Value = serde_json::from_str(&merged).unwrap();
        assert_eq!(merged, serde_json::json!({"location": "eastus", "TenantID": "b"}));
    }
}
