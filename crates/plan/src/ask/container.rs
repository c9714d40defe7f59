//! What a Service asks of the container load balancer.

use super::access;
use super::audit;
use super::findings::{
    BACKEND_COLLISION, FindingRule, IGNORED_BY_CONTAINER, INVALID_BACKEND_PORT,
    INVALID_FRONTEND_PORT, UNENFORCED_SOURCES, UNSUPPORTED_ADDRESS, UNSUPPORTED_AFFINITY,
    UNSUPPORTED_DUAL_STACK, UNSUPPORTED_INTERNAL, UNSUPPORTED_PROTOCOL,
};
use super::idle_timeout::{SHORT_IDLE_TIMEOUT, idle_timeout};
use super::limit;
use super::reader::{Reader, Reading};
use crate::ask::annotation::{self, INTERNAL, Truth};
use model::kubernetes::{Affinity, Service, ServicePort, TargetPort};
use model::policy::BalancerSku;
use model::{Family, Policy, Protocol, ServiceName, ServiceUid};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is said of a list of sources without an entry.
const NO_SOURCE: &str = "allows no source, which cannot be enforced on container load balancers; \
                         remove it, and use a NetworkPolicy";

/// What a Service asks of its container load balancer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContainerIntent {
    /// UID: the name of its load balancer.
    pub uid: ServiceUid,
    /// Namespace and name.
    pub name: ServiceName,
    /// Family of its address.
    pub family: Family,
    /// Ports that have a number on the Pods.
    pub ports: Vec<ContainerPort>,
    /// Ports that have a name there, until Pods say which number that is.
    pub named: Vec<NamedPort>,
    /// Idle timeout in minutes.
    pub idle_timeout_min: u16,
}

/// A port of a container load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ContainerPort {
    /// TCP or UDP.
    pub protocol: Protocol,
    /// The port clients connect to.
    pub port: u16,
    /// The port on the pods.
    pub backend_port: u16,
}

/// A port of a container load balancer whose target port is a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamedPort {
    /// TCP or UDP.
    pub protocol: Protocol,
    /// The port clients connect to.
    pub port: u16,
    /// The port's own name, under which EndpointSlices have the number; empty if it has none.
    pub name: Arc<str>,
    /// The target port's name.
    pub target: Arc<str>,
}

/// Reads a Service on the container load balancer.
///
/// # Guarantees
/// There is an intent if and only if no finding is a refusal. Never panics.
#[must_use]
pub fn read(service: &Service, policy: &Policy) -> Reading<ContainerIntent> {
    let mut r = Reader::new(service, policy);
    if r.is_true(INTERNAL, Truth::AnyCase) {
        r.find(&UNSUPPORTED_INTERNAL, INTERNAL, r.raw(INTERNAL).unwrap_or_default());
    }
    if service.affinity == Affinity::ClientIp {
        r.find_field(&UNSUPPORTED_AFFINITY, "spec.sessionAffinity", "ClientIP");
    }
    if let Some(address) = service.load_balancer_ip.as_deref().filter(|text| !text.is_empty()) {
        r.find_field(&UNSUPPORTED_ADDRESS, "spec.loadBalancerIP", address);
    }
    if service.families.len() > 1 {
        let names: Vec<&str> = service.families.iter().map(|f| f.name()).collect();
        r.find_field(&UNSUPPORTED_DUAL_STACK, "spec.ipFamilies", &names.join(","));
    }
    let idle_timeout_min = idle_timeout(&mut r, 4..=30, SHORT_IDLE_TIMEOUT);
    let (ports, named) = ports(&mut r);
    let family = service.families.first().copied().unwrap_or(Family::V4);
    let limits = access::limits(&r, family);
    for (key, value) in &limits {
        match value.as_str() {
            "" => r.find_with(&UNENFORCED_SOURCES, key, value, NO_SOURCE),
            value => r.find_field(&UNENFORCED_SOURCES, key, value),
        }
    }
    note_ignored(&mut r, !limits.is_empty());
    let intent = ContainerIntent {
        uid: service.uid.clone(),
        name: service.name.clone(),
        family,
        ports,
        named,
        idle_timeout_min,
    };
    r.finish(intent)
}

fn ports(r: &mut Reader<'_>) -> (Vec<ContainerPort>, Vec<NamedPort>) {
    let service = r.service;
    // A port whose target is a name has its rule once Pods say the number.
    limit::count(r, service.ports.len());
    let mut taken = BTreeSet::new();
    let (mut ports, mut named) = (Vec::new(), Vec::new());
    for entry in &service.ports {
        let ServicePort { protocol, port, .. } = *entry;
        if protocol == Protocol::Sctp {
            refuse_port(r, &UNSUPPORTED_PROTOCOL, entry, port);
        }
        if !(1..=65534).contains(&port) {
            refuse_port(r, &INVALID_FRONTEND_PORT, entry, port);
        }
        let backend_port = match &entry.target_port {
            TargetPort::Number(0) => port,
            TargetPort::Number(number) => *number,
            TargetPort::Name(target) => {
                let (name, target) = (Arc::clone(&entry.name), Arc::clone(target));
                named.push(NamedPort { protocol, port, name, target });
                continue;
            }
        };
        if !taken.insert((protocol, backend_port)) {
            refuse_port(r, &BACKEND_COLLISION, entry, backend_port);
        }
        if backend_port == 0 {
            refuse_port(r, &INVALID_BACKEND_PORT, entry, backend_port);
        }
        ports.push(ContainerPort { protocol, port, backend_port });
    }
    (ports, named)
}

fn refuse_port(r: &mut Reader<'_>, rule: &FindingRule, port: &ServicePort, number: u16) {
    let value = format!("{}/{number}", port.protocol.name());
    r.find_field(rule, "spec.ports", &value);
}

/// One note for each annotation that does nothing here. Those that limit who may connect are
/// refused where they do.
fn note_ignored(r: &mut Reader<'_>, limited: bool) {
    let refused = |key: &str| limited && access::SOURCES.contains(&key);
    let all: Vec<(&str, &str)> = r.annotations.iter().map(|(k, v)| (*k, *v)).collect();
    for (key, value) in all {
        match annotation::find(key) {
            Some(found) if found.annotation.works_on(BalancerSku::Service) => {
                audit::flag(r, found.annotation, key);
            }
            Some(_) if refused(key) => {}
            Some(_) => r.find(&IGNORED_BY_CONTAINER, key, value),
            None => audit::unknown(r, key),
        }
    }
    if !r.service.source_ranges.is_empty() && !limited {
        let ranges = r.service.source_ranges.join(",");
        r.find_field(&IGNORED_BY_CONTAINER, "spec.loadBalancerSourceRanges", &ranges);
    }
}
