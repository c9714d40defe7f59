//! A Policy and Services for tests.

use model::kubernetes::{GATEWAY_FINALIZER, Ingress, SERVICE_FINALIZER, Service, ServicePort};
use model::{ServiceName, ServiceUid};
use serde_json::json;
use std::collections::BTreeMap;

/// Container load balancers and nothing else.
pub(crate) fn policy() -> model::Policy {
    let text = json!({
        "subscriptionId": "s", "resourceGroup": "rg", "location": "eastus", "vnetName": "vnet",
        "tenantId": "t", "aadClientId": "c", "aadClientSecret": "x", "vmType": "vmss",
        "loadBalancerSku": "service", "loadBalancerBackendPoolConfigurationType": "podIP",
        "serviceGatewayEnabled": true,
    });
    let environment = BTreeMap::new();
    let text = text.to_string();
    let sources = observe::config::Sources { text: &text, cluster: "k", environment: &environment };
    observe::config::read(&sources).expect("it is a good config").policy
}

/// A Service with our finalizers, and with an address in its status or without.
pub(crate) fn service(ingress: Option<&str>) -> Service {
    let ingress = ingress.map(|ip| Ingress { ip: Some(ip.into()), hostname: None });
    let service = fixture::numbered(1, &[]);
    Service {
        name: ServiceName::new("default", "web"),
        finalizers: vec![SERVICE_FINALIZER.into(), GATEWAY_FINALIZER.into()],
        ports: vec![ServicePort { node_port: None, ..service.ports[0].clone() }],
        ingress: ingress.into_iter().collect(),
        ..service
    }
}

/// A Service of another name.
pub(crate) fn named(uid: ServiceUid, name: ServiceName) -> Service {
    Service { uid, name, ..service(None) }
}
