//! Plans load balancers whose backends are nodes.

use crate::Beside;
use crate::ask::hold::asks_first;
use crate::ask::readings::Readings;
use crate::claim;
use crate::claim::{admission, other_layout, placement, unread};
use crate::draft::{Draft, Stance, UNREADABLE};
use crate::order::upgrade;
use crate::own::name;
use crate::own::other_layout::{Leftover, is_suspected};
use crate::own::parts::Index;
use crate::shape::{balancer, member, memory, private_link, public_ip, security_group, way_out};
use crate::standing;
use crate::tell::kubernetes;
use crate::verdict::Refusal;
use model::azure::{FrontendAddress, LoadBalancer};
use model::policy::Layout;
use model::report::{Finding, Wait};
use model::world::{Fact, Need};
use model::{Group, Policy, ResourceId, ServiceUid, World};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Drafts after which what others are refused for is no longer found anew because a Service waits
/// for its owner. Each takes as long as a plan, and an owner can have as many of them as Services:
/// all of them ask for one port, each gets it once the one before waits, and would lose another.
const ROUNDS: usize = 8;

/// What is remembered between two plans under one policy.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    policy: Option<Policy>,
    /// Services of which nothing is left to be done.
    services: memory::Memory,
    group: security_group::Memory,
}

impl Memory {
    /// Begins a plan: forgets what another policy led to, and Services that are gone.
    fn renew(&mut self, draft: &Draft<'_>) {
        if self.policy.as_ref() != Some(draft.policy) {
            *self = Self { policy: Some(draft.policy.clone()), ..Self::default() };
        }
        self.services.renew(draft);
    }
}

/// Drafts everything. A Service that stands and is refused only when its new place is drafted would
/// have let go of its old one by then, and a new one would have got an address: all is drafted
/// again, with it refused from the start. What a Service would get that waits for its owner's
/// confirmation may have been what others were refused for: refusals are found anew without it.
pub(crate) fn settled<'w>(
    world: &'w World,
    policy: &'w Policy,
    (index, readings, memory): (&'w Index, &mut Readings, &mut Memory),
    beside: Beside<'_>,
) -> Draft<'w> {
    let mut held: BTreeMap<ServiceUid, Vec<Refusal>> = BTreeMap::new();
    let mut refused = held.clone();
    let mut rounds = 0;
    loop {
        let mut draft = Draft::new(world, policy, index);
        admission::admit_all(&mut draft, readings, beside.refused);
        for (uid, refusals) in &refused {
            refusals.iter().for_each(|refusal| draft.refuse(uid, refusal.clone()));
        }
        plan(&mut draft, memory, beside.left);
        let late = late(&draft, &refused);
        if !late.is_empty() {
            refused.extend(late);
            continue;
        }
        if draft.claims.interrupted.is_empty() {
            return draft;
        }
        let due = std::mem::take(&mut draft.claims.interrupted).into_iter();
        held.extend(due.map(|(uid, refusal)| (uid, vec![refusal])));
        rounds += 1;
        if rounds < ROUNDS {
            refused.clone_from(&held);
        } else {
            // What they are refused for may be what a Service would get that waits; they are looked
            // at anew once it has it or no longer wants it.
            refused.extend(contested(&draft));
            refused.extend(held.clone());
        }
    }
}

/// Services whose owners confirm interruptions, and that are refused what others have or get.
fn contested(draft: &Draft<'_>) -> BTreeMap<ServiceUid, Vec<Refusal>> {
    let asking = draft.cases.iter().filter(|(_, case)| asks_first(case.service));
    let refused = asking.filter(|(_, case)| !case.refusals.is_empty());
    refused.map(|(uid, case)| (uid.clone(), case.refusals.clone())).collect()
}

/// Services that were refused after others had been planned around them, or after something had
/// been drafted for them.
fn late(
    draft: &Draft<'_>,
    refused: &BTreeMap<ServiceUid, Vec<Refusal>>,
) -> BTreeMap<ServiceUid, Vec<Refusal>> {
    let kept = draft.cases.iter().filter(|(uid, case)| {
        matches!(case.stance, Stance::Frozen(_))
            && !draft.claims.judged.contains(*uid)
            && !refused.contains_key(*uid)
    });
    // Nodes were divided with a place for it, or others wait for the address in its status.
    let divided = matches!(draft.policy.layout, Layout::Several(_));
    let caused = |uid: &ServiceUid| draft.steps.changes.values().any(|c| c.causes.contains(uid));
    let reasoned = kept.filter(|(_, case)| !case.refusals.is_empty());
    let affected = reasoned.filter(|(uid, case)| {
        let mut all = draft.each_balancer();
        let of_it = |name: &str| name::is_of(name, &case.base);
        let holds = |b: &Arc<LoadBalancer>| {
            let frontends = b.frontends.iter().map(|f| &f.name);
            frontends.chain(b.rules.iter().map(|r| &r.name)).any(|name| of_it(name))
        };
        let awaited = divided || !case.service.ingress.is_empty();
        let seated = awaited && case.balancer.is_some();
        seated || caused(uid) || all.any(holds)
    });
    affected.map(|(uid, case)| (uid.clone(), case.refusals.clone())).collect()
}

