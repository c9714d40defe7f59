//! Who makes things happen. Each actor has a generator of its own, and what it does depends on
//! that and on what it wants itself, never on how far the controller is: the same inputs come with
//! faults and without.

pub(crate) mod between;
pub mod class;
pub(crate) mod crew;
pub(crate) mod crowd;
pub mod doubts;
pub mod families;
pub mod gate;
pub mod hostile;
mod inner;
mod ipv6_alone;
pub mod links;
mod manifest;
mod mishaps;
pub mod movers;
pub mod neighbour;
pub mod node;
mod odd;
pub mod operator;
mod pages;
pub mod pod;
mod rolling;
pub mod sharers;
pub mod slices;
mod spoil;
mod titles;
pub mod user;
pub mod values;
pub mod vandal;
pub mod variety;
pub mod wishes;

use crate::fault::Fault;
use crate::random::Random;
use crate::scene::{Layout, Scene};
use crate::stage::{START_MS, Stage};
use crate::swarm::Swarm;
use crate::tally::count;
use kube_emulator::ObjectRef;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

named! {
    /// Who makes things happen.
    pub enum Actor;
    /// Every actor.
    pub const ACTORS;
    User, "user", "owners of Services";
    Node, "node", "nodes come, go and change";
    Pod, "pod", "Pods come, go and move";
    Hand, "hand", "somebody edits what is ours in Azure";
    Neighbour, "neighbour", "somebody edits what is not ours beside it";
    Config, "config", "the controller is restarted with another cloud config";
    Outage, "outage", "the API server goes away for minutes";
    Killer, "killer", "the process is killed at any time";
    Stripper, "stripper", "somebody takes finalizers off";
    Vandal, "vandal", "somebody deletes what of ours is in use";
    Slices, "slices", "endpoints wander between slices";
    Family, "family", "owners of Services of two families";
    Link, "link", "owners of Services behind Private Link Services";
    Wish, "wish", "owners of Services with any annotation";
    Gate, "gate", "Pods with our readiness gate";
    Class, "class", "owners of Services with a load balancer class";
    Hostile, "hostile", "a tenant who attacks others";
}

/// One move that will be made.
#[derive(Clone, Debug)]
pub struct Planned {
    /// When.
    pub at_ms: u64,
    /// By whom.
    pub actor: Actor,
    /// Which of all moves it is, in the order of time, from 1.
    pub number: u64,
    random: Random,
}

/// The actors and what they want.
#[derive(Clone, Debug)]
pub struct Company {
    pub(crate) scene: Scene,
    /// Services that shall be, by namespace and name.
    pub(crate) services: BTreeMap<(String, String), Value>,
    /// Nodes that shall be.
    pub(crate) nodes: BTreeMap<u32, Value>,
    /// Pods that shall be, by name.
    pub(crate) pods: BTreeMap<String, Value>,
    /// Namespaces that shall be.
    pub(crate) namespaces: BTreeSet<String>,
    /// Edits of others that still have to be made.
    pub(crate) theirs: BTreeMap<String, Option<Value>>,
    pub(crate) slots: u64,
    /// What slices shall hold that nobody else fills.
    pub(crate) parts: slices::Parts,
    /// What owners who use every annotation ask for, by their number.
    pub(crate) wishes: BTreeMap<u64, wishes::Wish>,
    /// Slices of the hostile tenant.
    pub(crate) strange: BTreeSet<String>,
    /// What the cloud config was last changed in.
    pub(crate) changes: Value,
    /// Whether the operator has moved Services to the other kind of load balancers.
    pub(crate) moved: bool,
    /// Whether a finalizer was taken off by hand.
    pub stripped: bool,
}

impl Company {
    /// Everybody before the first move.
    #[must_use]
    pub fn new(swarm: &Swarm) -> Self {
        let scene = swarm.scene.clone();
        let nodes = (0..scene.nodes).map(|index| (index, scene.node(index))).collect();
        Self {
            scene,
            services: BTreeMap::new(),
            nodes,
            pods: BTreeMap::new(),
            namespaces: BTreeSet::from(["team".to_owned()]),
            theirs: BTreeMap::new(),
            slots: swarm.services,
            parts: slices::Parts::default(),
            wishes: BTreeMap::new(),
            strange: BTreeSet::new(),
            changes: json!({}),
            moved: false,
            stripped: false,
        }
    }

