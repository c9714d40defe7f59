//! Addresses that Services of several namespaces name.
//!
//! # Guarantees
//! - Within a namespace Services share an address, as with the Go cloud provider.
//! - The first holder of an address says by an annotation which other namespaces may share it,
//!   unless the cloud config allows it for all, or for none.
//! - Who shares an address keeps it, whatever is said later.
//! - A Private Link Service stands before a frontend of another namespace with the same consent.
//!
//! The first holder is the Service after which the frontend with the address is named or, where
//! that one has gone, the first that rules lead there for. Before there is a frontend, it is the
//! Service for which the public IP was made, then one whose status tells the address, then the
//! first by name.
//!
//! A public IP that was made for Services is theirs until it is gone: who waits for it in another
//! namespace does not get it from a Service that gives it up, nor by what a status tells.

use super::Refusal;
use super::holder::Address;
use super::public_ip::Known;
use crate::ask::annotation::{self, SHARE};
use crate::ask::{Intent, PublicIpIntent, pinned, public_ip};
use crate::draft::{Case, Draft, Stance};
use crate::own::{Whose, name, tags};
use model::kubernetes::Service;
use model::policy::Sharing;
use model::report::Finding;
use model::world::Fact;
use model::{Exposure, Family, ResourceId, ServiceName, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Frontends with one address, as they stand.
#[derive(Default)]
struct Standing {
    /// Services of the frontends' names, then those whose rules lead there.
    on: Vec<ServiceUid>,
    frontends: BTreeSet<ResourceId>,
}

/// Who holds an address first.
struct Holder<'d> {
    name: ServiceName,
    /// `None`: nothing is left of it but its name on the public IP.
    service: Option<&'d Service>,
}

impl<'d> Holder<'d> {
    fn of(service: &'d Service) -> Self {
        Self { name: service.name.clone(), service: Some(service) }
    }
}

/// Addresses that Services name, and who has them.
struct Addresses {
    standing: BTreeMap<Address, Standing>,
    /// Who names each, by name.
    named: BTreeMap<Address, Vec<ServiceUid>>,
}

/// Refuses Services that share what the first holder does not let them share.
pub(super) fn settle(draft: &mut Draft<'_>) {
    if draft.policy.tenancy.sharing == Sharing::All {
        return;
    }
    let refused = refused(draft);
    refused.into_iter().for_each(|(uid, finding)| draft.refuse(&uid, Refusal::new(finding)));
}

fn refused(draft: &Draft<'_>) -> Vec<(ServiceUid, Finding)> {
    let addresses = Addresses::of(draft);
    let mut consents = Consents::default();
    let mut refused = Vec::new();
    for (address, askers) in &addresses.named {
        for uid in askers {
            let case = &draft.cases[uid];
            let Some(intent) = case.intent() else { continue };
            let finding = addresses.finding(draft, case, intent, address, &mut consents);
            refused.extend(finding.map(|finding| (uid.clone(), finding)));
        }
    }
    refused
}

/// The namespaces that each holder lets share its addresses.
///
/// # Guarantees
/// A holder's list is read once, however many Services ask for its addresses.
#[derive(Default)]
struct Consents<'d>(BTreeMap<&'d ServiceUid, BTreeSet<&'d str>>);

impl<'d> Consents<'d> {
    /// Whether a Service lets a namespace share its addresses.
    fn lets(&mut self, holder: &'d Service, namespace: &str) -> bool {
        let named = self.0.entry(&holder.uid).or_insert_with(|| {
            let names = holder.annotations.get(SHARE).map_or("", |text| text);
            names.split(',').map(str::trim).collect()
        });
        named.contains("*") || named.contains(namespace)
    }
}

