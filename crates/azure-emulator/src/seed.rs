//! Putting resources in place without asking whether Azure would take them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::azure::Azure;
use crate::json::{fill, list, object, properties, text};
use crate::options::Switch;
use crate::path::{Route, kind, last};
use crate::store::Entry;

/// What a seed has put in place.
#[derive(Default)]
struct Placed {
    routes: Vec<Route>,
    /// Keys of what got other users.
    touched: BTreeSet<String>,
}

impl Azure {
    /// Adds resources (or puts them in place of those with the same id), each `{"id", …}` as a
    /// GET shows it; what Azure would have filled in and is missing is filled in. Subnets may
    /// stand alone or inside their network. Items without a resource's id are left out.
    pub fn seed(&mut self, resources: Vec<Value>) {
        self.revision += 1;
        let mut placed = Placed::default();
        for resource in resources {
            self.place(resource, &mut placed);
        }
        // Addresses only when all are there: subnets and prefixes may stand after their users.
        let seeded: BTreeSet<String> = placed.routes.iter().map(Route::key).collect();
        for route in placed.routes {
            let key = route.key();
            let Some(mut entry) = self.store.get(&key).cloned() else { continue };
            let old = entry.clone();
            if self.assign(&key, &mut entry, Some(&old)).is_ok() {
                self.store.insert(key, entry);
            }
        }
        // An operation on what was replaced has no effect any more.
        let held = seeded.iter().filter_map(|key| self.unsettled.remove(key)).flatten();
        placed.touched.extend(held);
        // A dynamic address that a seed has stays, also where nothing in sight uses it: an estate
        // may lack its user, a VPN gateway for example.
        for key in placed.touched.union(&seeded) {
            if self.is_used(key) || !seeded.contains(key) {
                self.follow_use(key);
            }
        }
    }

    /// Adds tables to a Service Gateway: `{"services": {name: …}, "locations": {node address:
    /// {pod address: [names]}}}`.
    pub fn seed_gateway(&mut self, id: &str, tables: &Value) {
        self.revision += 1;
        self.gateways.entry(id.to_lowercase()).or_default().load(tables);
    }

    fn place(&mut self, resource: Value, placed: &mut Placed) {
        let id = text(&resource, &["id"]).to_owned();
        let Some(route) = Route::parse(&id) else { return };
        if route.group.is_some() && route.namespace.is_empty() {
            self.ensure_group(&route);
        }
        if route.names.is_empty() || route.is_collection() {
            return;
        }
        if self.options.auto_groups.is_on() {
            self.ensure_group(&route);
        }
        let kind = route.kind();
        let mut entry = Entry { id, kind, value: resource, created_ms: 0, operation: None };
        let value = object(&mut entry.value);
        fill(value, "name", last(&route.path));
        fill(value, "type", route.type_name());
        if entry.kind != kind::SUBNET {
            fill(value, "location", self.options.location.clone());
        }
        fill(value, "etag", self.guids.etag());
        let address = list_of_kept(&entry);
        let tables = entry.value["properties"].clone();
        // What does not have the right form is kept as it is: a seed is not a request.
        let _ = self.prepare_seed(&mut entry);
        for (name, kept) in address {
            properties(&mut entry.value).insert(name.to_owned(), kept);
        }
        fill(properties(&mut entry.value), "provisioningState", "Succeeded");
        let inside = properties(&mut entry.value);
        let subnets =
            if kind::VNET == route.kind() { inside.shift_remove("subnets") } else { None };
        let key = route.key();
        if entry.kind == kind::SGW {
            self.seed_gateway(&key, &json!({"services": by_name(&tables["services"])}));
        }
        let touched = self.store.insert(key, entry);
        self.renew_etags(&touched);
        placed.touched.extend(touched);
        let network = route.path.clone();
        placed.routes.push(route);
        for mut subnet in subnets.and_then(|all| all.as_array().cloned()).unwrap_or_default() {
            let name = text(&subnet, &["name"]).to_owned();
            object(&mut subnet).insert("id".to_owned(), json!(format!("{network}/subnets/{name}")));
            self.place(subnet, placed);
        }
    }

    fn prepare_seed(&mut self, entry: &mut Entry) -> crate::message::Checked {
        // A seed says what was there; Azure's defaults are for what clients leave out.
        let defaults = std::mem::replace(&mut self.options.defaults, Switch::Off);
        let prepared = self.prepare(entry, None);
        self.options.defaults = defaults;
        prepared
    }
}

/// What a seed decides and a PUT does not.
fn list_of_kept(entry: &Entry) -> Vec<(&'static str, Value)> {
    let keys: &[&'static str] = match entry.kind.as_str() {
        kind::PIP => &["ipAddress"],
        kind::PREFIX => &["ipPrefix"],
        kind::PLS => &["alias"],
        kind::NIC => &["virtualMachine", "macAddress"],
        _ => &[],
    };
    let inside = &entry.value["properties"];
    let kept = keys.iter().map(|key| (*key, inside[*key].clone()));
    kept.filter(|(_, value)| !value.is_null()).collect()
}

fn by_name(services: &Value) -> Value {
    let named = list(services, &[]).iter();
    Value::Object(
        named.map(|service| (text(service, &["name"]).to_owned(), service.clone())).collect(),
    )
}
