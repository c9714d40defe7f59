//! Resources as a GET shows them: what is stored, and what follows from who refers to whom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::azure::Azure;
use crate::ids::address_name;
use crate::json::{fill, list, list_mut, object, properties, text};
use crate::path::{Route, kind, last, parent, spelling};
use crate::security_group::default_rules;
use crate::store::Entry;

/// Collections of a load balancer, in Azure's spelling.
pub(crate) const LB_COLLECTIONS: &[&str] = &[
    "frontendIPConfigurations",
    "backendAddressPools",
    "loadBalancingRules",
    "probes",
    "inboundNatRules",
    "inboundNatPools",
    "outboundRules",
];

type Back = BTreeMap<String, BTreeMap<&'static str, Vec<Value>>>;

impl Azure {
    /// A resource or an element of one, by an id in any letters.
    pub(crate) fn view_any(&self, id: &str) -> Option<Arc<Value>> {
        if let Some(value) = self.view(&id.to_lowercase()) {
            return Some(value);
        }
        let owner = self.view(&parent(id)?.to_lowercase())?;
        let collection = id.rsplit('/').nth(1)?;
        let elements = list(&owner, &["properties", spelling(collection)]);
        crate::json::named(elements, last(id)).cloned().map(Arc::new)
    }

    /// A resource by its key.
    pub(crate) fn view(&self, key: &str) -> Option<Arc<Value>> {
        // A public IP without its address yet is not cached: its operation may end, and the option
        // change, without a write.
        if self.options.late_public_ip_address.is_on() && self.is_being_made(key) {
            return self.store.get(key).map(|entry| Arc::new(self.show(key, entry)));
        }
        self.store.view(key, self.options.nic_pool_addresses, |entry| self.show(key, entry))
    }

    fn show(&self, key: &str, entry: &Entry) -> Value {
        let mut value = entry.value.clone();
        match entry.kind.as_str() {
            kind::LB => self.show_load_balancer(&entry.id, &mut value),
            kind::PIP => self.show_public_ip(key, &mut value),
            kind::NSG => self.show_security_group(&entry.id, &mut value),
            kind::VNET => self.show_network(key, &mut value),
            kind::SUBNET => {
                let users = self.references_to(key, |kind| {
                    matches!(kind, kind::LB | kind::NIC | kind::VMSS_NIC | kind::PLS)
                });
                show_list(&mut value, "ipConfigurations", users);
            }
            kind::NAT => {
                let users = self.references_to(key, |kind| kind == kind::SUBNET);
                show_list(&mut value, "subnets", users);
            }
            kind::PREFIX => {
                let users = self.references_to(key, |kind| kind == kind::PIP);
                show_list(&mut value, "publicIPAddresses", users);
            }
            kind::PLS => show_elements(&entry.id, "privateEndpointConnections", &mut value),
            kind::NIC => {
                show_elements(&entry.id, "ipConfigurations", &mut value);
                if let Some(machine) = self.references_to(key, |kind| kind == kind::VM).pop() {
                    properties(&mut value).insert("virtualMachine".to_owned(), machine);
                }
            }
            kind::VMSS_NIC => show_elements(&entry.id, "ipConfigurations", &mut value),
            kind::ROUTES => {
                show_elements(&entry.id, "routes", &mut value);
                let users = self.references_to(key, |kind| kind == kind::SUBNET);
                show_list(&mut value, "subnets", users);
            }
            "microsoft.compute/availabilitysets" => {
                let users = self.references_to(key, |kind| kind == kind::VM);
                properties(&mut value).insert("virtualMachines".to_owned(), json!(users));
            }
            _ => {}
        }
        value
    }

    /// `{"id"}` of the elements that refer to `id`, of the resource kinds asked for.
    fn references_to(&self, id: &str, wanted: impl Fn(&str) -> bool) -> Vec<Value> {
        let users = self
            .store
            .users(id)
            .filter(|user| self.store.get(&user.owner).is_some_and(|owner| wanted(&owner.kind)));
        let ids: BTreeSet<&str> = users.map(|user| user.element.as_str()).collect();
        ids.into_iter().map(|id| json!({ "id": id })).collect()
    }

    fn show_load_balancer(&self, id: &str, value: &mut Value) {
        for collection in LB_COLLECTIONS {
            show_elements(id, collection, value);
        }
        let back = back_references(value);
        for collection in ["frontendIPConfigurations", "backendAddressPools", "probes"] {
            for element in list_mut(value, collection).into_iter().flatten() {
                let own = text(element, &["id"]).to_lowercase();
                let inside = properties(element);
                for (key, ids) in back.get(&own).into_iter().flatten() {
                    inside.insert((*key).to_owned(), json!(ids));
                }
                if collection == "backendAddressPools" {
                    self.show_pool(&own, inside);
                }
            }
        }
        for rule in list_mut(value, "loadBalancingRules").into_iter().flatten() {
            let inside = properties(rule);
            if let Some(pool) = inside.get("backendAddressPool").filter(|pool| pool.is_object()) {
                let pools = json!([pool]);
                fill(inside, "backendAddressPools", pools);
            }
        }
    }

