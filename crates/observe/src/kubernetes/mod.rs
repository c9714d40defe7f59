//! Kubernetes objects, straight from the wire, become model values.
//!
//! Only the fields that are used are deserialised ([`raw`]); everything else of an object is
//! skipped while it is parsed and never held.

mod ledger;
mod node;
mod pod;
pub mod raw;
mod service;
mod slice;

pub use ledger::{
    DESTINATIONS as LEDGER_DESTINATIONS, NOTES_ALONE as LEDGER_NOTES_ALONE,
    PLANNED_ON as LEDGER_PLANNED_ON, TAGS as LEDGER_TAGS, ledger_from_value,
};
pub use node::{node, node_from_value};
pub use pod::{gated_pod, gated_pod_from_value, pod, pod_from_value};
pub use raw::{RawEndpointSlice, RawNamespace, RawNode, RawPod, RawService};
pub use service::{service, service_from_value};
pub use slice::{namespace, namespace_from_value, slice, slice_from_value};

use crate::intern::Interner;
use model::ServiceName;
use model::kubernetes::Deletion;
use raw::Metadata;
use serde::Deserialize;
use serde_json::Value;
use std::net::IpAddr;
use std::sync::Arc;
use thiserror::Error;

/// Why an object could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("cannot read the {kind} {name:?}: {reason}")]
pub struct ObjectError {
    /// Its kind.
    pub kind: &'static str,
    /// Namespace and name, as far as known.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}

impl ObjectError {
    fn new<E>(kind: &'static str, metadata: &Metadata<E>, reason: &str) -> Self {
        let name = match metadata.namespace.as_str() {
            "" => metadata.name.clone(),
            namespace => format!("{namespace}/{}", metadata.name),
        };
        Self { kind, name, reason: reason.to_owned() }
    }
}

fn parse<'a, T: Deserialize<'a>>(kind: &'static str, value: &'a Value) -> Result<T, ObjectError> {
    T::deserialize(value).map_err(|e| {
        let name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        ObjectError { kind, name: name.to_owned(), reason: e.to_string() }
    })
}

/// The name of an object that lives in a namespace.
fn full_name<E>(
    kind: &'static str,
    metadata: &Metadata<E>,
    interner: &mut Interner,
) -> Result<ServiceName, ObjectError> {
    if metadata.name.is_empty() {
        return Err(ObjectError::new(kind, metadata, "it has no name"));
    }
    let namespace = interner.text(&metadata.namespace);
    Ok(ServiceName { namespace, name: Arc::from(metadata.name.as_str()) })
}

fn deletion<E>(metadata: &Metadata<E>) -> Deletion {
    match &metadata.deletion_timestamp {
        Some(time) if !time.is_empty() => Deletion::Requested,
        _ => Deletion::None,
    }
}

/// The addresses that are addresses, each once, in the order written.
fn addresses<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<IpAddr> {
    let mut found = Vec::new();
    for address in texts.into_iter().filter_map(|t| t.trim().parse::<IpAddr>().ok()) {
        if !found.contains(&address) {
            found.push(address);
        }
    }
    found
}

/// Text that is there.
fn filled(text: Option<&String>) -> Option<Arc<str>> {
    text.filter(|t| !t.is_empty()).map(|t| Arc::from(t.as_str()))
}