/// Drafts everything, or what has to be read first.
fn plan(draft: &mut Draft<'_>, memory: &mut Memory, left: &[Leftover]) {
    if !draft.world.is_complete(&placement::kinds(draft)) || is_ledger_due(draft) {
        draft.wait_all(&Wait::Listing);
        return;
    }
    if let Fact::Unreadable(why) = &draft.world.azure.balancers {
        // Not to know them is not to know that there are none: nothing is planned.
        draft.wait_all(&Wait::Reading(Need::Balancers));
        let key = Need::Balancers.to_string();
        let rule = "LoadBalancersUnreadable";
        draft.told.findings.push(Finding::refusal(rule, &key, why, UNREADABLE));
        if !is_suspected(draft.world, draft.policy) {
            kubernetes::claim(draft);
        }
        return;
    }
    if !is_read(draft, left) {
        let needs = draft.steps.needs.clone();
        needs.into_iter().for_each(|need| draft.wait_all(&Wait::Reading(need)));
        // Read at the same time, but no Service waits for it.
        let members = member::needs(draft);
        draft.steps.needs.extend(members);
        if !left.is_empty() {
            other_layout::freeze(draft, left);
        } else if !is_suspected(draft.world, draft.policy) {
            kubernetes::claim(draft);
        }
        return;
    }
    if !left.is_empty() {
        other_layout::freeze(draft, left);
        return;
    }
    unread::hold(draft);
    claim::settle(draft);
    let basics = claim::upgrade::settle(draft);
    upgrade::plan(draft, &basics);
    let replaced: BTreeSet<ResourceId> = draft.steps.changes.keys().cloned().collect();
    memory.renew(draft);
    let chosen = public_ip::plan(draft, &mut memory.services);
    let kept = draft.cases.iter().filter(|(_, case)| matches!(case.stance, Stance::Frozen(_)));
    draft.claims.judged = kept.map(|(uid, _)| uid.clone()).collect();
    let placement = placement::place(draft, &chosen);
    draft.told.draining = Some(BTreeSet::new());
    let standings = security_group::standing::all(draft, &memory.services, &placement, &chosen);
    let opening = security_group::plan(draft, &mut memory.group, &placement, &chosen, &standings);
    let links = claim::private_link::settle(draft, &placement);
    private_link::plan(draft, &links);
    for (id, seats) in placement.balancers.iter().filter(|(id, _)| !replaced.contains(*id)) {
        balancer::plan(draft, &mut memory.services, (id, seats), &chosen, &opening.closing);
    }
    let members = member::plan(draft, &placement);
    let way_out = way_out::note(draft, &placement);
    claim::confirm::settle(draft, &placement, &chosen);
    kubernetes::claim(draft);
    kubernetes::conclude(draft, &placement, &chosen, &standings);
    kubernetes::shed(draft);
    draft.steps.needs.extend(members);
    draft.steps.needs.extend(way_out);
}

/// Whether the ledger has not been read yet. Where there is no security group there is none.
fn is_ledger_due(draft: &Draft<'_>) -> bool {
    let grouped = !draft.policy.security_group_name.is_empty();
    grouped && draft.world.kubernetes.ledger == Fact::Unknown
}

/// Whether everything is known that any Service needs; what is not becomes a need. Resource groups
/// that Services name are not among it: who names them waits for them alone ([`unread::hold`]).
fn is_read(draft: &mut Draft<'_>, left: &[Leftover]) -> bool {
    let groups = frontend_groups(draft).into_iter();
    let ips = groups.chain([draft.policy.group.clone()]).map(Need::PublicIps);
    let grouped = !draft.policy.security_group_name.is_empty();
    let asked = [Need::Balancers, Need::Zones].into_iter().chain(ips);
    let asked = asked.chain(grouped.then_some(Need::SecurityGroup));
    let mut needs: BTreeSet<Need> =
        asked.filter(|need| draft.world.azure.is_unread(need)).collect();
    needs.extend(standing::private_link::needs(draft));
    needs.extend(placement::need(draft));
    needs.extend(member::doubts(draft));
    needs.extend(claim::upgrade::needs(draft));
    needs.extend(other_layout::needs(draft, left));
    draft.steps.needs.extend(needs);
    draft.steps.needs.is_empty()
}

/// Resource groups of public IPs that our Services' frontends stand on.
fn frontend_groups(draft: &Draft<'_>) -> BTreeSet<Group> {
    let mut groups: BTreeSet<Group> = BTreeSet::new();
    for frontend in draft.each_balancer().flat_map(|b| &b.frontends) {
        let FrontendAddress::Public(id) = &frontend.address else { continue };
        // Nearly all are of one.
        if !groups.iter().any(|group| id.is_in(group)) && draft.owner_of(&frontend.name).is_some() {
            groups.extend(id.group());
        }
    }
    groups
}

#[cfg(test)]
mod tests;
