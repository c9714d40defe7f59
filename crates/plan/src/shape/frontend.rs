//! Frontend IP configurations.

use crate::ask::Intent;
use crate::claim::address;
use crate::claim::choice;
use crate::claim::contest::{self, Tenancy};
use crate::claim::holder::{self, Address, Held, Place};
use crate::draft::Draft;
use crate::order::moving::{self, Movers};
use crate::own::{name, part};
use crate::standing::frontend::{is_anothers, is_as_asked, is_within, status};
use crate::standing::public_ip;
use crate::verdict::Refusal;
use model::azure::{Allocation, Frontend, FrontendAddress};
use model::policy::BalancerSku;
use model::report::{Until, Wait};
use model::world::{Fact, Need};
use model::{Exposure, Family, ResourceId};
use std::net::IpAddr;
use std::sync::Arc;

/// What a Service's frontend of one family is to be.
pub(crate) enum Wanted {
    /// This one, of the Service's own.
    Own(Frontend),
    /// The one of this name, which another Service or somebody else has made.
    Shared(Arc<str>),
    /// Not yet known.
    Wait(Wait),
    /// Impossible.
    Refuse(Box<Refusal>),
}

/// Works out the frontend of one family on a load balancer.
pub(crate) fn wanted(
    draft: &mut Draft<'_>,
    intent: &Intent,
    family: Family,
    place: &Place<'_>,
    movers: &Movers,
) -> Wanted {
    match intent.exposure {
        Exposure::Public => public(draft, intent, family, place),
        Exposure::Internal => internal(draft, intent, family, place, movers),
    }
}

/// What another Service's frontend with the wanted address means; `None`: nothing, the address is
/// free for a frontend of one's own.
fn tenancy(
    draft: &Draft<'_>,
    place: &Place<'_>,
    intent: &Intent,
    other: &Frontend,
) -> Option<Wanted> {
    match contest::tenancy(draft, place, intent, other) {
        Tenancy::Shared => Some(Wanted::Shared(Arc::clone(&other.name))),
        Tenancy::ReleasePending => {
            let id = place.balancer.id.clone();
            Some(Wanted::Wait(Wait::Resource { id, until: Until::Released }))
        }
        Tenancy::ReleasedBySameWrite => None,
    }
}

fn public(draft: &Draft<'_>, intent: &Intent, family: Family, place: &Place<'_>) -> Wanted {
    let &Place { chosen, balancer, .. } = place;
    let name = name::frontend(intent, family);
    let Some(id) = chosen.get(&(intent.uid.clone(), family)) else {
        return Wanted::Wait(Wait::Reading(Need::PublicIps(intent.public_ip_group.clone())));
    };
    if !public_ip::is_ready(draft, id) {
        return Wanted::Wait(Wait::Resource { id: id.clone(), until: Until::Ready });
    }
    let address = FrontendAddress::Public(id.clone());
    let own = balancer.frontend(&name);
    if own.is_none_or(|f| f.address != address)
        && let Some(other) =
            balancer.frontends_on(id).into_iter().find(|f| !part::is_called(*f, &name))
        && let Some(wanted) = tenancy(draft, place, intent, other)
    {
        return wanted;
    }
    match holder::elsewhere(draft, place, intent, &Address::Public(id.clone())) {
        Some(Held::ReleasePending(id)) => {
            return Wanted::Wait(Wait::Resource { id, until: Until::Released });
        }
        Some(Held::Staying(other)) => {
            return Wanted::Refuse(Box::new(choice::on_another(draft, intent, family, id, &other)));
        }
        None => {}
    }
    Wanted::Own(Frontend {
        name: own.map_or_else(|| Arc::from(name), |f| Arc::clone(&f.name)),
        zones: own.map(|f| f.zones.clone()).unwrap_or_default(),
        address,
        rest: own.map(|f| f.rest.clone()).unwrap_or_default(),
    })
}

