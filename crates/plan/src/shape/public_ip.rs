//! Public IPs: made, adopted, tagged, released.

use super::memory::Memory;
use super::security_group;
use crate::ask::{Intent, PublicIpIntent};
use crate::claim::choice::{self, Choice, Chosen, Pick, Picks};
use crate::claim::public_ip::FirstHolders;
use crate::draft::{Draft, Edited, Stance};
use crate::order::custody::may_make_ip;
use crate::order::upgrade;
use crate::own::{Owner, Whose, is_claimed, tags};
use crate::standing::security_group::is_idle;
use model::azure::{Allocation, Provisioning, PublicIp, Rest, Sku};
use model::plan::{Change, Resource};
use model::policy::BalancerSku;
use model::report::{Until, Wait};
use model::{Exposure, Family, Group, ResourceId, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

mod wishes;

/// Chooses, makes and adopts the public IPs that Services want; then lets go of those that none
/// wants any more.
pub(crate) fn plan(draft: &mut Draft<'_>, memory: &mut Memory) -> Chosen {
    let mut chosen = Chosen::new();
    let mut edited: BTreeMap<ResourceId, Edited> = BTreeMap::new();
    let mut rests: Vec<*const PublicIp> = Vec::new();
    let uids: Vec<ServiceUid> = draft.by_name.values().cloned().collect();
    let first = FirstHolders::of(draft);
    for uid in uids {
        let Some(intent) = draft.cases[&uid].shared_intent() else { continue };
        if intent.exposure != Exposure::Public {
            continue;
        }
        if let Some(held) = memory.find(draft, &intent, |id| edited.contains_key(id)) {
            for (family, id, ip) in &held.ips {
                chosen.insert((uid.clone(), *family), id.clone());
                rests.push(Arc::as_ptr(ip));
            }
            continue;
        }
        match choice::choose(draft, &intent, &edited) {
            Ok(Picks { picks, remade }) => {
                for ip in &remade {
                    delete(draft, ip, BTreeSet::from([intent.uid.clone()]));
                }
                let mut rest = true;
                for pick in &picks {
                    rest &= adopt(draft, &intent, pick, &mut edited, &first);
                }
                if rest {
                    memory.note(draft, &intent, &picks);
                }
                let all = picks.into_iter().map(|pick| ((uid.clone(), pick.family), pick.id));
                chosen.extend(all);
            }
            Err(Choice::Wait(wait)) => draft.wait(&uid, wait),
            Err(Choice::Refuse(finding)) => draft.refuse(&uid, *finding),
        }
    }
    rests.sort_unstable();
    release(draft, &chosen, &mut edited, &rests);
    for (id, edit) in edited {
        put(draft, &chosen, id, edit);
    }
    chosen
}

/// Edits a public IP as a Service asks. A public IP that is so already, as most are, is not edited.
/// Whether that is all there is to do, as long as neither changes.
fn adopt(
    draft: &mut Draft<'_>,
    intent: &Intent,
    pick: &Pick,
    edited: &mut BTreeMap<ResourceId, Edited>,
    first: &FirstHolders,
) -> bool {
    let &Pick { family, ref id, ref there } = pick;
    let others = there.is_some() || edited.contains_key(id);
    if others && !is_claimed(draft.policy, draft.cases[&intent.uid].service) {
        // A name on the tag of a public IP that is there must not outlive a Service that nobody
        // waits for when it is deleted.
        draft.wait(&intent.uid, Wait::Finalizer);
        return false;
    }
    let intent = &*choice::asked_of(draft, intent, (family, id), edited);
    let before = there.as_ref().map(|(ip, _)| ip);
    let past = edited.get(id).map(|edit| &edit.after).or(before.map(AsRef::as_ref));
    let mut after = past.cloned().unwrap_or_else(|| fresh(draft, intent, family, id));
    let foreign = there.as_ref().is_some_and(|(_, whose)| *whose == Whose::Foreign);
    let is_first = !foreign && first.is_first(draft, intent, family, &after);
    if !foreign {
        ensure(draft, intent, family, &mut after, is_first);
        note_set(draft, intent, before.map(AsRef::as_ref), &after);
    }
    let same = before.is_some() && past == Some(&after);
    let ignored = wishes::ignored(intent, &after);
    // Whoever holds it first has all it wants on it: so has who comes later.
    let rests = is_first && ignored.is_empty() && !edited.contains_key(id);
    if !ignored.is_empty() {
        draft.note(&intent.uid, ignored);
    }
    if same && after.provisioning != Provisioning::Failed {
        return rests;
    }
    let mut causes = edited.remove(id).map(|edit| edit.causes).unwrap_or_default();
    causes.extend((!same).then(|| intent.uid.clone()));
    edited.insert(id.clone(), Edited { before: before.cloned(), after, causes });
    false
}

/// Notes the tags that a Service's annotation sets.
fn note_set(draft: &mut Draft<'_>, intent: &Intent, before: Option<&PublicIp>, after: &PublicIp) {
    for (key, value) in &intent.public_ip_options.tags {
        let has = |ip: &PublicIp| {
            let tags = ip.tags.as_ref();
            tags.and_then(|tags| model::azure::tag(tags, key)) == Some(&**value)
        };
        if has(after) && !before.is_some_and(has) {
            draft.steps.tags.add(&after.id, key);
        }
    }
}

fn fresh(draft: &Draft<'_>, intent: &Intent, family: Family, id: &ResourceId) -> PublicIp {
    let policy = draft.policy;
    let standard = policy.sku != BalancerSku::Basic;
    let zones = draft.world.azure.zones.known().cloned().unwrap_or_default();
    let prefix = match intent.public_ips.get(&family) {
        Some(PublicIpIntent::Managed { prefix }) if standard => prefix.clone(),
        _ => None,
    };
    PublicIp {
        id: id.clone(),
        etag: None,
        location: Arc::clone(&policy.location),
        edge_zone: policy.edge_zone.clone(),
        tags: Some(tags::of_public_ip(policy, &intent.name)),
        sku: if standard { Sku::Standard } else { Sku::Basic },
        zones: if standard && policy.edge_zone.is_none() { zones } else { Vec::new() },
        family,
        allocation: allocation(standard, family),
        address: None,
        ip_tags: intent.public_ip_options.ip_tags.clone().unwrap_or_default(),
        dns_label: None,
        fqdn: None,
        prefix,
        user: None,
        provisioning: Provisioning::Succeeded,
        rest: Rest::default(),
    }
}

/// Basic IPv6 addresses can only be dynamic.
fn allocation(standard: bool, family: Family) -> Allocation {
    if standard || family == Family::V4 { Allocation::Static } else { Allocation::Dynamic }
}

fn ensure(draft: &Draft<'_>, intent: &Intent, family: Family, ip: &mut PublicIp, is_first: bool) {
    let policy = draft.policy;
    let standard = policy.sku != BalancerSku::Basic;
    let managed = tags::is_managed(ip);
    if managed && !tags::names(ip, &intent.name) {
        let key = intent.name.to_string();
        let list = [tags::users(ip), vec![key.as_str()]].concat().join(",");
        tags::set_users(ip, &list);
    }
    let basic = ip.sku == Sku::Basic;
    if standard && basic && upgrade::is_free(ip) {
        ip.sku = Sku::Standard;
    }
    if is_first {
        let (whose, set) = (draft.own.public_ip(ip), draft.set_tags(&ip.id));
        wishes::write(policy, intent, ip, whose, set);
    }
    ip.family = family;
    if ip.allocation != allocation(standard, family) && (managed || (standard && basic)) {
        ip.allocation = allocation(standard, family);
    }
}

/// Takes Services that no longer use a public IP off its tag; deletes it after the last one. Those
/// that rest are their only Service's still.
fn release(
    draft: &mut Draft<'_>,
    chosen: &Chosen,
    edited: &mut BTreeMap<ResourceId, Edited>,
    rests: &[*const PublicIp],
) {
    let groups: Vec<Group> = draft.world.azure.public_ips.keys().cloned().collect();
    for group in groups {
        let Some(known) = draft.public_ips(&group) else { continue };
        for ip in known.values() {
            if rests.binary_search(&Arc::as_ptr(ip)).is_ok() {
                continue;
            }
            if !is_settled(draft, ip, chosen) && draft.own.public_ip(ip) == Whose::Ours {
                release_one(draft, ip, chosen, edited);
            }
        }
    }
}

/// Whether all that a public IP's tag names go on using it, and nothing has to be repaired.
fn is_settled(draft: &Draft<'_>, ip: &PublicIp, chosen: &Chosen) -> bool {
    let holds = |user| matches!(claim(draft, user, ip, chosen), Claim::Holds);
    ip.provisioning != Provisioning::Failed && tags::each_user(ip).all(holds)
}

fn release_one(
    draft: &mut Draft<'_>,
    ip: &Arc<PublicIp>,
    chosen: &Chosen,
    edited: &mut BTreeMap<ResourceId, Edited>,
) {
    let mut kept = Vec::new();
    let mut causes = BTreeSet::new();
    let unknown = is_under_unknown(draft, &ip.id);
    for user in tags::users(ip) {
        let claim = if unknown { Claim::Holds } else { claim(draft, user, ip, chosen) };
        match claim {
            Claim::Holds => kept.push(user),
            Claim::Ended(uid) => {
                causes.extend(uid.clone());
                if let Some(case) = uid.and_then(|uid| draft.cases.get_mut(&uid)) {
                    case.has_traces = true;
                }
            }
        }
    }
    let known = |user: &&str| draft.by_user(user).is_some();
    let all = kept.len() == tags::users(ip).len();
    let stands = || draft.views().any(|balancer| !balancer.frontends_on(&ip.id).is_empty());
    let needed = (all && kept.iter().any(known)) || stands();
    let failed = ip.provisioning == Provisioning::Failed;
    // Whoever stands on it may have left it unedited.
    let alone = !edited.contains_key(&ip.id) && chosen.values().all(|id| *id != ip.id);
    if needed && failed && alone && (all || kept.is_empty()) {
        // Azure refuses every write of a load balancer that it is on, whichever Service that write
        // is for: it is written as it is, also where its Service is set aside, gone or leaving.
        edited.insert(ip.id.clone(), unedited(ip));
        return;
    }
    if all {
        return;
    }
    if kept.is_empty() && alone {
        delete(draft, ip, causes);
        return;
    }
    if kept.is_empty() && !edited.contains_key(&ip.id) {
        // A Service that has chosen it is named once it has its finalizer. Until then the last one
        // that leaves stays named: an empty tag says that an operator has taken the public IP back.
        return;
    }
    let label_left = tags::is_label_left(ip, &kept);
    let edit = edited.entry(ip.id.clone()).or_insert_with(|| unedited(ip));
    // A Service that joined in this plan is already on the edited tag: only leavers are taken off.
    let joined = tags::each_user(&edit.after).filter(|name| !tags::users(ip).contains(name));
    let list = kept.into_iter().chain(joined).collect::<Vec<_>>().join(",");
    tags::set_users(&mut edit.after, &list);
    if label_left {
        tags::clear_dns_owner(&mut edit.after);
    }
    edit.causes.extend(causes);
}

/// Whether a frontend that no Service known here has, and that stays therefore, is on a public IP:
/// of one that had the same name before, say, whose finalizer somebody took off. Who is named on
/// the public IP cannot wait for what nobody is going to take away.
fn is_under_unknown(draft: &Draft<'_>, id: &ResourceId) -> bool {
    let mut on = draft.views().flat_map(|balancer| balancer.frontends_on(id));
    on.any(|f| draft.whose(&f.name) == Owner::Foreign)
}

fn unedited(ip: &Arc<PublicIp>) -> Edited {
    Edited { before: Some(Arc::clone(ip)), after: PublicIp::clone(ip), causes: BTreeSet::new() }
}

/// Whether a Service named on a public IP's tag still uses it.
enum Claim {
    /// It does, or we cannot tell.
    Holds,
    /// It does not.
    Ended(Option<ServiceUid>),
}

fn claim(draft: &Draft<'_>, user: &str, ip: &PublicIp, chosen: &Chosen) -> Claim {
    let Some(uid) = draft.by_user(user) else {
        let gone = draft.is_abandoned(user);
        return if gone { Claim::Ended(None) } else { Claim::Holds };
    };
    let case = &draft.cases[uid];
    let wanted = || Family::ALL.iter().any(|f| chosen.get(&(uid.clone(), *f)) == Some(&ip.id));
    match &case.stance {
        Stance::Frozen(_) | Stance::Container(_) => Claim::Holds,
        // Its own public IP cannot be chosen yet: what it has stays until it can.
        Stance::Wanted(intent)
            if intent.exposure == Exposure::Public
                && !Family::ALL.iter().any(|f| chosen.contains_key(&(uid.clone(), *f))) =>
        {
            Claim::Holds
        }
        Stance::Wanted(_) if wanted() => Claim::Holds,
        Stance::Wanted(_) | Stance::Leaving => Claim::Ended(Some(uid.clone())),
    }
}

fn delete(draft: &mut Draft<'_>, ip: &Arc<PublicIp>, causes: BTreeSet<ServiceUid>) {
    let mut waits = Vec::new();
    for balancer in draft.views() {
        if !balancer.frontends_on(&ip.id).is_empty() {
            waits.push(Wait::Resource { id: balancer.id.clone(), until: Until::Released });
        }
    }
    waits.extend(still_open(draft, ip));
    // A load balancer may be about to stand on it, or a rule to lead to it, by a write under way.
    let group = draft.policy.security_group_id();
    let opening = causes.is_empty() && draft.may_open(&group, None);
    for (id, write) in &draft.world.in_flight {
        let opens = opening && *id == group;
        if *id != ip.id && (opens || !write.causes.is_disjoint(&causes)) {
            waits.push(Wait::Resource { id: id.clone(), until: Until::Released });
        }
    }
    draft.change(Change::delete(Resource::PublicIp(Arc::clone(ip)), causes, waits));
}

/// A security rule of ours that leads to its address goes first: Azure may give the address to
/// somebody else.
fn still_open(draft: &Draft<'_>, ip: &PublicIp) -> Option<Wait> {
    let group = draft.world.azure.security_group.known()?.as_ref()?;
    let planned = !is_idle(draft) && !draft.policy.security_group_name.is_empty();
    let ledger = draft.world.kubernetes.ledger.known();
    let closes = |a| ledger.is_none_or(|ledger| !ledger.is_anothers(a));
    let leads = |a| security_group::leads_to(group, a) && closes(a);
    let open = planned && ip.address.is_some_and(leads);
    open.then(|| Wait::Resource { id: group.id.clone(), until: Until::Released })
}

/// Whether a public IP's write need not wait for finalizers of those that it is for: nothing is
/// written for a Service before it has them.
fn may_put(draft: &mut Draft<'_>, edit: &Edited) -> bool {
    let wants = |uid: &ServiceUid| draft.cases[uid].intent().is_some();
    if edit.causes.is_empty() || !edit.causes.iter().all(wants) {
        return true;
    }
    let claimed = |uid: &ServiceUid| is_claimed(draft.policy, draft.cases[uid].service);
    edit.causes.iter().all(claimed)
        && (edit.before.is_some() || may_make_ip(draft, edit.causes.iter()))
}

fn put(draft: &mut Draft<'_>, chosen: &Chosen, id: ResourceId, mut edit: Edited) {
    let unchanged = edit.before.as_deref() == Some(&edit.after);
    let failed = edit.after.provisioning == Provisioning::Failed;
    if unchanged && !failed {
        return;
    }
    let ours = edit.before.as_ref().is_none_or(|ip| draft.own.public_ip(ip) == Whose::Ours);
    if ours && tags::is_managed(&edit.after) {
        draft.own.sign(&id, &draft.policy.group, &mut edit.after.tags);
    }
    let mut waits = Vec::new();
    if !may_put(draft, &edit) {
        waits.push(Wait::Finalizer);
    }
    let leaves =
        |ip: &Arc<PublicIp>| !tags::users(ip).is_empty() && tags::users(&edit.after).is_empty();
    if let Some(ip) = edit.before.as_ref().filter(|ip| leaves(ip)) {
        waits.extend(still_open(draft, ip));
    }
    if edit.before.is_none() && edit.after.family == Family::V6 {
        waits.extend(elder(draft, chosen, &edit.causes));
    }
    let before = edit.before.map(Resource::PublicIp);
    let after = Resource::PublicIp(Arc::new(edit.after));
    draft.change(Change { target: id, ..Change::put(before, after, edit.causes, waits) });
}

/// A dual-stack Service's IPv6 address is asked for after its IPv4 address: the two come in a
/// known order, and a refused first one leaves no second one behind. One that is to be made again
/// has yet to come.
fn elder(draft: &Draft<'_>, chosen: &Chosen, causes: &BTreeSet<ServiceUid>) -> Option<Wait> {
    let keys = || causes.iter().map(|uid| (uid.clone(), Family::V4));
    let remade = keys().find_map(|key| draft.claims.recreated.get(&key));
    let first = remade.or_else(|| keys().find_map(|key| chosen.get(&key)))?;
    if draft.world.in_flight.get(first).is_some_and(|write| write.goes) {
        return Some(Wait::Writing(first.clone()));
    }
    let until = if remade.is_some() { Until::Gone } else { Until::Ready };
    let missing = remade.is_some() || draft.public_ip(first).is_none();
    missing.then(|| Wait::Resource { id: first.clone(), until })
}

#[cfg(test)]
mod tests;
