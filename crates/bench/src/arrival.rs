//! One Service more in a settled cluster: what the controller's work for it takes, whatever its
//! owner wrote into it.

use super::converge::{create_all, empty_site};
use super::site::Site;
use super::{Progress, Stuck, come_to_rest, rest};
use serde_json::{Map, Value, json};
use sim::Meter;
use std::time::Duration;

/// The Service that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guest {
    /// One port and no annotation.
    Plain,
    /// 187 KB of source ranges of which none is one, in one annotation.
    Ranges,
    /// 1,000 ports, and 12,000 tags for its public IP.
    TagsAndPorts,
}

impl Guest {
    /// Every guest.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Ranges, Self::TagsAndPorts];

    /// What it is, in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "one port, no annotation",
            Self::Ranges => "187 KB of annotations",
            Self::TagsAndPorts => "1,000 ports and 12,000 tags",
        }
    }

    fn object(self) -> Value {
        let port = |n: u32| json!({"name": format!("p{n}"), "port": 1_000 + n});
        let mut annotations = Map::new();
        let mut annotate = |key: &str, value: String| {
            annotations.insert(format!("service.beta.kubernetes.io/{key}"), json!(value));
        };
        let ports = match self {
            Self::Plain => 1,
            Self::Ranges => {
                let mut junk: String = (0..40_000).map(|n| format!("{n:x},")).collect();
                junk.truncate(187_000);
                annotate("azure-allowed-ip-ranges", junk);
                1
            }
            Self::TagsAndPorts => {
                annotate("azure-pip-tags", (0..12_000).map(|n| format!("k{n}=v,")).collect());
                1_000
            }
        };
        json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "guest", "namespace": "default", "annotations": annotations},
            "spec": {"type": "LoadBalancer", "ports": (0..ports).map(port).collect::<Vec<_>>()}})
    }
}

/// What something cost the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Processor time of reading objects and of all steps until nothing was left to do.
    pub spent: Duration,
    /// Plans that were made.
    pub plans: u64,
    /// How many times planning read a Service.
    pub reads: u64,
}

/// What the arrival of a Service took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrivalRow {
    /// Services that were there.
    pub services: u32,
    /// The one that came.
    pub guest: Guest,
    /// Until all was done for it: the middle one of several times.
    pub arrival: Cost,
    /// Until another Service's change was done, while the guest is there.
    pub change: Cost,
}

/// Lets a Service arrive so many times at so many others, and another one change while it is there.
/// `clock` is the processor time of this thread.
///
/// # Errors
/// The cluster does not come to rest.
pub fn arrival(
    services: u32,
    guest: Guest,
    times: usize,
    clock: fn() -> Duration,
    tell: &mut dyn FnMut(Progress),
) -> Result<ArrivalRow, Stuck> {
    let what = format!("{services} Services and one more: {}", guest.name());
    let mut site = empty_site(services);
    create_all(&mut site, services);
    come_to_rest(&mut site.lab, &what, services as usize, tell)?;
    let (mut arrivals, mut changes) = (Vec::new(), Vec::new());
    for _ in 0..times {
        site.create(guest.object());
        arrivals.push(cost(&mut site, clock, &what)?);
        site.set_affinity(0, "ClientIP");
        changes.push(cost(&mut site, clock, &what)?);
        site.set_affinity(0, "None");
        site.delete("services", "default", "guest");
        rest(&mut site.lab, &what)?;
    }
    let (arrival, change) = (middle(arrivals), middle(changes));
    Ok(ArrivalRow { services, guest, arrival, change })
}

fn middle(mut costs: Vec<Cost>) -> Cost {
    costs.sort_by_key(|cost| cost.spent);
    costs.get(costs.len() / 2).copied().unwrap_or_default()
}

/// What the controller does until nothing is left to do.
fn cost(site: &mut Site, clock: fn() -> Duration, what: &str) -> Result<Cost, Stuck> {
    let counts = |site: &Site| {
        let controller = site.lab.controller();
        (controller.counts().plans, controller.services_read())
    };
    let before = counts(site);
    site.lab.meter = Some(Meter { clock, spent: Duration::ZERO });
    rest(&mut site.lab, what)?;
    let spent = site.lab.meter.take().map(|meter| meter.spent).unwrap_or_default();
    let after = counts(site);
    Ok(Cost { spent, plans: after.0 - before.0, reads: after.1 - before.1 })
}
