//! L4: Events are about the object that they name, and tell what is so when they are posted
//! (docs/operating.md, "Reasons of Events"). An Event that gets lost is not posted again: what is
//! judged is what was sent.

use super::api::has_finalizer;
use super::form::{seconds, text, told};
use super::tenants::is_refused;
use crate::scene::OTHER_CLASS;
use crate::stage::{Rightful, Sent, Stage};
use crate::tally::count;
use control::KubernetesCall;
use kube_emulator::ObjectRef;
use model::kubernetes::SERVICE_FINALIZER;
use serde_json::Value;
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const ENSURED: &str = "EnsuredLoadBalancer";
const DELETED: &str = "DeletedLoadBalancer";
/// How often one life of a process may tell an object the same within a minute: an owner who goes
/// back to an earlier wish is told again what is wrong with it.
const ALIKE_A_MINUTE: usize = 12;
const MINUTE_MS: u64 = 60_000;

/// What each life of a process has told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// When it told an object something, by the text with the object's UID before it.
    lately_ms: BTreeMap<(usize, u64, String), VecDeque<u64>>,
    /// UIDs of objects that it has warned.
    warned: BTreeSet<(usize, u64, String)>,
    /// When it was last told that it leads.
    led_ms: BTreeMap<(usize, u64), u64>,
}

impl Told {
    /// A life of a process leads from now on.
    pub(crate) fn begin(&mut self, life: (usize, u64), now_ms: u64) {
        self.led_ms.insert(life, now_ms);
    }

    /// Takes note of an Event; how often the same was told within the last minute.
    fn note(&mut self, life: (usize, u64), event: &Value, now_ms: u64) -> usize {
        let [uid, kind, reason, message] =
            [&event["involvedObject"]["uid"], &event["type"], &event["reason"], &event["message"]]
                .map(text);
        if kind == "Warning" {
            self.warned.insert((life.0, life.1, uid.to_owned()));
        }
        let key = (life.0, life.1, format!("{uid} {kind} {reason} {message}"));
        let times = self.lately_ms.entry(key).or_default();
        times.push_back(now_ms);
        while times.front().is_some_and(|at| at + MINUTE_MS < now_ms) {
            times.pop_front();
        }
        times.len()
    }
}

impl Stage {
    /// A call to the API server is about to be sent.
    pub(crate) fn check_event(&mut self, sent: &Sent, request: &KubernetesCall) {
        let event = &request.body;
        if request.method != "POST" || event["kind"] != "Event" {
            return;
        }
        count(&mut self.tally.checks, "L4");
        let times = self.ledger.told.note((sent.process, sent.epoch), event, self.now_ms);
        let again = (times > ALIKE_A_MINUTE).then_some("says the same again and again");
        let wrong = malformed(request).or(again).or_else(|| self.untrue_event(sent, event));
        if let Some(wrong) = wrong {
            let about = &event["involvedObject"];
            let (kind, name) = (text(&about["kind"]), text(&about["name"]));
            let (reason, message) = (text(&event["reason"]), text(&event["message"]));
            self.fail("L4", format!("an Event of {kind} {name} {wrong}: {reason}: {message}"));
        }
    }

    /// What an Event says that is not so. Who does not know the Service's last edit tells what was
    /// so before it.
    fn untrue_event(&self, sent: &Sent, event: &Value) -> Option<&'static str> {
        let about = &event["involvedObject"];
        if about["kind"] != "Service" {
            return None;
        }
        let (namespace, name) = (text(&about["namespace"]), text(&about["name"]));
        let uid = text(&about["uid"]);
        let known = self.truth.services.get(uid);
        let Some(known) = known.filter(|known| known.name == format!("{namespace}/{name}")) else {
            return Some("is about no Service that there has ever been");
        };
        if known.edited_at > sent.services || sent.rightful == Rightful::No {
            return None;
        }
        let service = self.kubernetes.get(ObjectRef::new("services", namespace, name)).ok()?;
        if service["metadata"]["uid"] != uid {
            return None;
        }
        let ours = service["spec"]["loadBalancerClass"] != OTHER_CLASS;
        match text(&event["reason"]) {
            ENSURED if told(&service).next().is_none() && !has_closed_port(&service) => {
                Some("says that all is there, and its status tells no address")
            }
            DELETED if ours && has_finalizer(&service, SERVICE_FINALIZER) => {
                Some("says that nothing is left, and its finalizer is")
            }
            _ => None,
        }
    }

    /// L4 at the end: a Service that is refused, and that its process has not warned.
    pub(crate) fn unwarned(&self) -> Option<String> {
        // Evaluated late: it is expensive, and nearly always each refused Service has its Event.
        let refused = LazyCell::new(|| self.refused());
        let services = self.kubernetes.list("services", None);
        let mut silent = services.iter().filter(|s| is_refused(s) && !self.has_warned(s));
        silent.find_map(|service| {
            let meta = &service["metadata"];
            let name = format!("{}/{}", text(&meta["namespace"]), text(&meta["name"]));
            let judged = refused.contains(&name) && !self.is_name_stripped(&name);
            judged.then(|| format!("{name} is refused, and no Event says so"))
        })
    }

    /// L4: that Azure refuses a Service for minutes is told by its condition and by an Event.
    pub(crate) fn untold_refusal(&self, name: &str) -> Option<String> {
        let (namespace, own) = name.split_once('/')?;
        let service = self.kubernetes.get(ObjectRef::new("services", namespace, own)).ok()?;
        if !is_refused(&service) {
            return Some(format!("Azure refuses {name}, and its condition does not say so"));
        }
        (!self.has_warned(&service)).then(|| format!("Azure refuses {name}, and no Event says so"))
    }

    /// Whether the process has warned a Service. Each life of a process warns of all that is wrong;
    /// of two processes the leader takes for said what it saw while the other one led, so that a
    /// Service which came before counts as warned.
    pub(super) fn has_warned(&self, service: &Value) -> bool {
        let uid = text(&service["metadata"]["uid"]);
        let told = &self.ledger.told;
        if let [process] = &self.processes[..] {
            return told.warned.contains(&(0, process.epoch, uid.to_owned()));
        }
        let led_ms = self.lease.holder.and_then(|life| told.led_ms.get(&life));
        let made_ms = seconds(text(&service["metadata"]["creationTimestamp"]));
        let made_ms = made_ms.map_or(0, |seconds| seconds * 1_000);
        led_ms.is_none_or(|led_ms| made_ms <= *led_ms)
            || told.warned.iter().any(|(_, _, warned)| warned == uid)
    }
}

