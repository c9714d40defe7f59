//! Private Link Services: which Service owns the one before a frontend, under which name, and what
//! goes. A frontend has one, and a load balancer and a subscription take only so many.

mod beside;
mod connected;
mod floating;
mod heir;
mod room;

use super::Refusal;
use super::placement::Placement;
use crate::ask::annotation;
use crate::ask::private_link::{ADDRESSES, CREATE, GROUP, NAME, SUBNET};
use crate::ask::{Intent, PrivateLinkIntent, PrivateLinkOwnership};
use crate::draft::{Draft, Stance};
use crate::own::tags::owner;
use crate::own::{Base, Whose, is_claimed, name};
use crate::standing::private_link::{known, unread_group};
pub(crate) use beside::unsure;
pub use connected::{bereft, unread_links};
use floating::Floating;
use heir::{guests, inherit, is_guest, joins};
use model::azure::{PrivateLinkPolicy, PrivateLinkService, Provisioning, Subnet};
use model::report::{Finding, Until, Wait};
use model::world::{Fact, Need};
use model::{Family, Group, ResourceId, ServiceName, ServiceUid};
use room::Room;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Who has which Private Link Service.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// Those that go, and on whose account.
    pub leaving: BTreeMap<ResourceId, (Arc<PrivateLinkService>, BTreeSet<ServiceUid>)>,
    /// Those that stay or come, each before another frontend.
    pub held: Vec<Held>,
}

/// A Private Link Service with its owner.
#[derive(Debug)]
pub(crate) struct Held {
    /// Its id, where it does not stand yet: the one that it gets.
    pub id: ResourceId,
    /// The frontend that it stands before.
    pub frontend: ResourceId,
    pub owner: ServiceName,
    /// How its owner asks it to be; `None`: it stays as the first owner wanted it, whose frontend
    /// others still share.
    pub wish: Option<Wish>,
    /// It, where it is there.
    pub there: Option<Arc<PrivateLinkService>>,
    /// Services on whose account it is written.
    pub causes: BTreeSet<ServiceUid>,
}

/// How a Private Link Service is to be.
#[derive(Debug)]
pub(crate) struct Wish {
    /// Its name as the owner asks.
    pub name: Arc<str>,
    /// What its owner asks.
    pub link: PrivateLinkIntent,
    /// The subnet of its addresses.
    pub subnet: ResourceId,
    /// The same, where it has to be opened for Private Link Services, or mended, first.
    pub opens: Option<Arc<Subnet>>,
}

/// What has to be read before it is known whether one stands before a frontend: a Service on it may
/// have one in a resource group that only that Service names.
fn unread_before(draft: &Draft<'_>, frontend: &ResourceId) -> Option<Need> {
    let balancer = draft.view(&frontend.parent()?)?;
    let rules = balancer.rules_to(frontend.name());
    let led = rules.iter().filter_map(|rule| draft.owner_of(&rule.name));
    let mut on_it = draft.owner_of(frontend.name()).into_iter().chain(led);
    let group = on_it.find_map(|uid| unread_group(draft, draft.cases.get(uid)?.service))?;
    Some(Need::PrivateLinks(group))
}

/// A Service that asks for a Private Link Service.
struct Asker<'a> {
    intent: &'a Arc<Intent>,
    link: &'a PrivateLinkIntent,
}

