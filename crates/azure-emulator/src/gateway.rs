//! Service Gateways: the table of services and the table of addresses, and the two actions that
//! write them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::{Value, json};

use crate::azure::{Azure, not_allowed};
use crate::contract::Form;
use crate::faults::FaultKind;
use crate::json::{drop_keys, fill, list, merge, object, properties, references, same, text};
use crate::message::{Answer, Checked, Request, refusal, refuse};
use crate::operations::Change;
use crate::options::GatewayReply;
use crate::path::{Route, kind};
use crate::store::Entry;

/// Pod address -> names of the services it stands for.
pub(crate) type Addresses = BTreeMap<IpAddr, Vec<String>>;

/// The tables of one Service Gateway.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Gateway {
    /// By lower-case name.
    pub(crate) services: BTreeMap<String, Value>,
    pub(crate) locations: BTreeMap<IpAddr, Addresses>,
    /// How many addresses list a service, by lower-case name.
    mapped: BTreeMap<String, usize>,
    /// Lower-case id of a pool or NAT gateway -> lower-case names of services that refer to it.
    targets: BTreeMap<String, BTreeSet<String>>,
}

pub(crate) fn prepare(entry: &mut Entry) -> Checked {
    fill(object(&mut entry.value), "sku", json!({"name": "Standard", "tier": "Regional"}));
    drop_keys(properties(&mut entry.value), &["services", "addressLocations"]);
    Ok(())
}

impl Gateway {
    fn count(&mut self, names: &[String], up: bool) {
        for name in names {
            let count = self.mapped.entry(name.to_lowercase()).or_default();
            *count = if up { *count + 1 } else { count.saturating_sub(1) };
        }
    }

    fn set_address(&mut self, location: IpAddr, address: IpAddr, services: Vec<String>) {
        self.count(&services, true);
        let before = if services.is_empty() {
            self.locations.get_mut(&location).and_then(|at| at.remove(&address))
        } else {
            self.locations.entry(location).or_default().insert(address, services)
        };
        self.count(&before.unwrap_or_default(), false);
        if self.locations.get(&location).is_some_and(BTreeMap::is_empty) {
            self.locations.remove(&location);
        }
    }

    pub(crate) fn clear_location(&mut self, location: &IpAddr) {
        for (_, services) in self.locations.remove(location).unwrap_or_default() {
            self.count(&services, false);
        }
    }

    fn targets_of(service: &Value) -> BTreeSet<String> {
        let inside = &service["properties"];
        let pools = references(&inside["loadBalancerBackendPools"]);
        let nat = Some(text(inside, &["publicNatGatewayId"])).filter(|id| !id.is_empty());
        pools.into_iter().chain(nat).map(str::to_lowercase).collect()
    }

    fn drop_service(&mut self, name: &str) -> Option<Value> {
        let key = name.to_lowercase();
        let service = self.services.remove(&key)?;
        for target in Gateway::targets_of(&service) {
            if let Some(names) = self.targets.get_mut(&target) {
                names.remove(&key);
            }
        }
        Some(service)
    }

    fn set_service(&mut self, name: &str, service: Value) {
        self.drop_service(name);
        let key = name.to_lowercase();
        for target in Gateway::targets_of(&service) {
            self.targets.entry(target).or_default().insert(key.clone());
        }
        self.services.insert(key, service);
    }

    /// Lower-case names of the services that refer to a pool or NAT gateway.
    pub(crate) fn services_at(&self, target: &str) -> impl Iterator<Item = &String> {
        self.targets.get(&target.to_lowercase()).into_iter().flatten()
    }

    fn is_mapped(&self, name: &str) -> bool {
        self.mapped.get(&name.to_lowercase()).is_some_and(|count| *count > 0)
    }

    /// Addresses that list a service.
    pub(crate) fn addresses_of(&self, name: &str) -> BTreeSet<IpAddr> {
        let all = self.locations.values().flatten();
        let listed = all.filter(|(_, names)| names.iter().any(|listed| same(listed, name)));
        listed.map(|(address, _)| *address).collect()
    }

    fn update_services(&mut self, body: &Value) {
        for name in replaced_services(self, body) {
            self.drop_service(&name);
        }
        for request in list(body, &["serviceRequests"]) {
            let name = text(request, &["service", "name"]);
            let standing = self.drop_service(name);
            if request["isDelete"] == json!(true) {
                continue;
            }
            let mut service = standing.unwrap_or_else(|| {
                json!({"name": name, "properties": {"isDefault": false,
                    "loadBalancerBackendPools": []}})
            });
            let mut change = request["service"].clone();
            drop_keys(object(&mut change), &["id", "etag", "type", "name"]);
            merge(&mut service, &change);
            self.set_service(name, service);
        }
    }

