//! What carrying out plans would come to, step by step, without Azure.
//!
//! A plan holds what can be written now and what still waits. To show the whole way, the plan's
//! ready changes are applied to a copy of the World, and planning goes on from there until nothing
//! is left. What only Azure can know (an address it will choose) gets a placeholder.

mod assumption;
mod joined;
mod objects;
pub mod transition;

use crate::reach::{Reached, reached};
use assumption::assume;
use joined::joined;
use model::azure::{
    AdminState, Frontend, FrontendAddress, LoadBalancer, PoolAddress, Provisioning,
};
use model::ledger::{Extent, Ledger, LedgerWrite};
use model::plan::{Action, Change, KubernetesWrite, Resource};
use model::world::{Azure, Fact};
use model::{Etag, Family, Policy, Report, ResourceId, World};
use plan::ask::hold::resumed;
use plan::plan;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Rounds after which a plan that never ends is reported instead of followed.
const ROUNDS: usize = 100;

/// The whole way from the World as it is to the World as it is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    /// Azure changes, one a resource, in the order of their last write.
    pub changes: Vec<Change>,
    /// Kubernetes writes, in order.
    pub writes: Vec<KubernetesWrite>,
    /// The report of the first plan: what waits and what is wrong now.
    pub report: Report,
    /// The report of the last plan: what is still wrong or unknown then.
    pub last: Report,
    /// Calls it takes.
    pub calls: usize,
    /// Each call, in order.
    pub steps: Vec<Step>,
}

/// One Azure call on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Calls of one round are sent side by side; each round waits for the one before.
    pub round: usize,
    /// What is written.
    pub change: Change,
    /// Who was reached before this call and is not after it.
    pub cut: Reached,
    /// Who is reached again.
    pub restored: Reached,
}

impl Forecast {
    /// Whether nothing would be written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.writes.is_empty()
    }
}

/// Whether an address stands for one that Azure will choose.
#[must_use]
pub fn is_placeholder(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(a) => a.octets()[0] == 0,
        IpAddr::V6(a) => a.segments()[..6].iter().all(|s| *s == 0),
    }
}

/// Follows plans to their end.
#[must_use]
pub fn forecast(world: &World, policy: &Policy) -> Forecast {
    follow(world, policy).0
}

/// The same, and the World that it leads to.
pub fn follow(world: &World, policy: &Policy) -> (Forecast, World) {
    let mut path = Path::from(world.clone(), policy);
    let mut merged: BTreeMap<ResourceId, (usize, Change)> = BTreeMap::new();
    let mut forecast = Forecast::default();
    let mut open = reached(world);
    let mut cut = Reached::new();
    for round in 0..ROUNDS {
        let (plan, report) = plan(&path.world, policy);
        if round == 0 {
            forecast.report.clone_from(&report);
        }
        forecast.last = report;
        let changes = plan.changes.iter().map(AsRef::as_ref);
        let ready: Vec<&Change> = changes.filter(|c| c.is_ready()).collect();
        let alone = ready.iter().all(|c| c.waits.is_empty());
        let mut moved = false;
        for change in &ready {
            // What gathers goes once nothing else can join it.
            if !alone && !change.waits.is_empty() {
                continue;
            }
            path.apply(change);
            moved = true;
            forecast.calls += 1;
            let now = if is_unused(change) { open.clone() } else { reached(&path.world) };
            let lost: Reached = open.difference(&now).cloned().collect();
            let restored: Reached = cut.intersection(&now).cloned().collect();
            cut.extend(lost.iter().cloned());
            cut.retain(|who| !restored.contains(who));
            open.retain(|who| now.contains(who));
            open.extend(restored.iter().cloned());
            let step = Change::clone(change);
            forecast.steps.push(Step { round, change: step, cut: lost, restored });
            let order = forecast.calls;
            merge(&mut merged, change, order);
        }
        for write in &plan.writes {
            path.write(write);
            moved = true;
        }
        moved |= path.record(plan.ledger.as_deref(), &forecast.last);
        forecast.writes.extend(plan.writes);
        if !moved && !path.wait() {
            break;
        }
    }
    let mut changes: Vec<(usize, Change)> = merged.into_values().collect();
    changes.retain(|(_, change)| !is_void(change));
    changes.sort_by_key(|(order, _)| *order);
    forecast.changes = changes.into_iter().map(|(_, change)| change).collect();
    (forecast, path.world)
}

