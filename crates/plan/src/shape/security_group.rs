//! The security group: our rules are a set that follows from the Services' addresses.
//!
//! A destination in a rule of ours is this cluster's when the ledger has it. It is kept exactly as
//! long as a Service wants it; others (another cluster's, say) stay where they are.

mod kept;
mod ledger;
mod settled;
pub(crate) mod standing;
#[cfg(test)]
mod tests;
mod wanted;

use crate::ask::SecurityRules;
use crate::claim::choice::Chosen;
use crate::claim::placement::Placement;
use crate::claim::security_group::{WantedRule, room, share};
use crate::draft::{Case, Draft};
use crate::order::moving;
use crate::own::name::{folded, is_managed};
use crate::own::{is_claimed, part, tags};
use crate::standing::security_group::is_idle;
use crate::verdict::Refusal;
use kept::{Kept, kept};
use ledger::Book;
pub(crate) use ledger::has_open;
use model::azure::{Access, Provisioning, Rest, SecurityGroup, SecurityRule};
use model::plan::{Change, Resource};
use model::report::Wait;
use model::world::{Fact, Need};
use model::{ResourceId, ServiceUid};
pub(crate) use settled::Memory;
pub(crate) use standing::Standings;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// What the security group is about to be.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    /// Addresses that are open in Azure and are to be closed: their frontends wait.
    pub closing: BTreeSet<IpAddr>,
}

/// Drafts the security group.
pub(crate) fn plan(
    draft: &mut Draft<'_>,
    memory: &mut Memory,
    placement: &Placement,
    chosen: &Chosen,
    standings: &Standings<'_>,
) -> Opening {
    if draft.policy.security_group_name.is_empty() || is_idle(draft) {
        return Opening::default();
    }
    let group = match &draft.world.azure.security_group {
        Fact::Known(Some(group)) => Arc::clone(group),
        Fact::Known(None) | Fact::Unreadable(_) => return Opening::default(),
        Fact::Unknown => {
            draft.steps.needs.insert(Need::SecurityGroup);
            return Opening::default();
        }
    };
    let Some(ledger) = ledger::read(draft) else {
        // What may be ours keeps its frontend.
        return Opening { closing: addresses(&group.rules) };
    };
    let book = Book::open(draft, placement, ledger, &group);
    let wanted = memory.wanted.all(draft, placement, standings);
    let mut kept = kept(draft, placement);
    keep_moving(&mut kept, draft, &book, (placement, chosen), standings);
    let own = draft.cases.values().any(|c| c.intent().is_some());
    let marks = own.then(|| tags::shared(group.tags.as_ref(), draft.policy));
    let marks = marks.unwrap_or_else(|| group.tags.clone());
    let settled = marks == group.tags && memory.is_settled(draft, &group, &book, (&wanted, &kept));
    if settled && !cfg!(debug_assertions) {
        return Opening::default();
    }
    let after = SecurityGroup { tags: marks, ..SecurityGroup::clone(&group) };
    let opening = edit(draft, &group, after, book, (wanted.to_vec(), &kept));
    let idle = |draft: &Draft<'_>| {
        draft.steps.ledger.is_none() && !draft.steps.changes.contains_key(&group.id)
    };
    debug_assert!(!settled || (opening.closing.is_empty() && idle(draft)), "nothing is to be done");
    opening
}

