//! Keys of the cloud config, each with the ways in which it could have said something else.

use super::Source;
use super::input::{Input, Nature, Way, on_all};
use ipnet::IpNet;
use model::policy::{
    BalancerSku, ClusterProbe, ControlPlane, HealthCheck, Layout, OutboundSnat, PoolKind,
    Preconfigured, Sharing, Tenancy, VmKind,
};
use model::world::Fact;
use model::{Group, Policy, ResourceId};
use std::sync::Arc;

/// `maximumLoadBalancerRuleCount` where it is not set.
const MAXIMUM_RULES: u32 = 250;

fn key(key: &'static str, value: impl ToString, way: Way) -> Input {
    Input::new(Source::ConfigKey { key, value: value.to_string() }, key, way)
}

fn vary(edit: impl Fn(&mut Policy) + 'static) -> Way {
    on_all(Nature::Variation, move |setting| edit(&mut setting.policy))
}

fn remove(edit: impl Fn(&mut Policy) + 'static) -> Way {
    on_all(Nature::Removal, move |setting| edit(&mut setting.policy))
}

fn other(name: &Arc<str>) -> Arc<str> {
    Arc::from(format!("{name}x"))
}

/// Another place for resources: the security group that is known is as if it had been there.
fn place(edit: impl Fn(&mut Policy) + 'static) -> Way {
    on_all(Nature::Variation, move |setting| {
        edit(&mut setting.policy);
        if let Fact::Known(Some(group)) = &mut setting.world.azure.security_group {
            Arc::make_mut(group).id = setting.policy.security_group_id();
        }
    })
}

/// Every key that can matter to a Service.
///
/// Left out is what only says how existing things change: `systemTags`, `driftPolicy`,
/// `nodeDrainSeconds`, `enableMigrateToIPBasedBackendPoolAPI`,
/// `enableIPTagMutationForExistingPublicIP`.
pub(super) fn inputs(policy: &Policy) -> Vec<Input> {
    let Policy {
        cluster,
        subscription,
        network_subscription,
        group,
        balancer_group,
        security_group_group,
        network_group,
        private_link_group,
        location,
        edge_zone,
        network_name,
        subnet_name,
        security_group_name,
        balancer_name,
        tags,
        system_tags: _,
        sku,
        layout,
        pools,
        vm_kind,
        primary_set,
        exclude_control_plane,
        outbound_snat,
        maximum_rules,
        preconfigured,
        migrate_api: _,
        ip_tag_change: _,
        node_drain: _,
        cluster_probe,
        health_check,
        drift: _,
        additional_addresses,
        tenancy,
        migration: _,
    } = policy;
    let mut all = vec![
        key("--cluster-name", cluster, vary(|p| p.cluster = other(&p.cluster))),
        key("location", location, vary(|p| p.location = Arc::from("elsewhere"))),
    ];
    if !network_name.is_empty() {
        let way = vary(|p| p.network_name = other(&p.network_name));
        all.push(key("vnetName", network_name, way));
    }
    if !subnet_name.is_empty() {
        all.push(key("subnetName", subnet_name, vary(|p| p.subnet_name = other(&p.subnet_name))));
    }
    all.extend(primary(*vm_kind, primary_set));
    all.extend(subscriptions(subscription, network_subscription));
    all.extend(security_group(security_group_name));
    all.extend(most_rules(*sku, *maximum_rules));
    if let Some(name) = balancer_name {
        all.push(key("loadBalancerName", name, remove(|p| p.balancer_name = None)));
    }
    if let Some(zone) = edge_zone {
        all.push(key("extendedLocationName", zone, remove(|p| p.edge_zone = None)));
    }
    if !tags.is_empty() {
        let text: Vec<String> = tags.iter().map(|(k, v)| format!("{k}={v}")).collect();
        all.push(key("tags", text.join(","), remove(|p| p.tags.clear())));
    }
    all.extend(additional_addresses.as_deref().map(additional));
    all.extend(of_tenancy(tenancy));
    all.push(cluster_group(group));
    let own = [balancer_group, security_group_group, private_link_group, network_group];
    all.extend(groups(group, own));
    all.extend(balancer_keys(*sku, layout, *pools));
    all.extend(switches(*exclude_control_plane, *outbound_snat, *preconfigured));
    all.extend(probes(cluster_probe, *health_check));
    all
}

/// Whom probes of nodes ask.
fn probes(cluster: &ClusterProbe, health: HealthCheck) -> Vec<Input> {
    let mut all = match (cluster, health) {
        (ClusterProbe::Shared { port, path }, HealthCheck::Proxy) => shared_probe(*port, path),
        // Agents answer at their own port and path.
        (ClusterProbe::Shared { .. }, HealthCheck::Agent { .. }) => vec![shared_mode()],
        (ClusterProbe::NodePort, _) => Vec::new(),
    };
    all.extend(health.agent_port().into_iter().flat_map(agents));
    all
}

