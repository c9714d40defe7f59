//! L4: what our readiness gate says of a Pod is so when it is sent (docs/readiness-gates.md).
//!
//! A gate that opens too early costs a rolling update Pods in rotation, and so does a gate that
//! shuts while its Pod is in use.

use super::form::{conditions, seconds};
use super::moves::home;
use super::tenants::is_refused;
use crate::entries::entries;
use crate::scene;
use crate::stage::{Sent, Stage};
use crate::tally::count;
use crate::truth::ServiceTruth;
use crate::weather::Weather;
use control::{KubernetesCall, Options};
use model::kubernetes::{Backends, GateReason, READINESS_GATE};
use model::world::Kind;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Stage {
    /// A call to the API server is about to be sent. Judged where its sender knows the Pod as it
    /// is: a watch lags.
    pub(crate) fn check_gate(&mut self, sent: &Sent, request: &KubernetesCall) {
        let mut said = conditions(&request.body);
        let Some(gate) = said.find(|condition| condition["type"] == READINESS_GATE) else { return };
        let Some(pod) = self.known_pod(sent, request) else { return };
        count(&mut self.tally.checks, "L4");
        let reason = gate["reason"].as_str().unwrap_or("");
        let wrong = match gate["status"] == "True" {
            true => self.opens_early(sent, &pod, reason),
            false => is_ready_but_for_ours(&pod).then_some("shuts, and all else is ready"),
        };
        if let Some(wrong) = wrong {
            let name = pod["metadata"]["name"].as_str().unwrap_or("");
            self.fail("L4", format!("our gate of Pod {name} {wrong} ({reason})"));
        }
    }

    /// The Pod that a call is about, if the sender has seen its last version.
    fn known_pod(&self, sent: &Sent, request: &KubernetesCall) -> Option<Arc<Value>> {
        let pod = self.object_at(&request.path)?;
        let meta = &pod["metadata"];
        let version: u64 = meta["resourceVersion"].as_str()?.parse().ok()?;
        let watch = self.processes[sent.process].streams.get(&Kind::GatedPods)?;
        let known = meta["uid"] == request.body["metadata"]["uid"] && version <= watch.revision;
        known.then_some(pod)
    }

    /// Why a gate must not open yet.
    fn opens_early(&self, sent: &Sent, pod: &Value, reason: &str) -> Option<&'static str> {
        // Over nodes there is nothing to wait for, however the Pod is. While Services move, others
        // may have container load balancers.
        if reason == GateReason::NodeBackends.name() {
            let awaited =
                self.knows_tables(sent, pod) && self.is_awaited(sent, pod, Backends::Pods);
            return awaited.then_some("opens, and a container load balancer is to lead to the Pod");
        }
        if !is_ready_but_for_ours(pod) {
            return Some("opens, and the Pod is not ready for another reason");
        }
        let is = |other: GateReason| reason == other.name();
        if is(GateReason::TimedOut) && self.waited_ms(pod) < Options::default().gate_timeout_ms {
            return Some("opens before the time allowed is over");
        }
        if !self.knows_tables(sent, pod) {
            return None;
        }
        if is(GateReason::TimedOut) && self.is_unselected(sent, pod) {
            return Some("opens late, and there was nothing to wait for");
        }
        if is(GateReason::Programmed) && !self.is_listed(pod) {
            return Some("opens, and the Service Gateway does not list the Pod");
        }
        let kinds = [Backends::Pods, Backends::Nodes];
        let selected = is(GateReason::NoService)
            && kinds.into_iter().any(|backends| self.is_awaited(sent, pod, backends));
        selected.then_some("opens, and a Service that has a load balancer selects the Pod")
    }

    /// Whether no Service selects a Pod, neither now nor in the Services as the sender last saw
    /// them: its body may be as old as its last failed call.
    fn is_unselected(&self, sent: &Sent, pod: &Value) -> bool {
        let mut known = self.truth.services.values();
        let knows = |s: &ServiceTruth| s.edited_at.max(s.gone_at.unwrap_or(0)) <= sent.services;
        matches!(self.weather, Weather::Fair)
            && known.all(knows)
            && !self.kubernetes.list("services", None).iter().any(|service| {
                let same = service["metadata"]["namespace"] == pod["metadata"]["namespace"];
                same && selects(service, pod)
            })
    }

    /// For how long a Pod has been there, at most a second too long: times are whole seconds.
    fn waited_ms(&self, pod: &Value) -> u64 {
        let made = pod["metadata"]["creationTimestamp"].as_str().and_then(seconds).unwrap_or(0);
        self.now_ms.saturating_sub(made * 1_000)
    }

    /// Whether a sender knows what the Service Gateway's tables say of a Pod: who wrote the
    /// addresses last knows what it wrote, while no hand has edited that, and no list is older.
    fn knows_tables(&self, sent: &Sent, pod: &Value) -> bool {
        self.ledger.tables_by == Some((sent.process, sent.epoch))
            && !self.is_late(sent)
            && !self.is_edited(pod)
            && self.azure.options().list_lag_ms == 0
    }

    /// Whether people have lately edited rows of a Pod's addresses, or what a Service has that
    /// selects the Pod.
    fn is_edited(&self, pod: &Value) -> bool {
        let listed = addresses(pod).into_iter().any(|address| self.was_row_touched_at(address));
        let services = self.kubernetes.list("services", None);
        listed
            || services.iter().any(|service| {
                let same = service["metadata"]["namespace"] == pod["metadata"]["namespace"];
                let uid = service["metadata"]["uid"].as_str().unwrap_or("");
                same && selects(service, pod) && self.was_service_touched(uid)
            })
    }

    /// Whether the Service Gateway lists an address of a Pod for a Service.
    fn is_listed(&self, pod: &Value) -> bool {
        let Some(tables) = self.azure.gateway(&scene::gateway()) else { return false };
        let own = addresses(pod);
        entries(&tables)
            .iter()
            .any(|row| own.contains(&*row.1) && self.truth.owner_of(&row.2).is_some())
    }

    /// Whether a Service that the gateway has, that the sender knows as it is, and whose load
    /// balancer leads to these in the end, selects a Pod that has an address of its family.
    fn is_awaited(&self, sent: &Sent, pod: &Value, backends: Backends) -> bool {
        let Some(tables) = self.azure.gateway(&scene::gateway()) else { return false };
        let namespace = &pod["metadata"]["namespace"];
        let own = addresses(pod);
        self.kubernetes.list("services", None).iter().any(|service| {
            let uid = service["metadata"]["uid"].as_str().unwrap_or("");
            let known = self.truth.services.get(uid);
            let ipv6 = service["spec"]["ipFamilies"][0] == "IPv6";
            let home = |name: &str| home(&self.config, name) == backends;
            let knows = |s: &ServiceTruth| s.wants && s.edited_at <= sent.services;
            known.is_some_and(|known| knows(known) && home(&known.name))
                && service["metadata"]["namespace"] == *namespace
                && tables["services"].get(uid.to_lowercase()).is_some()
                && selects(service, pod)
                && own.iter().any(|address| address.contains(':') == ipv6)
                && !is_refused(service)
        })
    }
}

