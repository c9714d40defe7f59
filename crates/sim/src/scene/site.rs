//! What the cloud config says beside what every run needs: in some seeds each of its other keys
//! that decides on what is built has a value.

use super::{GROUP, GROUP_APART, Layout, Outbound, SUBSCRIPTION, Scene};
use crate::config::{CLUSTER, OTHER_CLUSTER};
use crate::fault::Fault;
use crate::random::Random;
use serde_json::{Map, Value, json};

/// In how many of a thousand scenes with a cloud config of their own, and a load balancer for each
/// node set, these are Standard.
const STANDARD_SETS: u64 = 700;

/// In how many of a thousand scenes with a cloud config of their own, and no pools of NICs,
/// machines are in a subscription of their own.
const MACHINES_APART: u64 = 400;
/// That subscription.
const OF_MACHINES: &str = "00000000-0000-0000-0000-000000000002";

/// In how many of a thousand scenes with a cloud config of their own it lists the BYO public IPs
/// that Services may name, with all in the list that owners ask for.
const LISTED: u64 = 700;

/// Names that Pods have for egress gateways.
const EGRESS: u64 = 3;
/// In how many of a thousand scenes with a cloud config of their own one of them is reserved.
const EGRESS_HELD: u64 = 400;

impl Scene {
    /// The name of the cluster. One of several load balancers has to bear it.
    #[must_use]
    pub fn cluster_name(&self) -> &'static str {
        let free = matches!(self.layout, Layout::Single | Layout::Nics | Layout::PerSet);
        let other = free && self.outbound == Outbound::None && self.uids.is_multiple_of(2);
        if self.with.contains(&Fault::CloudConfig) && other { OTHER_CLUSTER } else { CLUSTER }
    }

    /// Whether each node set has a load balancer of its own, and these are Standard.
    #[must_use]
    pub fn has_standard_sets(&self) -> bool {
        let suits = self.layout == Layout::PerSet && self.with.contains(&Fault::CloudConfig);
        suits && Random::new(self.uids).fork("standard sets").permille(STANDARD_SETS)
    }

    /// Whether load balancers are Basic.
    #[must_use]
    pub fn is_basic(&self) -> bool {
        self.layout == Layout::PerSet && !self.has_standard_sets()
    }

    /// Whether the network is in another subscription than the machines. Drawn where no resource of
    /// the network names a machine: pools hold addresses, and go on doing so.
    #[must_use]
    pub fn has_machines_apart(&self) -> bool {
        let free = matches!(self.layout, Layout::Single | Layout::Containers);
        let suits = free && self.with.contains(&Fault::CloudConfig);
        suits && Random::new(self.uids).fork("subscriptions").permille(MACHINES_APART)
    }

    /// Whether the cloud config lists the BYO public IPs that Services may name without
    /// `tenancy: strict`. A hostile tenant is drawn with that, or without a list.
    fn lists_public_ips(&self) -> bool {
        let suits = self.with.contains(&Fault::CloudConfig) && !self.with.contains(&Fault::Hostile);
        suits && Random::new(self.uids).fork("listed public IPs").permille(LISTED)
    }

    /// What names machines in the network's subscription, with these in theirs.
    pub(super) fn with_machines(&self, value: Value) -> Value {
        if !self.has_machines_apart() {
            return value;
        }
        let from = format!("{GROUP}/providers/Microsoft.Compute");
        let text = value.to_string().replace(&from, &from.replace(SUBSCRIPTION, OF_MACHINES));
        serde_json::from_str(&text).unwrap_or(value)
    }

    /// Keys of the cloud config that others have no value for.
    pub(super) fn site(&self) -> Value {
        let mut site = Map::new();
        site.extend(self.egress());
        if self.layout == Layout::Several && !self.has_selectors() && self.uids.is_multiple_of(2) {
            // The last one takes no Services.
            site.insert(
                "multipleStandardLoadBalancerConfigurations".to_owned(),
                json!([{"name": "kubernetes", "primaryVMSet": "vmss"},
                    {"name": "lb2", "primaryVMSet": "vmss2"},
                    {"name": "lb4", "primaryVMSet": "vmss3", "allowServicePlacement": false}]),
            );
        }
        if !self.with.contains(&Fault::CloudConfig) {
            return Value::Object(site);
        }
        let mut random = Random::new(self.uids).fork("cloud-config");
        let one_balancer = matches!(self.layout, Layout::Single | Layout::Nics);
        let nodes = self.layout != Layout::Containers;
        let mut say = |suits: bool, key: &str, values: &[Value]| {
            // What is not said is drawn all the same: a new key changes none after it.
            let (on, value) = (random.permille(400), random.pick(values).clone());
            if on && suits {
                site.insert(key.to_owned(), value);
            }
        };
        let own = self.outbound == Outbound::None;
        say(true, "systemTags", &[json!("Theirs"), json!("Theirs,team")]);
        say(true, "tagsMap", &[json!({"cost": "7"}), json!({"Cost": "null", "team": "ops"})]);
        say(nodes, "excludeMasterFromStandardLB", &[json!(false)]);
        say(nodes, "nodeDrainSeconds", &[json!(0), json!(7), json!(200)]);
        // The agent answers at a port and path of its own.
        let shared = nodes && !self.has_agents();
        say(shared, "clusterServiceSharedLoadBalancerHealthProbePort", &[json!(10_300)]);
        say(shared, "clusterServiceSharedLoadBalancerHealthProbePath", &[json!("/alive")]);
        say(nodes, "enableIPTagMutationForExistingPublicIP", &[json!(true)]);
        say(true, "primaryScaleSetName", &[json!("VMSS")]);
        say(true, "location", &[json!("East US")]);
        say(one_balancer && own, "loadBalancerName", &[json!("kubernetes-outer")]);
        say(nodes && own, "loadBalancerResourceGroup", &[json!("pip-rg")]);
        say(nodes, "privateLinkServiceResourceGroup", &[json!("RG")]);
        let edge = random.permille(300);
        if self.has_group_apart() {
            site.insert("securityGroupResourceGroup".to_owned(), json!(GROUP_APART));
        }
        site.extend(self.idle());
        if self.has_machines_apart() {
            site.insert("subscriptionId".to_owned(), json!(OF_MACHINES));
            site.insert("networkResourceSubscriptionID".to_owned(), json!(SUBSCRIPTION));
        }
        if self.lists_public_ips() {
            site.insert("allowedBYOPublicIPs".to_owned(), allowed_public_ips());
        }
        if self.has_standard_sets() {
            let standard = [
                ("loadBalancerSku", json!("standard")),
                ("enableMultipleStandardLoadBalancers", json!(true)),
                ("disableOutboundSNAT", json!(true)),
            ];
            site.extend(standard.map(|(key, value)| (key.to_owned(), value)));
        }
        if edge && one_balancer {
            site.insert("extendedLocationName".to_owned(), json!("losangeles"));
            site.insert("extendedLocationType".to_owned(), json!("EdgeZone"));
        }
        Value::Object(site)
    }

    /// What is said of egress gateways.
    fn egress(&self) -> Map<String, Value> {
        let mut said = Map::new();
        if self.layout != Layout::Containers {
            return said;
        }
        let own = self.with.contains(&Fault::CloudConfig);
        let held = own && Random::new(self.uids).fork("egress names").permille(EGRESS_HELD);
        // A config in other letters has a name that is compared with one of Kubernetes.
        let held = held || self.other_letters;
        if held {
            // Pods of the namespace `default` ask for it: their labels are read in small letters.
            said.insert("egressGatewayNamespaces".to_owned(), json!({"Team-1": ["team"]}));
        }
        if self.uids.is_multiple_of(2) {
            // As many as Pods may have: the last one gets its gateway, too.
            said.insert("maximumEgressGateways".to_owned(), json!(EGRESS - u64::from(held)));
        }
        said
    }

    /// Keys that are there and change nothing: of other kinds of machines, limits that are not
    /// reached.
    fn idle(&self) -> Map<String, Value> {
        let mut random = Random::new(self.uids).fork("idle keys");
        let keys = [
            // Machines are of scale sets.
            ("primaryAvailabilitySetName", json!("vmss2")),
            ("disableAvailabilitySetNodes", json!(true)),
            // 0 counts as if nothing were said.
            ("maximumLoadBalancerRuleCount", json!(0)),
        ];
        let said = keys.into_iter().filter(|_| random.permille(500));
        said.map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

/// The BYO public IPs that owners name.
pub(super) fn allowed_public_ips() -> Value {
    json!(["byo-pip", "byo-pip2", "byo-pip3", "byo-pip6", "pip-rg/byo-pip4"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::LATER;

    #[test]
    fn machines_may_be_in_another_subscription_than_the_network() {
        let scene = |uids: u64| Scene {
            with: LATER.iter().copied().collect(),
            ..Scene::plain(Layout::Containers, 3, uids)
        };
        let apart = (0..64).map(scene).find(Scene::has_machines_apart).expect("some are drawn");
        let config = apart.config(&json!({}));
        let gateway = config.policy().gateway_id();
        assert!(gateway.as_str().contains(SUBSCRIPTION), "{gateway:?}");
        let node = apart.node(0)["spec"]["providerID"].to_string();
        assert!(node.contains(OF_MACHINES), "{node}");
        let machine = node.trim_matches('"').trim_start_matches("azure://").to_owned();
        assert!(apart.cloud().resource(&machine).is_some(), "{machine}");
        let single = |uids: u64| Scene { layout: Layout::Single, ..scene(uids) };
        let apart = (0..64).map(single).find(Scene::has_machines_apart).expect("some are drawn");
        assert_eq!(apart.other_kind_of_pools(), None, "NICs are not the network's");
        let near = (0..64).map(single).find(|scene| !scene.has_machines_apart());
        assert!(near.is_some_and(|scene| scene.other_kind_of_pools().is_some()));
    }

    /// A list is drawn beside a subscription of the machines' own, too.
    #[test]
    fn public_ips_are_listed_in_the_networks_subscription() {
        let with = || LATER.iter().copied().filter(|fault| *fault != Fault::Hostile).collect();
        let scene = |uids: u64| Scene { with: with(), ..Scene::plain(Layout::Single, 3, uids) };
        let suits = |scene: &Scene| scene.has_machines_apart() && scene.lists_public_ips();
        let found = (0..64).map(scene).find(suits).expect("some are drawn");
        let config = found.config(&json!({}));
        let listed = config.policy().tenancy.public_ips.clone().expect("there is a list");
        assert!(listed.iter().all(|ip| ip.as_str().contains(SUBSCRIPTION)), "{listed:?}");
    }
}