/// Who answers probes, where it is not the proxy.
fn agents(port: u16) -> [Input; 2] {
    let elsewhere = vary(|p| {
        if let HealthCheck::Agent { port, .. } = &mut p.health_check {
            *port = port.checked_add(1).unwrap_or(1);
        }
    });
    [
        key("healthCheck", "agent", remove(|p| p.health_check = HealthCheck::Proxy)),
        key("healthCheckAgentPort", port, elsewhere),
    ]
}

fn shared_mode() -> Input {
    let mode = "clusterServiceLoadBalancerHealthProbeMode";
    key(mode, "shared", remove(|p| p.cluster_probe = ClusterProbe::NodePort))
}

fn additional(ranges: &[IpNet]) -> Input {
    let text: Vec<String> = ranges.iter().map(ToString::to_string).collect();
    let way = remove(|p| p.additional_addresses = None);
    key("allowedAdditionalPublicIPs", text.join(","), way)
}

/// What Services of one namespace may have of what others have. Keys about egress gateways are
/// about Pods.
fn of_tenancy(tenancy: &Tenancy) -> Vec<Input> {
    let mut all = Vec::new();
    let open = |p: &mut Policy| p.tenancy.sharing = Sharing::Consent;
    match tenancy.sharing {
        Sharing::Consent => {}
        Sharing::All => all.push(key("allowSharingAcrossNamespaces", true, remove(open))),
        Sharing::None => all.push(key("tenancy", "strict", remove(open))),
    }
    if let Some(groups) = &tenancy.groups {
        let text: Vec<&str> = groups.iter().map(Group::as_str).collect();
        let way = remove(|p| p.tenancy.groups = None);
        all.push(key("allowedResourceGroups", text.join(","), way));
    }
    if let Some(ips) = &tenancy.public_ips {
        let text: Vec<&str> = ips.iter().map(ResourceId::name).collect();
        let way = remove(|p| p.tenancy.public_ips = None);
        all.push(key("allowedBYOPublicIPs", text.join(","), way));
    }
    all
}

/// What is not at its default.
fn switches(
    control_plane: ControlPlane,
    outbound_snat: OutboundSnat,
    preconfigured: Preconfigured,
) -> Vec<Input> {
    let mut all = Vec::new();
    if control_plane == ControlPlane::Included {
        let way = remove(|p| p.exclude_control_plane = ControlPlane::Excluded);
        all.push(key("excludeMasterFromStandardLB", false, way));
    }
    if outbound_snat == OutboundSnat::Disabled {
        let way = remove(|p| p.outbound_snat = OutboundSnat::Enabled);
        all.push(key("disableOutboundSNAT", true, way));
    }
    if preconfigured != Preconfigured::None {
        let name = "preConfiguredBackendPoolLoadBalancerTypes";
        let value = match preconfigured {
            Preconfigured::Internal => "internal",
            Preconfigured::External => "external",
            Preconfigured::None | Preconfigured::All => "all",
        };
        all.push(key(name, value, remove(|p| p.preconfigured = Preconfigured::None)));
    }
    all
}

/// The primary set, by the key that `vmType` says; under the other one it would be none.
fn primary(kind: VmKind, set: &Arc<str>) -> Vec<Input> {
    if set.is_empty() {
        return Vec::new();
    }
    let (name, word) = match kind {
        VmKind::ScaleSet => ("primaryScaleSetName", "vmss"),
        VmKind::FlexibleScaleSet => ("primaryScaleSetName", "vmssflex"),
        VmKind::Standalone => ("primaryAvailabilitySetName", "standard"),
    };
    vec![
        key(name, set, vary(|p| p.primary_set = other(&p.primary_set))),
        key("vmType", word, vary(|p| p.primary_set = Arc::from(""))),
    ]
}

fn security_group(name: &Arc<str>) -> Option<Input> {
    let way = place(|p| p.security_group_name = other(&p.security_group_name));
    (!name.is_empty()).then(|| key("securityGroupName", name, way))
}

/// Only Basic load balancers are chosen by it.
fn most_rules(sku: BalancerSku, most: u32) -> Option<Input> {
    let way = remove(|p| p.maximum_rules = MAXIMUM_RULES);
    let counts = sku == BalancerSku::Basic && most != MAXIMUM_RULES;
    counts.then(|| key("maximumLoadBalancerRuleCount", most, way))
}

