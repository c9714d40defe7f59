//! Services of all kinds that the annotation table allows, on an estate that has what they name.
#![allow(dead_code)]

use crate::support::{GROUP, create, laboratory, network, node, patch, scale_set};
use kube_emulator::ObjectRef;
use plan::ask::annotation::{PAUSE, PORT, PREFIX, PROTECT, TABLE, full};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};
use sim::Laboratory;

/// The Service is deleted, and its owner does not hold it back.
pub fn let_go(lab: &mut Laboratory, index: usize) {
    let free = json!({"metadata": {"annotations": {PAUSE: null, PROTECT: null}}});
    patch(lab, "services", "default", &name(index), free);
    crate::support::delete(lab, "default", &name(index));
}

/// As many cases as `PROPERTY_CASES` asks for, else few.
pub fn cases(few: u32) -> ProptestConfig {
    ProptestConfig {
        cases: asked_for("PROPERTY_CASES", few),
        failure_persistence: None,
        max_shrink_iters: asked_for("PROPERTY_SHRINKS", 60),
        ..ProptestConfig::default()
    }
}

/// A number from the environment.
pub fn asked_for(key: &str, otherwise: u32) -> u32 {
    std::env::var(key).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// How the cluster is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One load balancer, addresses in its pools.
    Addresses,
    /// One load balancer, NICs in its pools.
    Nics,
    /// `multipleStandardLoadBalancerConfigurations`.
    Several,
    /// `enableMultipleStandardLoadBalancers`.
    PerSet,
    /// One load balancer, shared probes, tags of the config.
    Shared,
}

/// Shapes for tests.
pub fn shapes() -> impl Strategy<Value = Shape> {
    use Shape::{Addresses, Nics, PerSet, Several, Shared};
    select(vec![Addresses, Addresses, Nics, Several, PerSet, Shared])
}

/// A Service, before it has a name.
#[derive(Clone, Debug)]
pub struct Wish {
    pub internal: bool,
    pub annotations: Vec<(&'static str, &'static str)>,
    pub ports: Vec<(&'static str, u16, Option<&'static str>)>,
    pub families: &'static [&'static str],
    pub local: bool,
    pub affinity: bool,
    pub ranges: bool,
    pub node_ports: bool,
    pub address: Option<&'static str>,
}

const PREFIX_V4: &str = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg/\
    providers/Microsoft.Network/publicIPPrefixes/prefix";
const PREFIX_V6: &str = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg/\
    providers/Microsoft.Network/publicIPPrefixes/prefix6";
const FLAG: &[&str] = &["true", "false"];

/// Valid values of an annotation, as far as the estate goes.
pub fn values(key: &str) -> &'static [&'static str] {
    match key {
        "azure-load-balancer-internal-subnet" => &["nodes", "apps", "nowhere"],
        "azure-load-balancer-mode" => &["__auto__", "vmss", "vmss2"],
        "azure-load-balancer-configurations" => &["kubernetes", "lb2", "LB2,kubernetes"],
        "azure-load-balancer-ipv4" => &["20.50.0.10", "20.50.0.12", "10.225.0.77", "10.224.9.9"],
        "azure-load-balancer-ipv6" => &["2603:1030::10", "fd00:0:0:1::77"],
        "azure-additional-public-ips" => &["20.9.9.1", "20.9.9.2, 20.9.9.3", "2603:1031::1"],
        "azure-load-balancer-tcp-idle-timeout" => &["4", "15", "100"],
        "azure-load-balancer-health-probe-protocol" | "port_{port}_health-probe_protocol" => {
            &["tcp", "Http", "https"]
        }
        "azure-load-balancer-health-probe-interval" | "port_{port}_health-probe_interval" => {
            &["5", "10", "30"]
        }
        "azure-load-balancer-health-probe-num-of-probe"
        | "load-balancer-health-probe-num-of-probe"
        | "port_{port}_health-probe_num-of-probe" => &["2", "3"],
        "azure-load-balancer-health-probe-request-path"
        | "port_{port}_health-probe_request-path" => &["/", "/ready"],
        "port_{port}_health-probe_port" => &["80", "443", "tcp-80", "10256"],
        "azure-allowed-service-tags" => &["Storage", "AzureCloud,Storage"],
        "azure-allowed-ip-ranges" | "load-balancer-source-ranges" => {
            &["10.0.0.0/8", "203.0.113.0/24,198.51.100.0/24", "2001:db8::/32", "0.0.0.0/0"]
        }
        "azure-pip-name" => &["byo-pip", "byo-pip3", "byo-pip6", "nobody"],
        "azure-pip-name-ipv6" => &["byo-pip6", "byo-pip"],
        "azure-pip-prefix-id" => &[PREFIX_V4],
        "azure-pip-prefix-id-ipv6" => &[PREFIX_V6],
        "azure-load-balancer-resource-group" => &["pip-rg", "RG", "no-such-group"],
        "azure-dns-label-name" => &["web-label", "other-label", ""],
        "azure-pip-tags" => &["team=net", "team=web,env=prod"],
        "azure-pip-ip-tags" => &["RoutingPreference=Internet", "FirstPartyUsage=/Web"],
        "azure-pls-name" => &["link-a", "link-b"],
        // One that is named no more when a process starts is not read: what stands there stays.
        "azure-pls-resource-group" => &["rg", "RG"],
        "azure-pls-ip-configuration-subnet" => &["apps", "nodes", "nowhere"],
        "azure-pls-ip-configuration-ip-address-count" => &["1", "2", "8"],
        "azure-pls-ip-configuration-ip-address" => &["10.225.0.50", "10.224.9.60 10.224.9.61"],
        "azure-pls-fqdns" => &["a.example", "a.example b.example"],
        "azure-pls-visibility" => &["*", "sub-1 sub-2"],
        "azure-pls-auto-approval" => &["sub-1"],
        "ballast.dev/retry-at" => &["1", "2"],
        // That it is asked first depends on what stands: tests that compare ends do without.
        "ballast.dev/confirm" => &["false"],
        "ballast.dev/confirmed" => &["TCP/80", "20.0.0.1, kubernetes"],
        "ballast.dev/share-with-namespaces" => &["team", "*"],
        _ => FLAG,
    }
}

