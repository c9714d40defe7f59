//! Sets Services aside that Azure refuses, and finds them in a batch.

use crate::backoff;
use crate::controller::Controller;
use crate::lanes::lane::Work;
use crate::lanes::search::Verdict;
use crate::obstacles::{Failure, Strike, Trouble};
use crate::reads::tables;
use arm::error::ArmError;
use model::plan::Action;
use model::world::Hold;
use model::{ResourceId, ServiceUid};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Controller {
    /// Finds out whose part of a refused write is wrong. False when it is no Service's.
    pub(crate) fn blame(
        &mut self,
        id: &ResourceId,
        work: &Work,
        error: &ArmError,
        now_ms: u64,
    ) -> bool {
        let batch = self.batch(&work.change.causes);
        let failed = self.lanes.strikes.iter().filter(|(_, strike)| strike.target == *id);
        let failed = failed.map(|(uid, _)| uid.clone()).collect();
        match self.lanes.searches.entry(id.clone()).or_default().refused(&batch, &failed) {
            Verdict::Nobody => false,
            Verdict::Guilty(uid) => {
                self.set_aside(&uid, id, work, error, now_ms);
                true
            }
            Verdict::Hold(held) => {
                for uid in held {
                    let reason = format!("{} is refused with other Services in it", id.name());
                    let attempt = self.lanes.strikes.get(&uid).map_or(0, |s| s.trouble.attempt);
                    let code = Arc::from(error.code.as_str());
                    let reason = Arc::from(reason);
                    let target = id.clone();
                    let hold = Hold { target, reason, code, until_ms: None, attempt };
                    self.world.holds.insert(uid, hold);
                }
                true
            }
        }
    }

    fn set_aside(
        &mut self,
        uid: &ServiceUid,
        id: &ResourceId,
        work: &Work,
        error: &ArmError,
        now_ms: u64,
    ) {
        let before = self.lanes.strikes.remove(uid).map(|strike| strike.trouble);
        let failure = Failure::of_write(work, id, error);
        let trouble = Trouble::after(before, failure, &BTreeSet::from([uid.clone()]), now_ms);
        let attempt = trouble.attempt;
        // A refusal repeats until somebody changes something: not worth a call a second.
        let wait = backoff::after(attempt + 2, error.retry_after_ms);
        let hold = Hold {
            target: id.clone(),
            reason: Arc::from(trouble.cause()),
            code: Arc::from(error.code.as_str()),
            until_ms: Some(now_ms + wait),
            attempt,
        };
        self.lanes.strikes.insert(uid.clone(), Strike { target: id.clone(), trouble });
        self.world.holds.insert(uid.clone(), hold);
    }

    /// Where a lane with a search has nothing more to send, the next half has its turn.
    pub(crate) fn go_on_searching(&mut self) {
        let free: Vec<ResourceId> = self
            .lanes
            .searches
            .keys()
            .filter(|id| {
                self.lanes
                    .all
                    .get(*id)
                    .is_none_or(|l| l.work.is_none() && l.wait_until_ms.is_none())
            })
            .filter(|id| {
                !self.planning.plan.changes.iter().any(|c| c.target == **id && !c.causes.is_empty())
            })
            .cloned()
            .collect();
        for id in free {
            self.take_next_half(&id);
        }
    }

    /// A table is written all the time on somebody's account: the next half does not wait for its
    /// lane to rest, but for a write without it that went through.
    pub(crate) fn widen_table_search(&mut self, id: &ResourceId, action: &Action) {
        if tables::is_table(action) {
            self.take_next_half(id);
        }
    }

    fn take_next_half(&mut self, id: &ResourceId) {
        let Some(search) = self.lanes.searches.get_mut(id) else { return };
        if let Some(half) = search.take_half() {
            for uid in half {
                if self.world.holds.get(&uid).is_some_and(|h| h.until_ms.is_none()) {
                    self.world.holds.remove(&uid);
                }
            }
            self.planning.dirty = true;
        }
        if self.lanes.searches.get(id).is_some_and(crate::lanes::search::Search::is_over) {
            self.lanes.searches.remove(id);
        }
    }

    /// A Service was changed by its owner: what was refused may be right now.
    pub(crate) fn forgive(&mut self, uid: &ServiceUid) {
        self.lanes.strikes.remove(uid);
        self.lanes.searches.values_mut().for_each(|search| search.forget(uid));
        if self.world.holds.remove(uid).is_some() {
            self.planning.dirty = true;
        }
    }
}
