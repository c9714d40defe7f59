//! Nodes that go away: for a while their addresses stay in pools and take no new connections.

use crate::draft::Draft;
use model::ResourceId;
use model::azure::{AdminState, Pool, Rule};
use model::drain::Drainer;
use model::kubernetes::Membership;
use model::policy::{ClusterProbe, NodeDrain};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The admin state of a node that is going.
pub(crate) fn state(draft: &Draft<'_>) -> AdminState {
    match draft.policy.node_drain {
        NodeDrain::Off => AdminState::None,
        NodeDrain::For { .. } => AdminState::Down,
    }
}

/// How the nodes with addresses stand to load balancers. Of several with one address, the one that
/// is least about to go counts.
pub(crate) type Homes = BTreeMap<IpAddr, Membership>;

/// Where every address is at home.
pub(crate) fn homes(draft: &Draft<'_>) -> Homes {
    let mut homes = Homes::new();
    for node in draft.world.kubernetes.nodes.values() {
        for address in &node.addresses {
            let found = homes.entry(*address).or_insert(node.membership);
            let goes_sooner = *found == Membership::Leaving || !node.membership.is_going();
            if found.is_going() && goes_sooner {
                *found = node.membership;
            }
        }
    }
    homes
}

/// Addresses in a pool whose nodes are going or gone, for how long ever.
pub(crate) fn draining(draft: &Draft<'_>, pool: &Pool, homes: &Homes) -> Vec<IpAddr> {
    if draft.policy.node_drain == NodeDrain::Off {
        return Vec::new();
    }
    let going = |address: &IpAddr| homes.get(address).is_none_or(|m| m.is_going());
    pool.addresses.iter().map(|a| a.address).filter(going).collect()
}

/// Those of them that stay in the pool for the time to drain although their nodes are gone, or are
/// to be in no pool.
pub(crate) fn leaving(
    draft: &Draft<'_>,
    balancer: &ResourceId,
    pool: &Pool,
    homes: &Homes,
) -> Vec<IpAddr> {
    let mut found = draining(draft, pool, homes);
    let leaves = |a: &IpAddr| homes.get(a).is_none_or(|m| *m == Membership::Leaving);
    found.retain(|a| !draft.world.drained.contains(&Drainer::from(*a)) && leaves(a));
    if !found.is_empty() && !is_probed(draft, balancer, pool) {
        found.clear();
    }
    found
}

/// Whether every rule that leads to a pool has a probe. Azure heeds the admin state for no other:
/// without one, a node that is gone would go on getting new connections.
fn is_probed(draft: &Draft<'_>, balancer: &ResourceId, pool: &Pool) -> bool {
    let id = balancer.child("backendAddressPools", &pool.name);
    let mut rules = leading(draft, &id).peekable();
    rules.peek().is_some() && rules.all(|r| r.probe.is_some())
}

fn leading<'a>(draft: &'a Draft<'_>, pool: &'a ResourceId) -> impl Iterator<Item = &'a Rule> {
    let there = pool.parent().and_then(|balancer| draft.balancer(&balancer));
    there.into_iter().flat_map(|b| &b.rules).filter(move |r| r.pool.as_ref() == Some(pool))
}

/// Whether the probes of every rule that leads to a pool ask kube-proxy, which says of itself that
/// its node is about to go (KEP-3836).
pub(crate) fn is_turned_away(draft: &Draft<'_>, pool: &ResourceId) -> bool {
    matches!(draft.policy.cluster_probe, ClusterProbe::Shared { .. })
        && leading(draft, pool).all(|r| r.probe.is_some())
}

#[cfg(test)]
mod tests {
    use model::azure::{AdminState, LoadBalancer};
    use model::drain::Drainer;
    use model::kubernetes::{Membership, Node};
    use model::plan::{Action, Resource};
    use model::policy::{NodeDrain, Policy};
    use model::world::Fact;
    use model::{NodeName, Report, World};
    use std::net::IpAddr;
    use std::sync::Arc;

