//! The barrier of a term: nothing of another process's is let go before lists that are certain to
//! show what that process wrote.

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
                if read_again && !self.world.unseen.is_empty() {
                    self.world.unseen.clear();
                    self.planning.dirty = true;
                }
                if late || (read_again && self.busy_needs().is_empty()) {
                    self.term.barrier = TakeoverBarrier::Done;
                    self.world.inherited.clear();
                    self.world.unseen.clear();
                    self.planning.dirty = true;
                }
            }
        }
    }
}