/// Makes the group what it is to be, as far as the ledger lets it.
fn edit(
    draft: &mut Draft<'_>,
    group: &Arc<SecurityGroup>,
    mut after: SecurityGroup,
    mut book: Book<'_>,
    (wanted, kept): (Vec<WantedRule>, &Kept),
) -> Opening {
    let mut causes = close(&mut after, &wanted, &book, kept, draft);
    let wanted = share::admit(draft, &after, wanted);
    if !book.has_all(draft, &wanted) {
        // What cannot be opened at all is refused before it is recorded.
        open(draft, group, &mut after.clone(), wanted.clone());
    }
    let wanted = book.admit(draft, wanted, group);
    causes.extend(open(draft, group, &mut after, wanted));
    causes.extend(kept.follow(group, &mut after, &mut book));
    let is_bare = |rule: &SecurityRule| rule.destinations.is_empty();
    let was_bare =
        |rule: &SecurityRule| group.rules.iter().any(|r| r.name == rule.name && is_bare(r));
    after.rules.retain(|rule| !is_bare(rule) || was_bare(rule));
    let closing = closing(group, &after);
    // What is being recorded is about to join the same write.
    let others = usize::from(book.lacks());
    // What failed may not be in force, though it reads as it should.
    let failed = group.provisioning == Provisioning::Failed && book.knows_any();
    draft.steps.ledger = book.write(draft, group, &after).map(Arc::new);
    if **group != after || failed {
        let before = Some(Resource::SecurityGroup(Arc::clone(group)));
        let after = Resource::SecurityGroup(Arc::new(after));
        let waits = (others > 0).then_some(Wait::Gathering { others }).into_iter().collect();
        draft.change(Change::put(before, after, causes, waits));
    }
    Opening { closing }
}

impl Draft<'_> {
    /// Whether a write of the security group is in flight that may open addresses of a Service, or
    /// of one that is not known any more: what it opens has to be seen and closed before they go.
    pub(crate) fn may_open(&self, group: &ResourceId, uid: Option<&ServiceUid>) -> bool {
        let Some(write) = self.world.in_flight.get(group) else { return false };
        uid.map_or(!write.causes.is_empty(), |uid| write.causes.contains(uid))
    }
}

fn addresses(rules: &[SecurityRule]) -> BTreeSet<IpAddr> {
    let managed = rules.iter().filter(|r| is_managed(r) && r.access == Access::Allow);
    managed.flat_map(|r| &r.destinations).filter_map(|d| d.parse().ok()).collect()
}

/// Whether a rule of ours leads to an address.
pub(crate) fn leads_to(group: &SecurityGroup, address: IpAddr) -> bool {
    addresses(&group.rules).contains(&address)
}

fn closing(before: &SecurityGroup, after: &SecurityGroup) -> BTreeSet<IpAddr> {
    let after = addresses(&after.rules);
    addresses(&before.rules).into_iter().filter(|a| !after.contains(a)).collect()
}

/// Services that are between two load balancers, or two frontends of one, stay open at their
/// destinations: closing them would only make the gap longer. Additional addresses lead to what
/// does not change at all. An address that comes from another Service is closed before.
fn keep_moving(
    kept: &mut Kept,
    draft: &Draft<'_>,
    book: &Book<'_>,
    (placement, chosen): (&Placement, &Chosen),
    standings: &Standings<'_>,
) {
    for case in draft.cases.values() {
        let Some(intent) = case.intent() else { continue };
        let Some(standing) = standings.get(&intent.uid) else { continue };
        let missing = standing::missing(intent, standing);
        let coming = moving::coming(draft, placement, chosen, intent, &missing);
        let is_told = |address: &IpAddr| case.service.told().any(|told| told == *address);
        let is_own = |a: &IpAddr| is_told(a) || book.is_of(&a.to_string(), &intent.uid);
        let mut all: Vec<IpAddr> = coming.into_values().filter(is_own).collect();
        let written = intent.access.rules == SecurityRules::Written;
        if standing.is_empty() && written {
            all.extend(intent.additional.iter().filter(|a| is_told(a)));
        }
        if !all.is_empty() {
            kept.keep_ports(case.service, all);
        }
    }
}