/// The forecast of every Service on hold (paused, or protected from deletion), as if all owners
/// removed the annotations: what Ballast would write after everything that it can write now. `end`
/// is the World that [`follow`] leads to.
#[must_use]
pub fn held_back(end: &World, policy: &Policy) -> Forecast {
    let services = end.kubernetes.services.iter();
    let resumed: Vec<_> = services
        .filter_map(|(uid, service)| Some((uid.clone(), Arc::new(resumed(service)?))))
        .collect();
    if resumed.is_empty() {
        return Forecast::default();
    }
    let mut world = end.clone();
    world.kubernetes.services.extend(resumed);
    forecast(&world, policy)
}

/// The World that plans lead to, and the last report. What has not been read is taken as empty.
pub fn settle(world: World, policy: &Policy) -> (World, Report) {
    let mut path = Path::from(world, policy);
    let mut last = Report::default();
    for _ in 0..ROUNDS {
        let (plan, report) = plan(&path.world, policy);
        let mut moved = !report.needs.is_empty();
        for need in &report.needs {
            assume(&mut path.world.azure, policy, need);
        }
        last = report;
        let alone = plan.changes.iter().filter(|c| c.is_ready()).all(|c| c.waits.is_empty());
        for change in plan.changes.iter().filter(|c| c.is_ready()) {
            if alone || change.waits.is_empty() {
                path.apply(change);
                moved = true;
            }
        }
        for write in &plan.writes {
            path.write(write);
            moved = true;
        }
        moved |= path.record(plan.ledger.as_deref(), &last);
        if !moved && !path.elapse() {
            break;
        }
    }
    (path.world, last)
}

/// The number of the last placeholder address in a World that an earlier forecast led to; 0 where
/// the World has none.
fn last_placeholder(world: &World) -> u16 {
    let azure = &world.azure;
    let ips = azure.public_ips.values().flat_map(Fact::each);
    let frontends = azure.balancers.each().flat_map(|b| &b.frontends);
    let frontends = frontends.filter_map(|f| f.private());
    let numbers = ips.filter_map(|ip| ip.address).chain(frontends).filter(|a| is_placeholder(*a));
    let numbers = numbers.map(|address| match address {
        IpAddr::V4(a) => u16::from_be_bytes([a.octets()[2], a.octets()[3]]),
        IpAddr::V6(a) => a.segments()[7],
    });
    numbers.max().unwrap_or(0)
}

/// Whether a change makes what nothing leads through yet: who is reached stays as it is.
fn is_unused(change: &Change) -> bool {
    matches!(&change.action, Action::Put { before: None, after: Resource::PublicIp(_) })
}

/// Several writes of one resource show as one: from its first state to its last. So do calls on one
/// table.
fn merge(merged: &mut BTreeMap<ResourceId, (usize, Change)>, change: &Change, order: usize) {
    let Some((at, earlier)) = merged.get_mut(&change.target) else {
        merged.insert(change.target.clone(), (order, change.clone()));
        return;
    };
    *at = order;
    earlier.causes.extend(change.causes.iter().cloned());
    if let Some(both) = joined(&earlier.action, &change.action) {
        earlier.action = both;
        return;
    }
    let first = match &earlier.action {
        Action::Put { before, .. } => before.clone(),
        Action::Delete { before } => Some(before.clone()),
        _ => None,
    };
    earlier.action = match (&change.action, first) {
        (Action::Put { after, .. }, before) => Action::Put { before, after: after.clone() },
        (Action::Delete { .. }, Some(before)) => Action::Delete { before },
        (other, _) => other.clone(),
    };
}

