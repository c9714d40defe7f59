//! Where nodes are in the address table.

use super::number::{self, Number};
use model::kubernetes::Node;
use model::{Family, NodeName};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// A node and its locations of both families: every endpoint asks for one.
#[derive(Debug)]
struct Place {
    node: Arc<Node>,
    v4: Option<Number>,
    v6: Option<Number>,
}

/// Locations of nodes, and numbers for them.
#[derive(Debug, Default)]
pub(super) struct Homes {
    nodes: BTreeMap<NodeName, Place>,
    going: BTreeSet<NodeName>,
    /// By any internal address of a node: its location of that family.
    by_host: BTreeMap<IpAddr, IpAddr>,
    numbers: BTreeMap<IpAddr, Number>,
    locations: Vec<IpAddr>,
}

/// What is otherwise about nodes.
#[derive(Debug, Default)]
pub(super) struct Shift {
    /// Whether any of them is elsewhere now.
    pub moved: bool,
    /// Those that are going now, or are not any more.
    pub turned: BTreeSet<NodeName>,
}

impl Homes {
    /// Learns the nodes. Unless nodes drain none counts as going.
    pub fn update(&mut self, nodes: &BTreeMap<NodeName, Arc<Node>>, drain: bool) -> Shift {
        let changed =
            super::changed(&self.nodes, nodes, |held, node| Arc::ptr_eq(&held.node, node));
        let places = |node: Option<&Arc<Node>>| node.map(|n| n.addresses.clone());
        let going =
            |node: Option<&Arc<Node>>| drain && node.is_some_and(|n| n.membership.is_going());
        let (mut moved, mut turned) = (false, BTreeSet::new());
        for name in changed {
            let held = self.nodes.get(&name).map(|held| &held.node);
            moved |= places(held) != places(nodes.get(&name));
            let went = self.going.contains(&name);
            if went != going(nodes.get(&name)) {
                turned.insert(name.clone());
                if went {
                    self.going.remove(&name)
                } else {
                    self.going.insert(name.clone())
                };
            }
            match nodes.get(&name) {
                Some(node) => {
                    let mut number = |family| Some(self.number(node.location(family)?));
                    let (v4, v6) = (number(Family::V4), number(Family::V6));
                    self.nodes.insert(name, Place { node: Arc::clone(node), v4, v6 })
                }
                None => self.nodes.remove(&name),
            };
        }
        if moved {
            self.by_host.clear();
            for Place { node, .. } in self.nodes.values() {
                for host in &node.addresses {
                    let location = node.location(Family::of(*host)).unwrap_or(*host);
                    self.by_host.insert(*host, location);
                }
            }
        }
        Shift { moved, turned }
    }

    /// Whether a node is going: who can do without its Pods does.
    pub fn is_going(&self, name: &NodeName) -> bool {
        self.going.contains(name)
    }

    pub fn of_node(&self, name: &NodeName, family: Family) -> Option<Number> {
        let place = self.nodes.get(name)?;
        match family {
            Family::V4 => place.v4,
            Family::V6 => place.v6,
        }
    }

    /// The location of the node with this address; of no node's, the address itself.
    pub fn of_host(&mut self, host: IpAddr) -> Number {
        let location = self.by_host.get(&host).copied().unwrap_or(host);
        self.number(location)
    }

    /// The location of the node that an address is a node's own of.
    pub fn at_host(&self, address: IpAddr) -> Option<IpAddr> {
        self.by_host.get(&address).copied()
    }

    /// The location with a number.
    pub fn address(&self, number: Number) -> IpAddr {
        self.locations[number::index(number)]
    }

    pub fn number(&mut self, location: IpAddr) -> Number {
        if let Some(number) = self.numbers.get(&location) {
            return *number;
        }
        let number = number::of(self.locations.len());
        self.locations.push(location);
        self.numbers.insert(location, number);
        number
    }
}
