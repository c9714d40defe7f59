//! Raw facts in, model values out.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be unwrapped has failed it")]

mod apply;
mod azure;
mod config;
mod kubernetes;
mod need;

use model::Policy;
use observe::config::{Config, ConfigError, Sources, read};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A config as small as it can be.
pub fn small() -> Value {
    json!({
        "tenantId": "t", "aadClientId": "c", "aadClientSecret": "s",
        "subscriptionId": "sub", "resourceGroup": "RG", "location": "East US",
        "vnetName": "vnet", "subnetName": "nodes", "securityGroupName": "nsg",
    })
}

/// The small config with other values; `Null` takes a key away.
pub fn with(changes: Value) -> Value {
    let mut config = small();
    config.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    config
}

/// Reads a config with nothing in the environment.
pub fn read_value(config: &Value) -> Result<Config, Vec<ConfigError>> {
    let environment = BTreeMap::new();
    let text = config.to_string();
    read(&Sources { text: &text, cluster: "kubernetes", environment: &environment })
}

/// The policy of the small config with other values.
pub fn policy(changes: Value) -> Policy {
    read_value(&with(changes)).expect("the config is right").policy
}
