//! Private Link Services: one before a frontend, owned by one Service.

mod addresses;
mod beside;
mod body;
mod floating;
mod reading;
mod room;

use floating::Floating;
pub(crate) use reading::needs;
use room::Room;

use crate::ask::annotation::PREFIX;
use crate::ask::{Intent, PrivateLinkIntent, PrivateLinkOwnership};
use crate::claim::placement::Placement;
use crate::draft::{Draft, Stance};
use crate::own::Whose;
use crate::own::name;
use crate::own::tags;
use model::azure::{PrivateLinkPolicy, PrivateLinkService, Provisioning, Subnet};
use model::plan::{Action, Change, Resource};
use model::report::{Finding, Severity, Until, Wait};
use model::world::{Fact, Need};
use model::{Family, Group, ResourceId, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const CREATE: &str = "azure-pls-create";
const NAME: &str = "azure-pls-name";
const GROUP: &str = "azure-pls-resource-group";
const ADDRESS: &str = "azure-pls-ip-configuration-ip-address";
const SUBNET: &str = "azure-pls-ip-configuration-subnet";

/// Private Link Services by the frontends they stand before.
pub(crate) type Linked = BTreeMap<ResourceId, ResourceId>;

fn known<'w>(draft: &Draft<'w>) -> impl Iterator<Item = &'w Arc<PrivateLinkService>> + use<'w> {
    let facts = draft.world.azure.private_links.values();
    facts.filter_map(Fact::known).flat_map(BTreeMap::values)
}

/// Frontends that cannot go yet, because something stands before them.
pub(crate) fn linked(draft: &Draft<'_>) -> Linked {
    let pairs = known(draft).flat_map(|link| link.frontends.iter().map(|f| (f, &link.id)));
    pairs.map(|(frontend, link)| (frontend.clone(), link.clone())).collect()
}

/// A Private Link Service that stands before a load balancer, as far as they are read.
pub(crate) fn before<'w>(
    draft: &Draft<'w>,
    balancer: &ResourceId,
) -> Option<&'w Arc<PrivateLinkService>> {
    let on = |f: &ResourceId| f.parent().as_ref() == Some(balancer);
    known(draft).find(|link| link.frontends.iter().any(on))
}

/// A Service that asks for a Private Link Service.
struct Asker<'a> {
    intent: &'a Intent,
    link: &'a PrivateLinkIntent,
}

/// Drafts what Services ask for, then takes away what none asks for any more.
pub(crate) fn plan(draft: &mut Draft<'_>, placement: &Placement) {
    if draft.balancers().is_none() {
        return;
    }
    let waiting = beside::settle(draft, placement);
    let mut intents: Vec<(ResourceId, Box<Intent>)> = Vec::new();
    for seats in &placement.balancers {
        for uid in &seats.1.services {
            let Some(intent) = draft.cases.get(uid).and_then(|c| c.intent()).cloned() else {
                continue;
            };
            if intent.private_link.is_none() || waiting.contains(uid) {
                continue;
            }
            match standing(draft, seats.0, &intent) {
                Some(frontend) => intents.push((frontend, Box::new(intent))),
                None => {
                    let id = seats.0.clone();
                    draft.wait(uid, Wait::Resource { id, until: Until::Ready });
                }
            }
        }
    }
    let mut by_frontend: BTreeMap<&ResourceId, Vec<Asker<'_>>> = BTreeMap::new();
    for (frontend, intent) in &intents {
        let Some(link) = &intent.private_link else { continue };
        by_frontend.entry(frontend).or_default().push(Asker { intent, link });
    }
    let asked: BTreeSet<ResourceId> = by_frontend.keys().map(|id| (*id).clone()).collect();
    release(draft, &asked);
    for (frontend, askers) in by_frontend {
        ensure(draft, frontend, &askers);
    }
}

