//! Who has an address on a load balancer: it is on one frontend at a time, and those who share it
//! are all where that is.

use super::choice::Chosen;
use super::placement::Assignment;
use crate::ask::Intent;
use crate::draft::{Draft, Stance};
use crate::own::parts::{View, differing};
use crate::own::{self, Owner, name};
use crate::standing::frontend;
use model::azure::{Frontend, FrontendAddress};
use model::plan::{Action, Resource};
use model::report::Wait;
use model::{Exposure, Family, ResourceId, ServiceUid};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Another load balancer that has an address, and what is to become of it there.
pub(crate) enum Held {
    /// It is let go.
    ReleasePending(ResourceId),
    /// Others stay on it.
    Staying(ResourceId),
}

/// What only one frontend can have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Address {
    /// A public IP.
    Public(ResourceId),
    /// An address of a subnet.
    Private(IpAddr),
}

impl Address {
    /// That of a frontend, where it has one.
    pub fn of(frontend: &Frontend) -> Option<Self> {
        match &frontend.address {
            FrontendAddress::Public(id) => Some(Self::Public(id.clone())),
            _ => frontend.private().map(Self::Private),
        }
    }

    /// The frontend of a load balancer that has it.
    pub fn find<'b>(&self, balancer: View<'b>) -> Option<&'b Frontend> {
        match self {
            Self::Public(id) => balancer.frontends_on(id).first().copied(),
            Self::Private(address) => {
                let mut all = balancer.whole().frontends.iter();
                all.find(|f| f.private() == Some(*address))
            }
        }
    }
}

/// Who gets which address on the load balancers that are to be written.
pub(crate) type Drafted = BTreeMap<Address, ResourceId>;

/// A load balancer that is edited, and what decides about its frontends.
pub(crate) struct Place<'a> {
    pub seats: &'a Assignment,
    /// Public IPs of the Services.
    pub chosen: &'a Chosen,
    /// The body as far as it is edited.
    pub balancer: View<'a>,
    /// Addresses on other load balancers that are to be written, once they are asked for.
    pub drafted: &'a OnceCell<Drafted>,
}

/// Looks for an address on load balancers other than the asker's, as they are and as they are
/// drafted.
pub(crate) fn elsewhere(
    draft: &Draft<'_>,
    place: &Place<'_>,
    asker: &Intent,
    address: &Address,
) -> Option<Held> {
    let here = &place.balancer.id;
    standing(draft, place.chosen, asker, here, address).or_else(|| {
        let drafted = place.drafted.get_or_init(|| drafted(draft, here));
        drafted.get(address).cloned().map(Held::Staying)
    })
}

/// Looks for an address on load balancers other than one, as they are.
pub(crate) fn standing(
    draft: &Draft<'_>,
    chosen: &Chosen,
    asker: &Intent,
    here: &ResourceId,
    address: &Address,
) -> Option<Held> {
    draft.views().filter(|b| b.id != *here).find_map(|balancer| {
        let frontend = address.find(balancer)?;
        let id = balancer.id.clone();
        let stays = is_others(draft, balancer, frontend)
            || keepers(draft, chosen, balancer, frontend)
                .iter()
                .any(|uid| *uid != asker.uid && is_seated(draft, uid, &id));
        Some(if stays { Held::Staying(id) } else { Held::ReleasePending(id) })
    })
}

/// The load balancers but this one.
fn drafted(draft: &Draft<'_>, here: &ResourceId) -> Drafted {
    let mut drafted = Drafted::new();
    for change in draft.steps.changes.values() {
        let Action::Put { before, after: Resource::LoadBalancer(after) } = &change.action else {
            continue;
        };
        if after.id == *here {
            continue;
        }
        // What stands there already is found there.
        let there: &[Frontend] = match before {
            Some(Resource::LoadBalancer(before)) => &before.frontends,
            _ => &[],
        };
        let (_, coming) = differing(there, &after.frontends);
        for address in coming.iter().filter_map(Address::of) {
            drafted.entry(address).or_insert_with(|| after.id.clone());
        }
    }
    drafted
}

/// Whether somebody else made a frontend, or refers to it.
fn is_others(draft: &Draft<'_>, balancer: View<'_>, frontend: &Frontend) -> bool {
    !own::is_named_after_one(&frontend.name)
        || balancer.is_foreign(&frontend.name)
        || balancer
            .rules_to(&frontend.name)
            .iter()
            .any(|rule| draft.whose(&rule.name) == Owner::Foreign)
}

/// Whether a Service is to be on a load balancer, or stays there as it is.
fn is_seated(draft: &Draft<'_>, uid: &ServiceUid, balancer: &ResourceId) -> bool {
    let case = &draft.cases[uid];
    let named = case.balancer.as_ref();
    case.intent().is_none() || named.is_some_and(|name| name::is_one(name, balancer.name()))
}

/// Our Services that want to go on with a frontend that they stand on, as far as their own wishes
/// go. Of one about which something has to be read first nobody knows.
pub(crate) fn keepers(
    draft: &Draft<'_>,
    chosen: &Chosen,
    balancer: View<'_>,
    frontend: &Frontend,
) -> BTreeSet<ServiceUid> {
    let on_it = balancer.rules_to(&frontend.name).into_iter();
    let owner = draft.owner_of(&frontend.name);
    let all = on_it.filter_map(|r| draft.owner_of(&r.name)).chain(owner);
    let keeps = |uid: &&ServiceUid| match &draft.cases[*uid].stance {
        Stance::Frozen(_) => !draft.cases[*uid].waits.iter().any(|w| matches!(w, Wait::Reading(_))),
        Stance::Container(_) => true,
        Stance::Leaving => false,
        Stance::Wanted(intent) => {
            let own = name::frontend_family(intent, &frontend.name);
            let mut families = intent.families.iter();
            own.is_some_and(|family| wants(draft, chosen, intent, family, frontend))
                || families.any(|f| frontend::is_asked_for(draft, intent, *f, frontend))
        }
    };
    all.filter(keeps).cloned().collect()
}

/// Whether a Service wants its own frontend to have the address that it has.
pub(crate) fn wants(
    draft: &Draft<'_>,
    chosen: &Chosen,
    intent: &Intent,
    family: Family,
    own: &Frontend,
) -> bool {
    match (&own.address, intent.exposure) {
        (FrontendAddress::Public(id), Exposure::Public) => {
            let chosen = chosen.get(&(intent.uid.clone(), family));
            chosen.is_none_or(|chosen| chosen == id)
        }
        (FrontendAddress::Private { .. }, Exposure::Internal) => {
            frontend::is_as_asked(draft, intent, family, own)
        }
        _ => true,
    }
}
