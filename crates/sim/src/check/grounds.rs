//! S5: who leads writes on what it has read since it leads. What it read as a standby may be old by
//! any time, and not every write has an ETag to say so. Where Azure checks one, a write says what
//! it was planned on.

use super::budget::Call;
use crate::stage::{Sent, Stage};
use arm::{Condition, Method, Request};
use std::collections::BTreeMap;

/// A life of a process.
type Life = (usize, u64);

/// What each life of a process has read, and since when it leads.
#[derive(Clone, Debug, Default)]
pub struct Grounds {
    /// When it was last told that it leads; one that has never been told leads from its start.
    since_ms: BTreeMap<Life, u64>,
    /// When the last read of a path that was answered had been sent.
    read_ms: BTreeMap<Life, BTreeMap<String, u64>>,
}

impl Grounds {
    /// A life of a process leads from now on.
    pub(crate) fn begin(&mut self, life: Life, now_ms: u64) {
        self.since_ms.insert(life, now_ms);
    }

    /// A read was answered.
    pub(super) fn learn(&mut self, life: Life, call: &Call) {
        if call.method == Method::Get {
            let read_ms = self.read_ms.entry(life).or_default().entry(call.path.clone());
            let read_ms = read_ms.or_insert(0);
            *read_ms = (*read_ms).max(call.sent_ms);
        }
    }

    /// Whether a resource, or the list that it stands in, was read since a life leads.
    fn bear(&self, life: Life, path: &str) -> bool {
        let since_ms = self.since_ms.get(&life).copied().unwrap_or(0);
        self.is_read_since(life, path, since_ms)
    }

    /// Whether a life was answered a read of a resource, or of a list that it stands in, that it
    /// had sent at a time or later.
    pub(super) fn is_read_since(&self, life: Life, path: &str, since_ms: u64) -> bool {
        let Some(read) = self.read_ms.get(&life) else { return false };
        let is_read = |path: &str| read.get(path).is_some_and(|at| *at >= since_ms);
        let table = path.rsplit_once("/update").filter(|_| path.contains("/servicegateways/"));
        match table {
            Some((gateway, table)) => is_read(&format!("{gateway}/{table}")),
            None => path.match_indices('/').any(|(at, _)| is_read(&path[..at])) || is_read(path),
        }
    }
}

impl Stage {
    /// A write is about to be sent.
    pub(super) fn check_grounds(&mut self, sent: &Sent, path: &str) {
        if !self.ledger.grounds.bear((sent.process, sent.epoch), path) {
            let number = sent.process;
            let text = format!("process {number} writes {path}, which it has not read as leader");
            self.fail("S5", text);
        }
    }

    /// A PUT carries the ETag of what was read, or says that nothing may stand yet: Azure refuses
    /// it then where another has written between. Of Private Link Services and the models of
    /// flexible scale sets it is not known to check one (docs/dev/azure-facts.md).
    pub(super) fn check_condition(&mut self, sent: &Sent, request: &Request, path: &str) {
        let free = request.method != Method::Put || path.contains("/privatelinkservices/");
        if free || request.condition != Condition::None {
            return;
        }
        let standing = self.azure.shown_by_id(path);
        let flexible = standing.is_some_and(|s| s["properties"]["orchestrationMode"] == "Flexible");
        if !flexible {
            let number = sent.process;
            let text = format!("process {number} writes {path} whatever stands there by now");
            self.fail("S5", text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_bears_what_is_below_it_while_it_is_of_this_term() {
        let (life, list) = ((0, 1), "/groups/g/loadbalancers");
        let mut grounds = Grounds::default();
        assert!(!grounds.bear(life, "/groups/g/loadbalancers/one"));
        grounds.read_ms.entry(life).or_default().insert(list.to_owned(), 5);
        assert!(grounds.bear(life, "/groups/g/loadbalancers/one"));
        assert!(!grounds.bear(life, "/groups/g/loadbalancersx/one"));
        assert!(!grounds.bear((0, 2), "/groups/g/loadbalancers/one"));
        grounds.begin(life, 6);
        assert!(!grounds.bear(life, "/groups/g/loadbalancers/one"));
    }

    #[test]
    fn a_table_bears_its_own_update() {
        let life = (0, 1);
        let mut grounds = Grounds::default();
        let services = "/servicegateways/s/services".to_owned();
        grounds.read_ms.entry(life).or_default().insert(services, 5);
        assert!(grounds.bear(life, "/servicegateways/s/updateservices"));
        assert!(!grounds.bear(life, "/servicegateways/s/updateaddresslocations"));
    }
}