    fn update_locations(&mut self, body: &Value) {
        let entries = list(body, &["addressLocations"]);
        if same(text(body, &["action"]), "FullUpdate") {
            let listed: BTreeSet<IpAddr> =
                entries.iter().filter_map(|entry| parse(entry, "addressLocation").ok()).collect();
            let all: Vec<IpAddr> = self.locations.keys().copied().collect();
            for location in all.iter().filter(|location| !listed.contains(*location)) {
                self.clear_location(location);
            }
        }
        for entry in entries {
            let Ok(location) = parse(entry, "addressLocation") else { continue };
            let addresses = list(entry, &["addresses"]);
            if same(text(entry, &["addressUpdateAction"]), "FullUpdate") || addresses.is_empty() {
                self.clear_location(&location);
            }
            for item in addresses {
                if let Ok(address) = parse(item, "address") {
                    self.set_address(location, address, names_in(&item["services"]));
                }
            }
        }
    }

    /// The tables as the admin page shows them.
    pub(crate) fn to_json(&self) -> Value {
        let services: BTreeMap<&str, &Value> =
            self.services.values().map(|service| (text(service, &["name"]), service)).collect();
        let locations: BTreeMap<String, BTreeMap<String, &Vec<String>>> = self
            .locations
            .iter()
            .map(|(location, at)| {
                let at = at.iter().map(|(address, names)| (address.to_string(), names)).collect();
                (location.to_string(), at)
            })
            .collect();
        json!({"services": services, "locations": locations})
    }

    /// Takes tables over, as they stand in a file; what cannot be read is left out.
    pub(crate) fn load(&mut self, tables: &Value) {
        for (name, service) in tables["services"].as_object().into_iter().flatten() {
            let mut service = service.clone();
            fill(object(&mut service), "name", json!(name));
            self.set_service(name, service);
        }
        for (location, at) in tables["locations"].as_object().into_iter().flatten() {
            for (address, names) in at.as_object().into_iter().flatten() {
                if let (Ok(location), Ok(address)) = (location.parse(), address.parse()) {
                    self.set_address(location, address, names_in(names));
                }
            }
        }
    }
}

fn names_in(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|x| x.as_str().map(str::to_owned)).collect()
}

impl Azure {
    /// The tables of a Service Gateway as `/_/gateways` shows them, by an id in any letters.
    pub fn gateway(&self, id: &str) -> Option<Value> {
        self.gateways.get(&id.to_lowercase()).map(Gateway::to_json)
    }

    /// How many services are registered and how many addresses are listed, in all Service Gateways.
    pub fn gateway_sizes(&self) -> (usize, usize) {
        let services = self.gateways.values().map(|gateway| gateway.services.len()).sum();
        let locations = self.gateways.values().flat_map(|gateway| gateway.locations.values());
        (services, locations.map(BTreeMap::len).sum())
    }

    /// `GET …/services` and `GET …/addressLocations`.
    pub(crate) fn gateway_table(&self, route: &Route) -> Checked<Option<Vec<Value>>> {
        let [gateways, table] = route.types.as_slice() else { return Ok(None) };
        if !same(gateways, "serviceGateways") || route.names.len() != 1 {
            return Ok(None);
        }
        let key = route.key();
        let owner = key.rsplit_once('/').map_or("", |(owner, _)| owner);
        self.store.get(owner).ok_or_else(|| missing(route))?;
        let none = Gateway::default();
        let gateway = self.gateways.get(owner).unwrap_or(&none);
        if same(table, "services") {
            // By the contract a service has a name and properties, and no id.
            return Ok(Some(gateway.services.values().cloned().collect()));
        }
        if !same(table, "addressLocations") {
            return Ok(None);
        }
        let shown = gateway.locations.iter().map(|(location, at)| {
            let addresses: Vec<Value> = at
                .iter()
                .map(|(address, names)| json!({"address": address.to_string(), "services": names}))
                .collect();
            json!({"addressLocation": location.to_string(), "addresses": addresses})
        });
        Ok(Some(shown.collect()))
    }

    /// The POST actions of all kinds.
    pub(crate) fn act(&mut self, route: &Route, request: &Request) -> Checked<Answer> {
        self.check_group(route)?;
        let key = route.key();
        let (owner, verb) = key.rsplit_once('/').unwrap_or((&key, ""));
        let Some(entry) = self.store.get(owner) else { return Err(missing(route)) };
        if let Some(mut body) = request.body.clone() {
            self.admit(route, Form::Act, &mut body, None)?;
        }
        match (entry.kind.as_str(), verb) {
            (kind::LB, "migratetoipbased") => self.migrate(route, request),
            (kind::SGW, "updateservices" | "updateaddresslocations") => {
                self.act_on_gateway(owner, verb, request)
            }
            (kind::SGW, _) => Err(not_allowed("POST", route)),
            _ => self.act_on_machines(route, owner, verb, request),
        }
    }

