//! What the cluster is told.
//!
//! What is promised:
//! - The addresses in a Service's status are those of its frontends and its additional ones: each
//!   once, none besides, and no host names.
//! - The condition `ballast.dev/Programmed`, where there is one, is True once everything stands; it
//!   is False, with a reason, where the Service is refused; the message names the value that is
//!   wrong as it is now.
//! - The condition tells notes, and is True: its reason is a note's rule, and its message names the
//!   annotation of each note. It tells no note that does not hold.
//! - What a Service is held back for by its owner is named, too.
//! - The condition `ballast.dev/Migrated` is there only while something of the Service's former
//!   load balancer stands.
//! - A Service with a load balancer has the finalizer, and that of container load balancers only
//!   there. One that wants none has neither finalizer nor addresses nor the condition.

use crate::Broken;
use crate::asks::{Asks, notes};
use crate::case::{Case, Fate, Service};
use crate::container;
use crate::estate::{has_finalizer, items, last, same, text};
use crate::holds;
use crate::names::{FINALIZER, GATEWAY_FINALIZER};
use crate::placement::has_frontend;
use crate::site::Layout;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::IpAddr;

const CONDITION: &str = "ballast.dev/Programmed";
/// What is said of a move between load balancers over nodes and container load balancers.
const MOVE: &str = "ballast.dev/Migrated";

/// Judges it.
pub(crate) fn judge(case: &Case<'_>, broken: &mut Vec<Broken>) {
    for service in &case.services {
        let mut found: Vec<(&'static str, String)> = Vec::new();
        let held = has_finalizer(service.object, FINALIZER);
        let condition = condition(service.object);
        match &service.fate {
            // Another class is another controller's, which may use the same finalizer.
            Fate::Unwanted if !service.object["spec"]["loadBalancerClass"].is_null() => {}
            Fate::Unwanted => unwanted(service, held, &mut found),
            Fate::Refused(_) | Fate::Denied(..) => {
                if let Fate::Refused(invalid) = &service.fate
                    && condition == Some("False")
                {
                    let unnamed = unnamed(service.object, &invalid.0);
                    let unnamed = unnamed.or_else(|| unheld(service.object, &invalid.0));
                    found.extend(unnamed.map(|text| ("status", text)));
                }
                if condition != Some("False") {
                    let why = match &service.fate {
                        Fate::Refused(invalid) => &invalid.0,
                        Fate::Denied(_, why) => why,
                        _ => "",
                    };
                    let has = condition.unwrap_or("absent");
                    let text = format!("the condition is {has}; the Service is refused: {why}");
                    found.push(("status", text));
                }
            }
            Fate::Served(asks) => {
                if !held {
                    found.push(("finalizer", format!("{FINALIZER} is absent")));
                }
                let of_containers = has_finalizer(service.object, GATEWAY_FINALIZER);
                if of_containers && case.site.layout != Layout::Container {
                    let text = format!("{GATEWAY_FINALIZER} is there, and it is served by nodes");
                    found.push(("finalizer", text));
                }
                let due = if container::waits(case, service, asks) { "False" } else { "True" };
                if condition.is_some_and(|status| status != due) {
                    let text = condition_text(service.object);
                    found.push(("status", format!("the condition is not {due}: {text}")));
                }
                if condition == Some("True") {
                    found.extend(untold(case, service, asks).map(|text| ("status", text)));
                }
                addresses(case, service, &mut found);
                if has_moved(case, service) && find(service.object, MOVE).is_some() {
                    let text = format!("the condition {MOVE} is there; the Service has moved");
                    found.push(("status", text));
                }
            }
        }
        broken.extend(found.into_iter().map(|(promise, text)| service.broken(promise, text)));
    }
}

fn unwanted(service: &Service<'_>, held: bool, found: &mut Vec<(&'static str, String)>) {
    if held {
        let text = format!("{FINALIZER} is there, and the Service wants no load balancer");
        found.push(("finalizer", text));
    }
    // What is being deleted goes with all that it says.
    let stays = service.object["metadata"]["deletionTimestamp"].is_null();
    if stays && find(service.object, CONDITION).is_some() {
        let text =
            format!("the condition {CONDITION} is there; the Service wants no load balancer");
        found.push(("status", text));
    }
    let ingress = &service.object["status"]["loadBalancer"]["ingress"];
    if items(ingress).next().is_some() {
        found.push(("status", format!("the Service wants no load balancer and has {ingress}")));
    }
}

