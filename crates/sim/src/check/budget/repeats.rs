//! S6: nothing is written again that needs no writing.

use crate::stage::{Sent, Stage};
use arm::{Method, Request};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Writes of one resource in a row that ask for the same, and that Azure acknowledges, before there
/// are pauses: one may have been lost, another overtaken by an edit.
const ALIKE: u32 = 3;
/// The shortest pause from then on.
const SHORTEST_MS: u64 = 1_000;

/// What a resource was last written with.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    /// A digest of the body.
    body: u64,
    /// How many writes in a row had it.
    pub times: u32,
    /// When it was last known what has become of it.
    pub ended_ms: u64,
    /// When people had last edited it.
    edited_ms: Option<u64>,
}

impl Stage {
    /// S6: what Azure acknowledges and does not keep is not written again without a pause.
    pub(super) fn check_repeats(&mut self, sent: &Sent, request: &Request, target: &str) {
        let key = (sent.process, sent.epoch, target.to_owned());
        // What is deleted between is made anew.
        if request.method == Method::Delete {
            self.ledger.budget.asked.remove(&key);
        }
        let Some(body) = request.body.as_ref().filter(|_| request.method == Method::Put) else {
            return;
        };
        let mut digest = DefaultHasher::new();
        body.tree().hash(&mut digest);
        let body = digest.finish();
        let now_ms = self.now_ms;
        let edited_ms = self.ledger.touched.edited_ms(target);
        let asked = self.ledger.budget.asked.entry(key).or_default();
        // What people have edited since is put right, which is no reason to wait.
        if asked.body != body || asked.edited_ms != edited_ms {
            *asked = Asked { body, times: 0, ended_ms: now_ms, edited_ms };
        }
        asked.times += 1;
        if asked.times > ALIKE && now_ms < asked.ended_ms + SHORTEST_MS {
            let times = asked.times;
            self.fail("S6", format!("{target} is written {times} times in a row with the same"));
        }
    }

    /// S6: what is known to be gone is not deleted again, unless a read has shown it since: lists
    /// may be old.
    pub(super) fn check_deleted(&mut self, sent: &Sent, method: Method, target: &str) {
        let life = (sent.process, sent.epoch);
        let key = (life.0, life.1, target.to_owned());
        if method != Method::Delete {
            self.ledger.budget.deleted.remove(&key);
            return;
        }
        let known = self.ledger.budget.deleted.insert(key, None).flatten();
        let again = known.is_some_and(|at| !self.ledger.grounds.is_read_since(life, target, at));
        if again {
            self.fail("S6", format!("{target} is deleted again, which is known to be gone"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Layout;
    use arm::{Answer, Condition, Reply, Target};
    use control::CallId;

    const LIST: &str = "/subscriptions/s/resourcegroups/rg/providers/microsoft.network/publicips";

    /// The only process calls Azure, which says that all is done; a moment passes.
    fn call(stage: &mut Stage, number: u64, method: Method, path: &str) {
        let (id, sent) = (CallId(number), Sent::now(stage));
        let request = Request {
            method,
            target: Target::Path(format!("{path}?api-version=1")),
            condition: Condition::None,
            body: None,
            correlation: number.to_string(),
        };
        stage.check_sending(&sent, id, &request);
        stage.note_answer(
            &sent,
            id,
            &Answer::Reply(Reply { status: 200, ..Reply::default() }.into()),
        );
        stage.learn_answer(0, id);
        stage.now_ms += 10;
    }

    #[test]
    fn what_is_known_to_be_gone_is_deleted_again_once_a_list_has_shown_it() {
        let mut stage = Stage::plain(Layout::Single, 1_500);
        let one = format!("{LIST}/one");
        call(&mut stage, 1, Method::Get, LIST);
        call(&mut stage, 2, Method::Delete, &one);
        call(&mut stage, 3, Method::Get, LIST);
        call(&mut stage, 4, Method::Delete, &one);
        assert_eq!(stage.breach, None);
        call(&mut stage, 5, Method::Delete, &one);
        let text = stage.breach.take().map(|breach| breach.text).unwrap_or_default();
        assert!(text.ends_with("is deleted again, which is known to be gone"), "{text}");
    }
}