    /// All moves of a run, in the order of time.
    #[must_use]
    pub fn plan(swarm: &Swarm, random: &Random) -> Vec<Planned> {
        let pods = matches!(swarm.scene.layout, Layout::Containers | Layout::Several);
        let standard = families::suits(swarm.scene.layout);
        // Azure takes no Private Link Service before pools of addresses, nor beside an IPv6
        // frontend.
        let links = swarm.scene.layout == Layout::Nics && !swarm.has(Fault::Families);
        let share = |fault: Fault, moves: u64| if swarm.has(fault) { moves } else { 0 };
        let mut planned = Vec::new();
        for &actor in ACTORS {
            let mut own = random.fork(actor.name());
            let moves = match actor {
                Actor::User => swarm.moves,
                Actor::Node => swarm.moves / 4,
                Actor::Pod => {
                    if pods {
                        swarm.moves
                    } else {
                        0
                    }
                }
                Actor::Hand => share(Fault::HandEdits, 1 + swarm.moves / 6),
                Actor::Neighbour => share(Fault::TheirEdits, 1 + swarm.moves / 4),
                Actor::Config => share(Fault::ConfigChanges, 1 + own.below(2)),
                Actor::Outage => share(Fault::ApiDown, 1 + own.below(2)),
                Actor::Killer => share(Fault::CrashIdle, 1 + own.below(4)),
                Actor::Stripper => share(Fault::FinalizerStripped, 1),
                Actor::Vandal => share(Fault::Vandal, 1 + swarm.moves / 6),
                Actor::Slices if pods => share(Fault::Slices, 2 + swarm.moves / 2),
                Actor::Family if standard => share(Fault::Families, 2 + swarm.moves / 4),
                Actor::Link if links => share(Fault::Links, 2 + swarm.moves / 4),
                Actor::Wish => share(Fault::Annotations, 3 + swarm.moves / 2),
                Actor::Gate => share(Fault::Gates, 2 + swarm.moves / 3),
                Actor::Class => share(Fault::Classes, 2 + swarm.moves / 4),
                Actor::Hostile => share(Fault::Hostile, 2 + swarm.moves / 3),
                Actor::Slices | Actor::Family | Actor::Link => 0,
            };
            for number in 0..moves {
                // The first Services come early, or little would happen.
                let early = actor == Actor::User && number * 4 < moves;
                let span = if early { swarm.horizon_ms / 8 } else { swarm.horizon_ms };
                let at_ms = START_MS + own.below(span.max(1));
                let random = own.fork(&number.to_string());
                planned.push(Planned { at_ms, actor, number: 0, random });
            }
        }
        planned.sort_by_key(|move_| move_.at_ms);
        for (number, move_) in (1..).zip(&mut planned) {
            move_.number = number;
        }
        if swarm.is_calm() {
            // One thing at a time, so that what it costs can be told.
            for (number, move_) in (1..).zip(&mut planned) {
                move_.at_ms = START_MS + number * 90_000;
            }
        }
        planned
    }

    /// Makes one move.
    pub fn make(&mut self, planned: &Planned, stage: &mut Stage) {
        let mut random = planned.random.clone();
        self.tend(stage);
        let what = match planned.actor {
            Actor::User => self.user(&mut random, stage),
            Actor::Node => self.node(&mut random, stage),
            Actor::Pod => self.pod(&mut random, stage),
            Actor::Hand => self.hand(&mut random, stage),
            Actor::Neighbour => self.neighbour(&mut random, stage),
            Actor::Config => self.config(&mut random, stage),
            Actor::Outage => self.outage(&mut random, stage),
            Actor::Killer => self.kill(&mut random, stage),
            Actor::Stripper => self.strip(&mut random, stage),
            Actor::Vandal => self.vandal(&mut random, stage),
            Actor::Slices => self.part(&mut random, stage),
            Actor::Family => self.family(&mut random, stage),
            Actor::Link => self.link(&mut random, stage),
            Actor::Wish => self.wish(&mut random, stage),
            Actor::Gate => self.gate(&mut random, stage),
            Actor::Class => self.class(&mut random, stage),
            Actor::Hostile => self.hostile(&mut random, stage),
        };
        count(&mut stage.tally.moves, what);
        stage.tally.steps += 1;
        stage.follow();
    }

    /// Brings about what is wanted and could not be done before: a name was still taken, a
    /// resource busy.
    pub fn tend(&mut self, stage: &mut Stage) {
        let now_ms = stage.now_ms;
        for name in &self.namespaces {
            let object = ObjectRef::new("namespaces", "", name);
            if stage.kubernetes.get(object).is_err() {
                let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
                    "metadata": {"name": name, "labels": {"of": name, "kind": "shop"}}});
                let _ = stage.kubernetes.create(namespace, now_ms);
            }
        }
        for ((namespace, name), manifest) in &self.services {
            if stage.kubernetes.get(ObjectRef::new("services", namespace, name)).is_err() {
                let made = stage.kubernetes.create(manifest.clone(), now_ms);
                stage.trace.say(now_ms, || {
                    let outcome = if made.is_ok() { "made" } else { "cannot be made yet" };
                    let asks = format_args!(
                        "{} {}",
                        manifest["metadata"]["annotations"], manifest["spec"]
                    );
                    format!("user: Service {namespace}/{name} is {outcome}: {asks}")
                });
            }
        }
        self.release_others(stage);
        self.tend_nodes(stage);
        self.tend_pods(stage);
        self.tend_theirs(stage);
        self.tend_slices(stage);
        stage.follow();
    }

    /// Whether everything that is wanted is there.
    #[must_use]
    pub fn is_content(&self, stage: &Stage) -> bool {
        let lives = |plural: &str, namespace: &str, name: &str| {
            let object = stage.kubernetes.get(ObjectRef::new(plural, namespace, name));
            object.is_ok_and(|o| o["metadata"]["deletionTimestamp"].is_null())
        };
        // What a Service left that went without its finalizer may keep a later one in deletion.
        let may_wait =
            |namespace: &str, name: &str| stage.is_name_stripped(&format!("{namespace}/{name}"));
        let mut services = self.services.keys();
        services.all(|(ns, name)| lives("services", ns, name) || may_wait(ns, name))
            && self.pods.keys().all(|name| lives("pods", "default", name))
            && self.theirs.is_empty()
            && self.is_parted()
    }
}

/// An object that lives, if it does.
pub(crate) fn living(
    stage: &Stage,
    plural: &str,
    namespace: &str,
    name: &str,
) -> Option<Arc<Value>> {
    let object = stage.kubernetes.get(ObjectRef::new(plural, namespace, name)).ok()?;
    object["metadata"]["deletionTimestamp"].is_null().then_some(object)
}

/// Merges a patch into a manifest, as the API server would.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in fields {
        if value.is_null() {
            if let Some(object) = target.as_object_mut() {
                object.shift_remove(key);
            }
        } else {
            merge(&mut target[key.as_str()], value);
        }
    }
}
