//! What the cloud config says beside what every run needs: in some seeds each of its other keys
//! that decides on what is built has a value.

use super::{GROUP_APART, Layout, Outbound, Scene};
use crate::config::{CLUSTER, OTHER_CLUSTER};
use crate::fault::Fault;
use crate::random::Random;
use serde_json::{Map, Value, json};

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

    /// Keys of the cloud config that others have no value for.
    pub(super) fn site(&self) -> Value {
        let mut site = Map::new();
        if self.layout == Layout::Containers && self.uids.is_multiple_of(2) {
            // As many as Pods name: the last one gets its gateway, too.
            site.insert("maximumEgressGateways".to_owned(), json!(EGRESS));
        }
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
        if !nodes && Random::new(self.uids).fork("egress names").permille(EGRESS_HELD) {
            // Pods of the namespace `default` ask for it: their labels are read in small letters.
            site.insert("egressGatewayNamespaces".to_owned(), json!({"Team-1": ["team"]}));
        }
        if edge && one_balancer {
            site.insert("extendedLocationName".to_owned(), json!("losangeles"));
            site.insert("extendedLocationType".to_owned(), json!("EdgeZone"));
        }
        Value::Object(site)
    }
}
