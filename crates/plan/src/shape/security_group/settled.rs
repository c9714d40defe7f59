//! Whether the group and the ledger are as Services want them, as they are in most plans.

use super::kept::Kept;
use super::ledger::Book;
use super::wanted::Wanted;
use crate::claim::security_group::WantedRule;
use crate::draft::Draft;
use crate::own::name::{folded, is_managed};
use model::azure::{Provisioning, SecurityGroup, SecurityRule};
use model::ledger::Ledger;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is remembered of the group between two plans.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// What Services wanted.
    pub wanted: Wanted,
    settled: Option<Settled>,
}

/// What nothing was to be done about while nothing had to be kept.
#[derive(Debug)]
struct Settled {
    group: Arc<SecurityGroup>,
    ledger: Arc<Ledger>,
    wanted: Arc<[WantedRule]>,
}

impl Memory {
    /// Whether nothing is to be opened, closed, recorded or forgotten.
    pub(super) fn is_settled(
        &mut self,
        draft: &Draft<'_>,
        group: &Arc<SecurityGroup>,
        book: &Book<'_>,
        (wanted, kept): (&Arc<[WantedRule]>, &Kept),
    ) -> bool {
        let ledger = draft.world.kubernetes.ledger.known().filter(|_| kept.is_empty());
        let Some(ledger) = ledger else { return is_settled(draft, group, book, (wanted, kept)) };
        let past = self.settled.take().filter(|past| {
            Arc::ptr_eq(&past.group, group)
                && Arc::ptr_eq(&past.ledger, ledger)
                && Arc::ptr_eq(&past.wanted, wanted)
        });
        let settled = past.is_some() || is_settled(draft, group, book, (wanted, kept));
        let now = || Settled {
            group: Arc::clone(group),
            ledger: Arc::clone(ledger),
            wanted: Arc::clone(wanted),
        };
        self.settled = settled.then(now);
        settled
    }
}

/// Whether nothing is to be opened, closed, recorded or forgotten. Where that is not seen at once
/// it is worked out.
fn is_settled(
    draft: &Draft<'_>,
    group: &SecurityGroup,
    book: &Book<'_>,
    (wanted, kept): (&[WantedRule], &Kept),
) -> bool {
    let named = wanted.iter().map(|wanted| (folded(&wanted.name), wanted));
    let mut missing: BTreeMap<String, &WantedRule> = named.collect();
    let mut stands = |rule: &SecurityRule| {
        let stays =
            |destination: &Arc<str>| !book.is_ours(destination) || kept.has(rule, destination);
        match missing.remove(&folded(&rule.name)) {
            Some(wanted) => {
                let mut more = rule.destinations.difference(&wanted.destinations);
                is_as_wanted(rule, wanted) && more.all(stays)
            }
            None => !is_managed(rule) || rule.destinations.iter().all(stays),
        }
    };
    group.provisioning != Provisioning::Failed
        && kept.rests(group)
        && group.rules.iter().all(&mut stands)
        && missing.is_empty()
        && book.is_exact(draft, wanted, group)
}

/// Whether a rule of the group does what a wanted one is to do, at all of its destinations.
fn is_as_wanted(rule: &SecurityRule, wanted: &WantedRule) -> bool {
    let SecurityRule {
        name: _,
        access,
        direction,
        priority: _,
        protocol,
        sources,
        source_ports,
        destinations,
        ports,
        rest: _,
    } = rule;
    let WantedRule { shape, name: _, destinations: asked, causes: _ } = wanted;
    is_managed(rule)
        && *access == shape.access
        && **direction == *"Inbound"
        && **protocol == *shape.protocol
        && *sources == shape.sources
        && source_ports.iter().map(|port| &**port).eq(["*"])
        && *ports == shape.ports
        && asked.is_subset(destinations)
}
