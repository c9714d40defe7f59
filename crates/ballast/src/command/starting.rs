//! What the log says at the start of `run`.

use crate::version;
use edge::lease::LeaseSettings;
use model::Policy;
use model::policy::{BalancerSku, DriftPolicy, KeepBoth, Layout, Migration, PoolKind};
use std::collections::BTreeSet;

/// What `run` was started with, beside the cloud config.
#[derive(Debug)]
pub struct Start<'a> {
    /// The Lease; nothing where the process always writes.
    pub lease: Option<&'a LeaseSettings>,
    /// Further values of `spec.loadBalancerClass`.
    pub classes: &'a BTreeSet<String>,
    /// Seconds between checks for drift.
    pub check_interval_s: u64,
    /// The UID of the Namespace kube-system.
    pub cluster_uid: Option<&'a str>,
}

/// One line with the choices that decide what this process does: the first thing to compare where
/// two clusters or two releases behave differently. It holds no secret.
pub fn log_summary(policy: &Policy, start: &Start<'_>) {
    let lease = start.lease.map(|lease| format!("{}/{}", lease.namespace, lease.name));
    let classes: Vec<&str> = start.classes.iter().map(String::as_str).collect();
    tracing::info!(
        version = version::VERSION,
        commit = version::COMMIT,
        cluster = &*policy.cluster,
        cluster_uid = start.cluster_uid.unwrap_or("unknown"),
        subscription = &*policy.network_subscription,
        load_balancer_group = %policy.balancer_group,
        security_group = &*policy.security_group_name,
        location = &*policy.location,
        load_balancers = layout(&policy.layout),
        sku = sku(policy.sku),
        pools = pools(policy.pools),
        drift = drift(policy.drift),
        two_addresses = migration(policy.migration.as_ref()),
        lease = lease.as_deref().unwrap_or("none"),
        classes = classes.join(","),
        check_interval_s = start.check_interval_s,
        "Ballast starts"
    );
}

/// For how long Services that move here have the addresses of both kinds of load balancers.
fn migration(migration: Option<&Migration>) -> String {
    match migration.map(|migration| migration.keep_both) {
        None => "none".to_owned(),
        Some(KeepBoth::For { seconds }) => format!("{seconds}s"),
        Some(KeepBoth::UntilTold) => "until told".to_owned(),
    }
}

fn layout(layout: &Layout) -> String {
    match layout {
        Layout::Single => "one".to_owned(),
        Layout::Several(all) => format!("{} configured", all.len()),
        Layout::PerNodeSet { .. } => "one per node set".to_owned(),
        Layout::PerService => "one per Service".to_owned(),
    }
}

fn sku(sku: BalancerSku) -> &'static str {
    match sku {
        BalancerSku::Basic => "basic",
        BalancerSku::Standard => "standard",
        BalancerSku::Service => "service",
    }
}

fn pools(kind: PoolKind) -> &'static str {
    match kind {
        PoolKind::NodeNic => "nodeIPConfiguration",
        PoolKind::NodeIp => "nodeIP",
        PoolKind::PodIp => "podIP",
    }
}

fn drift(policy: DriftPolicy) -> &'static str {
    match policy {
        DriftPolicy::Repair => "repair",
        DriftPolicy::Report => "report",
    }
}
