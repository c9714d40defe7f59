//! Services of two families, that lose one and get it back. Nodes have addresses of both.

use super::Company;
use crate::fault::Fault;
use crate::random::Random;
use crate::scene::{Layout, Outbound, Scene, objects};
use crate::stage::Stage;
use crate::tally::count;
use serde_json::{Value, json};

/// Services that are made here.
const SERVICES: u64 = 2;

/// Whether frontends of both families can stand on a layout's load balancers: Basic ones and
/// container load balancers have none of IPv6.
pub(super) fn suits(layout: Layout) -> bool {
    matches!(layout, Layout::Single | Layout::Nics | Layout::Several)
}

/// Whether an IPv4 frontend stands beside ours whatever happens: Azure wants one before any of
/// IPv6.
pub(super) fn has_ipv4_beside(scene: &Scene) -> bool {
    scene.outbound == Outbound::Theirs && scene.layout != Layout::Several
}

fn service(number: u64, scene: &Scene, random: &mut Random) -> Value {
    let mut service = objects::service("default", 20 + number);
    service["metadata"]["name"] = json!(format!("dual-{number}"));
    let (policy, families) = match random.below(4) {
        0 => ("PreferDualStack", json!(["IPv6", "IPv4"])),
        1 => ("RequireDualStack", json!(["IPv4", "IPv6"])),
        2 if has_ipv4_beside(scene) => ("SingleStack", json!(["IPv6"])),
        _ => ("PreferDualStack", json!(["IPv4", "IPv6"])),
    };
    service["spec"]["ipFamilyPolicy"] = json!(policy);
    service["spec"]["ipFamilies"] = families;
    service
}

impl Company {
    pub(super) fn family(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
        count(&mut stage.tally.faults, Fault::Families.name());
        let number = random.below(SERVICES);
        let place = ("default".to_owned(), format!("dual-{number}"));
        let fresh = service(number, &self.scene, random);
        let Some(standing) = self.services.get(&place) else {
            self.services.insert(place, fresh);
            self.tend(stage);
            return "create a Service of two families";
        };
        let families = &standing["spec"]["ipFamilies"];
        let ipv6_first = families[0] == "IPv6";
        let ipv6_alone = ipv6_first && families.as_array().is_some_and(|all| all.len() == 1);
        match random.below(8) {
            0 => {
                self.services.remove(&place);
                self.delete(stage, &place);
                "delete a Service of two families"
            }
            1 => {
                self.services.insert(place.clone(), fresh);
                self.delete(stage, &place);
                self.tend(stage);
                "create a Service of two families again"
            }
            2 | 3 if !ipv6_first || has_ipv4_beside(&self.scene) => {
                let spec = json!({"ipFamilyPolicy": "SingleStack", "ipFamilies": [families[0]]});
                self.apply(stage, &place, &json!({ "spec": spec }));
                "take a family from a Service"
            }
            4 | 5 => {
                let other = if ipv6_first { "IPv4" } else { "IPv6" };
                let families = [families[0].clone(), json!(other)];
                let spec = json!({"ipFamilyPolicy": "PreferDualStack", "ipFamilies": families});
                self.apply(stage, &place, &json!({ "spec": spec }));
                "give a Service both families"
            }
            6 if !ipv6_alone => {
                let local = random.permille(500);
                let health = if local { json!(32_200 + number) } else { Value::Null };
                let policy = if local { "Local" } else { "Cluster" };
                let spec = json!({"externalTrafficPolicy": policy, "healthCheckNodePort": health});
                self.apply(stage, &place, &json!({ "spec": spec }));
                "set the traffic policy of a Service of two families"
            }
            _ => {
                let label = random.below(9).to_string();
                let ranges = json!(["203.0.113.0/24", format!("2001:db8:{label}::/48")]);
                let ranges = if random.permille(500) { ranges } else { Value::Null };
                let spec = json!({ "loadBalancerSourceRanges": ranges });
                self.apply(stage, &place, &json!({ "spec": spec }));
                "set source ranges of both families"
            }
        }
    }
}
