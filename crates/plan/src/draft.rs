//! What planning builds up: a stance to every Service, changes, waits and findings.

use crate::ask::Intent;
use crate::ask::container::ContainerIntent;
use crate::own::parts::{Index, View};
use crate::own::{self, Base, Own, Owner, name, tags};
use crate::verdict::{Frozen, Refusal};
use model::azure::{LoadBalancer, PublicIp};
use model::drain::Drainer;
use model::kubernetes::Service;
use model::ledger::{LedgerWrite, SetTags};
use model::plan::{Change, KubernetesWrite};
use model::report::{Finding, Until, Wait};
use model::world::{ById, Need};
use model::{Family, Group, Policy, ResourceId, ServiceName, ServiceUid, World};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// What is wrong with something that Azure did not let the controller read; the value is why.
pub(crate) const UNREADABLE: &str =
    "cannot be read ({value}); the controller's identity must have the right to read it";

/// Tries after which a write that others wait for no longer holds them up.
const PATIENCE: u32 = 3;

/// What is to become of a Service.
#[derive(Clone, Debug)]
pub(crate) enum Stance {
    /// It gets what it asks.
    Wanted(Arc<Intent>),
    /// It gets the container load balancer that it asks.
    Container(Arc<ContainerIntent>),
    /// It keeps what it has: it is refused or set aside.
    Frozen(Frozen),
    /// It loses what it has.
    Leaving,
}

/// One Service while planning.
#[derive(Debug)]
pub(crate) struct Case<'w> {
    pub service: &'w Service,
    pub base: Arc<str>,
    /// What is to become of it.
    pub stance: Stance,
    pub waits: BTreeSet<Wait>,
    pub findings: Vec<Finding>,
    /// Why it is refused, beside what it asks itself.
    pub refusals: Vec<Refusal>,
    /// Name of its load balancer.
    pub balancer: Option<Arc<str>>,
    /// Addresses it has in Azure, in the order of its status.
    pub addresses: Vec<Arc<str>>,
    /// Whether anything of it is still in Azure, as far as planning saw.
    pub has_traces: bool,
}

/// A public IP while it is edited on account of several Services.
pub(crate) struct Edited {
    /// As it stands, if it does.
    pub before: Option<Arc<PublicIp>>,
    pub after: PublicIp,
    /// On whose account.
    pub causes: BTreeSet<ServiceUid>,
}

impl Case<'_> {
    /// The intent of a Service that gets what it asks.
    pub fn intent(&self) -> Option<&Intent> {
        match &self.stance {
            Stance::Wanted(intent) => Some(intent),
            Stance::Container(_) | Stance::Frozen(_) | Stance::Leaving => None,
        }
    }

    /// The same, to be held while the draft changes.
    pub fn shared_intent(&self) -> Option<Arc<Intent>> {
        match &self.stance {
            Stance::Wanted(intent) => Some(Arc::clone(intent)),
            Stance::Container(_) | Stance::Frozen(_) | Stance::Leaving => None,
        }
    }

    /// Refuses the Service: what it has stays.
    pub fn refuse(&mut self, refusal: Refusal) {
        if !self.findings.contains(refusal.finding()) {
            self.findings.push(refusal.finding().clone());
        }
        self.stance = Stance::Frozen(refusal.freezes());
        self.refusals.push(refusal);
    }
}

/// What was decided about the claims of Services.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// Services and families whose public IP is made again, and that one: without a frontend
    /// meanwhile.
    pub recreated: BTreeMap<(ServiceUid, Family), ResourceId>,
    /// Services of which nothing stands, and about which something has to be read first: they may
    /// be refused yet, so nothing makes room for them.
    pub undecided: BTreeSet<ServiceUid>,
    /// Services whose finalizers are written again before a public IP is made for them: another
    /// process may have taken them off.
    pub unconfirmed: BTreeSet<ServiceUid>,
    /// Services that keep what they have since before anything was planned around them.
    pub judged: BTreeSet<ServiceUid>,
    /// Services that this draft would interrupt although their owners want to confirm that first.
    pub interrupted: BTreeMap<ServiceUid, Refusal>,
    /// Addresses that Services which keep what they have show, or have open, and that are others':
    /// neither is kept.
    pub withheld: BTreeMap<ServiceUid, BTreeSet<IpAddr>>,
}

impl Claims {
    /// Whether the public IP of a family is made again: it leaves its load balancer first.
    pub fn is_recreated(&self, uid: &ServiceUid, family: Family) -> bool {
        !self.recreated.is_empty() && self.recreated.contains_key(&(uid.clone(), family))
    }