/// Decides who has which, and refuses Services that cannot have what they ask.
pub(crate) fn settle(draft: &mut Draft<'_>, placement: &Placement) -> Links {
    let mut links = Links::default();
    if draft.balancers().is_none() {
        return links;
    }
    let waiting = beside::settle(draft, placement);
    let guests = guests(draft, placement);
    let mut intents: Vec<(ResourceId, Arc<Intent>)> = Vec::new();
    for (balancer, seats) in &placement.balancers {
        for uid in seats.services.iter().filter(|uid| !waiting.contains(*uid)) {
            let intent = draft.cases.get(uid).and_then(|case| case.shared_intent());
            let Some(intent) = intent.filter(|intent| intent.private_link.is_some()) else {
                continue;
            };
            if let Some(frontend) = standing(draft, balancer, &intent) {
                intents.push((frontend, intent));
            } else {
                let id = balancer.clone();
                draft.wait(uid, Wait::Resource { id, until: Until::Ready });
            }
        }
    }
    let mut by_frontend: BTreeMap<&ResourceId, Vec<Asker<'_>>> = BTreeMap::new();
    for (frontend, intent) in &intents {
        let Some(link) = &intent.private_link else { continue };
        by_frontend.entry(frontend).or_default().push(Asker { intent, link });
    }
    release(draft, &by_frontend, &guests, &mut links);
    connected::keep(draft, &mut links);
    for (frontend, askers) in by_frontend {
        decide(draft, frontend, &askers, &mut links);
    }
    links
}

/// The IPv4 frontend of a Service, once it is in Azure.
fn standing(draft: &Draft<'_>, balancer: &ResourceId, intent: &Intent) -> Option<ResourceId> {
    let balancer = draft.view(balancer)?;
    if let Some(own) = balancer.frontend(&name::frontend(intent, Family::V4)) {
        return Some(balancer.id.child("frontendIPConfigurations", &own.name));
    }
    // A shared frontend has another's name; the Service's own rules lead to it.
    let rule = name::rule(intent, &intent.rules.first()?.kind, Family::V4);
    let frontend = balancer.rule(&rule)?.frontend.as_ref()?;
    let stale = name::is_of(frontend.name(), &intent.base);
    let exists = balancer.frontend(frontend.name()).is_some();
    (exists && !stale).then(|| frontend.clone())
}

/// Whether a Private Link Service is this cluster's.
fn is_ours(draft: &Draft<'_>, link: &PrivateLinkService) -> bool {
    draft.own.private_link(link) == Whose::Ours
}

fn owner_case(draft: &Draft<'_>, link: &PrivateLinkService) -> Option<ServiceUid> {
    draft.by_user(owner(link)?).cloned()
}

/// What is ours and before no frontend that it is asked for on goes. It lives as long as its
/// frontend: where its owner leaves and others stay on the frontend, the first of them owns it.
fn release(
    draft: &Draft<'_>,
    asked: &BTreeMap<&ResourceId, Vec<Asker<'_>>>,
    guests: &BTreeMap<ResourceId, Arc<Intent>>,
    links: &mut Links,
) {
    for link in known(draft) {
        let is_asked =
            !link.frontends.is_empty() && link.frontends.iter().all(|f| asked.contains_key(f));
        if is_asked || !is_ours(draft, link) {
            continue;
        }
        let heir = link.frontends.iter().find_map(|f| Some((f, guests.get(f)?)));
        let owner = owner_case(draft, link);
        let stance = owner.as_ref().map(|uid| &draft.cases[uid].stance);
        // One who made the frontend and asks no longer lets it go.
        let withdrawn = matches!(stance, Some(Stance::Wanted(intent))
            if link.frontends.iter().any(|f| !is_guest(intent, f)));
        // To whom it was handed over by its tag may be still to come.
        let comes = |uid: &ServiceUid| link.frontends.iter().any(|f| joins(draft, uid, f));
        if owner.as_ref().is_some_and(comes) {
            continue;
        }
        let frozen = matches!(stance, Some(Stance::Frozen(_) | Stance::Container(_)));
        if let Some((frontend, heir)) = heir.filter(|_| !withdrawn && !frozen) {
            links.held.push(inherit(frontend, heir, link, owner));
            continue;
        }
        let causes: BTreeSet<ServiceUid> = match owner {
            Some(_) if frozen => continue,
            Some(uid) => BTreeSet::from([uid]),
            None => {
                // Its Service is unknown: it goes with the frontend.
                let all = link.frontends.iter();
                let bases: Vec<Base> = all.filter_map(|f| Base::of(f.name())).collect();
                let goes =
                    !bases.is_empty() && bases.iter().all(|b| is_abandoned(draft, b.as_str()));
                if !goes {
                    continue;
                }
                let uids = bases.iter().filter_map(|b| draft.owner_of(b.as_str()).cloned());
                uids.collect()
            }
        };
        links.leaving.insert(link.id.clone(), (Arc::clone(link), causes));
    }
}

