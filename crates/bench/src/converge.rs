//! Services that are all created at once.

use super::site::{Plot, Site};
use super::{Addressed, Calls, Demand, Progress, Stuck, Terms, come_to_rest, rest};
use azure_emulator::SampleGateway;
use serde_json::json;

/// What a load balancer takes where there are several: Ballast gives it no new Service once it has
/// so many rules.
const RULES: u32 = 301;
/// From here on Services are given the container load balancer, see [`backends_of`].
const MOST_ON_NODES: u32 = 2_000;
/// Nodes of the cluster.
const NODES: u32 = 100;
/// Pods of a Service of the container load balancer.
const PODS: u32 = 5;
/// Services in one call to the Service Gateway.
const REGISTRATIONS: u32 = 100;
/// Addresses, and names of Services at addresses, in one call to the Service Gateway.
const ENTRIES: u32 = 10_000;

/// What is behind a load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backends {
    /// Nodes, shared by many Services.
    Nodes,
    /// Pods: each Service has a load balancer of its own.
    Pods,
}

/// The backends of so many Services. A security group takes 4,000 destinations and a cluster has
/// 2,768 node ports, so that 10,000 Services of nodes fit into no cluster.
#[must_use]
pub fn backends_of(services: u32) -> Backends {
    if services > MOST_ON_NODES { Backends::Pods } else { Backends::Nodes }
}

/// What so many new public Services took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvergeRow {
    /// How many.
    pub services: u32,
    /// What is behind them.
    pub backends: Backends,
    /// Load balancers that they are on.
    pub balancers: u32,
    /// Under which terms.
    pub terms: Terms,
    /// Until half of them had an address.
    pub half_ms: u64,
    /// Until everything was done.
    pub time_ms: u64,
    /// What is needed at least.
    pub demand: Demand,
    /// Calls.
    pub calls: Calls,
}

impl ConvergeRow {
    /// The least time.
    #[must_use]
    pub fn floor_ms(&self) -> u64 {
        self.demand.floor_ms(self.terms)
    }
}

/// Lets so many Services be programmed.
///
/// # Errors
/// They are not, within a simulated day.
pub fn converge(
    services: u32,
    terms: Terms,
    tell: &mut dyn FnMut(Progress),
) -> Result<ConvergeRow, Stuck> {
    let backends = backends_of(services);
    let what = format!("{services} Services, {}", terms.name());
    let balancers = balancers_of(services);
    let mut site = empty_site(services);
    site.set_terms(terms);
    rest(&mut site.lab, &what)?;
    site.lab.azure.clear_calls();
    create_all(&mut site, services);
    let start = site.lab.now_ms;
    let mut half_ms = None;
    let mut told = |progress: Progress| {
        if progress.done * 2 >= progress.of {
            half_ms.get_or_insert(progress.simulated_ms);
        }
        tell(progress);
    };
    let addressed = come_to_rest(&mut site.lab, &what, services as usize, &mut told)?;
    Ok(ConvergeRow {
        services,
        backends,
        balancers,
        terms,
        half_ms: half_ms.unwrap_or_default(),
        time_ms: done_ms(&site, &addressed, terms) - start,
        demand: demand(services, backends, balancers),
        calls: Calls::of(&site.lab),
    })
}

/// The load balancers that so many Services are on.
fn balancers_of(services: u32) -> u32 {
    match backends_of(services) {
        Backends::Nodes => services.div_ceil(RULES),
        Backends::Pods => services,
    }
}

/// A cluster that so many Services fit into.
pub(super) fn empty_site(services: u32) -> Site {
    let (sets, gateway) = match backends_of(services) {
        Backends::Nodes => (balancers_of(services), SampleGateway::None),
        Backends::Pods => (1, SampleGateway::WithDefaultNat),
    };
    Site::new(Plot { nodes: NODES, spare: 0, sets, gateway }, &json!({}))
}

/// Creates so many Services, with their Pods where these are the backends.
pub(super) fn create_all(site: &mut Site, services: u32) {
    for number in 0..services {
        match backends_of(services) {
            Backends::Nodes => site.create_service(number),
            Backends::Pods => site.create_container_service(number, PODS, NODES),
        }
    }
}

/// When the last Service had its address and the last call to Azure its answer. Coming to rest
/// takes longer where a list is not believed for a while after a write.
fn done_ms(site: &Site, addressed: &Addressed, terms: Terms) -> u64 {
    let writes = site.lab.azure.calls().iter().filter(|call| call.is_write());
    let last = writes.map(|call| call.t_ms + terms.call_ms()).max();
    addressed.last_ms.max(last.unwrap_or_default())
}

/// A public IP each; the load balancers; the security group, after all of them. With Pods as
/// backends there is no security group, but the gateway's two tables.
fn demand(services: u32, backends: Backends, balancers: u32) -> Demand {
    let operations = u64::from(services) + u64::from(balancers);
    match backends {
        Backends::Nodes => {
            Demand { operations: operations + 1, calls: 0, chained_operations: 3, chained_calls: 0 }
        }
        Backends::Pods => Demand {
            operations,
            // An address and the name of its Service are two entries.
            calls: u64::from(services.div_ceil(REGISTRATIONS))
                + u64::from((2 * services * PODS).div_ceil(ENTRIES)),
            chained_operations: 2,
            chained_calls: 2,
        },
    }
}
