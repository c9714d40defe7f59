//! What a watched object tells.

use model::Policy;
use model::world::Kind;
use observe::{Interner, KubernetesFact, kubernetes};
use serde_json::Value;
use std::collections::BTreeSet;

/// An object of this kind, as it is or gone; nothing where it cannot be read.
pub(crate) fn read(
    interner: &mut Interner,
    policy: &Policy,
    classes: &BTreeSet<String>,
    kind: Kind,
    object: &Value,
    gone: bool,
) -> Option<KubernetesFact> {
    Some(match kind {
        Kind::Services => {
            let service = kubernetes::service_from_value(object, classes, interner).ok()?;
            if gone {
                KubernetesFact::ServiceGone(service.uid)
            } else {
                KubernetesFact::Service(Box::new(service))
            }
        }
        Kind::Nodes => {
            let node = kubernetes::node_from_value(object, &policy.group, interner).ok()?;
            if gone { KubernetesFact::NodeGone(node.name) } else { KubernetesFact::Node(node) }
        }
        Kind::EndpointSlices => {
            let slice = kubernetes::slice_from_value(object, interner).ok()?;
            if gone { KubernetesFact::SliceGone(slice.name) } else { KubernetesFact::Slice(slice) }
        }
        Kind::Pods => {
            let pod = kubernetes::pod_from_value(object, interner).ok()?;
            if gone { KubernetesFact::PodGone(pod.name) } else { KubernetesFact::Pod(pod) }
        }
        Kind::GatedPods => {
            let name = kubernetes::pod_from_value(object, interner).ok()?.name;
            match kubernetes::gated_pod_from_value(object, interner).ok()? {
                Some(pod) if !gone => KubernetesFact::GatedPod(pod),
                Some(_) | None => KubernetesFact::GatedPodGone(name),
            }
        }
        Kind::Namespaces => {
            let (name, labels) = kubernetes::namespace_from_value(object, interner).ok()?;
            if gone {
                KubernetesFact::NamespaceGone(name)
            } else {
                KubernetesFact::Namespace(name, labels)
            }
        }
    })
}
