//! Services whose wishes cannot be judged before something has been read.
//!
//! What is read may refuse a Service, which then keeps all that it has. So one that stands keeps it
//! until that is known: half an edit, or a move to another load balancer, is not begun. The same of
//! what a watch has yet to tell: a Service may be seen before its namespace.
//!
//! Only who names a resource group has to wait for it: an owner may name another one with each
//! edit. The exception is who would bring IPv6 beside a Private Link Service that may be there.

use super::private_link::unsure;
use crate::ask::public_ip::named_group;
use crate::ask::{self, Intent, PublicIpIntent};
use crate::draft::{Draft, Stance};
use crate::own::name;
use crate::standing::{frontend, private_link};
use crate::verdict::Frozen;
use model::azure::PublicIp;
use model::kubernetes::{SERVICE_FINALIZER, Service};
use model::policy::Layout;
use model::report::Wait;
use model::world::{ById, Fact, Need};
use model::{Exposure, Policy, ServiceUid, World};
use std::collections::BTreeSet;

/// Lets Services that stand stay as they are until what decides about them has been read, and notes
/// the others.
pub(crate) fn hold(draft: &mut Draft<'_>) {
    let intents = draft.cases.values().filter_map(|case| case.intent());
    let unread: Vec<(ServiceUid, Need, bool)> = intents
        .filter_map(|intent| {
            let need = need(draft, intent)?;
            Some((intent.uid.clone(), need, has_parts(draft, &intent.base)))
        })
        .collect();
    for (uid, need, there) in unread {
        if !there {
            draft.claims.undecided.insert(uid);
            continue;
        }
        freeze(draft, &uid);
        draft.wait_to_read(&uid, need);
    }
    for (uid, need, stands) in of_named_groups(draft) {
        if stands {
            freeze(draft, &uid);
        }
        draft.wait_to_read(&uid, need);
    }
    let kept = of_kept(draft);
    draft.steps.needs.extend(kept);
    for (uid, need) in unsure(draft) {
        freeze(draft, &uid);
        draft.wait_to_read(&uid, need);
    }
    for uid in of_unseen_namespaces(draft) {
        freeze(draft, &uid);
        draft.wait(&uid, Wait::Listing);
    }
}

fn freeze(draft: &mut Draft<'_>, uid: &ServiceUid) {
    if let Some(case) = draft.cases.get_mut(uid) {
        case.stance = Stance::Frozen(Frozen::new());
    }
}

/// Services that name a resource group which has not been read, and whether they stand or go: one
/// that goes, or that asks for nothing there by now, may have something there of before this
/// process started. Who keeps what it has needs not know.
fn of_named_groups(draft: &Draft<'_>) -> Vec<(ServiceUid, Need, bool)> {
    let azure = &draft.world.azure;
    let mut found = Vec::new();
    for (uid, case) in &draft.cases {
        let stands = match &case.stance {
            Stance::Wanted(intent) => has_parts(draft, &intent.base),
            Stance::Leaving => true,
            Stance::Frozen(_) | Stance::Container(_) => continue,
        };
        let claimed = case.service.has_finalizer(SERVICE_FINALIZER);
        let ips = named_group(case.service).filter(|_| claimed);
        let asked = case.intent().and_then(|intent| intent.private_link.as_ref());
        // The finalizer may have been taken off; Azure keeps a frontend with one before it.
        let had = || {
            let group = private_link::named_group(draft.policy, case.service)?;
            (claimed || has_parts(draft, &case.base)).then_some(group)
        };
        let links = asked.map(|link| link.group.clone()).or_else(had);
        let needs = ips.map(Need::PublicIps).into_iter().chain(links.map(Need::PrivateLinks));
        let unread = needs.filter(|need| azure.is_unread(need));
        found.extend(unread.map(|need| (uid.clone(), need, stands)));
    }
    found
}

/// Where Services that stay as they are may have a Private Link Service of before this process
/// started. No Service waits for it, but the pools of their load balancers stay so long as they
/// are: one may be refused for nothing but the kind of these pools.
fn of_kept(draft: &Draft<'_>) -> Vec<Need> {
    let kept = draft.cases.values().filter(|case| case.intent().is_none());
    let groups = kept.filter_map(|case| private_link::unread_group(draft, case.service));
    groups.map(Need::PrivateLinks).collect()
}

