//! Backend pools that hold addresses of nodes.

use super::member;
use crate::ask::Intent;
use crate::claim::limit;
use crate::claim::placement::{Assignment, Backends};
use crate::draft::Draft;
use crate::order::drain;
use crate::own::{Owner, borne, name, part};
use crate::standing::pool::{is_preconfigured, kind};
use model::azure::{AdminState, LoadBalancer, Pool, PoolAddress, Rest, Sku};
use model::drain::Drainer;
use model::kubernetes::{Membership, Node, NodeRole};
use model::policy::{Layout, PoolKind};
use model::world::Kind;
use model::{Exposure, Family, ResourceId, ServiceUid};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// Makes sure that a load balancer has the pools that its Services' rules lead to, and that pools
/// of addresses hold the nodes. Returns the addresses in them whose nodes are going or gone.
pub(crate) fn ensure(
    draft: &Draft<'_>,
    balancer: &mut LoadBalancer,
    seats: &Assignment,
    seated: &[ServiceUid],
) -> BTreeSet<Drainer> {
    let mut draining = BTreeSet::new();
    let homes = drain::homes(draft);
    let site = Site { exposure: seats.exposure, homes: &homes };
    let intents = || seated.iter().filter_map(|uid| draft.cases[uid].intent());
    let (local, common): (Vec<&Intent>, Vec<&Intent>) =
        intents().partition(|intent| name::has_own_pool(draft.policy, intent));
    for family in Family::ALL {
        let name = name::pool(&draft.policy.cluster, family);
        let asked = common.iter().any(|intent| intent.families.contains(&family));
        if let Backends::Nodes(nodes) = &seats.backends
            && (asked || part::named(&balancer.pools, &name).is_some())
        {
            draining.extend(ensure_one(draft, balancer, site, &name, family, nodes));
        }
    }
    // What has no rules leads nowhere: its pool would stay when it goes.
    for intent in local.into_iter().filter(|intent| !intent.rules.is_empty()) {
        let Some(nodes) = seats.local.get(&intent.uid) else { continue };
        for &family in &intent.families {
            let name = name::local_pool(&intent.name, family);
            draining.extend(ensure_one(draft, balancer, site, &name, family, nodes));
        }
    }
    draining
}

/// The nodes for the fullest pool of a load balancer.
pub(crate) fn count(seats: &Assignment) -> usize {
    let common = match &seats.backends {
        Backends::Nodes(nodes) => Some(&**nodes),
        Backends::AsTheyAre => None,
    };
    let of_pools = common.into_iter().chain(seats.local.values().map(|nodes| &**nodes));
    let count = |nodes: &[Arc<Node>], family| {
        let members = nodes.iter().filter(|n| n.membership == Membership::Member);
        members.filter(|n| n.address(family).is_some()).count()
    };
    let most = |nodes| Family::ALL.into_iter().map(|family| count(nodes, family)).max();
    of_pools.filter_map(most).max().unwrap_or(0)
}

/// What all pools of a load balancer have in common.
#[derive(Clone, Copy)]
struct Site<'a> {
    exposure: Exposure,
    homes: &'a drain::Homes,
}

fn ensure_one(
    draft: &Draft<'_>,
    balancer: &mut LoadBalancer,
    site: Site<'_>,
    name: &str,
    family: Family,
    nodes: &[Arc<Node>],
) -> Vec<Drainer> {
    let at = match part::place(&balancer.pools, name) {
        Some(_) if is_preconfigured(draft, site.exposure) => return Vec::new(),
        Some(at) => at,
        None => {
            balancer.pools.push(empty(name));
            balancer.pools.len() - 1
        }
    };
    let kind = kind(draft, &balancer.id);
    let pool = &mut balancer.pools[at];
    let holds_addresses = match kind {
        PoolKind::NodeIp => !member::is_held(draft, &balancer.id, pool),
        // Addresses go before NICs can join, and stay as long as none can.
        PoolKind::NodeNic => {
            let stays = balancer.sku != Sku::Basic && !member::is_joinable(draft, &balancer.id);
            !pool.addresses.is_empty() && stays
        }
        PoolKind::PodIp => false,
    };
    if holds_addresses {
        return hold(draft, (&balancer.id, balancer.sku, site.homes), pool, family, nodes);
    }
    if kind == PoolKind::NodeNic && !pool.addresses.is_empty() {
        pool.addresses.clear();
        pool.network = None;
    }
    Vec::new()
}

