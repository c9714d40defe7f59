//! Who gets what a security group, and the ledger of what is open in it, have room for.

use super::room::{RULES, full};
use super::{WantedRule, holder};
use crate::ask::limit::PREFIXES;
use crate::claim::Refusal;
use crate::claim::share::{Scarce, Shortage, namespace, namespaces, turns};
use crate::draft::Draft;
use crate::own::name::folded;
use model::ServiceUid;
use model::azure::SecurityGroup;
use model::ledger::{DESTINATION_BYTES, Holder, encode};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// Rules, source prefixes, destination prefixes and bytes of the ledger, in this order. Of a rule
/// that Services share each has its destinations in the ledger.
type Amounts = [usize; 4];

const LIMITS: Amounts = [RULES, PREFIXES, PREFIXES, DESTINATION_BYTES];
const WORDS: [&str; 4] = ["rules", "source prefixes", "destination prefixes", BYTES];
const BYTES: &str = "bytes of the ledger";

/// What the group holds while Services are admitted.
struct Room<'w, 'd> {
    wanted: &'w [WantedRule],
    names: Vec<String>,
    /// Destinations by name of the rule, in lower case.
    rules: BTreeMap<String, BTreeSet<Arc<str>>>,
    /// Addresses that the ledger has on Services' accounts.
    recorded: BTreeMap<&'d ServiceUid, BTreeSet<IpAddr>>,
    scarce: [Scarce; 4],
}

impl<'w, 'd> Room<'w, 'd> {
    fn of(draft: &Draft<'d>, group: &SecurityGroup, wanted: &'w [WantedRule]) -> Self {
        let names: Vec<String> = wanted.iter().map(|w| folded(&w.name)).collect();
        let causes: BTreeMap<&str, &WantedRule> =
            names.iter().map(String::as_str).zip(wanted).collect();
        let owners = owners(draft);
        let mut rules = BTreeMap::new();
        let mut scarce = LIMITS.map(Scarce::new);
        for rule in &group.rules {
            let name = folded(&rule.name);
            let mut users: BTreeMap<Arc<str>, BTreeSet<&Arc<str>>> = BTreeMap::new();
            for destination in &rule.destinations {
                if let Some(owner) = owners.get(destination) {
                    users.entry(Arc::clone(owner)).or_default().insert(destination);
                }
            }
            for (uid, own) in causes.get(name.as_str()).into_iter().flat_map(|w| &w.causes) {
                let there: Vec<_> = rule.destinations.intersection(own).collect();
                if !there.is_empty() {
                    users.entry(namespace(draft, uid)).or_default().extend(there);
                }
            }
            let amounts = [1, rule.sources.len(), rule.destinations.len()];
            scarce.iter_mut().zip(amounts).for_each(|(scarce, more)| scarce.used += more);
            for (namespace, own) in users {
                let amounts = [1, rule.sources.len(), own.len()];
                let all = scarce.iter_mut().zip(amounts);
                all.for_each(|(scarce, more)| scarce.count(&namespace, more));
            }
            rules.insert(name, rule.destinations.clone());
        }
        let recorded = recorded(draft);
        let [_, _, _, bytes] = &mut scarce;
        let ledger = draft.world.kubernetes.ledger.known();
        bytes.used = ledger.map_or(0, |ledger| encode(&ledger.destinations).len());
        for (uid, addresses) in &recorded {
            let words: usize = addresses.iter().map(word).sum();
            bytes.count(&namespace(draft, uid), line(uid) + words);
        }
        Self { wanted, names, rules, recorded, scarce }
    }

    /// What the group and the ledger have to hold more for a Service that wants these rules.
    fn more(&self, draft: &Draft<'_>, uid: &ServiceUid, rules: &[usize]) -> Amounts {
        let mut more = [0; 4];
        let own = rules.iter().filter_map(|at| self.wanted[*at].causes.get(uid)).flatten();
        let own: BTreeSet<IpAddr> = own.filter_map(|text| text.parse().ok()).collect();
        let recorded = self.recorded.get(uid);
        let new = own.iter().filter(|address| {
            // What leads to nodes is recorded once, for all.
            holder(draft, uid, **address) != Holder::Node
                && recorded.is_none_or(|recorded| !recorded.contains(*address))
        });
        let words: usize = new.map(word).sum();
        more[3] = if words > 0 && recorded.is_none() { line(uid) + words } else { words };
        for at in rules {
            let wanted = &self.wanted[*at];
            let held = self.rules.get(&self.names[*at]);
            if held.is_none() {
                more[0] += 1;
                more[1] += wanted.shape.sources.len();
            }
            let own = wanted.causes.get(uid).into_iter().flatten();
            more[2] += own.filter(|d| held.is_none_or(|held| !held.contains(*d))).count();
        }
        more
    }

    fn admit(&mut self, uid: &ServiceUid, namespace: &Arc<str>, rules: &[usize], more: Amounts) {
        for (scarce, more) in self.scarce.iter_mut().zip(more) {
            scarce.used += more;
            scarce.count(namespace, more);
        }
        for at in rules {
            let own = self.wanted[*at].causes.get(uid).into_iter().flatten().cloned();
            self.rules.entry(self.names[*at].clone()).or_default().extend(own);
        }
    }

