//! Azure writes as a document: what `/history` answers, `ballast history` prints, and the history
//! file holds.

pub mod file;

use control::history::{Cause, FieldChange};
use control::{Controller, DriftOutcome, DriftRecord, WriteOutcome, WriteRecord};
use model::ResourceId;
use observe::config::{Cloud, CloudSettings};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The outcome of a write that Azure has not answered yet.
pub const UNDER_WAY: &str = "underWay";
/// The outcome of a write of which only a process knew that has ended.
pub const UNKNOWN: &str = "unknown";

/// What `/history` of a running controller answers, and `ballast history -o json` prints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryDocument {
    /// When it was made, in milliseconds since the Unix epoch.
    pub now_ms: u64,
    /// Azure writes, the first first.
    pub writes: Vec<WriteEntry>,
    /// What something else than Ballast changed in Azure, the first first.
    #[serde(default)]
    pub drift: Vec<DriftEntry>,
}

/// One Azure write.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteEntry {
    /// When it was sent, in milliseconds since the Unix epoch.
    pub sent_ms: u64,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// HTTP method.
    pub method: String,
    /// The resource, as in `loadBalancers/kubernetes`.
    pub resource: String,
    /// Its ARM id.
    pub id: String,
    /// `x-ms-correlation-request-id`, by which Azure's activity log finds it.
    pub correlation_id: String,
    /// The number of the attempt in a row.
    pub attempt: u32,
    /// `underWay`, `done` or `failed`; `unknown` of a process that ended before Azure answered.
    pub outcome: String,
    /// HTTP status of a failure; absent where there was no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Azure's error code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Azure's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The Services it was for, by namespace and name.
    pub services: Vec<String>,
    /// The egress gateways it was for, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub egress_gateways: Vec<String>,
    /// What it was caused by.
    pub causes: Vec<CauseEntry>,
    /// How many further causes there were.
    #[serde(default)]
    pub more_causes: usize,
    /// What it changed.
    pub fields: Vec<FieldEntry>,
    /// How many further fields it changed.
    #[serde(default)]
    pub more_fields: usize,
    /// Where Azure's portal shows the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub portal: Option<String>,
    /// Where the portal shows its activity log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity_log: Option<String>,
}

/// A field before and after.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FieldEntry {
    /// Where, as in `properties.probes[name].properties.port`.
    pub path: String,
    /// What it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    /// What it became.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
}

/// Why a write was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CauseEntry {
    /// `edit`, `standing`, `nodes` or `drift`.
    pub kind: String,
    /// The Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The fields of the Service that were edited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldEntry>,
    /// The field manager that edited the Service last, from `metadata.managedFields`; several with
    /// "or" between them where the API server does not note which of them was the last; absent
    /// where it notes none, as for an edit that only takes fields away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<String>,
    /// When, as the API server wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager_time: Option<String>,
    /// When the edit was seen, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_ms: Option<u64>,
    /// All of it in one line.
    pub text: String,
}

/// One part of Azure that something else than Ballast changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriftEntry {
    /// The resource, as in `loadBalancers/kubernetes`.
    pub resource: String,
    /// Its ARM id.
    pub id: String,
    /// What happened, as in `rule a-TCP-80 is gone`.
    pub what: String,
    /// The Services it concerns, by namespace and name.
    pub services: Vec<String>,
    /// `repairing`, `reported` or `over`.
    pub outcome: String,
    /// When it was noticed, in milliseconds since the Unix epoch.
    pub noticed_ms: u64,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// Where the portal shows the resource's activity log, which names who changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity_log: Option<String>,
}