    fn act_on_gateway(&mut self, owner: &str, verb: &str, request: &Request) -> Checked<Answer> {
        self.check_overlap(owner)?;
        let body = request.body.clone().unwrap_or(Value::Null);
        match self.fault.clone() {
            Some(FaultKind::GatewayErrorIn200 { code }) => {
                let error = json!({"error": {"code": code, "message": "Refused on order."}});
                return Ok(Answer::new(200, Some(error)));
            }
            Some(FaultKind::GatewayCodeIn200 { code }) => {
                let error = json!({"code": code, "message": "Refused on order."});
                return Ok(Answer::new(200, Some(error)));
            }
            Some(FaultKind::GatewayHeaderIn200 { code }) => {
                let header = ("x-ms-error-code".to_owned(), code);
                return Ok(Answer::new(200, Some(json!({}))).with_headers(vec![header]));
            }
            Some(FaultKind::GatewayAcceptedThenFails { .. }) => {
                let headers = self.start(owner, Change::Action, None);
                return Ok(Answer::new(202, None).with_headers(headers));
            }
            _ => {}
        }
        let id = self.store.get(owner).map_or_else(String::new, |entry| entry.id.clone());
        // Checked as a whole, then applied: a refused request changes nothing.
        let mut gateway = self.gateways.remove(owner).unwrap_or_default();
        let checked = if verb == "updateservices" {
            self.check_services(&id, &gateway, &body)
        } else {
            self.check_locations(&gateway, &body)
        };
        if checked.is_ok() && verb == "updateservices" {
            gateway.update_services(&body);
        } else if checked.is_ok() {
            gateway.update_locations(&body);
        }
        self.gateways.insert(owner.to_owned(), gateway);
        checked?;
        let accepted = matches!(self.fault, Some(FaultKind::GatewayAccepted));
        let reply = if accepted { GatewayReply::Accepted } else { self.options.gateway_reply };
        Ok(match reply {
            GatewayReply::Done => Answer::new(200, Some(json!({}))),
            GatewayReply::NoContent => Answer::new(204, None),
            GatewayReply::DoneWithHeaders => {
                let headers = self.start(owner, Change::Action, None);
                Answer::new(200, Some(json!({}))).with_headers(headers)
            }
            GatewayReply::Accepted => {
                let mut headers = self.start(owner, Change::Action, None);
                headers.retain(|(name, _)| name != "Azure-AsyncOperation");
                Answer::new(202, None).with_headers(headers)
            }
        })
    }

    fn check_services(&self, id: &str, gateway: &Gateway, body: &Value) -> Checked {
        check_action(text(body, &["action"]))?;
        for name in replaced_services(gateway, body) {
            check_unmapped(gateway, &name)?;
        }
        let requests = list(body, &["serviceRequests"]);
        for request in requests {
            let name = text(request, &["service", "name"]);
            if name.is_empty() {
                return refuse("InvalidRequestFormat", "A service in the request has no name.");
            }
            if request["isDelete"] == json!(true) {
                check_unmapped(gateway, name)?;
            } else {
                self.check_service(id, name, &request["service"])?;
            }
        }
        check_defaults(gateway, requests)
    }

    fn check_service(&self, id: &str, name: &str, service: &Value) -> Checked {
        let kind = text(service, &["properties", "serviceType"]);
        let known = ["", "Inbound", "Outbound", "InboundOutbound"];
        if !known.iter().any(|known| same(known, kind)) {
            let message = format!("{kind} is not a type of service gateway services.");
            return refuse("InvalidParameterValue", message);
        }
        let pools = references(&service["properties"]["loadBalancerBackendPools"]);
        let nat = text(service, &["properties", "publicNatGatewayId"]);
        for target in pools.into_iter().chain((!nat.is_empty()).then_some(nat)) {
            if self.options.references.is_on() && self.store.holder(target).is_none() {
                let message = format!(
                    "Resource {target} referenced by resource {id}/services/{name} was not found. \
                     Please make sure that the referenced resource exists, and that both \
                     resources are in the same region."
                );
                return refuse("InvalidResourceReference", message);
            }
            if let Some((entry, _)) = self.store.holder(target) {
                self.check_provisioned(entry, id)?;
            }
        }
        Ok(())
    }