impl Addresses {
    fn of(draft: &Draft<'_>) -> Self {
        // By name, as frontends are made.
        let mut named: BTreeMap<Address, Vec<ServiceUid>> = BTreeMap::new();
        let mut known = Known::default();
        for uid in draft.by_name.values() {
            let Some(intent) = draft.cases[uid].intent() else { continue };
            for address in named_by(draft, intent, &mut known) {
                named.entry(address).or_default().push(uid.clone());
            }
        }
        let mut standing: BTreeMap<Address, Standing> = BTreeMap::new();
        for balancer in draft.views() {
            for frontend in &balancer.frontends {
                let address = Address::of(frontend).filter(|address| named.contains_key(address));
                let Some(address) = address else { continue };
                let id = balancer.id.child("frontendIPConfigurations", &frontend.name);
                let leads = balancer.rules_to(&frontend.name).into_iter().map(|rule| &rule.name);
                let names = std::iter::once(&frontend.name).chain(leads);
                let of = standing.entry(address).or_default();
                of.on.extend(names.filter_map(|name| draft.owner_of(name)).cloned());
                of.frontends.insert(id);
            }
        }
        Self { standing, named }
    }

    /// Why a Service may not have an address that it names, or no link before it.
    fn finding<'d>(
        &self,
        draft: &'d Draft<'_>,
        case: &Case<'_>,
        intent: &Intent,
        address: &Address,
        consents: &mut Consents<'d>,
    ) -> Option<Finding> {
        let own = &intent.name.namespace;
        let holder = self.holder(draft, own, address);
        let holder = holder.filter(|holder| holder.name.namespace != *own)?;
        let consents = holder.service.is_some_and(|holder| consents.lets(holder, own));
        if draft.policy.tenancy.sharing == Sharing::Consent && consents {
            return None;
        }
        let cure = match draft.policy.tenancy.sharing {
            Sharing::None => "tenancy: strict of the cloud config allows no sharing".to_owned(),
            Sharing::Consent | Sharing::All => {
                format!("or have that Service name {own:?} in {SHARE}")
            }
        };
        let held = format!("is held by Service {} of another namespace", holder.name);
        if !self.is_on(draft, case, address) {
            let (key, value) = words(case.service, intent, address);
            let message = format!("{{value}} {held}; use another address, {cure}");
            return Some(Finding::refusal("AddressNotShared", &key, &value, &message));
        }
        intent.private_link.as_ref()?;
        let message = format!("the frontend {held}; use a frontend of the Service's own, {cure}");
        let key = annotation::full("azure-pls-create");
        let linked = self.is_linked(draft, &intent.name, address);
        (!linked).then(|| Finding::refusal("PrivateLinkNotShared", &key, "", &message))
    }

    /// The Service that holds an address first, seen from a namespace.
    fn holder<'d>(&self, draft: &'d Draft<'_>, own: &str, address: &Address) -> Option<Holder<'d>> {
        let standing = self.standing.get(address).into_iter().flat_map(|standing| &standing.on);
        let standing = standing.filter(|uid| goes_on(draft, &draft.cases[*uid], address));
        let made = made_for(draft, address);
        let made = made.filter(|uid| goes_on(draft, &draft.cases[*uid], address));
        if let Some(uid) = standing.chain(made).next() {
            return Some(Holder::of(draft.cases[uid].service));
        }
        let users = users(draft, address);
        if let Some(first) = users.first() {
            // Its clients know the address and its label: it stays in the namespace, or goes.
            let theirs = users.iter().all(|user| *user.namespace != *own);
            let service = draft.by_name.get(first).map(|uid| draft.cases[uid].service);
            return theirs.then(|| Holder { name: first.clone(), service });
        }
        let named = self.named.get(address).into_iter().flatten();
        let told = named.clone().filter(|uid| is_told(draft, draft.cases[*uid].service, address));
        let uid = told.chain(named).next()?;
        Some(Holder::of(draft.cases[uid].service))
    }

    /// Whether a Service has an address already, in Azure or by its status. Who shares a public IP
    /// of ours is on its tag: a status may tell an additional address of before that was made.
    fn is_on(&self, draft: &Draft<'_>, case: &Case<'_>, address: &Address) -> bool {
        let standing = self.standing.get(address);
        let users = users(draft, address);
        standing.is_some_and(|standing| standing.on.contains(&case.service.uid))
            || (is_told(draft, case.service, address)
                && (users.is_empty() || users.contains(&case.service.name)))
    }

    /// Whether a Private Link Service of a Service stands before a frontend with an address.
    fn is_linked(&self, draft: &Draft<'_>, name: &ServiceName, address: &Address) -> bool {
        let Some(standing) = self.standing.get(address) else { return false };
        draft.world.azure.private_links.values().flat_map(Fact::each).any(|link| {
            tags::owner(link).is_some_and(|owner| tags::is_name_of(owner, name))
                && link.frontends.iter().any(|frontend| standing.frontends.contains(frontend))
        })
    }
}