/// Where a resource is shown by Azure's portal; `portal` is the portal's address.
fn shown(portal: Option<&str>, id: &ResourceId, part: &str) -> Option<String> {
    portal.map(|portal| format!("{portal}/#resource{id}{part}"))
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

impl From<&FieldChange> for FieldEntry {
    fn from(field: &FieldChange) -> Self {
        let side = |text: &Option<String>| text.as_deref().map(value);
        Self { path: field.path.clone(), old: side(&field.old), new: side(&field.new) }
    }
}

impl FieldEntry {
    /// The field in one line, as in `spec.ports: 80 → 443`.
    #[must_use]
    pub fn line(&self) -> String {
        let side = |value: &Option<Value>| match value {
            None => "nothing".to_owned(),
            Some(value) => value.to_string(),
        };
        format!("{}: {} → {}", self.path, side(&self.old), side(&self.new))
    }
}

impl From<&Cause> for CauseEntry {
    fn from(cause: &Cause) -> Self {
        match cause {
            Cause::Edit(edit) => {
                let fields: Vec<FieldEntry> = edit.fields.iter().map(FieldEntry::from).collect();
                let lines: Vec<String> = fields.iter().map(FieldEntry::line).collect();
                let manager = edit.editors.as_ref().map(ToString::to_string);
                let whom = manager.as_ref().map(|m| format!(" by {m}")).unwrap_or_default();
                let created = edit.fields.iter().any(|f| f.path.ends_with("creationTimestamp"));
                let text = match created {
                    true => format!("{} was created{whom}", edit.service),
                    false => format!("{} was edited{whom}: {}", edit.service, lines.join("; ")),
                };
                Self {
                    kind: "edit".to_owned(),
                    service: Some(edit.service.to_string()),
                    fields,
                    manager,
                    manager_time: edit.editors.as_ref().map(|editors| editors.time.to_string()),
                    seen_ms: Some(edit.seen_ms),
                    text,
                }
            }
            Cause::Standing { service, editors } => {
                let last = match editors {
                    Some(e) => format!("; last edited by {e} at {}", e.time),
                    None => String::new(),
                };
                Self {
                    kind: "standing".to_owned(),
                    service: Some(service.to_string()),
                    manager: editors.as_ref().map(ToString::to_string),
                    manager_time: editors.as_ref().map(|editors| editors.time.to_string()),
                    text: format!("{service} asks for it, as it was read{last}"),
                    ..Self::default()
                }
            }
            Cause::Nodes { names, more } => {
                let more = if *more == 0 { String::new() } else { format!(" and {more} more") };
                let text = format!("nodes came, went or changed: {}{more}", names.join(", "));
                Self { kind: "nodes".to_owned(), text, ..Self::default() }
            }
            Cause::Drift(deed) => {
                let text = format!("repairs drift: {deed}");
                Self { kind: "drift".to_owned(), text, ..Self::default() }
            }
        }
    }
}

impl WriteEntry {
    /// Of what the controller remembers.
    #[must_use]
    pub fn of(record: &WriteRecord, portal: Option<&str>) -> Self {
        let (outcome, failure) = match &record.outcome {
            WriteOutcome::UnderWay => (UNDER_WAY, None),
            WriteOutcome::Done => ("done", None),
            WriteOutcome::Failed { status, code, message } => {
                ("failed", Some((*status, code.to_string(), message.to_string())))
            }
        };
        let (status, code, message) = match failure {
            Some((status, code, message)) => (Some(status), Some(code), Some(message)),
            None => (None, None, None),
        };
        Self {
            sent_ms: record.sent_ms,
            ended_ms: record.ended_ms,
            method: record.method.to_owned(),
            resource: record.target.short().to_owned(),
            id: record.target.to_string(),
            correlation_id: record.correlation.to_string(),
            attempt: record.attempt,
            outcome: outcome.to_owned(),
            status: status.filter(|status| *status > 0),
            code,
            message,
            services: record.services.iter().map(ToString::to_string).collect(),
            egress_gateways: record.gateways.iter().map(ToString::to_string).collect(),
            causes: record.causes.shown.iter().map(CauseEntry::from).collect(),
            more_causes: record.causes.more,
            fields: record.fields.shown.iter().map(FieldEntry::from).collect(),
            more_fields: record.fields.more,
            portal: shown(portal, &record.target, ""),
            activity_log: shown(portal, &record.target, "/eventlogs"),
        }
    }
}

impl DriftEntry {
    /// Of what the controller remembers.
    #[must_use]
    pub fn of(record: &DriftRecord, services: Vec<String>, portal: Option<&str>) -> Self {
        let DriftRecord { drift, noticed_ms, ended_ms, outcome } = record;
        Self {
            resource: drift.resource().to_owned(),
            id: drift.target.to_string(),
            what: drift.deed(),
            services,
            outcome: match outcome {
                DriftOutcome::Repairing => "repairing",
                DriftOutcome::Reported => "reported",
                DriftOutcome::Paused => "paused",
                DriftOutcome::Over => "over",
            }
            .to_owned(),
            noticed_ms: *noticed_ms,
            ended_ms: *ended_ms,
            activity_log: shown(portal, &drift.target, "/eventlogs"),
        }
    }
}

/// What was before a process, and where Azure's portal is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Past {
    /// The portal's address; absent for an emulator and for Azure Stack.
    pub portal: Option<&'static str>,
    /// Writes of processes before this one, the first first.
    pub earlier: Vec<WriteEntry>,
}