/// The IPv4 frontend of a Service, once it is in Azure.
fn standing(draft: &Draft<'_>, balancer: &ResourceId, intent: &Intent) -> Option<ResourceId> {
    let balancer = draft.balancers()?.get(balancer)?;
    let own = name::frontend(intent, Family::V4);
    let own = balancer.frontends.iter().find(|f| f.name.eq_ignore_ascii_case(&own));
    if let Some(own) = own {
        return Some(balancer.id.child("frontendIPConfigurations", &own.name));
    }
    // A shared frontend has another's name; the Service's own rules lead to it.
    let rule = name::rule(intent, &intent.rules.first()?.kind, Family::V4);
    let rule = balancer.rules.iter().find(|r| r.name.eq_ignore_ascii_case(&rule))?;
    let frontend = rule.frontend.as_ref()?;
    let stale =
        name::base_of(frontend.name()).is_some_and(|base| base.eq_ignore_ascii_case(&intent.base));
    let exists = balancer.frontends.iter().any(|f| f.name.eq_ignore_ascii_case(frontend.name()));
    (exists && !stale).then(|| frontend.clone())
}

/// Whether a Private Link Service is this cluster's.
fn is_ours(draft: &Draft<'_>, link: &PrivateLinkService) -> bool {
    draft.own.private_link(link) == Whose::Ours
}

/// The owner's `namespace/name`, as the tag says.
fn owner(link: &PrivateLinkService) -> Option<&str> {
    link.tags.as_ref().and_then(|t| model::azure::tag(t, tags::OWNER))
}

fn owner_case(draft: &Draft<'_>, link: &PrivateLinkService) -> Option<ServiceUid> {
    let (namespace, name) = owner(link)?.split_once('/')?;
    draft.by_name.get(&model::ServiceName::new(namespace, name)).cloned()
}

/// Drafts the removal of what is ours and before no frontend that it is asked for on.
fn release(draft: &mut Draft<'_>, asked: &BTreeSet<ResourceId>) {
    for link in known(draft) {
        let is_asked =
            !link.frontends.is_empty() && link.frontends.iter().all(|f| asked.contains(f));
        if is_asked || !is_ours(draft, link) {
            continue;
        }
        let causes: BTreeSet<ServiceUid> = match owner_case(draft, link) {
            Some(uid) => match draft.cases[&uid].stance {
                Stance::Kept | Stance::Container(_) => continue,
                Stance::Wanted(_) | Stance::Leaving => BTreeSet::from([uid]),
            },
            None => {
                // Its Service is unknown: it goes with the frontend.
                let of = |f: &ResourceId| name::base_of(f.name()).map(str::to_owned);
                let bases: Vec<String> = link.frontends.iter().filter_map(of).collect();
                let goes = !bases.is_empty()
                    && bases.iter().all(|b| draft.is_abandoned(b) || is_leaving(draft, b));
                if !goes {
                    continue;
                }
                let uids = bases.iter().filter_map(|b| draft.owner_of(b).cloned());
                uids.collect()
            }
        };
        delete(draft, link, &causes);
    }
}

fn is_leaving(draft: &Draft<'_>, base: &str) -> bool {
    let case = draft.owner_of(base).and_then(|uid| draft.cases.get(uid));
    case.is_some_and(|c| matches!(c.stance, Stance::Leaving))
}

/// Private endpoint connections go first: Azure keeps a Private Link Service that has any.
fn delete(draft: &mut Draft<'_>, link: &Arc<PrivateLinkService>, causes: &BTreeSet<ServiceUid>) {
    let mut waits = Vec::new();
    for connection in &link.connections {
        waits.push(Wait::Resource { id: connection.clone(), until: Until::Gone });
        draft.change(Change {
            target: connection.clone(),
            action: Action::DeleteChild,
            guard: None,
            causes: causes.clone(),
            waits: Vec::new(),
        });
    }
    let before = Resource::PrivateLinkService(Arc::clone(link));
    draft.change(Change {
        target: link.id.clone(),
        action: Action::Delete { before },
        guard: None,
        causes: causes.clone(),
        waits,
    });
}

