//! Finalizers, status and conditions are written to Kubernetes objects.

use crate::calls::Caller;
use crate::controller::Controller;
use crate::effect::{Effect, NoticeKind};
use crate::event::KubernetesAnswer;
use crate::kubernetes::objects::{ObjectLane, operation_on, read_pod, request, services_of};
use crate::trouble::Failure;
use model::ServiceName;
use model::kubernetes::{Claim, POD_FINALIZER, Pod};
use model::obstacle::ObstacleKind;
use model::plan::{Edit, FinalizerPurpose, KubernetesWrite, Object};
use observe::KubernetesFact;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How often our finalizer may fail to be put on a Pod before the Pod is published without it:
/// with the waits between, about three seconds.
const CLAIM_TRIES: u32 = 4;

/// A webhook may take off what is written.
const NOT_KEPT: &str = "NotKept: the API server acknowledged the write and did not keep it";

impl Controller {
    /// Sends every Kubernetes write of the plan whose object is free.
    pub(crate) fn write_kubernetes(&mut self, now_ms: u64) {
        let writes = std::mem::take(&mut self.planning.plan.writes);
        let mut under_way = self.kubernetes.objects.values().filter(|o| o.call.is_some()).count();
        for write in &writes {
            if under_way >= self.options.kubernetes_writes_at_once {
                break;
            }
            let lane = self.kubernetes.objects.entry(write.object.clone()).or_default();
            if lane.is_free(now_ms) {
                self.write_object(write, now_ms);
                under_way += 1;
            }
        }
        if self.kubernetes.objects.values().any(ObjectLane::is_idle) {
            let planned: BTreeSet<&Object> = writes.iter().map(|write| &write.object).collect();
            self.kubernetes.objects.retain(|object, lane| {
                !lane.is_idle() || planned.contains(object) || lane.rest(now_ms)
            });
        }
        self.planning.plan.writes = writes;
    }

    fn write_object(&mut self, write: &KubernetesWrite, now_ms: u64) {
        let read = self.unwatched(write).map(read_pod);
        let call = self.calls.begin(Caller::Object(write.object.clone()));
        self.observers.counts.kubernetes += u64::from(read.is_none());
        if let Some(lane) = self.kubernetes.objects.get_mut(&write.object) {
            lane.begin(call, read.is_none().then(|| write.edit.clone()));
        }
        let claims =
            matches!(write.edit, Edit::Finalizers { purpose: FinalizerPurpose::Claim, .. });
        if claims && read.is_none() {
            self.term.claims.insert(write.object.clone());
        }
        let request = read.unwrap_or_else(|| request(write, now_ms));
        self.calls.effects.push(Effect::Kubernetes { call, request });
    }

