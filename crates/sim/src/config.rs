//! A cloud config as the controller reads it, and as it was written.

use model::Policy;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Deref;

/// The name of every cluster that is simulated.
pub const CLUSTER: &str = "kubernetes";

/// A cloud config: [`promise`] judges by what was written, the controller goes by the policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What was written.
    pub written: Value,
    policy: Policy,
}

impl Config {
    /// Reads a cloud config.
    ///
    /// # Panics
    /// The config is not in order: those of simulations are.
    #[must_use]
    pub fn new(written: Value) -> Self {
        let (text, environment) = (written.to_string(), BTreeMap::new());
        let sources =
            observe::config::Sources { text: &text, cluster: CLUSTER, environment: &environment };
        let policy = observe::config::read(&sources).expect("the config is in order").policy;
        Self { written, policy }
    }

    /// What the controller reads in it.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }
}

impl Deref for Config {
    type Target = Policy;

    fn deref(&self) -> &Policy {
        &self.policy
    }
}
