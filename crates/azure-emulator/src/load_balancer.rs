//! Load balancers: what the body of a PUT turns into, and moving pools from NICs to addresses.

use serde_json::{Value, json};

use crate::azure::Azure;
use crate::elements::{check_names, check_siblings, strip_elements};
use crate::ids::address_name;
use crate::json::{bare_reference, drop_keys, fill, list, list_mut, object, properties, text};
use crate::message::{Answer, Checked, Request, refusal, refuse};
use crate::options::Switch;
use crate::path::Route;
use crate::store::Entry;
use crate::view::LB_COLLECTIONS;

/// What Azure derives in elements: echoes of it in a PUT are ignored.
const DERIVED: &[(&str, &[&str])] = &[
    (
        "frontendIPConfigurations",
        &["loadBalancingRules", "outboundRules", "inboundNatRules", "inboundNatPools"],
    ),
    (
        "backendAddressPools",
        &[
            "loadBalancingRules",
            "outboundRules",
            "outboundRule",
            "inboundNatRules",
            "backendIPConfigurations",
        ],
    ),
    ("probes", &["loadBalancingRules"]),
    ("inboundNatRules", &["backendIPConfiguration"]),
];

/// Makes the stored form of a body.
pub(crate) fn prepare(entry: &mut Entry, defaults: Switch) -> Checked {
    let value = object(&mut entry.value);
    fill(value, "sku", json!({"name": "Basic"}));
    if let Some(sku) = value.get_mut("sku").and_then(Value::as_object_mut) {
        fill(sku, "tier", "Regional");
    }
    for collection in LB_COLLECTIONS {
        check_names(entry, collection)?;
        let derived = DERIVED.iter().find(|(name, _)| name == collection);
        strip_elements(entry, collection, derived.map_or(&[], |(_, keys)| keys));
    }
    prepare_frontends(entry);
    prepare_pools(entry)?;
    for rule in list_mut(&mut entry.value, "loadBalancingRules").into_iter().flatten() {
        let inside = properties(rule);
        let one = inside.get("backendAddressPool").is_some_and(Value::is_object);
        let many = inside.get("backendAddressPools").and_then(Value::as_array);
        if one && many.is_some_and(|pools| pools.len() <= 1) {
            inside.shift_remove("backendAddressPools");
        }
    }
    if defaults.is_on() {
        add_defaults(entry);
    }
    Ok(())
}

fn prepare_frontends(entry: &mut Entry) {
    for frontend in list_mut(&mut entry.value, "frontendIPConfigurations").into_iter().flatten() {
        let inside = properties(frontend);
        for key in ["publicIPAddress", "subnet", "publicIPPrefix", "gatewayLoadBalancer"] {
            bare_reference(inside, key);
        }
        if inside.get("subnet").is_some_and(Value::is_object) {
            let fixed = inside.get("privateIPAddress").and_then(Value::as_str).unwrap_or("");
            let way = if fixed.is_empty() { "Dynamic" } else { "Static" };
            fill(inside, "privateIPAllocationMethod", way);
        }
    }
}

fn prepare_pools(entry: &mut Entry) -> Checked {
    for pool in list_mut(&mut entry.value, "backendAddressPools").into_iter().flatten() {
        let id = format!("{}/backendAddressPools/{}", entry.id, text(pool, &["name"]));
        let inside = properties(pool);
        bare_reference(inside, "virtualNetwork");
        let Some(addresses) = inside.get_mut("loadBalancerBackendAddresses") else { continue };
        let Some(addresses) = addresses.as_array_mut() else {
            inside.shift_remove("loadBalancerBackendAddresses");
            continue;
        };
        // Addresses that stand for a NIC are derived from it.
        let before = addresses.len();
        addresses.retain(|address| {
            let inside = &address["properties"];
            inside["networkInterfaceIPConfiguration"].is_null()
                || !text(inside, &["ipAddress"]).is_empty()
        });
        if before > 0 && addresses.is_empty() {
            inside.shift_remove("loadBalancerBackendAddresses");
            continue;
        }
        check_siblings(&id, addresses)?;
        for address in addresses {
            if address.is_object() {
                drop_keys(properties(address), &["inboundNatRulesPortMapping"]);
            }
        }
    }
    Ok(())
}

fn add_defaults(entry: &mut Entry) {
    for rule in list_mut(&mut entry.value, "loadBalancingRules").into_iter().flatten() {
        let inside = properties(rule);
        fill(inside, "enableFloatingIP", false);
        fill(inside, "enableTcpReset", false);
        fill(inside, "disableOutboundSnat", false);
        fill(inside, "idleTimeoutInMinutes", 4);
        fill(inside, "loadDistribution", "Default");
    }
    for probe in list_mut(&mut entry.value, "probes").into_iter().flatten() {
        let inside = properties(probe);
        fill(inside, "intervalInSeconds", 15);
        fill(inside, "numberOfProbes", 1);
        fill(inside, "probeThreshold", 1);
    }
}

impl Azure {
    /// `POST …/migrateToIpBased`: pools of NICs become pools of the NICs' addresses.
    pub(crate) fn migrate(&mut self, route: &Route, request: &Request) -> Checked<Answer> {
        let mut above = route.clone();
        above.types.pop();
        above.path = crate::path::parent(&format!("{}/x", route.path)).unwrap_or("").to_owned();
        let key = above.key();
        let missing = || refusal(404, "ResourceNotFound", format!("There is no {}.", above.path));
        let entry = self.store.get(&key).cloned().ok_or_else(missing)?;
        let body = request.body.clone().unwrap_or(Value::Null);
        let wanted: Vec<String> = list(&body, &["pools"])
            .iter()
            .filter_map(|name| name.as_str())
            .map(str::to_lowercase)
            .collect();
        let mut value = entry.value.clone();
        let mut migrated = Vec::new();
        for pool in list_mut(&mut value, "backendAddressPools").into_iter().flatten() {
            let name = text(pool, &["name"]).to_owned();
            if !wanted.is_empty() && !wanted.contains(&name.to_lowercase()) {
                continue;
            }
            let members = self.members(&format!("{}/backendAddressPools/{name}", entry.id));
            let addresses: Vec<Value> = members
                .iter()
                .map(|(member, address)| {
                    let name = address_name(member);
                    json!({"name": name, "properties": {"ipAddress": address}})
                })
                .collect();
            if let Some(network) = members.first().and_then(|(id, _)| self.network_of(id)) {
                properties(pool).insert("virtualNetwork".to_owned(), json!({ "id": network }));
            }
            let key = "loadBalancerBackendAddresses".to_owned();
            properties(pool).insert(key, json!(addresses));
            migrated.push(name);
        }
        if let Some(unknown) =
            wanted.iter().find(|name| !migrated.iter().any(|done| done.to_lowercase() == **name))
        {
            let message = format!("Load balancer {} has no pool {unknown}.", entry.id);
            return refuse("InvalidResourceReference", message);
        }
        self.check_overlap(&key)?;
        if self.is_linked(&key) {
            self.check_beside_link(&Entry { value: value.clone(), ..entry })?;
        }
        for name in &migrated {
            self.detach_pool(&format!("{key}/backendaddresspools/{}", name.to_lowercase()));
        }
        let old = self.store.get(&key).cloned();
        self.write(&above, value, old)?;
        Ok(Answer::new(200, Some(json!({ "migratedPools": migrated }))))
    }
}
