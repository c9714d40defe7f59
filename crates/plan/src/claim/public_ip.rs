//! The Service that holds a public IP first: its label and tags are that Service's to say.

use crate::ask::{Intent, PublicIpIntent};
use crate::draft::Draft;
use crate::own;
use crate::own::tags::{each_user, is_name_of};
use model::azure::PublicIp;
use model::{Exposure, Family, Group, ResourceId, ServiceUid};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The first holder of each public IP that Services name: the first of them by name.
pub(crate) struct FirstHolders(BTreeMap<ResourceId, ServiceUid>);

impl FirstHolders {
    pub fn of(draft: &Draft<'_>) -> Self {
        let mut holders = Self(BTreeMap::new());
        let mut known = Known::default();
        // By name, as frontends are made.
        let cases = draft.by_name.values().map(|uid| &draft.cases[uid]);
        for intent in cases.filter_map(|case| case.intent()) {
            if intent.exposure != Exposure::Public {
                continue;
            }
            for id in known.named_by(draft, intent) {
                holders.0.entry(id).or_insert_with(|| intent.uid.clone());
            }
        }
        holders
    }

    /// Whether a Service holds a public IP first: what stands in Azure decides, then for whom the
    /// public IP was made, then names.
    pub fn is_first(
        &self,
        draft: &Draft<'_>,
        intent: &Intent,
        family: Family,
        ip: &PublicIp,
    ) -> bool {
        let made = matches!(intent.public_ips.get(&family), Some(PublicIpIntent::Managed { .. }));
        let by_tag = each_user(ip).next().map(|user| is_name_of(user, &intent.name));
        match standing(draft, &ip.id) {
            Some(Some(uid)) => *uid == intent.uid,
            Some(None) => by_tag == Some(true),
            None => {
                let named = || self.0.get(&ip.id) == Some(&intent.uid);
                made || by_tag.unwrap_or_else(named)
            }
        }
    }
}

/// Who holds a public IP by the frontend that stands on it; `Some(None)`: one that is no Service's.
fn standing<'d>(draft: &'d Draft<'_>, ip: &ResourceId) -> Option<Option<&'d ServiceUid>> {
    let on = draft.views().filter_map(|view| Some((view, *view.frontends_on(ip).last()?)));
    let (balancer, frontend) = on.last()?;
    let heir = || {
        // Its maker has gone: the first rule that is left says who goes on with it.
        let mut rules = balancer.rules_to(&frontend.name).into_iter();
        let heir = rules.find_map(|rule| draft.owner_of(&rule.name));
        heir.filter(|_| own::is_named_after_one(&frontend.name))
    };
    Some(draft.owner_of(&frontend.name).or_else(heir))
}

/// Public IPs by their addresses, looked up when first asked for.
#[derive(Default)]
pub(crate) struct Known<'w>(BTreeMap<Group, BTreeMap<IpAddr, &'w ResourceId>>);

impl<'w> Known<'w> {
    /// The public IPs that a Service names: those that it may share with others.
    pub fn named_by(
        &mut self,
        draft: &Draft<'w>,
        intent: &Intent,
    ) -> impl Iterator<Item = ResourceId> {
        let group = &intent.public_ip_group;
        intent.public_ips.iter().filter_map(move |(family, wish)| match wish {
            PublicIpIntent::Managed { .. } => None,
            PublicIpIntent::Named(name) => Some(draft.policy.public_ip_id(group, name)),
            PublicIpIntent::Pinned => {
                let address = intent.pinned.get(family)?;
                let all = self.0.entry(group.clone()).or_insert_with(|| addresses(draft, group));
                all.get(address).map(|id| (*id).clone())
            }
        })
    }
}

fn addresses<'w>(draft: &Draft<'w>, group: &Group) -> BTreeMap<IpAddr, &'w ResourceId> {
    let all = draft.public_ips(group).into_iter().flat_map(BTreeMap::values);
    all.filter_map(|ip| Some((ip.address?, &ip.id))).collect()
}
