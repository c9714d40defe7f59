//! What a plan comes to, before its details.

use super::{AddressChange, PlanDocument, ServiceView, Verb, exchange, render_services};
use crate::output::{Ink, Paint};
use std::collections::BTreeMap;

/// Names on one line.
const FEW: usize = 5;

/// The summary alone: it fits on a screen, however many Services there are.
#[must_use]
pub fn render_summary(plan: &PlanDocument, paint: Paint) -> String {
    let mut text = overview(plan, paint);
    let mut groups: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    let quiet = |service: &&ServiceView| service.findings.is_empty() && service.waits.is_empty();
    for service in plan.services.iter().filter(quiet) {
        if service.written || service.state != service.after {
            let name = service.name.clone();
            groups.entry((service.state, service.after)).or_default().push(name);
        }
    }
    for ((state, after), names) in &groups {
        let what = match state == after {
            true => format!("{state}, updated in place"),
            false => format!("{state} → {after}"),
        };
        let count = names.len();
        let noun = if count == 1 { "Service" } else { "Services" };
        text.push_str(&format!("{count} {noun} {what}: {}\n", few(names)));
    }
    if !groups.is_empty() {
        text.push('\n');
    }
    // Refused and waiting Services are listed one by one: their owners have to act.
    let services = plan.services.iter().filter(|service| !quiet(service)).cloned().collect();
    text.push_str(&render_services(&PlanDocument { services, ..plan.clone() }, paint));
    text.push_str(&last_line(plan, paint));
    text
}

/// Counts by kind, addresses that change, Services that are interrupted, and the time that Azure's
/// limits take; nothing for an empty plan.
pub(super) fn overview(plan: &PlanDocument, paint: Paint) -> String {
    if plan.is_empty() {
        return String::new();
    }
    let mut text = kinds(plan, paint);
    text.push_str(&addresses(plan, paint));
    if !plan.interrupted.is_empty() {
        let line = format!("INTERRUPTED for a while: {}", few(&plan.interrupted));
        text.push_str(&format!("{}\n", paint.ink(Ink::Red, line)));
    }
    if plan.limits_ms > 0 {
        let seconds = plan.limits_ms.div_ceil(1_000);
        text.push_str(&format!(
            "At Azure's published limits the writes take at least {seconds} s.\n"
        ));
    }
    text.push('\n');
    text
}

/// One line a kind of resource.
fn kinds(plan: &PlanDocument, paint: Paint) -> String {
    let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for change in &plan.changes {
        *counts.entry(&change.kind).or_default().entry(change.verb.word()).or_default() += 1;
    }
    let mut text = String::new();
    for (kind, verbs) in &counts {
        let verbs: Vec<String> = [Verb::Create, Verb::Change, Verb::Delete, Verb::Call]
            .into_iter()
            .filter_map(|verb| verbs.get(verb.word()).map(|n| format!("{n} to {}", verb.word())))
            .collect();
        let kind = paint.ink(Ink::Bold, format!("{kind}:"));
        text.push_str(&format!("{kind} {}\n", verbs.join(", ")));
    }
    text
}

/// What clients notice: how many addresses change, and which.
fn addresses(plan: &PlanDocument, paint: Paint) -> String {
    let count =
        |change: AddressChange| plan.services.iter().filter(|s| s.address_change == change).count();
    let changed = count(AddressChange::Changed);
    let text = format!(
        "Addresses: {changed} to change, {} to create, {} to release.",
        count(AddressChange::New),
        count(AddressChange::Released),
    );
    let mut text = format!("{}\n", paint.ink(Ink::Bold, text));
    for service in plan.services.iter().filter(|s| s.address_change == AddressChange::Changed) {
        let line = format!("ADDRESS CHANGES {}: {}", service.name, exchange(service));
        text.push_str(&format!("{}\n", paint.ink(Ink::Red, line)));
    }
    text
}

/// The first names, and how many more there are.
pub(super) fn few(names: &[String]) -> String {
    let more = names.len().saturating_sub(FEW);
    let shown: Vec<&str> = names.iter().take(FEW).map(String::as_str).collect();
    let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{rest}", shown.join(", "))
}

/// What is written, in one line.
pub(super) fn last_line(plan: &PlanDocument, paint: Paint) -> String {
    let count = |start: &str| plan.services.iter().filter(|s| s.after.starts_with(start)).count();
    let (refused, held) = (count("refused"), count("held"));
    let stuck = match (refused, held) {
        (_, 0) => format!("{refused} refused"),
        (0, _) => format!("{held} held by its owner"),
        _ => format!("{refused} refused, {held} held by its owner"),
    };
    if plan.is_empty() && !plan.obstacles.is_empty() {
        let text = "Nothing is known to be written: not everything could be read.";
        return format!("{}\n", paint.ink(Ink::Bold, text));
    }
    if plan.is_empty() && refused + held > 0 {
        let asked = plan.services.len();
        let text = format!("Nothing to write: of {asked} Services {stuck}.");
        return format!("{}\n", paint.ink(Ink::Bold, text));
    }
    if plan.is_empty() {
        let asked = plan.services.len();
        let text = match asked {
            0 => "Nothing to do: no Service asks for a load balancer.".to_owned(),
            1 => "Nothing to do for 1 Service.".to_owned(),
            _ => format!("Nothing to do for {asked} Services."),
        };
        return format!("{}\n", paint.ink(Ink::Bold, text));
    }
    let count = |verb: Verb| plan.changes.iter().filter(|c| c.verb == verb).count();
    let mut text = format!(
        "Azure: {} to create, {} to change, {} to delete",
        count(Verb::Create),
        count(Verb::Change),
        count(Verb::Delete),
    );
    if count(Verb::Call) > 0 {
        text.push_str(&format!(", {} to call", count(Verb::Call)));
    }
    let writes = |n: usize| format!("{n} write{}", if n == 1 { "" } else { "s" });
    let (calls, edits) = (writes(plan.calls), writes(plan.writes.len()));
    text.push_str(&format!(" ({calls}). Kubernetes: {edits}."));
    if refused + held > 0 {
        text.push_str(&format!(" {stuck}."));
    }
    format!("{}\n", paint.ink(Ink::Bold, text))
}
