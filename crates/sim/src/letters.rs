//! A cloud config in other letters, which says the same: Azure tells names apart without letter
//! case (Azure documentation, "Naming rules and restrictions for Azure resources"), and the Go
//! cloud provider reads keys, and the words that its own code compares, in any.
//!
//! What is left as it is written has a letter case: namespaces, labels, keys and values of tags
//! that are made, paths, and `preConfiguredBackendPoolLoadBalancerTypes`, which the Go cloud
//! provider compares letter by letter.

use serde_json::{Map, Value};

/// Keys whose values are words, or names of what Azure has; also lists of them.
const NAMES: [&str; 25] = [
    "cloud",
    "vmType",
    "loadBalancerSku",
    "loadBalancerBackendPoolConfigurationType",
    "clusterServiceLoadBalancerHealthProbeMode",
    "healthCheck",
    "driftPolicy",
    "tenancy",
    "extendedLocationType",
    "location",
    "resourceGroup",
    "vnetResourceGroup",
    "securityGroupResourceGroup",
    "loadBalancerResourceGroup",
    "privateLinkServiceResourceGroup",
    "vnetName",
    "subnetName",
    "securityGroupName",
    "loadBalancerName",
    "primaryScaleSetName",
    "primaryAvailabilitySetName",
    "nodepoolsWithoutDedicatedSLB",
    "systemTags",
    "allowedResourceGroups",
    "allowedBYOPublicIPs",
];
/// Objects of names: of egress gateways, which Azure has as names of NAT gateways.
const OF_NAMES: &str = "egressGatewayNamespaces";
/// Objects with keys of their own, and what of these is a name.
const INNER: [(&str, &[&str]); 2] = [
    ("multipleStandardLoadBalancerConfigurations", &["name", "primaryVMSet"]),
    ("layoutMigration", &[]),
];

/// The same cloud config in other letters. Of one in other letters, the first one.
#[must_use]
pub fn respelled(config: &Value) -> Value {
    fields(config, &NAMES)
}

/// An object with its keys, and the values of some of them, in other letters.
fn fields(object: &Value, names: &[&str]) -> Value {
    let all = object.as_object().into_iter().flatten();
    let all = all.map(|(key, value)| {
        let is = |other: &str| other.eq_ignore_ascii_case(key);
        let inner = INNER.iter().find(|(of, _)| is(of));
        let value = match (value, inner) {
            (Value::Array(items), Some((_, names))) => {
                items.iter().map(|item| fields(item, names)).collect()
            }
            (_, Some((_, names))) => fields(value, names),
            _ if is(OF_NAMES) => fields(value, &[]),
            _ if names.iter().any(|name| is(name)) => values(value),
            _ => value.clone(),
        };
        (turned(key), value)
    });
    Value::Object(all.collect::<Map<String, Value>>())
}

/// Texts in other letters.
fn values(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(turned(text)),
        Value::Array(items) => items.iter().map(values).collect(),
        other => other.clone(),
    }
}

/// Small letters for capital ones, and the other way round.
fn turned(text: &str) -> String {
    let other = |c: char| {
        if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }
    };
    text.chars().map(other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::fault::LATER;
    use crate::scene::{LAYOUTS, Layout, Scene, migration};
    use model::Policy;
    use serde_json::json;

    #[test]
    fn keys_and_names_turn_and_what_has_a_letter_case_stays() {
        let config = json!({"resourceGroup": "Rg", "tags": "Owner=ops", "maximumEgressGateways": 3,
            "egressGatewayNamespaces": {"Team-1": ["team"]},
            "allowedBYOPublicIPs": ["ips/web", "Byo"],
            "multipleStandardLoadBalancerConfigurations": [{"name": "lb2", "primaryVMSet": "vmss2",
                "nodeSelector": {"matchLabels": {"pool": "two"}}}]});
        let other = respelled(&config);
        let wanted = json!({"RESOURCEgROUP": "rG", "TAGS": "Owner=ops", "MAXIMUMeGRESSgATEWAYS": 3,
            "EGRESSgATEWAYnAMESPACES": {"tEAM-1": ["team"]},
            "ALLOWEDbyopUBLICipS": ["IPS/WEB", "bYO"],
            "MULTIPLEsTANDARDlOADbALANCERcONFIGURATIONS": [{"NAME": "LB2", "PRIMARYvmsET": "VMSS2",
                "NODEsELECTOR": {"matchLabels": {"pool": "two"}}}]});
        assert_eq!(other, wanted);
        assert_eq!(respelled(&other), config);
    }

    /// What of a policy is compared without letter case, in one.
    fn folded(policy: &Policy) -> String {
        serde_json::to_string(policy).expect("a policy is written").to_lowercase()
    }

    #[test]
    fn a_config_in_other_letters_is_read_as_the_same_policy() {
        for (layout, _) in LAYOUTS {
            for uids in 0..16 {
                let with = LATER.iter().copied().collect();
                let scene = Scene { with, ..Scene::plain(layout, 3, uids) };
                let moves = layout == Layout::Containers;
                let config = scene.config(&if moves { migration() } else { json!({}) });
                let other: Config = config.clone().respelled();
                assert_eq!(other.written, config.written);
                assert_eq!(folded(other.policy()), folded(config.policy()), "{layout:?} {uids}");
            }
        }
    }
}