fn annotation() -> impl Strategy<Value = (&'static str, &'static str)> {
    let keys: Vec<&str> = TABLE.iter().map(|a| a.key).collect();
    select(keys).prop_flat_map(|key| (Just(key), select(values(key))))
}

/// The only flags that come often enough by themselves to meet each other.
fn often() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    subsequence(
        vec![
            ("azure-pls-create", "true"),
            ("azure-disable-load-balancer-floating-ip", "true"),
            ("azure-load-balancer-enable-high-availability-ports", "true"),
            ("azure-load-balancer-internal-subnet", "apps"),
        ],
        0..=2,
    )
}

prop_compose! {
    pub fn wish()(
        internal in proptest::bool::weighted(0.4),
        mut annotations in vec(annotation(), 0..7),
        often in prop_oneof![2 => Just(Vec::new()), 1 => often()],
        ports in subsequence(vec![
            ("TCP", 80, None), ("TCP", 443, Some("https")), ("UDP", 53, None), ("TCP", 53, None),
            ("SCTP", 5000, None), ("TCP", 8080, Some("http")), ("UDP", 80, None),
        ], 1..=3),
        families in select(vec![
            &["IPv4"] as &[&str], &["IPv4"], &["IPv6"], &["IPv4", "IPv6"], &["IPv6", "IPv4"],
        ]),
        local in proptest::bool::weighted(0.25),
        affinity in proptest::bool::weighted(0.2),
        ranges in proptest::bool::weighted(0.15),
        node_ports in proptest::bool::weighted(0.9),
        address in prop_oneof![
            8 => Just(None),
            1 => select(vec![Some("20.50.0.10"), Some("10.224.9.9"), Some("10.224.9.10")]),
        ],
    ) -> Wish {
        annotations.extend(often);
        Wish {
            internal, annotations, ports, families, local, affinity, ranges, node_ports, address,
        }
    }
}

impl Wish {
    fn annotations(&self) -> Map<String, Value> {
        let mut map = Map::new();
        for (key, value) in &self.annotations {
            // Prefixes are not read: of which family one is, only Azure's answer says.
            if *key == "azure-pip-prefix-id" && self.families == ["IPv6"] {
                continue;
            }
            let port = self.ports[0].1.to_string();
            map.insert(full(&key.replace(PORT, &port)), json!(value));
        }
        let key = format!("{PREFIX}azure-load-balancer-internal");
        map.insert(key, json!(self.internal.to_string()));
        map
    }

    fn ports(&self) -> Vec<Value> {
        let port = |(protocol, port, app): &(&str, u16, Option<&str>)| {
            let name = format!("{}-{port}", protocol.to_lowercase());
            let mut value = json!({"name": name, "protocol": protocol, "port": port,
                "targetPort": 8080});
            if let Some(app) = app {
                value["appProtocol"] = json!(app);
            }
            value
        };
        self.ports.iter().map(port).collect()
    }

