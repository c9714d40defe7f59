//! Which scenarios there are, in which layouts and under which conditions they are played.

use crate::scene::Layout;

named! {
    /// What is done in a scenario, after everything was at rest.
    pub enum Scenario;
    /// Every scenario.
    pub const SCENARIOS;
    Create, "create", "two Services are created";
    Update, "update", "a port, a source range and a timeout change";
    Delete, "delete", "both Services are deleted";
    CreateAndDelete, "create-and-delete", "a Service is deleted while it is being created";
    Nodes, "nodes", "one node comes, another goes";
    Exposure, "exposure", "a public Service becomes internal";
    Config, "config", "the cloud config changes: the kind of pools, the SKU, or tags";
    PodMoves, "pod-moves", "a Pod moves to another node";
    Retype, "retype", "a Service is no longer of type LoadBalancer";
    BroughtIp, "brought-ip", "a Service moves to a BYO public IP and back";
    NodesLedTo, "nodes-led-to",
        "security rules lead to nodes; one node goes, another is excluded";
    Drain, "drain", "a node is tainted for deletion, then goes";
    SecondFamily, "second-family", "a Service gets IPv6 beside IPv4, then loses it";
    PrivateLink, "private-link", "a Service gets a Private Link Service, changes and loses it";
    Egress, "egress", "Pods begin to leave through egress gateways; one gateway's last Pod goes";
    Gate, "readiness-gate", "a Pod with our readiness gate becomes ready, another one comes";
    SharedPublic, "shared-public-ip", "two Services share a BYO public IP; the first leaves it";
    SharedInternal, "shared-internal-ip",
        "two internal Services share a pinned address; the first leaves it";
    Migration, "migration", "Services move to load balancers over nodes and back";
}

named! {
    /// How Azure and the processes are while a scenario is played.
    pub enum Conditions;
    /// All conditions.
    pub const CONDITIONS;
    Plain, "plain", "operations of 50 ms, one process";
    Slow, "slow", "operations of 20 s, addresses and ETags change when they end";
    Paged, "paged", "lists in pages of two that lag by 4 s";
    Leaders, "leaders", "two processes and a Lease";
}

/// Layouts in which a scenario means something.
#[must_use]
pub fn suits(scenario: Scenario, layout: Layout) -> bool {
    match scenario {
        Scenario::PodMoves | Scenario::Egress | Scenario::Migration => layout == Layout::Containers,
        Scenario::Exposure | Scenario::Config => layout != Layout::Containers,
        // A Basic load balancer takes no Standard address.
        Scenario::BroughtIp | Scenario::SharedPublic => {
            !matches!(layout, Layout::Containers | Layout::PerSet)
        }
        // Not drawn with pools of NICs: docs/dev/simulation-tables.md.
        Scenario::NodesLedTo | Scenario::Drain => {
            matches!(layout, Layout::Single | Layout::Several)
        }
        // Basic and container load balancers have no IPv6.
        Scenario::SecondFamily => !matches!(layout, Layout::Containers | Layout::PerSet),
        // Azure wants NICs behind a Private Link Service.
        Scenario::PrivateLink => layout == Layout::Nics,
        Scenario::SharedInternal => matches!(layout, Layout::Single | Layout::Nics),
        Scenario::Gate => matches!(layout, Layout::Single | Layout::Containers),
        Scenario::Create
        | Scenario::Update
        | Scenario::Delete
        | Scenario::CreateAndDelete
        | Scenario::Nodes
        | Scenario::Retype => true,
    }
}

/// Conditions that change something of a scenario.
#[must_use]
pub fn plays(scenario: Scenario, conditions: Conditions) -> bool {
    // A restart with another config ends both processes.
    conditions != Conditions::Leaders || !matches!(scenario, Scenario::Config | Scenario::Migration)
}
