//! What a write is caused by: an edit of a Service, nodes, drift, or what was found at the start.
//!
//! An edit counts as the cause of the writes for its Service until the Service is programmed; nodes
//! that came or went count for writes of pools and destinations until nothing is to be written.

use super::Few;
use super::fields::{FieldChange, of_edit};
use model::kubernetes::{
    Deletion, Editors, LoadBalancerType, Service, ServicePort, TargetPort, TrafficPolicy,
};
use model::plan::{Action, Change, Resource};
use model::report::State;
use model::world::{Kind, Kubernetes};
use model::{Plan, Report, ServiceName, ServiceUid, World};
use observe::KubernetesFact;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Causes of one write that are kept.
const CAUSES: usize = 20;
/// Edits of one Service that are kept until it is programmed.
const EDITS: usize = 4;
/// Nodes that one write names.
const NODES: usize = 20;
/// Nodes that are kept until nothing is to be written, which may be never: the last ones.
const KEPT_NODES: usize = 1_000;
/// Annotations that configure load balancers; the values of others may be secrets.
const OURS: [&str; 3] = ["service.beta.kubernetes.io/", "service.kubernetes.io/", "ballast.dev/"];

/// Why a write was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The owner of a Service edited it.
    Edit(Arc<Edit>),
    /// The Service stands as it was read; nothing of it changed while this process looked.
    Standing {
        /// The Service.
        service: ServiceName,
        /// Who edited it last.
        editors: Option<Arc<Editors>>,
    },
    /// Nodes came or went.
    Nodes {
        /// Names of nodes that came, changed or went.
        names: Vec<Arc<str>>,
        /// How many more there are.
        more: usize,
    },
    /// Something else than Ballast changed the resource, and the write puts it back.
    Drift(Arc<str>),
}

/// One edit of a Service by its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The Service.
    pub service: ServiceName,
    /// When it was seen, in milliseconds of the controller's clock.
    pub seen_ms: u64,
    /// The fields that changed: the first ones, and how many more there are where they are many.
    pub fields: Vec<FieldChange>,
    /// Its field managers. The API server records none for a deletion, nor for an edit that only
    /// removes fields.
    pub editors: Option<Arc<Editors>>,
}

impl Cause {
    /// What it takes in memory, about: names are shared with others.
    pub(super) fn bytes(&self) -> usize {
        let more = match self {
            Self::Edit(edit) => {
                size_of::<Edit>() + edit.fields.iter().map(FieldChange::bytes).sum::<usize>()
            }
            Self::Nodes { names, .. } => names.len() * size_of::<Arc<str>>(),
            Self::Drift(text) => text.len(),
            Self::Standing { .. } => 0,
        };
        size_of::<Self>() + more
    }
}

/// What the next writes may be caused by.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    edits: BTreeMap<ServiceUid, Vec<Arc<Edit>>>,
    /// Names, each once, the oldest first.
    nodes: VecDeque<Arc<str>>,
}

impl Causes {
    /// A Service was edited, or is new.
    pub fn edited(&mut self, old: Option<&Service>, new: &Service, now_ms: u64) {
        let fields = match old {
            Some(old) => difference(old, new),
            None => vec![field("metadata.creationTimestamp", None, Some(json!("created")))],
        };
        let deleted = new.deletion == Deletion::Requested;
        let before = old.and_then(|old| old.editors.as_ref());
        let editors = new.editors.as_ref().filter(|_| !deleted);
        let editors = editors.and_then(|now| match before {
            Some(before) if before == now && fields.iter().all(only_takes_away) => None,
            Some(before) => Some(Arc::new(now.since(before))),
            None => Some(Arc::clone(now)),
        });
        let fields = of_edit(fields);
        let edit = Edit { service: new.name.clone(), seen_ms: now_ms, fields, editors };
        let open = self.edits.entry(new.uid.clone()).or_default();
        open.push(Arc::new(edit));
        if open.len() > EDITS {
            open.remove(0);
        }
    }

    /// A node came, went, or takes traffic otherwise than before.
    pub fn note_node(&mut self, fact: &KubernetesFact, held: &Kubernetes) {
        let nodes = &held.nodes;
        let name = match fact {
            KubernetesFact::Node(node) => {
                let old = nodes.get(&node.name);
                let same = old.is_some_and(|old| {
                    old.addresses == node.addresses && old.membership == node.membership
                });
                (!same).then_some(&node.name)
            }
            KubernetesFact::NodeGone(name) => nodes.contains_key(name).then_some(name),
            _ => None,
        };
        // The first list is what stands, and no change.
        if let Some(name) = name
            && held.complete.contains(&Kind::Nodes)
            && !self.nodes.iter().any(|known| **known == *name.as_str())
        {
            self.nodes.push_back(Arc::from(name.as_str()));
            if self.nodes.len() > KEPT_NODES {
                self.nodes.pop_front();
            }
        }
    }

