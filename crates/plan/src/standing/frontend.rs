//! The address that a frontend has, and whether it is the one that a Service names or shows.

use crate::ask::{Intent, PublicIpIntent};
use crate::draft::Draft;
use crate::own::name;
use model::azure::{Frontend, FrontendAddress};
use model::{Family, ResourceId};
use std::net::IpAddr;

/// Whether a frontend is a private one of a family, in the subnet and with the address that a
/// Service asks for. One that is needs no look at the subnet. The frontend of a Service's only
/// family has the name that IPv4's has beside it: the name does not tell the family.
pub(crate) fn is_as_asked(
    draft: &Draft<'_>,
    intent: &Intent,
    family: Family,
    frontend: &Frontend,
) -> bool {
    let FrontendAddress::Private { subnet, address, family: of, .. } = &frontend.address else {
        return false;
    };
    let named = intent.subnet.as_ref().map(|name| draft.policy.subnet_id(name));
    let pinned = intent.pinned.get(&family);
    *of == family
        && named.is_none_or(|named| named == *subnet)
        && pinned.is_none_or(|pinned| Some(*pinned) == *address)
}

/// Whether a frontend has the address, or the public IP, that a Service names.
pub(crate) fn is_asked_for(
    draft: &Draft<'_>,
    intent: &Intent,
    family: Family,
    frontend: &Frontend,
) -> bool {
    let pinned = || {
        let pinned = intent.pinned.get(&family);
        pinned.is_some() && address_of(draft, frontend).as_ref() == pinned
    };
    match (intent.public_ips.get(&family), &frontend.address) {
        (Some(PublicIpIntent::Named(name)), FrontendAddress::Public(id)) => {
            *id == draft.policy.public_ip_id(&intent.public_ip_group, name)
        }
        (Some(PublicIpIntent::Pinned), FrontendAddress::Public(_)) => pinned(),
        (None, FrontendAddress::Private { .. }) => pinned(),
        _ => false,
    }
}

/// Whether a frontend is a private one of a subnet.
pub(crate) fn is_within(frontend: &Frontend, subnet: &ResourceId) -> bool {
    matches!(&frontend.address, FrontendAddress::Private { subnet: of, .. } if of == subnet)
}

/// The family of a frontend's address; `None` where it stands on nothing that is known.
pub(crate) fn family(draft: &Draft<'_>, frontend: &Frontend) -> Option<Family> {
    match &frontend.address {
        FrontendAddress::Public(id) => draft.public_ip(id).map(|ip| ip.family),
        FrontendAddress::Private { family, .. } => Some(*family),
        FrontendAddress::Other => None,
    }
}

/// The address of a family in a Service's status.
pub(crate) fn status(draft: &Draft<'_>, intent: &Intent, family: Family) -> Option<IpAddr> {
    draft.cases.get(&intent.uid)?.service.told().find(|a| Family::of(*a) == family)
}

/// Whether a private address is that of a frontend which has another name than this Service's.
pub(crate) fn is_anothers(draft: &Draft<'_>, intent: &Intent, address: IpAddr) -> bool {
    let frontends = draft.each_balancer().flat_map(|b| &b.frontends);
    let mut frontends = frontends.filter(|f| f.private() == Some(address));
    frontends.any(|f| !name::is_of(&f.name, &intent.base))
}

/// Whether a Service's status tells a frontend's address.
pub(crate) fn is_told(draft: &Draft<'_>, intent: &Intent, frontend: &Frontend) -> bool {
    let address = address_of(draft, frontend);
    address.is_some_and(|a| status(draft, intent, Family::of(a)) == Some(a))
}

/// The address that clients of a frontend use, where Azure has allocated it.
pub(crate) fn address_of(draft: &Draft<'_>, frontend: &Frontend) -> Option<IpAddr> {
    match &frontend.address {
        FrontendAddress::Public(id) => draft.public_ip(id)?.address,
        FrontendAddress::Private { address, .. } => *address,
        FrontendAddress::Other => None,
    }
}