/// The subscription of what we write.
fn subscriptions(nodes: &Arc<str>, network: &Arc<str>) -> Option<Input> {
    let name = if network == nodes { "subscriptionId" } else { "networkResourceSubscriptionID" };
    let way = place(|p| p.network_subscription = other(&p.network_subscription));
    (!network.is_empty()).then(|| key(name, network, way).of_place())
}

/// The cluster's group, which takes along what has no other.
fn cluster_group(group: &Group) -> Input {
    let way = place(|p| {
        let new = Group::new(&format!("{}x", p.group));
        for of in [
            &mut p.balancer_group,
            &mut p.security_group_group,
            &mut p.private_link_group,
            &mut p.network_group,
        ] {
            if *of == p.group {
                *of = new.clone();
            }
        }
        p.group = new;
    });
    key("resourceGroup", group, way).of_place()
}

/// Groups that are another than the cluster's.
fn groups(group: &Group, there: [&Group; 4]) -> Vec<Input> {
    let [balancers, security, links, network] = there;
    let mut all = Vec::new();
    let mut own = |name: &'static str, there: &Group, edit: fn(&mut Policy)| {
        if there != group {
            all.push(key(name, there, place(edit)));
        }
    };
    own("loadBalancerResourceGroup", balancers, |p| p.balancer_group = p.group.clone());
    own("securityGroupResourceGroup", security, |p| p.security_group_group = p.group.clone());
    own("privateLinkServiceResourceGroup", links, |p| p.private_link_group = p.group.clone());
    own("vnetResourceGroup", network, |p| p.network_group = p.group.clone());
    all
}

/// What kind of load balancers there are. The container load balancer is chosen by three keys
/// together.
fn balancer_keys(sku: BalancerSku, layout: &Layout, pools: PoolKind) -> Vec<Input> {
    let mut all = Vec::new();
    if sku == BalancerSku::Service {
        let way = vary(|p| {
            p.sku = BalancerSku::Standard;
            p.layout = Layout::Single;
            p.pools = PoolKind::NodeIp;
        });
        all.push(key("loadBalancerSku", "service", way).broad());
        return all;
    }
    let (name, other_sku) = match sku {
        BalancerSku::Basic => ("basic", BalancerSku::Standard),
        BalancerSku::Standard | BalancerSku::Service => ("standard", BalancerSku::Basic),
    };
    all.push(key("loadBalancerSku", name, vary(move |p| p.sku = other_sku)).broad());
    match layout {
        Layout::Several(configs) => {
            let names: Vec<&str> = configs.iter().map(|c| &*c.name).collect();
            let way = remove(|p| p.layout = Layout::Single);
            all.push(key("multipleStandardLoadBalancerConfigurations", names.join(","), way));
        }
        Layout::PerNodeSet { .. } if sku == BalancerSku::Standard => {
            let way = remove(|p| p.layout = Layout::Single);
            all.push(key("enableMultipleStandardLoadBalancers", true, way));
        }
        Layout::PerNodeSet { .. } | Layout::Single | Layout::PerService => {}
    }
    let (name, other_pools) = match pools {
        PoolKind::NodeNic => ("nodeIPConfiguration", PoolKind::NodeIp),
        PoolKind::NodeIp | PoolKind::PodIp => ("nodeIP", PoolKind::NodeNic),
    };
    let way = vary(move |p| p.pools = other_pools);
    all.push(key("loadBalancerBackendPoolConfigurationType", name, way).broad());
    all
}

fn shared_probe(port: u16, path: &Arc<str>) -> Vec<Input> {
    let mut all = vec![shared_mode()];
    let port_key = "clusterServiceSharedLoadBalancerHealthProbePort";
    let way = vary(|p| {
        if let ClusterProbe::Shared { port, .. } = &mut p.cluster_probe {
            *port = port.checked_add(1).unwrap_or(1);
        }
    });
    all.push(key(port_key, port, way));
    let path_key = "clusterServiceSharedLoadBalancerHealthProbePath";
    let way = vary(|p| {
        if let ClusterProbe::Shared { path, .. } = &mut p.cluster_probe {
            *path = other(path);
        }
    });
    all.push(key(path_key, path, way));
    all
}

/// Keys at their defaults, with another value.
pub(super) fn offers(policy: &Policy) -> Vec<(&'static str, Way)> {
    let mut all = Vec::new();
    if policy.outbound_snat == OutboundSnat::Enabled && policy.sku == BalancerSku::Standard {
        all.push(("disableOutboundSNAT", vary(|p| p.outbound_snat = OutboundSnat::Disabled)));
    }
    if policy.cluster_probe == ClusterProbe::NodePort {
        let way = vary(|p| {
            p.cluster_probe = ClusterProbe::Shared { port: 10_256, path: Arc::from("/healthz") };
        });
        all.push(("clusterServiceLoadBalancerHealthProbeMode", way));
    }
    all
}