fn addresses(pod: &Value) -> BTreeSet<&str> {
    let listed = pod["status"]["podIPs"].as_array().into_iter().flatten();
    listed.filter_map(|entry| entry["ip"].as_str()).collect()
}

/// Whether the containers of a Pod and all its other gates are ready.
pub(crate) fn is_ready_but_for_ours(pod: &Value) -> bool {
    let holds = |kind: &str| conditions(pod).any(|c| c["type"] == kind && c["status"] == "True");
    let gates = pod["spec"]["readinessGates"].as_array().into_iter().flatten();
    let mut others = gates.filter_map(|gate| gate["conditionType"].as_str());
    holds("ContainersReady") && others.all(|gate| gate == READINESS_GATE || holds(gate))
}

/// Whether a Service selects a Pod; without a selector it selects none.
fn selects(service: &Value, pod: &Value) -> bool {
    let labels = &pod["metadata"]["labels"];
    let selector = service["spec"]["selector"].as_object();
    selector.is_some_and(|all| !all.is_empty() && all.iter().all(|(k, v)| labels[k] == *v))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Layout, Scene, objects};
    use crate::swarm::Pace;
    use kube_emulator::{ObjectRef, Part, Patch};
    use serde_json::json;

    /// A Pod with our gate, whose containers are ready or not.
    fn pod(stage: &mut Stage, containers: &str) {
        let labels = json!({"app": "web-0", READINESS_GATE: "enabled"});
        let mut pod = objects::pod("gated-0", &labels, 0, "10.244.2.10");
        pod["spec"]["readinessGates"] = json!([{"conditionType": READINESS_GATE}]);
        pod["status"]["conditions"] = json!([{"type": "ContainersReady", "status": containers}]);
        let (now_ms, status) = (stage.now_ms, json!({"status": pod["status"]}));
        stage.kubernetes.create(pod, now_ms).expect("a new Pod");
        let object = ObjectRef::new("pods", "default", "gated-0");
        let patch = Patch::Merge(status);
        stage.kubernetes.patch(object, Part::Status, &patch, now_ms).expect("it has a status");
    }

    /// What is wrong with a write of our gate of the Pod.
    fn breach(stage: &mut Stage, status: &str, reason: GateReason) -> Option<String> {
        let path = "/api/v1/namespaces/default/pods/gated-0/status".to_owned();
        let pod = stage.object_at(&path).expect("it is there");
        let uid = &pod["metadata"]["uid"];
        let gate = json!({"type": READINESS_GATE, "status": status, "reason": reason.name()});
        let body = json!({"metadata": {"uid": uid}, "status": {"conditions": [gate]}});
        let content_type = "application/strategic-merge-patch+json";
        let request = KubernetesCall { method: "PATCH", path, content_type, body };
        let sent = Sent::now(stage);
        stage.check_gate(&sent, &request);
        stage.breach.take().map(|breach| breach.text)
    }

    fn stage() -> Stage {
        let pace = Pace { azure_ms: 5, api_ms: 2, watch_ms: 5, operation_ms: 20_000 };
        Stage::new(Scene::plain(Layout::Containers, 2, 7), pace, Weather::Fair, 1)
    }

    /// The watch of the only process has brought all that there is.
    fn hear(stage: &mut Stage) {
        let revision = stage.kubernetes.revision();
        let watch = stage.processes[0].streams.get_mut(&Kind::GatedPods);
        watch.expect("Pods with our gate are watched").reach(revision);
    }

    #[test]
    fn a_gate_opens_once_the_gateway_lists_its_pod_or_the_time_is_over() {
        let mut stage = stage();
        pod(&mut stage, "True");
        let text = breach(&mut stage, "True", GateReason::TimedOut);
        assert_eq!(text, None, "the sender may not know the Pod as it is");
        hear(&mut stage);
        let early = "our gate of Pod gated-0 opens before the time allowed is over (TimedOut)";
        let text = breach(&mut stage, "True", GateReason::TimedOut);
        assert_eq!(text.as_deref(), Some(early));
        stage.now_ms += 60_000;
        assert_eq!(breach(&mut stage, "True", GateReason::TimedOut), None);
        assert_eq!(breach(&mut stage, "True", GateReason::Programmed), None, "another wrote last");
        stage.ledger.tables_by = Some((0, 0));
        let text = breach(&mut stage, "True", GateReason::Programmed).unwrap_or_default();
        assert!(text.contains("does not list the Pod"), "{text}");
        let text = breach(&mut stage, "True", GateReason::TimedOut).unwrap_or_default();
        assert!(text.contains("nothing to wait for"), "no Service selects it: {text}");
        assert_eq!(breach(&mut stage, "True", GateReason::NoService), None, "there is none");
    }

    #[test]
    fn a_gate_follows_what_else_a_pod_waits_for() {
        let mut stage = stage();
        pod(&mut stage, "False");
        hear(&mut stage);
        let text = breach(&mut stage, "True", GateReason::NoService).unwrap_or_default();
        assert!(text.contains("not ready for another reason"), "{text}");
        assert_eq!(breach(&mut stage, "True", GateReason::NodeBackends), None);
        assert_eq!(breach(&mut stage, "False", GateReason::PodNotReady), None);
        let patch = json!({"status": {"conditions": [
            {"type": "ContainersReady", "status": "True"}]}});
        let object = ObjectRef::new("pods", "default", "gated-0");
        let (patch, now_ms) = (Patch::Strategic(patch), stage.now_ms);
        stage.kubernetes.patch(object, Part::Status, &patch, now_ms).expect("it is there");
        hear(&mut stage);
        let text = breach(&mut stage, "False", GateReason::PodNotReady).unwrap_or_default();
        assert!(text.contains("shuts, and all else is ready"), "{text}");
    }
}