/// Made and taken away again, or back as it was.
fn is_void(change: &Change) -> bool {
    matches!(&change.action, Action::Put { before: Some(before), after } if before == after)
}

struct Path {
    world: World,
    placeholders: u16,
    network: ResourceId,
}

impl Path {
    /// The way that begins at a World. Where the ledger is not known there is no cluster, and the
    /// ledger is empty.
    fn from(mut world: World, policy: &Policy) -> Self {
        let ledger = &mut world.kubernetes.ledger;
        if *ledger == Fact::Unknown {
            *ledger = Fact::Known(Arc::default());
        }
        Self { placeholders: last_placeholder(&world), world, network: policy.network() }
    }

    /// Writes the ledger, with the holders of contested addresses. Returns whether there was
    /// anything to write.
    fn record(&mut self, write: Option<&LedgerWrite>, report: &Report) -> bool {
        let news = self.world.holders != report.holders;
        self.world.holders.clone_from(&report.holders);
        let Some(write) = write else { return news };
        let known = self.world.kubernetes.ledger.known();
        self.world.kubernetes.ledger = Fact::Known(Arc::new(Ledger {
            revision: Some(Arc::from("placeholder")),
            extent: Extent::Whole,
            planned_on: write.planned_on.clone(),
            destinations: write.destinations.clone(),
            tags: known.map(|ledger| ledger.tags.clone()).unwrap_or_default(),
        }));
        true
    }

    fn placeholder(&mut self, family: Family) -> IpAddr {
        self.placeholders += 1;
        let n = self.placeholders;
        match family {
            Family::V4 => {
                let [high, low] = n.to_be_bytes();
                IpAddr::V4(Ipv4Addr::new(0, 1, high, low))
            }
            Family::V6 => IpAddr::V6(Ipv6Addr::new(0, 0, 0, 0, 0, 0, 1, n)),
        }
    }

    fn apply(&mut self, change: &Change) {
        match &change.action {
            Action::Put { after, .. } => self.put(after),
            Action::Delete { before } => remove(&mut self.world.azure, before.id()),
            Action::DeleteChild => remove_connection(&mut self.world.azure, &change.target),
            Action::MigratePools { pools } => self.migrate(&change.target, pools),
            Action::UpdateServices(update) => {
                if let Some(table) = self.world.azure.gateway_services.known_mut() {
                    update.apply(table);
                }
            }
            Action::UpdateLocations(update) => {
                if let Some(table) = self.world.azure.gateway_locations.known_mut() {
                    update.apply(Arc::make_mut(table));
                }
            }
        }
    }

    fn put(&mut self, resource: &Resource) {
        let etag = Some(Etag::new("placeholder"));
        let mut resource = resource.clone();
        match &mut resource {
            Resource::PublicIp(ip) => {
                let ip = Arc::make_mut(ip);
                ip.address = Some(ip.address.unwrap_or_else(|| self.placeholder(ip.family)));
                ip.etag = etag;
                ip.provisioning = Provisioning::Succeeded;
            }
            Resource::LoadBalancer(balancer) => {
                let balancer = Arc::make_mut(balancer);
                balancer.etag = etag;
                balancer.provisioning = Provisioning::Succeeded;
                for frontend in &mut balancer.frontends {
                    if let FrontendAddress::Private { address, family, .. } = &mut frontend.address
                        && address.is_none()
                    {
                        *address = Some(self.placeholder(*family));
                    }
                }
                attach(&mut self.world.azure, &balancer.id, &balancer.frontends);
                self.allocate(&balancer.frontends);
            }
            Resource::SecurityGroup(group) => {
                Arc::make_mut(group).provisioning = Provisioning::Succeeded;
            }
            Resource::Subnet(_)
            | Resource::PrivateLinkService(_)
            | Resource::NatGateway(_)
            | Resource::PoolMember(_) => {}
        }
        self.world.azure.put(resource);
    }

