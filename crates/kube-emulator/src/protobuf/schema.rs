//! Field numbers of the messages that are read.

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Text,
    Texts,
    /// A number that is unset when it is zero.
    Int,
    /// A number that may be zero on purpose.
    OptInt,
    Bool,
    OptBool,
    Time,
    MicroTime,
    IntOrText,
    Map,
    BytesMap,
    One(&'static str),
    Many(&'static str),
}

use Shape::{
    Bool, BytesMap, Int, IntOrText, Many, Map, MicroTime, One, OptBool, OptInt, Text, Texts, Time,
};

type Field = (u64, &'static str, Shape);

/// The fields of a message, if it is known.
pub(super) fn message(name: &str) -> Option<&'static [Field]> {
    core(name).or_else(|| groups(name)).or_else(|| pods(name))
}

fn core(name: &str) -> Option<&'static [Field]> {
    Some(match name {
        "ObjectMeta" => &[
            (1, "name", Text),
            (2, "generateName", Text),
            (3, "namespace", Text),
            (4, "selfLink", Text),
            (5, "uid", Text),
            (6, "resourceVersion", Text),
            (7, "generation", Int),
            (8, "creationTimestamp", Time),
            (9, "deletionTimestamp", Time),
            (10, "deletionGracePeriodSeconds", OptInt),
            (11, "labels", Map),
            (12, "annotations", Map),
            (13, "ownerReferences", Many("OwnerReference")),
            (14, "finalizers", Texts),
        ],
        "OwnerReference" => &[
            (1, "kind", Text),
            (3, "name", Text),
            (4, "uid", Text),
            (5, "apiVersion", Text),
            (6, "controller", OptBool),
            (7, "blockOwnerDeletion", OptBool),
        ],
        "Namespace" => &[
            (1, "metadata", One("ObjectMeta")),
            (2, "spec", One("NamespaceSpec")),
            (3, "status", One("NamespaceStatus")),
        ],
        "NamespaceSpec" => &[(1, "finalizers", Texts)],
        "NamespaceStatus" => &[(1, "phase", Text)],
        "ConfigMap" => &[
            (1, "metadata", One("ObjectMeta")),
            (2, "data", Map),
            (3, "binaryData", BytesMap),
            (4, "immutable", OptBool),
        ],
        "Secret" => &[
            (1, "metadata", One("ObjectMeta")),
            (2, "data", BytesMap),
            (3, "type", Text),
            (4, "stringData", Map),
            (5, "immutable", OptBool),
        ],
        "ServiceAccount" => &[
            (1, "metadata", One("ObjectMeta")),
            (2, "secrets", Many("ObjectReference")),
            (3, "imagePullSecrets", Many("LocalObjectReference")),
            (4, "automountServiceAccountToken", OptBool),
        ],
        "LocalObjectReference" => &[(1, "name", Text)],
        "ObjectReference" => &[
            (1, "kind", Text),
            (2, "namespace", Text),
            (3, "name", Text),
            (4, "uid", Text),
            (5, "apiVersion", Text),
            (6, "resourceVersion", Text),
            (7, "fieldPath", Text),
        ],
        _ => return service(name).or_else(|| event(name)),
    })
}