    /// The Service.
    pub fn service(&self, index: usize) -> Value {
        let dual = if self.families.len() == 2 { "RequireDualStack" } else { "SingleStack" };
        let mut spec = json!({"type": "LoadBalancer", "selector": {"app": "web"},
            "ports": self.ports(), "ipFamilies": self.families, "ipFamilyPolicy": dual,
            "externalTrafficPolicy": if self.local { "Local" } else { "Cluster" },
            "sessionAffinity": if self.affinity { "ClientIP" } else { "None" },
            "allocateLoadBalancerNodePorts": self.node_ports});
        if self.ranges {
            spec["loadBalancerSourceRanges"] = json!(["203.0.113.0/24"]);
        }
        if let Some(address) = self.address {
            spec["loadBalancerIP"] = json!(address);
        }
        json!({"apiVersion": "v1", "kind": "Service", "spec": spec, "metadata": {
            "name": name(index), "namespace": "default", "annotations": self.annotations()}})
    }

    /// Makes a Service that is there into this one, but for its families.
    pub fn replace(&self, lab: &mut Laboratory, index: usize) {
        let named = name(index);
        let object = ObjectRef::new("services", "default", &named);
        let old = lab.kubernetes.get(object).expect("it is there");
        let mut annotations = Map::new();
        for key in old["metadata"]["annotations"].as_object().into_iter().flat_map(Map::keys) {
            annotations.insert(key.clone(), Value::Null);
        }
        annotations.extend(self.annotations());
        if old["spec"]["ipFamilies"] == json!(["IPv6"]) {
            annotations.insert(format!("{PREFIX}azure-pip-prefix-id"), Value::Null);
        }
        let mut spec = self.service(index)["spec"].clone();
        for key in ["ipFamilies", "ipFamilyPolicy", "allocateLoadBalancerNodePorts"] {
            spec.as_object_mut().expect("an object").shift_remove(key);
        }
        for key in ["loadBalancerSourceRanges", "loadBalancerIP"] {
            if spec.get(key).is_none() {
                spec[key] = Value::Null;
            }
        }
        let body = json!({"metadata": {"annotations": annotations}, "spec": spec});
        patch(lab, "services", "default", &name(index), body);
    }
}

/// A Service's name.
pub fn name(index: usize) -> String {
    format!("web-{index:04}")
}

/// A change of one Service that is there.
#[derive(Clone, Debug)]
pub enum Step {
    Replace(usize, Wish),
    Delete(usize),
    ToClusterIp(usize),
    ToLoadBalancer(usize),
    NodeAway(usize),
    NodeBack(usize),
}

pub fn step() -> impl Strategy<Value = Step> {
    let at = || any::<usize>();
    prop_oneof![
        6 => (at(), wish()).prop_map(|(at, wish)| Step::Replace(at, wish)),
        2 => at().prop_map(Step::Delete),
        1 => at().prop_map(Step::ToClusterIp),
        1 => at().prop_map(Step::ToLoadBalancer),
        1 => (0..3usize).prop_map(Step::NodeAway),
        1 => (0..3usize).prop_map(Step::NodeBack),
    ]
}

impl Step {
    /// Changes what is there; `alive` are the Services.
    pub fn take(&self, lab: &mut Laboratory, alive: &mut Vec<usize>) {
        let pick = |at: &usize, alive: &[usize]| (!alive.is_empty()).then(|| at % alive.len());
        let label = "node.kubernetes.io/exclude-from-external-load-balancers";
        match self {
            Step::Replace(at, wish) => {
                if let Some(at) = pick(at, alive) {
                    wish.replace(lab, alive[at]);
                }
            }
            Step::Delete(at) => {
                if let Some(at) = pick(at, alive) {
                    let index = alive.remove(at);
                    let_go(lab, index);
                }
            }
            Step::ToClusterIp(at) => {
                if let Some(at) = pick(at, alive) {
                    let body = json!({"spec": {"type": "ClusterIP", "externalTrafficPolicy": null,
                        "allocateLoadBalancerNodePorts": null,
                        "loadBalancerSourceRanges": null}});
                    patch(lab, "services", "default", &name(alive[at]), body);
                }
            }
            Step::ToLoadBalancer(at) => {
                if let Some(at) = pick(at, alive) {
                    let body = json!({"spec": {"type": "LoadBalancer"}});
                    patch(lab, "services", "default", &name(alive[at]), body);
                }
            }
            Step::NodeAway(at) => {
                let body = json!({"metadata": {"labels": {label: "true"}}});
                patch(lab, "nodes", "", &format!("vmss{at:06}"), body);
            }
            Step::NodeBack(at) => {
                let body = json!({"metadata": {"labels": {label: null}}});
                patch(lab, "nodes", "", &format!("vmss{at:06}"), body);
            }
        }
    }
}

fn config(shape: Shape) -> Value {
    match shape {
        Shape::Addresses => json!({}),
        Shape::Nics => json!({"loadBalancerBackendPoolConfigurationType": "nodeIPConfiguration"}),
        Shape::Several => json!({"multipleStandardLoadBalancerConfigurations": [
            {"name": "kubernetes", "primaryVMSet": "vmss"},
            {"name": "lb2", "primaryVMSet": "vmss2"}]}),
        Shape::PerSet => json!({"enableMultipleStandardLoadBalancers": true}),
        Shape::Shared => json!({"clusterServiceLoadBalancerHealthProbeMode": "shared",
            "tags": "owner=us,cost=1", "disableOutboundSNAT": false}),
    }
}

