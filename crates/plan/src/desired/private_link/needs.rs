//! Which Private Link Services have to be read.

use super::{CREATE, GROUP};
use crate::annotation::PREFIX;
use crate::draft::Draft;
use model::Group;
use model::azure::{FrontendAddress, LoadBalancer};
use model::policy::BalancerSku;
use model::world::{Fact, Need};
use std::collections::{BTreeMap, BTreeSet};

/// What has to be read: nothing where no frontend of ours can have a Private Link Service.
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
    if may_have_some(draft) {
        groups.insert(draft.policy.private_link_group.clone());
    }
    let is_unread = |group: &Group| matches!(facts.get(group), None | Some(Fact::Unknown));
    groups.into_iter().filter(is_unread).map(Need::PrivateLinks).collect()
}

/// Whether a Private Link Service may stand before a frontend although no Service asks for one
/// any more: its annotation went while nobody looked. One of another resource group than the
/// config's is not found that way.
fn may_have_some(draft: &Draft<'_>) -> bool {
    let standard = draft.policy.sku == BalancerSku::Standard;
    let mut balancers = draft.balancers().into_iter().flat_map(BTreeMap::values);
    standard
        && balancers.any(|balancer| {
            balancer.frontends.iter().any(|f| {
                let ours = draft.owner_of(&f.name).is_some();
                let internal = matches!(&f.address, FrontendAddress::Private { .. });
                ours && (internal || has_translated_rule(balancer, &f.name))
            })
        })
}

/// Whether a rule without floating IP leads from a frontend: only then, or where it is internal,
/// can a Private Link Service stand before it.
fn has_translated_rule(balancer: &LoadBalancer, frontend: &str) -> bool {
    let id = balancer.id.child("frontendIPConfigurations", frontend);
    let mut own = balancer.rules.iter().filter(|r| r.frontend.as_ref() == Some(&id));
    own.any(|r| r.floating_ip != Some(true))
}

/// Where a Service that is not planned as it asks may have one.
fn annotated(draft: &Draft<'_>, service: &model::kubernetes::Service) -> Option<Group> {
    let of = |key: &str| service.annotations.get(format!("{PREFIX}{key}").as_str());
    of(CREATE).filter(|value| value.trim().eq_ignore_ascii_case("true"))?;
    let group = of(GROUP).map(|name| name.trim()).filter(|name| !name.is_empty());
    Some(group.map_or_else(|| draft.policy.private_link_group.clone(), Group::new))
}