    /// What has been written is no cause of what follows.
    pub fn close(&mut self, world: &World, plan: &Plan, report: &Report) {
        let (known, reports) = (&world.kubernetes.services, &report.services);
        let open = |uid: &ServiceUid| match reports.get(uid) {
            Some(report) => report.state != State::Programmed || !report.waits.is_empty(),
            // Before the lists are complete there is no report.
            None => known.contains_key(uid),
        };
        self.edits.retain(|uid, _| open(uid));
        if plan.changes.is_empty() && world.in_flight.is_empty() {
            self.nodes.clear();
        }
    }

    /// The first causes of a change of these fields, and how many more there are. `drift` says what
    /// others made of the resource.
    pub fn of(
        &self,
        change: &Change,
        fields: &[FieldChange],
        drift: impl Iterator<Item = String>,
        held: &BTreeMap<ServiceUid, Arc<Service>>,
    ) -> Few<Cause> {
        let mut causes = Vec::new();
        causes.extend(drift.map(|text| Cause::Drift(Arc::from(text))));
        if !self.nodes.is_empty() && follows_nodes(change, fields) {
            let mut names: Vec<Arc<str>> = self.nodes.iter().cloned().collect();
            names.sort_unstable();
            names.truncate(NODES);
            causes.push(Cause::Nodes { names, more: self.nodes.len().saturating_sub(NODES) });
        }
        let edits = change.causes.iter().filter_map(|uid| self.edits.get(uid)).flatten();
        causes.extend(edits.map(|edit| Cause::Edit(Arc::clone(edit))));
        if causes.is_empty() {
            let services = change.causes.iter();
            let services = services.filter_map(|uid| held.get(uid));
            causes.extend(services.map(|service| Cause::Standing {
                service: service.name.clone(),
                editors: service.editors.clone(),
            }));
        }
        let more = causes.len().saturating_sub(CAUSES);
        causes.truncate(CAUSES);
        Few { shown: causes, more }
    }
}

/// Whether a change may follow from nodes: pools, their members and destinations list them.
fn follows_nodes(change: &Change, fields: &[FieldChange]) -> bool {
    let member = matches!(&change.action, Action::Put { after: Resource::PoolMember(_), .. });
    let lists = |path: &str| path.contains("ackendAddress") || path.contains("destinationAddress");
    member || fields.iter().any(|field| lists(&field.path))
}

fn field(path: &str, old: Option<Value>, new: Option<Value>) -> FieldChange {
    let text = |value: Option<Value>| value.map(|value| value.to_string());
    FieldChange { path: path.to_owned(), old: text(old), new: text(new) }
}

/// Whether a field only lost entries. managedFields then names no manager of this edit: it lists
/// only fields that are there.
fn only_takes_away(field: &FieldChange) -> bool {
    let value = |side: &Option<String>| -> Value {
        side.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    };
    match (value(&field.new), value(&field.old)) {
        (Value::Null, _) => true,
        (Value::Array(new), Value::Array(old)) => new.iter().all(|one| old.contains(one)),
        (Value::Object(new), Value::Object(old)) => {
            new.iter().all(|(key, value)| old.get(key) == Some(value))
        }
        _ => false,
    }
}

/// Fields of a Service that its owner decides on and that differ.
fn difference(old: &Service, new: &Service) -> Vec<FieldChange> {
    let mut fields = annotations(old, new);
    let mut compare = |path: &str, of: &dyn Fn(&Service) -> Value| {
        let (old, new) = (of(old), of(new));
        if old != new {
            let there = |value: Value| Some(value).filter(|v| !arm::difference::is_empty(v));
            fields.push(field(path, there(old), there(new)));
        }
    };
    compare("metadata.deletionTimestamp", &|s| {
        json!((s.deletion == Deletion::Requested).then_some("set"))
    });
    compare("metadata.labels", &|s| json!(&*s.labels));
    compare("spec.type", &|s| {
        json!(match s.load_balancer_type {
            LoadBalancerType::Ours => "LoadBalancer",
            LoadBalancerType::Foreign => "LoadBalancer of another class",
            LoadBalancerType::Other => "another type",
        })
    });
    compare("spec.selector", &|s| json!(&*s.selector));
    compare("spec.ports", &|s| json!(s.ports.iter().map(port).collect::<Vec<_>>()));
    compare("spec.ipFamilies", &|s| json!(s.families.iter().map(|f| f.name()).collect::<Vec<_>>()));
    compare("spec.sessionAffinity", &|s| json!(s.affinity));
    compare("spec.externalTrafficPolicy", &|s| {
        json!(match s.traffic_policy {
            TrafficPolicy::Cluster => "Cluster",
            TrafficPolicy::Local => "Local",
        })
    });
    compare("spec.healthCheckNodePort", &|s| json!(s.health_check_node_port));
    compare("spec.loadBalancerIP", &|s| json!(s.load_balancer_ip));
    compare("spec.clusterIPs", &|s| json!(s.cluster_ips));
    compare("spec.loadBalancerSourceRanges", &|s| json!(s.source_ranges));
    fields
}

