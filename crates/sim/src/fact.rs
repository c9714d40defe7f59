//! What a watched object tells.

use model::Policy;
use model::world::Kind;
use observe::kubernetes::{self, RawEndpointSlice, RawNamespace, RawNode, RawPod, RawService};
use observe::{Interner, KubernetesFact};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;

/// How watched objects are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// As they are held, which takes less time.
    #[default]
    Parsed,
    /// From their text, as production reads them.
    Text,
}

/// An object of this kind, as it is or gone; nothing where it cannot be read.
pub(crate) fn read(
    interner: &mut Interner,
    policy: &Policy,
    classes: &BTreeSet<String>,
    kind: Kind,
    object: &Value,
    gone: bool,
) -> Option<KubernetesFact> {
    read_as(interner, policy, classes, kind, (object, Reading::Parsed), gone)
}

/// The same, read in one way or the other.
pub(crate) fn read_as(
    interner: &mut Interner,
    policy: &Policy,
    classes: &BTreeSet<String>,
    kind: Kind,
    (object, reading): (&Value, Reading),
    gone: bool,
) -> Option<KubernetesFact> {
    Some(match kind {
        Kind::Services => {
            let raw: RawService = decoded(object, reading)?;
            let service = kubernetes::service(&raw, classes, interner).ok()?;
            if gone {
                KubernetesFact::ServiceGone(service.uid)
            } else {
                KubernetesFact::Service(Box::new(service))
            }
        }
        Kind::Nodes => {
            let raw: RawNode = decoded(object, reading)?;
            let node = kubernetes::node(&raw, &policy.group, interner).ok()?;
            if gone { KubernetesFact::NodeGone(node.name) } else { KubernetesFact::Node(node) }
        }
        Kind::EndpointSlices => {
            let raw: RawEndpointSlice = decoded(object, reading)?;
            let slice = kubernetes::slice(&raw, interner).ok()?;
            if gone { KubernetesFact::SliceGone(slice.name) } else { KubernetesFact::Slice(slice) }
        }
        Kind::Pods => {
            let raw: RawPod = decoded(object, reading)?;
            let pod = kubernetes::pod(&raw, interner).ok()?;
            if gone { KubernetesFact::PodGone(pod.name) } else { KubernetesFact::Pod(pod) }
        }
        Kind::GatedPods => {
            let raw: RawPod = decoded(object, reading)?;
            let name = kubernetes::pod(&raw, interner).ok()?.name;
            match kubernetes::gated_pod(&raw, interner).ok()? {
                Some(pod) if !gone => KubernetesFact::GatedPod(pod),
                Some(_) | None => KubernetesFact::GatedPodGone(name),
            }
        }
        Kind::Namespaces => {
            let raw: RawNamespace = decoded(object, reading)?;
            let (name, labels) = kubernetes::namespace(&raw, interner).ok()?;
            if gone {
                KubernetesFact::NamespaceGone(name)
            } else {
                KubernetesFact::Namespace(name, labels)
            }
        }
    })
}

/// The fields of an object that are used.
fn decoded<R: DeserializeOwned>(object: &Value, reading: Reading) -> Option<R> {
    match reading {
        Reading::Parsed => R::deserialize(object).ok(),
        Reading::Text => serde_json::from_str(&object.to_string()).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Layout, Scene};
    use crate::stage::START_MS;

    /// Every object of a scene, and one with all that is odd: nulls, an escape, another script.
    #[test]
    fn text_says_what_the_object_says() {
        let scene = Scene::plain(Layout::Containers, 3, 7);
        let store = scene.cluster(START_MS);
        let policy = scene.config(&serde_json::json!({})).policy().clone();
        let classes = BTreeSet::new();
        let mut count = 0;
        let odd = serde_json::json!({
            "metadata": {"name": "n", "namespace": "s", "uid": "u", "resourceVersion": "1",
                "labels": {"a": "\u{1}\"\\"}, "annotations": {"b": "é\n"}, "finalizers": null},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "targetPort": "web"}]},
        });
        for kind in Kind::CONTAINER {
            let mut objects: Vec<Value> = store
                .list(crate::process::plural(kind), None)
                .iter()
                .map(|o| (**o).clone())
                .collect();
            objects.push(odd.clone());
            for object in &objects {
                let both = [Reading::Parsed, Reading::Text].map(|reading| {
                    let interner = &mut Interner::default();
                    read_as(interner, &policy, &classes, kind, (object, reading), false)
                });
                assert_eq!(both[0], both[1], "{object}");
                count += usize::from(both[1].is_some());
            }
        }
        assert!(count > 5, "{count}");
    }
}