/// Whether the Service with a base name is gone, or goes.
fn is_abandoned(draft: &Draft<'_>, base: &str) -> bool {
    let case = draft.owner_of(base).and_then(|uid| draft.cases.get(uid));
    draft.is_abandoned(base) || case.is_some_and(|c| matches!(c.stance, Stance::Leaving))
}

/// Decides about the one before a frontend.
fn decide(draft: &mut Draft<'_>, frontend: &ResourceId, askers: &[Asker<'_>], links: &mut Links) {
    let there = known(draft).find(|link| link.frontends.contains(frontend));
    if there.is_none()
        && let Some(need) = unread_before(draft, frontend)
    {
        // A frontend has one, and Azure refuses a second one.
        let wait = Wait::Reading(need);
        askers.iter().for_each(|asker| draft.wait(&asker.intent.uid, wait.clone()));
        return;
    }
    if let Some(there) = there.filter(|there| !is_ours(draft, there)) {
        for asker in askers {
            let (name, other) = (frontend.name(), there.id.name());
            let message = format!(
                "frontend {name} has {other} of another cluster; use a frontend without one"
            );
            let finding = refusal(CREATE, "", "PrivateLinkForeign", message);
            draft.refuse(&asker.intent.uid, Refusal::new(finding));
        }
        return;
    }
    let past = there.and_then(|there| owner_case(draft, there));
    let chosen = choose(draft, frontend, past.as_ref(), askers);
    let uid = chosen.map(|c| &c.intent.uid);
    let others = askers.iter().filter(|a| Some(&a.intent.uid) != uid);
    for other in others.filter(|a| a.link.ownership == PrivateLinkOwnership::Own) {
        let has = chosen.map(|c| c.intent.name.to_string());
        let has = has.or_else(|| there.and_then(|t| owner(t)).map(str::to_owned));
        let has = has.unwrap_or_default();
        let message = format!(
            "{has} owns the Private Link Service of the shared frontend; of the azure-pls-* \
             annotations keep only azure-pls-create"
        );
        let finding = refusal(CREATE, "", "PrivateLinkOwned", message);
        draft.refuse(&other.intent.uid, Refusal::new(finding));
    }
    if let Some(chosen) = chosen {
        let uids = askers.iter().map(|a| &a.intent.uid);
        let wanted = uids.filter(|uid| draft.cases[*uid].intent().is_some());
        let causes = wanted.cloned().chain(past).collect();
        let held = grant(draft, frontend, chosen, (there, causes), links);
        links.held.extend(held);
    }
}

/// Who owns it: who has it; else who brings a configuration; else the first. Nobody while the
/// wish of its owner is not known, or while somebody to whom it was handed over by its tag is still
/// to join the frontend.
fn choose<'a, 'b>(
    draft: &Draft<'_>,
    frontend: &ResourceId,
    past: Option<&ServiceUid>,
    askers: &'b [Asker<'a>],
) -> Option<&'b Asker<'a>> {
    if past.is_some_and(|uid| matches!(draft.cases[uid].stance, Stance::Frozen(_))) {
        return None;
    }
    let has = askers.iter().find(|a| past == Some(&a.intent.uid));
    if has.is_none() && past.is_some_and(|uid| joins(draft, uid, frontend)) {
        return None;
    }
    let own = || askers.iter().find(|a| a.link.ownership == PrivateLinkOwnership::Own);
    has.or_else(own).or_else(|| askers.first())
}

