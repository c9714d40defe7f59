//! How Services move between load balancers over nodes and container load balancers
//! (`layoutMigration`).

use super::error::{allowed, missing};
use super::fields::Fields;
use super::{health, layout, outbound_snat};
use model::policy::{
    BalancerSku, Chosen, ControlPlane, HealthCheck, KeepBoth, Layout, MigrateApi, Migration,
    OutboundSnat, PoolKind,
};
use model::{Policy, ServiceName};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

const KEY: &str = "layoutMigration";

/// The longest time that a Service may have both addresses, in seconds: thirty days.
const LONGEST_S: u32 = 2_592_000;

const UNTIL_TOLD: &str = "untilTold";

/// What the config says; what it does not say has defaults where Services move to container load
/// balancers. Where they move back it has to be there, if empty: EndpointSlices and Pods are
/// watched for it.
pub(super) fn read(fields: &mut Fields, cluster: &str, policy: &Policy) -> Option<Migration> {
    let to_pods = policy.sku == BalancerSku::Service;
    let value = match fields.take(KEY) {
        Some(value) => value,
        None if to_pods && !policy.security_group_name.is_empty() => Value::Object(Map::new()),
        None => return None,
    };
    if to_pods && policy.security_group_name.is_empty() {
        let why = "the security group, which is open for Services over nodes";
        fields.error(missing("securityGroupName", why));
    }
    if policy.sku == BalancerSku::Basic {
        let what = "standard, because Services move only between Standard and container load \
                    balancers; migrate Basic load balancers first";
        fields.error(allowed("loadBalancerSku", "basic", what));
    }
    fields.inner(KEY, value, |inner| Migration {
        from: Arc::new(from(inner, cluster, policy)),
        keep_both: keep_both(inner),
        drain_s: inner.number("drainSeconds", 0, 3_600).unwrap_or(Migration::DRAIN_SECONDS),
        chosen: chosen(inner),
    })
}

/// The policy of the load balancers that Services leave.
fn from(fields: &mut Fields, cluster: &str, policy: &Policy) -> Policy {
    if policy.sku != BalancerSku::Service {
        return Policy {
            sku: BalancerSku::Service,
            layout: Layout::PerService,
            pools: PoolKind::PodIp,
            outbound_snat: OutboundSnat::Enabled,
            migrate_api: MigrateApi::Unused,
            health_check: HealthCheck::Proxy,
            exclude_control_plane: ControlPlane::Excluded,
            migration: None,
            ..policy.clone()
        };
    }
    let standard = Policy {
        sku: BalancerSku::Standard,
        layout: Layout::Single,
        pools: PoolKind::NodeNic,
        exclude_control_plane: ControlPlane::Excluded,
        migration: None,
        ..policy.clone()
    };
    let Some(value) = fields.take("from") else { return standard };
    let read = |inner: &mut Fields| {
        let words = [("nodeIPConfiguration", PoolKind::NodeNic), ("nodeIP", PoolKind::NodeIp)];
        let pools = inner.word("loadBalancerBackendPoolConfigurationType", &words);
        let pools = pools.unwrap_or(standard.pools);
        let probes = inner.unread().iter().any(|key| key.to_lowercase().starts_with("cluster"));
        let health_check = health::read(inner, BalancerSku::Standard);
        let probe = probes || health_check != HealthCheck::Proxy;
        Policy {
            layout: layout::read(inner, cluster, BalancerSku::Standard, pools),
            pools,
            outbound_snat: outbound_snat(inner, BalancerSku::Standard),
            cluster_probe: if probe {
                health::cluster(inner, health_check)
            } else {
                policy.cluster_probe.clone()
            },
            health_check,
            ..standard.clone()
        }
    };
    fields.inner("from", value, read).unwrap_or(standard)
}

/// A time, as in `90s`, `10m`, `1h` and `2d`.
fn keep_both(fields: &mut Fields) -> KeepBoth {
    let key = "keepBoth";
    let Some(text) = fields.text(key) else {
        return KeepBoth::For { seconds: Migration::KEEP_BOTH_SECONDS };
    };
    if text.eq_ignore_ascii_case(UNTIL_TOLD) {
        return KeepBoth::UntilTold;
    }
    match seconds(&text).filter(|seconds| *seconds <= LONGEST_S) {
        Some(seconds) => KeepBoth::For { seconds },
        None => {
            let form = "a time up to 30d as in 90s, 10m, 1h or 2d, or untilTold";
            fields.error(allowed(key, &text, form));
            KeepBoth::UntilTold
        }
    }
}

fn seconds(text: &str) -> Option<u32> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[number.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    number.parse::<u32>().ok()?.checked_mul(unit)
}

/// Which Services move: all, where neither key is there.
fn chosen(fields: &mut Fields) -> Chosen {
    let namespaces = fields.list("namespaces");
    let key = "services";
    let names = fields.list(key);
    if namespaces.is_none() && names.is_none() {
        return Chosen::All;
    }
    let mut services = BTreeSet::new();
    for text in names.into_iter().flatten() {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
                services.insert(ServiceName::new(namespace, name));
            }
            _ => {
                fields.error(allowed(key, &text, "namespace and name of a Service, as in team/web"))
            }
        }
    }
    Chosen::Only { namespaces: namespaces.into_iter().flatten().collect(), services }
}
