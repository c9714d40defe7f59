//! What a run starts from: the layout, the cloud config, the estate and the nodes.

pub mod machines;
pub mod objects;
pub mod second;
mod site;

use crate::config::Config;
use crate::fault::Fault;
use crate::random::Random;
use azure_emulator::{Azure, Options as AzureOptions, Switch};
use kube_emulator::{Ownership, Store, StoreOptions};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The subscription of every run.
pub const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000001";
/// The resource group of every run.
pub const GROUP: &str = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg";
/// A secret that must never be seen again.
pub const SECRET: &str = "hush-4f1d9c";
/// The load balancer class that is ours beside none.
pub const CLASS: &str = "ballast.dev/azure";
/// The load balancer class of another controller.
pub const OTHER_CLASS: &str = "example.com/other";
/// How the names of what is not ours begin.
pub const THEIRS: &str = "theirs";
/// The namespace of the hostile tenant.
pub const TENANT: &str = "evil";
/// The label of nodes of the control plane.
pub const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// The same as older clusters say it.
pub const OLD_CONTROL_PLANE: &str = "node-role.kubernetes.io/master";
/// The label that names a node's resource group.
pub const NODE_GROUP: &str = "kubernetes.azure.com/resource-group";
/// The label that says whether the cloud manages a node.
pub const MANAGED: &str = "kubernetes.azure.com/managed";
/// Machines that a scale set has; nodes come and go among them.
pub const MACHINES: u32 = 8;
/// In how many of a thousand scenes the controller reads the cloud config in other letters.
const OTHER_LETTERS: u64 = 500;

/// Which load balancers a cluster has, and what their pools hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layout {
    /// One load balancer, pools of addresses.
    Single,
    /// One load balancer, pools of NICs.
    Nics,
    /// Several load balancers.
    Several,
    /// One load balancer for each node set: Basic, in some seeds Standard.
    PerSet,
    /// A container load balancer for each Service.
    Containers,
}

/// Every layout with its name.
pub const LAYOUTS: [(Layout, &str); 5] = [
    (Layout::Single, "single"),
    (Layout::Nics, "nics"),
    (Layout::Several, "several"),
    (Layout::PerSet, "per-set"),
    (Layout::Containers, "containers"),
];

impl Layout {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        LAYOUTS.iter().find(|(layout, _)| *layout == self).map_or("", |(_, name)| name)
    }

    /// Whether pools hold NICs of machines.
    #[must_use]
    pub fn has_nics(self) -> bool {
        matches!(self, Self::Nics | Self::PerSet)
    }

    /// What has its pools hold the other kind of members, where both kinds can stand.
    pub(crate) fn other_pools(self) -> Option<Value> {
        let kind = match self {
            Self::Single => "nodeIPConfiguration",
            Self::Nics => "nodeIP",
            Self::Several | Self::PerSet | Self::Containers => return None,
        };
        Some(json!({"loadBalancerBackendPoolConfigurationType": kind}))
    }

    fn config(self) -> Value {
        match self {
            Self::Single => json!({}),
            Self::Nics => {
                json!({"loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration"})
            }
            Self::Several => json!({"multipleStandardLoadBalancerConfigurations": [
                {"name": "kubernetes", "primaryVMSet": "vmss"},
                {"name": "lb2", "primaryVMSet": "vmss2"}]}),
            Self::PerSet => json!({"loadBalancerSku": "basic", "disableOutboundSNAT": false,
                "loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration"}),
            Self::Containers => json!({"loadBalancerSku": "service", "disableOutboundSNAT": false,
                "loadBalancerBackendPoolConfigurationType": "podIP",
                "serviceGatewayEnabled": true}),
        }
    }
}

/// What lets Services move between container load balancers and load balancers over nodes.
#[must_use]
pub fn migration() -> Value {
    json!({"layoutMigration": {"keepBoth": "3m", "drainSeconds": 60}})
}

/// What has Services move from container load balancers to one over nodes.
#[must_use]
pub fn over_nodes() -> Value {
    let mut changes = migration();
    changes["loadBalancerSku"] = json!("standard");
    changes["loadBalancerBackendPoolConfigurationType"] = json!("nodeIP");
    changes["serviceGatewayEnabled"] = json!(false);
    changes["disableOutboundSNAT"] = json!(true);
    changes
}

/// Id of a network resource.
#[must_use]
pub fn network(kind_and_name: &str) -> String {
    format!("{GROUP}/providers/Microsoft.Network/{kind_and_name}")
}