fn service(name: &str) -> Option<&'static [Field]> {
    Some(match name {
        "Service" => &[
            (1, "metadata", One("ObjectMeta")),
            (2, "spec", One("ServiceSpec")),
            (3, "status", One("ServiceStatus")),
        ],
        "ServiceSpec" => &[
            (1, "ports", Many("ServicePort")),
            (2, "selector", Map),
            (3, "clusterIP", Text),
            (4, "type", Text),
            (5, "externalIPs", Texts),
            (7, "sessionAffinity", Text),
            (8, "loadBalancerIP", Text),
            (9, "loadBalancerSourceRanges", Texts),
            (10, "externalName", Text),
            (11, "externalTrafficPolicy", Text),
            (12, "healthCheckNodePort", Int),
            (13, "publishNotReadyAddresses", Bool),
            (14, "sessionAffinityConfig", One("SessionAffinityConfig")),
            (17, "ipFamilyPolicy", Text),
            (18, "clusterIPs", Texts),
            (19, "ipFamilies", Texts),
            (20, "allocateLoadBalancerNodePorts", OptBool),
            (21, "loadBalancerClass", Text),
            (22, "internalTrafficPolicy", Text),
            (23, "trafficDistribution", Text),
        ],
        "ServicePort" => &[
            (1, "name", Text),
            (2, "protocol", Text),
            (3, "port", Int),
            (4, "targetPort", IntOrText),
            (5, "nodePort", Int),
            (6, "appProtocol", Text),
        ],
        "SessionAffinityConfig" => &[(1, "clientIP", One("ClientIPConfig"))],
        "ClientIPConfig" => &[(1, "timeoutSeconds", OptInt)],
        "ServiceStatus" => {
            &[(1, "loadBalancer", One("LoadBalancerStatus")), (2, "conditions", Many("Condition"))]
        }
        "LoadBalancerStatus" => &[(1, "ingress", Many("LoadBalancerIngress"))],
        "LoadBalancerIngress" => &[
            (1, "ip", Text),
            (2, "hostname", Text),
            (3, "ipMode", Text),
            (4, "ports", Many("PortStatus")),
        ],
        "PortStatus" => &[(1, "port", Int), (2, "protocol", Text), (3, "error", Text)],
        "Condition" => &[
            (1, "type", Text),
            (2, "status", Text),
            (3, "observedGeneration", Int),
            (4, "lastTransitionTime", Time),
            (5, "reason", Text),
            (6, "message", Text),
        ],
        _ => return None,
    })
}

fn event(name: &str) -> Option<&'static [Field]> {
    Some(match name {
        "Event" => &[
            (1, "metadata", One("ObjectMeta")),
            (2, "involvedObject", One("ObjectReference")),
            (3, "reason", Text),
            (4, "message", Text),
            (5, "source", One("EventSource")),
            (6, "firstTimestamp", Time),
            (7, "lastTimestamp", Time),
            (8, "count", Int),
            (9, "type", Text),
            (10, "eventTime", MicroTime),
            (11, "series", One("EventSeries")),
            (12, "action", Text),
            (13, "related", One("ObjectReference")),
            (14, "reportingComponent", Text),
            (15, "reportingInstance", Text),
        ],
        "NewEvent" => &[
            (1, "metadata", One("ObjectMeta")),
            (2, "eventTime", MicroTime),
            (3, "series", One("EventSeries")),
            (4, "reportingController", Text),
            (5, "reportingInstance", Text),
            (6, "action", Text),
            (7, "reason", Text),
            (8, "regarding", One("ObjectReference")),
            (9, "related", One("ObjectReference")),
            (10, "note", Text),
            (11, "type", Text),
            (12, "deprecatedSource", One("EventSource")),
            (13, "deprecatedFirstTimestamp", Time),
            (14, "deprecatedLastTimestamp", Time),
            (15, "deprecatedCount", Int),
        ],
        "EventSource" => &[(1, "component", Text), (2, "host", Text)],
        "EventSeries" => &[(1, "count", Int), (2, "lastObservedTime", MicroTime)],
        _ => return None,
    })
}

