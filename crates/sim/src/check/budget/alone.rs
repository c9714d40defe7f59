//! S6: what Azure does not take of one Service alone is not asked for again at once. A refused
//! write of several Services is made again in halves, to find the one at fault; a container load
//! balancer and its public IP are of one Service, and nothing is to be found there.

use super::{Call, End, Heard, Purpose};
use crate::stage::{Sent, Stage};
use arm::Method;

/// The shortest pause after a write that may succeed in a moment: the first step of a back-off.
const FIRST_MS: u64 = 1_000;
/// After one that Azure refuses for what it asks for, and will refuse until that changes.
const REFUSED_MS: u64 = 4_000;

/// The status for a request that is wrong.
const BAD_REQUEST: u16 = 400;

/// The last write of what is one Service's alone.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alone {
    /// How many edits of Services its writer had heard of.
    heard: u64,
    /// Not again before, unless another edit is heard of.
    not_before_ms: u64,
}

impl Stage {
    /// A write is about to be sent.
    pub(super) fn check_alone(&mut self, sent: &Sent, method: Method, target: &str) {
        if method != Method::Put || !self.is_of_one(target) {
            return;
        }
        let heard = self.processes[sent.process].edits.heard();
        let key = (sent.process, sent.epoch, target.to_owned());
        let now_ms = self.now_ms;
        let last = self.ledger.budget.alone.entry(key).or_default();
        let early_ms = last.not_before_ms.saturating_sub(now_ms);
        let same = last.heard == heard;
        *last = Alone { heard, not_before_ms: 0 };
        if same && early_ms > 0 {
            let text = format!("{target} is asked for again {early_ms} ms early, and is the same");
            self.fail("S6", text);
        }
    }

    /// An answer has been taken in. A write that was planned on another state says nothing of what
    /// it asks for.
    pub(super) fn learn_alone(&mut self, life: (usize, u64), call: &Call, heard: &Heard) {
        let failed = heard.end == End::Failed && !heard.stale;
        if call.purpose != Purpose::Write || !failed {
            return;
        }
        let pause_ms = if heard.status == BAD_REQUEST { REFUSED_MS } else { FIRST_MS };
        let key = (life.0, life.1, call.target.clone());
        let now_ms = self.now_ms;
        if let Some(last) = self.ledger.budget.alone.get_mut(&key) {
            last.not_before_ms = now_ms + pause_ms;
        }
    }

    /// Whether a resource is a container load balancer or the public IP of one: their names are the
    /// UID of their Service.
    fn is_of_one(&self, target: &str) -> bool {
        let name = target.rsplit('/').next().unwrap_or("");
        let name = name.strip_suffix("-pip").unwrap_or(name);
        self.truth.bases.get(name).is_some_and(|uid| uid.eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Layout, network, objects};
    use arm::{Answer, Condition, Reply, Request, Target};
    use control::CallId;

    /// The only process calls Azure, which answers with a status; the rule that the call breaks.
    fn call(stage: &mut Stage, method: Method, path: &str, status: u16) -> Option<&'static str> {
        stage.numbers.1 += 1;
        let (id, sent) = (CallId(stage.numbers.1), Sent::now(stage));
        let request = Request {
            method,
            target: Target::Path(path.to_owned()),
            condition: Condition::Absent,
            body: None,
            correlation: stage.numbers.1.to_string(),
        };
        stage.check_sending(&sent, id, &request);
        let reply = Reply { status, ..Reply::default() };
        stage.note_answer(&sent, id, &Answer::Reply(reply.into()));
        stage.learn_answer(0, id);
        stage.breach.take().map(|breach| breach.rule)
    }

    #[test]
    fn what_is_refused_of_one_service_has_a_pause_until_an_edit() {
        let mut stage = Stage::plain(Layout::Containers, 0);
        let uid = stage.create(objects::service("default", 0))["metadata"]["uid"].clone();
        let list = network("loadBalancers");
        let own = format!("{list}/{}", uid.as_str().unwrap_or(""));
        assert_eq!(call(&mut stage, Method::Get, &list, 200), None);
        let mut put = |path: &str, status: u16, passed_ms: u64| {
            stage.now_ms += passed_ms;
            call(&mut stage, Method::Put, path, status)
        };
        assert_eq!(put(&own, 400, 0), None);
        assert_eq!(put(&own, 400, 3_999), Some("S6"));
        assert_eq!(put(&own, 500, 4_000), None);
        assert_eq!(put(&own, 500, 999), Some("S6"));
        assert_eq!(put(&own, 412, 1_000), None);
        assert_eq!(put(&own, 400, 0), None, "another client was first");
        let many = format!("{list}/kubernetes");
        assert_eq!((put(&many, 400, 0), put(&many, 400, 0)), (None, None), "it may be searched");
        stage.processes[0].edits.note(&objects::service("default", 1), false);
        assert_eq!(call(&mut stage, Method::Put, &own, 400), None, "another edit was heard of");
    }
}
