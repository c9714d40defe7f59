//! Flags of the lease.

use crate::engine::Right;
use clap::ArgAction;
use edge::lease::LeaseSettings;
use model::ServiceName;

/// The lease that allows writing.
#[derive(Debug, clap::Args)]
pub struct LeaseArgs {
    /// Write only while holding the controller's Lease; with false, this must be the only process
    /// that writes
    #[arg(long, value_name = "BOOL", default_value_t = true)]
    #[arg(action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub leader_elect: bool,
    /// Time after which another process takes a Lease that is not renewed, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "15", value_parser = seconds)]
    pub leader_elect_lease_duration: u64,
    /// Time from the last renewal until the leader stops writing, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub leader_elect_renew_deadline: u64,
    /// Time between renewals, in seconds; standbys check the Lease twice as often
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub leader_elect_retry_period: u64,
}

/// Milliseconds from `15`, `15s`, `1m` or `500ms`.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "" | "s" => 1_000,
        "ms" => 1,
        "m" => 60_000,
        _ => return Err("a whole number of seconds, or one with ms, s or m".into()),
    };
    let number: u64 = number.parse().map_err(|_| "it begins with no number".to_owned())?;
    number.checked_mul(factor).ok_or_else(|| "it is too long".to_owned())
}

impl LeaseArgs {
    /// By what right this process writes.
    pub(crate) fn right(&self, name: &LeaseName) -> Right {
        if !self.leader_elect {
            return Right::Alone(name.lease());
        }
        Right::Lease(LeaseSettings {
            namespace: name.leader_elect_resource_namespace.clone(),
            name: name.leader_elect_resource_name.clone(),
            lease_ms: self.leader_elect_lease_duration,
            renew_deadline_ms: self.leader_elect_renew_deadline,
            retry_ms: self.leader_elect_retry_period,
            identity: edge::lease::identity(),
        })
    }
}

/// Which lease is the cluster's, whose ledger is beside it.
#[derive(Clone, Debug, clap::Args)]
pub struct LeaseName {
    /// Namespace of the controller's Lease
    #[arg(long, value_name = "NAMESPACE", default_value = "kube-system")]
    pub leader_elect_resource_namespace: String,
    /// Name of the controller's Lease, whose annotation ballast.dev/pause pauses all writes. The
    /// ledger of opened addresses is the ConfigMap NAME-ledger in the same namespace
    #[arg(long, value_name = "NAME", default_value = "ballast")]
    pub leader_elect_resource_name: String,
}

impl LeaseName {
    /// The Lease.
    pub(crate) fn lease(&self) -> ServiceName {
        let namespace = &self.leader_elect_resource_namespace;
        ServiceName::new(namespace, &self.leader_elect_resource_name)
    }

    /// The ledger beside the Lease.
    pub(crate) fn ledger(&self) -> ServiceName {
        let namespace = &self.leader_elect_resource_namespace;
        control::ledger_of(namespace, &self.leader_elect_resource_name)
    }
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn spans_are_read_with_and_without_a_unit() {
        assert_eq!(seconds("15"), Ok(15_000));
        assert_eq!(seconds("15s"), Ok(15_000));
        assert_eq!(seconds("500ms"), Ok(500));
        assert_eq!(seconds("2m"), Ok(120_000));
        for wrong in ["", "s", "1h30", "-1", "18446744073709551615m"] {
            assert!(seconds(wrong).is_err(), "{wrong:?}");
        }
    }
}
