//! The cloud config: one file, JSON or YAML, that says which cluster this is and how it wants its
//! load balancers.
//!
//! # Guarantees
//! All mistakes are found at once, each with its key, its value and what is allowed. A key that
//! means nothing is a warning, never silence. Secrets are not printed.

mod error;
mod fields;
mod health;
mod keys;
mod layout;
mod migration;
mod settings;
mod tags;
mod tenancy;

pub use error::ConfigError;
pub use keys::READ;
pub use settings::{
    AuxiliaryToken, Cloud, CloudSettings, ConfigType, Credential, IdentitySystem, Secret,
    StackQuirks,
};

use error::{allowed, clash, missing};
use fields::Fields;
use ipnet::IpNet;
use model::policy::{
    BalancerSku, ControlPlane, DriftPolicy, IpTagChange, MigrateApi, NodeDrain, OutboundSnat,
    PoolKind, Preconfigured, VmKind,
};
use model::{Group, Policy};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// What the config is made from.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// The file's text.
    pub text: &'a str,
    /// `--cluster-name`.
    pub cluster: &'a str,
    /// Environment variables; only those that Azure's own tools use are looked at.
    pub environment: &'a BTreeMap<String, String>,
}

/// A config that can be worked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What planning goes by.
    pub policy: Policy,
    /// How Azure is reached.
    pub settings: CloudSettings,
    /// What is odd about it, for people.
    pub warnings: Vec<String>,
}

/// Reads a cloud config.
///
/// # Errors
/// Everything that is wrong with it.
pub fn read(sources: &Sources<'_>) -> Result<Config, Vec<ConfigError>> {
    let object = parse(sources.text).map_err(|e| vec![e])?;
    let mut fields = Fields::new(object);
    let settings = settings::read(&mut fields, sources.environment);
    let policy = policy(&mut fields, sources.cluster, &settings);
    keys::judge_unused(&mut fields);
    let (errors, warnings) = fields.finish();
    if errors.is_empty() { Ok(Config { policy, settings, warnings }) } else { Err(errors) }
}

fn parse(text: &str) -> Result<Map<String, Value>, ConfigError> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let json = text.starts_with('{').then(|| serde_json::from_str::<Value>(text));
    let parsed = match json {
        Some(Ok(value)) => Ok(value),
        Some(Err(json)) => serde_saphyr::from_str::<Value>(text).map_err(|_| json.to_string()),
        // Its error would show the lines around, and the secret may be one of them.
        None => serde_saphyr::from_str::<Value>(text).map_err(|e| e.without_snippet().to_string()),
    };
    match parsed {
        Ok(Value::Object(object)) => Ok(object),
        Ok(Value::Null) => Err(ConfigError::Unreadable("it is empty".to_owned())),
        Ok(_) => Err(ConfigError::Unreadable("it is no object of keys and values".to_owned())),
        Err(why) => Err(ConfigError::Unreadable(why)),
    }
}

fn policy(fields: &mut Fields, cluster: &str, settings: &CloudSettings) -> Policy {
    let sku = read_sku(fields, settings);
    let pools = read_pools(fields, sku);
    let vm_kind = read_vm_kind(fields);
    let layout = layout::read(fields, cluster, sku, pools);
    let group = Group::new(&fields.required("resourceGroup", "the cluster's resource group"));
    let names = names(fields, sku, pools);
    let strict = tenancy::is_strict(fields);
    let tenancy = tenancy::read(fields, strict, &settings.network_subscription, &group);
    let additional = additional_addresses(fields);
    let health = health::read(fields, sku);
    let policy = Policy {
        cluster: Arc::from(cluster),
        subscription: Arc::from(settings.subscription.as_str()),
        network_subscription: Arc::from(settings.network_subscription.as_str()),
        balancer_group: group_of(fields, "loadBalancerResourceGroup", &group),
        security_group_group: group_of(fields, "securityGroupResourceGroup", &group),
        network_group: group_of(fields, "vnetResourceGroup", &group),
        private_link_group: group_of(fields, "privateLinkServiceResourceGroup", &group),
        group,
        location: location(fields),
        edge_zone: edge_zone(fields),
        network_name: names.network,
        subnet_name: names.subnet,
        security_group_name: names.security_group,
        balancer_name: fields.text("loadBalancerName").map(Arc::from),
        tags: tags::read(fields),
        system_tags: fields.list("systemTags"),
        sku,
        layout,
        pools,
        primary_set: primary_set(fields, vm_kind),
        vm_kind,
        exclude_control_plane: control_plane(fields, sku),
        outbound_snat: outbound_snat(fields, sku),
        maximum_rules: fields
            .number("maximumLoadBalancerRuleCount", 0, 1_500)
            .filter(|n| *n != 0)
            .unwrap_or(250),
        preconfigured: preconfigured(fields),
        migrate_api: migrate_api(fields, sku),
        ip_tag_change: match fields.flag("enableIPTagMutationForExistingPublicIP") {
            Some(true) => IpTagChange::InPlace,
            _ => IpTagChange::Recreate,
        },
        node_drain: node_drain(fields),
        cluster_probe: health::cluster(fields, health),
        health_check: health,
        drift: drift(fields),
        additional_addresses: additional.or_else(|| strict.then(Vec::new)),
        tenancy,
        migration: None,
    };
    Policy { migration: migration::read(fields, cluster, &policy), ..policy }
}

