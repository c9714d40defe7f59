//! S5: a write goes by what its sender knows of its own writes. Azure gives a resource another ETag
//! with each change, and none comes back: who has heard the end of a write knows that the ETag from
//! before it does not stand any more, whatever a list shows that was asked for earlier.

use super::azure::Write;
use crate::stage::{Sent, Stage};
use crate::tally::count;
use arm::{Condition, Request};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A process, one life of it, and the id of a write.
type Key = (usize, u64, String);

/// ETags that writes have replaced.
#[derive(Clone, Debug, Default)]
pub(crate) struct Etags {
    /// The path and the ETag from before, of each write whose end its sender has not heard.
    replaced: BTreeMap<Key, (String, String)>,
    /// What each life of a process knows to be replaced: the path and the ETag.
    known: BTreeSet<(usize, u64, String, String)>,
}

impl Etags {
    /// A process hears the end of what has this id. Where that leaves open what a write has come
    /// to, the read of the resource that follows bears the same id, and ends it.
    pub(super) fn learn(&mut self, write: &Key) {
        if let Some((path, etag)) = self.replaced.remove(write) {
            self.known.insert((write.0, write.1, path, etag));
        }
    }
}

fn etag(resource: Option<&Value>) -> Option<&str> {
    resource?["etag"].as_str()
}

impl Stage {
    /// A write has taken effect.
    pub(super) fn note_replaced(&mut self, write: &Write<'_>, request: &Request) {
        let (was, is) = (etag(write.before), etag(write.after));
        if let Some(was) = was.filter(|_| was != is) {
            let key = (write.sent.process, write.sent.epoch, request.correlation.clone());
            let replaced = (write.path.to_lowercase(), was.to_owned());
            self.ledger.etags.replaced.insert(key, replaced);
        }
    }

    /// A write is about to be sent, of this path in small letters.
    pub(super) fn check_etag(&mut self, sent: &Sent, request: &Request, path: &str) {
        let Condition::Unchanged(etag) = &request.condition else { return };
        count(&mut self.tally.checks, "S5");
        let known = (sent.process, sent.epoch, path.to_owned(), etag.as_str().to_owned());
        if self.ledger.etags.known.contains(&known) {
            let number = sent.process;
            let text = format!("process {number} writes {path} on what it has replaced itself");
            self.fail("S5", text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Layout, network, objects};
    use arm::{Method, Target};
    use kube_emulator::{ObjectRef, Part, Patch};
    use model::Etag;
    use serde_json::json;

    #[test]
    fn who_writes_on_what_it_has_replaced_itself_is_found() {
        let mut stage = Stage::plain(Layout::Single, 1_500);
        stage.create(objects::service("default", 0));
        assert!(stage.settle(3_600_000));
        let id = network("loadBalancers/kubernetes");
        let standing = |stage: &Stage| {
            let balancer = stage.azure.shown_by_id(&id).expect("it stands");
            balancer["etag"].as_str().expect("it has an ETag").to_owned()
        };
        let old = standing(&stage);
        let key = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";
        let patch = Patch::Merge(json!({"metadata": {"annotations": {(key): "10"}}}));
        let object = ObjectRef::new("services", "default", "web-0");
        stage.kubernetes.patch(object, Part::Main, &patch, stage.now_ms).expect("an edit");
        stage.follow();
        assert!(stage.settle(3_600_000));
        let new = standing(&stage);
        assert_ne!(old, new);
        for (etag, rule) in [(new, None), (old, Some("S5"))] {
            let request = Request {
                method: Method::Put,
                target: Target::Path(id.clone()),
                condition: Condition::Unchanged(Etag::new(etag)),
                body: None,
                correlation: "another".to_owned(),
            };
            let sent = Sent::now(&stage);
            stage.check_etag(&sent, &request, &id.to_lowercase());
            assert_eq!(stage.breach.as_ref().map(|breach| breach.rule), rule);
        }
    }
}
