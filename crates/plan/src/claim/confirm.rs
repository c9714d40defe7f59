//! Services whose owners confirm an interruption before it happens.
//!
//! What a draft intends for such a Service is compared with what it has on load balancers. Whatever
//! it would lose has a name: an address (`20.0.0.1`), a port (`TCP/443`), a load balancer
//! (`kubernetes`). The owner confirms by listing these names. While a change is under way, what is
//! lost is no longer there to be lost again: the confirmation of the whole covers every step of it.

use super::placement::Placement;
use crate::ask::annotation::{CONFIRM, CONFIRMED};
use crate::ask::findings::{CONFIRMATION_DUE, CONFIRMATION_LEFT};
use crate::ask::hold::asks_first;
use crate::ask::{Intent, RuleKind};
use crate::claim::choice::Chosen;
use crate::draft::Draft;
use crate::own::name::is_one;
use crate::own::parts::View;
use crate::standing::frontend;
use crate::verdict::Refusal;
use model::azure::{Frontend, FrontendAddress, Rule, RuleProtocol, rule_protocol};
use model::kubernetes::{Ingress, Service};
use model::report::Finding;
use model::{Exposure, ResourceId};
use std::collections::BTreeMap;

/// What a Service has, by name, with what becomes of it: `None`, it stays.
type Belongings = BTreeMap<String, Option<String>>;

/// Finds the Services that the draft would interrupt without the confirmation of their owners, and
/// notes what is confirmed to go and stays.
pub(crate) fn settle(draft: &mut Draft<'_>, placement: &Placement, chosen: &Chosen) {
    let asking = draft.cases.iter().filter(|(_, case)| asks_first(case.service));
    let intents = asking.filter_map(|(uid, case)| Some((uid.clone(), case.shared_intent()?)));
    for (uid, intent) in intents.collect::<Vec<_>>() {
        let service = draft.cases[&uid].service;
        let belongings = belongings(draft, placement, chosen, &intent);
        let mut left: Vec<&str> = Vec::new();
        let mut due: Vec<(&str, &str)> = Vec::new();
        for (name, fate) in &belongings {
            match fate {
                Some(fate) if !is_confirmed(service, name) => due.push((name, fate)),
                None if is_confirmed(service, name) => left.push(name),
                Some(_) | None => {}
            }
        }
        if !due.is_empty() {
            draft.claims.interrupted.insert(uid, Refusal::new(interruption(&due)));
        } else if !left.is_empty() {
            let message = CONFIRMATION_LEFT.message;
            draft.note(&uid, [CONFIRMATION_LEFT.found_with(CONFIRMED, &left.join(", "), message)]);
        }
    }
}

/// What a Service that moves to other load balancers would lose with its former addresses, unless
/// its owner has confirmed that, or wants no questions.
pub(crate) fn of_move(service: &Service, former: &[Ingress], to: &str) -> Option<Finding> {
    if !asks_first(service) {
        return None;
    }
    let lost = former.iter().filter_map(|entry| entry.ip.as_deref());
    let lost = lost.filter(|address| !is_confirmed(service, address));
    let lost: Vec<(&str, String)> =
        lost.map(|address| (address, format!("address {address} → {to}"))).collect();
    let due: Vec<(&str, &str)> = lost.iter().map(|(name, fate)| (*name, fate.as_str())).collect();
    (!due.is_empty()).then(|| interruption(&due))
}

/// What would be lost, by name, and what becomes of it.
fn interruption(due: &[(&str, &str)]) -> Finding {
    let names: Vec<&str> = due.iter().map(|(name, _)| *name).collect();
    let fates: Vec<&str> = due.iter().map(|(_, fate)| *fate).collect();
    let lost = format!("the Service ({});", fates.join(", "));
    let message = CONFIRMATION_DUE.message.replacen("the Service;", &lost, 1);
    CONFIRMATION_DUE.found_with(CONFIRM, &names.join(", "), &message)
}

fn is_confirmed(service: &Service, name: &str) -> bool {
    let listed = service.annotations.get(CONFIRMED);
    listed.is_some_and(|all| all.split(',').any(|one| is_one(one.trim(), name)))
}

/// What leads to a Service: the load balancers that have rules of it, their ports and the addresses
/// that they are on.
fn belongings(
    draft: &Draft<'_>,
    placement: &Placement,
    chosen: &Chosen,
    intent: &Intent,
) -> Belongings {
    let seats = placement.balancers.iter().filter(|(_, seats)| seats.has(&intent.uid));
    let to: Vec<&ResourceId> = seats.map(|(id, _)| id).collect();
    let mut all = Belongings::new();
    for view in draft.views() {
        let rules = view.rules_of(&intent.base);
        if rules.is_empty() {
            continue;
        }
        let name = view.id.name();
        let moved = to.first().filter(|_| !to.contains(&&view.id));
        let fate = moved.map(|to| format!("load balancer {name} → {}", to.name()));
        all.insert(name.to_owned(), fate);
        for rule in rules {
            let port = port(rule.protocol, rule.frontend_port);
            let fate = (!is_wanted(intent, rule)).then(|| format!("port {port} → none"));
            all.insert(port, fate);
        }
        addresses(draft, chosen, intent, view, &mut all);
    }
    all
}

fn addresses(
    draft: &Draft<'_>,
    chosen: &Chosen,
    intent: &Intent,
    view: View<'_>,
    all: &mut Belongings,
) {
    for frontend in view.led_by(&intent.base) {
        let name = match (frontend::address_of(draft, frontend), &frontend.address) {
            (Some(address), _) => address.to_string(),
            (None, FrontendAddress::Public(id)) => id.name().to_owned(),
            (None, _) => continue,
        };
        let after = after(draft, chosen, intent, frontend);
        let fate = after.map(|after| format!("address {name} → {after}"));
        all.insert(name, fate);
    }
}

/// What comes in the place of a frontend's address; `None` where it stays, or where nothing is
/// chosen yet.
fn after(
    draft: &Draft<'_>,
    chosen: &Chosen,
    intent: &Intent,
    frontend: &Frontend,
) -> Option<String> {
    let family = frontend::family(draft, frontend)?;
    if !intent.families.contains(&family) {
        return Some("none".to_owned());
    }
    let picked = chosen.get(&(intent.uid.clone(), family));
    match (&frontend.address, intent.exposure) {
        (FrontendAddress::Public(id), Exposure::Public) => {
            picked.filter(|picked| *picked != id)?;
        }
        (_, Exposure::Internal) if frontend::is_as_asked(draft, intent, family, frontend) => {
            return None;
        }
        _ => {}
    }
    let address = match intent.exposure {
        Exposure::Public => picked.and_then(|id| draft.public_ip(id)?.address),
        Exposure::Internal => intent.pinned.get(&family).copied(),
    };
    Some(address.map_or_else(|| "a new one".to_owned(), |address| address.to_string()))
}

fn port(protocol: RuleProtocol, port: u16) -> String {
    let protocol = match protocol {
        RuleProtocol::Tcp => "TCP",
        RuleProtocol::Udp => "UDP",
        RuleProtocol::All => "All",
    };
    format!("{protocol}/{port}")
}

/// Whether what a rule carries is carried afterwards, too.
fn is_wanted(intent: &Intent, rule: &Rule) -> bool {
    intent.rules.iter().any(|wish| match wish.kind {
        RuleKind::AllPorts { .. } => true,
        RuleKind::Port { protocol, port, .. } => {
            (rule_protocol(protocol), port) == (rule.protocol, rule.frontend_port)
        }
    })
}
