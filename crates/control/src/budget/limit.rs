//! Azure's limits, and which of them a request counts against.

use arm::{Method, Request, Target};
use std::fmt;
use std::sync::Arc;

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitKind {
    /// Resource Manager's reads.
    Reads,
    /// Resource Manager's writes: PUT, PATCH, POST.
    Writes,
    /// Resource Manager's deletes.
    Deletes,
    /// The network provider's reads.
    NetworkReads,
    /// The network provider's writes and deletes.
    NetworkWrites,
    /// The compute provider's reads.
    ComputeReads,
    /// The compute provider's writes and deletes.
    ComputeWrites,
}

impl LimitKind {
    /// In words, for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reads => "Resource Manager reads",
            Self::Writes => "Resource Manager writes",
            Self::Deletes => "Resource Manager deletes",
            Self::NetworkReads => "network reads",
            Self::NetworkWrites => "network writes",
            Self::ComputeReads => "compute reads",
            Self::ComputeWrites => "compute writes",
        }
    }

    /// As a label of a metric.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::Deletes => "deletes",
            Self::NetworkReads => "network_reads",
            Self::NetworkWrites => "network_writes",
            Self::ComputeReads => "compute_reads",
            Self::ComputeWrites => "compute_writes",
        }
    }

    /// Whether Resource Manager itself counts it, and not a provider behind it.
    #[must_use]
    pub fn is_managers(self) -> bool {
        matches!(self, Self::Reads | Self::Writes | Self::Deletes)
    }
}

/// One limit of one subscription.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Limit {
    /// Subscription id, lower case.
    pub subscription: Arc<str>,
    /// What it counts.
    pub kind: LimitKind,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())
    }
}

/// All limits that a request counts against: Resource Manager's, then the provider's.
#[must_use]
pub fn limits_of(request: &Request) -> Vec<Limit> {
    let path = match &request.target {
        Target::Path(path) => path.as_str(),
        Target::Url(url) => url.find("/subscriptions/").map_or("", |at| &url[at..]),
    };
    limits_of_path(request.method, path)
}

/// As [`limits_of`], from a method and a path or an id.
#[must_use]
pub fn limits_of_path(method: Method, path: &str) -> Vec<Limit> {
    let path = path.split('?').next().unwrap_or(path);
    let mut segments = path.split('/').filter(|s| !s.is_empty());
    let subscription = match (segments.next(), segments.next()) {
        (Some(first), Some(id)) if first.eq_ignore_ascii_case("subscriptions") => id,
        _ => return Vec::new(),
    };
    let subscription: Arc<str> = Arc::from(subscription.to_lowercase());
    let manager = match method {
        Method::Get => LimitKind::Reads,
        Method::Put | Method::Patch | Method::Post => LimitKind::Writes,
        Method::Delete => LimitKind::Deletes,
    };
    let namespace = segments
        .by_ref()
        .find(|s| s.eq_ignore_ascii_case("providers"))
        .and_then(|_| segments.next());
    // A provider's own description is Resource Manager's.
    let namespace = namespace.filter(|_| segments.next().is_some());
    let provider = namespace.and_then(|name| match (name.to_lowercase().as_str(), method) {
        ("microsoft.network", Method::Get) => Some(LimitKind::NetworkReads),
        ("microsoft.network", _) => Some(LimitKind::NetworkWrites),
        ("microsoft.compute", Method::Get) => Some(LimitKind::ComputeReads),
        ("microsoft.compute", _) => Some(LimitKind::ComputeWrites),
        _ => None,
    });
    let kinds = [Some(manager), provider].into_iter().flatten();
    kinds.map(|kind| Limit { subscription: Arc::clone(&subscription), kind }).collect()
}
