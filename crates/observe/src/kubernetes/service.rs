//! Services.

use super::raw::{
    IntOrText, ManagedFields, Port, RawIngress, RawService, ServiceCondition, ServiceSpec,
};
use super::{ObjectError, addresses, deletion, filled, full_name, parse};
use crate::fact::Labels;
use crate::intern::Interner;
use model::kubernetes::{
    Affinity, Backends, Condition, Custody, Deletion, Editors, FIELD_MANAGER, Ingress,
    LoadBalancerType, MIGRATION_CONDITION, Move, MoveStage, SERVICE_CONDITION, Service,
    ServicePort, TargetPort, TrafficPolicy, Truth, Wish,
};
use model::{Family, Protocol};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Reads a Service; `classes` are the values of `spec.loadBalancerClass` that are ours, beside
/// none at all.
///
/// # Errors
/// It has no name or no UID.
pub fn service(
    raw: &RawService,
    classes: &BTreeSet<String>,
    interner: &mut Interner,
) -> Result<Service, ObjectError> {
    let metadata = &raw.metadata;
    let spec = &raw.spec;
    let name = full_name("Service", metadata, interner)?;
    if metadata.uid.is_empty() {
        return Err(ObjectError::new("Service", metadata, "it has no uid"));
    }
    let class_is_ours = match spec.class.as_deref() {
        None | Some("") => true,
        Some(class) => classes.contains(class),
    };
    let kind = match (spec.kind == "LoadBalancer", class_is_ours) {
        (true, true) => LoadBalancerType::Ours,
        (true, false) => LoadBalancerType::Foreign,
        (false, _) => LoadBalancerType::Other,
    };
    let deletion = deletion(metadata);
    let wanted = kind == LoadBalancerType::Ours && deletion == Deletion::None;
    Ok(Service {
        uid: interner.uid(&metadata.uid),
        name,
        revision: Arc::from(metadata.revision.as_str()),
        wish: if wanted { Wish::LoadBalancer } else { Wish::Nothing },
        load_balancer_type: kind,
        deletion,
        finalizers: metadata.finalizers.iter().map(|f| interner.text(f)).collect(),
        annotations: annotations(&metadata.annotations, interner),
        labels: interner.labels(&metadata.labels),
        selector: interner.labels(&spec.selector),
        ports: spec.ports.iter().filter_map(|p| port(p, interner)).collect(),
        families: families(&spec.families),
        affinity: match spec.affinity.as_str() {
            "ClientIP" => Affinity::ClientIp,
            _ => Affinity::None,
        },
        traffic_policy: match spec.traffic_policy.as_str() {
            "Local" => TrafficPolicy::Local,
            _ => TrafficPolicy::Cluster,
        },
        health_check_node_port: number(spec.health_check_node_port),
        load_balancer_ip: filled(spec.load_balancer_ip.as_ref()),
        cluster_ips: cluster_ips(spec),
        source_ranges: spec.source_ranges.iter().map(|r| Arc::from(r.as_str())).collect(),
        ingress: raw.status.load_balancer.ingress.iter().map(ingress).collect(),
        condition: condition(&raw.status.conditions, interner),
        moving: moving(&raw.status.conditions),
        custody: Custody::Own,
        editors: editors(&metadata.editors, interner),
    })
}

/// Those that edited it last: not its status, and not Ballast itself.
fn editors(all: &[ManagedFields], interner: &mut Interner) -> Option<Arc<Editors>> {
    let edits = all.iter().filter(|m| m.subresource.is_empty() && m.manager != FIELD_MANAGER);
    let time = edits.clone().map(|edit| &edit.time).max()?;
    let names: BTreeSet<&str> =
        edits.filter(|edit| edit.time == *time).map(|edit| edit.manager.as_str()).collect();
    let managers = names.into_iter().map(|name| interner.text(name)).collect();
    Some(Arc::new(Editors { managers, time: interner.text(time) }))
}

