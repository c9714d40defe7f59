//! EndpointSlices and namespaces.

use super::raw::{
    Conditions, RawEndpoint, RawEndpointSlice, RawNamespace, RawSlicePort, Target as RawTarget,
};
use super::{ObjectError, deletion, full_name, parse};
use crate::fact::Labels;
use crate::intern::Interner;
use model::ServiceName;
use model::kubernetes::{Deletion, Endpoint, EndpointSlice, Readiness, SlicePort, Target};
use serde_json::Value;
use std::net::IpAddr;
use std::sync::Arc;

const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// Reads an EndpointSlice. One that is being deleted has no endpoints.
///
/// # Errors
/// It has no name.
pub fn slice(
    raw: &RawEndpointSlice,
    interner: &mut Interner,
) -> Result<EndpointSlice, ObjectError> {
    let metadata = &raw.metadata;
    let name = full_name("EndpointSlice", metadata, interner)?;
    let owner = metadata.owners.iter().find(|o| o.kind == "Service" && !o.uid.is_empty());
    let service = metadata.labels.get(SERVICE_LABEL).filter(|s| !s.is_empty());
    let mut endpoints = Vec::with_capacity(raw.endpoints.len());
    let mut unready = Vec::new();
    if deletion(metadata) == Deletion::None {
        for raw in &raw.endpoints {
            let from = endpoints.len();
            let whose = whose(raw, &name);
            read_endpoint(raw, whose, interner, &mut endpoints);
            let target = &raw.target;
            let own = target.kind == "Pod" && whose == Target::Own;
            if raw.conditions.ready == Some(false) && own {
                let pod: Arc<str> = Arc::from(target.name.as_str());
                unready.extend(endpoints[from..].iter().map(|e| (e.address, Arc::clone(&pod))));
            }
        }
    }
    endpoints.shrink_to_fit();
    Ok(EndpointSlice {
        owner: owner.map(|o| interner.uid(&o.uid)),
        service: service.map(|s| ServiceName {
            namespace: Arc::clone(&name.namespace),
            name: interner.text(s),
        }),
        name,
        revision: Arc::from(metadata.revision.as_str()),
        ports: raw.ports.iter().filter_map(|port| read_port(port, interner)).collect(),
        endpoints,
        unready,
    })
}

/// The same from parsed JSON.
///
/// # Errors
/// It is no EndpointSlice, or has no name.
pub fn slice_from_value(
    value: &Value,
    interner: &mut Interner,
) -> Result<EndpointSlice, ObjectError> {
    slice(&parse("EndpointSlice", value)?, interner)
}

/// A port of a slice. One without a number stands for all ports, and one whose number is none for
/// nothing.
fn read_port(raw: &RawSlicePort, interner: &mut Interner) -> Option<SlicePort> {
    let number = u16::try_from(raw.port?).ok().filter(|number| *number > 0)?;
    Some(SlicePort { name: interner.text(&raw.name), number })
}

/// Whose address an endpoint of a slice lists. A `targetRef` without a namespace means the slice's.
fn whose(raw: &RawEndpoint, slice: &ServiceName) -> Target {
    let RawTarget { kind, namespace, name: _ } = &raw.target;
    let foreign = kind == "Pod" && !namespace.is_empty() && **namespace != *slice.namespace;
    if foreign { Target::Foreign } else { Target::Own }
}

fn read_endpoint(
    raw: &RawEndpoint,
    target: Target,
    interner: &mut Interner,
    endpoints: &mut Vec<Endpoint>,
) {
    let Conditions { ready, serving, terminating } = raw.conditions;
    let readiness = match ready {
        Some(false) if serving == Some(true) && terminating == Some(true) => Readiness::Terminating,
        Some(false) => Readiness::NotReady,
        Some(true) | None => Readiness::Ready,
    };
    let node = raw.node.as_ref().filter(|n| !n.is_empty());
    let node = node.map(|n| interner.node(n));
    let found = raw.addresses.iter().filter_map(|a| a.trim().parse::<IpAddr>().ok());
    endpoints.extend(found.map(|address| Endpoint {
        address,
        node: node.clone(),
        readiness,
        target,
    }));
}

/// Reads a namespace's name and labels.
///
/// # Errors
/// It has no name.
pub fn namespace(
    raw: &RawNamespace,
    interner: &mut Interner,
) -> Result<(Arc<str>, Labels), ObjectError> {
    let metadata = &raw.metadata;
    if metadata.name.is_empty() {
        return Err(ObjectError::new("Namespace", metadata, "it has no name"));
    }
    Ok((interner.text(&metadata.name), interner.labels(&metadata.labels)))
}

/// The same from parsed JSON.
///
/// # Errors
/// It is no namespace, or has no name.
pub fn namespace_from_value(
    value: &Value,
    interner: &mut Interner,
) -> Result<(Arc<str>, Labels), ObjectError> {
    namespace(&parse("Namespace", value)?, interner)
}
