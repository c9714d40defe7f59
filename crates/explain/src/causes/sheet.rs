//! Bodies of resources as lists of leaves, and what of them is one Service's.

use super::{Target, Wire, lean};
use model::gateway::{GatewayService, LocationUpdate, LocationsUpdate, NameSet, UpdateAction};
use model::kubernetes::{GATEWAY_FINALIZER, SERVICE_FINALIZER};
use model::plan::Resource;
use model::world::Fact;
use model::{Policy, ServiceUid, World};
use plan::own::pod_names;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// One step of the way to a field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A field of an object.
    Field(Arc<str>),
    /// An element of a list, by its name.
    Item(Arc<str>),
}

/// The way to a field, as in `properties.probes[a].properties.port`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<Step>);

impl Path {
    /// One step further.
    #[must_use]
    pub fn to(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// Whether the way leads through, or to, another one's end.
    #[must_use]
    pub fn is_below(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Every element of a list on the way, the outermost first.
    pub fn elements(&self) -> impl Iterator<Item = Self> + '_ {
        let ends = self.0.iter().enumerate().filter(|(_, step)| matches!(step, Step::Item(_)));
        ends.map(|(at, _)| Self(self.0[..=at].to_vec()))
    }

    /// The rest of the way below another one's end.
    #[must_use]
    pub fn below(&self, other: &Self) -> Self {
        Self(self.0.get(other.0.len()..).unwrap_or_default().to_vec())
    }

    /// The list that this element is in.
    pub(super) fn collection(&self) -> Self {
        Self(self.0[..self.0.len().saturating_sub(1)].to_vec())
    }

    /// The name of the field or element at the end.
    #[must_use]
    pub fn last(&self) -> &str {
        match self.0.last() {
            Some(Step::Field(name) | Step::Item(name)) => name,
            None => "",
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if at == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Item(name) => write!(f, "[{name}]")?,
            }
        }
        Ok(())
    }
}

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A field that holds no further fields.
pub(super) type Leaf = (Path, Value);

/// Azure's singular forms and the plural ones they are one with.
const PLURALS: [(&str, &str); 4] = [
    ("sourceAddressPrefix", "sourceAddressPrefixes"),
    ("destinationAddressPrefix", "destinationAddressPrefixes"),
    ("sourcePortRange", "sourcePortRanges"),
    ("destinationPortRange", "destinationPortRanges"),
];

/// What an element of a list is told from the others by.
const KEYS: [&str; 4] = ["name", "id", "addressLocation", "address"];

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.values().all(is_empty),
        _ => false,
    }
}

/// All leaves of a body, in its order, but for its own id and name.
fn flatten(body: &Value) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    if let Value::Object(object) = body {
        let top = |key: &str| key != "id" && key != "name";
        for (key, value) in object.iter().filter(|(key, _)| top(key)) {
            descend(value, &Path::default().to(Step::Field(Arc::from(key.as_str()))), &mut leaves);
        }
    }
    leaves
}

fn descend(value: &Value, path: &Path, leaves: &mut Vec<Leaf>) {
    match value {
        value if is_empty(value) => {}
        Value::Object(object) => fields(object, path, leaves),
        Value::Array(list) if list.iter().all(|v| !v.is_object() && !v.is_array()) => {
            leaves.push((path.clone(), value.clone()));
        }
        Value::Array(list) => {
            let mut taken = BTreeSet::new();
            for (at, element) in list.iter().enumerate() {
                let mut name = element_name(element).unwrap_or_else(|| at.to_string());
                if !taken.insert(name.clone()) {
                    name = format!("{name}#{at}");
                }
                descend(element, &path.to(Step::Item(Arc::from(name))), leaves);
            }
        }
        scalar => leaves.push((path.clone(), scalar.clone())),
    }
}

fn fields(object: &Map<String, Value>, path: &Path, leaves: &mut Vec<Leaf>) {
    for (key, value) in object {
        let plural = PLURALS.iter().find(|(singular, _)| singular == key);
        match (plural, value) {
            (Some((_, plural)), Value::String(_)) => {
                let path = path.to(Step::Field(Arc::from(*plural)));
                leaves.push((path, Value::Array(vec![value.clone()])));
            }
            _ => descend(value, &path.to(Step::Field(Arc::from(key.as_str()))), leaves),
        }
    }
}