/// Services whose load balancer depends on labels of a namespace that has not been seen.
fn of_unseen_namespaces(draft: &Draft<'_>) -> Vec<ServiceUid> {
    let Layout::Several(configs) = &draft.policy.layout else { return Vec::new() };
    if configs.iter().all(|config| config.namespaces.is_none()) {
        return Vec::new();
    }
    let seen = &draft.world.kubernetes.namespaces;
    let intents = draft.cases.values().filter_map(|case| case.intent());
    let unseen = intents.filter(|intent| !seen.contains_key(&intent.name.namespace));
    unseen.map(|intent| intent.uid.clone()).collect()
}

/// Whether anything of a base name is on a load balancer: a Service that shares an address has
/// rules only.
fn has_parts(draft: &Draft<'_>, base: &str) -> bool {
    let base = name::base_number(base);
    draft.views().any(|balancer| balancer.count_of(base) != (0, 0))
}

/// What has to be read before a Service can be refused or not.
fn need(draft: &Draft<'_>, intent: &Intent) -> Option<Need> {
    let azure = &draft.world.azure;
    if let Some(link) = &intent.private_link {
        let need = Need::Subnet(draft.policy.subnet_id(&link.subnet));
        if azure.is_unread(&need) {
            return Some(need);
        }
    }
    match intent.exposure {
        Exposure::Public => {
            let need = Need::PublicIps(intent.public_ip_group.clone());
            azure.is_unread(&need).then_some(need)
        }
        Exposure::Internal => {
            let named = intent.subnet.as_ref().unwrap_or(&draft.policy.subnet_name);
            let need = Need::Subnet(draft.policy.subnet_id(named));
            (azure.is_unread(&need) && !stands(draft, intent)).then_some(need)
        }
    }
}

/// Whether an internal Service has all the frontends that it asks for.
fn stands(draft: &Draft<'_>, intent: &Intent) -> bool {
    intent.families.iter().all(|family| {
        let name = name::frontend(intent, *family);
        let mut own = draft.views().filter_map(|balancer| balancer.frontend(&name));
        own.any(|f| frontend::is_as_asked(draft, intent, *family, f))
    })
}

/// The lists that lack what a Service names, such as a public IP or a subnet: it may have been made
/// after they were read.
#[must_use]
pub fn unfound(world: &World, policy: &Policy, service: &Service) -> BTreeSet<Need> {
    let (azure, mut needs) = (&world.azure, BTreeSet::new());
    if azure.public_ips.is_empty() && azure.subnets.is_empty() {
        return needs;
    }
    let Some(intent) = ask::read(service, policy).intent else { return needs };
    let group = &intent.public_ip_group;
    let lacks = |all: &ById<PublicIp>| {
        intent.public_ips.iter().any(|(family, wish)| match wish {
            PublicIpIntent::Managed { .. } => false,
            PublicIpIntent::Named(name) => !all.contains_key(&policy.public_ip_id(group, name)),
            PublicIpIntent::Pinned => {
                let address = intent.pinned.get(family).copied();
                !all.values().any(|ip| ip.address == address)
            }
        })
    };
    if intent.exposure == Exposure::Public && is_without(azure.public_ips.get(group), lacks) {
        needs.insert(Need::PublicIps(group.clone()));
    }
    let link = intent.private_link.as_ref().map(|link| &link.subnet);
    for name in intent.subnet.iter().chain(link) {
        let id = policy.subnet_id(name);
        if is_without(azure.subnets.get(&id), Option::is_none) {
            needs.insert(Need::Subnet(id));
        }
    }
    needs
}

/// Whether a list was read and lacks something, or could not be read.
fn is_without<T>(fact: Option<&Fact<T>>, lacks: impl FnOnce(&T) -> bool) -> bool {
    match fact {
        Some(Fact::Known(known)) => lacks(known),
        Some(Fact::Unreadable(_)) => true,
        Some(Fact::Unknown) | None => false,
    }
}