/// Makes a pool of addresses hold the nodes. Returns the addresses in it whose nodes are going or
/// gone.
pub(crate) fn hold(
    draft: &Draft<'_>,
    (balancer, sku, homes): (&ResourceId, Sku, &drain::Homes),
    pool: &mut Pool,
    family: Family,
    nodes: &[Arc<Node>],
) -> Vec<Drainer> {
    let draining = drain::draining(draft, pool, homes);
    let leaving = drain::leaving(draft, balancer, pool, homes);
    let most = limit::pool_members(sku);
    fill(draft, pool, family, nodes, Room { most, leaving: &leaving });
    draining.into_iter().map(Drainer::from).collect()
}

/// Pools that are named as a Service's own is, and to which no rule leads: another client removed
/// the rules, or led a rule there until the Service was deleted. Only the name says whose they are.
fn orphans(draft: &Draft<'_>, balancer: &LoadBalancer) -> Vec<String> {
    let led: BTreeSet<&ResourceId> =
        balancer.rules.iter().filter_map(|rule| rule.pool.as_ref()).collect();
    let ids = balancer.pools.iter().map(|p| balancer.id.child("backendAddressPools", &p.name));
    let mut idle = ids.filter(|id| !led.contains(id)).peekable();
    if idle.peek().is_none() {
        return Vec::new();
    }
    let gone = draft.world.abandoned.iter().filter_map(|name| borne::service_named(name));
    let services = draft.cases.values().map(|case| case.service.name.clone()).chain(gone);
    let names = services.flat_map(|s| Family::ALL.map(|family| name::local_pool(&s, family)));
    let mut names: BTreeSet<String> = names.map(|name| name::folded(&name)).collect();
    for family in Family::ALL {
        names.remove(&name::folded(&name::pool(&draft.policy.cluster, family)));
    }
    idle.filter(|id| names.contains(&name::folded(id.name()))).map(|id| id.folded()).collect()
}

/// Takes out the pools that Services had to themselves and that no rule leads to any more.
pub(crate) fn drop_unused(draft: &Draft<'_>, before: &LoadBalancer, after: &mut LoadBalancer) {
    let several = matches!(draft.policy.layout, Layout::Several(_));
    let is_own = |rule: &str, pool: &str| match draft.whose(rule) {
        Owner::Ours(uid) => name::is_local_pool(&draft.cases[uid].service.name, pool),
        Owner::Orphaned => several,
        Owner::Foreign => false,
    };
    let mut unused: BTreeSet<String> = BTreeSet::new();
    for rule in &before.rules {
        let Some(pool) = &rule.pool else { continue };
        if !name::is_pool(&draft.policy.cluster, pool.name())
            && pool.parent().as_ref() == Some(&before.id)
            && is_own(&rule.name, pool.name())
        {
            unused.insert(pool.folded());
        }
    }
    if several {
        unused.extend(orphans(draft, before));
    }
    if unused.is_empty() {
        return;
    }
    for rule in &after.rules {
        if let Some(pool) = &rule.pool {
            unused.remove(&pool.folded());
        }
    }
    let foreign: Vec<String> =
        after.foreign.iter().map(|f| f.body.to_string().to_lowercase()).collect();
    unused.retain(|pool| !foreign.iter().any(|body| body.contains(pool.as_str())));
    let id = after.id.clone();
    after.pools.retain(|p| !unused.contains(&id.child("backendAddressPools", &p.name).folded()));
}

/// A pool without members.
pub(crate) fn empty(name: &str) -> Pool {
    Pool {
        name: Arc::from(name),
        network: None,
        addresses: Vec::new(),
        nics: Default::default(),
        rest: Rest::default(),
    }
}

/// What a pool has room for.
#[derive(Clone, Copy, Debug)]
struct Room<'a> {
    /// Addresses, at most.
    most: usize,
    /// Addresses of nodes that are gone, or both left out and going, and still drain.
    leaving: &'a [IpAddr],
}