/// An id stands for itself by its last two segments.
fn element_name(element: &Value) -> Option<String> {
    let text = KEYS.iter().find_map(|key| element.get(key)?.as_str())?;
    match text.starts_with('/') {
        false => Some(text.to_owned()),
        true => {
            let segments: Vec<&str> = text.rsplit('/').take(2).collect();
            Some(segments.into_iter().rev().collect::<Vec<_>>().join("/"))
        }
    }
}

/// What is written in a resource on one Service's account.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Own {
    /// The resource.
    pub target: Target,
    /// Whether it is there at all without the Service.
    pub origin: Origin,
    /// Elements of lists that are there because of the Service.
    pub elements: BTreeSet<Path>,
    /// Fields that are there, or are as they are, because of the Service.
    pub leaves: Vec<Leaf>,
}

/// Whether a resource is there without the Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It is not.
    Made,
    /// It is.
    Found,
}

impl Own {
    /// The value of a field.
    pub fn get(&self, path: &Path) -> Option<&Value> {
        self.leaves.iter().find(|(p, _)| p == path).map(|(_, value)| value)
    }
}

/// Everything in a World that is not in another one, which is the same without the Service.
pub(super) fn own(with: &World, without: &World, stage: &Stage<'_>) -> Vec<Own> {
    let before: BTreeMap<Target, Resource> = resources(without).into_iter().collect();
    let mut found = Vec::new();
    for (target, resource) in resources(with) {
        let there = before.get(&target);
        // A subnet is never made, only assumed to be there.
        let assumed = there.is_none() && matches!(resource, Resource::Subnet(_));
        if there == Some(&resource) || assumed {
            continue;
        }
        let (resource, there) = match there {
            Some(there) => {
                let (resource, there) = lean::differing(&resource, there);
                (resource, leaves_of(&there, stage.wire))
            }
            None => (resource, Vec::new()),
        };
        found.extend(difference(target, leaves_of(&resource, stage.wire), &there));
    }
    for (target, body) in tables(with, stage).into_iter().chain(service(with, stage)) {
        found.extend(difference(target, flatten(&body), &[]));
    }
    found
}

/// All leaves of some resources of a World, whoever caused them.
pub(super) fn leaves(
    world: &World,
    stage: &Stage<'_>,
    of: &BTreeSet<&Target>,
) -> BTreeMap<Target, Vec<Leaf>> {
    let resources = resources(world).into_iter().filter(|(target, _)| of.contains(target));
    let resources = resources.map(|(target, resource)| (target, (stage.wire.resource)(&resource)));
    let tables = tables(world, stage).into_iter().chain(service(world, stage));
    resources.chain(tables).map(|(target, body)| (target, flatten(&body))).collect()
}

/// All leaves of a resource.
pub(super) fn leaves_of(resource: &Resource, wire: &Wire) -> Vec<Leaf> {
    flatten(&(wire.resource)(resource))
}

/// Whose part is looked for, and how bodies are written.
#[derive(Clone, Copy)]
pub(super) struct Stage<'a> {
    /// The Service.
    pub uid: &'a ServiceUid,
    /// Choices.
    pub policy: &'a Policy,
    /// How bodies are written.
    pub wire: &'a Wire,
}

/// What is in the first list of leaves and not in the second.
pub(super) fn difference(target: Target, leaves: Vec<Leaf>, there: &[Leaf]) -> Option<Own> {
    let old: BTreeMap<&Path, &Value> = there.iter().map(|(path, value)| (path, value)).collect();
    let old_elements: BTreeSet<Path> = there.iter().flat_map(|(p, _)| p.elements()).collect();
    let origin = if there.is_empty() { Origin::Made } else { Origin::Found };
    let mut found = Own { target, origin, elements: BTreeSet::new(), leaves: Vec::new() };
    for (path, value) in leaves {
        let value = match (old.get(&path), value) {
            (Some(old), value) if **old == value => continue,
            (Some(Value::Array(old)), Value::Array(new)) => {
                let added: Vec<Value> = new.into_iter().filter(|v| !old.contains(v)).collect();
                if added.is_empty() {
                    continue;
                }
                Value::Array(added)
            }
            (_, value) => value,
        };
        found.elements.extend(path.elements().filter(|e| !old_elements.contains(e)));
        found.leaves.push((path, value));
    }
    (!found.leaves.is_empty()).then_some(found)
}