/// What is in Azure before the first Service comes, beside the nodes' own estate: addresses that
/// were brought, and parts of others in what we write to.
fn foreign() -> Vec<Value> {
    let balancer = network("loadBalancers/kubernetes");
    let own = network("publicIPAddresses/outbound");
    let pip = |id: String, address: &str, version: &str| {
        json!({"id": id, "sku": {"name": "Standard", "tier": "Regional"},
            "tags": {"whose": "theirs"}, "properties": {
                "publicIPAllocationMethod": "Static", "publicIPAddressVersion": version,
                "ipAddress": address, "idleTimeoutInMinutes": 4, "theirField": 1}})
    };
    let subnet = |name: &str, v4: &str, v6: &str| {
        json!({"id": network(&format!("virtualNetworks/vnet/subnets/{name}")), "properties": {
            "addressPrefixes": [v4, v6], "privateLinkServiceNetworkPolicies": "Enabled",
            "theirField": {"a": 1}}})
    };
    let rule = |name: &str, priority: u32, destination: Value| {
        let mut properties = json!({"access": "Allow", "direction": "Inbound", "protocol": "Tcp",
            "priority": priority, "sourceAddressPrefix": "10.1.0.0/16", "sourcePortRange": "*",
            "destinationPortRange": "22", "theirField": "x"});
        for (key, value) in destination.as_object().into_iter().flatten() {
            properties[key] = value.clone();
        }
        json!({"name": name, "properties": properties})
    };
    vec![
        subnet("nodes", "10.224.0.0/16", "fd00::/64"),
        subnet("apps", "10.225.0.0/16", "fd00:0:0:1::/64"),
        pip(network("publicIPAddresses/byo-pip3"), "20.50.0.12", "IPv4"),
        pip(network("publicIPAddresses/byo-pip6"), "2603:1030::10", "IPv6"),
        pip(own.clone(), "20.50.0.99", "IPv4"),
        json!({"id": network("publicIPPrefixes/prefix6"), "sku": {"name": "Standard"},
            "properties": {"ipPrefix": "2603:1040::/124", "publicIPAddressVersion": "IPv6"}}),
        json!({"id": network("networkSecurityGroups/nsg"), "theirs": true, "properties": {
            "theirField": [1, 2], "securityRules": [
                rule("theirs", 200, json!({"destinationAddressPrefix": "10.224.0.0/16"})),
                rule("k8s-azure-lb_theirs", 499, json!({"destinationAddressPrefix": "20.1.1.1"})),
rule("theirs-500", 500, json!({"destinationAddressPrefix": "VirtualNetwork"}))]}}),
        json!({"id": balancer, "location": "eastus", "sku": {"name": "Standard"},
            "tags": {"whose": "theirs"}, "theirs": {"deep": [1]}, "properties": {
                "theirField": "kept",
                "frontendIPConfigurations": [{"name": "outbound", "properties": {
                    "publicIPAddress": {"id": own}, "theirField": 2}}],
                "backendAddressPools": [{"name": "outbound", "properties": {"theirField": 3}}],
                "outboundRules": [{"name": "out", "properties": {"protocol": "All",
                    "theirField": 4, "frontendIPConfigurations":
                        [{"id": format!("{balancer}/frontendIPConfigurations/outbound")}],
                    "backendAddressPool":
                        {"id": format!("{balancer}/backendAddressPools/outbound")}}}]}}),
    ]
}

/// A cluster of this shape on an estate that has what wishes name.
pub fn world(shape: Shape) -> Laboratory {
    let mut lab = laboratory(&config(shape));
    lab.azure.seed(foreign());
    if shape != Shape::Addresses && shape != Shape::Shared {
        lab.azure.seed(scale_set("vmss", 3));
    }
    if matches!(shape, Shape::Several | Shape::PerSet) {
        lab.azure.seed(scale_set("vmss2", 2));
        for index in 0..2 {
            let mut more = node(300 + index);
            more["metadata"]["name"] = json!(format!("vmss2{index:06}"));
            let id = format!(
                "azure://{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/vmss2\
                 /virtualMachines/{index}"
            );
            more["spec"]["providerID"] = json!(id);
            create(&mut lab, more);
        }
    }
    lab
}

/// Creates a Service for each wish.
pub fn create_all(lab: &mut Laboratory, wishes: &[Wish]) -> Vec<usize> {
    for (index, wish) in wishes.iter().enumerate() {
        create(lab, wish.service(index));
    }
    (0..wishes.len()).collect()
}