    /// The Pod that has to be read before the same is written to it again: the write failed, and no
    /// watch brings the version that it has to name, because the Pod has lost its label.
    fn unwatched<'w>(&self, write: &'w KubernetesWrite) -> Option<&'w ServiceName> {
        let Object::Pod { name, uid } = &write.object else { return None };
        let held = self.world.kubernetes.pods.get(name);
        let stray = held.is_some_and(|pod| pod.uid == *uid && pod.egress.is_none());
        let lane = self.kubernetes.objects.get(&write.object);
        let failed = lane.is_some_and(|lane| lane.has_sent(&write.edit));
        (stray && failed).then_some(name)
    }

    /// Whether the call under way about an object is a read.
    fn is_read(&self, object: &Object) -> bool {
        self.kubernetes.objects.get(object).is_some_and(ObjectLane::is_read)
    }

    /// A Pod was read. Another one of its name has another UID: this one is gone then.
    fn take_read(&mut self, object: &Object, body: Option<&Value>, now_ms: u64) {
        let Object::Pod { uid, .. } = object else { return };
        let Some(found) = body.and_then(|list| list["items"].as_array()) else {
            return self.delay(object, None, "NoAnswer: a list without items", now_ms);
        };
        let Some(pod) = found.iter().find(|pod| pod["metadata"]["uid"] == **uid) else {
            self.kubernetes.objects.remove(object);
            return self.not_found(object, now_ms);
        };
        if let Some(lane) = self.kubernetes.objects.get_mut(object) {
            lane.call = None;
        }
        self.overlay(object, pod, now_ms);
    }

    /// The answer to a Kubernetes write.
    pub(crate) fn written(&mut self, object: &Object, answer: KubernetesAnswer, now_ms: u64) {
        self.planning.dirty = true;
        match answer {
            KubernetesAnswer::Reply { status: 200..300, body, .. } if self.is_read(object) => {
                self.take_read(object, body.as_ref(), now_ms);
            }
            KubernetesAnswer::Reply { status: 200..300, body, .. } => {
                self.confirm(object);
                let lane = self.kubernetes.objects.get_mut(object);
                let lost = lane.is_some_and(ObjectLane::acknowledge);
                // Our own write is seen before the watch brings it.
                if let Some(body) = body {
                    self.overlay(object, &body, now_ms);
                }
                if lost {
                    self.delay(object, None, NOT_KEPT, now_ms);
                }
            }
            // A list that lacks the Pod says that it is gone. One that is not found says nothing.
            KubernetesAnswer::Reply { status: 404, .. } if !self.is_read(object) => {
                self.kubernetes.objects.remove(object);
                self.not_found(object, now_ms);
            }
            KubernetesAnswer::Reply { status, retry_after_ms, body } => {
                // A finalizer that is there all the same is another's.
                self.term.claims.remove(object);
                let message = body.as_ref().and_then(|b| b.get("message")).and_then(Value::as_str);
                let why = message.unwrap_or("no message").to_owned();
                self.delay(object, retry_after_ms, &format!("{status}: {why}"), now_ms);
            }
            KubernetesAnswer::Fault(why) => {
                self.delay(object, None, &format!("NoAnswer: {why}"), now_ms);
            }
        }
    }

    /// An object is gone. Pods are known by their names, and the next one of that name, as of a
    /// `StatefulSet`, may have been seen before the answer came: it stays.
    fn not_found(&mut self, object: &Object, now_ms: u64) {
        self.term.claims.remove(object);
        let (name, uid) = match object {
            Object::Service { uid, .. } => {
                return self.learn_gone(KubernetesFact::ServiceGone(uid.clone()), now_ms);
            }
            Object::Pod { name, uid } => (name, uid),
        };
        let held = &self.world.kubernetes;
        let is_held = held.pods.get(name).is_some_and(|pod| pod.uid == *uid);
        let is_gated = held.gated_pods.get(name).is_some_and(|pod| pod.uid == *uid);
        if is_held {
            self.learn_gone(KubernetesFact::PodGone(name.clone()), now_ms);
        }
        if is_gated {
            self.learn_gone(KubernetesFact::GatedPodGone(name.clone()), now_ms);
        }
    }

    /// An answer shows that an object is deleted. The answer may be newer than the watch.
    fn learn_gone(&mut self, fact: KubernetesFact, now_ms: u64) {
        self.reads.listing.note_gone(&self.world.kubernetes, &fact);
        self.learn(fact, now_ms);
    }

    /// What was written, as the API server holds it now. An object that the watch has shown to be
    /// gone meanwhile stays gone.
    fn overlay(&mut self, object: &Object, body: &Value, now_ms: u64) {
        let held = &self.world.kubernetes;
        // Pods with our gate are watched by themselves where load balancers lead to nodes.
        let (is_held, is_gated) = match object {
            Object::Service { uid, .. } => (held.services.contains_key(uid), false),
            Object::Pod { name, .. } => {
                (held.pods.contains_key(name), held.gated_pods.contains_key(name))
            }
        };
        let classes = &self.options.classes;
        let interner = &mut self.reads.interner;
        let fact = match object {
            Object::Service { .. } => {
                observe::kubernetes::service_from_value(body, classes, interner)
                    .map(|service| KubernetesFact::Service(Box::new(service)))
            }
            Object::Pod { .. } => {
                let gated = observe::kubernetes::gated_pod_from_value(body, interner);
                let pod = observe::kubernetes::pod_from_value(body, interner);
                if let Ok(Some(gated)) = gated
                    && is_gated
                {
                    self.learn(KubernetesFact::GatedPod(gated), now_ms);
                }
                pod.map(KubernetesFact::Pod)
            }
        };
        if let Ok(fact) = fact
            && is_held
        {
            self.learn(fact, now_ms);
        }
    }

    fn delay(&mut self, object: &Object, asked_ms: Option<u64>, why: &str, now_ms: u64) {
        let lane = self.kubernetes.objects.entry(object.clone()).or_default();
        let (code, message) = why.split_once(": ").unwrap_or(("NoAnswer", why));
        let (kind, operation) = (ObstacleKind::Kubernetes, operation_on(object));
        let failure = Failure { kind, operation, code, message };
        let wait_ms = lane.fail(failure, &services_of(object), asked_ms, now_ms);
        if lane.retry.failures() >= CLAIM_TRIES {
            self.waive(object, why, now_ms);
        }
        let (Object::Service { name, .. } | Object::Pod { name, .. }) = object;
        let text = format!("writing {name} failed, next try in {wait_ms} ms: {why}");
        self.say(now_ms, NoticeKind::Failed, &services_of(object), text, None);
    }
}

