//! What is recorded before it is opened, and what of the group is ours ([`model::ledger`]).
//!
//! A destination is opened once the ledger has it with its holder. What is not recorded yet is
//! left out of the write of the group, which waits a little for it: one write opens all of it. A
//! destination of ours that no Service wants is closed, and leaves the ledger once the group is
//! read without it and no write that opens it can still be on its way.

use crate::claim::placement::Placement;
use crate::claim::security_group::{WantedRule, holder};
use crate::draft::Draft;
use crate::own::name::is_managed;
use crate::own::{self, Whose, part};
use crate::standing::frontend;
use model::ServiceUid;
use model::azure::{Provisioning, PublicIp, SecurityGroup, SecurityRule};
use model::ledger::{Destinations, Holder, Ledger, LedgerWrite};
use model::report::{Finding, Wait};
use model::world::Fact;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// What the ledger says, and what is to be recorded.
pub(super) struct Book<'d> {
    ledger: &'d Ledger,
    /// Destinations of the group that are ours.
    known: Cow<'d, Destinations>,
    /// What is wanted, or kept.
    needed: Destinations,
}

/// The ledger; `None` where it cannot be read. Then nothing is opened or closed.
pub(super) fn read<'d>(draft: &mut Draft<'d>) -> Option<&'d Ledger> {
    match &draft.world.kubernetes.ledger {
        Fact::Known(ledger) => Some(ledger),
        Fact::Unknown => None,
        Fact::Unreadable(why) => {
            let message = "the ledger of open destinations cannot be read ({value}); correct it, \
                           or delete it: it is then made again from what stands";
            let finding = Finding::refusal("LedgerUnreadable", "ConfigMap", why, message);
            draft.told.findings.push(finding);
            let wants = |uid: &&ServiceUid| draft.cases[*uid].intent().is_some();
            let uids: Vec<ServiceUid> = draft.cases.keys().filter(wants).cloned().collect();
            uids.iter().for_each(|uid| draft.wait(uid, Wait::Ledger));
            None
        }
    }
}

impl<'d> Book<'d> {
    pub fn open(
        draft: &Draft<'_>,
        placement: &Placement,
        ledger: &'d Ledger,
        group: &SecurityGroup,
    ) -> Self {
        let mut known = Cow::Borrowed(&ledger.destinations);
        if ledger.is_absent() {
            let open = destinations(group);
            for (address, holders) in cluster(draft, placement) {
                if open.contains(&address) {
                    known.to_mut().entry(address).or_default().extend(holders);
                }
            }
        }
        Self { ledger, known, needed: Destinations::new() }
    }

    /// Whether a destination of a rule of ours is this cluster's.
    pub fn is_ours(&self, destination: &str) -> bool {
        destination.parse().is_ok_and(|address| self.known.contains_key(&address))
    }

    /// Whether a destination of a rule of ours is recorded on a Service's account.
    pub fn is_of(&self, destination: &str, uid: &ServiceUid) -> bool {
        let holders = destination.parse().ok().and_then(|address: IpAddr| self.known.get(&address));
        holders.is_some_and(|holders| holders.contains(&Holder::Service(uid.clone())))
    }

    /// The Services that are recorded as holders of any of these destinations.
    pub fn services(&self, destinations: &BTreeSet<Arc<str>>) -> BTreeSet<&ServiceUid> {
        let addresses = destinations.iter().filter_map(|d| d.parse::<IpAddr>().ok());
        let holders = addresses.filter_map(|address| self.known.get(&address)).flatten();
        let services = holders.filter_map(|holder| match holder {
            Holder::Service(uid) => Some(uid),
            Holder::Node => None,
        });
        services.collect()
    }

    /// Whether anything of the group is this cluster's, or was until it is known to be closed.
    pub fn knows_any(&self) -> bool {
        !self.known.is_empty()
    }

    /// Whether an address is recorded on somebody's account.
    fn has(&self, address: IpAddr, holder: &Holder) -> bool {
        let recorded = self.ledger.destinations.get(&address).filter(|_| !self.ledger.is_absent());
        recorded.is_some_and(|holders| holders.contains(holder))
    }

    /// Whether all that is wanted is recorded.
    pub fn has_all(&self, draft: &Draft<'_>, wanted: &[WantedRule]) -> bool {
        let mut causes = wanted.iter().flat_map(|rule| &rule.causes);
        causes.all(|(uid, destinations)| {
            let mut addresses = destinations.iter().filter_map(|d| d.parse().ok());
            addresses.all(|address| self.has(address, &holder(draft, uid, address)))
        })
    }