/// Every resource of a World, in the order in which one comes to need the other.
fn resources(world: &World) -> Vec<(Target, Resource)> {
    let azure = &world.azure;
    let mut all = Vec::new();
    let ips = azure.public_ips.values().flat_map(Fact::each);
    all.extend(ips.map(|r| Resource::PublicIp(Arc::clone(r))));
    all.extend(azure.balancers.each().map(|r| Resource::LoadBalancer(Arc::clone(r))));
    if let Some(Some(group)) = azure.security_group.known() {
        all.push(Resource::SecurityGroup(Arc::clone(group)));
    }
    for subnet in azure.subnets.values().filter_map(|fact| fact.known()?.as_ref()) {
        all.push(Resource::Subnet(Arc::clone(subnet)));
    }
    let links = azure.private_links.values().flat_map(Fact::each);
    all.extend(links.map(|r| Resource::PrivateLinkService(Arc::clone(r))));
    let instances = azure.scale_set_vms.values();
    let members = [&azure.scale_sets, &azure.network_interfaces].into_iter().chain(instances);
    all.extend(members.flat_map(Fact::each).map(|r| Resource::PoolMember(Arc::clone(r))));
    all.into_iter().map(|r| (Target::Azure(r.id().clone()), r)).collect()
}

/// The Service's entries in the tables of a Service Gateway.
fn tables(world: &World, stage: &Stage<'_>) -> Vec<(Target, Value)> {
    let name = pod_names::of_service(stage.uid);
    let mut found = Vec::new();
    let services = world.azure.gateway_services.known();
    if let Some(service) = services.and_then(|all| all.get(&name)) {
        let table = pod_names::services_table(stage.policy);
        let id = model::ResourceId::new(format!("{table}/{name}"));
        found.push((Target::Azure(id), registration(service, stage)));
    }
    let mut locations = Vec::new();
    for (location, addresses) in
        world.azure.gateway_locations.known().into_iter().flat_map(|t| &**t)
    {
        let ours = addresses.iter().filter(|(_, services)| services.contains(&name));
        let only = Arc::new(NameSet::from_iter([Arc::clone(&name)]));
        let addresses: Vec<_> = ours.map(|(a, _)| (*a, Arc::clone(&only))).collect();
        if !addresses.is_empty() {
            let action = UpdateAction::PartialUpdate;
            locations.push(LocationUpdate { location: *location, action, addresses });
        }
    }
    if !locations.is_empty() {
        let update = LocationsUpdate { action: UpdateAction::PartialUpdate, locations };
        let id = pod_names::locations_table(stage.policy);
        found.push((Target::Azure(id), (stage.wire.locations)(&update)));
    }
    found
}

fn registration(service: &GatewayService, stage: &Stage<'_>) -> Value {
    let network = (!service.pools.is_empty()).then(|| stage.policy.network());
    (stage.wire.registration)(service, network.as_ref())
}

/// What we write into the Service itself.
fn service(world: &World, stage: &Stage<'_>) -> Option<(Target, Value)> {
    let service = world.kubernetes.services.get(stage.uid)?;
    let ours = |f: &&Arc<str>| [SERVICE_FINALIZER, GATEWAY_FINALIZER].contains(&&***f);
    let finalizers: Vec<&str> = service.finalizers.iter().filter(ours).map(AsRef::as_ref).collect();
    let ingress: Vec<&str> =
        service.ingress.iter().filter_map(|i| i.ip.as_deref().or(i.hostname.as_deref())).collect();
    let body = json!({
        "metadata": { "finalizers": finalizers },
        "status": { "loadBalancer": { "ingress": ingress } },
    });
    Some((Target::Service(service.name.clone()), body))
}
