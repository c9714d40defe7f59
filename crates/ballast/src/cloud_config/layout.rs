//! The keys of a cloud config that change the kind of load balancers.

use serde_json::{Map, Value, json};

const SKU: &str = "loadBalancerSku";
const POOLS: &str = "loadBalancerBackendPoolConfigurationType";
const MIGRATION: &str = "layoutMigration";

/// Keys that say what load balancers over nodes are like and do not go with container load
/// balancers: they are kept as those that Services leave.
const OF_NODES: [&str; 8] = [
    POOLS,
    "multipleStandardLoadBalancerConfigurations",
    "enableMultipleStandardLoadBalancers",
    "nodepoolsWithoutDedicatedSLB",
    "disableOutboundSNAT",
    "healthCheck",
    "healthCheckAgentPort",
    "healthCheckMajorityPercent",
];

/// Completes keys that change the kind of load balancers of a config; other keys stay as they are.
#[must_use]
pub fn complete(config: &Map<String, Value>, keys: &Map<String, Value>) -> Map<String, Value> {
    let is_service = |map: &Map<String, Value>| {
        let sku = get(map, SKU).and_then(Value::as_str);
        sku.map(|sku| sku.eq_ignore_ascii_case("service"))
    };
    let before = is_service(config).unwrap_or(false);
    let after = is_service(keys).unwrap_or(before);
    let mut all = keys.clone();
    let mut migration = object(get(config, MIGRATION));
    migration.extend(object(get(keys, MIGRATION)));
    match (before, after) {
        (false, true) => {
            let mut from = Map::new();
            for key in OF_NODES {
                if let Some(value) = get(config, key).filter(|value| !value.is_null()) {
                    from.insert(key.to_owned(), value.clone());
                    all.entry(key).or_insert(Value::Null);
                }
            }
            all.insert(POOLS.to_owned(), json!("podIP"));
            all.insert("serviceGatewayEnabled".to_owned(), json!(true));
            migration.insert("from".to_owned(), Value::Object(from));
        }
        (true, false) => {
            let known = migration.remove("from");
            let from = object(known.as_ref());
            let kept = OF_NODES.iter().filter_map(|key| Some((*key, get(&from, key)?)));
            for (key, value) in kept {
                all.entry(key).or_insert_with(|| value.clone());
            }
            // A former config without the key had the default.
            let pools = if known.is_some() { "nodeIPConfiguration" } else { "nodeIP" };
            all.entry(POOLS).or_insert_with(|| json!(pools));
            all.insert("serviceGatewayEnabled".to_owned(), json!(false));
        }
        (true, true) | (false, false) => {}
    }
    if before != after || keys.contains_key(MIGRATION) {
        all.insert(MIGRATION.to_owned(), Value::Object(migration));
    }
    all
}

fn get<'m>(map: &'m Map<String, Value>, key: &str) -> Option<&'m Value> {
    map.iter().find(|(held, _)| held.eq_ignore_ascii_case(key)).map(|(_, value)| value)
}

fn object(value: Option<&Value>) -> Map<String, Value> {
    value.and_then(Value::as_object).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn the_way_there_keeps_what_the_way_back_needs() {
        let config = map(json!({"loadBalancerSku": "Standard", "disableOutboundSNAT": true,
            "loadBalancerBackendPoolConfigurationType": "nodeIP", "location": "eastus"}));
        let there = complete(&config, &map(json!({SKU: "service"})));
        let from = json!({POOLS: "nodeIP", "disableOutboundSNAT": true});
        let expected = json!({SKU: "service", POOLS: "podIP", "serviceGatewayEnabled": true,
            "disableOutboundSNAT": null, MIGRATION: {"from": from}});
        assert_eq!(Value::Object(there.clone()), expected);
        let back = complete(&there, &map(json!({SKU: "standard", MIGRATION: {"keepBoth": "1h"}})));
        let expected = json!({SKU: "standard", POOLS: "nodeIP", "serviceGatewayEnabled": false,
            "disableOutboundSNAT": true, MIGRATION: {"keepBoth": "1h"}});
        assert_eq!(Value::Object(back), expected);
    }

    #[test]
    fn the_way_back_leads_to_the_default_pools_where_the_way_there_left_them() {
        let config = map(json!({"loadBalancerSku": "standard"}));
        let there = complete(&config, &map(json!({SKU: "service"})));
        let pools = |before| complete(&before, &map(json!({SKU: "standard"})))[POOLS].clone();
        assert_eq!(pools(there), json!("nodeIPConfiguration"));
        // Where nothing is known of a former config, pools take addresses.
        assert_eq!(pools(map(json!({SKU: "service"}))), json!("nodeIP"));
    }

    #[test]
    fn keys_that_change_no_kind_stay_as_they_are() {
        let keys = map(json!({POOLS: "nodeIP"}));
        assert_eq!(complete(&map(json!({SKU: "standard"})), &keys), keys);
    }
}