fn internal(
    draft: &mut Draft<'_>,
    intent: &Intent,
    family: Family,
    place: &Place<'_>,
    movers: &Movers,
) -> Wanted {
    let balancer = place.balancer;
    let name = name::frontend(intent, family);
    let pinned = intent.pinned.get(&family).copied();
    let own = balancer.frontend(&name);
    let subnet_name = intent.subnet.clone().unwrap_or_else(|| draft.policy.subnet_name.clone());
    let subnet = draft.policy.subnet_id(&subnet_name);
    let other =
        pinned.and_then(|pinned| pinned_by_another(draft, intent, place, (&name, &subnet), pinned));
    if let Some(wanted) = other.and_then(|other| tenancy(draft, place, intent, other)) {
        return wanted;
    }
    if let Some(own) = own
        && is_as_asked(draft, intent, family, own)
    {
        return Wanted::Own(own.clone());
    }
    let pinned_held = pinned.and_then(|pinned| held(draft, intent, place, pinned));
    if let (Some(pinned), Some(Held::Staying(other))) = (pinned, &pinned_held) {
        let (subnet, other) = (subnet.name(), other.name());
        let what = format!("in subnet {subnet} that is free; load balancer {other} has it");
        return Wanted::Refuse(Box::new(address::unusable(draft, intent, pinned, &what)));
    }
    let prefixes = match draft.world.azure.subnets.get(&subnet) {
        Some(Fact::Known(Some(known))) => {
            if let Some(pinned) = pinned
                && pinned_held.is_none()
                && let Some(what) = address::obstacle(draft, known, pinned, &balancer.id)
            {
                return Wanted::Refuse(Box::new(address::unusable(draft, intent, pinned, &what)));
            }
            known.prefixes.clone()
        }
        Some(Fact::Known(None)) => {
            return Wanted::Refuse(Box::new(address::no_subnet(draft, intent, &subnet_name)));
        }
        Some(Fact::Unreadable(_)) => Vec::new(),
        Some(Fact::Unknown) | None => {
            let need = Need::Subnet(subnet);
            draft.steps.needs.insert(need.clone());
            return Wanted::Wait(Wait::Reading(need));
        }
    };
    let mut address = pinned.or_else(|| had(draft, intent, family, (place, own), &prefixes));
    match address.and_then(|address| held(draft, intent, place, address)) {
        Some(Held::ReleasePending(id)) => {
            return Wanted::Wait(Wait::Resource { id, until: Until::Released });
        }
        // It does not insist on it.
        Some(Held::Staying(_)) => address = None,
        None => {}
    }
    if address.is_none()
        && let Some(to) = mover(draft, intent, family, (place, movers), &subnet, &prefixes)
    {
        return Wanted::Wait(Wait::Resource { id: to, until: Until::Written });
    }
    let allocation = if address.is_some() { Allocation::Static } else { Allocation::Dynamic };
    Wanted::Own(Frontend {
        name: own.map_or_else(|| Arc::from(name), |f| Arc::clone(&f.name)),
        zones: own.map_or_else(|| zones(draft), |f| f.zones.clone()),
        address: FrontendAddress::Private { subnet, family, allocation, address },
        rest: own.map(|f| f.rest.clone()).unwrap_or_default(),
    })
}

/// The private address of the subnet that a Service has, or had last.
fn had(
    draft: &Draft<'_>,
    intent: &Intent,
    family: Family,
    (place, own): (&Place<'_>, Option<&Frontend>),
    prefixes: &[ipnet::IpNet],
) -> Option<IpAddr> {
    let name = name::frontend(intent, family);
    let own = own.and_then(Frontend::private).filter(|a| Family::of(*a) == family);
    let had = own.or_else(|| status(draft, intent, family));
    let had = had.filter(|a| prefixes.iter().any(|p| p.contains(a)));
    // It stood on another Service's frontend, which stays where it is. So does one of its own that
    // had another name, where others stand on it.
    had.filter(|a| {
        let other = Address::Private(*a).find(place.balancer);
        let other = other.filter(|other| !part::is_called(*other, &name));
        let tenancy = other.map(|other| contest::tenancy(draft, place, intent, other));
        !is_anothers(draft, intent, *a) && !matches!(tenancy, Some(Tenancy::Shared))
    })
}

/// The frontend of another name that has the address on which a Service insists.
fn pinned_by_another<'b>(
    draft: &Draft<'_>,
    intent: &Intent,
    place: &Place<'b>,
    (name, subnet): (&str, &ResourceId),
    pinned: IpAddr,
) -> Option<&'b Frontend> {
    let other = Address::Private(pinned).find(place.balancer)?;
    let own = part::is_called(other, name);
    // Its own one of another subnet is left: whether the subnet has the address is looked at later.
    let left = draft.owner_of(&other.name) == Some(&intent.uid) && !is_within(other, subnet);
    (!own && !left).then_some(other)
}

/// The load balancer that another Service's private address is on its way to: who asks for any of
/// the subnet now would get it from Azure.
fn mover(
    draft: &Draft<'_>,
    intent: &Intent,
    family: Family,
    (place, movers): (&Place<'_>, &Movers),
    subnet: &ResourceId,
    prefixes: &[ipnet::IpNet],
) -> Option<ResourceId> {
    let may_get = |address: IpAddr| {
        Family::of(address) == family && prefixes.iter().any(|prefix| prefix.contains(&address))
    };
    let mut movers = movers.get_or_init(|| moving::private(draft, place.chosen)).iter();
    let other = movers.find(|mover| {
        mover.uid != intent.uid
            && mover.may_be_lost(draft, &place.balancer.id)
            && mover.subnet == *subnet
            && may_get(mover.address)
    });
    other.map(|mover| mover.to.clone())
}

/// Another load balancer with a private address.
fn held(draft: &Draft<'_>, intent: &Intent, place: &Place<'_>, address: IpAddr) -> Option<Held> {
    holder::elsewhere(draft, place, intent, &Address::Private(address))
}

/// The zones of a private frontend that is made now.
fn zones(draft: &Draft<'_>) -> Vec<Arc<str>> {
    let zoned = draft.policy.sku != BalancerSku::Basic && draft.policy.edge_zone.is_none();
    let all = draft.world.azure.zones.known().filter(|_| zoned);
    all.cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests;
