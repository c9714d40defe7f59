//! What probes need: small resources, each made once, when the first probe asks for it.

use crate::assumption::Blocked;
use crate::lab::Lab;
use crate::site::Site;
use model::ResourceId;
use serde_json::{Value, json};

pub(crate) const VNET: &str = "Microsoft.Network/virtualNetworks";
pub(crate) const PIP: &str = "Microsoft.Network/publicIPAddresses";
pub(crate) const LB: &str = "Microsoft.Network/loadBalancers";
pub(crate) const NSG: &str = "Microsoft.Network/networkSecurityGroups";
pub(crate) const NAT: &str = "Microsoft.Network/natGateways";
pub(crate) const NIC: &str = "Microsoft.Network/networkInterfaces";
pub(crate) const PLS: &str = "Microsoft.Network/privateLinkServices";
pub(crate) const GATEWAY: &str = "Microsoft.Network/serviceGateways";
pub(crate) const SET: &str = "Microsoft.Compute/virtualMachineScaleSets";

/// Private ranges that nothing outside the run's own network is reached by.
const RANGES: [&str; 2] = ["10.77.0.0/16", "fd77::/48"];

type Made = Result<ResourceId, Blocked>;

/// A resource's body with the run's location and tag.
pub(crate) fn tracked(site: &Site, properties: Value) -> Value {
    json!({"location": site.location, "tags": site.tags(), "properties": properties})
}

/// The same with a SKU.
pub(crate) fn tracked_sku(site: &Site, sku: &str, properties: Value) -> Value {
    let mut body = tracked(site, properties);
    body["sku"] = json!({ "name": sku });
    body
}

/// The virtual network, with a subnet for frontends and NICs, one for Private Link Services, and
/// one for a Service Gateway.
pub(crate) fn network(lab: &mut Lab<'_>) -> Made {
    lab.once("vnet", |lab| {
        let id = lab.site().id(VNET, "vnet");
        let subnet = |name: &str, n: u8, link: &str| {
            json!({"name": name, "properties": {
                "addressPrefixes": [format!("10.77.{n}.0/24"), format!("fd77:0:0:{n}::/64")],
                "privateLinkServiceNetworkPolicies": link}})
        };
        let body = tracked(
            lab.site(),
            json!({"addressSpace": {"addressPrefixes": RANGES}, "subnets": [
                subnet("nodes", 0, "Enabled"), subnet("links", 1, "Disabled"),
                subnet("gateway", 2, "Enabled")]}),
        );
        lab.make(&id, body).map(|_| id)
    })
}

/// A subnet of the network.
pub(crate) fn subnet(lab: &mut Lab<'_>, name: &str) -> Made {
    network(lab).map(|network| network.child("subnets", name))
}

/// A public IP's body.
pub(crate) fn address_body(site: &Site, sku: &str) -> Value {
    let inside = json!({"publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4"});
    tracked_sku(site, sku, inside)
}

/// A public IP.
pub(crate) fn address(lab: &mut Lab<'_>, short: &str, sku: &str) -> Made {
    lab.once(short, |lab| {
        let id = lab.site().id(PIP, short);
        let body = address_body(lab.site(), sku);
        lab.make(&id, body).map(|_| id)
    })
}

/// A public IP that no other resource uses.
pub(crate) fn free_address(lab: &mut Lab<'_>) -> Made {
    address(lab, "ip", "Standard")
}

/// A load balancer with one frontend, one pool and one rule of TCP.
pub(crate) fn balancer_body(site: &Site, id: &ResourceId, frontend: Value) -> Value {
    let part = |kind: &str, name: &str| json!({"id": id.child(kind, name)});
    tracked_sku(
        site,
        "Standard",
        json!({
            "frontendIPConfigurations": [{"name": "front", "properties": frontend}],
            "backendAddressPools": [{"name": "pool", "properties": {}}],
            "loadBalancingRules": [{"name": "rule", "properties": {
                "protocol": "Tcp", "frontendPort": 80, "backendPort": 80,
                "frontendIPConfiguration": part("frontendIPConfigurations", "front"),
                "backendAddressPool": part("backendAddressPools", "pool")}}],
        }),
    )
}

/// An internal frontend.
pub(crate) fn internal_frontend(lab: &mut Lab<'_>) -> Result<Value, Blocked> {
    let subnet = subnet(lab, "nodes")?;
    Ok(json!({"subnet": {"id": subnet}, "privateIPAllocationMethod": "Dynamic"}))
}