/// The portal's address. A cloud config with its own endpoint names an emulator or a stack.
#[must_use]
pub fn portal(settings: &CloudSettings) -> Option<&'static str> {
    let own = settings.resource_manager_endpoint.as_deref().unwrap_or_default();
    match settings.cloud {
        _ if !own.is_empty() => None,
        Cloud::Public => Some("https://portal.azure.com"),
        Cloud::China => Some("https://portal.azure.cn"),
        Cloud::UsGovernment => Some("https://portal.azure.us"),
        Cloud::Stack => None,
    }
}

/// What a controller remembers of Azure's writes and of drift, at one moment.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    /// Writes, the first first.
    pub writes: Vec<Arc<WriteRecord>>,
    /// Drift, with the names of the Services that it concerns.
    pub drift: Vec<(DriftRecord, Vec<String>)>,
}

impl Remembered {
    /// Of a controller.
    #[must_use]
    pub fn of(controller: &Controller) -> Self {
        let services = &controller.world().kubernetes.services;
        let drift = controller.drift().map(|record| {
            let names = record.drift.services.iter().filter_map(|uid| services.get(uid));
            (record.clone(), names.map(|service| service.name.to_string()).collect())
        });
        Self { writes: controller.history().cloned().collect(), drift: drift.collect() }
    }
}

/// The Services whose history is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// All, and writes for no Service in particular.
    Everything,
    /// All of a namespace.
    Namespace(&'a str),
    /// One, by namespace and name.
    Service(&'a str),
}

impl HistoryDocument {
    /// Of what a controller remembers, after what was before it.
    #[must_use]
    pub fn of(seen: &Remembered, past: &Past, now_ms: u64) -> Self {
        let own = seen.writes.iter().map(|record| WriteEntry::of(record, past.portal));
        let drift = seen.drift.iter();
        let mut drift: Vec<DriftEntry> = drift
            .map(|(record, services)| DriftEntry::of(record, services.clone(), past.portal))
            .collect();
        drift.sort_by_key(|drift| drift.noticed_ms);
        let writes = past.earlier.iter().cloned().chain(own).collect();
        Self { now_ms, writes, drift }
    }

    /// Keeps the writes and drift of these Services since a time.
    pub fn narrow(&mut self, wanted: Wanted<'_>, since_ms: u64) {
        let about = |names: &[String]| match wanted {
            Wanted::Everything => true,
            Wanted::Service(service) => names.iter().any(|name| name == service),
            Wanted::Namespace(namespace) => names.iter().any(|name| {
                name.split_once('/').is_some_and(|(of_service, _)| of_service == namespace)
            }),
        };
        let end = |write: &WriteEntry| match write.outcome.as_str() {
            UNKNOWN => write.ended_ms.unwrap_or(write.sent_ms),
            _ => write.ended_ms.unwrap_or(u64::MAX),
        };
        self.writes.retain(|write| about(&write.services) && end(write) >= since_ms);
        self.drift.retain(|drift| {
            about(&drift.services) && drift.ended_ms.unwrap_or(u64::MAX) >= since_ms
        });
    }
}
