//! What one Service causes in Azure, field by field, and which annotation, field or config key
//! each comes from.
//!
//! Nothing is looked up in a table of causes: the Service is planned into a World that is settled
//! without it, then again with one thing altered at a time. What differs between the two outcomes
//! is what the thing altered is the cause of.
//!
//! # Guarantees
//! - A cause that is named changes the field: planning without it, or with another value, gives
//!   another one.
//! - Every annotation under our prefix is the cause of something, or listed as unused with a
//!   reason.
//!
//! # Assumptions
//! What has not been read of Azure is taken as empty.

mod compare;
mod input;
mod lean;
mod policy_inputs;
mod resources;
mod sheet;
#[cfg(test)]
mod tests;
mod trial;
mod unused;

pub use resources::{ExplainedResource, Field, Part, Share, Standing};
pub use sheet::{Path, Step};
pub use unused::Unused;

use crate::forecast::{follow, settle};
use compare::Effect;
use input::{Breadth, Input, Nature, Setting};
use model::gateway::{GatewayService, LocationsUpdate};
use model::kubernetes::{
    Deletion, GATEWAY_FINALIZER, LoadBalancerType, SERVICE_FINALIZER, Service, Wish,
};
use model::plan::Resource;
use model::report::{Finding, ServiceReport, State, Wait};
use model::world::{Fact, InFlight, Need};
use model::{Policy, ResourceId, ServiceName, ServiceUid, World};
use plan::own::{self, Whose};
use serde::Serialize;
use serde_json::Value;
use sheet::{Leaf, Origin, Own, Stage};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use trial::Bench;

/// How bodies are written: what `plan` has no knowledge of.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    /// The body of a resource.
    pub resource: fn(&Resource) -> Value,
    /// A service of a Service Gateway, and the virtual network of its pools.
    pub registration: fn(&GatewayService, Option<&ResourceId>) -> Value,
    /// Addresses in the table of a Service Gateway.
    pub locations: fn(&LocationsUpdate) -> Value,
}

/// Something that is written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Target {
    /// An Azure resource.
    Azure(ResourceId),
    /// The Service itself.
    Service(ServiceName),
}

impl Target {
    /// The type of the resource; resources of one type may stand for each other.
    fn kind(&self) -> String {
        match self {
            Self::Service(_) => String::new(),
            Self::Azure(id) => {
                let folded = id.folded();
                let from = folded.rfind("/providers/").map_or(0, |at| at + "/providers/".len());
                folded[from..].split('/').skip(1).step_by(2).collect::<Vec<_>>().join("/")
            }
        }
    }
}

/// Where a field comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Source {
    /// An annotation, as it is written.
    Annotation {
        /// The whole key.
        key: Arc<str>,
        /// Its value.
        value: Arc<str>,
    },
    /// A field of the Service.
    ServiceField {
        /// As in `spec.ports[0].port`.
        path: String,
        /// Its value.
        value: String,
    },
    /// A key of the cloud config, or a flag.
    ConfigKey {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
    },
    /// The cluster's nodes.
    Nodes {
        /// How many there are.
        count: usize,
    },
    /// The Service's EndpointSlices.
    EndpointSlices {
        /// How many endpoints they name.
        endpoints: usize,
    },
    /// The labels of the Service's namespace.
    Namespace {
        /// Its name.
        name: Arc<str>,
    },
    /// Azure.
    Azure {
        /// What of it.
        what: &'static str,
    },
    /// It leads to another part of the same Service, or to what it shares.
    Reference,
    /// It is the first number that is free.
    FirstFree,
    /// Nothing that is set makes it so.
    Default {
        /// Annotations, fields and config keys that would change it.
        changed_by: Vec<String>,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = plan::ask::annotation::PREFIX;
        match self {
            Self::Annotation { key, value } => {
                write!(f, "annotation {} = {value:?}", key.strip_prefix(prefix).unwrap_or(key))
            }
            Self::ServiceField { path, value } => write!(f, "{path} = {value}"),
            Self::ConfigKey { key, value } if key.starts_with('-') => write!(f, "{key}={value}"),
            Self::ConfigKey { key, value } => write!(f, "config {key} = {value}"),
            Self::Nodes { .. } => f.write_str("the cluster's nodes"),
            Self::EndpointSlices { .. } => f.write_str("the Service's endpoints"),
            Self::Namespace { name } => write!(f, "labels of namespace {name}"),
            Self::Azure { what } => f.write_str(what),
            Self::FirstFree => f.write_str("the first that is free"),
            Self::Reference => f.write_str("a reference"),
            Self::Default { changed_by } if changed_by.is_empty() => f.write_str("always so"),
            Self::Default { changed_by } => {
                write!(f, "default; to change it: {}", changed_by.join(", "))
            }
        }
    }
}

