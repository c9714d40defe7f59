//! From what the controller knows to what the pages look at.

use super::seen::Seen;
use crate::history::{FieldEntry, Past, UNKNOWN, WriteEntry};
use crate::output::Paint;
use crate::render::explain as explained;
use crate::render::plan::{self as documents, PlanDocument};
use crate::render::tree;
use crate::status::LeaderStatus;
use crate::wire::WIRE;
use ::console::history::{Call, Entry, Kind, Outcome};
use ::console::plan_view::{ChangeView, FieldView, PlanView, WriteView};
use ::console::view::Head;
use control::{Notice, NoticeKind};
use edge::lease::leader::Leader;
use explain::causes::explain;
use explain::forecast::forecast;
use model::{Obstacle, Policy, ResourceId, ServiceName, World};
use serde_json::Value;
use std::sync::Arc;

/// What stands on every page.
pub(super) fn head(seen: Option<&Seen>, leader: Option<&Leader>, now_ms: u64) -> Head {
    Head {
        cluster: seen.map(|s| s.policy.cluster.to_string()).unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        now_ms,
        leader: leader.map(|l| LeaderStatus::of(l, now_ms).line()).unwrap_or_default(),
        troubles: seen.map(|s| troubles(s, now_ms)).unwrap_or_default(),
        findings: seen.map(|s| s.snapshot.findings()).unwrap_or_default(),
    }
}

fn troubles(seen: &Seen, now_ms: u64) -> Vec<String> {
    let unlisted = seen.unlisted.iter().cloned();
    unlisted.chain(seen.snapshot.troubles(now_ms)).collect()
}

/// Follows the plan to its end. What is under way now counts as still to be written, because Azure
/// does not show it yet.
pub(super) fn plan(mut world: World, policy: &Policy, seen: &Seen) -> PlanView {
    let in_flight = std::mem::take(&mut world.in_flight);
    let forecast = forecast(&world, policy);
    let document = documents::document(&forecast, &world);
    let mut view = of_document(document);
    for change in &mut view.changes {
        let call = in_flight.get(&ResourceId::new(&change.id));
        change.attempt = call.filter(|c| !c.causes.is_empty()).map(|c| c.attempt);
    }
    view.unread.clone_from(&seen.unlisted);
    view.unread.extend(forecast.last.needs.iter().map(ToString::to_string));
    view.held_up = seen.snapshot.obstacles.iter().map(Obstacle::standing).collect();
    let names = &forecast.last.services;
    view.held_up.extend(forecast.last.in_the_way().map(|obstacle| {
        let name = obstacle.services.first().and_then(|uid| names.get(uid));
        let cause = obstacle.cause();
        name.map_or_else(|| cause.clone(), |service| format!("{}: {cause}", service.name))
    }));
    view
}

/// What `ballast explain` says of a Service.
pub(super) fn explanation(mut world: World, policy: &Policy, name: &ServiceName) -> Option<String> {
    world.in_flight.clear();
    let explanation = explain(&world, policy, name, &WIRE).ok()?;
    Some(explained::render(&explanation, Paint::Plain))
}

fn of_document(document: PlanDocument) -> PlanView {
    let PlanDocument { changes, writes, calls, .. } = document;
    let changes = changes.into_iter().map(change);
    let writes = writes.into_iter().map(|w| WriteView {
        kind: w.kind.to_owned(),
        object: w.object,
        what: w.what,
    });
    let (changes, writes) = (changes.collect(), writes.collect());
    PlanView { changes, writes, calls, ..PlanView::default() }
}

fn change(change: documents::ChangeView) -> ChangeView {
    let documents::ChangeView { verb, kind, name, group, id, services, body, fields } = change;
    let fields = fields.into_iter().map(|field| FieldView {
        old: field.old.as_ref().map(lines),
        new: field.new.as_ref().map(lines),
        path: field.path,
    });
    let body = body.as_ref().map(lines);
    let fields = fields.collect();
    ChangeView { verb, kind, name, group, id, services, attempt: None, body, fields }
}

fn lines(value: &Value) -> String {
    let mut text = String::new();
    tree::write(&mut text, value, 0);
    text.trim_end().to_owned()
}

/// Azure writes as the pages show them, the last first.
pub(super) fn writes(seen: &Seen, past: Option<&Past>) -> Vec<Call> {
    let portal = past.and_then(|past| past.portal);
    let own = seen.writes.iter().rev().map(|record| call(WriteEntry::of(record, portal)));
    let earlier = past.into_iter().flat_map(|past| past.earlier.iter().rev());
    own.chain(earlier.cloned().map(call)).collect()
}

fn call(entry: WriteEntry) -> Call {
    let outcome = match entry.outcome.as_str() {
        "done" => Outcome::Done,
        "failed" => {
            let code = entry.code.unwrap_or_default();
            Outcome::Failed(format!("{code}: {}", entry.message.unwrap_or_default()))
        }
        UNKNOWN => Outcome::Unknown,
        _ => Outcome::UnderWay,
    };
    let names = entry.services.iter().filter_map(|name| name.split_once('/'));
    let field = |field: FieldEntry| FieldView {
        old: field.old.as_ref().map(lines),
        new: field.new.as_ref().map(lines),
        path: field.path,
    };
    Call {
        method: entry.method,
        resource: entry.resource,
        id: entry.id,
        services: names.map(|(namespace, name)| ServiceName::new(namespace, name)).collect(),
        gateways: entry.egress_gateways,
        sent_ms: entry.sent_ms,
        ended_ms: entry.ended_ms,
        outcome,
        attempt: entry.attempt,
        correlation: entry.correlation_id,
        fields: entry.fields.into_iter().map(field).collect(),
        more_fields: entry.more_fields,
        causes: {
            let more = (entry.more_causes > 0).then(|| format!("{} more", entry.more_causes));
            entry.causes.into_iter().map(|cause| cause.text).chain(more).collect()
        },
        portal: entry.portal,
        activity_log: entry.activity_log,
    }
}

/// What the history keeps of a notice.
pub(super) fn entry(notice: Notice) -> Entry {
    let kind = match notice.kind {
        NoticeKind::Asked => Kind::Asked,
        NoticeKind::Planned => Kind::Planned,
        NoticeKind::Sent => Kind::Sent,
        NoticeKind::Answered => Kind::Answered,
        NoticeKind::Programmed => Kind::Programmed,
        NoticeKind::Refused => Kind::Refused,
        NoticeKind::Noted => Kind::Noted,
        NoticeKind::Failed => Kind::Failed,
        NoticeKind::Drifted => Kind::Drifted,
    };
    Entry {
        at_ms: notice.at_ms,
        kind,
        services: notice.services.into(),
        text: notice.text,
        correlation: notice.correlation.map(Arc::from),
    }
}