/// Id of the security group.
#[must_use]
pub fn security_group() -> String {
    network("networkSecurityGroups/nsg")
}

/// The resource group of the security group where it is not the cluster's.
pub const GROUP_APART: &str = "net-rg";

/// The same id in the resource group apart.
fn apart(id: &str) -> String {
    id.replace("/resourceGroups/rg/", &format!("/resourceGroups/{GROUP_APART}/"))
}

/// Id of the Service Gateway.
#[must_use]
pub fn gateway() -> String {
    network("serviceGateways/servicegateway")
}

/// What differs between the scenes of two seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Which load balancers there are.
    pub layout: Layout,
    /// Nodes in the beginning.
    pub nodes: u32,
    /// Whether somebody else's frontend and outbound rule stand on the load balancer from the
    /// start, as on a managed cluster.
    pub outbound: Outbound,
    /// Where UIDs come from.
    pub uids: u64,
    /// Which later faults are on: some need an estate, nodes or a cloud config of their own.
    pub with: BTreeSet<Fault>,
    /// Whether the operator has changed what the pools' members are.
    pub other_pools: bool,
    /// Whether the controller reads the cloud config in other letters from the start.
    pub other_letters: bool,
    /// Whether the operator has written it in the other ones since.
    pub rewritten: bool,
}

/// Whether somebody else's outbound rule is on our load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outbound {
    /// It is.
    Theirs,
    /// The load balancer comes and goes with our Services.
    None,
}

impl Scene {
    /// One with nothing of others on our load balancer and no later fault.
    #[must_use]
    pub fn plain(layout: Layout, nodes: u32, uids: u64) -> Self {
        Self {
            layout,
            nodes,
            outbound: Outbound::None,
            uids,
            with: BTreeSet::new(),
            other_pools: false,
            other_letters: false,
            rewritten: false,
        }
    }

    /// Draws one for a layout.
    #[must_use]
    pub fn draw(layout: Layout, random: &mut Random) -> Self {
        let nodes = u32::try_from(random.between(1, 5)).unwrap_or(3);
        let suits = matches!(layout, Layout::Single | Layout::Nics | Layout::Several);
        let outbound =
            if suits && random.permille(500) { Outbound::Theirs } else { Outbound::None };
        let uids = random.draw();
        let other_letters = Random::new(uids).fork("letters").permille(OTHER_LETTERS);
        Self { outbound, other_letters, ..Self::plain(layout, nodes, uids) }
    }

    /// The cloud config with changes.
    ///
    /// # Panics
    /// The changes make it invalid: scenes are in order.
    #[must_use]
    pub fn config(&self, changes: &Value) -> Config {
        let mut config = json!({
            "cloud": "AzurePublicCloud", "tenantId": "t", "aadClientId": "c",
            "aadClientSecret": SECRET, "subscriptionId": SUBSCRIPTION, "resourceGroup": "rg",
            "location": "eastus", "vmType": "vmss", "primaryScaleSetName": "vmss",
            "subnetName": "nodes", "securityGroupName": "nsg", "vnetName": "vnet",
            "vnetResourceGroup": "rg", "loadBalancerSku": "standard",
            "loadBalancerBackendPoolConfigurationType": "nodeIP", "disableOutboundSNAT": true,
            "resourceManagerEndpoint": "http://127.0.0.1:1",
        });
        for more in [&self.layout.config(), &self.config_of_faults(), &self.site(), changes] {
            for (key, value) in more.as_object().into_iter().flatten() {
                config[key] = value.clone();
            }
        }
        let config = Config::of(self.cluster_name(), config);
        if self.other_letters == self.rewritten { config } else { config.respelled() }
    }

