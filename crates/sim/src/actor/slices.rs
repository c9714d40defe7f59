//! EndpointSlices as large clusters have them: a Service's endpoints in several slices, on their
//! way from one to another, in two at a time or in none, in slices of other managers.

use super::doubts::is_doubtful;
use super::{Company, living, merge};
use crate::entries::entries;
use crate::fault::Fault;
use crate::random::Random;
use crate::scene::{self, Layout, Scene, TENANT, objects};
use crate::stage::Stage;
use crate::tally::count;
use crate::truth;
use kube_emulator::{ObjectRef, Part, Patch};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Services whose slices are filled here.
const PARTED: u64 = 2;
/// Slices of each.
const SLICES: u64 = 3;
/// Addresses, for all Services together: a Pod may be behind both.
const ADDRESSES: u64 = 6;
/// Nodes that they are on, whether there now or not.
const NODES: u64 = 4;

/// The port on the Pods.
const USUAL: u16 = 8080;
/// The Service of which one target port is a name, on container load balancers.
const NAMED: u64 = 1;
/// Its other one.
const PLAIN: u16 = 8_081;

/// A Service's number and a slice's.
type Place = (u64, u64);

/// The second half of a move.
#[derive(Clone, Debug)]
struct Later {
    at_ms: u64,
    place: Place,
    address: u64,
    endpoint: Option<Value>,
}

/// What slices shall hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    slices: BTreeMap<Place, BTreeMap<u64, Value>>,
    /// The numbers of the port on the Pods of a slice, where they are not the usual.
    numbers: BTreeMap<Place, u16>,
    later: Vec<Later>,
}

impl Parts {
    fn number(&self, place: Place) -> u16 {
        self.numbers.get(&place).copied().unwrap_or(USUAL)
    }

    fn put(&mut self, place: Place, address: u64, endpoint: Option<Value>) {
        let slice = self.slices.entry(place).or_default();
        match endpoint {
            Some(endpoint) => slice.insert(address, endpoint),
            None => slice.remove(&address),
        };
    }

    /// Where an address of a Service is, and what stands there.
    fn find(&self, service: u64, address: u64) -> Option<(Place, Value)> {
        let mut own = self.slices.iter().filter(|((of, _), _)| *of == service);
        own.find_map(|(place, slice)| Some((*place, slice.get(&address)?.clone())))
    }
}

fn service_name(number: u64) -> String {
    format!("parted-{number}")
}

fn slice_name((service, number): Place) -> String {
    format!("parted-{service}-part-{number}")
}

/// A Service without selector: nobody else fills its slices.
fn service(number: u64, layout: Layout) -> Value {
    let mut service = objects::service("default", 10 + number);
    service["metadata"]["name"] = json!(service_name(number));
    let local = layout == Layout::Several;
    let spec = json!({"selector": null,
        "externalTrafficPolicy": if local { json!("Local") } else { Value::Null },
        "healthCheckNodePort": if local { json!(32_100 + number) } else { Value::Null }});
    merge(&mut service["spec"], &spec);
    if layout == Layout::Containers && number == NAMED {
        let ports = &mut service["spec"]["ports"];
        ports[0]["targetPort"] = json!("http");
        let plain = json!({"name": "plain", "port": 1_000 + number, "targetPort": PLAIN,
            "protocol": "TCP", "nodePort": 31_900 + number});
        ports.as_array_mut().into_iter().for_each(|ports| ports.push(plain.clone()));
    }
    service
}

/// What is known of an endpoint. What is not said counts as ready.
fn conditions(address: u64, random: &mut Random) -> Value {
    match random.below(6) {
        0 => json!({}),
        1 => json!({"ready": false, "serving": false, "terminating": address % 2 == 1}),
        2 => json!({"ready": false, "serving": true, "terminating": true}),
        3 => json!({"ready": false}),
        _ => json!({"ready": true, "serving": true, "terminating": false}),
    }
}

/// An address is one Pod's: slices that tell of it agree on its node. The last one is that of a Pod
/// of another namespace.
fn endpoint(address: u64, scene: &Scene, random: &mut Random) -> Value {
    let node = u32::try_from(address % NODES).unwrap_or(0);
    let namespace = if address == ADDRESSES - 1 { TENANT } else { "default" };
    json!({"addresses": [format!("10.244.1.{}", 10 + address)],
        "nodeName": scene.node(node)["metadata"]["name"],
        "targetRef": {"kind": "Pod", "namespace": namespace, "name": format!("part-{address}")},
        "conditions": conditions(address, random)})
}

