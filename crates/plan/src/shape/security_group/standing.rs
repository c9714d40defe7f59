//! Frontends that Services have in Azure now, to which rules are to lead.

use crate::ask::Intent;
use crate::claim::choice::Chosen;
use crate::claim::holder::keepers;
use crate::claim::placement::{Assignment, Placement};
use crate::draft::{Draft, Stance};
use crate::own::name;
use crate::own::name::is_of;
use crate::own::parts::View;
use crate::shape::memory::{Held, Memory};
use crate::standing::frontend;
use model::azure::{Frontend, FrontendAddress};
use model::{Family, ServiceUid};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// What Services have in Azure now, looked up once a plan: planning writes nothing.
pub(crate) type Standings<'w> = BTreeMap<ServiceUid, BTreeMap<Family, Standing<'w>>>;

/// The frontends of all Services that get what they ask.
pub(crate) fn all<'w>(
    draft: &Draft<'w>,
    memory: &Memory,
    placement: &Placement,
    chosen: &Chosen,
) -> Standings<'w> {
    let intents = draft.cases.values().filter_map(|case| case.intent());
    let mut all: Standings<'w> =
        intents.map(|intent| (intent.uid.clone(), BTreeMap::new())).collect();
    for (id, seats) in &placement.balancers {
        let Some(balancer) = draft.view(id) else { continue };
        let there = draft.balancers().and_then(|all| all.get(id));
        for uid in &seats.services {
            let stance = draft.cases.get(uid).map(|case| &case.stance);
            let (Some(Stance::Wanted(intent)), Some(found)) = (stance, all.get_mut(uid)) else {
                continue;
            };
            match there.and_then(|there| memory.seated(intent, there)) {
                Some(held) => found.extend(seated(balancer, held)),
                None => find(draft, (balancer, seats), chosen, intent, found),
            }
        }
    }
    all
}

/// A frontend as it is in Azure now.
#[derive(Clone, Debug)]
pub(crate) struct Standing<'d> {
    balancer: View<'d>,
    frontend: &'d Frontend,
    pub address: IpAddr,
    /// The same as text.
    pub text: Arc<str>,
    /// The Service that it is named after, another, stays on it.
    is_claimed: bool,
}

/// The families of a Service of which it has none.
pub(crate) fn missing(intent: &Intent, standing: &BTreeMap<Family, Standing<'_>>) -> Vec<Family> {
    intent.families.iter().copied().filter(|family| !standing.contains_key(family)).collect()
}

impl Standing<'_> {
    /// Whether nothing on the frontend is another's than the Service's of this base name.
    pub fn is_alone(&self, base: &str) -> bool {
        let rules = self.balancer.rules_to(&self.frontend.name);
        !self.is_claimed
            && rules.iter().all(|rule| is_of(&rule.name, base))
            && !self.balancer.is_foreign(&self.frontend.name)
    }
}

/// The frontends of a Service that has all its parts on a load balancer: its own.
fn seated<'w>(balancer: View<'w>, held: &Held) -> impl Iterator<Item = (Family, Standing<'w>)> {
    held.frontends().map(move |(family, at, address, text)| {
        let (frontend, text) = (&balancer.whole().frontends[at], Arc::clone(text));
        (family, Standing { balancer, frontend, address, text, is_claimed: false })
    })
}

/// Finds a Service's frontends on a load balancer as they are in Azure now, with their addresses.
fn find<'w>(
    draft: &Draft<'w>,
    (balancer, seats): (View<'w>, &Assignment),
    chosen: &Chosen,
    intent: &Intent,
    found: &mut BTreeMap<Family, Standing<'w>>,
) {
    for &family in &intent.families {
        // A shared frontend has another's name; the Service's rules lead to it: those that it
        // asks for, else those that it has had until now.
        let wanted = intent.rules.iter().find_map(|r| {
            let rule = balancer.rule(&name::rule(intent, &r.kind, family))?;
            rule.frontend.as_ref()
        });
        let named = match wanted {
            Some(id) => balancer.frontend(id.name()),
            None => former(draft, balancer, intent, family).or_else(|| {
                let own = balancer.frontend(&name::frontend(intent, family))?;
                (!is_left(draft, balancer, chosen, (intent, family), own)).then_some(own)
            }),
        };
        // Without rules nothing but the address says which one it shares.
        let frontend = named.or_else(|| {
            let ruleless = intent.rules.is_empty();
            let mut all = balancer.whole().frontends.iter().filter(|_| ruleless);
            all.find(|f| frontend::is_asked_for(draft, intent, family, f))
        });
        let standing = frontend.and_then(|frontend| {
            let address = frontend::address_of(draft, frontend)?;
            let owner = draft.owner_of(&frontend.name).filter(|owner| **owner != intent.uid);
            let is_claimed = owner.is_some_and(|owner| {
                seats.has(owner) && keepers(draft, chosen, balancer, frontend).contains(owner)
            });
            let text = text(draft, intent, address);
            Some(Standing { balancer, frontend, address, text, is_claimed })
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

/// An address as text: that of the Service's status, which most have. IPv4 has one text only.
fn text(draft: &Draft<'_>, intent: &Intent, address: IpAddr) -> Arc<str> {
    let case = draft.cases.get(&intent.uid).filter(|_| address.is_ipv4());
    let mut told = case.into_iter().flat_map(|case| &case.service.ingress);
    let is_it = |ip: &&Arc<str>| ip.parse::<IpAddr>().is_ok_and(|told| told == address);
    let same = told.find_map(|ingress| ingress.ip.as_ref().filter(is_it));
    same.cloned().unwrap_or_else(|| Arc::from(address.to_string()))
}

/// Whether a frontend that a Service has given its name serves only others any more. On a public IP
/// that they share it stays for them when the Service goes to another load balancer, and goes on
/// being called after it. A Service that comes back with another public IP has no address there: it
/// keeps its present address until the new one stands.
fn is_left(
    draft: &Draft<'_>,
    balancer: View<'_>,
    chosen: &Chosen,
    (intent, family): (&Intent, Family),
    own: &Frontend,
) -> bool {
    let FrontendAddress::Public(id) = &own.address else { return false };
    let rules = balancer.rules_to(&own.name);
    !rules.is_empty()
        && !rules.iter().any(|rule| is_of(&rule.name, &intent.base))
        && chosen.get(&(intent.uid.clone(), family)) != Some(id)
        && !frontend::is_told(draft, intent, own)
}

/// The frontend of a family that a Service's rules lead to, whatever they are.
fn former<'w>(
    draft: &Draft<'w>,
    balancer: View<'w>,
    intent: &Intent,
    family: Family,
) -> Option<&'w Frontend> {
    let is_of = |f: &&Frontend| frontend::address_of(draft, f).map(Family::of) == Some(family);
    balancer.led_by(&intent.base).into_iter().find(is_of)
}
