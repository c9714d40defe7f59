//! How Azure writes what a plan holds, for explanations that compare bodies.

use explain::causes::Wire;
use model::gateway::LocationsUpdate;
use serde_json::Value;

/// How Azure's bodies are written.
pub const WIRE: Wire = Wire {
    resource: arm::body::write_resource,
    registration: arm::body::write_gateway_service,
    locations,
};

/// The addresses alone, without what only an update says.
fn locations(update: &LocationsUpdate) -> Value {
    let mut body = arm::body::locations_update(update);
    if let Value::Object(fields) = &mut body {
        fields.remove("action");
    }
    for location in body["addressLocations"].as_array_mut().into_iter().flatten() {
        if let Value::Object(fields) = location {
            fields.remove("addressUpdateAction");
        }
    }
    body
}
