//! Frontends that Services have in Azure now, to which rules are to lead.

use crate::ask::Intent;
use crate::claim::placement::Placement;
use crate::draft::Draft;
use crate::own::name;
use crate::own::name::is_of;
use crate::shape::frontend;
use model::Family;
use model::azure::{Frontend, LoadBalancer};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Addresses of a Service's frontends as they are in Azure now.
pub(crate) fn frontends(
    draft: &Draft<'_>,
    placement: &Placement,
    intent: &Intent,
) -> BTreeMap<Family, IpAddr> {
    let standing = of(draft, placement, intent).into_iter();
    standing.map(|(family, at)| (family, at.address)).collect()
}

/// A frontend as it is in Azure now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing<'d> {
    balancer: &'d LoadBalancer,
    pub frontend: &'d Frontend,
    pub address: IpAddr,
    /// The Service that it is named after has its place on this load balancer.
    is_claimed: bool,
}

impl Standing<'_> {
    /// Whether nothing on the frontend is another's than the Service's of this base name.
    pub fn is_alone(&self, base: &str) -> bool {
        let id = self.balancer.id.child("frontendIPConfigurations", &self.frontend.name);
        let mut rules = self.balancer.rules.iter().filter(|r| r.frontend.as_ref() == Some(&id));
        let named = is_of(&self.frontend.name, base);
        (named || !self.is_claimed)
            && rules.all(|rule| is_of(&rule.name, base))
            && !self.balancer.foreign.iter().any(|f| f.frontends.contains(&id))
    }
}

/// A Service's frontends as they are in Azure now, with their addresses.
pub(super) fn of<'d>(
    draft: &'d Draft<'_>,
    placement: &Placement,
    intent: &Intent,
) -> BTreeMap<Family, Standing<'d>> {
    let mut found = BTreeMap::new();
    let uid = &intent.uid;
    let seats = placement.balancers.iter().filter(|(_, s)| s.has(uid));
    for (id, seats) in seats {
        let Some(balancer) = draft.balancers().and_then(|all| all.get(id)) else { continue };
        for &family in &intent.families {
            let own = name::frontend(intent, family);
            let rule = intent.rules.first().map(|r| name::rule(intent, &r.kind, family));
            // A shared frontend has another's name; the Service's own rules lead to it.
            let shared = rule.and_then(|name| {
                let rule = balancer.rules.iter().find(|r| r.name.eq_ignore_ascii_case(&name))?;
                Some(rule.frontend.as_ref()?.name().to_owned())
            });
            let name = shared.unwrap_or(own);
            let mut all = balancer.frontends.iter();
            let named = all.find(|f| f.name.eq_ignore_ascii_case(&name));
            // Without rules nothing but the address says which one it shares.
            let frontend = named.or_else(|| {
                let ruleless = intent.rules.is_empty();
                let mut all = balancer.frontends.iter().filter(|_| ruleless);
                all.find(|f| frontend::is_asked_for(draft, intent, family, f))
            });
            let standing = frontend.and_then(|frontend| {
                let address = frontend::address_of(draft, frontend)?;
                let owner = draft.owner_of(&frontend.name);
                let is_claimed = owner.is_some_and(|owner| seats.has(owner));
                Some(Standing { balancer, frontend, address, is_claimed })
            });
            // By the family of its address: a Service that becomes dual-stack has the address of
            // its only family at the frontend that will be IPv4's, until that is written.
            let Some(standing) = standing else { continue };
            let actual = Family::of(standing.address);
            if actual == family {
                found.insert(family, standing);
            } else {
                found.entry(actual).or_insert(standing);
            }
        }
    }
    found
}
