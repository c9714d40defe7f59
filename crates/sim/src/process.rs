//! One process: a controller, what its watches have brought it, and what it believes of the lease.

use crate::edits::Edits;
use crate::fact;
pub use crate::fact::Reading;
use crate::interrupt::Interruption;
use crate::laboratory::{has_egress_finalizer, has_egress_label};
use crate::scene::{CLASS, Layout};
use control::{Controller, Event, KubernetesAnswer, Leadership, Options};
use kube_emulator::{EventType, Method, Request, Store, WatchEvent};
use model::world::Kind;
use model::{Pause, Policy};
use observe::KubernetesFact;
use observe::intern::Interner;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How long a lease is good without being renewed.
pub const LEASE_MS: u64 = 15_000;
/// How long its holder relies on it.
pub const RENEW_MS: u64 = 10_000;
/// How often it is renewed or asked for.
pub const RETRY_MS: u64 = 2_000;

/// How far one watch is.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Up to which revision it was told last.
    pub revision: u64,
    /// Up to which it was ever told: a list may be older, and takes back nothing that is newer.
    pub known: u64,
    /// Whether its list is complete.
    pub listed: Listed,
    /// Whether a delivery is on its way.
    pub queued: bool,
    /// An event from a while ago.
    pub old: Option<Arc<Value>>,
    /// It breaks with its next delivery, and this takes its place.
    pub interrupted: Option<Interruption>,
}

impl Stream {
    /// It was told up to this revision.
    pub fn reach(&mut self, revision: u64) {
        self.revision = revision;
        self.known = self.known.max(revision);
    }
}

/// Whether a watch has its list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listed {
    /// It has to list.
    #[default]
    No,
    /// It has.
    Yes,
}

/// What a process believes of the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// There is no lease: it always may write.
    Always,
    /// It has renewed it at this time.
    Since(u64),
    /// Somebody else has it.
    Not,
    /// The process has ended, and no other starts in its place.
    Ended,
}

/// One process.
#[derive(Debug)]
pub struct Process {
    /// The controller.
    pub controller: Controller,
    /// Which life of the process this is: answers to an earlier one reach nobody.
    pub epoch: u64,
    /// What it believes of the lease.
    pub hold: Hold,
    /// What has arrived since its last step.
    pub inbox: Vec<Event>,
    /// Whether a step is on its way.
    pub step_queued: bool,
    /// The earliest wake-up on its way.
    pub wake_at: Option<u64>,
    /// It stands still until then.
    pub paused_until: u64,
    /// Calls without an answer yet.
    pub outstanding: u64,
    /// Wake-ups in a row that led to nothing.
    pub idle_wakes: u32,
    /// Its part in the election, where there is one.
    pub election: lease::Election,
    /// What it was told that an operator has paused, as its Lease says.
    pub paused: Option<Pause>,
    /// How far its machine's clock is off, in milliseconds: read once when a process starts.
    pub skew_ms: i64,
    /// Its watches.
    pub streams: BTreeMap<Kind, Stream>,
    /// How it reads what they bring.
    pub reading: Reading,
    /// What owners have changed of Services, as they tell.
    pub(crate) edits: Edits,
    interner: Interner,
    policy: Policy,
    classes: BTreeSet<String>,
}

/// The plural name of a kind.
#[must_use]
pub fn plural(kind: Kind) -> &'static str {
    match kind {
        Kind::Namespaces => "namespaces",
        Kind::Nodes => "nodes",
        Kind::Services => "services",
        Kind::EndpointSlices => "endpointslices",
        Kind::Pods | Kind::GatedPods => "pods",
    }
}

fn kinds(layout: Layout) -> &'static [Kind] {
    match layout {
        Layout::Single | Layout::Nics | Layout::PerSet => {
            &[Kind::Nodes, Kind::Services, Kind::GatedPods]
        }
        Layout::Several => {
            &[Kind::Namespaces, Kind::Nodes, Kind::Services, Kind::EndpointSlices, Kind::GatedPods]
        }
        Layout::Containers => &Kind::CONTAINER,
    }
}

/// What a process is told of its cluster when it starts.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Its cloud config.
    pub policy: Policy,
    /// Which load balancers it has.
    pub layout: Layout,
    /// The UID of its Namespace `kube-system`.
    pub uid: Option<Arc<str>>,
    /// How it reads what it watches.
    pub reading: Reading,
}