fn slice(place: Place, owner: &Value, endpoints: &[Value], number: u16) -> Value {
    let service = service_name(place.0);
    // The last slice is of another manager, which sets no labels. The middle slice of the second
    // Service is written by hand: its label alone says whose it is.
    let owners = match place {
        (1, 1) => json!([]),
        _ => json!([{"apiVersion": "v1", "kind": "Service", "name": service,
            "uid": owner, "controller": true, "blockOwnerDeletion": true}]),
    };
    let labels = match place.1 {
        2 => json!({}),
        _ => json!({"kubernetes.io/service-name": service,
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}),
    };
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": slice_name(place), "namespace": "default", "labels": labels,
            "ownerReferences": owners},
        "addressType": "IPv4", "endpoints": endpoints,
        "ports": [{"name": "http", "port": number, "protocol": "TCP"},
            {"name": "plain", "port": PLAIN, "protocol": "TCP"}]})
}

impl Company {
    pub(super) fn part(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
        count(&mut stage.tally.faults, Fault::Slices.name());
        let number = random.below(PARTED);
        let place = ("default".to_owned(), service_name(number));
        if !self.services.contains_key(&place) {
            self.services.insert(place, service(number, self.scene.layout));
            self.tend(stage);
        } else if random.permille(60) {
            let now = stage.now_ms;
            let object = ObjectRef::new("services", "default", &place.1);
            let _ = stage.kubernetes.delete(object, now);
            stage.trace.say(now, || format!("{} is deleted, and made again", place.1));
            self.tend(stage);
            return "make a Service of several slices again";
        }
        let what = self.rearrange(number, random, stage.now_ms);
        stage.trace.say(stage.now_ms, || format!("{}: {what}", service_name(number)));
        self.tend_slices(stage);
        what
    }

    fn rearrange(&mut self, service: u64, random: &mut Random, now_ms: u64) -> &'static str {
        let address = random.below(ADDRESSES);
        let to = (service, random.below(SLICES));
        let at_ms = now_ms + *random.pick(&[50, 1_000, 20_000, 150_000]);
        let fresh = endpoint(address, &self.scene, random);
        let Some((from, standing)) = self.parts.find(service, address) else {
            self.parts.put(to, address, Some(fresh));
            return "add an endpoint to a slice";
        };
        let (leaves, comes) = (None, Some(standing.clone()));
        let follow = |place, endpoint| Later { at_ms, place, address, endpoint };
        match random.below(7) {
            0 | 1 if from != to => {
                self.parts.put(to, address, comes);
                self.parts.later.push(follow(from, leaves));
                "move an endpoint to another slice, where it is seen first"
            }
            2 if from != to => {
                self.parts.put(from, address, leaves);
                self.parts.later.push(follow(to, comes));
                "move an endpoint to another slice, where it is seen last"
            }
            3 if from != to => {
                self.parts.put(to, address, comes);
                "list an endpoint in two slices"
            }
            4 => {
                for number in 0..SLICES {
                    self.parts.put((service, number), address, leaves.clone());
                }
                "remove an endpoint"
            }
            5 => {
                let all: Vec<(u64, Value)> = (0..SLICES)
                    .filter_map(|number| self.parts.slices.remove(&(service, number)))
                    .flatten()
                    .collect();
                let whole = random.permille(500);
                for (address, endpoint) in all {
                    let number = if whole { to.1 } else { address % SLICES };
                    self.parts.put((service, number), address, Some(endpoint));
                }
                if whole { "merge slices" } else { "split slices" }
            }
            _ if self.scene.layout == Layout::Containers
                && service == NAMED
                && random.permille(500) =>
            {
                let number = *random.pick(&[USUAL, 9_090]);
                let whole = random.permille(500);
                let places = (0..SLICES).map(|slice| (service, slice));
                let touched = places.filter(|place| whole || *place == from);
                self.parts.numbers.extend(touched.map(|place| (place, number)));
                "give Pods of a slice, or of all, another number for the port"
            }
            _ => {
                let mut changed = standing;
                changed["conditions"] = fresh["conditions"].clone();
                self.parts.put(from, address, Some(changed));
                "change an endpoint's conditions"
            }
        }
    }

    /// Slices become what they shall be.
    pub(super) fn tend_slices(&mut self, stage: &mut Stage) {
        let now = stage.now_ms;
        let (due, later) = std::mem::take(&mut self.parts.later)
            .into_iter()
            .partition::<Vec<_>, _>(|later| later.at_ms <= now);
        self.parts.later = later;
        for Later { place, address, endpoint, .. } in due {
            self.parts.put(place, address, endpoint);
        }
        for number in 0..PARTED {
            let Some(service) = living(stage, "services", "default", &service_name(number)) else {
                continue;
            };
            for place in (0..SLICES).map(|slice| (number, slice)) {
                let held = self.parts.slices.get(&place);
                let endpoints: Vec<Value> =
                    held.into_iter().flat_map(|s| s.values()).cloned().collect();
                let number = self.parts.number(place);
                write(stage, place, &service["metadata"]["uid"], (&endpoints, number));
            }
        }
    }

    /// Whether every move of an endpoint has come to its end.
    pub(super) fn is_parted(&self) -> bool {
        self.parts.later.is_empty()
    }
}

