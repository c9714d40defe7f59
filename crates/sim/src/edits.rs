//! What owners have changed of Services, as far as a process was told.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Fields of `metadata` that controllers and the API server write.
const NOT_THE_OWNERS: [&str; 4] = ["finalizers", "generation", "managedFields", "resourceVersion"];

/// What a process was told of Services that their owners decide on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edits {
    /// Revisions and digests of the last of it, by UID.
    known: BTreeMap<String, (u64, u64)>,
    /// How often it has changed since the last step, by namespace and name.
    fresh: BTreeMap<String, u64>,
    /// How often it has changed at all.
    heard: u64,
}

impl Edits {
    /// A Service comes, by a list or by a watch, or is gone.
    pub fn note(&mut self, service: &Value, gone: bool) {
        let meta = &service["metadata"];
        let text = |key: &str| meta[key].as_str().unwrap_or("");
        let uid = text("uid").to_owned();
        if gone {
            self.known.remove(&uid);
            return;
        }
        // Answers, lists and watches are not in one order: what is older than what is known is no
        // news.
        let revision: u64 = text("resourceVersion").parse().unwrap_or(0);
        let known = self.known.get(&uid);
        if known.is_some_and(|(known, _)| *known > revision) {
            return;
        }
        let digest = owners_part(service);
        if self.known.insert(uid, (revision, digest)).map(|(_, known)| known) != Some(digest) {
            self.heard += 1;
            let name = format!("{}/{}", text("namespace"), text("name"));
            *self.fresh.entry(name).or_default() += 1;
        }
    }

    /// A list comes: Services that it lacks may be taken for gone.
    pub fn keep(&mut self, listed: &[Arc<Value>]) {
        let uids = listed.iter().filter_map(|service| service["metadata"]["uid"].as_str());
        let uids: BTreeSet<&str> = uids.collect();
        self.known.retain(|uid, _| uids.contains(uid.as_str()));
    }

    /// What has changed since this was last asked, and how often.
    pub fn take(&mut self) -> BTreeMap<String, u64> {
        std::mem::take(&mut self.fresh)
    }

    /// How many changes there were so far.
    pub fn heard(&self) -> u64 {
        self.heard
    }
}

/// A digest of what of a Service its owner decides on.
fn owners_part(service: &Value) -> u64 {
    let mut digest = DefaultHasher::new();
    service["spec"].hash(&mut digest);
    let meta = service["metadata"].as_object().into_iter().flatten();
    let own = meta.filter(|(key, _)| !NOT_THE_OWNERS.contains(&key.as_str()));
    own.for_each(|field| field.hash(&mut digest));
    digest.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_controllers_write_is_no_edit() {
        let mut edits = Edits::default();
        let mut service = json!({"metadata": {"uid": "u", "namespace": "n", "name": "s"},
            "spec": {"type": "LoadBalancer"}});
        let mut times = |service: &Value| {
            edits.note(service, false);
            edits.take().get("n/s").copied().unwrap_or(0)
        };
        assert_eq!((times(&service), times(&service)), (1, 0));
        service["metadata"]["finalizers"] = json!(["f"]);
        service["metadata"]["resourceVersion"] = json!("2");
        service["status"] = json!({"conditions": [{"type": "Some"}]});
        assert_eq!(times(&service), 0);
        service["metadata"]["labels"] = json!({"rank": "1"});
        assert_eq!(times(&service), 1);
        service["metadata"]["deletionTimestamp"] = json!("2023-11-14T22:13:20Z");
        assert_eq!((times(&service), times(&service)), (1, 0));
        edits.keep(&[]);
        edits.note(&service, false);
        assert_eq!(edits.heard(), 4, "a list has lacked it");
    }
}
