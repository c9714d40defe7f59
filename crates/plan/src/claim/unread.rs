//! Services whose wishes cannot be judged before something has been read.
//!
//! What is read may refuse a Service, which then keeps all that it has. So one that stands keeps it
//! until that is known: half an edit, or a move to another load balancer, is not begun. The same of
//! what a watch has yet to tell: a Service may be seen before its namespace.

use super::verdict::Frozen;
use crate::ask::Intent;
use crate::draft::{Draft, Stance};
use crate::own::name;
use crate::shape::frontend;
use model::policy::Layout;
use model::report::Wait;
use model::world::Need;
use model::{Exposure, ServiceUid};

/// Lets Services that stand stay as they are until what decides about them has been read, and notes
/// the others.
pub(crate) fn hold(draft: &mut Draft<'_>) {
    let intents = draft.cases.values().filter_map(|case| case.intent());
    let unread: Vec<(ServiceUid, Need, bool)> = intents
        .filter_map(|intent| {
            let need = need(draft, intent)?;
            Some((intent.uid.clone(), need, is_there(draft, intent)))
        })
        .collect();
    for (uid, need, there) in unread {
        if !there {
            draft.undecided.insert(uid);
            continue;
        }
        if let Some(case) = draft.cases.get_mut(&uid) {
            case.stance = Stance::Frozen(Frozen::new());
        }
        draft.needs.insert(need.clone());
        draft.wait(&uid, Wait::Reading(need));
    }
    for uid in of_unseen_namespaces(draft) {
        if let Some(case) = draft.cases.get_mut(&uid) {
            case.stance = Stance::Frozen(Frozen::new());
        }
        draft.wait(&uid, Wait::Listing);
    }
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

/// Whether anything of a Service is on a load balancer; one that shares an address has rules only.
fn is_there(draft: &Draft<'_>, intent: &Intent) -> bool {
    let base = name::base_number(&intent.base);
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
