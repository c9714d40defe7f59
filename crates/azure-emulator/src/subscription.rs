//! What stands above resources: subscriptions, resource groups, resource providers.

use serde_json::{Value, json};

use crate::azure::{Azure, not_allowed};
use crate::json::{fill, object};
use crate::message::{Answer, Checked, Request, refusal};
use crate::operations::Change;
use crate::path::{Route, spelling};

const NETWORK: &[&str] = &[
    "loadBalancers",
    "publicIPAddresses",
    "publicIPPrefixes",
    "networkSecurityGroups",
    "virtualNetworks",
    "routeTables",
    "natGateways",
    "serviceGateways",
    "privateLinkServices",
    "networkInterfaces",
];

const COMPUTE: &[&str] = &["virtualMachines", "virtualMachineScaleSets", "availabilitySets"];

impl Azure {
    /// The key of a route's resource group.
    pub(crate) fn group_key(route: &Route) -> Option<String> {
        let group = route.group.as_ref()?;
        let subscription = &route.subscription;
        Some(format!("/subscriptions/{subscription}/resourcegroups/{group}").to_lowercase())
    }

    /// Refuses what lies in a resource group that does not exist.
    pub(crate) fn check_group(&self, route: &Route) -> Checked {
        match (Azure::group_key(route), &route.group) {
            (Some(key), Some(group)) if !self.groups.contains_key(&key) => {
                let message = format!("Resource group '{group}' could not be found.");
                Err(refusal(404, "ResourceGroupNotFound", message))
            }
            _ => Ok(()),
        }
    }

    /// Makes a resource group, unless it is there.
    pub(crate) fn ensure_group(&mut self, route: &Route) {
        let (Some(key), Some(group)) = (Azure::group_key(route), &route.group) else { return };
        let id = format!("/subscriptions/{}/resourceGroups/{group}", route.subscription);
        let body = json!({"location": self.options.location});
        self.groups.entry(key).or_insert_with(|| group_value(&id, group, body));
    }

    /// Answers what has no resource type: groups, providers, the subscription itself.
    pub(crate) fn subscription_level(
        &mut self,
        route: &Route,
        request: &Request,
    ) -> Checked<Answer> {
        if !route.namespace.is_empty() {
            return self.provider(route, request);
        }
        let get = request.method == "GET";
        match (&route.group, route.listing.as_deref()) {
            (Some(_), None) => self.group(route, request),
            (None, Some("resourcegroups")) if get => {
                let prefix = format!("/subscriptions/{}/", route.subscription).to_lowercase();
                let groups = self.groups.iter().filter(|(key, _)| key.starts_with(&prefix));
                let items: Vec<Value> = groups.map(|(_, group)| group.clone()).collect();
                Ok(Answer::new(200, Some(json!({ "value": items }))))
            }
            (None, Some("providers")) if get => {
                let both = ["Microsoft.Compute", "Microsoft.Network"];
                let items: Vec<Value> =
                    both.iter().map(|name| self.provider_value(route, name)).collect();
                Ok(Answer::new(200, Some(json!({ "value": items }))))
            }
            (None, Some("locations")) if get => {
                let name = &self.options.location;
                let id = format!("{}/{name}", route.path);
                let item = json!({"id": id, "name": name, "displayName": display(name)});
                Ok(Answer::new(200, Some(json!({"value": [item]}))))
            }
            (None, None) if get => Ok(Answer::new(
                200,
                Some(json!({"id": route.path, "subscriptionId": route.subscription,
                    "displayName": "Emulated", "state": "Enabled"})),
            )),
            _ => Err(not_allowed(&request.method, route)),
        }
    }