/// The same from parsed JSON.
///
/// # Errors
/// It is no Service, or has no name or no UID.
pub fn service_from_value(
    value: &Value,
    classes: &BTreeSet<String>,
    interner: &mut Interner,
) -> Result<Service, ObjectError> {
    service(&parse("Service", value)?, classes, interner)
}

/// All but kubectl's copy of the whole object, which nobody looks at and which is long.
fn annotations(raw: &BTreeMap<String, String>, interner: &mut Interner) -> Labels {
    let kept = raw.iter().filter(|(key, _)| *key != LAST_APPLIED);
    interner.labels(kept)
}

/// A port with a protocol or number that no API server lets through is left out.
fn port(raw: &Port, interner: &mut Interner) -> Option<ServicePort> {
    let protocol = match raw.protocol.as_str() {
        "" | "TCP" => Protocol::Tcp,
        "UDP" => Protocol::Udp,
        "SCTP" => Protocol::Sctp,
        _ => return None,
    };
    let target_port = match &raw.target_port {
        None => TargetPort::Number(0),
        Some(IntOrText::Int(number)) => TargetPort::Number(u16::try_from(*number).ok()?),
        Some(IntOrText::Text(name)) => TargetPort::Name(interner.text(name)),
    };
    Some(ServicePort {
        name: interner.text(&raw.name),
        protocol,
        port: number(raw.port)?,
        target_port,
        node_port: number(raw.node_port),
        app_protocol: raw.app_protocol.as_ref().map(|p| interner.text(p)),
    })
}

fn cluster_ips(spec: &ServiceSpec) -> Vec<IpAddr> {
    let first = spec.cluster_ips.is_empty().then_some(&spec.cluster_ip);
    addresses(spec.cluster_ips.iter().chain(first).map(String::as_str))
}

fn number(raw: i64) -> Option<u16> {
    u16::try_from(raw).ok().filter(|n| *n != 0)
}

fn families(raw: &[String]) -> Vec<Family> {
    let mut found = Vec::new();
    for text in raw {
        let family = Family::ALL.into_iter().find(|f| f.name() == text);
        found.extend(family.filter(|f| !found.contains(f)));
    }
    if found.is_empty() {
        found.push(Family::V4);
    }
    found
}

/// An address is read in its shortest form, in which it is compared: the Go cloud provider writes
/// IPv6 as Azure does, which may be longer.
fn ingress(raw: &RawIngress) -> Ingress {
    let shortest = |text: Arc<str>| match text.parse::<IpAddr>() {
        Ok(address) => Arc::from(address.to_string()),
        Err(_) => text,
    };
    Ingress { ip: filled(raw.ip.as_ref()).map(shortest), hostname: filled(raw.hostname.as_ref()) }
}

/// How far a move to other backends is. A condition that says something else is as good as none:
/// it is written anew.
fn moving(all: &[ServiceCondition]) -> Option<Move> {
    let own = all.iter().find(|c| c.kind == MIGRATION_CONDITION)?;
    let to = [Backends::Nodes, Backends::Pods].into_iter().find(|to| to.reason() == own.reason)?;
    let stage = match own.status.as_str() {
        "True" => MoveStage::Draining,
        "False" => MoveStage::Both,
        _ => return None,
    };
    let since = Arc::from(own.since.as_deref()?);
    Some(Move { to, stage, since })
}

/// Ours alone: conditions of others are nothing to us.
fn condition(all: &[ServiceCondition], interner: &mut Interner) -> Option<Condition> {
    let own = all.iter().find(|c| c.kind == SERVICE_CONDITION)?;
    Some(Condition {
        truth: match own.status.as_str() {
            "True" => Truth::True,
            "False" => Truth::False,
            _ => Truth::Unknown,
        },
        reason: interner.text(&own.reason),
        message: interner.text(&own.message),
        since: own.since.as_ref().map(|at| Arc::from(at.as_str())),
    })
}
