//! Names of Services that are gone are kept as long as anything may bear them.

use crate::controller::Controller;
use std::sync::Arc;

impl Controller {
    /// No Service has these names any more.
    pub(crate) fn leave_names(&mut self, names: [Arc<str>; 3], now_ms: u64) {
        for name in names {
            self.reads.left.leave(Arc::clone(&name), now_ms);
            self.world.abandoned.insert(name);
        }
    }

    /// A Service has these names, or they are for an operator to decide on.
    pub(crate) fn retake_names(&mut self, names: impl IntoIterator<Item = Arc<str>>) {
        for name in names {
            self.reads.left.forget(&name);
            self.world.abandoned.remove(&name);
        }
    }

    /// Forgets names that nothing bears. Another look is due when all lists were read again.
    pub(crate) fn forget_names(&mut self) {
        let sent = self.lanes.all.values().filter_map(|lane| Some(lane.work.as_ref()?.sent_ms));
        let old = self.reads.left.certain(&self.reads.store, sent.min());
        if old.is_empty() {
            return;
        }
        let borne = plan::own::borne::names(&self.world);
        let free: Vec<Arc<str>> = old.into_iter().filter(|name| !borne.contains(&**name)).collect();
        for name in free {
            self.reads.left.forget(&name);
            self.world.abandoned.remove(&name);
        }
    }
}
