//! Which resource groups are read for Private Link Services.

use crate::ask::reader::is_group_name;
use crate::claim::private_link::{CREATE, GROUP};
use crate::draft::Draft;
use crate::own::name::base_of;
use model::Group;
use model::azure::{Frontend, FrontendAddress, Rule};
use model::kubernetes::{SERVICE_FINALIZER, Service};
use model::policy::BalancerSku;
use model::world::{Fact, Need};

/// What has to be read before anything is planned: the cloud config's group, where a frontend of
/// ours can have a Private Link Service. It may have kept it from before this process started. For
/// groups that Services name these alone wait.
pub(crate) fn needs(draft: &Draft<'_>) -> Option<Need> {
    let group = &draft.policy.private_link_group;
    let fact = draft.world.azure.private_links.get(group);
    let unread = matches!(fact, None | Some(Fact::Unknown));
    (unread && may_be_linked(draft)).then(|| Need::PrivateLinks(group.clone()))
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
            let is_own = |name: &str| draft.owner_of(name).is_some() || base_of(name).is_some();
            let can = |f: &Frontend| match f.address {
                FrontendAddress::Private { .. } => true,
                _ => !floats(&f.name),
            };
            balancer.frontends.iter().any(|f| can(f) && is_own(&f.name))
        })
}

/// Where a Service may have one, whether it is planned as it asks or not. What is no name of a
/// resource group is nowhere: the text becomes a part of the path that is read.
pub(crate) fn named_group(draft: &Draft<'_>, service: &Service) -> Option<Group> {
    if !service.annotation(CREATE)?.trim().eq_ignore_ascii_case("true") {
        return None;
    }
    let name = service.annotation(GROUP).map(str::trim).filter(|name| !name.is_empty());
    match name {
        Some(name) => is_group_name(name).then(|| Group::new(name)),
        None => Some(draft.policy.private_link_group.clone()),
    }
}

/// The same, where that has not been read. What the cloud config does not allow is not read for a
/// Service that is refused.
pub(crate) fn unread_group(draft: &Draft<'_>, service: &Service) -> Option<Group> {
    let claimed = service.has_finalizer(SERVICE_FINALIZER);
    let group = named_group(draft, service).filter(|_| claimed)?;
    let (own, listed) = (&draft.policy.private_link_group, &draft.policy.tenancy.groups);
    let allowed = group == *own || listed.as_ref().is_none_or(|listed| listed.contains(&group));
    let fact = draft.world.azure.private_links.get(&group);
    (allowed && matches!(fact, None | Some(Fact::Unknown))).then_some(group)
}