/// Something that is not there because of an annotation or a config key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Absent {
    /// The resource that it would be, or be in.
    pub target: Target,
    /// What of it; empty for the whole.
    pub path: Path,
    /// What keeps it away.
    pub source: Source,
}

/// Something that changes no field but without which the Service would be refused.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Needed {
    /// What it is.
    pub source: Source,
    /// What would be wrong.
    pub refusal: Finding,
}

/// What one Service causes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Namespace and name.
    pub service: ServiceName,
    /// UID.
    pub uid: ServiceUid,
    /// How far it is.
    pub state: State,
    /// Its load balancer.
    pub balancer: Option<Arc<str>>,
    /// Addresses it has.
    pub addresses: Vec<Arc<str>>,
    /// What it causes, in the order in which one comes to need the other.
    pub resources: Vec<ExplainedResource>,
    /// What is not there because of something it says.
    pub absent: Vec<Absent>,
    /// What the Service would be refused without.
    pub needed: Vec<Needed>,
    /// Annotations and fields that have no effect.
    pub unused: Vec<Unused>,
    /// What is wrong with it.
    pub findings: Vec<Finding>,
    /// What it waits on.
    pub waits: Vec<Wait>,
    /// Calls under way on its account.
    pub in_flight: BTreeMap<ResourceId, InFlight>,
    /// What of Azure was not known, and is taken as empty.
    pub assumed: BTreeSet<Need>,
}

/// Why a Service is not explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stranger {
    /// There is none of this name that has, or asks for, a load balancer of ours.
    Unknown,
    /// Its class is another controller's.
    OtherClass,
}

/// Explains a Service.
///
/// # Errors
/// It is none of ours.
pub fn explain(
    world: &World,
    policy: &Policy,
    name: &ServiceName,
    wire: &Wire,
) -> Result<Explanation, Stranger> {
    let named = world.kubernetes.services.values().find(|s| s.name == *name);
    let service = named.ok_or(Stranger::Unknown)?;
    if service.load_balancer_type == LoadBalancerType::Foreign {
        return Err(Stranger::OtherClass);
    }
    let (now, end) = follow(world, policy);
    let report = now.report.services.get(&service.uid).ok_or(Stranger::Unknown)?;
    let free = unhindered(world);
    // Where nothing holds up the moment and all is known, what is planned leads there by itself.
    let clear = [&now.report, &now.last].iter().all(|report| report.needs.is_empty());
    let settled = if clear && free == *world { end } else { settle(free, policy).0 };
    let without = without(&settled, service, policy, world);
    let stage = Stage { uid: &service.uid, policy, wire };
    let mut wanted = sheet::own(&settled, &without, &stage);
    let mut known = Causes::default();
    let frozen = report.findings.iter().any(|f| f.severity.freezes());
    if service.wish == Wish::LoadBalancer && !frozen {
        let setting = Setting { service: fresh(service), policy: policy.clone(), world: without };
        let inputs = input::inputs(service, policy, world);
        let bench = Bench::new(wire, setting, inputs);
        known = causes(&bench, &report.findings, &wanted);
        let agreed = known.agreed.keys().map(|(target, _)| target).collect();
        known.adopt(&sheet::leaves(&settled, &stage, &agreed), &mut wanted);
    } else {
        known.unused = unused::noted(service, &report.findings);
    }
    let resources = resources::build(&resources::Sight {
        world,
        settled: &settled,
        stage: &stage,
        wanted: &wanted,
        causes: &known,
        changes: &now.changes,
    });
    Ok(assemble(world, service, report, known, resources, now.report.needs.clone()))
}

