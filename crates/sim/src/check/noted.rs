//! S4: a tag that an annotation sets on a public IP is in the ledger before (docs/operating.md,
//! "The ledger"). Nothing in Azure says who set a tag: one that is not recorded outlives its
//! annotation where the process ends before it notes it.

use super::form::text;
use crate::stage::{Sent, Stage};
use crate::tally::count;
use arm::{Condition, Method, Request};
use control::{CallId, KubernetesAnswer};
use model::azure::tag;
use model::kubernetes::Backends;
use plan::ask::annotation::full;
use serde_json::Value;
use std::collections::BTreeSet;

/// What processes have been shown of the ledger.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    /// Answers on their way that show a ledger of destinations.
    coming: BTreeSet<(usize, u64, CallId)>,
    /// Lives of processes that have been shown one.
    shown: BTreeSet<(usize, u64)>,
}

impl Noted {
    /// An answer of the API server's is on its way.
    pub(super) fn note(&mut self, call: (usize, u64, CallId), answer: &KubernetesAnswer) {
        if let KubernetesAnswer::Reply { status: 200..300, body: Some(body), .. } = answer
            && body["data"]["destinations"].is_string()
        {
            self.coming.insert(call);
        }
    }

    /// An answer has reached its process.
    pub(super) fn learn(&mut self, call: (usize, u64, CallId)) {
        if self.coming.remove(&call) {
            self.shown.insert((call.0, call.1));
        }
    }
}

impl Stage {
    /// A write is about to be sent, of this path in small letters. Nothing waits for a ledger that
    /// its sender has not been shown: there may be none. What stands on container load balancers is
    /// not recorded. A write that was planned on another state than stands by now is refused.
    pub(super) fn check_noted(&mut self, sent: &Sent, request: &Request, path: &str) {
        let tags_ip = request.method == Method::Put && path.contains("/publicipaddresses/");
        let moves = self.config.migration.is_some();
        let recorded = !moves && self.config.backends() == Backends::Nodes;
        let shown = self.ledger.noted.shown.contains(&(sent.process, sent.epoch));
        if !(tags_ip && recorded && shown) {
            return;
        }
        let standing = self.azure.shown_by_id(path);
        let is_newest = match (&request.condition, &standing) {
            (Condition::Unchanged(etag), Some(standing)) => standing["etag"] == etag.as_str(),
            (Condition::Absent, None) => true,
            _ => false,
        };
        let Some(body) = request.body.as_ref().filter(|_| is_newest) else { return };
        count(&mut self.tally.checks, "S4");
        let (body, annotated, noted) = (body.tree(), self.annotated(), self.noted(path));
        let stands = |key: &str, value: &Value| {
            let tags = standing.as_ref().and_then(|ip| ip["tags"].as_object());
            let mut tags = tags.into_iter().flatten();
            tags.any(|(known, is)| known.eq_ignore_ascii_case(key) && is == value)
        };
        let tags = body["tags"].as_object().into_iter().flatten();
        let set = tags.filter(|(key, value)| !stands(key, value));
        let mut set = set.map(|(key, value)| (key.to_lowercase(), text(value).to_owned()));
        let unnoted = set.find(|tag| annotated.contains(tag) && !noted.contains(&tag.0));
        if let Some((key, _)) = unnoted {
            let name = path.rsplit('/').next().unwrap_or("");
            self.fail("S4", format!("the tag {key} is set on {name}, and is not in the ledger"));
        }
    }

    /// Tags that annotations ask for, with their keys in small letters. A tag of the cloud config
    /// is not an annotation's.
    fn annotated(&self) -> BTreeSet<(String, String)> {
        let annotation = full("azure-pip-tags");
        let mut all = BTreeSet::new();
        for service in self.kubernetes.list("services", None) {
            let listed = text(&service["metadata"]["annotations"][&annotation]);
            let pairs = listed.split(',').filter_map(|entry| entry.split_once('='));
            let pairs = pairs.map(|(key, value)| (key.trim().to_lowercase(), value.trim()));
            let own = pairs.filter(|(key, _)| tag(&self.config.tags, key).is_none());
            all.extend(own.map(|(key, value)| (key, value.to_owned())));
        }
        all
    }

    /// Keys that the ledger has of a public IP.
    fn noted(&self, path: &str) -> BTreeSet<String> {
        let mut parts = path.split('/').skip_while(|part| *part != "resourcegroups");
        let group = parts.nth(1).unwrap_or("");
        let place = format!("{group}/{}", path.rsplit('/').next().unwrap_or(""));
        let mut keys = BTreeSet::new();
        for map in self.kubernetes.list("configmaps", None) {
            let tags: Value = serde_json::from_str(text(&map["data"]["tags"])).unwrap_or_default();
            let of_ip = tags[&place].as_array().into_iter().flatten();
            keys.extend(of_ip.map(|key| text(key).to_lowercase()));
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Layout, network, objects};
    use arm::{Body, Target};
    use serde_json::json;

    const IP: &str = "publicIPAddresses/kubernetes-a";

    /// A write that makes a public IP with a tag that the annotation of a Service asks for.
    fn write() -> (Request, String) {
        let id = network(IP);
        let body = json!({"tags": {"k8s-azure-service": "default/web-0", "Team": "red"}});
        let request = Request {
            method: Method::Put,
            target: Target::Path(id.clone()),
            condition: Condition::Absent,
            body: Some(Body::Tree(body)),
            correlation: String::new(),
        };
        (request, id.to_lowercase())
    }

    #[test]
    fn a_tag_of_an_annotation_is_noted_before_it_is_set() {
        let rule = |tags: &str, data: Value| {
            let mut stage = Stage::plain(Layout::Single, 0);
            let mut web = objects::service("default", 0);
            web["metadata"]["annotations"][full("azure-pip-tags")] = json!(tags);
            stage.create(web);
            stage.create(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
                "metadata": {"namespace": "kube-system", "name": "ballast-ledger"}}));
            let answer = KubernetesAnswer::Reply {
                status: 200,
                retry_after_ms: None,
                body: Some(json!({ "data": data })),
            };
            let call = (0, 0, CallId(1));
            stage.ledger.noted.note(call, &answer);
            stage.ledger.noted.learn(call);
            let ((request, path), sent) = (write(), Sent::now(&stage));
            stage.check_noted(&sent, &request, &path);
            stage.breach.map(|breach| breach.rule)
        };
        let whole = |tags: &str| json!({"destinations": "", "tags": tags});
        assert_eq!(rule("team=red", whole("")), Some("S4"));
        assert_eq!(rule("team=red", whole(r#"{"rg/kubernetes-a": ["stage"]}"#)), Some("S4"));
        assert_eq!(rule("team=red", whole(r#"{"rg/kubernetes-a": ["team"]}"#)), None);
        assert_eq!(rule("stage=two", whole("")), None, "no annotation asks for the tag");
        assert_eq!(rule("team=red", json!({"notes": "true"})), None, "there is no whole ledger");
    }
}
