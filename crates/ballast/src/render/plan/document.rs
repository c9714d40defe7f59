//! What `plan -o json` prints.

use super::words::{group_name, kind_name, shown_name};
use crate::render::known;
use arm::difference::{Field, diff};
use console::plan_view::Verb;
use explain::forecast::Forecast;
use explain::forecast::transition::{Stage, Transition, transitions};
use model::kubernetes::{Condition, Gate, Ingress, MoveStage, SERVICE_CONDITION};
use model::plan::{
    Action, Change, ConditionEdit, Edit, FinalizerPurpose, KubernetesWrite, MoveEdit, Object,
};
use model::report::Wait;
use model::{ServiceUid, World};
use plan::own::pod_names;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A plan followed to its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanDocument {
    /// Azure resources, in the order in which they are written.
    pub changes: Vec<ChangeView>,
    /// Kubernetes writes, in order.
    pub writes: Vec<WriteView>,
    /// Changes of Services on hold: Ballast writes them once the owner removes the pause or the
    /// deletion protection.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held_back: Vec<ChangeView>,
    /// Services, by namespace and name.
    pub services: Vec<ServiceView>,
    /// What is wrong with the whole.
    pub findings: Vec<String>,
    /// Reads that failed, one line each: what the plan does not know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub obstacles: Vec<String>,
    /// What to keep in mind when reading it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Azure writes it takes.
    pub calls: usize,
    /// Services that clients cannot reach for a while, by namespace and name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interrupted: Vec<String>,
    /// How long the writes take at least at Azure's published limits, in milliseconds.
    #[serde(rename = "limitsMs")]
    pub limits_ms: u64,
}

impl PlanDocument {
    /// Whether nothing would be written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.writes.is_empty()
    }

    /// Keeps what concerns some Services only. Counts of writes become those that are left.
    pub fn narrow(&mut self, concerns: impl Fn(&str) -> bool) {
        for changes in [&mut self.changes, &mut self.held_back] {
            changes.retain(|change| change.services.iter().any(|name| concerns(name)));
        }
        self.writes.retain(|write| concerns(&write.object));
        self.services.retain(|service| concerns(&service.name));
        self.interrupted.retain(|name| concerns(name));
        self.calls = self.calls.min(self.changes.len());
    }
}

/// A verb as its word, for programs too.
pub(crate) fn word<S: Serializer>(verb: &Verb, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(verb.word())
}

/// One resource.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangeView {
    /// What is done.
    #[serde(serialize_with = "word")]
    pub verb: Verb,
    /// What it is, for people.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its resource group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Its id.
    pub id: String,
    /// Services on whose account it is written.
    pub services: Vec<String>,
    /// The whole body of what is created or called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// What differs in what is changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
}

/// One Kubernetes write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WriteView {
    /// Service or Pod.
    pub kind: &'static str,
    /// Namespace and name.
    pub object: String,
    /// What is written.
    pub what: String,
}

/// What becomes of the addresses that clients use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AddressChange {
    /// Clients go on using what they use.
    None,
    /// There is one where there was none, or one beside those that there are.
    New,
    /// One that clients use goes; there may be another instead.
    Changed,
    /// It is given up with the Service.
    Released,
}

impl AddressChange {
    fn of(transition: &Transition) -> Self {
        match transition {
            t if t.changes_address() => Self::Changed,
            t if t.releases_address() => Self::Released,
            t if t.gets_address() => Self::New,
            _ => Self::None,
        }
    }
}

/// One Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceView {
    /// Namespace and name.
    pub name: String,
    /// Where it stands now: `new`, `programmed`, `waiting`, `refused`,
    /// `refused, serving as before`, `removing`.
    pub state: &'static str,
    /// Where it stands in the end: one of these, or `removed`.
    pub after: &'static str,
    /// Whether anything is written in Azure on its account.
    pub written: bool,
    /// What becomes of its addresses.
    pub address_change: AddressChange,
    /// Addresses in its status now that are not there in the end.
    pub lost: Vec<String>,
    /// Addresses in its status in the end that are not there now.
    pub gained: Vec<String>,
    /// Addresses it will have.
    pub addresses: Vec<String>,
    /// Its load balancer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balancer: Option<String>,
    /// What is wrong with it.
    pub findings: Vec<String>,
    /// What it waits on that the plan does not bring about.
    pub waits: Vec<String>,
}