    /// Whether what is wanted is recorded, and beside it only what is open.
    pub fn is_exact(
        &self,
        draft: &Draft<'_>,
        wanted: &[WantedRule],
        group: &SecurityGroup,
    ) -> bool {
        let asked = wanted.iter().flat_map(|rule| &rule.destinations);
        let asked: BTreeSet<IpAddr> = asked.filter_map(|d| d.parse().ok()).collect();
        let recorded = self.ledger.destinations.keys();
        let mut more = recorded.filter(|address| !asked.contains(*address)).peekable();
        let is_open = more.peek().is_none() || {
            let open = destinations(group);
            more.all(|address| open.contains(address))
        };
        is_open && !self.ledger.is_absent() && self.has_all(draft, wanted)
    }

    /// Whether an address may be opened on somebody's account; if not it is going to be recorded.
    pub fn ask(&mut self, address: IpAddr, holder: Holder) -> bool {
        let may = self.has(address, &holder);
        self.needed.entry(address).or_default().insert(holder);
        may
    }

    /// The wanted rules, with what may be opened now. Services wait for the rest, unless that is
    /// open.
    pub fn admit(
        &mut self,
        draft: &mut Draft<'_>,
        wanted: Vec<WantedRule>,
        there: &SecurityGroup,
    ) -> Vec<WantedRule> {
        let mut waiting = BTreeSet::new();
        let mut admitted = Vec::new();
        for mut rule in wanted {
            let open = part::named(&there.rules, &rule.name).map(|r| &r.destinations);
            rule.causes.retain(|uid, _| draft.cases[uid].intent().is_some());
            for (uid, destinations) in &mut rule.causes {
                destinations.retain(|destination| {
                    let Ok(address) = destination.parse() else { return true };
                    let may = self.ask(address, holder(draft, uid, address));
                    if !may && !open.is_some_and(|open| open.contains(destination)) {
                        waiting.insert(uid.clone());
                    }
                    may
                });
            }
            rule.causes.retain(|_, destinations| !destinations.is_empty());
            rule.destinations = rule.causes.values().flatten().cloned().collect();
            admitted.extend((!rule.causes.is_empty()).then_some(rule));
        }
        waiting.iter().for_each(|uid| draft.wait(uid, Wait::Ledger));
        admitted
    }

    /// Whether something is wanted that is not recorded.
    pub fn lacks(&self) -> bool {
        let recorded = |address: &IpAddr| self.ledger.destinations.get(address);
        let has = |(address, holders): (&IpAddr, &BTreeSet<Holder>)| {
            recorded(address).is_some_and(|there| holders.is_subset(there))
        };
        let absent = self.ledger.is_absent() && !(self.needed.is_empty() && self.known.is_empty());
        absent || !self.needed.iter().all(has)
    }

    /// The write that makes the ledger what it is to be, if it is not. By itself nothing is written
    /// to forget an address while the group is about to change.
    pub fn write(
        self,
        draft: &Draft<'_>,
        before: &SecurityGroup,
        after: &SecurityGroup,
    ) -> Option<LedgerWrite> {
        let lacks = self.lacks();
        let Self { ledger, known, needed } = self;
        let mut open = destinations(before);
        open.extend(destinations(after));
        let written = draft.world.in_flight.contains_key(&before.id);
        // What failed may not be in force, though it reads as it should.
        let unsettled = matches!(before.provisioning, Provisioning::Busy | Provisioning::Failed);
        let late = before.etag.is_some() && before.etag == ledger.planned_on;
        let may_open = written || unsettled || late;
        let services = &draft.world.kubernetes.services;
        let lives = |holder: &Holder| match holder {
            Holder::Service(uid) => services.contains_key(uid),
            Holder::Node => true,
        };
        let mut destinations = needed;
        for (address, holders) in known.into_owned() {
            let stays = open.contains(&address) || destinations.contains_key(&address);
            if stays || may_open || is_unsure(draft, &holders) {
                let holders = holders.into_iter().filter(lives);
                destinations.entry(address).or_default().extend(holders);
            }
        }
        let kept = |address: &IpAddr| destinations.contains_key(address);
        let forgets = before == after && !ledger.destinations.keys().all(kept);
        let planned_on = if lacks { before.etag.clone() } else { ledger.planned_on.clone() };
        let adopted = |address: &&IpAddr| ledger.is_absent() && open.contains(address);
        let adopted = destinations.keys().filter(adopted).copied().collect();
        let revision = ledger.revision.clone();
        let write = LedgerWrite { revision, planned_on, destinations, adopted };
        (lacks || forgets).then_some(write)
    }
}

