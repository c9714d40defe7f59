//! Reasons of Events that are not a finding's rule.

/// A reason of Events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventReason {
    /// Its stable name.
    pub name: &'static str,
    /// `Normal` or `Warning`.
    pub kind: &'static str,
    /// The kind of object it is said about.
    pub about: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What to do.
    pub action: &'static str,
}

macro_rules! reasons {
    ($(
        $constant:ident $kind:ident $about:ident $name:literal $meaning:literal $action:literal;
    )*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $meaning)]
            pub const $constant: EventReason = EventReason {
                name: $name,
                kind: stringify!($kind),
                about: stringify!($about),
                meaning: $meaning,
                action: $action,
            };
        )*

        /// All of them.
        pub const REASONS: &[EventReason] = &[$($constant),*];
    };
}

reasons! {
    ENSURING Normal Service "EnsuringLoadBalancer"
        "Work on the Service has begun: it is new, or changed after it was programmed or refused."
        "Nothing. `ballast explain` says what it waits for.";
    ENSURED Normal Service "EnsuredLoadBalancer"
        "Azure is as the Service asks, and its status has the address."
        "Nothing.";
    DELETING Normal Service "DeletingLoadBalancer"
        "The Service was deleted or asks for no load balancer any more: its resources are removed \
         from Azure."
        "Nothing. The finalizer keeps the Service until nothing of it is left.";
    DELETED Normal Service "DeletedLoadBalancer"
        "Nothing of the Service is left in Azure."
        "Nothing.";
    SYNC_FAILED Warning Service "SyncLoadBalancerFailed"
        "The Service asks for something impossible, a call to Azure or the API server fails or is \
         not answered, or an operator has paused writes. What the Service had stays."
        "Read the message: it names the annotation, its value and what is allowed, or the call and \
         its error, or the pause. Change the Service, or remove the cause. An edit of the Service \
         causes an attempt at once; without one the next attempt follows after at most a minute, \
         or later where Azure's `Retry-After` asks for it.";
    DRIFT Warning Service "AzureDrift"
        "Another client changed what the Service has in Azure."
        "Nothing with `driftPolicy: repair`. With `report` see [drift](drift.md).";
    NO_BACKEND_UP Warning Service "NoBackendUp"
        "With `--backend-health`: no node answers Azure's health probes for the Service. Clients \
         get no connection."
        "`kubectl get pods -o wide`: is a Pod of the Service ready? With `externalTrafficPolicy: \
         Local` only nodes with a ready Pod answer. `ballast status` lists the nodes.";
    BACKEND_UP Normal Service "BackendUp"
        "After `NoBackendUp`: a node answers the probes again."
        "Nothing.";
    POD_UNCLAIMED Warning Pod "ServiceGatewayFinalizerAddFailed"
        "The finalizer of Ballast could not be added to a Pod with an egress label. The Pod's \
         address is written to Azure all the same, and when the Pod is deleted, the address may \
         stay there for a moment."
        "Look at the message: usually an admission webhook refuses the change, or the ClusterRole \
         lacks `patch` on Pods.";
}

/// What is said about Pods with an egress label, by the rule that is broken: name, and what to do.
pub const POD_RULES: [(&str, &str); 6] = [
    (
        "ServiceGatewayReservedEgressLabel",
        "The label's value is reserved for the cluster's own egress. Take another name.",
    ),
    (
        "ServiceGatewayInvalidEgressLabel",
        "The label's value cannot name an egress gateway. The message says what can.",
    ),
    (
        "ServiceGatewayEgressNameTaken",
        "Another client's NAT gateway or public IP has this name. Choose another name, or \
         delete that resource.",
    ),
    (
        "ServiceGatewayEgressNameHeld",
        "The egress gateway is another namespace's. Take another name, or list the namespace under \
         `egressGatewayNamespaces` in the cloud config.",
    ),
    (
        "ServiceGatewayEgressLimit",
        "The cluster has as many egress gateways as `maximumEgressGateways` of the cloud config \
         allows. Take a name that is in use, or raise the number.",
    ),
    (
        "ServiceGatewayNoNodeLocation",
        "The Pod has an address of a family (IPv4 or IPv6) of which its node has none. Give the \
         node an address of that family.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_about_pods_are_those_that_planning_has() {
        let source = include_str!("../../../plan/src/pods/egress_pods.rs");
        let named = source.split("Finding::refusal(\"").skip(1);
        let named = named.filter_map(|part| part.split('"').next());
        let listed: Vec<&str> = POD_RULES.iter().map(|(name, _)| *name).collect();
        assert_eq!(named.collect::<Vec<_>>(), listed);
    }

    #[test]
    fn each_reason_says_what_it_means_and_what_to_do() {
        for reason in REASONS {
            assert!(matches!(reason.kind, "Normal" | "Warning"), "{}", reason.name);
            for text in [reason.meaning, reason.action] {
                assert!(text.ends_with('.') && !text.contains('|'), "{}", reason.name);
            }
        }
    }
}