/// What is wrong with the form of an Event: the API server takes those alone that stand in the
/// namespace of their object.
fn malformed(request: &KubernetesCall) -> Option<&'static str> {
    let event = &request.body;
    let namespace = text(&event["involvedObject"]["namespace"]);
    let path = format!("/api/v1/namespaces/{namespace}/events");
    if request.path != path || text(&event["metadata"]["namespace"]) != namespace {
        return Some("is not in its namespace");
    }
    if !matches!(text(&event["type"]), "Normal" | "Warning") {
        return Some("is neither Normal nor a Warning");
    }
    let silent = text(&event["reason"]).is_empty() || text(&event["message"]).is_empty();
    silent.then_some("has no reason or no message")
}

/// Whether a port of a Service is to have no rule: where all are so, nothing leads to an address.
fn has_closed_port(service: &Value) -> bool {
    let annotations = service["metadata"]["annotations"].as_object();
    annotations.is_some_and(|all| all.keys().any(|key| key.ends_with("_no_lb_rule")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Layout, objects};
    use serde_json::json;

    fn event(uid: &Value, name: &str, reason: &str) -> KubernetesCall {
        let body = json!({"kind": "Event", "metadata": {"namespace": "default"},
            "involvedObject": {"kind": "Service", "namespace": "default", "name": name,
                "uid": uid},
            "type": "Normal", "reason": reason, "message": "so it is"});
        let path = "/api/v1/namespaces/default/events".to_owned();
        KubernetesCall { method: "POST", path, content_type: "application/json", body }
    }

    #[test]
    fn an_event_tells_what_is_so_of_the_service_that_it_names() {
        let mut stage = Stage::plain(Layout::Single, 20_000);
        let uid = stage.create(objects::service("default", 0))["metadata"]["uid"].clone();
        let wrong = |stage: &mut Stage, posted: &KubernetesCall, services: u64| {
            let sent = Sent { services, ..Sent::now(stage) };
            stage.check_event(&sent, posted);
            stage.breach.take().is_some()
        };
        let known = stage.kubernetes.revision();
        let ensured = event(&uid, "web-0", ENSURED);
        assert!(wrong(&mut stage, &ensured, known), "it has no address yet");
        assert!(!wrong(&mut stage, &ensured, 0), "the sender may not know its last edit");
        assert!(wrong(&mut stage, &event(&uid, "web-1", "Some"), known), "another name");
        assert!(wrong(&mut stage, &event(&json!("x"), "web-0", "Some"), known), "another UID");
        let mut astray = event(&uid, "web-0", "Some");
        astray.path = "/api/v1/namespaces/team/events".to_owned();
        assert!(wrong(&mut stage, &astray, known), "another namespace");
        assert!(stage.settle(86_400_000));
        let known = stage.kubernetes.revision();
        assert!(!wrong(&mut stage, &ensured, known));
        assert!(wrong(&mut stage, &event(&uid, "web-0", DELETED), known), "it is claimed");
        let other = event(&uid, "web-0", "Other");
        let often = (0..=ALIKE_A_MINUTE).filter(|_| wrong(&mut stage, &other, known)).count();
        assert_eq!(often, 1, "the last one is one too many");
    }

    #[test]
    fn a_refusal_is_told_by_an_event() {
        let mut stage = Stage::plain(Layout::Single, 20_000);
        let mut web = objects::service("default", 0);
        let key = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";
        web["metadata"]["annotations"][key] = json!("soon");
        stage.create(web);
        assert!(stage.settle(86_400_000));
        assert_eq!(stage.unwarned(), None);
        stage.ledger.told = Told::default();
        assert_eq!(
            stage.unwarned().as_deref(),
            Some("default/web-0 is refused, and no Event says so")
        );
    }
}