    /// What later faults ask of the cloud config.
    fn config_of_faults(&self) -> Value {
        let mut config = json!({});
        if self.with.contains(&Fault::DriftReport) {
            config["driftPolicy"] = json!("report");
        }
        if self.with.contains(&Fault::SharedProbes) {
            config["tags"] = json!("owner=ops,team=net");
            if !matches!(self.layout, Layout::PerSet | Layout::Containers) {
                config["clusterServiceLoadBalancerHealthProbeMode"] = json!("shared");
            }
            if self.has_agents() {
                config["healthCheck"] = json!("agent");
                if self.uids.is_multiple_of(4) {
                    config["healthCheckAgentPort"] = json!(10_400);
                }
            }
        }
        if self.is_strict() {
            let strict = json!({"tenancy": "strict",
                "allowedResourceGroups": ["pip-rg"],
                "allowedAdditionalPublicIPs": ["20.9.0.0/16", "2603:1030:9::/48"],
                "allowedBYOPublicIPs": site::allowed_public_ips()});
            for (key, value) in strict.as_object().into_iter().flatten() {
                config[key] = value.clone();
            }
        }
        if self.shares_balancer() {
            config["nodepoolsWithoutDedicatedSLB"] = json!("VMSS2");
        }
        if self.has_selectors() {
            let ranks = json!({"key": "rank", "operator": "In", "values": ["1", "2", "3", "4"]});
            // No Service has this label: who lacks it is let in.
            let open = json!({"key": "closed", "operator": "NotIn", "values": ["true"]});
            config["multipleStandardLoadBalancerConfigurations"] = json!([
                {"name": "kubernetes", "primaryVMSet": "vmss"},
                {"name": "lb2", "primaryVMSet": "vmss2",
                    "serviceLabelSelector": {"matchExpressions": [ranks, open]},
                    "nodeSelector": {"matchLabels": {"pool": "two", "tier": "front"}}},
                {"name": "lb3", "primaryVMSet": "vmss3",
                    "serviceNamespaceSelector": {"matchLabels": {"of": "team", "kind": "shop"}}}]);
        }
        config
    }

    /// Whether health agents answer the probes.
    fn has_agents(&self) -> bool {
        let suits = self.with.contains(&Fault::SharedProbes) && self.uids.is_multiple_of(2);
        suits && self.layout != Layout::Containers
    }