    /// How much of what is used up first a namespace uses, in parts of a limit.
    fn use_of(&self, namespace: &Arc<str>) -> usize {
        let parts = self.scarce.iter().map(|s| s.of(namespace) * PREFIXES / s.limit.max(1));
        parts.max().unwrap_or(0)
    }
}

fn recorded<'d>(draft: &Draft<'d>) -> BTreeMap<&'d ServiceUid, BTreeSet<IpAddr>> {
    let mut recorded: BTreeMap<&ServiceUid, BTreeSet<IpAddr>> = BTreeMap::new();
    let ledger = draft.world.kubernetes.ledger.known();
    for (address, holders) in ledger.into_iter().flat_map(|ledger| &ledger.destinations) {
        for holder in holders {
            if let Holder::Service(uid) = holder {
                recorded.entry(uid).or_default().insert(*address);
            }
        }
    }
    recorded
}

/// Bytes that a Service's line takes in the ledger, without its addresses.
fn line(uid: &ServiceUid) -> usize {
    uid.as_str().len() + 1
}

/// Bytes that an address takes in a line.
fn word(address: &IpAddr) -> usize {
    address.to_string().len() + 1
}

/// Namespaces by the addresses that their Services show.
fn owners(draft: &Draft<'_>) -> BTreeMap<Arc<str>, Arc<str>> {
    let services = draft.cases.values().map(|case| case.service);
    let shown = services.flat_map(|service| {
        let addresses = service.ingress.iter().filter_map(|ingress| ingress.ip.clone());
        addresses.map(|address| (address, Arc::clone(&service.name.namespace)))
    });
    shown.collect()
}

/// Refuses Services for which there is no room, and leaves the others' rules.
pub(crate) fn admit(
    draft: &mut Draft<'_>,
    group: &SecurityGroup,
    wanted: Vec<WantedRule>,
) -> Vec<WantedRule> {
    let mut room = Room::of(draft, group, &wanted);
    let mut by_service: BTreeMap<&ServiceUid, Vec<usize>> = BTreeMap::new();
    for (at, rule) in wanted.iter().enumerate() {
        rule.causes.keys().for_each(|uid| by_service.entry(uid).or_default().push(at));
    }
    let mut asks = Vec::new();
    let mut total = [0; 4];
    for (uid, rules) in &by_service {
        let more = room.more(draft, uid, rules);
        total.iter_mut().zip(more).for_each(|(total, more)| *total += more);
        if more != [0; 4] {
            let parts = more.iter().zip(LIMITS).map(|(more, limit)| more * PREFIXES / limit);
            let part = parts.max().unwrap_or(0);
            asks.push((namespace(draft, uid), part, *uid));
        }
    }
    // What several share is counted for each: less may be scarce than is looked at here.
    let scarce = room.scarce.iter().zip(total).any(|(scarce, more)| scarce.is_scarce(more));
    if !scarce {
        return wanted;
    }
    let count = namespaces(draft);
    let order = turns(asks, |namespace| room.use_of(namespace));
    let mut refused = BTreeMap::new();
    for uid in order {
        let (rules, namespace) = (&by_service[uid], namespace(draft, uid));
        let more = room.more(draft, uid, rules);
        let all = room.scarce.iter().zip(more).zip(WORDS);
        let ask = |((scarce, more), word): ((&'_ Scarce, usize), &'static str)| {
            let shortage = scarce.ask(&namespace, more, count).err()?;
            Some((scarce.clone(), more, word, shortage))
        };
        let short = all.into_iter().find_map(ask);
        match short {
            None => room.admit(uid, &namespace, rules, more),
            Some((scarce, more, word, shortage)) => {
                let mut finding = full(&group.id);
                if word == BYTES {
                    let full = format!(
                        "the ledger of open destinations has no room for another address of the \
                         Service; it has at most {DESTINATION_BYTES} bytes"
                    );
                    finding.message = full.into();
                }
                finding.value = format!("{more} more {word}").into();
                let reserved = match shortage {
                    Shortage::Full => String::new(),
                    Shortage::Reserved { share } => format!(
                        "; the last tenth is for namespaces with less than {share} {word}, \
                         {namespace} has {}",
                        scarce.of(&namespace)
                    ),
                };
                let message = format!("{}{reserved}{}", finding.message, scarce.users(word));
                finding.message = message.into();
                refused.insert(uid.clone(), finding);
            }
        }
    }
    let wanted = without(wanted, &refused.keys().cloned().collect());
    refused.into_iter().for_each(|(uid, finding)| draft.refuse(&uid, Refusal::new(finding)));
    wanted
}

/// The same without what these Services want.
fn without(mut wanted: Vec<WantedRule>, refused: &BTreeSet<ServiceUid>) -> Vec<WantedRule> {
    for rule in &mut wanted {
        let before = rule.causes.len();
        rule.causes.retain(|uid, _| !refused.contains(uid));
        if rule.causes.len() < before {
            rule.destinations = rule.causes.values().flatten().cloned().collect();
        }
    }
    wanted.retain(|rule| !rule.causes.is_empty());
    wanted
}
