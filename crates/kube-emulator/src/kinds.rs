//! The table of kinds this API serves.

/// Whether objects of a kind live in a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Objects belong to a namespace.
    Namespaced,
    /// Objects belong to the whole cluster.
    Cluster,
}

/// Whether a kind has a `/status` part that is written apart from the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusPart {
    /// `/status` exists; the main resource never changes `status`.
    Separate,
    /// There is no `/status`.
    None,
}

/// One row: a kind in one group and version.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Kind as written in manifests.
    pub kind: &'static str,
    /// Name in paths. It is also the key of the shelf the objects lie on, so that the two
    /// Event kinds share one.
    pub plural: &'static str,
    /// Singular name for clients.
    pub singular: &'static str,
    /// Short names for clients.
    pub short: &'static [&'static str],
    /// Namespaced or not.
    pub scope: Scope,
    /// Whether `/status` is apart.
    pub status: StatusPart,
}

impl Kind {
    /// `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// `services` or `deployments.apps`, as error messages say it.
    pub fn qualified_plural(&self) -> String {
        match self.group {
            "" => self.plural.to_string(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// `Service` or `Deployment.apps`, as error messages say it.
    pub fn qualified_kind(&self) -> String {
        match self.group {
            "" => self.kind.to_string(),
            group => format!("{}.{group}", self.kind),
        }
    }

    /// Whether the objects live in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Namespaced
    }
}

const fn row(
    gv: (&'static str, &'static str),
    kind: &'static str,
    names: (&'static str, &'static str),
    short: &'static [&'static str],
    scope: Scope,
    status: StatusPart,
) -> Kind {
    Kind {
        group: gv.0,
        version: gv.1,
        kind,
        plural: names.0,
        singular: names.1,
        short,
        scope,
        status,
    }
}

const CORE: (&str, &str) = ("", "v1");
const RBAC: (&str, &str) = ("rbac.authorization.k8s.io", "v1");

use Scope::{Cluster, Namespaced};
use StatusPart::{None as Whole, Separate};

/// Every kind served, in the order discovery shows them.
pub static KINDS: &[Kind] = &[
    row(CORE, "ConfigMap", ("configmaps", "configmap"), &["cm"], Namespaced, Whole),
    row(CORE, "Event", ("events", "event"), &["ev"], Namespaced, Whole),
    row(CORE, "Namespace", ("namespaces", "namespace"), &["ns"], Cluster, Separate),
    row(CORE, "Node", ("nodes", "node"), &["no"], Cluster, Separate),
    row(CORE, "Pod", ("pods", "pod"), &["po"], Namespaced, Separate),
    row(CORE, "Secret", ("secrets", "secret"), &[], Namespaced, Whole),
    row(CORE, "ServiceAccount", ("serviceaccounts", "serviceaccount"), &["sa"], Namespaced, Whole),
    row(CORE, "Service", ("services", "service"), &["svc"], Namespaced, Separate),
    row(
        ("apps", "v1"),
        "Deployment",
        ("deployments", "deployment"),
        &["deploy"],
        Namespaced,
        Separate,
    ),
    row(("coordination.k8s.io", "v1"), "Lease", ("leases", "lease"), &[], Namespaced, Whole),
    row(
        ("discovery.k8s.io", "v1"),
        "EndpointSlice",
        ("endpointslices", "endpointslice"),
        &[],
        Namespaced,
        Whole,
    ),
    row(("events.k8s.io", "v1"), "Event", ("events", "event"), &["ev"], Namespaced, Whole),
    row(
        ("networking.k8s.io", "v1"),
        "NetworkPolicy",
        ("networkpolicies", "networkpolicy"),
        &["netpol"],
        Namespaced,
        Whole,
    ),
    row(
        ("policy", "v1"),
        "PodDisruptionBudget",
        ("poddisruptionbudgets", "poddisruptionbudget"),
        &["pdb"],
        Namespaced,
        Separate,
    ),
    row(
        RBAC,
        "ClusterRoleBinding",
        ("clusterrolebindings", "clusterrolebinding"),
        &[],
        Cluster,
        Whole,
    ),
    row(RBAC, "ClusterRole", ("clusterroles", "clusterrole"), &[], Cluster, Whole),
    row(RBAC, "RoleBinding", ("rolebindings", "rolebinding"), &[], Namespaced, Whole),
    row(RBAC, "Role", ("roles", "role"), &[], Namespaced, Whole),
];

/// Groups (without the core one) with their version, in table order.
pub fn groups() -> Vec<(&'static str, &'static str)> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for kind in KINDS.iter().filter(|kind| !kind.group.is_empty()) {
        if !found.contains(&(kind.group, kind.version)) {
            found.push((kind.group, kind.version));
        }
    }
    found
}

/// The kind a path names.
pub fn by_path(group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| (kind.group, kind.version, kind.plural) == (group, version, plural))
}

/// The kind an object says it is.
pub fn by_object(api_version: &str, kind: &str) -> Option<&'static Kind> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    KINDS.iter().find(|row| (row.group, row.version, row.kind) == (group, version, kind))
}

/// The first row with this plural name; for `events` the core one, which is the stored form.
pub fn by_plural(plural: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.plural == plural)
}