    /// A public IP without an address gets one with the frontend that is put on it.
    fn allocate(&mut self, frontends: &[Frontend]) {
        let bare = |id: &ResourceId| {
            let facts = self.world.azure.public_ips.get(&id.group()?)?;
            let ip = facts.known()?.get(id)?;
            ip.address.is_none().then_some(ip.family)
        };
        let coming = frontends.iter().filter_map(|frontend| match &frontend.address {
            FrontendAddress::Public(id) => Some((id, bare(id)?)),
            FrontendAddress::Private { .. } | FrontendAddress::Other => None,
        });
        let coming: Vec<(&ResourceId, Family)> = coming.collect();
        for (id, family) in coming {
            let address = self.placeholder(family);
            let facts = id.group().and_then(|group| self.world.azure.public_ips.get_mut(&group));
            let all = facts.and_then(Fact::known_mut);
            if let Some(ip) = all.and_then(|all| all.get_mut(id)) {
                Arc::make_mut(ip).address = Some(address);
            }
        }
    }

    /// The address of the node on the machine that a NIC is below.
    fn host_of(&self, nic: &ResourceId, family: Family) -> Option<IpAddr> {
        let mut nodes = self.world.kubernetes.nodes.values();
        nodes.find(|n| n.has_nic(nic))?.address(family)
    }

    /// Each NIC in the pools becomes its address, where that can be known.
    fn migrate(&mut self, id: &ResourceId, pools: &[Arc<str>]) {
        let known = self.world.azure.balancers.known().and_then(|all| all.get(id));
        let Some(mut balancer) = known.map(|b| LoadBalancer::clone(b)) else { return };
        for pool in balancer.pools.iter_mut().filter(|p| pools.contains(&p.name)) {
            pool.network = Some(self.network.clone());
            for nic in std::mem::take(&mut pool.nics) {
                let family = plan::own::name::family_of_pool(&pool.name);
                let address = self.host_of(&nic, family);
                let address = address.unwrap_or_else(|| self.placeholder(family));
                let (name, admin) = (Arc::from(nic.name()), AdminState::None);
                pool.addresses.push(PoolAddress { address, name, admin, network: None });
            }
        }
        self.world.azure.put(Resource::LoadBalancer(Arc::new(balancer)));
    }
}

/// Takes a private endpoint connection off its Private Link Service.
fn remove_connection(azure: &mut Azure, id: &ResourceId) {
    let Some(service) = id.parent() else { return };
    for facts in azure.private_links.values_mut().filter_map(Fact::known_mut) {
        if let Some(link) = facts.get_mut(&service) {
            Arc::make_mut(link).connections.retain(|c| c.id != *id);
        }
    }
}

/// Public IPs know which frontend of a load balancer uses them.
fn attach(azure: &mut Azure, balancer: &ResourceId, frontends: &[Frontend]) {
    let user = |ip: &ResourceId| {
        let address = FrontendAddress::Public(ip.clone());
        let found = frontends.iter().find(|f| f.address == address);
        found.map(|f| balancer.child("frontendIPConfigurations", &f.name))
    };
    let facts = azure.public_ips.values_mut().filter_map(Fact::known_mut);
    for ip in facts.flat_map(BTreeMap::values_mut) {
        let now = user(&ip.id);
        let own = ip.user.as_ref().and_then(ResourceId::parent).as_ref() == Some(balancer);
        if now.is_some() || own {
            Arc::make_mut(ip).user = now;
        }
    }
}

fn remove(azure: &mut Azure, id: &ResourceId) {
    attach(azure, id, &[]);
    if let Some(all) = azure.balancers.known_mut() {
        all.remove(id);
    }
    for facts in azure.public_ips.values_mut().filter_map(Fact::known_mut) {
        facts.remove(id);
    }
    for facts in azure.private_links.values_mut().filter_map(Fact::known_mut) {
        facts.remove(id);
    }
    if let Some(all) = azure.nat_gateways.known_mut() {
        all.remove(id);
    }
}
