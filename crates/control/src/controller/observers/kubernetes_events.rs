//! Tells a Service's owner, by Events, what became of it; each thing once.

use crate::calls::Caller;
use crate::controller::Controller;
use crate::effect::{Effect, NoticeKind};
use crate::observers::event_queue::{Waiting, Word};
use crate::observers::kubernetes_events::{
    Said, by_rule, is_done, is_unread, since, texts, warning, word,
};
use crate::observers::reason;
use model::kubernetes::{POD_FINALIZER, Service};
use model::report::{Report, ServiceReport, Severity, State};
use model::world::Need;
use model::{ServiceName, ServiceUid};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Controller {
    /// Remembers a Service's name.
    pub(crate) fn note_name(&mut self, service: &Service) {
        let said = self.observers.events.said.entry(service.uid.clone());
        said.or_insert_with(|| Said::new(service.name.clone(), 0));
    }

    /// Since when a Service is as it is; `None` before it was planned.
    #[must_use]
    pub fn since_ms(&self, uid: &ServiceUid) -> Option<u64> {
        let said = self.observers.events.said.get(uid)?;
        // The state that was said is not the one that is reported while all is still to be read.
        said.unread_ms.or(said.state.map(|_| said.since_ms))
    }

    /// Compares the report with what was said.
    pub(crate) fn say_changes(&mut self, now_ms: u64) {
        let report = std::mem::take(&mut self.planning.report);
        for (uid, service) in self.news(&report) {
            self.say_service(uid, service, now_ms);
        }
        for uid in self.gone(&report) {
            self.say_gone(&uid, now_ms);
        }
        self.say_pods(&report, now_ms);
        self.planning.report = report;
    }

    /// Services whose report is not the value that was looked at last. Both maps are walked side
    /// by side: there are many Services, and one step is rarely about more than a few.
    fn news<'r>(&self, report: &'r Report) -> Vec<(&'r ServiceUid, &'r Arc<ServiceReport>)> {
        let mut said = self.observers.events.said.iter().peekable();
        let is_new = |(uid, now): &(&ServiceUid, &Arc<ServiceReport>)| {
            while said.next_if(|(known, _)| known < uid).is_some() {}
            let known = said.peek().filter(|(known, _)| known == uid);
            let known = known.and_then(|(_, said)| said.report.as_ref());
            known.is_none_or(|known| !Arc::ptr_eq(known, now))
        };
        report.services.iter().filter(is_new).collect()
    }

    /// Services of which something was said and that the report does not have.
    fn gone(&self, report: &Report) -> Vec<ServiceUid> {
        let mut reported = report.services.keys().peekable();
        let is_gone = |uid: &&ServiceUid| {
            while reported.next_if(|known| known < uid).is_some() {}
            reported.peek() != Some(uid)
        };
        self.observers.events.said.keys().filter(is_gone).cloned().collect()
    }

    /// Whether the last plan has looked at egress Pods. While Azure's lists and tables are unknown,
    /// as they are after a lost answer, its report says nothing of them.
    fn has_judged_pods(&self) -> bool {
        let lists =
            [Need::Balancers, Need::PublicIps(self.policy.group.clone()), Need::NatGateways];
        let needs = lists.into_iter().chain([Need::GatewayServices, Need::GatewayLocations]);
        needs.into_iter().all(|need| self.world.azure.is_known(&need))
    }

    /// What is wrong with egress Pods, each thing once.
    fn say_pods(&mut self, report: &Report, now_ms: u64) {
        if !self.term.is_held() || !self.has_judged_pods() {
            return;
        }
        self.observers.events.said_of_pods.retain(|pod, _| report.pods.contains_key(pod));
        for (name, findings) in &report.pods {
            let Some(pod) = self.world.kubernetes.pods.get(name).cloned() else { continue };
            let by_rule = by_rule(findings);
            let texts = by_rule.iter().map(|(_, text)| Arc::clone(text)).collect();
            let known =
                self.observers.events.said_of_pods.insert(name.clone(), texts).unwrap_or_default();
            for (finding, message) in by_rule {
                if !known.contains(&message) {
                    let word = warning(finding.rule, &message);
                    self.post_about("Pod", name, Arc::clone(&pod.uid), word, now_ms);
                }
            }
        }
    }

    fn say_service(&mut self, uid: &ServiceUid, now: &Arc<ServiceReport>, now_ms: u64) {
        let held = self.world.holds.contains_key(uid);
        let said = self.observers.events.said.entry(uid.clone());
        let said = said.or_insert_with(|| Said::new(now.name.clone(), now_ms));
        said.report = Some(Arc::clone(now));
        self.observers.latencies.look_at_service(uid);
        let was = said.state;
        let told_ms = was.is_none().then(|| since(&self.world, uid, now.state)).flatten();
        let waits_ms = (was == Some(State::Waiting)).then_some(said.since_ms);
        let waited_ms = said.unread_ms.take().or(waits_ms);
        let waited_ms = waited_ms.filter(|_| now.state == State::Waiting);
        let since_ms = told_ms.into_iter().chain(waited_ms).min().unwrap_or(now_ms);
        said.unread_ms = is_unread(now).then_some(since_ms);
        let mut words = Vec::new();
        let mut programmed = false;
        if was != Some(now.state) && !is_unread(now) {
            said.state = Some(now.state);
            said.since_ms = since_ms;
            self.observers.latencies.look_at_pods();
            match (was, now.state) {
                (was, State::Waiting) if !held && is_done(was) => {
                    words.push(word(&reason::ENSURING, "Ensuring load balancer"));
                }
                (Some(_), State::Programmed) => {
                    programmed = true;
                    words.push(word(&reason::ENSURED, "Ensured load balancer"));
                }
                (Some(_), State::Removing) => {
                    words.push(word(&reason::DELETING, "Deleting load balancer"));
                }
                _ => {}
            }
        }
        let new = said.news(texts(now, &self.policy.layout), now.state);
        let name = said.name.clone();
        let about = BTreeSet::from([uid.clone()]);
        for told in new {
            let kind = match told.severity {
                Severity::Refusal | Severity::Hold => NoticeKind::Refused,
                Severity::Note => NoticeKind::Noted,
            };
            let text = format!("Service {name}: {}", told.text);
            self.say(now_ms, kind, &about, text, None);
            words.extend(told.words);
        }
        if programmed {
            let at = now.addresses.join(", ");
            let text = format!("Service {name} is programmed at {at}");
            self.say(now_ms, NoticeKind::Programmed, &about, text, None);
        }
        for word in words {
            self.post(&name, uid, word, now_ms);
        }
    }

    fn say_gone(&mut self, uid: &ServiceUid, now_ms: u64) {
        let Some(said) = self.observers.events.said.remove(uid) else { return };
        self.observers.latencies.look_at_service(uid);
        if said.state == Some(State::Removing) {
            let word = word(&reason::DELETED, "Deleted load balancer");
            self.post(&said.name, uid, word, now_ms);
            let text = format!("Service {} has nothing left in Azure", said.name);
            let about = BTreeSet::from([uid.clone()]);
            self.say(now_ms, NoticeKind::Programmed, &about, text, None);
        }
        if !self.world.kubernetes.services.contains_key(uid) {
            self.observers.changes.ids.remove(uid);
        }
    }

    /// A Pod is published although our finalizer could not be put on it.
    pub(crate) fn tell_unclaimed(&mut self, name: &ServiceName, uid: &str, why: &str, now_ms: u64) {
        let text = format!(
            "Putting the finalizer {POD_FINALIZER} on the Pod failed: {why}. The Pod is published \
             without it; the finalizer is tried further."
        );
        let word = word(&reason::POD_UNCLAIMED, &text);
        self.post_about("Pod", name, Arc::from(uid), word, now_ms);
    }

    /// Posts an Event about a Service.
    pub(crate) fn post(&mut self, name: &ServiceName, uid: &ServiceUid, word: Word, now_ms: u64) {
        self.post_about("Service", name, Arc::from(uid.as_str()), word, now_ms);
    }

    fn post_about(
        &mut self,
        kind: &'static str,
        name: &ServiceName,
        uid: Arc<str>,
        word: Word,
        at_ms: u64,
    ) {
        if !self.term.is_held() {
            return;
        }
        let name = name.clone();
        self.observers.events.words.push(Waiting { kind, name, uid, word, at_ms });
        self.post_waiting();
    }

    /// An Event was posted, or was not; either way there is room for another.
    pub(crate) fn posted(&mut self) {
        self.observers.events.words.posted();
        self.post_waiting();
    }

    fn post_waiting(&mut self) {
        if !self.term.is_held() {
            self.observers.events.words.clear();
        }
        while let Some(next) = self.observers.events.words.next() {
            self.observers.events.last += 1;
            let number = format!("{:08x}", self.observers.events.last);
            let request = next.call(&self.options.instance, &number);
            let call = self.calls.begin(Caller::Event);
            self.calls.effects.push(Effect::Kubernetes { call, request });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::controller::Controller;
    use crate::effect::{Effect, NoticeKind};
    use crate::options::Options;
    use fixture::policy;
    use model::report::{Finding, Report, ServiceReport, Severity, State, Wait};
    use model::world::{Fact, Need};
    use model::{ServiceName, ServiceUid};
    use std::sync::Arc;

    fn finding(rule: &'static str, severity: Severity, n: usize) -> Finding {
        let (key, message) = (Arc::from("key"), Arc::from("must be something else"));
        Finding { severity, rule, key, value: Arc::from(n.to_string()), message }
    }

    /// An answer of the Service Gateway is lost: until its tables are read nothing is planned.
    #[test]
    fn a_pod_is_told_once_whatever_has_to_be_read_meanwhile() {
        let json = serde_json::json!({"metadata": {"name": "a", "namespace": "default",
            "uid": "uid-1", "resourceVersion": "1",
            "labels": {"kubernetes.azure.com/service-egress-gateway": "-x"}}});
        let mut interner = observe::Interner::default();
        let pod = observe::kubernetes::pod_from_value(&json, &mut interner).expect("a Pod");
        let name = pod.name.clone();
        let mut controller = Controller::new(policy(), Options::default());
        controller.learn(observe::KubernetesFact::Pod(pod), 0);
        let azure = &mut controller.world.azure;
        azure.balancers = Fact::Known(Default::default());
        azure.public_ips = [(policy().group, Fact::Known(Default::default()))].into();
        azure.nat_gateways = Fact::Known(Default::default());
        azure.gateway_services = Fact::Known(Default::default());
        controller.calls.effects.clear();
        let mut events = 0;
        for known in [true, false, true] {
            controller.world.azure.gateway_locations =
                if known { Fact::Known(Arc::default()) } else { Fact::Unknown };
            let found = finding("ServiceGatewayInvalidEgressLabel", Severity::Refusal, 1);
            let pods = known.then(|| (name.clone(), vec![found])).into_iter().collect();
            controller.planning.report = Report { pods, ..Report::default() };
            controller.say_changes(0);
            events += std::mem::take(&mut controller.calls.effects).len();
        }
        assert_eq!(events, 1);
    }

    /// Reads between two attempts are no other reason to wait.
    #[test]
    fn a_service_that_waits_has_waited_as_long_while_something_is_read() {
        let mut controller = Controller::new(policy(), Options::default());
        let uid = ServiceUid::new("uid");
        let reading = Wait::Reading(Need::Balancers);
        let waits = [(Wait::Status, 1_000), (reading, 60_000), (Wait::Status, 61_000)];
        for (wait, now_ms) in waits {
            let waits = vec![wait];
            let report = ServiceReport { waits, ..fixture::service_report(State::Waiting) };
            let services = [(uid.clone(), Arc::new(report))].into();
            controller.planning.report = Report { services, ..Report::default() };
            controller.say_changes(now_ms);
            assert_eq!(controller.since_ms(&uid), Some(1_000), "at {now_ms}");
        }
    }

    #[test]
    fn an_earlier_mistake_that_comes_back_gets_an_event_again() {
        let mut controller = Controller::new(policy(), Options::default());
        let mut told = 0;
        for n in [1, 2, 1] {
            let findings = vec![finding("InvalidTag", Severity::Refusal, n)];
            let report = ServiceReport { findings, ..fixture::service_report(State::Refused) };
            let services = [(ServiceUid::new("uid"), Arc::new(report))].into();
            controller.planning.report = Report { services, ..Report::default() };
            controller.say_changes(0);
            let effects = std::mem::take(&mut controller.calls.effects);
            let lines = effects.iter().filter(|effect| matches!(effect, Effect::Say(_)));
            told += lines.count();
        }
        assert_eq!(told, 3);
    }

    /// What an owner edits again and again while Azure refuses, and a Service that is gone.
    #[test]
    fn what_was_said_of_a_service_has_an_end() {
        let mut controller = Controller::new(policy(), Options::default());
        let uid = ServiceUid::new("uid");
        for n in 0..1_000 {
            let findings = vec![finding("InvalidTag", Severity::Note, n)];
            let waits = vec![Wait::Status];
            let report =
                ServiceReport { findings, waits, ..fixture::service_report(State::Waiting) };
            let services = [(uid.clone(), Arc::new(report))].into();
            controller.planning.report = Report { services, ..Report::default() };
            controller.say_changes(0);
        }
        let texts = controller.observers.events.said[&uid].texts.len();
        assert!(texts <= 100, "{texts}");
        controller.planning.report = Report::default();
        controller.say_changes(0);
        assert!(controller.observers.events.said.is_empty());
    }

    #[test]
    fn many_findings_of_one_rule_are_one_event_and_one_line() {
        let mut controller = Controller::new(policy(), Options::default());
        let refusals = (0..1_000).map(|n| finding("InvalidTag", Severity::Refusal, n));
        let notes = (0..3).map(|n| finding("MalformedTag", Severity::Note, n));
        let report = ServiceReport {
            name: ServiceName::new("evil", "web"),
            findings: refusals.chain(notes).collect(),
            ..fixture::service_report(State::Refused)
        };
        let services = [(ServiceUid::new("uid"), Arc::new(report))].into();
        controller.planning.report = Report { services, ..Report::default() };
        controller.say_changes(0);
        let mut lines = Vec::new();
        let mut messages = Vec::new();
        for effect in std::mem::take(&mut controller.calls.effects) {
            match effect {
                Effect::Kubernetes { request, .. } => {
                    messages.push(request.body["message"].as_str().unwrap_or("").to_owned());
                }
                Effect::Say(notice) => lines.push(notice.kind),
                Effect::Azure { .. } => {}
            }
        }
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert_eq!(lines, [NoticeKind::Refused, NoticeKind::Noted]);
        assert!(messages[0].contains("\"5\"") && messages[0].ends_with("; and 994 more"));
        assert!(messages[1].contains("\"2\"") && !messages[1].contains("more"));
        controller.say_changes(1);
        assert!(controller.calls.effects.is_empty(), "it was said");
    }
}