/// Gives it to the Service that owns it, unless something is in the way.
fn grant(
    draft: &mut Draft<'_>,
    frontend: &ResourceId,
    asked: &Asker<'_>,
    (there, causes): (Option<&Arc<PrivateLinkService>>, BTreeSet<ServiceUid>),
    links: &Links,
) -> Option<Held> {
    let Asker { intent, link } = asked;
    if !is_claimed(draft.policy, draft.cases[&intent.uid].service) {
        return None;
    }
    if let Some(there) = there
        && link.ownership == PrivateLinkOwnership::Shared
        && is_guest(intent, frontend)
    {
        let (id, there, wish) = (there.id.clone(), Some(Arc::clone(there)), None);
        let (frontend, owner) = (frontend.clone(), intent.name.clone());
        return Some(Held { id, frontend, owner, wish, there, causes });
    }
    // Who names none takes the name that it has: there is no other way to rename it than anew.
    let standing = || there.map(|there| Arc::from(there.id.name()));
    let named = link.name.clone().or_else(standing);
    let name = named.unwrap_or_else(|| format!("pls-{}", frontend.name()).into());
    let id = draft.policy.network_id(&link.group, "privateLinkServices", &name);
    match obstacle(draft, frontend, asked, (&id, there), links) {
        Some(Obstacle::Wait(wait)) => {
            causes.iter().for_each(|uid| draft.wait(uid, wait.clone()));
            return None;
        }
        Some(Obstacle::Refuse(finding)) => {
            draft.refuse(&intent.uid, Refusal::new(finding));
            return None;
        }
        None => {}
    }
    let (subnet, opens) = subnet(draft, intent, link)?;
    let wish = Some(Wish { name, link: PrivateLinkIntent::clone(link), subnet, opens });
    let (frontend, there) = (frontend.clone(), there.cloned());
    Some(Held { id, frontend, owner: intent.name.clone(), wish, there, causes })
}

/// What keeps a Service from having its Private Link Service.
enum Obstacle {
    /// Something that goes.
    Wait(Wait),
    /// Something that stays.
    Refuse(Finding),
}

fn obstacle(
    draft: &Draft<'_>,
    frontend: &ResourceId,
    Asker { intent, link }: &Asker<'_>,
    (id, there): (&ResourceId, Option<&Arc<PrivateLinkService>>),
    links: &Links,
) -> Option<Obstacle> {
    match floating::find(draft, frontend, &intent.base) {
        Some(Floating::Own) => {
            let id = frontend.parent()?;
            return Some(Obstacle::Wait(Wait::Resource { id, until: Until::Written }));
        }
        Some(Floating::Others(rule)) => {
            let message =
                format!("rule {rule} has floating IP; disable it for all on the frontend");
            let finding = refusal(CREATE, "", "PrivateLinkUnreachable", message);
            return Some(Obstacle::Refuse(finding));
        }
        None => {}
    }
    let misplaced = || misplaced(draft, id, intent, (link, there), links);
    if let Some(finding) = unreadable(draft, &link.group).or_else(misplaced) {
        return Some(Obstacle::Refuse(finding));
    }
    if there.is_none() {
        // Its name is free once what has it now is gone.
        let gone = |id: &ResourceId| Wait::Resource { id: id.clone(), until: Until::Gone };
        if links.leaving.contains_key(id) {
            return Some(Obstacle::Wait(gone(id)));
        }
        if links.held.iter().any(|held| held.id == *id) {
            return Some(Obstacle::Refuse(taken(id.name())));
        }
        match room::find(draft, frontend, links) {
            Room::Free => {}
            Room::After(other) => return Some(Obstacle::Wait(gone(&other))),
            Room::None(finding) => return Some(Obstacle::Refuse(finding)),
        }
    }
    let asker = there.map_or(id, |there| &there.id);
    unusable(draft, asker, link).map(Obstacle::Refuse)
}

