//! What pages looked at last, and what takes too long to be made for each of them.

use super::seen::Seen;
use super::{lock, views};
use crate::shared::SharedController;
use ::console::plan_view::PlanView;
use control::Controller;
use model::ServiceName;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How long a page waits for a controller that is busy planning, before it shows what was seen
/// last.
const PATIENCE: Duration = Duration::from_millis(100);
/// Between two tries to look.
const PACE: Duration = Duration::from_millis(5);

/// What was made last.
#[derive(Default)]
struct Made {
    seen: Option<Arc<Seen>>,
    plan: Option<(u64, Arc<PlanView>)>,
    /// Whether a plan is being followed to its end.
    planning: bool,
    /// Plans that were followed to their end.
    followed: u64,
}

/// What is kept between pages.
#[derive(Default)]
pub(super) struct Kept {
    made: Mutex<Made>,
    changed: Condvar,
    explanation: Mutex<Option<(u64, ServiceName, Arc<str>)>>,
}

impl Kept {
    /// Looks at the controller, or, while it is busy, at what was seen last.
    pub fn see(&self, controller: &SharedController, now_ms: u64) -> Arc<Seen> {
        let backends = controller.backends();
        let look = |controller: &Controller| Seen::of(controller, backends, now_ms);
        let mut left = PATIENCE;
        let seen = loop {
            if let Some(seen) = controller.try_look(look) {
                break seen;
            }
            if left.is_zero() {
                if let Some(seen) = &lock(&self.made).seen {
                    return Arc::clone(seen);
                }
                break controller.look(look);
            }
            std::thread::sleep(PACE);
            left = left.saturating_sub(PACE);
        };
        let seen = Arc::new(seen);
        lock(&self.made).seen = Some(Arc::clone(&seen));
        seen
    }

    /// What is to be written. It is worked out aside; where that takes long, the last plan is
    /// shown, and says that it is the last one.
    pub fn plan(self: &Arc<Self>, seen: &Arc<Seen>) -> Arc<PlanView> {
        let mut made = lock(&self.made);
        if let Some((at, plan)) = &made.plan
            && *at == seen.plans
        {
            return Arc::clone(plan);
        }
        if !made.planning {
            made.planning = true;
            let (kept, seen) = (Arc::clone(self), Arc::clone(seen));
            tokio::task::spawn_blocking(move || kept.follow(&seen));
        }
        let waited = self.changed.wait_timeout_while(made, PATIENCE, |made| made.planning);
        let (made, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match &made.plan {
            Some((at, plan)) if *at == seen.plans => Arc::clone(plan),
            older => {
                let plan = older.as_ref().map(|(_, plan)| PlanView::clone(plan));
                let mut plan = plan.unwrap_or_default();
                plan.unread.push("what changed a moment ago is still worked out".to_owned());
                Arc::new(plan)
            }
        }
    }

    fn follow(&self, seen: &Seen) {
        let plan = views::plan(seen.world.clone(), &seen.policy, seen);
        let mut made = lock(&self.made);
        made.plan = Some((seen.plans, Arc::new(plan)));
        made.planning = false;
        made.followed += 1;
        self.changed.notify_all();
    }

    /// Plans that were followed to their end: with each, pages have something new to show.
    pub fn followed(&self) -> u64 {
        lock(&self.made).followed
    }

    /// Where each field of a Service's resources comes from; one is worked out at a time.
    pub fn explanation(&self, seen: &Seen, name: &ServiceName) -> Option<Arc<str>> {
        let mut kept = lock(&self.explanation);
        if let Some((at, of, text)) = &*kept
            && (*at, of) == (seen.plans, name)
        {
            return Some(Arc::clone(text));
        }
        let text = views::explanation(seen.world.clone(), &seen.policy, name)?;
        let text: Arc<str> = Arc::from(text);
        *kept = Some((seen.plans, name.clone(), Arc::clone(&text)));
        Some(text)
    }
}