fn assemble(
    world: &World,
    service: &Service,
    report: &ServiceReport,
    causes: Causes,
    resources: Vec<ExplainedResource>,
    assumed: BTreeSet<Need>,
) -> Explanation {
    let about_unused = |f: &&Finding| causes.unused.iter().any(|u| u.key == f.key);
    let findings = report.findings.iter();
    Explanation {
        service: service.name.clone(),
        uid: service.uid.clone(),
        state: report.state,
        balancer: report.balancer.clone(),
        addresses: report.addresses.clone(),
        resources,
        findings: findings.filter(|f| f.severity.freezes() || !about_unused(f)).cloned().collect(),
        absent: causes.absent.into_iter().collect(),
        needed: causes.needed,
        unused: causes.unused,
        waits: report.waits.clone(),
        in_flight: world
            .in_flight
            .iter()
            .filter(|(_, call)| call.causes.contains(&service.uid))
            .map(|(id, call)| (id.clone(), call.clone()))
            .collect(),
        assumed,
    }
}

/// The World without what holds up the moment: what everybody asks for is what matters.
fn unhindered(world: &World) -> World {
    let mut world = world.clone();
    world.holds.clear();
    world.in_flight.clear();
    world.inherited.clear();
    world.unseen.clear();
    world
}

/// The World as it would be, had the Service never been.
fn without(settled: &World, service: &Service, policy: &Policy, world: &World) -> World {
    let mut leaving = fresh(service);
    leaving.wish = Wish::Nothing;
    leaving.deletion = Deletion::Requested;
    leaving.finalizers = vec![Arc::from(SERVICE_FINALIZER), Arc::from(GATEWAY_FINALIZER)];
    let mut without = settled.clone();
    // A subnet keeps what was once done to it.
    without.azure.subnets.clone_from(&world.azure.subnets);
    keep_brought(&mut without, world, policy);
    without.kubernetes.services.insert(service.uid.clone(), Arc::new(leaving));
    let (mut without, _) = settle(without, policy);
    without.kubernetes.services.remove(&service.uid);
    without
}

/// So do public IPs that somebody brought: they are as they are now.
fn keep_brought(without: &mut World, world: &World, policy: &Policy) {
    let own = own::Own::new(world, policy);
    for (group, facts) in &mut without.azure.public_ips {
        let then = world.azure.public_ips.get(group).and_then(Fact::known);
        let (Some(all), Some(then)) = (facts.known_mut(), then) else { continue };
        for (id, ip) in all.iter_mut() {
            let brought = matches!(own.public_ip(ip), Whose::Unmarked | Whose::Foreign);
            if let Some(old) = then.get(id).filter(|_| brought) {
                *ip = Arc::clone(old);
            }
        }
    }
}

/// The Service as if nobody had done anything for it yet.
fn fresh(service: &Service) -> Service {
    let mut service = service.clone();
    service.finalizers.retain(|f| ![SERVICE_FINALIZER, GATEWAY_FINALIZER].contains(&&**f));
    service.ingress.clear();
    service
}

/// What was found out about causes, in places of what the Service is to have.
#[derive(Default)]
struct Causes {
    by_place: BTreeMap<compare::Place, BTreeSet<Source>>,
    /// Broad inputs, for fields that have no narrower cause.
    broad: BTreeMap<compare::Place, BTreeSet<Source>>,
    /// Fields that were already so when the Service came, and that it asks for.
    agreed: BTreeMap<compare::Place, BTreeSet<Source>>,
    absent: BTreeSet<Absent>,
    needed: Vec<Needed>,
    unused: Vec<Unused>,
}

