//! What the cloud config says, by its keys (compared without regard to case, as Go does).

use ipnet::IpNet;
use serde_json::Value;
use std::collections::BTreeMap;

/// `loadBalancerSku`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sku {
    /// Azure Stack Hub's only one.
    Basic,
    /// Where nothing is said.
    Standard,
    /// The container load balancer.
    Service,
}

/// Which load balancers the cluster has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One public and one internal.
    Single,
    /// One of each for each node set: `basic`, or `enableMultipleStandardLoadBalancers`.
    PerSet {
        /// Sets without a load balancer of their own (`nodepoolsWithoutDedicatedSLB`).
        shared: Vec<String>,
    },
    /// `multipleStandardLoadBalancerConfigurations`.
    Several(Vec<Configuration>),
    /// A container load balancer for each Service.
    Container,
}

/// An element of `multipleStandardLoadBalancerConfigurations`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Configuration {
    pub(crate) name: String,
    pub(crate) allows_placement: bool,
    pub(crate) primary_set: String,
    pub(crate) service_labels: Value,
    pub(crate) namespace_labels: Value,
    pub(crate) node_labels: Value,
}

/// What pools hold (`loadBalancerBackendPoolConfigurationType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolKind {
    /// NICs join (`nodeIPConfiguration`).
    Nics,
    /// Addresses of nodes (`nodeIP`).
    Addresses,
    /// Addresses of Pods (`podIP`).
    Pods,
}

/// The probe that all Services with the policy Cluster share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedProbe {
    pub(crate) port: u64,
    pub(crate) path: String,
}

impl SharedProbe {
    /// Where an agent answers for its node.
    pub(crate) fn of_agent(port: u64) -> Self {
        Self { port, path: "/node".to_owned() }
    }
}

/// What the cloud config says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    /// `--cluster-name`.
    pub(crate) cluster: String,
    /// Subscription of network resources.
    pub(crate) subscription: String,
    /// Resource group of the cluster, lower case.
    pub(crate) group: String,
    /// Resource group of load balancers.
    pub(crate) balancer_group: String,
    /// Resource group of Private Link Services.
    pub(crate) link_group: String,
    /// Region, lower case and without blanks.
    pub(crate) location: String,
    /// `loadBalancerName`, else the cluster's name.
    pub(crate) balancer_name: String,
    pub(crate) sku: Sku,
    pub(crate) layout: Layout,
    pub(crate) pools: PoolKind,
    /// The set whose load balancer is named after the cluster.
    pub(crate) primary_set: String,
    /// Id of the virtual network, lower case.
    pub(crate) network: String,
    /// Name of the subnet of internal frontends.
    pub(crate) subnet: String,
    /// Id of the security group, lower case.
    pub(crate) security_group: String,
    /// Tags of everything that the cluster makes.
    pub(crate) tags: BTreeMap<String, String>,
    /// Beginnings of keys of tags that others may set; where there are any, other tags go.
    pub(crate) system_tags: Vec<String>,
    pub(crate) disable_outbound_snat: bool,
    pub(crate) exclude_control_plane: bool,
    pub(crate) shared_probe: Option<SharedProbe>,
    /// `healthCheck: agent`: the port at which agents answer for nodes and Local Services.
    pub(crate) agent: Option<u64>,
    /// `enableIPTagMutationForExistingPublicIP`.
    pub(crate) ip_tags_in_place: bool,
    /// `allowedAdditionalPublicIPs`.
    pub(crate) allowed_additional: Vec<IpNet>,
    /// Who shares addresses across namespaces.
    pub(crate) sharing: Sharing,
    /// `allowedResourceGroups`, where only these may be named.
    pub(crate) allowed_groups: Option<Vec<String>>,
    /// `allowedBYOPublicIPs`, where only these may be named.
    pub(crate) allowed_ips: Option<Vec<String>>,
    /// `egressGatewayNamespaces`.
    pub(crate) egress: BTreeMap<String, Vec<String>>,
    /// `maximumEgressGateways`.
    pub(crate) most_egress: usize,
    /// `preConfiguredBackendPoolLoadBalancerTypes`: kinds whose pools are not managed.
    pub(crate) preconfigured: Preconfigured,
    /// An edge zone: no zones are set.
    pub(crate) edge_zone: Option<String>,
    /// `nodeDrainSeconds`: how long a node drains; 0 is not at all.
    pub(crate) drain_seconds: u64,
    /// `driftPolicy: report`: what others change may stay.
    pub(crate) reports_drift: bool,
}

/// Who shares addresses across namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Those whom the first holder's Service names.
    Consent,
    /// `allowSharingAcrossNamespaces`.
    All,
    /// `tenancy: strict`.
    None,
}

/// Kinds of load balancers whose pools somebody else fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preconfigured {
    None,
    Internal,
    External,
    All,
}

impl Preconfigured {
    pub(crate) fn holds(self, internal: bool) -> bool {
        match self {
            Self::None => false,
            Self::Internal => internal,
            Self::External => !internal,
            Self::All => true,
        }
    }
}