    /// Whether an address in a Service's status is another's.
    pub fn is_withheld(&self, uid: &ServiceUid, address: &str) -> bool {
        let withheld = self.withheld.get(uid);
        withheld.is_some_and(|all| address.parse().is_ok_and(|address| all.contains(&address)))
    }
}

/// What is to be written, and what has to be read for the next plan.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    /// Changes by target.
    pub changes: BTreeMap<ResourceId, Change>,
    pub writes: Vec<KubernetesWrite>,
    /// The next write of the ledger.
    pub ledger: Option<Arc<LedgerWrite>>,
    /// Tags that changes of public IPs set because annotations ask for them.
    pub tags: SetTags,
    pub needs: BTreeSet<Need>,
}

/// What the report says of the whole.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub findings: Vec<Finding>,
    /// What is wrong with egress Pods.
    pub pods: BTreeMap<ServiceName, Vec<Finding>>,
    /// What is in pools and belongs to nodes that are going or gone, once pools have been looked
    /// at.
    pub draining: Option<BTreeSet<Drainer>>,
    /// Addresses that slices of several namespaces list, with the namespace that has each.
    pub holders: BTreeMap<IpAddr, Arc<str>>,
}

/// Planning's work in progress.
#[derive(Debug)]
pub(crate) struct Draft<'w> {
    pub world: &'w World,
    pub policy: &'w Policy,
    /// Whose resources are.
    pub own: Own<'w>,
    /// Where the parts of load balancers are, and public IPs, where Services share load balancers.
    pub index: &'w Index,
    /// Services by UID.
    pub cases: BTreeMap<ServiceUid, Case<'w>>,
    /// UIDs by base name.
    by_base: BTreeMap<u128, ServiceUid>,
    /// UIDs by namespace and name.
    pub by_name: BTreeMap<ServiceName, ServiceUid>,
    /// Basic load balancers that have to go before anything is put on a Standard one.
    pub basics: BTreeSet<ResourceId>,
    /// Load balancers whose pools no node has joined through its NIC yet, each with what is being
    /// written, or has to be read, so that one does.
    pub unjoined: BTreeMap<ResourceId, Wait>,
    /// What was decided about the claims of Services.
    pub claims: Claims,
    /// What is to be written and read next.
    pub steps: Steps,
    /// What the report says of the whole.
    pub told: Told,
}

impl<'w> Draft<'w> {
    /// Knows no Service yet, but where the parts of load balancers are.
    pub fn new(world: &'w World, policy: &'w Policy, index: &'w Index) -> Self {
        Self { index, ..Self::bare(world, policy) }
    }

    /// Knows no Service yet.
    pub fn bare(world: &'w World, policy: &'w Policy) -> Self {
        Self {
            world,
            policy,
            own: Own::new(world, policy),
            index: const { &Index::new() },
            cases: BTreeMap::new(),
            by_base: BTreeMap::new(),
            by_name: BTreeMap::new(),
            basics: BTreeSet::new(),
            unjoined: BTreeMap::new(),
            claims: Claims::default(),
            steps: Steps::default(),
            told: Told { holders: world.holders.clone(), ..Told::default() },
        }
    }

    /// Adds a Service, to be found by its base name, too.
    pub fn add(&mut self, case: Case<'w>) {
        let uid = &case.service.uid;
        if let Some(base) = name::base_number(&case.base) {
            self.by_base.insert(base, uid.clone());
        }
        self.cases.insert(uid.clone(), case);
    }

