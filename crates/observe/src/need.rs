//! How each of planning's needs is read from Azure.

use arm::path::{Action, Collection, Contract};
use arm::{Method, Request, Target, path};
use model::Policy;
use model::world::Need;

/// The request for the first page of a need.
#[must_use]
pub fn request(need: &Need, policy: &Policy, correlation: &str) -> Request {
    Request {
        method: Method::Get,
        target: Target::Path(need_path(need, policy)),
        condition: arm::Condition::None,
        body: None,
        correlation: correlation.to_owned(),
    }
}

fn need_path(need: &Need, policy: &Policy) -> String {
    let contract = Contract::for_policy(policy);
    let network =
        |group, kind| path::list_path(contract, &policy.network_subscription, group, kind);
    let compute = |kind| path::list_path(contract, &policy.subscription, &policy.group, kind);
    let gateway = |action| path::action_path(contract, &policy.gateway_id(), action);
    match need {
        Need::Balancers => network(&policy.balancer_group, Collection::LoadBalancers),
        Need::PublicIps(group) => network(group, Collection::PublicIps),
        Need::SecurityGroup => path::resource_path(contract, &policy.security_group_id()),
        Need::Subnet(id) => path::resource_path(contract, id),
        Need::Zones => path::zones_path(&policy.subscription),
        Need::PrivateLinks(group) => network(group, Collection::PrivateLinkServices),
        Need::ScaleSets => compute(Collection::ScaleSets),
        Need::ScaleSetVms(set) => path::scale_set_vms_path(set),
        Need::NetworkInterfaces => compute(Collection::NetworkInterfaces),
        Need::VirtualMachines => compute(Collection::VirtualMachines),
        Need::NatGateways => network(&policy.group, Collection::NatGateways),
        Need::GatewayServices => gateway(Action::Services),
        Need::GatewayLocations => gateway(Action::AddressLocations),
    }
}