    /// Whether the cloud config has `tenancy: strict`, with all in its lists that owners ask for.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.with.contains(&Fault::Hostile) && self.uids.is_multiple_of(3)
    }

    /// What has its pools hold the other kind of members, where both kinds can stand.
    pub(crate) fn other_kind_of_pools(&self) -> Option<Value> {
        self.layout.other_pools().filter(|_| !self.has_machines_apart())
    }

    /// Whether nodes of two scale sets are behind load balancers of their own.
    #[must_use]
    pub fn has_two_sets(&self) -> bool {
        self.layout == Layout::PerSet && self.uids.is_multiple_of(2)
    }

    /// Whether the second of them has none of its own and shares the first one's.
    #[must_use]
    pub fn shares_balancer(&self) -> bool {
        self.has_two_sets() && self.uids.is_multiple_of(4)
    }

    /// Whether a Service's load balancer depends on what was there when it came: the one with the
    /// fewest rules is taken, where there are several, and for `__auto__` where each set has one.
    #[must_use]
    pub fn has_choice(&self) -> bool {
        self.layout == Layout::Several || self.has_two_sets()
    }

    /// Whether load balancers choose what is on them by labels.
    #[must_use]
    pub fn has_selectors(&self) -> bool {
        self.layout == Layout::Several && self.with.contains(&Fault::Selectors)
    }

    /// Whether nodes have IPv6 addresses only once a node pool is added.
    #[must_use]
    pub fn is_ipv4_at_first(&self) -> bool {
        self.layout == Layout::Containers && self.uids.is_multiple_of(3)
    }

    /// Whether the security group is in a resource group apart.
    #[must_use]
    pub fn has_group_apart(&self) -> bool {
        let suits = self.with.contains(&Fault::CloudConfig) && self.layout != Layout::Containers;
        suits && Random::new(self.uids).fork("security group").permille(500)
    }

    /// Id of the security group of this scene.
    #[must_use]
    pub fn security_group(&self) -> String {
        let id = security_group();
        if self.has_group_apart() { apart(&id) } else { id }
    }

    /// What was made for a security group in the cluster's resource group, as it is where that one
    /// is: the group itself, and machines that are in it.
    fn grouped(&self, resources: Vec<Value>) -> Vec<Value> {
        if !self.has_group_apart() {
            return resources;
        }
        let id = security_group();
        let (from, to) = (json!(id).to_string(), json!(apart(&id)).to_string());
        let moved = |resource: Value| {
            let text = resource.to_string().replace(&from, &to);
            serde_json::from_str(&text).unwrap_or(resource)
        };
        resources.into_iter().map(moved).collect()
    }

    /// The cluster with its nodes.
    #[must_use]
    pub fn cluster(&self, now_ms: u64) -> Store {
        let options = StoreOptions {
            ownership: Ownership::AppliedOnly,
            history_limit: 4_000,
            started_ms: now_ms,
            seed: self.uids,
            ..StoreOptions::default()
        };
        let mut store = Store::new(options);
        for index in 0..self.nodes {
            store.create(self.node(index), now_ms).expect("nodes of a scene are in order");
        }
        store
    }

    /// A node; where there are two sets every second one is of the second one.
    #[must_use]
    pub fn node(&self, index: u32) -> Value {
        let two = self.layout == Layout::Several || self.has_two_sets();
        let second = two && index % 2 == 1;
        let mut node = objects::node(if second { "vmss2" } else { "vmss" }, index);
        if self.is_ipv4_at_first() {
            let addresses = node["status"]["addresses"].as_array_mut();
            let ipv4 = |entry: &Value| !entry["address"].as_str().unwrap_or("").contains(':');
            addresses.into_iter().for_each(|all| all.retain(ipv4));
        }
        if self.is_alone(index) {
            node["spec"]["providerID"] = json!(format!("azure://{}", machines::machine(index)));
        }
        let labels = &mut node["metadata"]["labels"];
        if self.with.contains(&Fault::OddNodes) {
            odd_labels(labels, index);
        }
        if self.with.contains(&Fault::ControlPlane) && index % 4 == 2 {
            labels[CONTROL_PLANE] = json!("");
        }
        if self.has_selectors() {
            // One of the two labels that are asked for is not enough.
            labels["tier"] = json!("front");
            if index % 4 >= 2 {
                labels["pool"] = json!("two");
            }
        }
        self.with_machines(node)
    }

    /// Whether Azure takes Private Link Services: before pools of NICs, and on no load balancer
    /// with an IPv6 frontend.
    #[must_use]
    pub fn takes_links(&self) -> bool {
        let nics = self.layout == Layout::Nics && !self.other_pools;
        nics && !self.with.contains(&Fault::Families)
    }

    /// Whether a node's machine is of no scale set.
    #[must_use]
    pub fn is_alone(&self, index: u32) -> bool {
        self.layout == Layout::Nics
            && self.with.contains(&Fault::Machines)
            && !index.is_multiple_of(3)
    }

    /// Whether a node of this address belongs to a load balancer, by its id: of several each has a
    /// set of its own.
    #[must_use]
    pub fn is_at_home(&self, balancer: &str, address: &str) -> bool {
        // The third load balancer's set has no machines: its nodes are guests.
        let home = if address.starts_with("10.224.1.") { "lb2" } else { "kubernetes" };
        let name = balancer.rsplit('/').next().unwrap_or("");
        self.layout != Layout::Several || name.starts_with(home)
    }

    /// Azure with the estate in it.
    #[must_use]
    pub fn cloud(&self) -> Azure {
        let options = AzureOptions {
            defaults: Switch::Off,
            log_bodies: Switch::Off,
            ..AzureOptions::default()
        };
        let mut azure = Azure::new(options);
        azure.seed(self.grouped(objects::estate()));
        // Where pools hold addresses, too, if the operator may have them hold NICs.
        if self.layout.has_nics() || self.other_kind_of_pools().is_some() {
            azure.seed(self.grouped(objects::scale_set("vmss", MACHINES)));
        }
        if self.has_two_sets() {
            azure.seed(self.grouped(objects::scale_set("vmss2", MACHINES)));
        }
        let alone = (0..MACHINES).filter(|index| self.is_alone(*index));
        azure.seed(self.grouped(alone.flat_map(machines::alone).collect()));
        if self.layout == Layout::Several {
            azure.seed(self.grouped(objects::scale_set("vmss", 0)));
            azure.seed(self.grouped(objects::scale_set("vmss2", 0)));
            azure.seed(self.grouped(objects::scale_set("vmss3", 0)));
        }
        if self.layout == Layout::Containers {
            azure.seed(objects::gateway());
            azure.seed_gateway(&gateway(), &objects::gateway_tables());
        }
        if self.has_machines_apart() {
            let machines = self.grouped(objects::scale_set("vmss", MACHINES)).into_iter();
            azure.seed(machines.map(|machine| self.with_machines(machine)).collect());
        }
        let sku = if self.is_basic() { "Basic" } else { "Standard" };
        azure.seed(objects::what_annotations_name(sku));
        if self.with.contains(&Fault::SecondCluster) {
            azure.seed(second::estate(self.cluster_name()));
        }
        if self.outbound == Outbound::Theirs {
            azure.seed(objects::outbound_balancer());
        }
        azure
    }
}

/// What clouds and older clusters say of a node beside what load balancers ask.
fn odd_labels(labels: &mut Value, index: u32) {
    match index % 4 {
        0 => labels[NODE_GROUP] = json!("RG"),
        1 => labels[MANAGED] = json!("true"),
        3 if index > 4 => labels[OLD_CONTROL_PLANE] = json!(""),
        _ => {}
    }
}