/// Drafts the one Private Link Service before a frontend.
fn ensure(draft: &mut Draft<'_>, frontend: &ResourceId, askers: &[Asker<'_>]) {
    let there = known(draft).find(|link| link.frontends.contains(frontend));
    if let Some(there) = there.filter(|there| !is_ours(draft, there)) {
        for asker in askers {
            let (name, other) = (frontend.name(), there.id.name());
            let message = format!(
                "frontend {name} has {other} of another cluster; use a frontend without one"
            );
            draft.refuse(&asker.intent.uid, refusal(CREATE, "", "PrivateLinkForeign", message));
        }
        return;
    }
    let past = there.and_then(|there| owner_case(draft, there));
    let chosen = choose(draft, past.as_ref(), askers);
    let uid = chosen.map(|c| &c.intent.uid);
    let others = askers.iter().filter(|a| Some(&a.intent.uid) != uid);
    for other in others.filter(|a| a.link.ownership == PrivateLinkOwnership::Own) {
        let has = chosen.map(|c| c.intent.name.to_string());
        let has = has.or_else(|| there.and_then(|t| owner(t)).map(str::to_owned));
        let has = has.unwrap_or_default();
        let message = format!(
            "{has} owns the one of the shared frontend; remove all other azure-pls-* annotations"
        );
        draft.refuse(&other.intent.uid, refusal(CREATE, "", "PrivateLinkOwned", message));
    }
    if let Some(chosen) = chosen {
        let uids = askers.iter().map(|a| &a.intent.uid);
        let wanted = uids.filter(|uid| draft.cases[*uid].intent().is_some());
        let causes = wanted.cloned().chain(past).collect();
        write(draft, frontend, chosen, there, causes);
    }
}

/// Who owns it: who has it; else who brings a configuration; else the first. Nobody while the
/// wish of its owner is not known.
fn choose<'a, 'b>(
    draft: &Draft<'_>,
    past: Option<&ServiceUid>,
    askers: &'b [Asker<'a>],
) -> Option<&'b Asker<'a>> {
    if past.is_some_and(|uid| matches!(draft.cases[uid].stance, Stance::Kept)) {
        return None;
    }
    let has = askers.iter().find(|a| past == Some(&a.intent.uid));
    let own = || askers.iter().find(|a| a.link.ownership == PrivateLinkOwnership::Own);
    has.or_else(own).or_else(|| askers.first())
}

/// Drafts the body for the Service that owns it.
fn write(
    draft: &mut Draft<'_>,
    frontend: &ResourceId,
    asked: &Asker<'_>,
    there: Option<&Arc<PrivateLinkService>>,
    causes: BTreeSet<ServiceUid>,
) {
    let Asker { intent, link } = asked;
    if !crate::tell::kubernetes::is_claimed(draft.policy, draft.cases[&intent.uid].service) {
        return;
    }
    match floating::find(draft, frontend, &intent.base) {
        Some(Floating::Own) => {
            let wait = frontend.parent().map(|id| Wait::Resource { id, until: Until::Written });
            causes.iter().for_each(|uid| wait.iter().for_each(|w| draft.wait(uid, w.clone())));
            return;
        }
        Some(Floating::Others(rule)) => {
            let message =
                format!("rule {rule} has floating IP; disable it for all on the frontend");
            let finding = refusal(CREATE, "", "PrivateLinkUnreachable", message);
            draft.refuse(&intent.uid, finding);
            return;
        }
        None => {}
    }
    if let Some(finding) = unreadable(draft, &link.group) {
        draft.refuse(&intent.uid, finding);
        return;
    }
    let name = link.name.clone().unwrap_or_else(|| format!("pls-{}", frontend.name()).into());
    let id = draft.policy.network_id(&link.group, "privateLinkServices", &name);
    if let Some(finding) = misplaced(draft, &id, intent, link, there) {
        draft.refuse(&intent.uid, finding);
        return;
    }
    if there.is_none()
        && let Some(other) = draft.changes.get(&id)
    {
        // Its name is free once what has it now is gone.
        if matches!(other.action, Action::Delete { .. }) {
            let wait = Wait::Resource { id, until: Until::Gone };
            causes.iter().for_each(|uid| draft.wait(uid, wait.clone()));
        } else {
            draft.refuse(&intent.uid, taken(&name));
        }
        return;
    }
    if there.is_none() {
        match room::find(draft, frontend) {
            Room::Free => {}
            Room::After(other) => return room::wait(draft, &other, &causes),
            Room::None(finding) => return draft.refuse(&intent.uid, finding),
        }
    }
    let asker = there.map_or(&id, |there| &there.id);
    if let Some(finding) = unusable(draft, asker, link) {
        draft.refuse(&intent.uid, finding);
        return;
    }
    let Some((subnet, waits)) = subnet(draft, intent, link, &causes) else { return };
    let mut after = there.map_or_else(|| body::fresh(draft, id, frontend), |t| (**t).clone());
    body::fill(draft, &mut after, asked, &name, &subnet);
    if there.is_none_or(|t| **t != after || t.provisioning == Provisioning::Failed) {
        draft.own.sign(&after.id, &draft.policy.private_link_group, &mut after.tags);
        draft.change(Change {
            target: after.id.clone(),
            guard: None,
            action: Action::Put {
                before: there.cloned().map(Resource::PrivateLinkService),
                after: Resource::PrivateLinkService(Arc::new(after)),
            },
            causes,
            waits,
        });
    }
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
    link: &PrivateLinkIntent,
    there: Option<&Arc<PrivateLinkService>>,
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
            || draft.changes.contains_key(id));
    (!own).then(|| taken(id.name()))
}