/// Takes destinations of ours that nobody wants out of our rules, and rules that have none left
/// out of the group. Returns the Services on whose account that is.
fn close(
    after: &mut SecurityGroup,
    wanted: &[WantedRule],
    book: &Book<'_>,
    kept: &Kept,
    draft: &Draft<'_>,
) -> BTreeSet<ServiceUid> {
    let by_name: BTreeMap<String, &WantedRule> =
        wanted.iter().map(|w| (folded(&w.name), w)).collect();
    let mut closed: BTreeSet<Arc<str>> = BTreeSet::new();
    after.rules.retain_mut(|rule| {
        if !is_managed(rule) || rule.destinations.is_empty() {
            return true;
        }
        let wanted = by_name.get(&folded(&rule.name));
        let before = rule.clone();
        rule.destinations.retain(|d| {
            let stays = !book.is_ours(d)
                || kept.has(&before, d)
                || wanted.is_some_and(|w| w.destinations.contains(d));
            if !stays {
                closed.insert(Arc::clone(d));
            }
            stays
        });
        // One that is about to get others goes on as the same rule.
        wanted.is_some() || !rule.destinations.is_empty()
    });
    // Kubernetes empties the status of a Service that wants no load balancer any more: the ledger
    // knows whose an address is. A Service that asks and does not carry our finalizer yet was
    // recorded before its last release: what it has now stays open.
    let recorded = book.services(&closed);
    let had = |case: &&Case<'_>| {
        let is_new = case.intent().is_some() && !is_claimed(draft.policy, case.service);
        let mut told = case.service.ingress.iter().filter_map(|i| i.ip.as_ref());
        !is_new && (told.any(|ip| closed.contains(ip)) || recorded.contains(&case.service.uid))
    };
    draft.cases.values().filter(had).map(|case| case.service.uid.clone()).collect()
}

/// Adds what is wanted. Returns the Services on whose account rules changed.
fn open(
    draft: &mut Draft<'_>,
    before: &SecurityGroup,
    after: &mut SecurityGroup,
    wanted: Vec<WantedRule>,
) -> BTreeSet<ServiceUid> {
    let mut causes = BTreeSet::new();
    for WantedRule { shape, name, destinations, causes: on_account } in wanted {
        let at = part::place(&after.rules, &name);
        let past = at.map(|at| after.rules[at].clone());
        let refuse = |draft: &mut Draft<'_>, refusal: &Refusal| {
            on_account.keys().for_each(|uid| draft.refuse(uid, refusal.clone()));
        };
        let priority = match room::priority((before, after), past.as_ref(), shape.access) {
            Ok(priority) => priority,
            Err(refusal) => {
                refuse(draft, &refusal);
                continue;
            }
        };
        let mut all = destinations;
        all.extend(past.iter().flat_map(|r| r.destinations.iter().cloned()));
        let rule = SecurityRule {
            name: past.as_ref().map_or_else(|| Arc::from(name), |r| Arc::clone(&r.name)),
            access: shape.access,
            direction: Arc::from("Inbound"),
            priority,
            protocol: Arc::from(shape.protocol),
            sources: shape.sources,
            source_ports: BTreeSet::from([Arc::from("*")]),
            destinations: all,
            ports: shape.ports,
            rest: past.as_ref().map(|r| r.rest.clone()).unwrap_or_else(Rest::default),
        };
        if let Some(refusal) = room::obstacle(after, past.as_ref(), &rule) {
            refuse(draft, &refusal);
            continue;
        }
        if past.as_ref() != Some(&rule) {
            // Who joins a rule that stands changes it for nobody else.
            let stands = past.as_ref().is_some_and(|past| {
                past == &SecurityRule { destinations: past.destinations.clone(), ..rule.clone() }
            });
            let there = past.as_ref().map(|past| &past.destinations);
            let joins = |wanted: &BTreeSet<Arc<str>>| {
                !stands || there.is_none_or(|there| !wanted.is_subset(there))
            };
            let joined = on_account.into_iter().filter(|(_, wanted)| joins(wanted));
            causes.extend(joined.map(|(uid, _)| uid));
            match at {
                Some(at) => after.rules[at] = rule,
                None => after.rules.push(rule),
            }
        }
    }
    causes
}
