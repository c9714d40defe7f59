//! A sample Azure and short ways to call it.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap here is a failed test")]

use azure_emulator::{Answer, Azure, Options, Request, SampleOptions, sample_estate};
use serde_json::{Value, json};

pub const GROUP: &str = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg";

pub fn net(rest: &str) -> String {
    format!("{GROUP}/providers/Microsoft.Network/{rest}")
}

pub fn compute(rest: &str) -> String {
    format!("{GROUP}/providers/Microsoft.Compute/{rest}")
}

/// The emulator and its clock.
pub struct Cloud {
    pub azure: Azure,
    pub now_ms: u64,
}

impl Cloud {
    pub fn new() -> Self {
        Cloud::with(Options::default())
    }

    pub fn with(options: Options) -> Self {
        let mut azure = Azure::new(options);
        azure.seed(sample_estate(&SampleOptions::default()));
        Cloud { azure, now_ms: 1 }
    }

    pub fn call(&mut self, request: Request) -> Answer {
        self.azure.handle(request, self.now_ms)
    }

    pub fn get(&mut self, id: &str) -> Value {
        let answer = self.call(Request::new("GET", id));
        assert_eq!(answer.status, 200, "GET {id}: {answer:?}");
        answer.body.unwrap()
    }

    /// A PUT; a resource of its own is in eastus unless the body says otherwise.
    pub fn try_put(&mut self, id: &str, mut body: Value) -> Answer {
        let path = id.split('?').next().unwrap_or("");
        let below = path.split_once("/providers/").map_or(0, |(_, kind)| kind.split('/').count());
        let tracked = below == 3 || path.contains("/virtualMachineScaleSets/");
        if let Some(body) = body.as_object_mut().filter(|_| tracked) {
            body.entry("location").or_insert_with(|| json!("eastus"));
        }
        self.call(Request::new("PUT", id).with_body(body))
    }

    pub fn put(&mut self, id: &str, body: Value) -> Value {
        let answer = self.try_put(id, body);
        assert!(matches!(answer.status, 200 | 201), "PUT {id}: {answer:?}");
        answer.body.unwrap()
    }

    pub fn post(&mut self, id: &str, body: Value) -> Answer {
        self.call(Request::new("POST", id).with_body(body))
    }

    pub fn delete(&mut self, id: &str) -> Answer {
        self.call(Request::new("DELETE", id))
    }

    /// Asserts that a PUT is refused with a code.
    pub fn refused(&mut self, id: &str, body: Value, code: &str) {
        let before = self.azure.resource(id);
        let answer = self.try_put(id, body);
        assert_eq!(answer.code(), Some(code), "{answer:?}");
        assert!(answer.status >= 400);
        assert_eq!(self.azure.resource(id), before, "a refused PUT changes nothing");
    }

    /// Private Link Services may take addresses from the subnet `apps` from now on.
    pub fn open_to_links(&mut self) {
        let apps = net("virtualNetworks/vnet/subnets/apps");
        let mut subnet = self.get(&apps);
        subnet["properties"]["privateLinkServiceNetworkPolicies"] = json!("Disabled");
        self.put(&apps, subnet);
    }

    pub fn pip(&mut self, name: &str) -> String {
        let id = net(&format!("publicIPAddresses/{name}"));
        self.put(&id, pip("IPv4", "Standard"));
        id
    }
}

pub fn pip(version: &str, sku: &str) -> Value {
    json!({"location": "eastus", "sku": {"name": sku}, "properties": {
        "publicIPAddressVersion": version, "publicIPAllocationMethod": "Static"}})
}

pub fn lb_id() -> String {
    net("loadBalancers/kubernetes")
}

pub fn below(rest: &str) -> Value {
    json!({"id": format!("{}/{rest}", lb_id())})
}

pub fn rule(name: &str, frontend: &str, port: u16) -> Value {
    json!({"name": name, "properties": {
        "protocol": "Tcp", "frontendPort": port, "backendPort": port, "enableFloatingIP": true,
        "frontendIPConfiguration": below(&format!("frontendIPConfigurations/{frontend}")),
        "backendAddressPool": below("backendAddressPools/pool")}})
}

/// A Private Link Service before a frontend, with an address of the subnet `apps`.
pub fn link(frontend: &str) -> Value {
    let apps = net("virtualNetworks/vnet/subnets/apps");
    json!({"location": "eastus", "properties": {
        "loadBalancerFrontendIpConfigurations":
            [below(&format!("frontendIPConfigurations/{frontend}"))],
        "ipConfigurations": [{"name": "c", "properties": {"subnet": {"id": apps}}}]}})
}

/// A Standard load balancer with one public frontend `front`, one pool `pool`, these rules.
pub fn balancer(pip: &str, rules: Vec<Value>) -> Value {
    json!({"location": "eastus", "sku": {"name": "Standard"}, "properties": {
        "frontendIPConfigurations": [
            {"name": "front", "properties": {"publicIPAddress": {"id": pip}}}],
        "backendAddressPools": [{"name": "pool", "properties": {}}],
        "probes": [], "loadBalancingRules": rules}})
}