/// A key of the cloud config in any letters.
fn key<'v>(config: &'v Value, name: &str) -> &'v Value {
    let fields = config.as_object();
    let found = fields.and_then(|f| f.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)));
    found.map_or(&Value::Null, |(_, value)| value)
}

fn text(config: &Value, name: &str) -> String {
    key(config, name).as_str().unwrap_or("").trim().to_owned()
}

fn or(first: String, second: &str) -> String {
    if first.is_empty() { second.to_owned() } else { first }
}

fn flag(config: &Value, name: &str) -> Option<bool> {
    let value = key(config, name);
    value.as_bool().or_else(|| value.as_str().and_then(|text| text.parse().ok()))
}

fn list(text: &str) -> Vec<String> {
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(str::to_owned).collect()
}

/// `tags` ("k=v,k2=v2") and `tagsMap`, which wins; entries without exactly one `=` do not count.
fn tags(config: &Value) -> BTreeMap<String, String> {
    let mut tags: BTreeMap<String, String> = BTreeMap::new();
    let mut put = |name: &str, value: &str| {
        let (name, value) = (name.trim(), value.trim());
        if !name.is_empty() {
            tags.retain(|key, _| !key.eq_ignore_ascii_case(name));
            tags.insert(name.to_owned(), value.to_owned());
        }
    };
    for entry in text(config, "tags").split(',') {
        if let [name, value] = entry.split('=').collect::<Vec<_>>()[..] {
            put(name, value);
        }
    }
    for (name, value) in key(config, "tagsMap").as_object().into_iter().flatten() {
        put(name, value.as_str().unwrap_or(""));
    }
    tags
}

fn several(config: &Value) -> Vec<Configuration> {
    let elements = key(config, "multipleStandardLoadBalancerConfigurations").as_array();
    let read = |element: &Value| Configuration {
        name: text(element, "name"),
        allows_placement: flag(element, "allowServicePlacement").unwrap_or(true),
        primary_set: text(element, "primaryVMSet"),
        service_labels: key(element, "serviceLabelSelector").clone(),
        namespace_labels: key(element, "serviceNamespaceSelector").clone(),
        node_labels: node_selector(key(element, "nodeSelector")),
    };
    elements.into_iter().flatten().map(read).collect()
}

/// A selector of nodes; an empty one counts for none.
fn node_selector(selector: &Value) -> Value {
    let labels = selector["matchLabels"].as_object().is_some_and(|labels| !labels.is_empty());
    let more = selector["matchExpressions"].as_array().is_some_and(|more| !more.is_empty());
    if labels || more { selector.clone() } else { Value::Null }
}

fn layout(config: &Value, sku: Sku) -> Layout {
    let configurations = several(config);
    let dedicated = flag(config, "enableMultipleStandardLoadBalancers") == Some(true);
    match sku {
        Sku::Service => Layout::Container,
        Sku::Basic => Layout::PerSet { shared: Vec::new() },
        Sku::Standard if !configurations.is_empty() => Layout::Several(configurations),
        Sku::Standard if dedicated => {
            Layout::PerSet { shared: list(&text(config, "nodepoolsWithoutDedicatedSLB")) }
        }
        Sku::Standard => Layout::Single,
    }
}

fn shared_probe(config: &Value) -> Option<SharedProbe> {
    let mode = text(config, "clusterServiceLoadBalancerHealthProbeMode");
    let port = key(config, "clusterServiceSharedLoadBalancerHealthProbePort").as_u64();
    let path = text(config, "clusterServiceSharedLoadBalancerHealthProbePath");
    let at_proxy = SharedProbe {
        port: port.filter(|port| *port > 0).unwrap_or(10_256),
        path: or(path, "/healthz"),
    };
    let shared = agent(config).map_or(at_proxy, SharedProbe::of_agent);
    mode.eq_ignore_ascii_case("shared").then_some(shared)
}

/// The port of agents, where they answer.
fn agent(config: &Value) -> Option<u64> {
    let answers = text(config, "healthCheck").eq_ignore_ascii_case("agent");
    answers.then(|| key(config, "healthCheckAgentPort").as_u64().unwrap_or(10_272))
}

/// A list that counts where it is there, and under `tenancy: strict`.
fn allowed(config: &Value, name: &str, strict: bool) -> Option<Vec<String>> {
    let all = names(key(config, name));
    (strict || !all.is_empty()).then_some(all)
}

/// Texts with commas between them, or a list of them.
fn names(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => list(text),
        Value::Array(items) => items.iter().filter_map(Value::as_str).flat_map(list).collect(),
        _ => Vec::new(),
    }
}

fn sharing(config: &Value) -> Sharing {
    let strict = text(config, "tenancy").eq_ignore_ascii_case("strict");
    let all = flag(config, "allowSharingAcrossNamespaces") == Some(true);
    match (strict, all) {
        (true, _) => Sharing::None,
        (false, true) => Sharing::All,
        (false, false) => Sharing::Consent,
    }
}