impl Causes {
    fn note(&mut self, effect: Effect, input: &Input) {
        let Effect { targets, elements, leaves, absent: _ } = effect;
        let targets = targets.into_iter().map(|target| (target, Path::default()));
        let (elements, leaves) = match input.breadth {
            Breadth::Place => (BTreeSet::new(), BTreeSet::new()),
            Breadth::Narrow | Breadth::Broad => (elements, leaves),
        };
        for place in targets.chain(elements) {
            self.by_place.entry(place).or_default().insert(input.source.clone());
        }
        let map = match input.breadth {
            Breadth::Broad => &mut self.broad,
            Breadth::Narrow | Breadth::Place => &mut self.by_place,
        };
        for place in leaves {
            map.entry(place).or_default().insert(input.source.clone());
        }
    }

    /// Fields that stand without the Service and that it asks for in the same words become its
    /// own, too.
    fn adopt(&mut self, settled: &BTreeMap<Target, Vec<Leaf>>, wanted: &mut Vec<Own>) {
        for ((target, path), sources) in std::mem::take(&mut self.agreed) {
            let leaf = settled.get(&target).and_then(|all| all.iter().find(|(p, _)| *p == path));
            let Some(leaf) = leaf else { continue };
            let at = wanted.iter().position(|own| own.target == target).unwrap_or_else(|| {
                let (elements, leaves) = (BTreeSet::new(), Vec::new());
                let target = target.clone();
                wanted.insert(0, Own { target, origin: Origin::Found, elements, leaves });
                0
            });
            if wanted[at].get(&path).is_none() {
                wanted[at].leaves.push(leaf.clone());
                self.by_place.entry((target, path)).or_default().extend(sources);
            }
        }
    }

    /// What is not there because of an input; single fields only where there is nothing more.
    fn note_absent(&mut self, effect: &Effect, nature: Option<Nature>, source: &Source) {
        let is_annotation = matches!(source, Source::Annotation { .. });
        if nature == Some(Nature::Variation) && is_annotation {
            for place in &effect.absent {
                self.agreed.entry(place.clone()).or_default().insert(source.clone());
            }
        }
        let alone = effect.targets.is_empty() && effect.leaves.is_empty();
        for (target, path) in effect.absent.iter().filter(|_| nature == Some(Nature::Removal)) {
            let is_written = matches!(source, Source::Annotation { .. } | Source::ConfigKey { .. });
            // Elements of elements, as addresses in a pool, come and go with much else.
            if !is_written || path.elements().count() > 1 {
                continue;
            }
            let whole = path.0.last().is_none_or(|step| matches!(step, Step::Item(_)));
            if whole || (alone && effect.elements.is_empty()) {
                let (target, path, source) = (target.clone(), path.clone(), source.clone());
                self.absent.insert(Absent { target, path, source });
            }
        }
    }

    fn of(&self, target: &Target, path: &Path) -> BTreeSet<Source> {
        self.by_place.get(&(target.clone(), path.clone())).cloned().unwrap_or_default()
    }
}

/// Alters one input after the other.
fn causes(bench: &Bench<'_>, findings: &[Finding], wanted: &[Own]) -> Causes {
    let ours = &bench.outcome.own;
    let alignment = compare::align(wanted, ours);
    let mut known = Causes::default();
    for (at, input) in bench.inputs.iter().enumerate() {
        let trial = bench.effect(at, &[]);
        match (trial.effect, trial.refusal) {
            (Some(effect), _) => {
                known.note_absent(&effect, trial.nature, &input.source);
                known.note(effect.seen_from(&alignment, wanted), input);
            }
            (None, Some(refusal)) if input.is_removable() => {
                known.needed.push(Needed { source: input.source.clone(), refusal });
            }
            (None, _) => known.unused.extend(unused::why(bench, at, findings)),
        }
    }
    let mut defaults: BTreeMap<compare::Place, Vec<String>> = BTreeMap::new();
    for (key, way) in input::offers(&bench.setting.service, &bench.setting.policy) {
        let effect = bench.effect_of(&way, None, &[]).effect.filter(|e| e.targets.is_empty());
        let Some(effect) = effect else { continue };
        for place in effect.seen_from(&alignment, wanted).leaves {
            defaults.entry(place).or_default().push(key.clone());
        }
    }
    resources::note_rest(&mut known, wanted, ours, &alignment, &defaults);
    known
}
