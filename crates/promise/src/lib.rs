//! What must stand in Azure and in Kubernetes for each Service, by the annotation reference and
//! the naming rules of the Go cloud provider.
//!
//! # Guarantees
//! - Nothing here comes from `plan`, `model`, `observe` or `control`: a mistake that is made there
//!   is not made here as well.
//! - The same scene gives the same list, in the same order.
//!
//! One file is one kind of thing, and reads as a specification of it.

mod asks;
mod case;
mod claims;
mod confirm;
mod consent;
mod container;
mod contest;
mod estate;
mod frontend;
mod holds;
mod links;
mod members;
mod names;
mod nodes;
mod nothing_else;
mod other_layout;
mod placement;
mod pools;
mod probes;
mod public_ip;
mod region;
mod rules;
mod security;
mod selector;
mod shares;
mod site;
mod spread;
mod state;
mod status;
mod tags;

use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// Everything that is judged, at one moment at which nothing is under way.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// The cloud config.
    pub config: Value,
    /// The name of the cluster (`--cluster-name`).
    pub cluster: String,
    /// Services, as the API server gives them.
    pub services: Vec<Arc<Value>>,
    /// Nodes.
    pub nodes: Vec<Arc<Value>>,
    /// EndpointSlices.
    pub slices: Vec<Arc<Value>>,
    /// Pods.
    pub pods: Vec<Arc<Value>>,
    /// Namespaces.
    pub namespaces: Vec<Arc<Value>>,
    /// ARM resources, each as a GET returns it.
    pub resources: Vec<Arc<Value>>,
    /// The tables of the Service Gateway: `{services: {…}, locations: {…}}`.
    pub gateway: Option<Value>,
    /// The `loadBalancerClass` whose Services are this controller's beside those without one.
    pub class: Option<String>,
    /// ARM resources that stood before the cluster's first Service: what is another's is told by
    /// that. Beside them every address and every tag of ours is on account of a Service.
    pub before: Vec<Arc<Value>>,
    /// Names, lower case, of the resource groups that there are; `None` where nobody knows them.
    pub groups: Option<BTreeSet<String>>,
    /// Services, as `namespace/name`, that are refused for a reason which neither Kubernetes nor
    /// Azure shows. They keep what they have, and are told.
    pub refused: BTreeSet<String>,
    /// Addresses of which nothing that stands says any more whose they were: their public IPs were
    /// deleted by hand, and the process that was to close them died. A security rule to one stays.
    pub forgotten: BTreeSet<IpAddr>,
    /// Ids, lower case, of load balancers on which parts stand of which the same holds: they stay,
    /// with their nodes.
    pub held: BTreeSet<String>,
    /// The region's availability zones, in Azure's order; empty where it has none or nobody knows
    /// them.
    pub zones: Vec<String>,
}

/// A promise that is not kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Broken {
    /// The Service that it was given to, as `namespace/name`; `None` for what belongs to none.
    pub service: Option<String>,
    /// Which kind of promise: the name of the file that states it.
    pub promise: &'static str,
    /// On what, what was promised, and what was found.
    pub text: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(service) = &self.service {
            write!(f, "{service}: ")?;
        }
        write!(f, "{}: {}", self.promise, self.text)
    }
}

/// Every promise that is not kept, sorted.
#[must_use]
pub fn judge(scene: &Scene) -> Vec<Broken> {
    let case = case::Case::read(scene);
    let mut broken = Vec::new();
    if other_layout::left(&case).is_some() {
        return broken;
    }
    if case.site.layout == site::Layout::Container {
        container::judge(&case, &mut broken);
    } else {
        frontend::judge(&case, &mut broken);
        rules::judge(&case, &mut broken);
        probes::judge(&case, &mut broken);
        pools::judge(&case, &mut broken);
        public_ip::judge(&case, &mut broken);
        security::judge(&case, &mut broken);
        tags::judge(&case, &mut broken);
        region::judge(&case, &mut broken);
        links::judge(&case, &mut broken);
        state::judge(&case, &mut broken);
    }
    status::judge(&case, &mut broken);
    nothing_else::judge(&case, &mut broken);
    broken.sort();
    broken.dedup();
    broken
}

/// The id, lower case, of something that the other kind of load balancers has left. While it stands
/// and the cloud config does not say how Services move, nothing is written and nothing promised.
#[must_use]
pub fn left_behind(scene: &Scene) -> Option<String> {
    other_layout::left(&case::Case::read(scene)).map(str::to_owned)
}

/// Services, as `namespace/name`, that ask for a load balancer and cannot have what they ask for.
#[must_use]
pub fn refused(scene: &Scene) -> BTreeSet<String> {
    let case = case::Case::read(scene);
    let refused = case
        .services
        .iter()
        .filter(|service| matches!(service.fate, case::Fate::Refused(_) | case::Fate::Denied(..)));
    refused.map(|service| service.key.clone()).collect()
}

/// Services, as `namespace/name`, none of whose ports leads anywhere, because all of their target
/// ports are names and their Pods do not agree on a number: they may have no address.
#[must_use]
pub fn unanswered(scene: &Scene) -> BTreeSet<String> {
    container::unanswered(&case::Case::read(scene))
}

/// Every promise about Services and nodes that have come since `earlier`, the ARM resources of a
/// moment like this one, that is not kept; sorted. Between the two either Services or nodes came,
/// and nothing else changed.
#[must_use]
pub fn judge_newcomers(scene: &Scene, earlier: &[Arc<Value>]) -> Vec<Broken> {
    let case = case::Case::read(scene);
    let mut broken = Vec::new();
    if other_layout::left(&case).is_none() && case.site.layout != site::Layout::Container {
        let earlier = estate::Estate::read(earlier);
        spread::judge(&case, &earlier, &mut broken);
        shares::judge_newcomers(&case, &earlier, &mut broken);
    }
    broken.sort();
    broken
}
