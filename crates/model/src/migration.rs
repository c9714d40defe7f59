//! Services that move between load balancers over nodes and container load balancers.

use crate::id::ServiceName;
use crate::policy::Policy;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The type of our condition on Services that move between load balancers over nodes and container
/// load balancers: False while the status tells the addresses of both, True once it tells only the
/// new ones. It goes when nothing of the former load balancer is left.
pub const MIGRATION_CONDITION: &str = "ballast.dev/Migrated";

/// What load balancers lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Backends {
    /// Nodes.
    Nodes,
    /// Pods: container load balancers.
    Pods,
}

impl Backends {
    /// The other ones.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Nodes => Self::Pods,
            Self::Pods => Self::Nodes,
        }
    }

    /// The `reason` of the condition on Services that move here.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Nodes => "ToNodes",
            Self::Pods => "ToPods",
        }
    }
}

/// How far the move of a Service is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum MoveStage {
    /// Its status tells the addresses of both load balancers.
    Both,
    /// Its status tells only the new ones; the former load balancer stands for those who have not
    /// noticed.
    Draining,
}

/// A Service's move to other backends, as its condition tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Move {
    /// Where to.
    pub to: Backends,
    /// How far.
    pub stage: MoveStage,
    /// Since when: `lastTransitionTime` of the condition.
    pub since: Arc<str>,
}

/// How Services move between load balancers over nodes and container load balancers
/// (`layoutMigration`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Migration {
    /// The policy of the load balancers that Services leave. What its pools hold and whether its
    /// rules let nodes out is read from Azure.
    pub from: Arc<Policy>,
    /// For how long a Service has the addresses of both.
    pub keep_both: KeepBoth,
    /// For how long the former load balancer stands once its address is no longer told, in seconds.
    pub drain_s: u32,
    /// Which Services move.
    pub chosen: Chosen,
}

/// For how long a Service that moves has two addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum KeepBoth {
    /// For so long.
    For {
        /// The time.
        seconds: u32,
    },
    /// Until the config says otherwise.
    UntilTold,
}

/// Which Services move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Chosen {
    /// All.
    All,
    /// Those of these namespaces, and these.
    Only {
        /// Names of namespaces.
        namespaces: BTreeSet<Arc<str>>,
        /// Namespaces and names of Services.
        services: BTreeSet<ServiceName>,
    },
}

impl Chosen {
    /// Whether a Service moves.
    #[must_use]
    pub fn has(&self, service: &ServiceName) -> bool {
        match self {
            Self::All => true,
            Self::Only { namespaces, services } => {
                namespaces.contains(&service.namespace) || services.contains(service)
            }
        }
    }
}

impl Migration {
    /// Where nothing is said: DNS records that name the former address have mostly expired by then.
    pub const KEEP_BOTH_SECONDS: u32 = 3_600;
    /// Where nothing is said: connections that were opened to the former address as it left the
    /// status.
    pub const DRAIN_SECONDS: u32 = 60;
}