    pub fn whose(&self, part: &str) -> Owner<'_> {
        match self.owner_of(part) {
            Some(uid) => Owner::Ours(uid),
            None if self.is_orphaned(part) => Owner::Orphaned,
            None => Owner::Foreign,
        }
    }

    /// The Service whose base name this part's name begins with.
    pub fn owner_of(&self, part: &str) -> Option<&ServiceUid> {
        self.owner_of_base(name::base_number(part)?)
    }

    /// The Service with this base name, by its number.
    pub fn owner_of_base(&self, base: u128) -> Option<&ServiceUid> {
        self.by_base.get(&base)
    }

    /// The Service that a tag names.
    pub fn by_user(&self, user: &str) -> Option<&ServiceUid> {
        self.by_name.get(&tags::service(user)?)
    }

    /// Whether a part named like a Service's may be taken away although no such Service is known.
    pub fn is_abandoned(&self, name: &str) -> bool {
        own::is_abandoned(self.world, name)
    }

    /// The same of a part whose name has the form of one of a Service's.
    pub fn is_orphaned(&self, part: &str) -> bool {
        Base::of(part).is_some_and(|base| self.is_abandoned(base.as_str()))
    }

    /// Whether a part is that of a Service that is gone and not noted in the ledger yet.
    pub fn is_departed(&self, part: &str) -> bool {
        let departed = &self.world.departed;
        !departed.is_empty() && Base::of(part).is_some_and(|base| departed.contains(base.as_str()))
    }

    /// Notes that a Service waits.
    pub fn wait(&mut self, uid: &ServiceUid, wait: Wait) {
        if let Some(case) = self.cases.get_mut(uid) {
            case.waits.insert(wait);
        }
    }

    /// Notes that a Service waits until something has been read.
    pub fn wait_to_read(&mut self, uid: &ServiceUid, need: Need) {
        self.steps.needs.insert(need.clone());
        self.wait(uid, Wait::Reading(need));
    }

    /// Notes that every Service waits.
    pub fn wait_all(&mut self, wait: &Wait) {
        for case in self.cases.values_mut() {
            case.waits.insert(wait.clone());
        }
    }

    pub fn refuse(&mut self, uid: &ServiceUid, refusal: Refusal) {
        if let Some(case) = self.cases.get_mut(uid) {
            case.refuse(refusal);
        }
    }

    /// Notes what was found of a Service.
    pub fn note(&mut self, uid: &ServiceUid, found: impl IntoIterator<Item = Finding>) {
        if let Some(case) = self.cases.get_mut(uid) {
            case.findings.extend(found);
        }
    }

    /// Whether what is waited for comes with the next answers, as far as can be seen.
    pub fn is_soon_over(&self, wait: &Wait) -> bool {
        match wait {
            Wait::Resource { id, until: Until::Ready | Until::Released } => {
                self.world.in_flight.get(id).is_none_or(|write| write.attempt <= 1)
            }
            Wait::Reading(Need::Subnet(_)) => true,
            _ => false,
        }
    }

    /// Whether the write of a resource fails again and again: no other one waits for it.
    pub fn is_failing(&self, id: &ResourceId) -> bool {
        self.world.in_flight.get(id).is_some_and(|write| write.attempt >= PATIENCE)
    }

    /// Load balancers, where they are known.
    pub fn balancers(&self) -> Option<&'w ById<LoadBalancer>> {
        self.world.azure.balancers.known()
    }

    /// One load balancer, where it is known to exist.
    pub fn balancer(&self, id: &ResourceId) -> Option<&'w Arc<LoadBalancer>> {
        self.balancers()?.get(id)
    }

    /// Every load balancer that is known.
    pub fn each_balancer(&self) -> impl Iterator<Item = &'w Arc<LoadBalancer>> + use<'w> {
        self.world.azure.balancers.each()
    }

    /// One load balancer with its parts, where it is known to exist.
    pub fn view(&self, id: &ResourceId) -> Option<View<'w>> {
        self.index.get(id)
    }

    /// Load balancers with their parts, where they are known.
    pub fn views(&self) -> impl Iterator<Item = View<'w>> + use<'w> {
        self.index.all()
    }

    /// Public IPs of a group, where they are known.
    pub fn public_ips(&self, group: &Group) -> Option<&'w ById<PublicIp>> {
        self.world.azure.public_ips.get(group)?.known()
    }

    /// One public IP, where it is known to exist.
    pub fn public_ip(&self, id: &ResourceId) -> Option<&'w Arc<PublicIp>> {
        let main = || self.public_ips(&self.policy.group)?.get(id);
        let found = self.index.public_ip(id).or_else(main);
        found.or_else(|| self.public_ips(&id.group()?)?.get(id))
    }

    /// Keys of tags that annotations have set on a public IP, as far as that is recorded.
    pub fn set_tags(&self, id: &ResourceId) -> Option<&'w BTreeSet<Arc<str>>> {
        self.world.kubernetes.ledger.known()?.tags.of(id)
    }

    /// Adds a change; its waits become those of the Services on whose account it is made.
    pub fn change(&mut self, change: Change) {
        for uid in &change.causes {
            if let Some(case) = self.cases.get_mut(uid) {
                case.waits.extend(change.waits.iter().cloned());
                let id = change.target.clone();
                if change.waits.is_empty() {
                    case.waits.insert(Wait::Writing(id));
                }
            }
        }
        self.steps.changes.insert(change.target.clone(), change);
    }
}
