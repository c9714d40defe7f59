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
use std::collections::{BTreeMap, BTreeSet};

/// What processes have been shown of the ledger.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    /// Answers on their way that show a ledger of destinations.
    coming: BTreeMap<(usize, u64, CallId), Page>,
    /// What each life of a process was shown last.
    shown: BTreeMap<Life, Page>,
    /// The newest version of which a process knows, and the first to know it: who wrote it.
    newest: Option<(String, Life)>,
}

/// A process and its life.
type Life = (usize, u64);

/// A ledger as an answer shows it.
#[derive(Clone, Debug)]
struct Page {
    /// How often the lease had changed hands.
    term: u64,
    /// Its tags, as it has them.
    tags: String,
}

impl Noted {
    /// An answer of the API server's is on its way, in this term.
    pub(super) fn note(
        &mut self,
        call: (usize, u64, CallId),
        answer: &KubernetesAnswer,
        term: u64,
    ) {
        if let KubernetesAnswer::Reply { status: 200..300, body: Some(body), .. } = answer
            && body["data"]["destinations"].is_string()
        {
            let revision = text(&body["metadata"]["resourceVersion"]);
            if self.newest.as_ref().is_none_or(|(newest, _)| newest != revision) {
                self.newest = Some((revision.to_owned(), (call.0, call.1)));
            }
            let tags = text(&body["data"]["tags"]).to_owned();
            self.coming.insert(call, Page { term, tags });
        }
    }

    /// An answer has reached its process.
    pub(super) fn learn(&mut self, call: (usize, u64, CallId)) {
        if let Some(page) = self.coming.remove(&call) {
            self.shown.insert((call.0, call.1), page);
        }
    }

    /// Tags as a process was shown them in this term, where another process wrote the ledger since:
    /// a former leader's write was on its way. The API server guards a version, and no lease: it
    /// takes such a write as long as the new leader has written nothing
    /// (docs/dev/decisions/0013-late-writes.md).
    fn before_late_write(&self, life: Life, term: u64) -> Option<&str> {
        let (_, writer) = self.newest.as_ref()?;
        let page = self.shown.get(&life).filter(|page| page.term == term)?;
        (*writer != life).then_some(&*page.tags)
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
        let life = (sent.process, sent.epoch);
        let shown = self.ledger.noted.shown.contains_key(&life);
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
        let (body, annotated, mut noted) = (body.tree(), self.annotated(), self.noted(path));
        let earlier = self.ledger.noted.before_late_write(life, self.lease.term);
        noted.extend(earlier.into_iter().flat_map(|tags| keys(tags, path)));
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
        let maps = self.kubernetes.list("configmaps", None);
        maps.iter().flat_map(|map| keys(text(&map["data"]["tags"]), path)).collect()
    }
}

/// Keys of a public IP in the tags of a ledger.
fn keys(tags: &str, path: &str) -> BTreeSet<String> {
    let mut parts = path.split('/').skip_while(|part| *part != "resourcegroups");
    let group = parts.nth(1).unwrap_or("");
    let place = format!("{group}/{}", path.rsplit('/').next().unwrap_or(""));
    let tags: Value = serde_json::from_str(tags).unwrap_or_default();
    let of_ip = tags[&place].as_array().into_iter().flatten();
    of_ip.map(|key| text(key).to_lowercase()).collect()
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
            stage.ledger.noted.note(call, &answer, 0);
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

    /// What a former leader's late write takes out counts for who was shown it in its own term.
    #[test]
    fn a_late_write_of_a_former_leader_is_no_fault_of_the_new_one() {
        let answer = |revision: &str, tags: &str| KubernetesAnswer::Reply {
            status: 200,
            retry_after_ms: None,
            body: Some(json!({"metadata": {"resourceVersion": revision},
                "data": {"destinations": "", "tags": tags}})),
        };
        let (old, new) = ((0, 0, CallId(1)), (1, 0, CallId(1)));
        let mut noted = Noted::default();
        let show = |noted: &mut Noted, call, revision: &str, tags: &str, term| {
            noted.note(call, &answer(revision, tags), term);
            noted.learn(call);
        };
        show(&mut noted, old, "1", "all", 0);
        show(&mut noted, new, "1", "all", 1);
        show(&mut noted, old, "2", "", 1);
        assert_eq!(noted.before_late_write((1, 0), 1), Some("all"));
        assert_eq!(noted.before_late_write((1, 0), 2), None, "it has to read it again");
        show(&mut noted, new, "3", "", 1);
        assert_eq!(noted.before_late_write((1, 0), 1), None, "it took them out itself");
    }
}
