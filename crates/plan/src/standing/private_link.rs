//! Private Link Services that stand, and the resource groups in which they are read.

use crate::ask::private_link::{CREATE, GROUP};
use crate::ask::reader::is_group_name;
use crate::draft::Draft;
use crate::own::{self, name};
use model::azure::{
    ConnectionState, Frontend, FrontendAddress, PrivateEndpointConnection, PrivateLinkService, Rule,
};
use model::kubernetes::{SERVICE_FINALIZER, Service};
use model::policy::BalancerSku;
use model::world::{Fact, Need};
use model::{Group, Policy, ResourceId, World};
use std::sync::Arc;

/// All Private Link Services that are read.
pub(crate) fn known<'w>(
    draft: &Draft<'w>,
) -> impl Iterator<Item = &'w Arc<PrivateLinkService>> + use<'w> {
    draft.world.azure.private_links.values().flat_map(Fact::each)
}

/// One that stands before a load balancer, as far as they are read.
pub(crate) fn before<'w>(
    draft: &Draft<'w>,
    balancer: &ResourceId,
) -> Option<&'w Arc<PrivateLinkService>> {
    let on = |f: &ResourceId| f.parent().as_ref() == Some(balancer);
    known(draft).find(|link| link.frontends.iter().any(on))
}

/// The private endpoints that are connected to one.
pub(crate) fn connected(
    link: &PrivateLinkService,
) -> impl Iterator<Item = &PrivateEndpointConnection> {
    link.connections.iter().filter(|c| c.state == ConnectionState::Connected)
}

/// Whether one may stand before a load balancer that a Service there has in a resource group which
/// has not been read.
pub(crate) fn may_be_before(draft: &Draft<'_>, balancer: &ResourceId) -> bool {
    unread_beside(draft, balancer).is_some()
}

/// The resource group of such a Service, which has to be read.
pub(crate) fn unread_beside(draft: &Draft<'_>, balancer: &ResourceId) -> Option<Need> {
    let balancer = draft.view(balancer)?;
    let group = draft.cases.values().find_map(|case| {
        let is_there = balancer.count_of(name::base_number(&case.base)) != (0, 0);
        if is_there { unread_group(draft, case.service) } else { None }
    })?;
    Some(Need::PrivateLinks(group))
}

/// What has to be read before anything is planned: the cloud config's group, where a frontend of
/// ours can have a Private Link Service. It may have kept it from before this process started. For
/// groups that Services name these alone wait.
pub(crate) fn needs(draft: &Draft<'_>) -> Option<Need> {
    let need = Need::PrivateLinks(draft.policy.private_link_group.clone());
    (draft.world.azure.is_unread(&need) && may_be_linked(draft)).then_some(need)
}

/// Whether a frontend of ours is internal, or has a rule without floating IP.
fn may_be_linked(draft: &Draft<'_>) -> bool {
    let standard = draft.policy.sku != BalancerSku::Basic;
    standard
        && draft.views().any(|balancer| {
            let float = |r: &Rule| r.floating_ip == Some(true);
            let all_float = balancer.rules.iter().all(float);
            let floats = |name: &str| all_float || balancer.rules_to(name).into_iter().all(float);
            // A Service that vanished left its frontend, and what stands on it.
            let can = |f: &Frontend| match f.address {
                FrontendAddress::Private { .. } => true,
                _ => !floats(&f.name),
            };
            balancer.frontends.iter().any(|f| can(f) && own::is_named_after_one(&f.name))
        })
}

/// Where a Service may have one, whether it is planned as it asks or not. What is no name of a
/// resource group is nowhere: the text becomes a part of the path that is read.
pub(crate) fn named_group(policy: &Policy, service: &Service) -> Option<Group> {
    if !service.annotation(CREATE)?.trim().eq_ignore_ascii_case("true") {
        return None;
    }
    let name = service.annotation(GROUP).map(str::trim).filter(|name| !name.is_empty());
    match name {
        Some(name) => is_group_name(name).then(|| Group::new(name)),
        None => Some(policy.private_link_group.clone()),
    }
}

/// The same, where that has not been read. What the cloud config does not allow is not read for a
/// Service that is refused.
pub(crate) fn unread_group(draft: &Draft<'_>, service: &Service) -> Option<Group> {
    let claimed = service.has_finalizer(SERVICE_FINALIZER);
    unread_of(draft.world, draft.policy, service).filter(|_| claimed)
}

/// The same, whether the Service carries our finalizer or not.
pub(crate) fn unread_of(world: &World, policy: &Policy, service: &Service) -> Option<Group> {
    let group = named_group(policy, service)?;
    let (own, listed) = (&policy.private_link_group, &policy.tenancy.groups);
    let allowed = group == *own || listed.as_ref().is_none_or(|listed| listed.contains(&group));
    let unread = || world.azure.is_unread(&Need::PrivateLinks(group.clone()));
    (allowed && unread()).then_some(group)
}
