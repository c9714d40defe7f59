//! What is taken for granted where Azure has not been read.

use model::Policy;
use model::azure::{PrivateLinkPolicy, Provisioning, Rest, SecurityGroup, Subnet};
use model::world::{Azure, Fact, Need};
use std::sync::Arc;

/// A security group without rules.
fn closed(policy: &Policy) -> SecurityGroup {
    SecurityGroup {
        id: policy.security_group_id(),
        etag: None,
        location: Arc::clone(&policy.location),
        tags: None,
        rules: Vec::new(),
        provisioning: Provisioning::Succeeded,
        rest: Rest::default(),
    }
}

/// Nothing is there but what the cloud config names: a subnet that takes every address, a security
/// group without rules.
pub(super) fn assume(azure: &mut Azure, policy: &Policy, need: &Need) {
    fn empty<T: Default>(fact: &mut Fact<T>) {
        if fact.known().is_none() {
            *fact = Fact::Known(T::default());
        }
    }
    match need {
        Need::Balancers => empty(&mut azure.balancers),
        Need::PublicIps(group) => empty(azure.public_ips.entry(group.clone()).or_default()),
        Need::SecurityGroup if azure.security_group.known().is_none() => {
            azure.security_group = Fact::Known(Some(Arc::new(closed(policy))));
        }
        Need::SecurityGroup => {}
        Need::Subnet(id) => {
            let prefixes = ["0.0.0.0/0", "::/0"].iter().filter_map(|p| p.parse().ok());
            let subnet = Subnet {
                id: id.clone(),
                etag: None,
                prefixes: prefixes.collect(),
                private_link: PrivateLinkPolicy::Enabled,
                provisioning: Provisioning::Succeeded,
                rest: Rest::default(),
            };
            azure.subnets.insert(id.clone(), Fact::Known(Some(Arc::new(subnet))));
        }
        Need::Zones => empty(&mut azure.zones),
        Need::PrivateLinks(group) => {
            empty(azure.private_links.entry(group.clone()).or_default());
        }
        Need::ScaleSets => empty(&mut azure.scale_sets),
        Need::ScaleSetVms(id) => empty(azure.scale_set_vms.entry(id.clone()).or_default()),
        Need::NetworkInterfaces => empty(&mut azure.network_interfaces),
        Need::VirtualMachines => empty(&mut azure.virtual_machines),
        Need::NatGateways => empty(&mut azure.nat_gateways),
        Need::GatewayServices => empty(&mut azure.gateway_services),
        Need::GatewayLocations => empty(&mut azure.gateway_locations),
    }
}