impl Controller {
    /// A Pod that cannot be given our finalizer is published without it: its way out matters more
    /// than how orderly it leaves. When it goes, its addresses follow as soon as that is seen.
    fn waive(&mut self, object: &Object, why: &str, now_ms: u64) {
        let Object::Pod { name, uid } = object else { return };
        if self.kubernetes.waived.contains(uid) {
            return;
        }
        let claims = |write: &KubernetesWrite| {
            let Edit::Finalizers { purpose, .. } = &write.edit else { return false };
            write.object == *object && *purpose == FinalizerPurpose::Claim
        };
        let Some(pod) = self.world.kubernetes.pods.get_mut(name) else { return };
        if pod.finalizers.contains(POD_FINALIZER) || !self.planning.plan.writes.iter().any(claims) {
            return;
        }
        *pod = Arc::new(Pod { claim: Claim::Waived, ..Pod::clone(pod) });
        self.kubernetes.waived.insert(Arc::clone(uid));
        let (name, uid) = (name.clone(), Arc::clone(uid));
        self.tell_unclaimed(&name, &uid, why, now_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backoff;
    use fixture::policy;
    use model::ServiceUid;
    use model::kubernetes::Service;
    use serde_json::json;

    #[test]
    fn the_first_wait_is_short_unless_the_api_server_asks_for_more() {
        let name = ServiceName::new("default", "web");
        let object = Object::Service { name, uid: ServiceUid::new("uid-1") };
        let mut controller = Controller::new(policy(), crate::Options::default());
        let mut wait = |asked_ms: Option<u64>| {
            controller.kubernetes.objects.clear();
            controller.delay(&object, asked_ms, "429: too many requests", 1_000);
            controller.kubernetes.objects.get(&object).and_then(|lane| lane.retry.next_ms())
        };
        assert_eq!(wait(None), Some(1_100));
        assert_eq!(wait(Some(2_000)), Some(3_000));
    }

    /// What is to be written may change while the API server does not answer, or go for a moment.
    #[test]
    fn failures_are_remembered_while_nothing_is_to_be_written() {
        let name = ServiceName::new("default", "web");
        let object = Object::Service { name, uid: ServiceUid::new("uid-1") };
        let mut controller = Controller::new(policy(), crate::Options::default());
        let mut wait_after = |now_ms: u64| {
            controller.delay(&object, None, "NoAnswer: it does not answer", now_ms);
            let lane = controller.kubernetes.objects.get_mut(&object).expect("it failed");
            let wait_ms = lane.retry.next_ms().expect("it waits") - now_ms;
            lane.retry.resume();
            controller.write_kubernetes(now_ms + wait_ms);
            let lane = controller.kubernetes.objects.get(&object).expect("it is remembered");
            assert!(lane.trouble.is_none(), "what is no longer to be written has no trouble");
            wait_ms
        };
        assert_eq!([wait_after(0), wait_after(500), wait_after(2_000)], [100, 1_000, 2_000]);
        controller.write_kubernetes(2_000 + backoff::LONGEST_MS);
        assert!(controller.kubernetes.objects.is_empty(), "and not for ever");
    }

    /// The watch shows the deletion before our earlier write is answered.
    #[test]
    fn a_late_answer_brings_no_service_back() {
        let body = |revision: &str| {
            json!({"metadata": {"name": "web", "namespace": "default", "uid": "uid-1",
                "resourceVersion": revision}, "spec": {"type": "LoadBalancer"}})
        };
        let uid = ServiceUid::new("uid-1");
        let name = ServiceName::new("default", "web");
        let object = Object::Service { name, uid: uid.clone() };
        let mut controller = Controller::new(policy(), crate::Options::default());
        controller.overlay(&object, &body("7"), 0);
        assert!(controller.world.kubernetes.services.is_empty());
        let held = Service { uid: uid.clone(), ..fixture::service(&[]) };
        controller.world.kubernetes.services.insert(uid.clone(), Arc::new(held));
        controller.overlay(&object, &body("7"), 0);
        assert_eq!(&*controller.world.kubernetes.services[&uid].revision, "7");
    }

    /// Each answer repeats a condition that no former one had.
    #[test]
    fn texts_of_former_answers_are_let_go() {
        let body = |revision: u32| {
            json!({"metadata": {"name": "web", "namespace": "default", "uid": "uid-1",
                "resourceVersion": revision.to_string()}, "spec": {"type": "LoadBalancer"},
                "status": {"conditions": [{"type": "ballast.dev/Programmed", "status": "False",
                    "message": format!("{revision} {}", "x".repeat(10_000))}]}})
        };
        let uid = ServiceUid::new("uid-1");
        let object = Object::Service { name: ServiceName::new("default", "web"), uid: uid.clone() };
        let mut controller = Controller::new(policy(), crate::Options::default());
        let held = Service { uid: uid.clone(), ..fixture::service(&[]) };
        controller.world.kubernetes.services.insert(uid, Arc::new(held));
        (1..=1_000).for_each(|revision| controller.overlay(&object, &body(revision), 0));
        let held = controller.reads.interner.len();
        assert!(held < 200, "{held} texts are held for one Service");
    }

    /// The answer about a Pod comes late: another of its name has been seen since.
    #[test]
    fn a_pod_that_was_not_found_is_not_the_next_one_of_its_name() {
        let pod = json!({"metadata": {"name": "web-0", "namespace": "default", "uid": "next",
            "resourceVersion": "7", "labels": {
                "kubernetes.azure.com/service-egress-gateway": "team",
                "ballast.dev/load-balancer-ready": "enabled"}},
            "spec": {"readinessGates": [{"conditionType": "ballast.dev/load-balancer-ready"}]},
            "status": {"phase": "Running"}});
        let mut interner = observe::Interner::default();
        let held = observe::kubernetes::pod_from_value(&pod, &mut interner).expect("a Pod");
        let gated = observe::kubernetes::gated_pod_from_value(&pod, &mut interner);
        let gated = gated.expect("a Pod").expect("it has the gate");
        let mut controller = Controller::new(policy(), crate::Options::default());
        controller.learn(KubernetesFact::Pod(held), 0);
        controller.learn(KubernetesFact::GatedPod(gated), 0);
        let mut known_after = |uid: &str| {
            let name = ServiceName::new("default", "web-0");
            let object = Object::Pod { name, uid: uid.into() };
            let answer = KubernetesAnswer::Reply { status: 404, retry_after_ms: None, body: None };
            controller.written(&object, answer, 0);
            let known = &controller.world.kubernetes;
            (known.pods.len(), known.gated_pods.len())
        };
        assert_eq!(known_after("former"), (1, 1));
        assert_eq!(known_after("next"), (0, 0));
    }

    /// The watch selects by label: nothing shows that the kubelet writes the Pod meanwhile.
    #[test]
    fn a_pod_without_its_label_is_read_before_a_write_that_failed_is_sent_again() {
        let pod = |revision: &str| {
            json!({"metadata": {"name": "web-0", "namespace": "default", "uid": "uid-1",
                "resourceVersion": revision, "finalizers": [POD_FINALIZER]},
                "status": {"phase": "Running"}})
        };
        let mut interner = observe::Interner::default();
        let held = observe::kubernetes::pod_from_value(&pod("7"), &mut interner).expect("a Pod");
        let mut controller = Controller::new(policy(), crate::Options::default());
        controller.learn(KubernetesFact::Pod(held), 0);
        let name = ServiceName::new("default", "web-0");
        let object = Object::Pod { name: name.clone(), uid: "uid-1".into() };
        let known = |controller: &Controller| {
            let pod = controller.world.kubernetes.pods.get(&name);
            pod.map(|pod| pod.revision.to_string())
        };
        // Sends what a plan on the known version of the Pod writes; gives the method.
        let send = |controller: &mut Controller, now_ms: u64| {
            let edit = Edit::Finalizers {
                list: Vec::new(),
                revision: known(controller).expect("it is there").into(),
                purpose: FinalizerPurpose::Release,
                marks: None,
            };
            let write = KubernetesWrite { object: object.clone(), edit };
            controller.planning.plan.writes = vec![write];
            controller.write_kubernetes(now_ms);
            let effects = std::mem::take(&mut controller.calls.effects);
            let mut methods = effects.iter().filter_map(|effect| match effect {
                Effect::Kubernetes { request, .. } => Some(request.method),
                _ => None,
            });
            methods.next()
        };
        let answer = |status: u16, body: Option<Value>| KubernetesAnswer::Reply {
            status,
            retry_after_ms: None,
            body,
        };
        assert_eq!(send(&mut controller, 0), Some("PATCH"));
        controller.written(&object, answer(409, None), 0);
        assert_eq!(send(&mut controller, 50), None, "it waits");
        assert_eq!(send(&mut controller, 100), Some("GET"));
        controller.written(&object, answer(200, Some(json!({"items": [pod("9")]}))), 100);
        assert_eq!(known(&controller).as_deref(), Some("9"));
        assert_eq!(send(&mut controller, 100), Some("PATCH"));
        controller.written(&object, answer(409, None), 100);
        assert_eq!(send(&mut controller, 1_100), Some("GET"));
        // What is not found is the list, not the Pod.
        controller.written(&object, answer(404, None), 1_100);
        assert_eq!(known(&controller).as_deref(), Some("9"));
        assert_eq!(send(&mut controller, 3_100), Some("PATCH"));
        controller.written(&object, answer(409, None), 3_100);
        assert_eq!(send(&mut controller, 7_100), Some("GET"));
        let mut next = pod("11");
        next["metadata"]["uid"] = json!("uid-2");
        controller.written(&object, answer(200, Some(json!({"items": [next]}))), 7_100);
        assert_eq!(known(&controller), None, "it is gone, and another has its name");
    }

    /// A webhook takes off what is written, and the API server says that all is well.
    #[test]
    fn what_is_not_kept_is_written_less_and_less_often() {
        let name = ServiceName::new("default", "web");
        let object = Object::Service { name, uid: ServiceUid::new("uid-1") };
        let finalizers = |revision: u64| Edit::Finalizers {
            list: Vec::new(),
            revision: revision.to_string().into(),
            purpose: FinalizerPurpose::Claim,
            marks: None,
        };
        let mut controller = Controller::new(policy(), crate::Options::default());
        let mut wait_after = |now_ms: u64| {
            let write = KubernetesWrite { object: object.clone(), edit: finalizers(now_ms) };
            controller.planning.plan.writes = vec![write];
            controller.write_kubernetes(now_ms);
            let answer = KubernetesAnswer::Reply { status: 200, retry_after_ms: None, body: None };
            controller.written(&object, answer, now_ms);
            let lane = controller.kubernetes.objects.get_mut(&object).expect("it is remembered");
            let next_ms = lane.retry.next_ms();
            lane.retry.resume();
            next_ms.map_or(0, |at| at - now_ms)
        };
        assert_eq!([0, 0, 100, 1_100].map(&mut wait_after), [0, 100, 1_000, 2_000]);
        // It is kept after all: what is written later has nothing to do with it.
        controller.planning.plan.writes.clear();
        controller.write_kubernetes(4_000);
        let lane = controller.kubernetes.objects.get(&object).expect("it failed a moment ago");
        assert!(lane.trouble.is_none() && lane.acknowledged.is_none());
    }
}
