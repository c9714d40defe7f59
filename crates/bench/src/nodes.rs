//! One node comes, and one goes.

use super::site::{Plot, Site};
use super::{Calls, Demand, Progress, Stuck, Terms, come_to_rest, rest};
use azure_emulator::SampleGateway;
use serde_json::json;

/// Nodes a pool of addresses is given here: below the 1,000 that Azure allows, so that one more
/// fits.
const POOL: u32 = 900;
/// Services that the cluster has.
const SERVICES: u32 = 100;

/// How nodes get into pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pools {
    /// By their address, in the load balancer's pool.
    NodeIp,
    /// By their machine's NIC.
    NodeIpConfiguration,
}

impl Pools {
    /// Both.
    pub const ALL: [Self; 2] = [Self::NodeIp, Self::NodeIpConfiguration];

    /// As the cloud config has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NodeIp => "nodeIP",
            Self::NodeIpConfiguration => "nodeIPConfiguration",
        }
    }
}

/// What changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// A node comes.
    Added,
    /// A node goes; its machine stays for now.
    Removed,
}

impl Change {
    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
        }
    }
}

/// What one node took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// Nodes before.
    pub nodes: u32,
    /// How they are in pools.
    pub pools: Pools,
    /// Load balancers.
    pub balancers: u32,
    /// Services.
    pub services: u32,
    /// What changed.
    pub change: Change,
    /// Until everything was done.
    pub time_ms: u64,
    /// What is needed at least.
    pub demand: Demand,
    /// Calls.
    pub calls: Calls,
}

impl NodeRow {
    /// The least time.
    #[must_use]
    pub fn floor_ms(&self) -> u64 {
        self.demand.floor_ms(Terms::Latency)
    }
}

/// Reads that the Go controller makes for a node more: five a Service and one for the node, as was
/// counted with 50 Services (251).
#[must_use]
pub fn reads_elsewhere(services: u32) -> u32 {
    5 * services + 1
}

/// A node more and a node less in a settled cluster of so many.
///
/// # Errors
/// It does not come to rest within a simulated day.
pub fn node_changes(
    nodes: u32,
    pools: Pools,
    tell: &mut dyn FnMut(Progress),
) -> Result<[NodeRow; 2], Stuck> {
    let what = format!("{nodes} nodes, {}", pools.name());
    let balancers = match pools {
        Pools::NodeIp => nodes.div_ceil(POOL),
        Pools::NodeIpConfiguration => 1,
    };
    let plot = Plot { nodes, spare: 1, sets: balancers, gateway: SampleGateway::None };
    let kind = json!({"loadBalancerBackendPoolConfigurationType": pools.name()});
    let mut site = Site::new(plot, &kind);
    rest(&mut site.lab, &what)?;
    (0..SERVICES).for_each(|number| site.create_service(number));
    come_to_rest(&mut site.lab, &what, SERVICES as usize, tell)?;
    site.set_terms(Terms::Latency);
    rest(&mut site.lab, &what)?;
    let mut row = |change: Change| {
        // Past the time in which a list is not believed.
        site.lab.pass(11_000);
        site.lab.azure.clear_calls();
        match change {
            Change::Added => site.add_node(nodes),
            Change::Removed => site.remove_node(nodes / 2),
        }
        let start = site.lab.now_ms;
        rest(&mut site.lab, &what)?;
        let time_ms = site.lab.now_ms - start;
        let calls = Calls::of(&site.lab);
        let demand = demand(pools, change);
        Ok(NodeRow { nodes, pools, balancers, services: SERVICES, change, time_ms, demand, calls })
    };
    Ok([row(Change::Added)?, row(Change::Removed)?])
}

/// An address joins or leaves by one write. A NIC joins by one write of its machine, which has to
/// be read before, and leaves by another.
fn demand(pools: Pools, change: Change) -> Demand {
    let (operations, calls) = match (pools, change) {
        (Pools::NodeIp, _) => (1, 0),
        (Pools::NodeIpConfiguration, Change::Added) => (1, 1),
        (Pools::NodeIpConfiguration, Change::Removed) => (1, 0),
    };
    Demand { operations, calls: 0, chained_operations: operations, chained_calls: calls }
}
