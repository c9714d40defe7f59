//! A forecast as a document, and the document as text.

mod document;
pub mod pace;
mod summary;
pub mod words;

pub use console::plan_view::Verb;
pub(crate) use document::word;
pub use document::{
    AddressChange, ChangeView, PlanDocument, ServiceView, WriteView, changes, document, verb,
};
pub use summary::render_summary;
pub use words::{kind_name, shown_name};

use crate::output::{Ink, Paint};
use crate::render::tree;
use arm::difference::Field;
use model::ResourceId;
use serde_json::Value;

/// The whole document.
#[must_use]
pub fn render(plan: &PlanDocument, paint: Paint) -> String {
    let mut text = summary::overview(plan, paint);
    for change in &plan.changes {
        text.push_str(&render_change(change, paint, 0));
        text.push('\n');
    }
    if !plan.writes.is_empty() {
        text.push_str(&paint.ink(Ink::Bold, "Kubernetes:"));
        text.push('\n');
        for write in &plan.writes {
            text.push_str(&render_write(write, paint));
        }
        text.push('\n');
    }
    text.push_str(&render_held_back(plan, paint));
    text.push_str(&render_services(plan, paint));
    text.push_str(&summary::last_line(plan, paint));
    text
}

fn render_held_back(plan: &PlanDocument, paint: Paint) -> String {
    if plan.held_back.is_empty() {
        return String::new();
    }
    let heading = "On hold, written once the owner removes the annotation or confirms the change:";
    let mut text = format!("{}\n", paint.ink(Ink::Bold, heading));
    for change in &plan.held_back {
        text.push_str(&render_change(change, paint, 2));
    }
    text.push('\n');
    text
}

/// What would change for each Service that is there already.
#[must_use]
pub fn render_by_service(plan: &PlanDocument, paint: Paint) -> String {
    let mut text = summary::overview(plan, paint);
    for service in &plan.services {
        let about = |names: &[String]| names.contains(&service.name);
        let changes: Vec<&ChangeView> =
            plan.changes.iter().filter(|c| about(&c.services)).collect();
        let writes: Vec<&WriteView> =
            plan.writes.iter().filter(|w| w.object == service.name).collect();
        let name = paint.ink(Ink::Bold, &service.name);
        if changes.is_empty() && writes.is_empty() && service.findings.is_empty() {
            text.push_str(&format!("{name}: nothing would change\n"));
            continue;
        }
        text.push_str(&format!("{name}:\n"));
        for finding in &service.findings {
            text.push_str(&paint.ink(Ink::Red, format!("  ! {finding}\n")));
        }
        for change in changes {
            text.push_str(&render_change(change, paint, 2));
        }
        for write in writes {
            text.push_str(&format!("  {}", render_write(write, paint)));
        }
    }
    let nobodys: Vec<&ChangeView> = plan.changes.iter().filter(|c| c.services.is_empty()).collect();
    if !nobodys.is_empty() {
        text.push_str("For the cluster as a whole:\n");
        for change in nobodys {
            text.push_str(&render_change(change, paint, 2));
        }
    }
    text.push_str(&render_held_back(plan, paint));
    text.push_str(&summary::last_line(plan, paint));
    text
}

/// Changes alone, one after the other.
#[must_use]
pub fn render_changes(changes: &[ChangeView], paint: Paint) -> String {
    changes.iter().map(|change| render_change(change, paint, 0)).collect()
}

fn mark(verb: Verb) -> (&'static str, Ink) {
    match verb {
        Verb::Create => ("+", Ink::Green),
        Verb::Change | Verb::Call => ("~", Ink::Yellow),
        Verb::Delete => ("-", Ink::Red),
    }
}

fn render_change(change: &ChangeView, paint: Paint, indent: usize) -> String {
    let (sign, ink) = mark(change.verb);
    let pad = " ".repeat(indent);
    let what = format!("{sign} {} {} {}", change.verb.word(), change.kind, change.name);
    let mut text = format!("{pad}{}", paint.ink(ink, what));
    if let Some(group) = &change.group {
        text.push_str(&paint.ink(Ink::Dim, format!(" in {group}")));
    }
    if !change.services.is_empty() {
        text.push_str(&format!(" for {}", summary::few(&change.services)));
    }
    text.push('\n');
    if let Some(body) = &change.body {
        let mut body = shortened(body);
        if let (Verb::Create, Value::Object(fields)) = (change.verb, &mut body) {
            // They stand in the line above.
            fields.retain(|key, _| key != "id" && key != "name");
        }
        tree::write(&mut text, &body, indent + 4);
    }
    for field in &change.fields {
        text.push_str(&render_field(field, paint, indent + 2));
    }
    text
}

