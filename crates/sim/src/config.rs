//! A cloud config as the controller reads it, and as it was written.

use crate::letters;
use model::Policy;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Deref;

/// The name of a cluster where nothing else is said.
pub const CLUSTER: &str = "kubernetes";
/// Another one.
pub const OTHER_CLUSTER: &str = "production";

/// What a part of a name says without the cluster's name before it.
#[must_use]
pub fn without_cluster(name: &str) -> &str {
    let mut names = [CLUSTER, OTHER_CLUSTER].into_iter();
    let rest = names.find_map(|cluster| name.strip_prefix(cluster)?.strip_prefix('-'));
    rest.unwrap_or(name)
}

/// A cloud config: [`promise`] judges by what was written, the controller goes by the policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What was written.
    pub written: Value,
    /// The name of the cluster.
    pub cluster: &'static str,
    policy: Policy,
}

impl Config {
    /// Reads a cloud config.
    ///
    /// # Panics
    /// The config is not in order: those of simulations are.
    #[must_use]
    pub fn new(written: Value) -> Self {
        Self::of(CLUSTER, written)
    }

    /// Reads the cloud config of a cluster of this name.
    ///
    /// # Panics
    /// The config is not in order: those of simulations are.
    #[must_use]
    pub fn of(cluster: &'static str, written: Value) -> Self {
        let text = written.to_string();
        Self::read(cluster, written, &text)
    }

    /// The same, which the controller reads in other letters: what it says is the same.
    ///
    /// # Panics
    /// The controller does not take these letters.
    #[must_use]
    pub fn respelled(self) -> Self {
        let text = letters::respelled(&self.written).to_string();
        Self::read(self.cluster, self.written, &text)
    }

    fn read(cluster: &'static str, written: Value, text: &str) -> Self {
        let environment = BTreeMap::new();
        let sources = observe::config::Sources { text, cluster, environment: &environment };
        let policy = observe::config::read(&sources).expect("the config is in order").policy;
        Self { written, cluster, policy }
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
