//! The container load balancer at rising sizes.

use super::site::{Plot, Site};
use super::{Calls, Demand, Progress, Stuck, come_to_rest, rest};
use azure_emulator::SampleGateway;
use serde_json::json;

/// How long a call takes; operations are done when they are answered.
const CALL_MS: u64 = 200;
/// Services in one call to the Service Gateway.
const REGISTRATIONS: u32 = 100;
/// Addresses, and names of Services at addresses, in one call to the Service Gateway.
const ENTRIES: u32 = 40_000;

/// How large the cluster is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContainerSize {
    /// Services.
    pub services: u32,
    /// Pods of each.
    pub pods: u32,
    /// Nodes.
    pub nodes: u32,
}

/// What was promised of a phase, where something was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promise {
    /// The time.
    pub time_ms: Option<u64>,
    /// Writes.
    pub writes: Option<u64>,
}

/// What one phase took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerRow {
    /// How large.
    pub size: ContainerSize,
    /// What happened.
    pub phase: &'static str,
    /// Until everything was done.
    pub time_ms: u64,
    /// The least time.
    pub floor_ms: u64,
    /// The least writes.
    pub least_writes: u64,
    /// Calls.
    pub calls: Calls,
    /// What was promised.
    pub promise: Promise,
}

/// The phases of a size, 200 ms a call: all Services created at once, a Pod less, half of the Pods
/// gone at once, all Services deleted at once.
///
/// # Errors
/// It does not come to rest within a simulated day.
pub fn container(
    size: ContainerSize,
    tell: &mut dyn FnMut(Progress),
) -> Result<Vec<ContainerRow>, Stuck> {
    let ContainerSize { services, pods, nodes } = size;
    let what = format!("{services} Services of {pods} Pods");
    let gateway = SampleGateway::WithDefaultNat;
    let mut site = Site::new(Plot { nodes, spare: 0, sets: 1, gateway }, &json!({}));
    site.set_call_ms(CALL_MS);
    rest(&mut site.lab, &what)?;
    let mut rows = Vec::new();
    for phase in ["created", "one Pod less", "half of the Pods gone", "deleted"] {
        // Past the time in which a list is not believed, so that checks do not fall into it.
        site.lab.pass(11_000);
        rest(&mut site.lab, &what)?;
        site.lab.azure.clear_calls();
        match phase {
            "created" => (0..services).for_each(|s| site.create_container_service(s, pods, nodes)),
            "one Pod less" => lose(&mut site, size, 0..1, 1),
            "half of the Pods gone" => lose(&mut site, size, 0..services, pods / 2),
            _ => (0..services).for_each(|s| site.delete_service(s)),
        }
        let start = site.lab.now_ms;
        if phase == "created" {
            come_to_rest(&mut site.lab, &what, services as usize, tell)?;
        } else {
            rest(&mut site.lab, &what)?;
        }
        let (demand, promise) = (demand(size, phase), promise(size, phase));
        rows.push(ContainerRow {
            size,
            phase,
            time_ms: site.lab.now_ms - start,
            floor_ms: (demand.chained_operations + demand.chained_calls) * CALL_MS,
            least_writes: demand.writes(),
            calls: Calls::of(&site.lab),
            promise,
        });
    }
    Ok(rows)
}

/// The first so many Pods of these Services go.
fn lose(site: &mut Site, size: ContainerSize, services: std::ops::Range<u32>, gone: u32) {
    const SLICE: u32 = 100;
    for service in services {
        for part in 0..size.pods.div_ceil(SLICE) {
            let all = part * SLICE..size.pods.min((part + 1) * SLICE);
            let left: Vec<u32> =
                all.filter(|p| *p >= gone).map(|p| service * size.pods + p).collect();
            if part * SLICE < gone {
                site.set_slice(service, part, &left, size.nodes);
            }
        }
    }
}

/// Created: public IP, load balancer, registration, addresses, each after the other. Deleted: the
/// addresses, the registration together with its pool's load balancer, then the public IP.
fn demand(size: ContainerSize, phase: &str) -> Demand {
    let ContainerSize { services, pods, .. } = size;
    let registrations = u64::from(services.div_ceil(REGISTRATIONS));
    let two_each = 2 * u64::from(services);
    // An address and the name of its Service are two entries; taking an address out is one.
    let tables = |entries: u32| u64::from(entries.div_ceil(ENTRIES));
    let (operations, calls, chained_operations, chained_calls) = match phase {
        "created" => (two_each, registrations + tables(2 * services * pods), 2, 2),
        "one Pod less" => (0, 1, 0, 1),
        "half of the Pods gone" => (0, tables(services * (pods / 2)), 0, 1),
        _ => (two_each, registrations + tables(services * (pods - pods / 2)), 2, 2),
    };
    Demand { operations, calls, chained_operations, chained_calls }
}

/// The bounds that were set before any of this was written.
fn promise(size: ContainerSize, phase: &str) -> Promise {
    let of = |time_ms, writes| Promise { time_ms, writes };
    match (size.services, size.pods, phase) {
        (50, 100, "created") => of(Some(1_500), Some(106)),
        (50, 100, "half of the Pods gone") => of(None, Some(2)),
        (50, 100, "deleted") => of(Some(2_000), Some(106)),
        (200, 500, "created") => of(Some(4_000), None),
        (200, 500, "deleted") => of(Some(5_000), None),
        (_, _, "one Pod less") => of(Some(220), Some(1)),
        _ => Promise::default(),
    }
}
