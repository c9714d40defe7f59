//! Which resource groups are read for Private Link Services.

use crate::claim::private_link::{CREATE, GROUP};
use crate::draft::Draft;
use crate::own::name::base_of;
use model::Group;
use model::azure::{Frontend, FrontendAddress, Rule};
use model::policy::BalancerSku;
use model::world::{Fact, Need};
use std::collections::BTreeSet;

/// What has to be read: nothing where no Service asks for a Private Link Service and no frontend
/// of ours can have one. One that can may have kept it from before this process started.
pub(crate) fn needs(draft: &Draft<'_>) -> BTreeSet<Need> {
    let facts = &draft.world.azure.private_links;
    let mut groups: BTreeSet<Group> = facts.keys().cloned().collect();
    for case in draft.cases.values() {
        if let Some(link) = case.intent().and_then(|i| i.private_link.as_ref()) {
            groups.insert(link.group.clone());
        } else if let Some(group) = annotated(draft, case.service) {
            groups.insert(group);
        }
    }
    if may_be_linked(draft) {
        groups.insert(draft.policy.private_link_group.clone());
    }
    let is_unread = |group: &Group| matches!(facts.get(group), None | Some(Fact::Unknown));
    groups.into_iter().filter(is_unread).map(Need::PrivateLinks).collect()
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

/// Where a Service that is not planned as it asks may have one.
fn annotated(draft: &Draft<'_>, service: &model::kubernetes::Service) -> Option<Group> {
    if !service.annotation(CREATE)?.trim().eq_ignore_ascii_case("true") {
        return None;
    }
    let group = service.annotation(GROUP).map(str::trim).filter(|name| !name.is_empty());
    Some(group.map_or_else(|| draft.policy.private_link_group.clone(), Group::new))
}
