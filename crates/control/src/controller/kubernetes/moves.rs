//! How long Services that move to other backends have been at a stage: their conditions tell it, so
//! that the time goes on while no controller runs. A time that has not come yet was told by a clock
//! that is ahead of this one: the stage begins when it is first seen.

use crate::clock::at_ms;
use crate::controller::Controller;
use model::ServiceUid;
use model::kubernetes::{Move, MoveStage};
use model::policy::{KeepBoth, Migration};
use std::collections::BTreeSet;

impl Controller {
    /// Takes in what conditions say, before a plan is made.
    pub(crate) fn follow_moves(&mut self, now_ms: u64) {
        let Some(migration) = &self.policy.migration else { return };
        let mut before = std::mem::take(&mut self.kubernetes.moves);
        let services = self.world.kubernetes.services.iter();
        let moving = services.filter_map(|(uid, service)| {
            let stage = service.moving.as_ref()?;
            let known = before.remove(uid).filter(|(known, _)| known == stage);
            let ends = known.unwrap_or_else(|| (stage.clone(), ends_ms(migration, stage, now_ms)));
            Some((uid.clone(), ends))
        });
        self.kubernetes.moves = moving.collect();
        self.world.elapsed = self.elapsed(now_ms);
    }

    /// When the next stage is over: another plan is due then.
    pub(crate) fn wake_moves_ms(&self) -> Option<u64> {
        let moves = self.kubernetes.moves.iter();
        let open = moves.filter(|(uid, _)| !self.world.elapsed.contains(*uid));
        open.filter_map(|(_, (_, ends_ms))| *ends_ms).min()
    }

    fn elapsed(&self, now_ms: u64) -> BTreeSet<ServiceUid> {
        let moves = self.kubernetes.moves.iter();
        let over = moves.filter(|(_, (_, ends_ms))| ends_ms.is_some_and(|at| at <= now_ms));
        over.map(|(uid, _)| uid.clone()).collect()
    }
}

/// When a stage is over; `None`: the clock does not end it.
fn ends_ms(migration: &Migration, moving: &Move, now_ms: u64) -> Option<u64> {
    let seconds = match (moving.stage, migration.keep_both) {
        (MoveStage::Draining, _) => migration.drain_s,
        (MoveStage::Both, KeepBoth::For { seconds }) => seconds,
        (MoveStage::Both, KeepBoth::UntilTold) => return None,
    };
    // The condition's time is in whole seconds: the stage may have begun just before the next.
    Some(at_ms(&moving.since)?.min(now_ms).saturating_add(u64::from(seconds) * 1_000 + 999))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::kubernetes::Backends;
    use model::policy::Chosen;
    use std::sync::Arc;

    #[test]
    fn a_stage_ends_by_the_time_of_its_condition() {
        let policy = crate::sample::policy();
        let of = |keep_both, stage, since: &str| {
            let from = Arc::new(policy.clone());
            let migration = Migration { from, keep_both, drain_s: 60, chosen: Chosen::All };
            let moving = Move { to: Backends::Pods, stage, since: Arc::from(since) };
            ends_ms(&migration, &moving, 1_700_000_001_000)
        };
        let minute = KeepBoth::For { seconds: 600 };
        let at = "2023-11-14T22:13:20Z";
        assert_eq!(of(minute, MoveStage::Both, at), Some(1_700_000_600_999));
        assert_eq!(of(minute, MoveStage::Draining, at), Some(1_700_000_060_999));
        assert_eq!(of(KeepBoth::UntilTold, MoveStage::Both, at), None);
        assert_eq!(of(KeepBoth::UntilTold, MoveStage::Draining, at), Some(1_700_000_060_999));
        let ahead = "2023-11-14T23:13:20Z";
        assert_eq!(of(minute, MoveStage::Draining, ahead), Some(1_700_000_061_999));
        assert_eq!(of(minute, MoveStage::Both, "soon"), None, "what cannot be read ends nothing");
    }
}
