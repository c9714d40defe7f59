//! Addresses between two load balancers: let go by one, not yet on the other.

use crate::ask::Intent;
use crate::claim::choice::Chosen;
use crate::claim::holder::{self, Address, Held};
use crate::claim::placement::Placement;
use crate::draft::Draft;
use crate::own::{self, name};
use crate::standing::frontend;
use model::{Exposure, Family, ResourceId, ServiceUid};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// A private address that a Service keeps, on its way to another load balancer. Between the two
/// nobody has it, and Azure gives it to the next frontend that asks for any.
pub(crate) struct Mover {
    /// Whose it is.
    pub uid: ServiceUid,
    pub address: IpAddr,
    pub subnet: ResourceId,
    /// The load balancer that it is to be on.
    pub to: ResourceId,
    /// The load balancer that has yet to release it: it comes with a later write than the next one.
    pub from: Option<ResourceId>,
}

impl Mover {
    /// Whether Azure may give the address to a frontend that asks for any on a load balancer now.
    /// Where one keeps it because its write is refused again and again, none on another gets it.
    pub fn may_be_lost(&self, draft: &Draft<'_>, here: &ResourceId) -> bool {
        match &self.from {
            Some(from) => from == here || !draft.is_failing(from),
            None => self.to != *here,
        }
    }
}

/// Private addresses on the way, once they are asked for.
pub(crate) type Movers = OnceCell<Vec<Mover>>;

/// Private addresses on the way. No newcomer waits for an address whose load balancer Azure
/// refuses again and again. An address that stays where it is, for other Services on its frontend,
/// is not on the way: the Service that showed it gets another, and may have to wait for these
/// itself.
pub(crate) fn private(draft: &Draft<'_>, chosen: &Chosen) -> Vec<Mover> {
    let mut standing: BTreeMap<&ResourceId, BTreeSet<IpAddr>> = BTreeMap::new();
    for balancer in draft.each_balancer() {
        let addresses = balancer.frontends.iter().filter_map(|f| f.private());
        standing.entry(&balancer.id).or_default().extend(addresses);
    }
    let mut movers = Vec::new();
    for (uid, case) in &draft.cases {
        let (Some(intent), Some(to)) = (case.intent(), &case.balancer) else { continue };
        if intent.exposure != Exposure::Internal || case.service.ingress.is_empty() {
            continue;
        }
        let to = draft.policy.balancer_id(to);
        if draft.is_failing(&to) {
            continue;
        }
        let stands = |a: &IpAddr| standing.get(&to).is_some_and(|all| all.contains(a));
        for &family in &intent.families {
            let shown = frontend::status(draft, intent, family).filter(|a| !stands(a));
            if let Some(address) = shown
                && internal(draft, intent, family) == Some(address)
            {
                let at = Address::Private(address);
                let from = match holder::standing(draft, chosen, intent, &to, &at) {
                    Some(Held::Staying(_)) => continue,
                    Some(_) if is_left(draft, intent, family, address) => continue,
                    Some(Held::ReleasePending(from)) => Some(from),
                    None => None,
                };
                let subnet = intent.subnet.as_ref().unwrap_or(&draft.policy.subnet_name);
                let subnet = draft.policy.subnet_id(subnet);
                let (uid, to) = (uid.clone(), to.clone());
                movers.push(Mover { uid, address, subnet, to, from });
            }
        }
    }
    movers
}

/// Whether a Service leaves an address to another one that has the frontend: it does not insist on
/// it.
fn is_left(draft: &Draft<'_>, intent: &Intent, family: Family, address: IpAddr) -> bool {
    !intent.pinned.contains_key(&family) && frontend::is_anothers(draft, intent, address)
}

/// The addresses of a Service that keep their rules and their place in the status although no
/// frontend of its load balancer has them (now): they are on the way to it. `missing` are its
/// families without a frontend.
pub(crate) fn addresses(
    draft: &Draft<'_>,
    placement: &Placement,
    chosen: &Chosen,
    intent: &Intent,
    missing: &[Family],
) -> BTreeMap<Family, IpAddr> {
    let mut coming = coming(draft, placement, chosen, intent, missing);
    let told = draft.cases.get(&intent.uid).map(|case| case.service.told().collect());
    let told: BTreeSet<IpAddr> = told.unwrap_or_default();
    coming.retain(|_, address| told.contains(address));
    coming
}

/// The same, whether its status has them or not: one that wants a load balancer again before all
/// that it had has gone is open at its address, and Kubernetes has emptied its status.
pub(crate) fn coming(
    draft: &Draft<'_>,
    placement: &Placement,
    chosen: &Chosen,
    intent: &Intent,
    missing: &[Family],
) -> BTreeMap<Family, IpAddr> {
    if missing.is_empty() || !placement.balancers.values().any(|s| s.has(&intent.uid)) {
        return BTreeMap::new();
    }
    let address = |family| match intent.exposure {
        Exposure::Public => public(draft, chosen, intent, family),
        Exposure::Internal => {
            internal(draft, intent, family).or_else(|| intent.pinned.get(&family).copied())
        }
    };
    missing.iter().filter_map(|&family| Some((family, address(family)?))).collect()
}

fn public(draft: &Draft<'_>, chosen: &Chosen, intent: &Intent, family: Family) -> Option<IpAddr> {
    draft.public_ip(chosen.get(&(intent.uid.clone(), family))?)?.address
}

/// The address of its frontend on another load balancer, or under another name; the one in its
/// status where it has none anywhere.
fn internal(draft: &Draft<'_>, intent: &Intent, family: Family) -> Option<IpAddr> {
    let expected = name::frontend(intent, family);
    // The name is the other family's where the Service gains or loses one.
    let mut named = draft.views().filter_map(|balancer| balancer.frontend(&expected));
    if let Some(own) = named.find(|f| frontend::family(draft, f) == Some(family)) {
        return own.private();
    }
    let mut own = draft.views().flat_map(|b| b.frontends_of(&intent.base)).peekable();
    if own.peek().is_some() {
        // It is called after its subnet: in the same one the address goes on under another name.
        let subnet = intent.subnet.as_ref().unwrap_or(&draft.policy.subnet_name);
        let subnet = draft.policy.subnet_id(subnet);
        let stays = own.filter(|f| frontend::is_within(f, &subnet)).filter_map(|f| f.private());
        let pinned = intent.pinned.get(&family);
        let mut stays = stays.filter(|a| Family::of(*a) == family);
        return stays.find(|a| pinned.is_none_or(|pinned| pinned == a));
    }
    let address = frontend::status(draft, intent, family)?;
    let mut public = own::public_ips(draft.world).filter_map(|ip| ip.address);
    let pinned = intent.pinned.get(&family).is_none_or(|pinned| *pinned == address);
    (pinned && !public.any(|a| a == address)).then_some(address)
}