fn find<'o>(object: &'o Value, kind: &str) -> Option<&'o Value> {
    items(&object["status"]["conditions"]).find(|condition| condition["type"] == kind)
}

/// Whether no load balancer of the other kind has a part of a Service.
fn has_moved(case: &Case<'_>, service: &Service<'_>) -> bool {
    let of_containers = case.site.layout == Layout::Container;
    let uid = text(&service.object["metadata"]["uid"]);
    let mut former = case
        .estate
        .balancers()
        .filter(|(_, balancer)| (balancer["sku"]["name"] == "Service") != of_containers);
    !former.any(|(id, balancer)| has_frontend(balancer, service) || same(last(id), uid))
}

fn condition(object: &Value) -> Option<&str> {
    find(object, CONDITION).map(|condition| text(&condition["status"]))
}

fn condition_text(object: &Value) -> String {
    let condition = find(object, CONDITION).unwrap_or(&Value::Null);
    format!("{}: {}", text(&condition["reason"]), text(&condition["message"]))
}

/// What is wrong with a message that does not name the value of the annotation for which a Service
/// is refused. Of a list one entry may be wrong; of a field it is not promised which value is
/// named.
fn unnamed(object: &Value, why: &str) -> Option<String> {
    let (key, value) = why.split_once(": \"")?;
    let value = value.strip_suffix('"').filter(|_| !key.starts_with("spec."))?.to_lowercase();
    let has = condition_text(object);
    let said = has.to_lowercase();
    let mut words = value.split([',', ' ']).filter(|word| !word.is_empty());
    let named = value.trim().is_empty() || words.any(|word| said.contains(word));
    (!named).then(|| format!("the condition says {has:?}; the Service is refused: {why}"))
}

/// What is wrong with a message that does not name the annotation by which a Service's owner holds
/// it back.
fn unheld(object: &Value, why: &str) -> Option<String> {
    let held = [holds::PAUSED, holds::KEPT].contains(&why);
    let has = condition_text(object);
    let named = holds::keys(object).any(|key| has.contains(key));
    (held && !named).then(|| format!("the condition says {has:?} and names no annotation; {why}"))
}

/// What is wrong with what a True condition tells of notes.
fn untold(case: &Case<'_>, service: &Service<'_>, asks: &Asks) -> Option<String> {
    if case.site.layout == Layout::Container {
        return None;
    }
    let condition = find(service.object, CONDITION)?;
    let (reason, message) = (text(&condition["reason"]), text(&condition["message"]));
    let due = notes::due(service.object, &case.site, asks);
    let has = condition_text(service.object);
    // Of a message that is too long the end is left out.
    let silent = |note: &&notes::Note| {
        reason == "Programmed" || !(message.contains(&note.1) || message.ends_with('…'))
    };
    if let Some((rule, key)) = due.iter().find(silent) {
        return Some(format!("the condition says {has:?}; it must tell {rule} of {key}"));
    }
    let idle = notes::WHOLE.contains(&reason) && !due.iter().any(|(rule, _)| *rule == reason);
    idle.then(|| format!("the condition says {has:?}, and nothing is there to be noted"))
}

/// The addresses of frontends on load balancers over nodes; those of container load balancers are
/// judged with them.
fn addresses(case: &Case<'_>, service: &Service<'_>, found: &mut Vec<(&'static str, String)>) {
    let Some(asks) = service.served().filter(|_| case.site.layout != Layout::Container) else {
        return;
    };
    let ingress = &service.object["status"]["loadBalancer"]["ingress"];
    let told: Vec<&str> = items(ingress).map(|entry| text(&entry["ip"])).collect();
    let frontends = asks.families.iter().filter_map(|family| case.address(service, *family));
    let frontends = frontends.filter_map(|address| address.parse::<IpAddr>().ok());
    let must: BTreeSet<IpAddr> = frontends.chain(asks.additional.iter().copied()).collect();
    let has: BTreeSet<IpAddr> = told.iter().filter_map(|ip| ip.parse().ok()).collect();
    let host = items(ingress).any(|entry| !entry["hostname"].is_null());
    if has != must || told.len() != must.len() || host {
        found.push(("status", format!("the ingress is {ingress}; it must be {must:?}")));
    }
}
