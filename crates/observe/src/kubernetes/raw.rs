//! The fields of Kubernetes objects that are used. Every one may be absent or null.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// Takes null as absent.
fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

macro_rules! raw {
    ($($(#[$doc:meta])* $name:ident {
        $($field:ident: $kind:ty = $key:literal),* $(,)?
    })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Default, Deserialize)]
            #[serde(default)]
            pub struct $name {
                $(
                    #[doc = concat!("`", $key, "`.")]
                    #[serde(rename = $key, deserialize_with = "nullable")]
                    pub $field: $kind,
                )*
            }
        )*
    };
}

/// `metadata`, with what is read of `managedFields`: of most kinds nothing.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound = "E: Default + Deserialize<'de>")]
pub struct Metadata<E = Unread> {
    /// `name`.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// `namespace`.
    #[serde(deserialize_with = "nullable")]
    pub namespace: String,
    /// `uid`.
    #[serde(deserialize_with = "nullable")]
    pub uid: String,
    /// `resourceVersion`.
    #[serde(rename = "resourceVersion", deserialize_with = "nullable")]
    pub revision: String,
    /// `deletionTimestamp`.
    #[serde(rename = "deletionTimestamp")]
    pub deletion_timestamp: Option<String>,
    /// `finalizers`.
    #[serde(deserialize_with = "nullable")]
    pub finalizers: Vec<String>,
    /// `labels`.
    #[serde(deserialize_with = "nullable")]
    pub labels: BTreeMap<String, String>,
    /// `annotations`.
    #[serde(deserialize_with = "nullable")]
    pub annotations: BTreeMap<String, String>,
    /// `ownerReferences`.
    #[serde(rename = "ownerReferences", deserialize_with = "nullable")]
    pub owners: Vec<Owner>,
    /// `managedFields`.
    #[serde(rename = "managedFields", deserialize_with = "nullable")]
    pub editors: E,
}

/// Something that is skipped while it is parsed.
#[derive(Clone, Debug, Default)]
pub struct Unread;

impl<'de> Deserialize<'de> for Unread {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

raw! {
    /// An owner reference.
    Owner {
        kind: String = "kind",
        uid: String = "uid",
    }

    /// One entry of `managedFields`, without the fields.
    ManagedFields {
        manager: String = "manager",
        time: String = "time",
        subresource: String = "subresource",
    }

    /// A Service.
    RawService {
        metadata: Metadata<Vec<ManagedFields>> = "metadata",
        spec: ServiceSpec = "spec",
        status: ServiceStatus = "status",
    }

    /// `spec` of a Service.
    ServiceSpec {
        kind: String = "type",
        class: Option<String> = "loadBalancerClass",
        selector: BTreeMap<String, String> = "selector",
        ports: Vec<Port> = "ports",
        families: Vec<String> = "ipFamilies",
        affinity: String = "sessionAffinity",
        traffic_policy: String = "externalTrafficPolicy",
        health_check_node_port: i64 = "healthCheckNodePort",
        load_balancer_ip: Option<String> = "loadBalancerIP",
        cluster_ip: String = "clusterIP",
        cluster_ips: Vec<String> = "clusterIPs",
        source_ranges: Vec<String> = "loadBalancerSourceRanges",
    }

    /// A port of a Service.
    Port {
        name: String = "name",
        protocol: String = "protocol",
        port: i64 = "port",
        target_port: Option<IntOrText> = "targetPort",
        node_port: i64 = "nodePort",
        app_protocol: Option<String> = "appProtocol",
    }

    /// `status` of a Service.
    ServiceStatus {
        load_balancer: LoadBalancerStatus = "loadBalancer",
        conditions: Vec<ServiceCondition> = "conditions",
    }

    /// A condition of a Service.
    ServiceCondition {
        kind: String = "type",
        status: String = "status",
        reason: String = "reason",
        message: String = "message",
        since: Option<String> = "lastTransitionTime",
    }

    /// `status.loadBalancer` of a Service.
    LoadBalancerStatus {
        ingress: Vec<RawIngress> = "ingress",
    }

    /// An ingress of a Service's status.
    RawIngress {
        ip: Option<String> = "ip",
        hostname: Option<String> = "hostname",
    }

    /// A Node.
    RawNode {
        metadata: Metadata = "metadata",
        spec: NodeSpec = "spec",
        status: NodeStatus = "status",
    }

    /// `spec` of a Node.
    NodeSpec {
        provider_id: Option<String> = "providerID",
        pod_range: String = "podCIDR",
        pod_ranges: Vec<String> = "podCIDRs",
        taints: Vec<Taint> = "taints",
    }

    /// A taint.
    Taint {
        key: String = "key",
    }

    /// `status` of a Node.
    NodeStatus {
        addresses: Vec<NodeAddress> = "addresses",
    }

    /// An address of a Node.
    NodeAddress {
        kind: String = "type",
        address: String = "address",
    }

    /// An EndpointSlice.
    RawEndpointSlice {
        metadata: Metadata = "metadata",
        endpoints: Vec<RawEndpoint> = "endpoints",
        ports: Vec<RawSlicePort> = "ports",
    }

    /// A port of a slice.
    RawSlicePort {
        name: String = "name",
        port: Option<i64> = "port",
    }

    /// An endpoint of a slice.
    RawEndpoint {
        addresses: Vec<String> = "addresses",
        node: Option<String> = "nodeName",
        conditions: Conditions = "conditions",
        target: Target = "targetRef",
    }

    /// `targetRef` of an endpoint.
    Target {
        kind: String = "kind",
        namespace: String = "namespace",
        name: String = "name",
    }

    /// Conditions of an endpoint.
    Conditions {
        ready: Option<bool> = "ready",
        serving: Option<bool> = "serving",
        terminating: Option<bool> = "terminating",
    }

    /// A Pod.
    RawPod {
        metadata: Metadata = "metadata",
        spec: PodSpec = "spec",
        status: PodStatus = "status",
    }

    /// `spec` of a Pod.
    PodSpec {
        gates: Vec<ReadinessGate> = "readinessGates",
    }

    /// A readiness gate of a Pod.
    ReadinessGate {
        condition: String = "conditionType",
    }

    /// A condition of a Pod.
    PodCondition {
        kind: String = "type",
        status: String = "status",
        reason: String = "reason",
    }

    /// `status` of a Pod.
    PodStatus {
        phase: String = "phase",
        conditions: Vec<PodCondition> = "conditions",
        pod_ip: String = "podIP",
        pod_ips: Vec<Ip> = "podIPs",
        host_ip: String = "hostIP",
        host_ips: Vec<Ip> = "hostIPs",
    }

    /// An address of a Pod.
    Ip {
        ip: String = "ip",
    }

    /// A namespace.
    RawNamespace {
        metadata: Metadata = "metadata",
    }
}

/// A number or a text.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum IntOrText {
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
}
