//! Listeners on one frontend.

use super::contest::ALL_PORTS;
use crate::ask::RuleKind;
use model::azure::{RuleProtocol, rule_protocol};
use std::collections::BTreeMap;

/// Listeners on one frontend, found by port: of several that a listener overlaps the one that was
/// added first, but one of all ports before others.
pub(crate) struct Listeners<T> {
    first: Option<T>,
    all_ports: Option<T>,
    ports: BTreeMap<u16, Vec<(RuleProtocol, T)>>,
}

impl<T> Default for Listeners<T> {
    fn default() -> Self {
        Self { first: None, all_ports: None, ports: BTreeMap::new() }
    }
}

impl<T: Copy> Listeners<T> {
    pub fn add(&mut self, listener: (RuleProtocol, u16), of: T) {
        self.first.get_or_insert(of);
        if listener == ALL_PORTS {
            self.all_ports.get_or_insert(of);
            return;
        }
        let there = self.ports.entry(listener.1).or_default();
        // At most one of each protocol.
        if there.iter().all(|(known, _)| *known != listener.0) {
            there.push((listener.0, of));
        }
    }

    /// One that gets in this one's way.
    pub fn find(&self, listener: (RuleProtocol, u16)) -> Option<T> {
        if listener == ALL_PORTS {
            return self.first;
        }
        let there = self.ports.get(&listener.1).into_iter().flatten();
        let mut overlapping = there.filter(|(known, _)| overlaps((*known, listener.1), listener));
        self.all_ports.or_else(|| overlapping.next().map(|(_, of)| *of))
    }
}

/// The protocol and port that a rule takes on its frontend.
pub(crate) fn signature(kind: &RuleKind) -> (RuleProtocol, u16) {
    match *kind {
        RuleKind::Port { protocol, port, .. } => (rule_protocol(protocol), port),
        RuleKind::AllPorts { .. } => ALL_PORTS,
    }
}

/// Whether two listeners on one frontend get in each other's way: protocol All takes its port of
/// every protocol, and with port 0 every port.
pub(crate) fn overlaps(a: (RuleProtocol, u16), b: (RuleProtocol, u16)) -> bool {
    let all = |(protocol, _): (RuleProtocol, u16)| protocol == RuleProtocol::All;
    let meet = a.0 == b.0 || all(a) || all(b);
    [a, b].contains(&ALL_PORTS) || (meet && a.1 == b.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use RuleProtocol::{All, Tcp, Udp};

    #[test]
    fn what_is_found_overlaps_and_nothing_else_does() {
        let some = [(Tcp, 80), (Udp, 80), (Tcp, 443), (All, 53), (All, 0), (Tcp, 53), (Udp, 0)];
        for of in 0..1_u32 << some.len() {
            let chosen: Vec<_> = (0..some.len()).filter(|at| of & (1 << at) != 0).collect();
            let mut listeners = Listeners::default();
            chosen.iter().for_each(|at| listeners.add(some[*at], *at));
            for asked in some.into_iter().chain([(Udp, 53), (Tcp, 0), (All, 443)]) {
                let found = listeners.find(asked);
                let meets = |at: &&usize| overlaps(some[**at], asked);
                assert_eq!(found.is_some(), chosen.iter().any(|at| meets(&at)), "{asked:?}");
                assert!(found.as_ref().is_none_or(|at| meets(&at)), "{asked:?}");
            }
        }
    }
}
