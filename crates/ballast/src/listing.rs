//! Kinds of Kubernetes objects: which planning looks at, and which are not listed yet.

use control::Controller;
use model::Policy;
use model::kubernetes::Backends;
use model::policy::Layout;
use model::world::Kind;

/// Kinds that planning looks at under a policy.
#[must_use]
pub fn kinds(policy: &Policy) -> Vec<Kind> {
    let mut kinds = vec![Kind::Services, Kind::Nodes, Kind::GatedPods];
    if policy.over(Backends::Pods).is_some() {
        kinds = Kind::CONTAINER.to_vec();
    }
    let over_nodes = policy.over(Backends::Nodes);
    if over_nodes.is_some_and(|policy| matches!(policy.layout, Layout::Several(_))) {
        kinds.extend([Kind::EndpointSlices, Kind::Namespaces]);
    }
    kinds.sort();
    kinds.dedup();
    kinds
}

/// Kinds of Kubernetes objects that are not listed yet, one line each.
#[must_use]
pub fn unlisted(controller: &Controller) -> Vec<String> {
    let complete = &controller.world().kubernetes.complete;
    let kinds = kinds(controller.policy());
    let missing = kinds.iter().filter(|kind| !complete.contains(kind));
    let missing = missing.map(|kind| format!("{} are not listed yet", plural(*kind)));
    let ledger = controller.awaits_ledger().then(|| "the ledger is not read yet".to_owned());
    missing.chain(ledger).collect()
}

/// The kind's name for people.
#[must_use]
pub fn plural(kind: Kind) -> &'static str {
    match kind {
        Kind::Services => "Services",
        Kind::Nodes => "Nodes",
        Kind::EndpointSlices => "EndpointSlices",
        Kind::Pods => "Pods",
        Kind::GatedPods => "Pods with Ballast's readiness gate",
        Kind::Namespaces => "Namespaces",
    }
}
