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
        $($(#[$field_doc:meta])* $field:ident: $kind:ty = $key:literal),* $(,)?
    })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Default, Deserialize)]
            #[serde(default)]
            pub struct $name {
                $(
                    $(#[$field_doc])*
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
        /// `kind`.
        kind: String = "kind",
        /// `uid`.
        uid: String = "uid",
    }

    /// One entry of `managedFields`, without the fields.
    ManagedFields {
        /// `manager`.
        manager: String = "manager",
        /// `time`.
        time: String = "time",
        /// `subresource`.
        subresource: String = "subresource",
    }

    /// A Service.
    RawService {
        /// `metadata`.
        metadata: Metadata<Vec<ManagedFields>> = "metadata",
        /// `spec`.
        spec: ServiceSpec = "spec",
        /// `status`.
        status: ServiceStatus = "status",
    }

    /// `spec` of a Service.
    ServiceSpec {
        /// `type`.
        kind: String = "type",
        /// `loadBalancerClass`.
        class: Option<String> = "loadBalancerClass",
        /// `selector`.
        selector: BTreeMap<String, String> = "selector",
        /// `ports`.
        ports: Vec<Port> = "ports",
        /// `ipFamilies`.
        families: Vec<String> = "ipFamilies",
        /// `sessionAffinity`.
        affinity: String = "sessionAffinity",
        /// `externalTrafficPolicy`.
        traffic_policy: String = "externalTrafficPolicy",
        /// `healthCheckNodePort`.
        health_check_node_port: i64 = "healthCheckNodePort",
        /// `loadBalancerIP`.
        load_balancer_ip: Option<String> = "loadBalancerIP",
        /// `clusterIP`.
        cluster_ip: String = "clusterIP",
        /// `clusterIPs`.
        cluster_ips: Vec<String> = "clusterIPs",
        /// `loadBalancerSourceRanges`.
        source_ranges: Vec<String> = "loadBalancerSourceRanges",
    }

    /// A port of a Service.
    Port {
        /// `name`.
        name: String = "name",
        /// `protocol`.
        protocol: String = "protocol",
        /// `port`.
        port: i64 = "port",
        /// `targetPort`.
        target_port: Option<IntOrText> = "targetPort",
        /// `nodePort`.
        node_port: i64 = "nodePort",
        /// `appProtocol`.
        app_protocol: Option<String> = "appProtocol",
    }

    /// `status` of a Service.
    ServiceStatus {
        /// `loadBalancer`.
        load_balancer: LoadBalancerStatus = "loadBalancer",
        /// `conditions`.
        conditions: Vec<ServiceCondition> = "conditions",
    }

    /// A condition of a Service.
    ServiceCondition {
        /// `type`.
        kind: String = "type",
        /// `status`.
        status: String = "status",
        /// `reason`.
        reason: String = "reason",
        /// `message`.
        message: String = "message",
        /// `lastTransitionTime`.
        since: Option<String> = "lastTransitionTime",
    }

    /// `status.loadBalancer` of a Service.
    LoadBalancerStatus {
        /// `ingress`.
        ingress: Vec<RawIngress> = "ingress",
    }

    /// An ingress of a Service's status.
    RawIngress {
        /// `ip`.
        ip: Option<String> = "ip",
        /// `hostname`.
        hostname: Option<String> = "hostname",
    }

    /// A Node.
    RawNode {
        /// `metadata`.
        metadata: Metadata = "metadata",
        /// `spec`.
        spec: NodeSpec = "spec",
        /// `status`.
        status: NodeStatus = "status",
    }

    /// `spec` of a Node.
    NodeSpec {
        /// `providerID`.
        provider_id: Option<String> = "providerID",
        /// `podCIDR`.
        pod_range: String = "podCIDR",
        /// `podCIDRs`.
        pod_ranges: Vec<String> = "podCIDRs",
        /// `taints`.
        taints: Vec<Taint> = "taints",
    }

    /// A taint.
    Taint {
        /// `key`.
        key: String = "key",
    }

    /// `status` of a Node.
    NodeStatus {
        /// `addresses`.
        addresses: Vec<NodeAddress> = "addresses",
    }

    /// An address of a Node.
    NodeAddress {
        /// `type`.
        kind: String = "type",
        /// `address`.
        address: String = "address",
    }

    /// An EndpointSlice.
    RawEndpointSlice {
        /// `metadata`.
        metadata: Metadata = "metadata",
        /// `endpoints`.
        endpoints: Vec<RawEndpoint> = "endpoints",
        /// `ports`.
        ports: Vec<RawSlicePort> = "ports",
    }

    /// A port of a slice.
    RawSlicePort {
        /// `name`.
        name: String = "name",
        /// `port`.
        port: Option<i64> = "port",
    }

    /// An endpoint of a slice.
    RawEndpoint {
        /// `addresses`.
        addresses: Vec<String> = "addresses",
        /// `nodeName`.
        node: Option<String> = "nodeName",
        /// `conditions`.
        conditions: Conditions = "conditions",
        /// `targetRef`.
        target: Target = "targetRef",
    }

    /// `targetRef` of an endpoint.
    Target {
        /// `kind`.
        kind: String = "kind",
        /// `namespace`.
        namespace: String = "namespace",
        /// `name`.
        name: String = "name",
    }

    /// Conditions of an endpoint.
    Conditions {
        /// `ready`.
        ready: Option<bool> = "ready",
        /// `serving`.
        serving: Option<bool> = "serving",
        /// `terminating`.
        terminating: Option<bool> = "terminating",
    }

    /// A Pod.
    RawPod {
        /// `metadata`.
        metadata: Metadata = "metadata",
        /// `spec`.
        spec: PodSpec = "spec",
        /// `status`.
        status: PodStatus = "status",
    }

    /// `spec` of a Pod.
    PodSpec {
        /// `readinessGates`.
        gates: Vec<ReadinessGate> = "readinessGates",
    }

    /// A readiness gate of a Pod.
    ReadinessGate {
        /// `conditionType`.
        condition: String = "conditionType",
    }

    /// A condition of a Pod.
    PodCondition {
        /// `type`.
        kind: String = "type",
        /// `status`.
        status: String = "status",
        /// `reason`.
        reason: String = "reason",
    }

    /// `status` of a Pod.
    PodStatus {
        /// `phase`.
        phase: String = "phase",
        /// `conditions`.
        conditions: Vec<PodCondition> = "conditions",
        /// `podIP`.
        pod_ip: String = "podIP",
        /// `podIPs`.
        pod_ips: Vec<Ip> = "podIPs",
        /// `hostIP`.
        host_ip: String = "hostIP",
        /// `hostIPs`.
        host_ips: Vec<Ip> = "hostIPs",
    }

    /// An address of a Pod.
    Ip {
        /// `ip`.
        ip: String = "ip",
    }

    /// A namespace.
    RawNamespace {
        /// `metadata`.
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