    fn show_pool(&self, pool: &str, inside: &mut Map<String, Value>) {
        let users = self.references_to(pool, |kind| matches!(kind, kind::NIC | kind::VMSS_VM));
        if users.is_empty() {
            return;
        }
        if self.options.nic_pool_addresses.is_on() {
            let addresses: Vec<Value> = users
                .iter()
                .map(|user| {
                    let name = address_name(text(user, &["id"]));
                    let properties = json!({"networkInterfaceIPConfiguration": user});
                    json!({"name": name, "properties": properties})
                })
                .collect();
            inside.insert("loadBalancerBackendAddresses".to_owned(), json!(addresses));
        }
        inside.insert("backendIPConfigurations".to_owned(), json!(users));
    }

    fn show_public_ip(&self, key: &str, value: &mut Value) {
        let inside = properties(value);
        if self.options.late_public_ip_address.is_on() && self.is_being_made(key) {
            inside.shift_remove("ipAddress");
        }
        for user in self.store.users(key) {
            let property = match user.property {
                "publicIPAddress" => "ipConfiguration",
                "publicIpAddresses" | "publicIpAddressesV6" => "natGateway",
                _ => continue,
            };
            inside.insert(property.to_owned(), json!({ "id": user.element }));
        }
    }

    fn show_security_group(&self, id: &str, value: &mut Value) {
        show_elements(id, "securityRules", value);
        let rules = default_rules(id);
        properties(value).insert("defaultSecurityRules".to_owned(), json!(rules));
        let users = self.references_to(id, |kind| kind == kind::SUBNET);
        show_list(value, "subnets", users);
        let users = self.references_to(id, |kind| kind == kind::NIC);
        show_list(value, "networkInterfaces", users);
    }

    fn show_network(&self, key: &str, value: &mut Value) {
        let prefix = format!("{key}/subnets/");
        let keys = self.store.keys_of(kind::SUBNET, &prefix);
        let subnets = keys.filter_map(|key| self.store.get(key).map(|found| (key, found)));
        let subnets: Vec<Value> = subnets.map(|(key, found)| self.show(key, found)).collect();
        properties(value).insert("subnets".to_owned(), json!(subnets));
    }

    /// What follows where users changed: new ETags, and the addresses of dynamic public IPs.
    pub(crate) fn touch(&mut self, targets: &BTreeSet<String>) {
        self.renew_etags(targets);
        targets.iter().for_each(|target| self.follow_use(target));
    }

    /// Gives a new ETag to the resources whose users changed and that show them.
    pub(crate) fn renew_etags(&mut self, targets: &BTreeSet<String>) {
        let holders: BTreeSet<String> = targets
            .iter()
            .filter_map(|target| {
                let above = parent(target).unwrap_or("");
                [target.as_str(), above].into_iter().find(|key| self.store.get(key).is_some())
            })
            .map(str::to_owned)
            .collect();
        for key in holders {
            let etag = self.guids.etag();
            if let Some(entry) = self.store.get_mut(&key)
                && matches!(entry.kind.as_str(), kind::LB | kind::PIP | kind::NAT | kind::PREFIX)
            {
                entry.value["etag"] = json!(etag);
            }
        }
    }

    /// All NICs of a scale set: `…/virtualMachineScaleSets/{v}/networkInterfaces`.
    pub(crate) fn scale_set_nics(&self, route: &Route) -> Option<Vec<String>> {
        let [sets, nics] = route.types.as_slice() else { return None };
        let asked = sets.eq_ignore_ascii_case("virtualMachineScaleSets")
            && nics.eq_ignore_ascii_case("networkInterfaces");
        let key = route.key();
        let prefix = format!("{}/", key.rsplit_once('/')?.0);
        asked.then(|| self.store.keys_of(kind::VMSS_NIC, &prefix).cloned().collect())
    }
}

/// Puts a list that Azure derives into the properties, unless it is empty.
fn show_list(value: &mut Value, key: &str, items: Vec<Value>) {
    if !items.is_empty() {
        properties(value).insert(key.to_owned(), json!(items));
    }
}

/// Gives the elements of a collection what Azure gives them.
fn show_elements(owner: &str, collection: &str, value: &mut Value) {
    let etag = value["etag"].clone();
    let state = value["properties"]["provisioningState"].clone();
    let kind = Route::parse(owner).map(|route| route.type_name()).unwrap_or_default();
    for element in list_mut(value, collection).into_iter().flatten() {
        let id = format!("{owner}/{collection}/{}", text(element, &["name"]));
        let map = object(element);
        map.insert("id".to_owned(), json!(id));
        map.insert("etag".to_owned(), etag.clone());
        map.insert("type".to_owned(), json!(format!("{kind}/{collection}")));
        properties(element).insert("provisioningState".to_owned(), state.clone());
    }
}

/// Which rules refer to which frontends, pools and probes of one load balancer.
fn back_references(value: &Value) -> Back {
    let mut back = Back::new();
    let single: &[(&str, &str)] = &[
        ("loadBalancingRules", "frontendIPConfiguration"),
        ("loadBalancingRules", "backendAddressPool"),
        ("loadBalancingRules", "probe"),
        ("inboundNatRules", "frontendIPConfiguration"),
        ("inboundNatRules", "backendAddressPool"),
        ("inboundNatPools", "frontendIPConfiguration"),
        ("outboundRules", "frontendIPConfigurations"),
        ("outboundRules", "backendAddressPool"),
    ];
    for (collection, key) in single {
        for rule in list(value, &["properties", collection]) {
            for target in crate::json::references(crate::json::at(rule, &["properties", key])) {
                let kinds = back.entry(target.to_lowercase()).or_default();
                let ids: &mut Vec<Value> = kinds.entry(*collection).or_default();
                ids.push(json!({"id": text(rule, &["id"])}));
            }
        }
    }
    back
}