    const OLD: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 224, 0, 4));
    const NEW: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 224, 0, 5));

    /// Two nodes, both in the pool; the first may then be edited or taken away.
    fn stage(edit: impl FnOnce(Node) -> Option<Node>) -> World {
        let mut world = fixture::world();
        let first = world.kubernetes.nodes.pop_first().expect("the fixture has a node").1;
        let mut second = (*first).clone();
        second.name = NodeName::new("vmss000001");
        second.addresses = vec![NEW];
        world.kubernetes.nodes.insert(second.name.clone(), Arc::new(second));
        if let Some(node) = edit((*first).clone()) {
            world.kubernetes.nodes.insert(node.name.clone(), Arc::new(node));
        }
        change(&mut world, |balancer| {
            let mut other = balancer.pools[0].addresses[0].clone();
            other.address = NEW;
            other.name = Arc::from("vmss000001");
            balancer.pools[0].addresses.push(other);
        });
        world
    }

    fn change(world: &mut World, edit: impl FnOnce(&mut LoadBalancer)) {
        let mut balancer = fixture::balancer();
        if let Some(all) = world.azure.balancers.known() {
            balancer = (**all.values().next().expect("one")).clone();
        }
        edit(&mut balancer);
        world.azure.balancers = Fact::Known([(balancer.id.clone(), Arc::new(balancer))].into());
    }

    fn policy(seconds: u32) -> Policy {
        let node_drain = match seconds {
            0 => NodeDrain::Off,
            seconds => NodeDrain::For { seconds },
        };
        Policy { node_drain, ..fixture::policy() }
    }

    type Pool = Vec<(IpAddr, AdminState)>;

    /// The pool as it is after the plan, and who drains.
    fn outcome(world: &World, policy: &Policy) -> (Pool, Vec<IpAddr>) {
        let (plan, report): (_, Report) = crate::plan(world, policy);
        let all = world.azure.balancers.known().expect("known");
        let mut balancer = Arc::clone(all.values().next().expect("one"));
        for change in &plan.changes {
            if let Action::Put { after: Resource::LoadBalancer(after), .. } = &change.action {
                balancer = Arc::clone(after);
            }
        }
        let pool = balancer.pools[0].addresses.iter().map(|a| (a.address, a.admin)).collect();
        let draining = report.draining.expect("pools were looked at").into_iter();
        let address = |drainer| match drainer {
            Drainer::Address(address) => address,
            Drainer::Machine(id) => panic!("{id:?} in a pool of addresses"),
        };
        (pool, draining.map(address).collect())
    }

    fn going(node: Node) -> Option<Node> {
        Some(Node { membership: Membership::Draining, ..node })
    }

    fn leaving(node: Node) -> Option<Node> {
        Some(Node { membership: Membership::Leaving, ..node })
    }

    #[test]
    fn whoever_goes_takes_no_new_connections_and_stays_until_gone() {
        use AdminState::{Down, None as Open};
        let kept = |admin| vec![(OLD, admin), (NEW, Open)];
        let gone = || vec![(NEW, Open)];
        let excluded = |node| Some(Node { membership: Membership::Excluded, ..node });
        for (what, world, seconds, pool, draining) in [
            ("nobody goes", stage(Some), 30, kept(Open), vec![]),
            ("it goes", stage(going), 30, kept(Down), vec![OLD]),
            ("it goes, drains off", stage(going), 0, kept(Open), vec![]),
            ("it is gone", stage(|_| None), 30, kept(Down), vec![OLD]),
            ("it is gone, drains off", stage(|_| None), 0, gone(), vec![]),
            ("it is left out", stage(excluded), 30, gone(), vec![]),
            ("it is left out and goes", stage(leaving), 30, kept(Down), vec![OLD]),
            ("it is left out and goes, drains off", stage(leaving), 0, gone(), vec![]),
        ] {
            assert_eq!(outcome(&world, &policy(seconds)), (pool, draining), "{what}");
        }
    }

    #[test]
    fn whoever_is_gone_leaves_when_the_time_is_over_and_not_before() {
        let policy = policy(30);
        let mut world = stage(going);
        world.drained.insert(OLD.into());
        let there = vec![(OLD, AdminState::Down), (NEW, AdminState::None)];
        assert_eq!(outcome(&world, &policy).0, there, "its node is still there");
        let mut world = stage(leaving);
        world.drained.insert(OLD.into());
        let without = vec![(NEW, AdminState::None)];
        assert_eq!(outcome(&world, &policy), (without, vec![OLD]), "it is left out as well");
        let mut world = stage(|_| None);
        assert_eq!(outcome(&world, &policy).0, there);
        world.drained.insert(OLD.into());
        // It is named for as long as the pool has it: whoever counts must not begin again.
        assert_eq!(outcome(&world, &policy), (vec![(NEW, AdminState::None)], vec![OLD]));
        change(&mut world, |balancer| drop(balancer.pools[0].addresses.remove(0)));
        assert_eq!(outcome(&world, &policy), (vec![(NEW, AdminState::None)], vec![]));
    }

    /// The members of the pool after the plan, by their names.
    fn names(world: &World) -> Vec<(IpAddr, String)> {
        let (plan, _) = crate::plan(world, &policy(30));
        let after = plan.changes.iter().find_map(|change| match &change.action {
            Action::Put { after: Resource::LoadBalancer(after), .. } => Some(after),
            _ => None,
        });
        let members = after.expect("the pool is written").pools[0].addresses.iter();
        members.map(|a| (a.address, a.name.to_string())).collect()
    }

    #[test]
    fn a_node_with_another_address_is_in_its_pool_under_two_names_while_the_former_drains() {
        let third = IpAddr::V4(std::net::Ipv4Addr::new(10, 224, 0, 6));
        let named = |all: [(IpAddr, &str); 3]| all.map(|(at, name)| (at, name.to_owned()));
        let mut world = stage(|node| Some(Node { addresses: vec![third], ..node }));
        let moved = [(OLD, "10.224.0.4"), (NEW, "vmss000001"), (third, "vmss000000")];
        assert_eq!(names(&world), named(moved));
        // The former address is another node's by now: it stays in the pool as it is.
        let mut other = (**world.kubernetes.nodes.values().next().expect("a node")).clone();
        (other.name, other.addresses) = (NodeName::new("vmss000002"), vec![OLD]);
        world.kubernetes.nodes.insert(other.name.clone(), Arc::new(other));
        let taken = [(OLD, "vmss000000"), (NEW, "vmss000001"), (third, "10.224.0.6")];
        assert_eq!(names(&world), named(taken));
    }

    #[test]
    fn draining_twice_writes_once() {
        let policy = policy(30);
        let mut world = stage(|_| None);
        change(&mut world, |balancer| balancer.pools[0].addresses[0].admin = AdminState::Down);
        let (plan, _) = crate::plan(&world, &policy);
        assert_eq!(plan.changes, []);
    }

    #[test]
    fn without_a_probe_whoever_is_gone_leaves_at_once() {
        let mut world = stage(|_| None);
        change(&mut world, |balancer| balancer.rules[0].probe = None);
        assert_eq!(outcome(&world, &policy(30)).0, [(NEW, AdminState::None)]);
    }

    #[test]
    fn a_node_that_comes_back_takes_connections_again() {
        let mut world = stage(Some);
        change(&mut world, |balancer| balancer.pools[0].addresses[0].admin = AdminState::Down);
        let open = vec![(OLD, AdminState::None), (NEW, AdminState::None)];
        assert_eq!(outcome(&world, &policy(30)), (open, vec![]));
    }

    #[test]
    fn the_last_node_is_no_reason_to_drain() {
        let mut world = stage(|_| None);
        world.kubernetes.nodes.clear();
        let open = vec![(OLD, AdminState::None), (NEW, AdminState::None)];
        assert_eq!(outcome(&world, &policy(30)).0, open);
    }
}
