//! A Service's page.

use super::change::{self, Extent};
use super::parts::{self, Turn, cell, table, url_of_part};
use super::topology::{drawing, zoom};
use super::{Pace, Place, frame, frame_at};
use super::{backends, network, timeline};
use crate::history::{Call, Entry, History, Kind};
use crate::html::{Html, grouped};
use crate::plan_view::PlanView;
use crate::span;
use crate::topology::{service_url, trees};
use crate::view::{Head, ServiceLine};
use model::kubernetes::{Service, TargetPort, TrafficPolicy};
use model::{ServiceName, World};

/// Writes for it on a page.
const WRITES: usize = 15;
/// Entries of its history on a page.
const ENTRIES: usize = 100;
/// Values of a fact that are not folded.
const VALUES: usize = 20;
/// Annotations that configure load balancers; others may hold anything, secrets included.
const OURS: [&str; 3] = ["service.beta.kubernetes.io/", "service.kubernetes.io/", "ballast.dev/"];

/// Which part of each list of a Service's page is shown, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceQuery {
    /// Its backends.
    pub backends: usize,
    /// Security rules that lead to it.
    pub rules: usize,
    /// Writes for it.
    pub writes: usize,
    /// Its history.
    pub entries: usize,
}

/// What a Service's page looks at.
#[derive(Clone, Copy, Debug)]
pub struct ServiceView<'a> {
    /// What is asked for.
    pub query: ServiceQuery,
    /// The Service.
    pub line: &'a ServiceLine,
    /// Everything known.
    pub world: &'a World,
    /// What is to be written.
    pub plan: &'a PlanView,
    /// What happened.
    pub history: &'a History,
    /// Calls that wrote to Azure, the last first.
    pub calls: &'a [Call],
}

/// The page.
#[must_use]
pub fn service(head: &Head, view: &ServiceView<'_>) -> String {
    let ServiceView { query, line, world, .. } = *view;
    let name = line.name.to_string();
    frame(head, Place::Elsewhere, &name, |h| {
        h.tag("div", &[("class", "bar")], |h| {
            h.leaf("h1", &[], &name);
            h.tag("p", &[("class", "standing"), ("id", "standing")], |h| {
                parts::state(h, line.state);
                if let Some(since) = line.since_ms {
                    h.tag("span", &[("class", "quiet")], |h| {
                        h.text("for ");
                        span::since(h, since, head.now_ms);
                    });
                }
            });
        });
        troubles(h, head, line);
        if let Some(service) = world.kubernetes.services.get(&line.uid) {
            facts(h, line, service);
        }
        h.tag("p", &[], |h| {
            let url = format!("{}/explained", service_url(&line.name));
            h.leaf("a", &[("href", &url)], "Where each field in Azure comes from");
        });
        h.tag("section", &[("aria-labelledby", "topology")], |h| {
            h.tag("div", &[("class", "bar")], |h| {
                h.leaf("h2", &[("id", "topology")], "Topology");
                zoom(h);
            });
            for tree in trees(world, &[line]) {
                drawing(h, &tree);
            }
        });
        network::security_rules(h, line, world, query.rules);
        let object = world.kubernetes.services.get(&line.uid).map(|s| &**s);
        backends::section(h, head, (line, object), query.backends);
        coming(h, line, &name, view.plan);
        writes(h, head, view);
        past(h, head, view);
    })
}

/// What `ballast explain` says of a Service: it takes several plans, so it has a page of its own.
#[must_use]
pub fn explained(head: &Head, name: &ServiceName, text: &str) -> String {
    let title = format!("{name} explained");
    frame_at(head, Place::Elsewhere, &title, Pace::Still, |h| {
        h.leaf("h1", &[], &title);
        h.tag("p", &[("class", "bar")], |h| {
            let why = "Each resource and field in Azure, and what it comes from, as of ";
            h.tag("span", &[], |h| {
                h.text(why);
                span::clock(h, head.now_ms);
                h.text(" UTC.");
            });
            h.leaf("a", &[("href", &service_url(name))], "Back to the Service");
        });
        h.leaf("pre", &[("class", "text"), ("tabindex", "0")], text);
    })
}

fn troubles(h: &mut Html, head: &Head, line: &ServiceLine) {
    if !line.faults.is_empty() {
        h.tag("section", &[("aria-labelledby", "findings")], |h| {
            h.leaf("h2", &[("id", "findings")], "Findings");
            for fault in &line.faults {
                parts::fault(h, fault, head.now_ms);
            }
        });
    }
    if !line.waits.is_empty() {
        h.tag("section", &[("aria-labelledby", "waits")], |h| {
            h.leaf("h2", &[("id", "waits")], "Waits on");
            h.tag("ul", &[], |h| {
                for wait in &line.waits {
                    h.leaf("li", &[], wait);
                }
            });
        });
    }
}