/// Ranges, and addresses as ranges of one.
fn additional_addresses(fields: &mut Fields) -> Option<Vec<IpNet>> {
    let key = "allowedAdditionalPublicIPs";
    let mut ranges = Vec::new();
    for text in fields.list(key)? {
        let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
        match text.parse::<IpNet>().ok().filter(|r| r.trunc() == *r).or_else(address) {
            Some(range) => ranges.push(range),
            None => {
                let ranges = "addresses, and ranges as in 203.0.113.0/24 whose host bits are zero";
                fields.error(allowed(key, &text, ranges));
            }
        }
    }
    Some(IpNet::aggregate(&ranges))
}

/// Names of what the cluster has around it.
struct Names {
    network: Arc<str>,
    subnet: Arc<str>,
    security_group: Arc<str>,
}

fn names(fields: &mut Fields, sku: BalancerSku, pools: PoolKind) -> Names {
    let mut text = |key| Arc::<str>::from(fields.text(key).unwrap_or_default());
    let names = Names {
        network: text("vnetName"),
        subnet: text("subnetName"),
        security_group: text("securityGroupName"),
    };
    if names.network.is_empty() {
        if pools == PoolKind::NodeNic {
            fields.warn("vnetName is not set: internal load balancers are refused");
        } else {
            fields.error(missing("vnetName", "the virtual network that pool addresses lie in"));
        }
    }
    if names.subnet.is_empty() && sku != BalancerSku::Service {
        fields.warn(
            "subnetName is not set: an internal Service is refused unless it names its subnet",
        );
    }
    if names.security_group.is_empty() && sku != BalancerSku::Service {
        fields.error(missing("securityGroupName", "the security group to open for Services"));
    }
    names
}

fn group_of(fields: &mut Fields, key: &str, fallback: &Group) -> Group {
    fields.text(key).map_or_else(|| fallback.clone(), |name| Group::new(&name))
}

fn location(fields: &mut Fields) -> Arc<str> {
    let found = fields.required("location", "the Azure region, as in eastus");
    found.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_lowercase().into()
}

fn edge_zone(fields: &mut Fields) -> Option<Arc<str>> {
    let name = fields.text("extendedLocationName");
    let kind = fields.word("extendedLocationType", &[("EdgeZone", ())]);
    match (name, kind) {
        (Some(name), Some(())) => Some(Arc::from(name)),
        (None, None) => None,
        _ => {
            let pair = "extendedLocationName and extendedLocationType";
            fields.warn(&format!("only one of {pair} is set: no edge zone is used"));
            None
        }
    }
}

fn read_sku(fields: &mut Fields, settings: &CloudSettings) -> BalancerSku {
    let words = [
        ("standard", BalancerSku::Standard),
        ("basic", BalancerSku::Basic),
        ("service", BalancerSku::Service),
    ];
    let sku = fields.word("loadBalancerSku", &words).unwrap_or(BalancerSku::Standard);
    if sku == BalancerSku::Basic && !settings.has_basic() {
        fields.error(allowed(
            "loadBalancerSku",
            "basic",
            "standard, because Azure retired Basic load balancers in this cloud on 30 September \
             2025; set it to standard and see `ballast migrate --dry-run` for what will move",
        ));
    }
    sku
}