fn egress(config: &Value) -> BTreeMap<String, Vec<String>> {
    let all = key(config, "egressGatewayNamespaces").as_object().into_iter().flatten();
    all.map(|(name, value)| (name.to_lowercase(), names(value))).collect()
}

fn sku(config: &Value) -> Sku {
    match text(config, "loadBalancerSku").to_lowercase().as_str() {
        "basic" => Sku::Basic,
        "service" => Sku::Service,
        _ => Sku::Standard,
    }
}

fn pools(config: &Value) -> PoolKind {
    match text(config, "loadBalancerBackendPoolConfigurationType").to_lowercase().as_str() {
        "nodeip" => PoolKind::Addresses,
        "podip" => PoolKind::Pods,
        _ => PoolKind::Nics,
    }
}

impl Site {
    /// Whether a Service may name a resource group.
    pub(crate) fn allows_group(&self, name: &str, own: &str) -> bool {
        let allowed = self.allowed_groups.as_ref();
        let listed = allowed.is_none_or(|all| all.iter().any(|g| g.eq_ignore_ascii_case(name)));
        listed || name.eq_ignore_ascii_case(own)
    }

    pub(crate) fn read(config: &Value, cluster: &str) -> Self {
        let sku = sku(config);
        let machines = or(text(config, "vmType"), "vmss").to_lowercase();
        let set = match machines.starts_with("vmss") {
            true => "primaryScaleSetName",
            false => "primaryAvailabilitySetName",
        };
        let group = text(config, "resourceGroup").to_lowercase();
        let subscription =
            or(text(config, "networkResourceSubscriptionID"), &text(config, "subscriptionId"));
        let id = |group_key: &str, kind: &str, name_key: &str| {
            let group = or(text(config, group_key), &group);
            let root = format!("/subscriptions/{subscription}/resourceGroups/{group}");
            let name = text(config, name_key);
            format!("{root}/providers/Microsoft.Network/{kind}/{name}").to_lowercase()
        };
        let edge_zone = text(config, "extendedLocationName");
        let typed = !text(config, "extendedLocationType").is_empty();
        let snat = flag(config, "disableOutboundSNAT").unwrap_or(false);
        let sharing = sharing(config);
        let strict = sharing == Sharing::None;
        let most_egress = key(config, "maximumEgressGateways").as_u64().unwrap_or(100);
        let exclude = flag(config, "excludeMasterFromStandardLB");
        Self {
            cluster: cluster.to_owned(),
            balancer_group: or(text(config, "loadBalancerResourceGroup"), &group),
            link_group: or(text(config, "privateLinkServiceResourceGroup"), &group),
            location: text(config, "location").to_lowercase().replace(' ', ""),
            balancer_name: or(text(config, "loadBalancerName"), cluster),
            sku,
            layout: layout(config, sku),
            pools: pools(config),
            primary_set: text(config, set),
            network: id("vnetResourceGroup", "virtualNetworks", "vnetName"),
            subnet: text(config, "subnetName"),
            security_group: id(
                "securityGroupResourceGroup",
                "networkSecurityGroups",
                "securityGroupName",
            ),
            tags: tags(config),
            system_tags: list(&text(config, "systemTags")),
            disable_outbound_snat: sku == Sku::Standard && snat,
            exclude_control_plane: exclude.unwrap_or(sku == Sku::Standard),
            shared_probe: shared_probe(config),
            agent: agent(config),
            ip_tags_in_place: flag(config, "enableIPTagMutationForExistingPublicIP") == Some(true),
            allowed_additional: nets(key(config, "allowedAdditionalPublicIPs")),
            sharing,
            allowed_groups: allowed(config, "allowedResourceGroups", strict),
            allowed_ips: allowed(config, "allowedBYOPublicIPs", strict),
            egress: egress(config),
            most_egress: usize::try_from(most_egress).unwrap_or(usize::MAX),
            preconfigured: match &*text(config, "preConfiguredBackendPoolLoadBalancerTypes") {
                "internal" => Preconfigured::Internal,
                "external" => Preconfigured::External,
                "all" => Preconfigured::All,
                _ => Preconfigured::None,
            },
            edge_zone: (!edge_zone.is_empty() && typed).then_some(edge_zone),
            drain_seconds: key(config, "nodeDrainSeconds").as_u64().unwrap_or(30),
            reports_drift: text(config, "driftPolicy") == "report",
            subscription,
            group,
        }
    }
}

/// Ranges and single addresses, as a list or a text with commas.
fn nets(value: &Value) -> Vec<IpNet> {
    let items = match value {
        Value::String(text) => list(text),
        Value::Array(items) => {
            items.iter().filter_map(Value::as_str).map(|t| t.trim().to_owned()).collect()
        }
        _ => Vec::new(),
    };
    let read = |item: &String| {
        item.parse::<IpNet>()
            .ok()
            .or_else(|| item.parse().ok().map(|ip: std::net::IpAddr| ip.into()))
    };
    items.iter().filter_map(read).collect()
}