/// Makes a pool hold the addresses of nodes.
fn fill(draft: &Draft<'_>, pool: &mut Pool, family: Family, nodes: &[Arc<Node>], room: Room<'_>) {
    if !draft.world.is_complete(&[Kind::Nodes]) {
        return;
    }
    let present: BTreeMap<IpAddr, &PoolAddress> =
        pool.addresses.iter().map(|a| (a.address, a)).collect();
    let mut wanted: Vec<PoolAddress> = Vec::new();
    for node in nodes {
        let Some(address) = node.address(family) else { continue };
        let there = present.get(&address).copied();
        let admin = match (node.membership, there) {
            (Membership::Member, _) => AdminState::None,
            (Membership::Draining, Some(_)) => drain::state(draft),
            (Membership::Draining, None) | (Membership::Excluded | Membership::Leaving, _) => {
                continue;
            }
        };
        let name = there.map_or_else(|| Arc::from(node.name.as_str()), |a| Arc::clone(&a.name));
        wanted.push(PoolAddress { address, name, admin, network: None });
    }
    wanted.sort();
    wanted.dedup_by_key(|a| a.address);
    if wanted.len() > room.most {
        // Who is in stays: a pool that is full takes turns with nobody.
        wanted.sort_by_key(|a| !present.contains_key(&a.address));
        wanted.truncate(room.most);
        wanted.sort();
    }
    // Without a single node left, what is there stays: an empty list is more often an error of
    // ours or the API server's than a cluster without nodes. One of several load balancers may
    // well have none.
    if wanted.is_empty() && (draft.policy.layout == Layout::Single || is_deserted(draft)) {
        return;
    }
    let gone = room.leaving.iter().filter_map(|address| present.get(address));
    let gone = gone.map(|a| PoolAddress { admin: AdminState::Down, ..(*a).clone() });
    wanted.extend(gone.take(room.most.saturating_sub(wanted.len())));
    name_apart(&mut wanted, &present, room.leaving);
    wanted.sort();
    pool.addresses = wanted;
    pool.network = Some(draft.policy.network());
}

/// Gives every address a name of its own: Azure takes no pool in which two have one
/// (DuplicateResourceName: kubernetes-sigs/cloud-provider-azure, issue 10307). A node with another
/// address than before is in the pool with both while the former one drains, and so is a node that
/// was made anew under its name. An address that stays keeps its name, one that joins has its
/// node's; whichever lacks a name then is called after itself, an address that drains first.
fn name_apart(
    addresses: &mut [PoolAddress],
    present: &BTreeMap<IpAddr, &PoolAddress>,
    leaving: &[IpAddr],
) {
    if addresses.iter().all(|a| present.contains_key(&a.address)) {
        // Azure has taken these names.
        return;
    }
    addresses.sort_by_key(|a| (leaving.contains(&a.address), !present.contains_key(&a.address)));
    let mut names = BTreeSet::new();
    for one in addresses.iter_mut().filter(|a| !a.name.is_empty()) {
        if !names.insert(name::folded(&one.name)) {
            let own = one.address.to_string().replace(':', "-");
            names.insert(own.clone());
            one.name = Arc::from(own);
        }
    }
}

/// Addresses of all nodes.
fn owners(draft: &Draft<'_>) -> BTreeMap<IpAddr, Membership> {
    let nodes = draft.world.kubernetes.nodes.values();
    nodes.flat_map(|n| n.addresses.iter().map(|a| (*a, n.membership))).collect()
}

/// Addresses in pools that new connections no longer get to, although they are in there: their
/// nodes are gone, or excluded and taken out of service.
pub(crate) fn let_go(draft: &Draft<'_>, balancer: &LoadBalancer) -> BTreeSet<IpAddr> {
    if !draft.world.is_complete(&[Kind::Nodes]) || is_deserted(draft) {
        return BTreeSet::new();
    }
    let owners = owners(draft);
    let held = balancer.pools.iter().flat_map(|p| &p.addresses);
    held.filter(|a| match owners.get(&a.address) {
        None => true,
        Some(membership) => membership.is_left_out() && a.admin == AdminState::Down,
    })
    .map(|a| a.address)
    .collect()
}

/// Whether there is no node at all for any pool.
fn is_deserted(draft: &Draft<'_>) -> bool {
    let mut nodes = draft.world.kubernetes.nodes.values();
    !nodes.any(|n| n.role == NodeRole::Worker && !n.membership.is_left_out())
}