/// Writes a slice, unless it is so.
fn write(stage: &mut Stage, place: Place, owner: &Value, (endpoints, number): (&[Value], u16)) {
    let now = stage.now_ms;
    let name = slice_name(place);
    let wanted = slice(place, owner, endpoints, number);
    let outcome = match living(stage, "endpointslices", "default", &name) {
        Some(standing)
            if standing["endpoints"] == wanted["endpoints"]
                && standing["ports"] == wanted["ports"] =>
        {
            return;
        }
        Some(_) => {
            let patch = Patch::Merge(json!({"endpoints": endpoints, "ports": wanted["ports"]}));
            let object = ObjectRef::new("endpointslices", "default", &name);
            stage.kubernetes.patch(object, Part::Main, &patch, now)
        }
        None if endpoints.is_empty() => return,
        None => stage.kubernetes.create(wanted, now),
    };
    stage.trace.say(now, || format!("slice {name}: {}", json!([number, endpoints])));
    if let Err(error) = outcome {
        stage.fail("actors", format!("the actors' own slice is refused: {}", error.message()));
    }
    stage.follow();
}

impl Stage {
    /// Addresses of Services that the Service Gateway lacks or has too many of.
    #[must_use]
    pub fn astray(&self) -> Vec<String> {
        if self.scene.layout != Layout::Containers {
            return Vec::new();
        }
        let wanted = self.addresses_wanted();
        let mut held: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let tables = self.azure.gateway(&scene::gateway()).unwrap_or_default();
        for (_, address, name) in entries(&tables) {
            held.entry(name).or_default().insert(address);
        }
        let none = BTreeSet::new();
        let wrong = wanted.iter().filter_map(|((uid, name), wanted)| {
            let held = held.get(uid).unwrap_or(&none);
            (held != wanted).then(|| format!("{name} is to have {wanted:?} and has {held:?}"))
        });
        wrong.collect()
    }

    /// What slices say is ready, or where nothing is, going and still serving, on a node that is
    /// known, by the UID and name of their Service.
    fn addresses_wanted(&self) -> BTreeMap<(String, String), BTreeSet<String>> {
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        // Whether they are going.
        let nodes: BTreeMap<String, bool> = self
            .kubernetes
            .list("nodes", None)
            .iter()
            .filter(|node| node["status"]["addresses"].to_string().contains("InternalIP"))
            .map(|node| (text(&node["metadata"]["name"]), truth::is_going(node)))
            .collect();
        let mut wanted: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
        let mut names = BTreeMap::new();
        for service in self.kubernetes.list("services", None) {
            let meta = &service["metadata"];
            let name = format!("{}/{}", text(&meta["namespace"]), text(&meta["name"]));
            // One that may be refused is judged by what was promised alone.
            let apart = meta["namespace"] == TENANT || is_doubtful(&name);
            if service["spec"]["type"] == "LoadBalancer" && !apart {
                let key = (text(&meta["uid"]).to_lowercase(), text(&meta["name"]));
                let whose = (text(&meta["namespace"]), key.0.clone());
                names.insert(whose, key.1.clone());
                wanted.insert(key, BTreeSet::new());
            }
        }
        // Those that are ready on nodes that stay; on nodes that go; those that go themselves.
        let mut ranks: BTreeMap<_, [BTreeSet<String>; 3]> = BTreeMap::new();
        for slice in self.kubernetes.list("endpointslices", None) {
            let uid = self.truth.owner_of_slice(&slice).to_lowercase();
            // A slice is one of its own namespace's Service.
            let whose = (text(&slice["metadata"]["namespace"]), uid.clone());
            let Some(name) = names.get(&whose) else { continue };
            let key = (uid, name.clone());
            for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
                let conditions = &endpoint["conditions"];
                if truth::is_foreign(&slice, endpoint) {
                    continue;
                }
                let lingers = conditions["serving"] == true && conditions["terminating"] == true;
                let Some(going) = nodes.get(&text(&endpoint["nodeName"])) else { continue };
                let rank = match (conditions["ready"] != json!(false), lingers) {
                    (true, _) => usize::from(*going),
                    (false, true) => 2,
                    (false, false) => continue,
                };
                let addresses = endpoint["addresses"].as_array().into_iter().flatten().map(text);
                ranks.entry(key.clone()).or_default()[rank].extend(addresses);
            }
        }
        for (key, ranks) in ranks {
            let best = ranks.into_iter().find(|rank| !rank.is_empty()).unwrap_or_default();
            wanted.insert(key, best);
        }
        wanted
    }
}