    fn group(&mut self, route: &Route, request: &Request) -> Checked<Answer> {
        let (Some(key), Some(name)) = (Azure::group_key(route), &route.group) else {
            return Err(not_allowed(&request.method, route));
        };
        match request.method.as_str() {
            "PUT" => {
                let body = request.body.clone().unwrap_or(json!({}));
                let id = match self.groups.get(&key) {
                    Some(old) => old["id"].as_str().unwrap_or(&route.path).to_owned(),
                    None => route.path.clone(),
                };
                let status = if self.groups.contains_key(&key) { 200 } else { 201 };
                let group = group_value(&id, name, body);
                self.groups.insert(key, group.clone());
                Ok(Answer::new(status, Some(group)))
            }
            "GET" | "HEAD" => {
                self.check_group(route)?;
                let status = if request.method == "HEAD" { 204 } else { 200 };
                let group = self.groups.get(&key).filter(|_| status == 200);
                Ok(Answer::new(status, group.cloned()))
            }
            "DELETE" => {
                self.check_group(route)?;
                self.groups.remove(&key);
                for resource in self.store.keys_below(&key) {
                    self.remove_now(&resource);
                }
                let headers = self.start(&key, Change::Action, None);
                Ok(Answer::new(202, None).with_headers(headers))
            }
            other => Err(not_allowed(other, route)),
        }
    }

    fn provider(&self, route: &Route, request: &Request) -> Checked<Answer> {
        let action = route.types.first().map(|word| word.to_lowercase());
        match (request.method.as_str(), action.as_deref()) {
            ("GET", None) | ("POST", Some("register" | "unregister")) => {
                let name = spelling(&route.namespace).to_owned();
                Ok(Answer::new(200, Some(self.provider_value(route, &name))))
            }
            (method, _) => Err(not_allowed(method, route)),
        }
    }

    fn provider_value(&self, route: &Route, name: &str) -> Value {
        let location = display(&self.options.location);
        let known: Vec<&str> = match name {
            "Microsoft.Network" => NETWORK.to_vec(),
            // Public IPs and load balancers stand here, too, as clients of the stand-in expect.
            "Microsoft.Compute" => COMPUTE
                .iter()
                .chain(["publicIPAddresses", "loadBalancers"].iter())
                .copied()
                .collect(),
            _ => Vec::new(),
        };
        let types: Vec<Value> = known
            .iter()
            .map(|kind| {
                json!({
                    "resourceType": kind, "locations": [location],
                    "apiVersions": ["2025-09-01", "2025-05-01", "2025-04-01"],
                    "zoneMappings": [{"location": location, "zones": self.options.zones}],
                })
            })
            .collect();
        let id = format!("/subscriptions/{}/providers/{name}", route.subscription);
        json!({"id": id, "namespace": name, "registrationState": "Registered",
            "resourceTypes": types})
    }
}

fn group_value(id: &str, name: &str, body: Value) -> Value {
    let mut group = json!({"id": id, "name": name, "type": "Microsoft.Resources/resourceGroups"});
    let map = object(&mut group);
    if let Value::Object(body) = body {
        for (key, value) in body {
            if !matches!(key.as_str(), "id" | "name" | "type" | "properties") {
                map.insert(key, value);
            }
        }
    }
    fill(map, "location", "eastus");
    map.insert("properties".to_owned(), json!({"provisioningState": "Succeeded"}));
    group
}

/// `eastus2` -> `East US 2`, as providers spell regions.
pub(crate) fn display(location: &str) -> String {
    let starts = ["north", "south", "east", "west", "central"];
    let Some(start) = starts.iter().find(|start| location.starts_with(**start)) else {
        return location.to_owned();
    };
    let capital = |word: &str| match word.split_at_checked(1) {
        Some((first, rest)) => format!("{}{rest}", first.to_uppercase()),
        None => String::new(),
    };
    let rest = &location[start.len()..];
    let digit = rest.trim_start_matches(|c: char| !c.is_ascii_digit());
    let word = &rest[..rest.len() - digit.len()];
    let word = if word == "us" { "US".to_owned() } else { capital(word) };
    format!("{} {word} {digit}", capital(start)).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::display;

    #[test]
    fn regions_are_spelled_as_providers_do() {
        let spelled = ["eastus", "eastus2", "westeurope", "mars"].map(display);
        assert_eq!(spelled, ["East US", "East US 2", "West Europe", "mars"]);
    }
}