/// A value with ids as in `loadBalancers/kubernetes/probes/a`: what they refer to is in the
/// subscription and mostly in the group of what refers to it, and `-o json` has all of it.
fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with("/subscriptions/") => {
            Value::from(ResourceId::new(text).short())
        }
        Value::Array(list) => list.iter().map(shortened).collect(),
        Value::Object(object) => {
            let fields = object.iter().map(|(key, value)| (key.clone(), shortened(value)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

fn is_line(value: &Value) -> bool {
    match value {
        Value::Object(_) => false,
        Value::Array(list) => list.iter().all(|v| !v.is_object() && !v.is_array()),
        _ => true,
    }
}

fn on_line(value: &Value) -> String {
    match value {
        Value::Array(list) => {
            format!("[{}]", list.iter().map(tree::scalar).collect::<Vec<_>>().join(", "))
        }
        value => tree::scalar(value),
    }
}

fn render_field(field: &Field, paint: Paint, indent: usize) -> String {
    let pad = " ".repeat(indent);
    let path = field.path.strip_prefix("properties.").unwrap_or(&field.path);
    let side = |value: &Option<Value>| value.as_ref().map(shortened);
    match (&side(&field.old), &side(&field.new)) {
        (Some(old), Some(new)) if is_line(old) && is_line(new) => {
            let what = format!("~ {path}: {} → {}", on_line(old), on_line(new));
            format!("{pad}{}\n", paint.ink(Ink::Yellow, what))
        }
        (old, new) => {
            let mut text = String::new();
            let sides = [(old, "-", Ink::Red), (new, "+", Ink::Green)];
            for (value, sign, ink) in sides {
                let Some(value) = value else { continue };
                if is_line(value) {
                    let what = format!("{sign} {path}: {}", on_line(value));
                    text.push_str(&format!("{pad}{}\n", paint.ink(ink, what)));
                    continue;
                }
                text.push_str(&format!("{pad}{}\n", paint.ink(ink, format!("{sign} {path}:"))));
                tree::write(&mut text, value, indent + 4);
            }
            text
        }
    }
}

fn render_write(write: &WriteView, paint: Paint) -> String {
    let what = format!("~ {} {}: {}", write.kind, write.object, write.what);
    format!("{}\n", paint.ink(Ink::Yellow, what))
}

fn render_services(plan: &PlanDocument, paint: Paint) -> String {
    let mut text = String::new();
    for service in &plan.services {
        let Some(line) = service_line(service, paint) else { continue };
        text.push_str(&line);
        text.push('\n');
        for finding in &service.findings {
            text.push_str(&paint.ink(Ink::Red, format!("  ! {finding}")));
            text.push('\n');
        }
        for wait in &service.waits {
            text.push_str(&paint.ink(Ink::Dim, format!("  waits on {wait}")));
            text.push('\n');
        }
    }
    for finding in &plan.findings {
        text.push_str(&paint.ink(Ink::Red, format!("! {finding}")));
        text.push('\n');
    }
    for obstacle in &plan.obstacles {
        text.push_str(&paint.ink(Ink::Red, format!("! {obstacle}")));
        text.push('\n');
    }
    for note in &plan.notes {
        text.push_str(&paint.ink(Ink::Dim, note));
        text.push('\n');
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Where a Service stands and will stand; nothing for one of which there is nothing to say.
fn service_line(service: &ServiceView, paint: Paint) -> Option<String> {
    let stays = service.after == service.state;
    let quiet = service.findings.is_empty() && service.waits.is_empty() && !service.written;
    if quiet && stays && service.address_change == AddressChange::None {
        return None;
    }
    let mut line = format!("{}: {}", paint.ink(Ink::Bold, &service.name), service.state);
    match (stays, service.written) {
        (false, _) => line.push_str(&format!(" → {}", service.after)),
        (true, true) if service.address_change == AddressChange::None => {
            line.push_str(", updated in place");
        }
        (true, _) => {}
    }
    match service.address_change {
        AddressChange::Changed => {
            line.push_str(&format!(", address changes: {}", exchange(service)));
        }
        AddressChange::Released => {
            line.push_str(&format!(", releases {}", service.lost.join(", ")));
        }
        AddressChange::New | AddressChange::None if !service.addresses.is_empty() => {
            line.push_str(&format!(" at {}", service.addresses.join(", ")));
        }
        AddressChange::New | AddressChange::None => {}
    }
    if let Some(balancer) = &service.balancer {
        line.push_str(&format!(" on {balancer}"));
    }
    Some(line)
}

/// `20.0.0.2 → 10.0.0.9`.
fn exchange(service: &ServiceView) -> String {
    let gained = match service.gained.is_empty() {
        true => "none".to_owned(),
        false => service.gained.join(", "),
    };
    format!("{} → {gained}", service.lost.join(", "))
}
