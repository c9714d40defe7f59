//! A cluster with a Service, and an Azure with a network.

use crate::causes::{Explanation, Wire, explain};
use crate::forecast::settle;
use model::azure::{PublicIp, Subnet, WayOut};
use model::kubernetes::{Node, Service, ServicePort, TargetPort};
use model::policy::OutboundSnat;
use model::world::{Fact, Kind, VirtualMachine};
use model::{Family, Group, NodeName, Policy, ResourceId, World};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const WIRE: Wire = Wire {
    resource: arm::body::write_resource,
    registration: arm::body::write_gateway_service,
    locations: arm::body::locations_update,
};

pub(super) fn policy() -> Policy {
    Policy {
        private_link_group: Group::new("rg"),
        primary_set: "vmss1".into(),
        outbound_snat: OutboundSnat::Enabled,
        ..fixture::policy()
    }
}

pub(super) fn port(number: u16, node_port: u16) -> ServicePort {
    let target_port = TargetPort::Number(8443);
    ServicePort { target_port, ..fixture::port(&format!("p{number}"), number, node_port) }
}

pub(super) fn service() -> Service {
    annotated(&[])
}

pub(super) fn annotated(annotations: &[(&str, &str)]) -> Service {
    Service { ports: vec![port(80, 30_080)], ..fixture::service(annotations) }
}

fn node(set: &str, n: u8) -> Node {
    let scale_sets = "azure:///subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/\
                      virtualMachineScaleSets";
    let (third, last) = (set.len(), n);
    let addresses = vec![
        format!("10.0.{third}.{last}").parse().unwrap(),
        format!("fd00::{third}:{last}").parse().unwrap(),
    ];
    Node {
        provider_id: Some(Arc::from(format!("{scale_sets}/{set}/virtualMachines/{n}"))),
        ..fixture::node(&format!("{set}-{n}"), addresses)
    }
}

pub(super) fn add_node(world: &mut World, set: &str, n: u8) {
    let node = node(set, n);
    world.kubernetes.nodes.insert(node.name.clone(), Arc::new(node));
}

/// Two nodes, the Service, a network with two subnets, and an empty security group.
pub(super) fn node_world(service: &Service) -> World {
    let mut world = World::default();
    world.kubernetes.complete = Kind::ALL.into();
    world.kubernetes.services.insert(service.uid.clone(), Arc::new(service.clone()));
    add_node(&mut world, "vmss1", 4);
    add_node(&mut world, "vmss1", 5);
    let azure = &mut world.azure;
    azure.balancers = Fact::Known(BTreeMap::new());
    for group in ["rg", "other"] {
        azure.public_ips.insert(Group::new(group), Fact::Known(BTreeMap::new()));
        azure.private_links.insert(Group::new(group), Fact::Known(BTreeMap::new()));
    }
    azure.zones = Fact::Known(vec!["1".into(), "2".into()]);
    azure.security_group = Fact::Known(Some(Arc::new(fixture::security_group(Vec::new()))));
    for name in ["nodes", "apps"] {
        let subnet = Subnet {
            prefixes: vec!["10.0.0.0/8".parse().unwrap(), "fd00::/16".parse().unwrap()],
            way_out: WayOut::Possible,
            ..fixture::subnet(name, "10.0.0.0/8")
        };
        azure.subnets.insert(subnet.id.clone(), Fact::Known(Some(Arc::new(subnet))));
    }
    azure.scale_sets = Fact::Known(BTreeMap::new());
    azure.network_interfaces = Fact::Known(BTreeMap::new());
    azure.virtual_machines = Fact::Known(BTreeMap::new());
    azure.nat_gateways = Fact::Known(BTreeMap::new());
    azure.gateway_services = Fact::Known(BTreeMap::new());
    azure.gateway_locations = Fact::Known(Arc::default());
    world
}

/// A public IP that somebody brought.
pub(super) fn bring(world: &mut World, name: &str, family: Family) {
    let group = Group::new("rg");
    let address = match family {
        Family::V4 => "20.1.2.3",
        Family::V6 => "2603:1030::5",
    };
    let ip = fixture::public_ip(name, Some(address.parse().unwrap()));
    let ip = PublicIp { tags: None, family, ..ip };
    let facts = world.azure.public_ips.get_mut(&group).and_then(Fact::known_mut);
    facts.unwrap().insert(ip.id.clone(), Arc::new(ip));
}

/// Standalone VMs in place of the nodes.
pub(super) fn add_nics(world: &mut World, count: u8) {
    let group = "/subscriptions/s/resourceGroups/rg/providers";
    world.kubernetes.nodes.clear();
    let mut nics = BTreeMap::new();
    let mut machines = BTreeMap::new();
    for n in 1..=count {
        let vm = ResourceId::new(format!("{group}/Microsoft.Compute/virtualMachines/vm{n}"));
        let nic = ResourceId::new(format!("{group}/Microsoft.Network/networkInterfaces/vm{n}"));
        let host: Arc<str> = Arc::from(format!("vm{n}"));
        let mut node = node("vm", n);
        node.name = NodeName::new(&host);
        node.provider_id = Some(Arc::from(format!("azure://{vm}")));
        world.kubernetes.nodes.insert(node.name.clone(), Arc::new(node));
        let member = arm::body::read_pool_member(&json!({
            "id": nic.as_str(),
            "location": "eastus",
            "properties": {
                "primary": true,
                "virtualMachine": { "id": vm.as_str() },
                "ipConfigurations": [{ "name": "ipconfig", "properties": { "primary": true,
                    "privateIPAddressVersion": "IPv4" } }],
            },
        }));
        let member = member.expect("a NIC as Azure writes one");
        nics.insert(nic.clone(), Arc::new(member));
        let machine =
            VirtualMachine { id: vm.clone(), host: Some(host), set: None, nic: Some(nic) };
        machines.insert(vm, Arc::new(machine));
    }
    world.azure.network_interfaces = Fact::Known(nics);
    world.azure.virtual_machines = Fact::Known(machines);
}

/// The same after everything was carried out.
pub(super) fn settled(world: &World, policy: &Policy) -> World {
    settle(world.clone(), policy).0
}

pub(super) fn explained(world: &World, policy: &Policy, service: &Service) -> Explanation {
    explain(world, policy, &service.name, &WIRE).expect("the Service is ours")
}
