//! What is wrong with writes of a Service Gateway's tables.

use super::azure::tree;
use super::{Canary, Mutant};
use crate::scene;
use crate::stage::Stage;
use arm::{Method, Request};
use control::Effect;
use serde_json::{Value, json};

impl Mutant {
    /// Spoils a write of the tables, or sends one more before it.
    pub(super) fn tables(
        &mut self,
        request: &mut Request,
        path: &str,
        stage: &Stage,
    ) -> Option<Effect> {
        if request.method == Method::Post {
            let parsed = request.body.as_ref().map(|body| body.tree().into_owned());
            request.body = parsed.map(Into::into);
        }
        let name = path.rsplit('/').next().unwrap_or("");
        match (self.canary, request.method) {
            (Canary::SpoilsTheirRow, Method::Post) if name == "updateServices" => {
                let mut row = scene::objects::gateway_tables()["services"]["default-natgw"].take();
                row["properties"]["isDefault"] = json!(false);
                let row = json!({ "service": row });
                let rows = tree(request)?.get_mut("serviceRequests")?.as_array_mut()?;
                rows.push(row);
                None
            }
            (Canary::ReplacesLocations, Method::Post) if name == "updateAddressLocations" => {
                let locations = tree(request)?.get_mut("addressLocations")?.as_array_mut()?;
                for location in locations {
                    location["addressUpdateAction"] = json!("FullUpdate");
                }
                None
            }
            (Canary::RegistersEarly, Method::Put) if path.contains("/loadBalancers/") => {
                let row = json!({"service": {"name": name, "properties": {
                    "serviceType": "Inbound", "loadBalancerBackendPools": []}}});
                Some(self.services(&row))
            }
            (Canary::UnregistersEarly, Method::Post) if name == "updateAddressLocations" => {
                let gone = first_name(&stage.azure.gateway(&scene::gateway())?["locations"])?;
                let row = json!({"isDelete": true, "service": {"name": gone}});
                Some(self.services(&row))
            }
            _ => None,
        }
    }

    fn services(&mut self, row: &Value) -> Effect {
        let path = format!("{}/updateServices", scene::gateway());
        let mut write = self.extra(Method::Post, &path);
        if let Effect::Azure { request, .. } = &mut write {
            let body = json!({"action": "PartialUpdate", "serviceRequests": [row]});
            request.body = Some(body.into());
        }
        write
    }
}

/// The first service that an address leads to.
fn first_name(locations: &Value) -> Option<String> {
    let addresses = locations.as_object()?.values().filter_map(Value::as_object);
    let names = addresses.flat_map(|at| at.values()).filter_map(Value::as_array);
    names.flatten().find_map(|name| name.as_str().map(str::to_owned))
}