impl Process {
    /// Starts one.
    #[must_use]
    pub fn start(cluster: &Cluster, number: usize, epoch: u64, hold: Hold) -> Self {
        let Cluster { policy, layout, uid, reading } = cluster.clone();
        let leadership = if hold == Hold::Always { Leadership::Held } else { Leadership::Lost };
        let instance = format!("{number}{epoch:07}");
        let classes = BTreeSet::from([CLASS.to_owned()]);
        let options =
            Options { instance, leadership, classes: classes.clone(), ..Options::default() };
        let options = Options { cluster_uid: uid, ..options };
        Self {
            controller: Controller::new(policy.clone(), options),
            epoch,
            hold,
            inbox: Vec::new(),
            step_queued: false,
            wake_at: None,
            paused_until: 0,
            outstanding: 0,
            idle_wakes: 0,
            streams: kinds(layout).iter().map(|kind| (*kind, Stream::default())).collect(),
            election: crate::election::election(number, epoch),
            paused: None,
            skew_ms: 0,
            reading,
            edits: Edits::default(),
            interner: Interner::default(),
            policy,
            classes,
        }
    }

    /// The time by its clock.
    #[must_use]
    pub fn clock_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_add_signed(self.skew_ms)
    }

    /// When it wants to be woken, by the stage's clock.
    #[must_use]
    pub fn next_wake_ms(&self) -> Option<u64> {
        let wish = self.controller.next_wake_ms()?;
        Some(wish.saturating_add_signed(-self.skew_ms))
    }

    /// Whether its shell sends writes now.
    #[must_use]
    pub fn may_write(&self, now_ms: u64) -> bool {
        match self.hold {
            Hold::Always => true,
            Hold::Since(renewed) => now_ms < renewed + RENEW_MS,
            Hold::Not | Hold::Ended => false,
        }
    }

    /// Whether all lists have come.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.streams.values().all(|stream| stream.listed == Listed::Yes)
    }

    /// Takes in a whole list; an older one than now if `back` says so. Pods are listed by their
    /// label; those that have only our finalizer are looked through once, at the start.
    pub fn list(&mut self, store: &mut Store, kind: Kind, back: Option<u64>, now_ms: u64) -> bool {
        let (objects, revision, stale) = listed(store, kind, back, now_ms);
        let (objects, strays): (Vec<_>, Vec<_>) =
            objects.into_iter().partition(|object| kind != Kind::Pods || has_egress_label(object));
        if kind == Kind::Services {
            self.edits.keep(&objects);
        }
        self.inbox.push(Event::Kubernetes(KubernetesFact::ListBegin(kind)));
        for object in objects {
            self.tell(kind, &object, false);
        }
        self.inbox.push(Event::Kubernetes(KubernetesFact::ListEnd(
            kind,
            Some(revision.to_string().into()),
        )));
        let first = self.streams.get(&kind).is_some_and(|stream| stream.listed == Listed::No);
        for object in strays.iter().filter(|object| first && has_egress_finalizer(object)) {
            self.tell(kind, object, false);
        }
        if let Some(stream) = self.streams.get_mut(&kind) {
            stream.listed = Listed::Yes;
            stream.reach(revision);
        }
        stale
    }

    /// Takes in one watch event.
    pub fn hear(&mut self, kind: Kind, event: &WatchEvent) {
        self.tell(kind, &event.object, event.event == EventType::Deleted);
        if let Some(stream) = self.streams.get_mut(&kind) {
            stream.reach(stream.revision.max(event.revision));
            if event.event != EventType::Deleted
                && (stream.old.is_none() || event.revision.is_multiple_of(5))
            {
                stream.old = Some(Arc::clone(&event.object));
            }
        }
    }

    /// The answer to a write has the object as it is by then, its owner's last edit included.
    pub fn note_answer(&mut self, answer: &KubernetesAnswer) {
        if let KubernetesAnswer::Reply { status: 200 | 201, body: Some(object), .. } = answer
            && object["kind"] == "Service"
        {
            self.edits.note(object, false);
        }
    }

    /// Takes in an object as it was or is.
    pub fn tell(&mut self, kind: Kind, object: &Value, gone: bool) {
        if kind == Kind::Services {
            self.edits.note(object, gone);
        }
        let (policy, classes) = (&self.policy, &self.classes);
        let object = (object, self.reading);
        let fact = fact::read_as(&mut self.interner, policy, classes, kind, object, gone);
        self.inbox.extend(fact.map(Event::Kubernetes));
    }
}

/// The objects of a kind at a revision; the newest where the old ones are forgotten.
fn listed(
    store: &mut Store,
    kind: Kind,
    back: Option<u64>,
    now_ms: u64,
) -> (Vec<Arc<Value>>, u64, bool) {
    let newest = store.revision();
    if let Some(back) = back {
        let revision = newest.saturating_sub(back).max(1);
        let group =
            if kind == Kind::EndpointSlices { "/apis/discovery.k8s.io/v1" } else { "/api/v1" };
        let path = format!(
            "{group}/{}?resourceVersion={revision}&resourceVersionMatch=Exact",
            plural(kind)
        );
        let response = store.handle(&Request::new(Method::Get, &path), now_ms);
        if let kube_emulator::Body::List { items, .. } = response.body {
            return (items, revision, true);
        }
    }
    (store.list(plural(kind), None), newest, false)
}
