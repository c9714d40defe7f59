//! Lists that have come take the place of what is held, as far as they are believed.

use crate::controller::Controller;
use crate::effect::NoticeKind;
use crate::reads::LIST_LAG_MS;
use crate::reads::keep::{self, Belief};
use crate::reads::read::{Coming, LeftOut};
use model::ResourceId;
use model::world::Need;
use observe::Applied;
use observe::azure::Gathering;
use std::collections::BTreeSet;

impl Controller {
    /// Stores a list that was asked for and came at these times. What we have written since it was
    /// asked for, or shortly before, is kept: a list may be older than our own write.
    pub(crate) fn store_read(
        &mut self,
        need: &Need,
        gathering: Gathering,
        times: (u64, u64),
        coming: Coming,
    ) -> Applied {
        let (sent_ms, now_ms) = times;
        if matches!(need, Need::GatewayServices | Need::GatewayLocations) {
            match self.store_table(need, gathering, times, coming) {
                Some((left_out, problems)) => {
                    problems.iter().for_each(|p| self.say_unread(need, p, now_ms));
                    self.doubt(need, left_out);
                }
                None => self.read_now(need.clone()),
            }
            return Applied::Changed;
        }
        let paged = match &coming {
            Coming::Whole => Vec::new(),
            Coming::Pages(_) => self.world.azure.shelf(need).map(|of| of.ids()).unwrap_or_default(),
        };
        let believed = |id: &ResourceId| match &coming {
            Coming::Whole => true,
            Coming::Pages(before) => before.resources.contains(id),
        };
        let paged = paged.into_iter().filter(|id| !believed(id)).map(|id| (id, Belief::Paged));
        let ids = self.lanes.all.iter().filter_map(|(id, lane)| {
            let since = |from: u64| lane.ended_ms.is_some_and(|at| at >= from);
            let belief = if lane.work.is_some() || since(sent_ms) {
                Belief::Written
            } else if since(sent_ms.saturating_sub(LIST_LAG_MS)) {
                Belief::Recent
            } else {
                return None;
            };
            Some((id.clone(), belief))
        });
        // What we wrote ourselves is known better than by pages: of two, the last counts.
        let held = keep::hold(&self.world.azure, need, paged.chain(ids));
        for (_, lane) in self.lanes.all.iter_mut().filter(|(id, _)| held.contains_key(id)) {
            lane.overruled |= lane.work.is_some();
        }
        let read = gathering.finish(&mut self.world.azure, need);
        let keep::Disbelieved { left_out, hidden } =
            keep::restore(&mut self.world.azure, need, held);
        for (_, lane) in self.lanes.all.iter_mut().filter(|(id, _)| hidden.contains(id)) {
            lane.hidden |= lane.work.is_some();
        }
        self.doubt(need, LeftOut { resources: left_out, ..LeftOut::default() });
        for problem in read.problems {
            self.say_unread(need, &problem.to_string(), now_ms);
        }
        read.applied
    }

    /// What a list of several pages lacked is looked for once more.
    fn doubt(&mut self, need: &Need, left_out: LeftOut) {
        if left_out != LeftOut::default() {
            self.read_now(need.clone());
        }
        self.reads.store.entry(need.clone()).or_default().left_out = left_out;
    }

    /// An item of a list that is no resource as we know it.
    pub(crate) fn say_unread(&mut self, need: &Need, problem: &str, now_ms: u64) {
        let text = format!("an item of {need} cannot be read: {problem}");
        self.say(now_ms, NoticeKind::Failed, &BTreeSet::new(), text, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::lanes::lane::Lane;
    use fixture::policy;

    /// A list of many pages takes minutes, and so does one that comes while the process stands
    /// still.
    #[test]
    fn the_end_of_a_write_is_known_while_a_list_from_before_it_is_read() {
        let knows = |asked_ms: Option<u64>| {
            let mut controller = Controller::new(policy(), Options::default());
            let id = policy().balancer_id("kubernetes");
            let lane = Lane { ended_ms: Some(5_000), ..Lane::default() };
            controller.lanes.all.insert(id.clone(), lane);
            if let Some(asked_ms) = asked_ms {
                let request = observe::need::request(&Need::Balancers, &policy(), "correlation");
                let read = controller.reads.store.entry(Need::Balancers).or_default();
                read.begin(&request, asked_ms);
            }
            controller.clear_lanes(&[], 600_000);
            controller.lanes.all.contains_key(&id)
        };
        assert!(knows(Some(4_000)));
        assert!(knows(Some(5_000 + LIST_LAG_MS)), "it may lack what was just made");
        assert!(!knows(Some(5_001 + LIST_LAG_MS)));
        assert!(!knows(None));
    }
}
