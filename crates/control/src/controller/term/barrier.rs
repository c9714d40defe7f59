//! The barrier of a term: nothing of another process's is let go before lists that are certain to
//! show what that process wrote. What is heard of later waits for lists of its own, and nothing
//! else waits for it: a tenant may create Services with our finalizer all the time.

use crate::controller::Controller;
use crate::reads::UNFOLLOWED_MS;
use crate::reads::read::Read;
use crate::term::TakeoverBarrier;
use model::world::{Azure, Fact, Need};

/// Lists that show what another process wrote.
fn is_list(need: &Need) -> bool {
    matches!(need, Need::Balancers | Need::PublicIps(_) | Need::NatGateways | Need::SecurityGroup)
}

/// Whether Azure refuses to show a list. A Service that may have something in it keeps its
/// finalizer, whatever comes of this barrier. No other Service waits for the list: it may be of a
/// resource group that a single Service names.
fn is_unreadable(azure: &Azure, need: &Need) -> bool {
    matches!(azure.answered(need), Fact::Unreadable(_))
}

impl Controller {
    /// Reads the lists again when their time has come; lets go of the wait once they are read.
    pub(crate) fn pass_barrier(&mut self, now_ms: u64) {
        match self.term.barrier {
            TakeoverBarrier::Until(at) if at <= now_ms => {
                let lists = self.reads.store.iter_mut().filter(|(need, _)| is_list(need));
                lists.for_each(|(_, read)| read.ask_again());
                self.term.barrier = TakeoverBarrier::Reading(now_ms);
                self.planning.dirty = true;
            }
            TakeoverBarrier::Done | TakeoverBarrier::Until(_) => {}
            TakeoverBarrier::Reading(since_ms) => {
                let azure = &self.world.azure;
                // Nothing of egress is planned before NAT gateways are known, and no Service waits
                // for them. A read that has yet to begin shows all that there is of them.
                let blind = |need: &Need, read: &Read| {
                    let unknown = azure.nat_gateways == Fact::Unknown;
                    *need == Need::NatGateways && unknown && !read.is_under_way()
                };
                let awaited = |need: &Need| is_list(need) && !is_unreadable(azure, need);
                let lists = self.reads.store.iter().filter(|(need, _)| awaited(need));
                let lists = lists.filter(|(need, read)| !blind(need, read));
                let lists: Vec<&Read> = lists.map(|(_, read)| read).collect();
                let read_again = !lists.iter().any(|read| read.is_awaited())
                    && self.lanes.all.values().all(|lane| !lane.hidden);
                // One that is said to be changed for ever is nobody's operation.
                let late = now_ms >= since_ms + UNFOLLOWED_MS
                    && lists.iter().all(|read| read.is_read_since(since_ms));
                let term = &self.term;
                if read_again {
                    let before = self.world.unseen.len();
                    self.world.unseen.retain(|uid| term.is_late(uid, since_ms));
                    self.planning.dirty |= self.world.unseen.len() != before;
                }
                if late || (read_again && self.busy_needs().is_empty()) {
                    let term = &mut self.term;
                    term.pass(since_ms, now_ms);
                    self.world.inherited.retain(|uid| term.heard_ms.contains_key(uid));
                    self.world.unseen.retain(|uid| term.heard_ms.contains_key(uid));
                    self.planning.dirty = true;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::reads::LIST_LAG_MS;
    use fixture::{claimed, numbered, policy};
    use model::ServiceUid;
    use observe::KubernetesFact;
    use std::collections::{BTreeMap, BTreeSet};

    /// A Service that shows our finalizer when it is first seen.
    fn finalized(number: u8) -> KubernetesFact {
        KubernetesFact::Service(Box::new(claimed(numbered(number, &[]))))
    }

    /// Every five seconds a tenant creates another Service with our finalizer in its manifest.
    #[test]
    fn services_that_come_with_our_finalizer_hold_up_nobody_elses_departure_and_no_node() {
        let mut controller = Controller::new(policy(), Options::default());
        controller.world.azure.balancers = Fact::Known(BTreeMap::new());
        let waits = |controller: &mut Controller, number: u8, now_ms: u64| {
            controller.learn(finalized(number), now_ms);
            controller.look_for_inherited();
            // Asks for lists, of which there are none, and finds that they have come.
            controller.pass_barrier(now_ms);
            controller.pass_barrier(now_ms);
            let numbers = |all: &BTreeSet<ServiceUid>| {
                let is_of = |n: &u8| all.contains(&numbered(*n, &[]).uid);
                (1..=number).filter(is_of).collect::<Vec<u8>>()
            };
            (numbers(&controller.world.inherited), numbers(&controller.world.unseen))
        };
        let all: Vec<_> =
            (1..=20).map(|n| waits(&mut controller, n, u64::from(n) * LIST_LAG_MS / 2)).collect();
        assert_eq!(all[0], (vec![1], vec![1]));
        assert_eq!(all[2], (vec![1, 2, 3], vec![1, 2, 3]), "they are heard of together");
        for (at, (inherited, unseen)) in all.iter().enumerate().skip(10) {
            assert!(inherited.len() <= 5, "{inherited:?} after {at}");
            assert!(inherited.contains(&u8::try_from(at + 1).unwrap()), "the last one waits");
            assert!(unseen.is_empty(), "{unseen:?} after {at}: new nodes join no load balancer");
        }
        assert!(controller.term.is_certain());
    }

    #[test]
    fn the_next_term_has_a_barrier_of_its_own() {
        let mut controller = Controller::new(policy(), Options::default());
        controller.learn(finalized(1), 0);
        controller.pass_barrier(LIST_LAG_MS);
        controller.pass_barrier(LIST_LAG_MS);
        assert!(controller.world.inherited.is_empty() && controller.term.is_certain());
        controller.inherit_all(2 * LIST_LAG_MS);
        assert_eq!(controller.world.inherited.len(), 1);
        assert!(!controller.term.is_certain());
    }
}
