//! Keys that nothing here reads: those of other controllers, those without effect, and typos.

use super::fields::Fields;
use model::distance;

/// Keys of the same file that other components read; nothing is missed by leaving them alone.
const OF_OTHERS: [&str; 14] = [
    "routeTableName",
    "routeTableResourceGroup",
    "useInstanceMetadata",
    "disableCloudProvider",
    "nodeInstanceNotFoundGracePeriodInSeconds",
    "enableVmssFlexNodes",
    "routeUpdateIntervalInSeconds",
    "routeUpdateWaitingInSeconds",
    "providerVaultName",
    "providerKeyName",
    "providerKeyVersion",
    "serviceGatewayResourceName",
    "availabilitySetNodesCacheTTLInSeconds",
    "enableDynamicReloading",
];

/// Keys that tune calls of the Go provider and have no counterpart here.
const WITHOUT_EFFECT: [&str; 11] = [
    "cloudProviderBackoff",
    "cloudProviderBackoffRetries",
    "cloudProviderBackoffDuration",
    "cloudProviderBackoffExponent",
    "cloudProviderBackoffJitter",
    "cloudProviderBackoffMode",
    "enableMinimumRetryAfter",
    "putVMSSVMBatchSize",
    "disableAPICallCache",
    "listVmssVirtualMachinesWithoutInstanceView",
    "loadBalancerBackendPoolUpdateIntervalInSeconds",
];

/// Keys that are read: for guesses at what a typo was to be, and for tests that go through all.
pub const READ: &[&str] = &[
    "cloud",
    "resourceManagerEndpoint",
    "disableAzureStackCloud",
    "userAgent",
    "tenantId",
    "networkResourceTenantID",
    "subscriptionId",
    "networkResourceSubscriptionID",
    "identitySystem",
    "aadClientId",
    "aadClientSecret",
    "aadClientCertPath",
    "aadClientCertPassword",
    "useManagedIdentityExtension",
    "userAssignedIdentityID",
    "aadFederatedTokenFile",
    "useFederatedWorkloadIdentityExtension",
    "auxiliaryTokenProvider",
    "aadMSIDataPlaneIdentityPath",
    "cloudConfigType",
    "resourceGroup",
    "location",
    "extendedLocationName",
    "extendedLocationType",
    "vnetName",
    "vnetResourceGroup",
    "subnetName",
    "securityGroupName",
    "securityGroupResourceGroup",
    "privateLinkServiceResourceGroup",
    "loadBalancerName",
    "loadBalancerResourceGroup",
    "tags",
    "tagsMap",
    "systemTags",
    "loadBalancerSku",
    "excludeMasterFromStandardLB",
    "disableOutboundSNAT",
    "maximumLoadBalancerRuleCount",
    "vmType",
    "primaryAvailabilitySetName",
    "primaryScaleSetName",
    "loadBalancerBackendPoolConfigurationType",
    "preConfiguredBackendPoolLoadBalancerTypes",
    "multipleStandardLoadBalancerConfigurations",
    "enableMultipleStandardLoadBalancers",
    "nodepoolsWithoutDedicatedSLB",
    "serviceGatewayEnabled",
    "driftPolicy",
    "nodeDrainSeconds",
    "disableAvailabilitySetNodes",
    "enableMigrateToIPBasedBackendPoolAPI",
    "enableIPTagMutationForExistingPublicIP",
    "allowedAdditionalPublicIPs",
    "layoutMigration",
    "tenancy",
    "allowSharingAcrossNamespaces",
    "allowedResourceGroups",
    "allowedBYOPublicIPs",
    "egressGatewayNamespaces",
    "maximumEgressGateways",
    "healthCheck",
    "healthCheckAgentPort",
    "healthCheckMajorityPercent",
    "clusterServiceLoadBalancerHealthProbeMode",
    "clusterServiceSharedLoadBalancerHealthProbePort",
    "clusterServiceSharedLoadBalancerHealthProbePath",
];

/// Says in one warning each which keys have no effect and which are not known.
pub(super) fn judge_unused(fields: &mut Fields) {
    let (mut idle, mut unknown) = (Vec::new(), Vec::new());
    for key in fields.unread() {
        if is_in(&OF_OTHERS, &key) {
            continue;
        }
        if is_in(&WITHOUT_EFFECT, &key) || is_tuning(&key) {
            idle.push(key);
        } else {
            unknown.push(match guess(&key) {
                Some(known) => format!("{key} (did you mean {known}?)"),
                None => key,
            });
        }
    }
    if !idle.is_empty() {
        fields.warn(&format!(
            "without effect here, where limits are learnt from Azure's answers: {}",
            idle.join(", ")
        ));
    }
    if !unknown.is_empty() {
        fields.warn(&format!("unknown keys: {}", unknown.join(", ")));
    }
}

fn is_in(keys: &[&str], key: &str) -> bool {
    keys.iter().any(|k| k.eq_ignore_ascii_case(key))
}

/// Rate limits and lifetimes of caches, of which there is one for each kind of resource.
fn is_tuning(key: &str) -> bool {
    let key = key.to_lowercase();
    key.starts_with("cloudproviderratelimit")
        || key.ends_with("ratelimit")
        || key.ends_with("cachettlinseconds")
        || key.ends_with("cachettl")
}

/// The known key that differs least, if it is near enough.
fn guess(key: &str) -> Option<&'static str> {
    let key = key.to_lowercase();
    let most = (key.len() / 4).clamp(1, 3);
    let known = READ.iter().chain(&OF_OTHERS).chain(&WITHOUT_EFFECT);
    let distances = known.map(|known| (distance(&key, &known.to_lowercase()), *known));
    distances.filter(|(d, _)| *d <= most).min().map(|(_, known)| known)
}