/// Where Private Link Services of the group cannot be read, none is written.
fn unreadable(draft: &Draft<'_>, group: &Group) -> Option<Finding> {
    let Some(Fact::Unreadable(why)) = draft.world.azure.private_links.get(group) else {
        return None;
    };
    let message = format!(
        "Private Link Services of resource group {{value}} cannot be read ({why}); use a resource \
         group that exists and that the controller's identity can read"
    );
    Some(refusal(GROUP, group.as_str(), "PrivateLinkGroupUnreadable", message))
}

/// What keeps it from having this id.
fn misplaced(
    draft: &Draft<'_>,
    id: &ResourceId,
    intent: &Intent,
    (link, there): (&PrivateLinkIntent, Option<&Arc<PrivateLinkService>>),
    links: &Links,
) -> Option<Finding> {
    if let Some(there) = there {
        if there.id == *id {
            return None;
        }
        let group = there.id.group();
        if group.as_ref() != Some(&link.group) {
            let message = format!(
                "must be {}, the resource group of the existing Private Link Service; to move it, \
                 remove {CREATE} first",
                group.as_ref().map_or("", Group::as_str)
            );
            let value = link.group.as_str();
            return Some(refusal(GROUP, value, "PrivateLinkGroupChanged", message));
        }
        let message = format!(
            "must be {}, the name of the existing Private Link Service; to rename it, remove \
             {CREATE} first",
            there.id.name()
        );
        return Some(refusal(NAME, id.name(), "PrivateLinkNameChanged", message));
    }
    let other = known(draft).find(|other| other.id == *id)?;
    let own = is_ours(draft, other)
        && (owner_case(draft, other).as_ref() == Some(&intent.uid)
            || links.leaving.contains_key(id)
            || links.held.iter().any(|held| held.id == *id));
    (!own).then(|| taken(id.name()))
}

/// A static address that the subnet cannot give.
fn unusable(draft: &Draft<'_>, asker: &ResourceId, link: &PrivateLinkIntent) -> Option<Finding> {
    let id = draft.policy.subnet_id(&link.subnet);
    let subnet = draft.world.azure.subnets.get(&id)?.known()?.as_ref()?;
    link.addresses.iter().find_map(|address| {
        let what = super::address::obstacle(draft, subnet, *address, asker)?;
        let (value, message) = (address.to_string(), format!("must be an address {what}"));
        Some(refusal(ADDRESSES, &value, "PrivateLinkAddressUnusable", message))
    })
}

fn taken(name: &str) -> Finding {
    let message = "must be a name that no other Private Link Service of the resource group has";
    refusal(NAME, name, "PrivateLinkNameTaken", message.to_owned())
}

fn refusal(key: &str, value: &str, rule: &'static str, message: String) -> Finding {
    Finding::refusal(rule, &annotation::full(key), value, &message)
}

/// The subnet of its addresses, and the same where it takes none yet.
fn subnet(
    draft: &mut Draft<'_>,
    intent: &Intent,
    link: &PrivateLinkIntent,
) -> Option<(ResourceId, Option<Arc<Subnet>>)> {
    let id = draft.policy.subnet_id(&link.subnet);
    let why = match draft.world.azure.subnets.get(&id) {
        Some(Fact::Known(Some(subnet))) => {
            // Azure refuses what refers to a subnet whose last write failed.
            let closed = subnet.private_link != PrivateLinkPolicy::Disabled
                || subnet.provisioning == Provisioning::Failed;
            return Some((id, closed.then(|| Arc::clone(subnet))));
        }
        Some(Fact::Unknown) | None => {
            draft.wait_to_read(&intent.uid, Need::Subnet(id));
            return None;
        }
        Some(Fact::Known(None)) => String::new(),
        Some(Fact::Unreadable(why)) => format!(" that can be read ({why})"),
    };
    let message = format!("must be a subnet of virtual network {}{why}", draft.policy.network_name);
    let finding = refusal(SUBNET, &link.subnet, "SubnetNotFound", message);
    draft.refuse(&intent.uid, Refusal::new(finding));
    None
}

#[cfg(test)]
mod tests;