/// Whether what is known of the group may be older than what another process did for an address
/// with these holders. A Service that comes with our finalizer later waits alone: another process
/// records an address on its account before it opens it. Where a holder is no Service that is here,
/// nothing says for whom it was opened.
fn is_unsure(draft: &Draft<'_>, holders: &BTreeSet<Holder>) -> bool {
    let inherited = &draft.world.inherited;
    let is_certain = |holder: &Holder| match holder {
        Holder::Service(uid) => draft.cases.contains_key(uid) && !inherited.contains(uid),
        Holder::Node => false,
    };
    !inherited.is_empty() && (holders.is_empty() || !holders.iter().all(is_certain))
}

/// Addresses that rules of ours lead to, those that deny included.
fn destinations(group: &SecurityGroup) -> BTreeSet<IpAddr> {
    let managed = group.rules.iter().filter(|rule| is_managed(rule));
    managed.flat_map(|rule| &rule.destinations).filter_map(|d| d.parse().ok()).collect()
}

/// Addresses of this cluster: of its public IPs, frontends, nodes and Services. Where there is no
/// ledger they are all that says what is ours.
fn cluster(draft: &Draft<'_>, placement: &Placement) -> Destinations {
    let mut all = Destinations::new();
    let ours = |ip: &&Arc<PublicIp>| draft.own.public_ip(ip) == Whose::Ours;
    for address in own::public_ips(draft.world).filter(ours).filter_map(|ip| ip.address) {
        all.entry(address).or_default();
    }
    for id in placement.balancers.keys() {
        let Some(balancer) = draft.balancer(id) else { continue };
        for own in &balancer.frontends {
            let Some(address) = frontend::address_of(draft, own) else { continue };
            let holder = draft.owner_of(&own.name).cloned().map(Holder::Service);
            all.entry(address).or_default().extend(holder);
        }
        for held in balancer.pools.iter().flat_map(|pool| &pool.addresses) {
            all.entry(held.address).or_default().insert(Holder::Node);
        }
    }
    for address in draft.world.kubernetes.nodes.values().flat_map(|node| &node.addresses) {
        all.entry(*address).or_default().insert(Holder::Node);
    }
    for (uid, case) in &draft.cases {
        for ip in case.service.told() {
            all.entry(ip).or_default().insert(Holder::Service(uid.clone()));
        }
    }
    all
}

/// Whether a Service that goes has an address open that no other Service stands for, or ports of an
/// address that it shares: it stays until that is closed.
pub(crate) fn has_open(draft: &Draft<'_>, uid: &ServiceUid) -> bool {
    let Some(ledger) = draft.world.kubernetes.ledger.known() else { return false };
    let Some(Some(group)) = draft.world.azure.security_group.known() else { return false };
    // Where there is none yet, what is about to be recorded.
    let made = draft.steps.ledger.as_ref().filter(|_| ledger.is_absent());
    let recorded = made.map_or(&ledger.destinations, |write| &write.destinations);
    let own = Holder::Service(uid.clone());
    let held: BTreeMap<IpAddr, Vec<&Holder>> = recorded
        .iter()
        .filter(|(_, holders)| holders.contains(&own))
        .map(|(address, holders)| (*address, others(draft, uid, holders)))
        .collect();
    if held.is_empty() {
        return false;
    }
    let ports: BTreeSet<Arc<str>> =
        draft.cases[uid].service.ports.iter().map(|port| port.port.to_string().into()).collect();
    let is_own = |rule: &SecurityRule, others: &[&Holder]| {
        let mut own = rule.ports.intersection(&ports);
        own.any(|port| !others.iter().any(|other| may_have(draft, other, port)))
    };
    let mut managed = group.rules.iter().filter(|rule| is_managed(rule));
    managed.any(|rule| {
        let addresses = rule.destinations.iter().filter_map(|d| d.parse::<IpAddr>().ok());
        let mut others = addresses.filter_map(|address| held.get(&address));
        others.any(|others| others.is_empty() || is_own(rule, others))
    })
}

/// Who else has an address open.
fn others<'h>(
    draft: &Draft<'_>,
    uid: &ServiceUid,
    holders: &'h BTreeSet<Holder>,
) -> Vec<&'h Holder> {
    let is_other = |holder: &&Holder| match holder {
        Holder::Service(other) => other != uid && draft.cases.contains_key(other),
        Holder::Node => true,
    };
    holders.iter().filter(is_other).collect()
}

/// Whether a port may be open on account of a holder: it is its Service's, or a rule leads there
/// for it. What leads to nodes is open for all Services that lead there.
fn may_have(draft: &Draft<'_>, holder: &Holder, port: &str) -> bool {
    let Holder::Service(uid) = holder else { return true };
    let case = &draft.cases[uid];
    let mut led = draft.views().flat_map(|view| view.rules_of(&case.base));
    case.service.ports.iter().any(|own| own.port.to_string() == port)
        || led.any(|rule| rule.frontend_port.to_string() == port)
}

#[cfg(test)]
mod tests;
