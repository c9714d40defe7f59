//! What a watch brings, as values.

use model::kubernetes::{EndpointSlice, GatedPod, Node, Pod, Service};
use model::world::Kind;
use model::{NodeName, ServiceName, ServiceUid};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Labels of an object.
pub type Labels = Arc<BTreeMap<Arc<str>, Arc<str>>>;

/// One change of what Kubernetes says. Facts may come twice or out of order between kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KubernetesFact {
    /// A Service exists like this (of any type; the World keeps those that matter).
    Service(Box<Service>),
    /// A Service is gone.
    ServiceGone(ServiceUid),
    /// A Node exists like this.
    Node(Node),
    /// A Node is gone.
    NodeGone(NodeName),
    /// An EndpointSlice exists like this.
    Slice(EndpointSlice),
    /// An EndpointSlice is gone.
    SliceGone(ServiceName),
    /// A Pod exists like this.
    Pod(Pod),
    /// A Pod is gone.
    PodGone(ServiceName),
    /// A Pod with our readiness gate exists like this.
    GatedPod(GatedPod),
    /// A Pod with our readiness gate is gone, or has the gate or its label no more.
    GatedPodGone(ServiceName),
    /// A namespace has these labels.
    Namespace(Arc<str>, Labels),
    /// A namespace is gone.
    NamespaceGone(Arc<str>),
    /// A list of this kind begins: what is not named until its end is gone.
    ListBegin(Kind),
    /// The list of this kind is complete, and is of this revision where that is known: what is held
    /// at a newer one came after it.
    ListEnd(Kind, Option<Arc<str>>),
}
