//! Who edited a Kubernetes object last.

use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// The field managers that edited an object in the second of its last edit, from
/// `metadata.managedFields`; the status and Ballast's own writes do not count. Which of several was
/// the last the API server does not note: it sorts them by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Editors {
    /// Each `manager`: a program, as in `kubectl-edit` or `helm`. At least one, each once.
    pub managers: Vec<Arc<str>>,
    /// `time`, as the API server wrote it, in whole seconds.
    pub time: Arc<str>,
}

impl Editors {
    /// Those of them who edited the object since it was as `old`: whoever had edited it in the same
    /// second before is left out, unless all of them had.
    #[must_use]
    pub fn since(&self, old: &Self) -> Self {
        let is_new = |manager: &&Arc<str>| self.time != old.time || !old.managers.contains(manager);
        let new: Vec<Arc<str>> = self.managers.iter().filter(is_new).cloned().collect();
        let managers = if new.is_empty() { self.managers.clone() } else { new };
        Self { managers, time: Arc::clone(&self.time) }
    }
}

/// One, or several with "or" between them.
impl fmt::Display for Editors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.managers.join(" or "))
    }
}
