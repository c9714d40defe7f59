//! The kinds that are watched, and how their objects are read.

use super::watch::{Change, Read, Source};
use model::kubernetes::{POD_FINALIZER, Pod, READINESS_GATE};
use model::world::Kind;
use model::{Group, NodeName, ServiceName, ServiceUid};
use observe::KubernetesFact as Fact;
use observe::intern::Interner;
use observe::kubernetes::{
    ObjectError, RawEndpointSlice, RawNamespace, RawNode, RawPod, RawService, raw::Metadata,
};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The label of Pods that leave through an egress gateway.
pub const EGRESS_LABEL: &str = "kubernetes.azure.com/service-egress-gateway";

/// What reading objects needs to know.
#[derive(Clone, Debug)]
pub struct SourceSettings {
    /// Load-balancer classes that are ours besides none.
    pub classes: BTreeSet<String>,
    /// The cluster's resource group: nodes of others are left out.
    pub group: Group,
}

/// Shared strings.
type SharedPool = Arc<Mutex<Interner>>;

/// The sources of these kinds; they share their strings.
#[must_use]
pub fn sources(kinds: &[Kind], settings: &SourceSettings) -> Vec<Source> {
    let pool = SharedPool::default();
    kinds.iter().map(|kind| source(*kind, settings, &pool)).collect()
}

fn source(kind: Kind, settings: &SourceSettings, pool: &SharedPool) -> Source {
    let (path, selector, read) = match kind {
        Kind::Services => ("/api/v1/services", None, services(settings, pool)),
        Kind::Nodes => ("/api/v1/nodes", None, nodes(settings, pool)),
        Kind::EndpointSlices => ("/apis/discovery.k8s.io/v1/endpointslices", None, slices(pool)),
        Kind::Pods => ("/api/v1/pods", Some(EGRESS_LABEL.to_string()), pods(pool)),
        Kind::GatedPods => ("/api/v1/pods", Some(READINESS_GATE.to_string()), gated_pods(pool)),
        Kind::Namespaces => ("/api/v1/namespaces", None, namespaces(pool)),
    };
    Source { kind, path: path.to_string(), selector, fields: None, read }
}

fn services(settings: &SourceSettings, pool: &SharedPool) -> Read {
    let classes = settings.classes.clone();
    reader(pool, move |raw: &RawService, change, interner| match change {
        Change::Gone => Ok(Fact::ServiceGone(ServiceUid::new(&raw.metadata.uid))),
        Change::Present => observe::kubernetes::service(raw, &classes, interner)
            .map(|service| Fact::Service(Box::new(service))),
    })
}

fn nodes(settings: &SourceSettings, pool: &SharedPool) -> Read {
    let group = settings.group.clone();
    reader(pool, move |raw: &RawNode, change, interner| match change {
        Change::Gone => Ok(Fact::NodeGone(NodeName::new(&raw.metadata.name))),
        Change::Present => observe::kubernetes::node(raw, &group, interner).map(Fact::Node),
    })
}

fn slices(pool: &SharedPool) -> Read {
    reader(pool, |raw: &RawEndpointSlice, change, interner| match change {
        Change::Gone => Ok(Fact::SliceGone(name(&raw.metadata))),
        Change::Present => observe::kubernetes::slice(raw, interner).map(Fact::Slice),
    })
}

fn pods(pool: &SharedPool) -> Read {
    reader(pool, |raw: &RawPod, change, interner| match change {
        // A Pod that is gone has no finalizer left: this one only lost its label, and waits for
        // its finalizer to be taken off.
        Change::Gone if raw.metadata.finalizers.iter().any(|f| f == POD_FINALIZER) => {
            let pod = observe::kubernetes::pod(raw, interner)?;
            Ok(Fact::Pod(Pod { egress: None, ..pod }))
        }
        Change::Gone => Ok(Fact::PodGone(name(&raw.metadata))),
        Change::Present => observe::kubernetes::pod(raw, interner).map(Fact::Pod),
    })
}

fn gated_pods(pool: &SharedPool) -> Read {
    reader(pool, |raw: &RawPod, change, interner| {
        let gated = match change {
            Change::Gone => None,
            Change::Present => observe::kubernetes::gated_pod(raw, interner)?,
        };
        Ok(gated.map_or_else(|| Fact::GatedPodGone(name(&raw.metadata)), Fact::GatedPod))
    })
}

fn namespaces(pool: &SharedPool) -> Read {
    reader(pool, |raw: &RawNamespace, change, interner| match change {
        Change::Gone => Ok(Fact::NamespaceGone(Arc::from(raw.metadata.name.as_str()))),
        Change::Present => observe::kubernetes::namespace(raw, interner)
            .map(|(name, labels)| Fact::Namespace(name, labels)),
    })
}

fn name(metadata: &Metadata) -> ServiceName {
    ServiceName::new(&metadata.namespace, &metadata.name)
}

fn reader<R: DeserializeOwned>(
    pool: &SharedPool,
    fact: impl Fn(&R, Change, &mut Interner) -> Result<Fact, ObjectError> + Send + Sync + 'static,
) -> Read {
    let pool = Arc::clone(pool);
    Arc::new(move |change, json| {
        let raw: R = serde_json::from_str(json).map_err(|e| e.to_string())?;
        let mut interner = pool.lock().unwrap_or_else(PoisonError::into_inner);
        fact(&raw, change, &mut interner).map_err(|e| e.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: Kind, change: Change, json: &str) -> Result<Fact, String> {
        let settings = SourceSettings { classes: BTreeSet::new(), group: Group::new("rg") };
        (sources(&[kind], &settings)[0].read)(change, json)
    }

    #[test]
    fn a_pod_that_lost_its_label_is_not_gone_while_it_has_our_finalizer() {
        let json = r#"{"metadata":{"name":"n","namespace":"s","uid":"u","resourceVersion":"7",
            "labels":{"kubernetes.azure.com/service-egress-gateway":"team-a"},
            "finalizers":["servicegateway.azure.com/pod-cleanup"]}}"#;
        let Ok(Fact::Pod(pod)) = read(Kind::Pods, Change::Gone, json) else {
            panic!("it still is there")
        };
        assert_eq!(pod.egress, None);
        assert!(pod.finalizers.contains(POD_FINALIZER));
    }

    #[test]
    fn every_kind_is_read_and_its_end_is_named() {
        let json = r#"{"metadata":{"name":"n","namespace":"s","uid":"u","resourceVersion":"1"}}"#;
        let name = ServiceName::new("s", "n");
        for (kind, gone) in [
            (Kind::Services, Fact::ServiceGone(ServiceUid::new("u"))),
            (Kind::Nodes, Fact::NodeGone(NodeName::new("n"))),
            (Kind::EndpointSlices, Fact::SliceGone(name.clone())),
            (Kind::Pods, Fact::PodGone(name.clone())),
            (Kind::GatedPods, Fact::GatedPodGone(name)),
            (Kind::Namespaces, Fact::NamespaceGone(Arc::from("n"))),
        ] {
            assert_eq!(read(kind, Change::Gone, json), Ok(gone), "{kind:?}");
            assert!(read(kind, Change::Present, json).is_ok(), "{kind:?}");
        }
    }

    #[test]
    fn an_object_of_the_wrong_shape_is_an_error() {
        let error = read(Kind::Services, Change::Present, r#"{"spec":{"ports":7}}"#).unwrap_err();
        assert!(!error.is_empty());
    }
}
