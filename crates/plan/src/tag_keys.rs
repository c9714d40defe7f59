//! Keys of the tags that say whose a resource is, and which of them no Service may set.

/// Names of the Services that use a public IP, comma-separated.
pub const SERVICE: &str = "k8s-azure-service";
/// The cluster that made a resource.
pub const CLUSTER: &str = "k8s-azure-cluster-name";
/// The Service that set a public IP's DNS label.
pub const DNS: &str = "k8s-azure-dns-label-service";
/// The Service that a Private Link Service belongs to.
pub const OWNER: &str = "k8s-azure-owner-service";
/// The tag with the UID of the cluster that made a resource.
pub const UID: &str = "ballast-cluster-uid";
/// What older releases wrote instead of [`SERVICE`], [`CLUSTER`] and [`DNS`].
pub(crate) const LEGACY: [(&str, &str); 3] = [
    (SERVICE, "service"),
    (CLUSTER, "kubernetes-cluster-name"),
    (DNS, "kubernetes-dns-label-service"),
];

/// Whether a key is one that no Service may set: ours, those of older releases, and those by which
/// AKS knows what it manages.
pub(crate) fn is_reserved(key: &str) -> bool {
    let key = key.to_lowercase();
    ["k8s-azure-", "aks-managed-", UID].iter().any(|prefix| key.starts_with(prefix))
        || LEGACY.iter().any(|(_, legacy)| *legacy == key)
}