/// The addresses that a Service names: those of Services that it may share one with.
fn named_by<'w>(draft: &Draft<'w>, intent: &Intent, known: &mut Known<'w>) -> Vec<Address> {
    match intent.exposure {
        Exposure::Internal => intent.pinned.values().copied().map(Address::Private).collect(),
        Exposure::Public => known.named_by(draft, intent).map(Address::Public).collect(),
    }
}

/// Whether a Service that an address is of goes on with it.
fn goes_on(draft: &Draft<'_>, case: &Case<'_>, address: &Address) -> bool {
    let intent = match &case.stance {
        Stance::Leaving => return false,
        Stance::Frozen(_) | Stance::Container(_) => return true,
        Stance::Wanted(intent) => intent,
    };
    match (address, intent.exposure) {
        (Address::Private(address), Exposure::Internal) => {
            let pinned = intent.pinned.get(&Family::of(*address));
            pinned.is_none_or(|pinned| pinned == address)
        }
        (Address::Public(id), Exposure::Public) => {
            intent.public_ips.iter().any(|(family, wish)| {
                let group = &intent.public_ip_group;
                let name = match wish {
                    PublicIpIntent::Managed { prefix } => {
                        name::public_ip(draft.policy, intent, prefix.as_ref(), *family)
                    }
                    PublicIpIntent::Named(name) => name.to_string(),
                    PublicIpIntent::Pinned => {
                        let pinned = intent.pinned.get(family);
                        return pinned.is_some_and(|a| of_public_ip(draft, id) == Some(*a));
                    }
                };
                draft.policy.public_ip_id(group, &name) == *id
            })
        }
        _ => false,
    }
}

/// The Service for which a public IP was made.
fn made_for<'d>(draft: &'d Draft<'_>, address: &Address) -> Option<&'d ServiceUid> {
    let Address::Public(id) = address else { return None };
    draft.by_user(tags::users(draft.public_ip(id)?).first()?)
}

/// The Services that a public IP of ours was made for, and those that share it with them.
fn users(draft: &Draft<'_>, address: &Address) -> Vec<ServiceName> {
    let Address::Public(id) = address else { return Vec::new() };
    let ip = draft.public_ip(id).filter(|ip| draft.own.public_ip(ip) == Whose::Ours);
    ip.into_iter().flat_map(|ip| tags::services(ip)).collect()
}

/// Whether a Service's status tells an address.
fn is_told(draft: &Draft<'_>, service: &Service, address: &Address) -> bool {
    let address = match address {
        Address::Public(id) => of_public_ip(draft, id),
        Address::Private(address) => Some(*address),
    };
    address.is_some_and(|address| service.told().any(|told| told == address))
}

fn of_public_ip(draft: &Draft<'_>, id: &ResourceId) -> Option<IpAddr> {
    draft.public_ip(id)?.address
}

/// Key and value by which a Service names an address.
fn words(service: &Service, intent: &Intent, address: &Address) -> (String, String) {
    let (id, family) = match address {
        Address::Public(id) => (Some(id), None),
        Address::Private(address) => (None, Some(Family::of(*address))),
    };
    let of_id = |id: &ResourceId| {
        let named = |(_, wish): &(&Family, &PublicIpIntent)| match wish {
            PublicIpIntent::Named(name) => name::is_one(name, id.name()),
            _ => false,
        };
        intent.public_ips.iter().find(named).map(|(family, _)| *family)
    };
    if let Some((id, family)) = id.and_then(|id| Some((id, of_id(id)?))) {
        return (public_ip::name_key(service, family), id.name().to_owned());
    }
    let pinned = intent.pinned.iter().find(|(of, _)| family.is_none_or(|family| family == **of));
    let (family, value) = pinned.map_or((Family::V4, String::new()), |(f, a)| (*f, a.to_string()));
    (pinned::key(service, family), value)
}

#[cfg(test)]
mod tests;