/// The container load balancer needs three keys together; any other mix is a mistake.
fn read_pools(fields: &mut Fields, sku: BalancerSku) -> PoolKind {
    let words = [
        ("nodeIPConfiguration", PoolKind::NodeNic),
        ("nodeIP", PoolKind::NodeIp),
        ("podIP", PoolKind::PodIp),
    ];
    let key = "loadBalancerBackendPoolConfigurationType";
    let pools = fields.word(key, &words).unwrap_or(PoolKind::NodeNic);
    let enabled = fields.flag("serviceGatewayEnabled") == Some(true);
    let asked = [sku == BalancerSku::Service, pools == PoolKind::PodIp, enabled];
    if asked.contains(&true) && asked.contains(&false) {
        fields.error(clash(
            "the container load balancer needs `loadBalancerSku: service`, \
             `loadBalancerBackendPoolConfigurationType: podIP` and `serviceGatewayEnabled: true` \
             together, or none of them",
        ));
    }
    if sku == BalancerSku::Basic && pools == PoolKind::NodeIp {
        fields.error(clash(
            "`loadBalancerBackendPoolConfigurationType: nodeIP` needs `loadBalancerSku: standard`, \
             because pools of Basic load balancers take no addresses; leave it out, or set it to \
             nodeIPConfiguration",
        ));
    }
    pools
}

fn read_vm_kind(fields: &mut Fields) -> VmKind {
    let words = [
        ("vmss", VmKind::ScaleSet),
        ("vmssflex", VmKind::FlexibleScaleSet),
        ("standard", VmKind::Standalone),
    ];
    let kind = fields.word("vmType", &words).unwrap_or(VmKind::ScaleSet);
    let without_sets = fields.flag("disableAvailabilitySetNodes") == Some(true);
    if without_sets && kind != VmKind::ScaleSet {
        fields.error(clash("disableAvailabilitySetNodes: true goes only with vmType: vmss"));
    }
    kind
}

fn primary_set(fields: &mut Fields, kind: VmKind) -> Arc<str> {
    let availability = fields.text("primaryAvailabilitySetName");
    let scale = fields.text("primaryScaleSetName");
    let name = if kind == VmKind::Standalone { availability } else { scale };
    Arc::from(name.unwrap_or_default())
}

fn control_plane(fields: &mut Fields, sku: BalancerSku) -> ControlPlane {
    let excluded = fields.flag("excludeMasterFromStandardLB").unwrap_or(true);
    if excluded && sku != BalancerSku::Basic {
        ControlPlane::Excluded
    } else {
        ControlPlane::Included
    }
}

fn outbound_snat(fields: &mut Fields, sku: BalancerSku) -> OutboundSnat {
    let disabled = fields.flag("disableOutboundSNAT") == Some(true);
    if disabled && sku != BalancerSku::Standard {
        fields.error(clash("disableOutboundSNAT: true goes only with loadBalancerSku: standard"));
    }
    if disabled { OutboundSnat::Disabled } else { OutboundSnat::Enabled }
}

/// Only in these letters, as for the Go cloud provider: it fills the pools under any other value.
fn preconfigured(fields: &mut Fields) -> Preconfigured {
    let words = [
        ("internal", Preconfigured::Internal),
        ("external", Preconfigured::External),
        ("all", Preconfigured::All),
    ];
    let key = "preConfiguredBackendPoolLoadBalancerTypes";
    let Some(text) = fields.text(key) else { return Preconfigured::None };
    if let Some((_, kind)) = words.iter().find(|(word, _)| *word == text) {
        return *kind;
    }
    if words.iter().any(|(word, _)| word.eq_ignore_ascii_case(&text)) {
        fields.warn(&format!("{key} counts in small letters only: {text:?} has no effect"));
    } else {
        fields.error(allowed(key, &text, "one of internal, external, all"));
    }
    Preconfigured::None
}

fn migrate_api(fields: &mut Fields, sku: BalancerSku) -> MigrateApi {
    let used = fields.flag("enableMigrateToIPBasedBackendPoolAPI") == Some(true);
    if used && sku == BalancerSku::Service {
        fields.error(clash(
            "enableMigrateToIPBasedBackendPoolAPI: true does not go with loadBalancerSku: \
             service, whose pools have no nodes",
        ));
    }
    if used { MigrateApi::Used } else { MigrateApi::Unused }
}

fn node_drain(fields: &mut Fields) -> NodeDrain {
    match fields.number("nodeDrainSeconds", 0, 3_600) {
        Some(0) => NodeDrain::Off,
        Some(seconds) => NodeDrain::For { seconds },
        None => NodeDrain::For { seconds: NodeDrain::DEFAULT_SECONDS },
    }
}

fn drift(fields: &mut Fields) -> DriftPolicy {
    let words = [("repair", DriftPolicy::Repair), ("report", DriftPolicy::Report)];
    fields.word("driftPolicy", &words).unwrap_or(DriftPolicy::Repair)
}
