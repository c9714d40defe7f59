//! What the published contract of a request's api-version does not know.

use serde_json::Value;

use crate::json::{same, text};
use crate::message::{Checked, refuse};
use crate::path::{Route, kind};

/// The first version of Microsoft.Network whose load balancers can be of SKU `Service`.
const SERVICE_SKU_VERSION: &str = "2025-09-01";

/// Refuses values that the enumerations of the request's api-version do not have. A request
/// without api-version is taken for one of the newest.
pub(crate) fn check(route: &Route, body: &Value) -> Checked {
    let version = route.query.get("api-version").map(String::as_str);
    let unknown = |value: &str, of: &str, path: &str| {
        let details = format!("Error converting value \"{value}\" to type '{of}'. Path '{path}'.");
        refuse("InvalidRequestFormat", format!("Cannot parse the request. InvalidJson: {details}"))
    };
    let sku = text(body, &["sku", "name"]);
    if route.kind() == kind::LB
        && same(sku, "Service")
        // Versions are dates: they sort as text.
        && version.is_some_and(|version| version < SERVICE_SKU_VERSION)
    {
        return unknown(sku, "LoadBalancerSkuName", "sku.name");
    }
    let network = ["properties", "virtualMachineProfile", "networkProfile", "networkApiVersion"];
    let api = text(body, &network);
    if route.kind() == kind::VMSS && !["", "2020-11-01", "2022-11-01"].contains(&api) {
        return unknown(api, "NetworkApiVersion", &network.join("."));
    }
    Ok(())
}