    fn check_locations(&self, gateway: &Gateway, body: &Value) -> Checked {
        check_action(text(body, &["action"]))?;
        let mut listed = BTreeSet::new();
        for entry in list(body, &["addressLocations"]) {
            let location = parse(entry, "addressLocation")?;
            if !listed.insert(location) {
                let message = format!("The location {location} stands twice in the request.");
                return refuse("DuplicateLocationsInRequest", message);
            }
            check_action(text(entry, &["addressUpdateAction"]))?;
            for item in list(entry, &["addresses"]) {
                let address = parse(item, "address")?;
                if address.is_ipv6() != location.is_ipv6() {
                    let (outer, inner) =
                        if location.is_ipv6() { ("IPv6", "IPv4") } else { ("IPv4", "IPv6") };
                    let message = format!("{inner} address {address} stands below {location}.");
                    let code = format!("{outer}LocationCannotContain{inner}Addresses");
                    return refuse(&code, message);
                }
                self.check_known(gateway, &names_in(&item["services"]))?;
            }
        }
        Ok(())
    }

    fn check_known(&self, gateway: &Gateway, names: &[String]) -> Checked {
        let unknown =
            names.iter().find(|name| !gateway.services.contains_key(&name.to_lowercase()));
        match unknown.filter(|_| self.options.gateway_known_services.is_on()) {
            None => Ok(()),
            Some(name) => {
                let message = format!("The service {name} is not registered in the gateway.");
                refuse("ServiceNotFoundInServiceGateway", message)
            }
        }
    }

    /// The service of any gateway that refers to a backend pool or a NAT gateway.
    pub(crate) fn gateway_user(&self, target: &str) -> Option<String> {
        let target = target.to_lowercase();
        self.gateways.values().find_map(|gateway| {
            let name = gateway.targets.get(&target)?.first()?;
            Some(text(gateway.services.get(name)?, &["name"]).to_owned())
        })
    }

    pub(crate) fn check_gateway_services(&self, entry: &Entry) -> Checked {
        match self.gateway_user(&entry.id) {
            Some(service) if self.options.gateway_references.is_on() => {
                let message = format!(
                    "NAT gateway {} is in use by the service gateway service {service}. Detach it \
                     first.",
                    entry.id
                );
                refuse("NatGatewayInUseByServiceGateway", message)
            }
            _ => Ok(()),
        }
    }
}

fn missing(route: &Route) -> crate::message::Refusal {
    let group = route.group.as_deref().unwrap_or("");
    let message = format!(
        "The Resource '{}' under resource group '{group}' was not found. For more details please \
         go to https://aka.ms/ARMResourceNotFoundFix",
        route.path
    );
    refusal(404, "ResourceNotFound", message)
}

fn parse(entry: &Value, key: &str) -> Checked<IpAddr> {
    let given = text(entry, &[key]);
    let parsed = given.parse();
    parsed.map_err(|_| {
        refusal(400, "InvalidIPAddressFormat", format!("{key} {given:?} is not an IP address."))
    })
}

fn check_action(action: &str) -> Checked {
    if ["", "FullUpdate", "PartialUpdate"].iter().any(|known| same(known, action)) {
        return Ok(());
    }
    refuse("InvalidParameterValue", format!("{action} is neither FullUpdate nor PartialUpdate."))
}

fn check_unmapped(gateway: &Gateway, name: &str) -> Checked {
    if !gateway.is_mapped(name) {
        return Ok(());
    }
    let message = format!(
        "Service {name} cannot be deleted: it has overlay mappings. Remove it from all addresses \
         first."
    );
    refuse("ServiceWithOverlayMappingsCannotBeDeleted", message)
}

/// The services that a full update does not list, by lower-case name.
fn replaced_services(gateway: &Gateway, body: &Value) -> Vec<String> {
    if !same(text(body, &["action"]), "FullUpdate") {
        return Vec::new();
    }
    let listed: BTreeSet<String> = list(body, &["serviceRequests"])
        .iter()
        .map(|request| text(request, &["service", "name"]).to_lowercase())
        .collect();
    gateway.services.keys().filter(|name| !listed.contains(*name)).cloned().collect()
}

fn check_defaults(gateway: &Gateway, requests: &[Value]) -> Checked {
    let is_default = |service: &Value| service["properties"]["isDefault"] == json!(true);
    if !requests.iter().any(|request| is_default(&request["service"])) {
        return Ok(());
    }
    let asked = requests.iter().map(|request| &request["service"]);
    let names: BTreeSet<String> =
        asked.clone().map(|service| text(service, &["name"]).to_lowercase()).collect();
    let standing = gateway.services.iter().filter(|(name, _)| !names.contains(*name));
    let (mut inbound, mut outbound) = (0, 0);
    for service in standing.map(|(_, service)| service).chain(asked).filter(|x| is_default(x)) {
        let kind = text(service, &["properties", "serviceType"]).to_lowercase();
        inbound += usize::from(kind.starts_with("inbound"));
        outbound += usize::from(kind.ends_with("outbound"));
    }
    if inbound <= 1 && outbound <= 1 {
        return Ok(());
    }
    let message = "A service gateway has at most one default service in each direction.";
    refuse("MultipleDefaultServicesNotAllowedInServiceGateway", message)
}