/// A static address that the subnet cannot give.
fn unusable(draft: &Draft<'_>, asker: &ResourceId, link: &PrivateLinkIntent) -> Option<Finding> {
    let id = draft.policy.subnet_id(&link.subnet);
    let subnet = draft.world.azure.subnets.get(&id)?.known()?.as_ref()?;
    link.addresses.iter().find_map(|address| {
        let what = crate::claim::address::obstacle(draft, subnet, *address, asker)?;
        let (value, message) = (address.to_string(), format!("must be an address {what}"));
        Some(refusal(ADDRESS, &value, "PrivateLinkAddressUnusable", message))
    })
}

fn taken(name: &str) -> Finding {
    let message = "must be a name that no other Private Link Service of the resource group has";
    refusal(NAME, name, "PrivateLinkNameTaken", message.to_owned())
}

fn refusal(key: &str, value: &str, rule: &'static str, message: String) -> Finding {
    Finding {
        severity: Severity::Refusal,
        rule,
        key: Arc::from(format!("{PREFIX}{key}")),
        value: Arc::from(value),
        message: Arc::from(message),
    }
}

/// The subnet of its addresses, and what must be written before it takes any.
fn subnet(
    draft: &mut Draft<'_>,
    intent: &Intent,
    link: &PrivateLinkIntent,
    causes: &BTreeSet<ServiceUid>,
) -> Option<(ResourceId, Vec<Wait>)> {
    let id = draft.policy.subnet_id(&link.subnet);
    let why = match draft.world.azure.subnets.get(&id) {
        Some(Fact::Known(Some(subnet))) => {
            if subnet.private_link == PrivateLinkPolicy::Disabled {
                return Some((id, Vec::new()));
            }
            open(draft, subnet, causes);
            let wait = Wait::Resource { id: id.clone(), until: Until::Written };
            return Some((id, vec![wait]));
        }
        Some(Fact::Unknown) | None => {
            let need = Need::Subnet(id);
            draft.needs.insert(need.clone());
            draft.wait(&intent.uid, Wait::Reading(need));
            return None;
        }
        Some(Fact::Known(None)) => String::new(),
        Some(Fact::Unreadable(why)) => format!(" that can be read ({why})"),
    };
    let message = format!("must be a subnet of virtual network {}{why}", draft.policy.network_name);
    draft.refuse(&intent.uid, refusal(SUBNET, &link.subnet, "SubnetNotFound", message));
    None
}

/// Lets Private Link Services use a subnet. Several may ask for it at once.
fn open(draft: &mut Draft<'_>, subnet: &Arc<Subnet>, causes: &BTreeSet<ServiceUid>) {
    let mut causes = causes.clone();
    if let Some(other) = draft.changes.get(&subnet.id) {
        causes.extend(other.causes.iter().cloned());
    }
    let mut after = Subnet::clone(subnet);
    after.private_link = PrivateLinkPolicy::Disabled;
    // The codec writes the field from what is known above; the old word would be a difference.
    let mut rest = after.rest.unpack();
    rest.properties.shift_remove("privateLinkServiceNetworkPolicies");
    after.rest = rest.into();
    draft.change(Change {
        target: subnet.id.clone(),
        guard: subnet.etag.clone(),
        action: Action::Put {
            before: Some(Resource::Subnet(Arc::clone(subnet))),
            after: Resource::Subnet(Arc::new(after)),
        },
        causes,
        waits: Vec::new(),
    });
}

#[cfg(test)]
mod tests;