/// A public frontend, by a public IP for it alone.
pub(crate) fn public_frontend(lab: &mut Lab<'_>) -> Result<Value, Blocked> {
    let address = address(lab, "front-ip", "Standard")?;
    Ok(json!({"publicIPAddress": {"id": address}}))
}

/// An internal load balancer.
pub(crate) fn balancer(lab: &mut Lab<'_>) -> Made {
    internal_balancer(lab, "lb")
}

fn internal_balancer(lab: &mut Lab<'_>, name: &str) -> Made {
    lab.once(name, |lab| {
        let frontend = internal_frontend(lab)?;
        let id = lab.site().id(LB, name);
        let body = balancer_body(lab.site(), &id, frontend);
        lab.make(&id, body).map(|_| id)
    })
}

/// The body of a Private Link Service before a frontend.
pub(crate) fn link_body(site: &Site, frontend: &ResourceId, subnet: &ResourceId) -> Value {
    tracked(
        site,
        json!({
            "loadBalancerFrontendIpConfigurations": [{"id": frontend}],
            "ipConfigurations": [{"name": "nat", "properties": {
                "primary": true, "privateIPAddressVersion": "IPv4",
                "privateIPAllocationMethod": "Dynamic", "subnet": {"id": subnet}}}],
        }),
    )
}

/// The load balancer that has a Private Link Service before it.
pub(crate) fn linked_balancer(lab: &mut Lab<'_>) -> Made {
    internal_balancer(lab, "linked-lb")
}

/// A Private Link Service.
pub(crate) fn link(lab: &mut Lab<'_>) -> Made {
    lab.once("link", |lab| {
        let balancer = linked_balancer(lab)?;
        let subnet = subnet(lab, "links")?;
        let id = lab.site().id(PLS, "link");
        let frontend = balancer.child("frontendIPConfigurations", "front");
        let body = link_body(lab.site(), &frontend, &subnet);
        lab.make(&id, body).map(|_| id)
    })
}

/// A NAT gateway without addresses.
pub(crate) fn nat_gateway(lab: &mut Lab<'_>) -> Made {
    lab.once("nat", |lab| {
        let id = lab.site().id(NAT, "nat");
        let body = tracked_sku(lab.site(), "Standard", json!({}));
        lab.make(&id, body).map(|_| id)
    })
}

/// A NIC without a machine.
pub(crate) fn nic(lab: &mut Lab<'_>) -> Made {
    lab.once("nic", |lab| {
        let subnet = subnet(lab, "nodes")?;
        let id = lab.site().id(NIC, "nic");
        let inside = json!({"ipConfigurations": [{"name": "ipconfig", "properties": {
            "primary": true, "privateIPAllocationMethod": "Dynamic", "subnet": {"id": subnet}}}]});
        let body = tracked(lab.site(), inside);
        lab.make(&id, body).map(|_| id)
    })
}

/// The body of a Flexible scale set without a model of machines: it has none, and gets none.
pub(crate) fn scale_set_body(site: &Site) -> Value {
    tracked(site, json!({"orchestrationMode": "Flexible", "platformFaultDomainCount": 1}))
}

/// A Flexible scale set without machines.
pub(crate) fn scale_set(lab: &mut Lab<'_>) -> Made {
    lab.once("set", |lab| {
        let id = lab.site().id(SET, "set");
        let body = scale_set_body(lab.site());
        lab.make(&id, body).map(|_| id)
    })
}

/// A Service Gateway.
pub(crate) fn service_gateway(lab: &mut Lab<'_>) -> Made {
    lab.once("gateway", |lab| {
        let network = network(lab)?;
        let subnet = network.child("subnets", "gateway");
        let id = lab.site().id(GATEWAY, "gateway");
        let inside = json!({"virtualNetwork": {"id": network}, "routeTargetAddress": {
            "privateIPAddress": "10.77.2.4", "privateIPAllocationMethod": "Static",
            "subnet": {"id": subnet}}});
        let body = tracked_sku(lab.site(), "Standard", inside);
        lab.make(&id, body).map(|_| id)
    })
}

/// A NAT gateway of the SKU that Service Gateways take, with its address.
pub(crate) fn gateway_nat(lab: &mut Lab<'_>) -> Made {
    lab.once("gateway-nat", |lab| {
        let address = address(lab, "nat-ip", "StandardV2")?;
        let id = lab.site().id(NAT, "gateway-nat");
        let inside = json!({"publicIpAddresses": [{"id": address}]});
        let body = tracked_sku(lab.site(), "StandardV2", inside);
        lab.make(&id, body).map(|_| id)
    })
}