/// What a forecast comes to.
#[must_use]
pub fn document(forecast: &Forecast, world: &World) -> PlanDocument {
    PlanDocument {
        changes: changes(forecast, world),
        held_back: Vec::new(),
        writes: writes(&forecast.writes, world),
        services: services(forecast, world),
        findings: forecast.last.findings.iter().map(ToString::to_string).collect(),
        obstacles: Vec::new(),
        notes: Vec::new(),
        calls: forecast.calls,
        interrupted: interrupted(forecast, world),
        limits_ms: 0,
    }
}

/// The Azure resources of a forecast, in the order in which they are written.
#[must_use]
pub fn changes(forecast: &Forecast, world: &World) -> Vec<ChangeView> {
    forecast.changes.iter().map(|c| change(c, world)).collect()
}

/// Services that are reached before some write and not after it, and that stay.
fn interrupted(forecast: &Forecast, world: &World) -> Vec<String> {
    let stays = |uid: &ServiceUid| forecast.last.services.contains_key(uid);
    let cut = forecast.steps.iter().flat_map(|step| &step.cut).map(|(uid, _)| uid);
    let cut: BTreeSet<&ServiceUid> = cut.filter(|uid| stays(uid)).collect();
    let mut names: Vec<String> = cut.into_iter().map(|uid| service_name(world, uid)).collect();
    names.sort();
    names
}

/// What a write is for: a Service by its name, by its UID once it is gone, or an egress gateway.
fn service_name(world: &World, uid: &ServiceUid) -> String {
    match world.kubernetes.services.get(uid) {
        Some(service) => service.name.to_string(),
        None if pod_names::is_gateway(uid) => format!("egress gateway {uid}"),
        None => uid.to_string(),
    }
}

/// What an action does, in a word.
#[must_use]
pub fn verb(action: &Action) -> Verb {
    match action {
        Action::Put { before: None, .. } => Verb::Create,
        Action::Put { before: Some(_), .. } => Verb::Change,
        Action::Delete { .. } | Action::DeleteChild => Verb::Delete,
        Action::MigratePools { .. } | Action::UpdateServices(_) | Action::UpdateLocations(_) => {
            Verb::Call
        }
    }
}

fn change(change: &Change, world: &World) -> ChangeView {
    let id = &change.target;
    let body = |value: Value| Some(known::value(&value));
    let written = |r| known::value(&arm::body::write_resource(r));
    let (verb, body, fields) = match &change.action {
        Action::Put { before: None, after } => (Verb::Create, Some(written(after)), Vec::new()),
        Action::Put { before: Some(before), after } => {
            (Verb::Change, None, diff(&written(before), &written(after)))
        }
        Action::Delete { .. } | Action::DeleteChild => (Verb::Delete, None, Vec::new()),
        Action::MigratePools { pools } => {
            (Verb::Call, body(arm::body::migrate_pools(pools)), Vec::new())
        }
        Action::UpdateServices(update) => {
            (Verb::Call, body(arm::body::services_update(update)), Vec::new())
        }
        Action::UpdateLocations(update) => {
            (Verb::Call, body(arm::body::locations_update(update)), Vec::new())
        }
    };
    let mut services: Vec<String> =
        change.causes.iter().map(|uid| service_name(world, uid)).collect();
    services.sort();
    ChangeView {
        verb,
        kind: kind_name(id),
        name: shown_name(id),
        group: group_name(id),
        id: id.to_string(),
        services,
        body,
        fields,
    }
}