/// Values of annotations that are none of Ballast's are not kept.
fn annotations(old: &Service, new: &Service) -> Vec<FieldChange> {
    let keys: BTreeSet<&Arc<str>> = old.annotations.keys().chain(new.annotations.keys()).collect();
    let differing =
        keys.into_iter().filter(|key| old.annotations.get(*key) != new.annotations.get(*key));
    let shown = |service: &Service, key: &Arc<str>| {
        let value = service.annotations.get(key)?;
        match OURS.iter().any(|prefix| key.starts_with(prefix)) {
            true => Some(json!(&**value)),
            false => Some(json!("(not shown)")),
        }
    };
    let change = |key: &Arc<str>| {
        field(&format!("metadata.annotations[{key}]"), shown(old, key), shown(new, key))
    };
    differing.map(change).collect()
}

/// A port in a few words, as in `http 80/TCP to 8080, node port 30080`.
fn port(port: &ServicePort) -> String {
    let name = if port.name.is_empty() { String::new() } else { format!("{} ", port.name) };
    let target = match &port.target_port {
        TargetPort::Number(0) => port.port.to_string(),
        TargetPort::Number(number) => number.to_string(),
        TargetPort::Name(name) => name.to_string(),
    };
    let node = port.node_port.map(|n| format!(", node port {n}")).unwrap_or_default();
    let app = port.app_protocol.as_ref().map(|p| format!(", {p}")).unwrap_or_default();
    format!("{name}{}/{} to {target}{node}{app}", port.port, port.protocol.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(annotations: &[(&str, &str)], manager: &str, time: &str) -> Service {
        let editors = Editors { managers: vec![manager.into()], time: time.into() };
        Service { editors: Some(Arc::new(editors)), ..fixture::service(annotations) }
    }

    /// The field manager that the history names for an edit.
    fn named(old: &Service, new: &Service) -> Option<String> {
        let mut causes = Causes::default();
        causes.edited(Some(old), new, 0);
        let edit = causes.edits[&new.uid].last().expect("an edit");
        edit.editors.as_ref().map(ToString::to_string)
    }

    /// A tenant may write a quarter of a megabyte into an annotation with each edit.
    #[test]
    fn a_large_edit_is_kept_in_part() {
        let keys: Vec<String> =
            (0..1_000).map(|n| format!("azure-{n:04}-{}", "y".repeat(100))).collect();
        let many: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), "x")).collect();
        let long = "x".repeat(250_000);
        for annotations in [many, vec![("azure-pip-tags", long.as_str())]] {
            let mut causes = Causes::default();
            let (old, new) = (fixture::service(&[]), fixture::service(&annotations));
            causes.edited(Some(&old), &new, 0);
            let edit = causes.edits[&new.uid].last().expect("an edit");
            let bytes = Cause::Edit(Arc::clone(edit)).bytes();
            assert!(bytes < 10_000, "{bytes} bytes of {} annotations", annotations.len());
            assert!(edit.fields[0].path.starts_with("metadata.annotations["));
            let last = &edit.fields[edit.fields.len() - 1].path;
            assert_eq!(last.ends_with(" more fields"), annotations.len() > 1, "{last}");
        }
    }

    /// Something is to be written for as long as Azure refuses it, and an autoscaler gives each
    /// node another name.
    #[test]
    fn of_nodes_that_come_and_go_the_last_are_kept() {
        let mut causes = Causes::default();
        let mut held = Kubernetes::default();
        held.complete.insert(Kind::Nodes);
        let last = 2 * KEPT_NODES;
        for n in (0..=last).flat_map(|n| [n, n]) {
            let node = fixture::node(&format!("n{n}"), Vec::new());
            causes.note_node(&KubernetesFact::Node(node), &held);
        }
        assert_eq!(causes.nodes.len(), KEPT_NODES);
        assert_eq!(causes.nodes.back().map(|name| &**name), Some(format!("n{last}").as_str()));
    }

    #[test]
    fn an_edit_that_only_takes_away_is_not_its_predecessors() {
        const KEY: &str = "azure-load-balancer-tcp-idle-timeout";
        let before = edited(&[(KEY, "9")], "kubectl-edit", "2026-01-01T00:00:00Z");
        // `kubectl annotate service web KEY-` leaves managedFields as they were.
        let without = edited(&[], "kubectl-edit", "2026-01-01T00:00:00Z");
        assert_eq!(named(&before, &without), None);
        let within_a_second = edited(&[(KEY, "5")], "kubectl-edit", "2026-01-01T00:00:00Z");
        assert_eq!(named(&before, &within_a_second).as_deref(), Some("kubectl-edit"));
        let noted = edited(&[], "helm", "2026-01-01T00:00:05Z");
        assert_eq!(named(&before, &noted).as_deref(), Some("helm"));
    }
}