fn facts(h: &mut Html, line: &ServiceLine, service: &Service) {
    let mut facts: Vec<(&str, Vec<String>)> = Vec::new();
    facts.push(("Addresses", line.addresses.clone()));
    facts.push(("Host names", line.hosts.iter().map(ToString::to_string).collect()));
    facts.push(("Load balancer", line.balancer.iter().cloned().collect()));
    let ports = service.ports.iter().map(|port| {
        let target = match &port.target_port {
            TargetPort::Number(0) => port.port.to_string(),
            TargetPort::Number(number) => number.to_string(),
            TargetPort::Name(name) => name.to_string(),
        };
        let node = port.node_port.map(|n| format!(", node port {n}")).unwrap_or_default();
        format!("{} {} → {target}{node}", port.protocol.name(), port.port)
    });
    facts.push(("Ports", ports.collect()));
    let policy = match service.traffic_policy {
        TrafficPolicy::Cluster => "Cluster",
        TrafficPolicy::Local => "Local",
    };
    facts.push(("External traffic policy", vec![policy.to_owned()]));
    let ranges = service.source_ranges.iter().map(ToString::to_string).collect();
    facts.push(("Source ranges", ranges));
    let ours = |key: &str| OURS.iter().any(|prefix| key.starts_with(prefix));
    let annotations = service.annotations.iter().filter(|(key, _)| ours(key));
    facts.push(("Annotations", annotations.map(|(k, v)| format!("{k}: {v}")).collect()));
    facts.push(("Finalizers", service.finalizers.iter().map(ToString::to_string).collect()));
    h.tag("dl", &[("class", "facts")], |h| {
        for (name, values) in facts.into_iter().filter(|(_, values)| !values.is_empty()) {
            h.tag("div", &[], |h| {
                h.leaf("dt", &[], name);
                let (first, rest) = values.split_at(values.len().min(VALUES));
                for value in first {
                    h.leaf("dd", &[], value);
                }
                if !rest.is_empty() {
                    h.tag("dd", &[], |h| folded(h, rest));
                }
            });
        }
    });
}

fn folded(h: &mut Html, values: &[String]) {
    h.tag("details", &[], |h| {
        h.leaf("summary", &[], &format!("and {} more", grouped(values.len() as u64)));
        for value in values {
            h.leaf("p", &[], value);
        }
    });
}

/// What is to be written on its account.
fn coming(h: &mut Html, line: &ServiceLine, name: &str, plan: &PlanView) {
    const FIELDS: usize = 40;
    h.tag("section", &[("aria-labelledby", "plan")], |h| {
        h.leaf("h2", &[("id", "plan")], "Plan");
        let about = |services: &[String]| services.iter().any(|s| s == name);
        let mut any = false;
        for one in plan.changes.iter().filter(|c| about(&c.services)) {
            change::change(h, one, 0..FIELDS, Extent::Part);
            any = true;
        }
        let writes: Vec<_> =
            plan.writes.iter().filter(|w| w.kind == "Service" && w.object == name).collect();
        if !writes.is_empty() {
            change::writes(h, &writes);
        }
        if !any && writes.is_empty() {
            let text = match line.is_held_up() {
                true => "Nothing can be written for it now: see above.",
                false => "Nothing to do.",
            };
            h.leaf("p", &[("class", "empty")], text);
        }
    });
}

/// What was written to Azure for it.
fn writes(h: &mut Html, head: &Head, view: &ServiceView<'_>) {
    let own = view.calls.iter().filter(|call| call.services.contains(&view.line.name));
    let own: Vec<&Call> = own.collect();
    if own.is_empty() {
        return;
    }
    let url = url_of_part(&service_url(&view.line.name), &[], "writes");
    let (page, total) = (view.query.writes, own.len());
    let turn = Turn { url: &url, page, size: WRITES, total, noun: "writes" };
    h.tag("section", &[("aria-labelledby", "writes")], |h| {
        h.leaf("h2", &[("id", "writes")], "Writes to Azure");
        timeline::calls(h, head, own.get(turn.range()).unwrap_or_default());
        turn.pager(h);
    });
}

fn past(h: &mut Html, head: &Head, view: &ServiceView<'_>) {
    h.tag("section", &[("aria-labelledby", "history")], |h| {
        h.leaf("h2", &[("id", "history")], "History");
        let entries: Vec<&Entry> = view.history.of(&view.line.name).collect();
        if entries.is_empty() {
            h.leaf("p", &[("class", "empty")], "Nothing happened since this process began.");
            return;
        }
        let url = url_of_part(&service_url(&view.line.name), &[], "entries");
        let (page, total) = (view.query.entries, entries.len());
        let turn = Turn { url: &url, page, size: ENTRIES, total, noun: "entries" };
        let shown = entries.get(turn.range()).unwrap_or_default();
        table(h, "History", &["Time, UTC", "Ago", "What", "How"], shown, |h, entry| {
            cell(h, "Time, UTC", |h| span::clock(h, entry.at_ms));
            cell(h, "Ago", |h| span::since(h, entry.at_ms, head.now_ms));
            cell(h, "What", |h| kind(h, entry.kind));
            cell(h, "How", |h| h.text(&entry.text));
        });
        turn.pager(h);
    });
}

fn kind(h: &mut Html, kind: Kind) {
    match kind {
        Kind::Programmed => parts::badge(h, "programmed", kind.word()),
        Kind::Refused => parts::badge(h, "refused", kind.word()),
        Kind::Noted => parts::badge(h, "note", kind.word()),
        Kind::Failed | Kind::Drifted => parts::badge(h, "failed", kind.word()),
        Kind::Answered => parts::badge(h, "done", kind.word()),
        Kind::Asked | Kind::Planned | Kind::Sent => parts::badge(h, "waiting", kind.word()),
    }
}