fn writes(writes: &[KubernetesWrite], world: &World) -> Vec<WriteView> {
    let services = world.kubernetes.services.values();
    let services = services.map(|s| (("Service", s.name.to_string()), s.finalizers.clone()));
    let pods = world.kubernetes.pods.values();
    let pods = pods.map(|p| (("Pod", p.name.to_string()), p.finalizers.iter().cloned().collect()));
    let mut finalizers: BTreeMap<(&str, String), Vec<Arc<str>>> = services.chain(pods).collect();
    let mut views = Vec::new();
    for write in writes {
        let (kind, object) = match &write.object {
            Object::Service { name, .. } => ("Service", name.to_string()),
            Object::Pod { name, .. } => ("Pod", name.to_string()),
        };
        let what = match &write.edit {
            Edit::Finalizers { list, purpose, .. } => {
                let known = finalizers.insert((kind, object.clone()), list.clone());
                let before = known.unwrap_or_default();
                finalizer_words(&before, list, *purpose)
            }
            Edit::Gate { gate, reason, .. } => match gate {
                Gate::Open => format!("its readiness gate opens ({})", reason.name()),
                Gate::Shut => format!("its readiness gate shuts ({})", reason.name()),
            },
            Edit::Status { ingress, condition, moving } => {
                let ingress = ingress.as_deref().map(ingress_words);
                let words = ingress.into_iter().chain(condition_words(condition));
                let words = words.chain(move_words(*moving));
                words.collect::<Vec<_>>().join("; ")
            }
        };
        views.push(WriteView { kind, object, what });
    }
    views
}

fn ingress_words(list: &[Ingress]) -> String {
    let list = list.iter().filter_map(|i| i.ip.as_ref().or(i.hostname.as_ref()));
    let list: Vec<String> = list.map(|text| known::text(text)).collect();
    match list.is_empty() {
        true => "its status loses its addresses".to_owned(),
        false => format!("its status gets {}", list.join(", ")),
    }
}

/// How far a move to other backends is.
fn move_words(moving: MoveEdit) -> Option<String> {
    let words = match moving {
        MoveEdit::Keep => return None,
        MoveEdit::Set { stage: MoveStage::Both, .. } => "it has both addresses",
        MoveEdit::Set { stage: MoveStage::Draining, .. } => "its former load balancer drains",
        MoveEdit::Remove => "its move is over",
    };
    Some(words.to_owned())
}

fn condition_words(condition: &ConditionEdit) -> Option<String> {
    match condition {
        ConditionEdit::Keep => None,
        ConditionEdit::Set(Condition { truth, reason, .. }) => {
            Some(format!("its condition {SERVICE_CONDITION} becomes {} ({reason})", truth.name()))
        }
        ConditionEdit::Remove => Some(format!("its condition {SERVICE_CONDITION} goes")),
    }
}

fn finalizer_words(before: &[Arc<str>], after: &[Arc<str>], purpose: FinalizerPurpose) -> String {
    let missing_in = |from: &[Arc<str>], there: &[Arc<str>]| {
        let gone: Vec<String> =
            from.iter().filter(|f| !there.contains(f)).map(ToString::to_string).collect();
        gone.join(", ")
    };
    match purpose {
        // A new leader writes again what the one before may have taken off.
        FinalizerPurpose::Claim if before == after => "its finalizers are confirmed".to_owned(),
        FinalizerPurpose::Claim => format!("gets finalizer {}", missing_in(after, before)),
        FinalizerPurpose::Release | FinalizerPurpose::Moved => {
            format!("loses finalizer {}", missing_in(before, after))
        }
    }
}

fn services(forecast: &Forecast, world: &World) -> Vec<ServiceView> {
    let mut views: Vec<ServiceView> = transitions(forecast, world)
        .into_iter()
        .filter_map(|(uid, transition)| {
            let last = forecast.last.services.get(&uid);
            let end = last.or_else(|| forecast.report.services.get(&uid))?;
            let lasting = last.map(|l| l.waits.as_slice()).unwrap_or_default();
            let known = |list: &[Arc<str>]| list.iter().map(|a| known::text(a)).collect();
            Some(ServiceView {
                name: transition.name.to_string(),
                state: stage(transition.from),
                after: stage(transition.to),
                written: transition.written,
                address_change: AddressChange::of(&transition),
                lost: known(&transition.lost),
                gained: known(&transition.gained),
                addresses: known(&end.addresses),
                balancer: end.balancer.as_ref().map(ToString::to_string),
                findings: end.findings.iter().map(ToString::to_string).collect(),
                waits: lasting.iter().map(Wait::to_string).collect(),
            })
        })
        .collect();
    views.sort_by(|a, b| a.name.cmp(&b.name));
    views
}

fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::New => "new",
        Stage::At(at) => at.text(),
        Stage::Removed => "removed",
    }
}

/// The document as JSON.
impl From<&PlanDocument> for Value {
    fn from(plan: &PlanDocument) -> Self {
        serde_json::to_value(plan).unwrap_or_else(|e| json!({ "error": e.to_string() }))
    }
}