fn groups(name: &str) -> Option<&'static [Field]> {
    Some(match name {
        "DeleteOptions" => &[
            (1, "gracePeriodSeconds", OptInt),
            (2, "preconditions", One("Preconditions")),
            (3, "orphanDependents", OptBool),
            (4, "propagationPolicy", Text),
            (5, "dryRun", Texts),
        ],
        "Preconditions" => &[(1, "uid", Text), (2, "resourceVersion", Text)],
        "Lease" => &[(1, "metadata", One("ObjectMeta")), (2, "spec", One("LeaseSpec"))],
        "LeaseSpec" => &[
            (1, "holderIdentity", Text),
            (2, "leaseDurationSeconds", OptInt),
            (3, "acquireTime", MicroTime),
            (4, "renewTime", MicroTime),
            (5, "leaseTransitions", OptInt),
            (6, "strategy", Text),
            (7, "preferredHolder", Text),
        ],
        "Role" | "ClusterRole" => {
            &[(1, "metadata", One("ObjectMeta")), (2, "rules", Many("PolicyRule"))]
        }
        "PolicyRule" => &[
            (1, "verbs", Texts),
            (2, "apiGroups", Texts),
            (3, "resources", Texts),
            (4, "resourceNames", Texts),
            (5, "nonResourceURLs", Texts),
        ],
        "RoleBinding" | "ClusterRoleBinding" => &[
            (1, "metadata", One("ObjectMeta")),
            (2, "subjects", Many("Subject")),
            (3, "roleRef", One("RoleRef")),
        ],
        "Subject" => {
            &[(1, "kind", Text), (2, "apiGroup", Text), (3, "name", Text), (4, "namespace", Text)]
        }
        "RoleRef" => &[(1, "apiGroup", Text), (2, "kind", Text), (3, "name", Text)],
        "PodDisruptionBudget" => {
            &[(1, "metadata", One("ObjectMeta")), (2, "spec", One("PodDisruptionBudgetSpec"))]
        }
        "PodDisruptionBudgetSpec" => &[
            (1, "minAvailable", IntOrText),
            (2, "selector", One("LabelSelector")),
            (3, "maxUnavailable", IntOrText),
        ],
        "SelfSubjectAccessReview" => {
            &[(1, "metadata", One("ObjectMeta")), (2, "spec", One("AccessSpec"))]
        }
        "AccessSpec" => &[
            (1, "resourceAttributes", One("ResourceAttributes")),
            (2, "nonResourceAttributes", One("NonResourceAttributes")),
        ],
        "ResourceAttributes" => &[
            (1, "namespace", Text),
            (2, "verb", Text),
            (3, "group", Text),
            (4, "version", Text),
            (5, "resource", Text),
            (6, "subresource", Text),
            (7, "name", Text),
        ],
        "NonResourceAttributes" => &[(1, "path", Text), (2, "verb", Text)],
        "LabelSelector" => &[(1, "matchLabels", Map), (2, "matchExpressions", Many("Requirement"))],
        "Requirement" => &[(1, "key", Text), (2, "operator", Text), (3, "values", Texts)],
        _ => return None,
    })
}

fn pods(name: &str) -> Option<&'static [Field]> {
    Some(match name {
        "Deployment" => &[(1, "metadata", One("ObjectMeta")), (2, "spec", One("DeploymentSpec"))],
        "DeploymentSpec" => &[
            (1, "replicas", OptInt),
            (2, "selector", One("LabelSelector")),
            (3, "template", One("PodTemplateSpec")),
            (5, "minReadySeconds", Int),
            (6, "revisionHistoryLimit", OptInt),
            (7, "paused", Bool),
            (9, "progressDeadlineSeconds", OptInt),
        ],
        "PodTemplateSpec" => &[(1, "metadata", One("ObjectMeta")), (2, "spec", One("PodSpec"))],
        "Pod" => &[(1, "metadata", One("ObjectMeta")), (2, "spec", One("PodSpec"))],
        "PodSpec" => &[
            (2, "containers", Many("Container")),
            (3, "restartPolicy", Text),
            (4, "terminationGracePeriodSeconds", OptInt),
            (6, "dnsPolicy", Text),
            (7, "nodeSelector", Map),
            (8, "serviceAccountName", Text),
            (9, "serviceAccount", Text),
            (10, "nodeName", Text),
            (11, "hostNetwork", Bool),
        ],
        "Container" => &[
            (1, "name", Text),
            (2, "image", Text),
            (3, "command", Texts),
            (4, "args", Texts),
            (5, "workingDir", Text),
            (6, "ports", Many("ContainerPort")),
            (7, "env", Many("EnvVar")),
            (14, "imagePullPolicy", Text),
        ],
        "ContainerPort" => &[
            (1, "name", Text),
            (2, "hostPort", Int),
            (3, "containerPort", Int),
            (4, "protocol", Text),
            (5, "hostIP", Text),
        ],
        "EnvVar" => &[(1, "name", Text), (2, "value", Text)],
        _ => return None,
    })
}
