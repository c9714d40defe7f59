//! L4: a condition that is written has what the Kubernetes API conventions ask of one: a reason
//! that programs tell apart, a message, and the time at which its status last changed. Who alerts
//! on a Service that is not programmed takes from that time for how long it has not been.

use super::api::PROGRAMMED;
use super::form::{conditions, seconds, text};
use crate::stage::{Sent, Stage};
use crate::tally::count;
use control::KubernetesCall;
use model::ObstacleKind;
use serde_json::Value;

/// What the API takes, in characters.
const LONGEST_REASON: usize = 1_024;
const LONGEST_MESSAGE: usize = 32_768;

impl Stage {
    /// A call to the API server is about to be sent.
    pub(crate) fn check_conditions(&mut self, sent: &Sent, request: &KubernetesCall) {
        for condition in conditions(&request.body).filter(|c| c["$patch"].is_null()) {
            count(&mut self.tally.checks, "L4");
            let wrong = malformed(condition).or_else(|| self.mistimed(sent, request, condition));
            if let Some(wrong) = wrong {
                let name = request.path.trim_start_matches("/api/v1/namespaces/");
                self.fail("L4", format!("{wrong} in the condition of {name}: {condition}"));
                return;
            }
        }
        self.check_blame(request);
    }

    /// S9: while Azure refuses one Service and nothing else goes wrong, no other Service gets a
    /// condition that says so, whatever was written together with the refused one.
    fn check_blame(&mut self, request: &KubernetesCall) {
        let Some(refused) = &self.ledger.refused_alone else { return };
        let Some(service) = self.object_at(&request.path) else { return };
        let meta = &service["metadata"];
        let name = format!("{}/{}", text(&meta["namespace"]), text(&meta["name"]));
        if service["kind"] != "Service" || name == *refused {
            return;
        }
        let refused = refused.clone();
        count(&mut self.tally.checks, "S9");
        let is_blamed = |object: &Value| {
            let mut own = conditions(object).filter(|condition| condition["type"] == PROGRAMMED);
            own.any(|c| c["status"] == "False" && c["reason"] == ObstacleKind::Rejected.reason())
        };
        if is_blamed(&request.body) && !is_blamed(&service) {
            let text = format!("{name} says that Azure refuses it, and Azure refuses {refused}");
            self.fail("S9", text);
        }
    }

    /// What is wrong with the time of our condition of a Service, if its sender has seen the last
    /// version of the Service: the time stays while the status does.
    fn mistimed(
        &self,
        sent: &Sent,
        request: &KubernetesCall,
        condition: &Value,
    ) -> Option<&'static str> {
        let service = self.object_at(&request.path)?;
        let meta = &service["metadata"];
        let version: u64 = meta["resourceVersion"].as_str()?.parse().ok()?;
        let known = meta["uid"] == request.body["metadata"]["uid"] && version <= sent.services;
        if condition["type"] != PROGRAMMED || !known {
            return None;
        }
        let time = condition["lastTransitionTime"].as_str().unwrap_or("");
        let held = conditions(&service).find(|held| held["type"] == PROGRAMMED);
        let held = held.filter(|held| held["status"] == condition["status"]);
        match held.and_then(|held| held["lastTransitionTime"].as_str()) {
            Some(since) => (since != time).then_some("another time for the same status"),
            None => {
                let now_ms = self.processes[sent.process].clock_ms(self.now_ms);
                (seconds(time) != Some(now_ms / 1_000)).then_some("another time than now")
            }
        }
    }
}

/// What is wrong with the form of a condition.
fn malformed(condition: &Value) -> Option<&'static str> {
    let text = |key: &str| condition[key].as_str().unwrap_or("");
    let (reason, message) = (text("reason"), text("message"));
    if !matches!(text("status"), "True" | "False" | "Unknown") {
        return Some("a status that is none");
    }
    if !is_reason(reason) || reason.len() > LONGEST_REASON {
        return Some("a reason that is none");
    }
    if message.is_empty() || message.chars().count() > LONGEST_MESSAGE {
        return Some("a message that is none or too long");
    }
    seconds(text("lastTransitionTime")).is_none().then_some("no time")
}

/// Whether a text is a reason: `^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`.
fn is_reason(text: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | ':');
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(inside)
        && !text.ends_with([',', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Layout, objects};
    use kube_emulator::{ObjectRef, Part, Patch};
    use serde_json::json;

    #[test]
    fn a_condition_has_the_form_that_the_api_asks_for() {
        let condition = |reason: &str, message: &str, time: &str| {
            json!({"type": PROGRAMMED, "status": "True", "reason": reason, "message": message,
                "lastTransitionTime": time})
        };
        let time = "2023-11-14T22:13:20Z";
        assert_eq!(malformed(&condition("Programmed", "It is.", time)), None);
        for (reason, message, time) in [
            ("", "It is.", time),
            ("kubernetes.io/idle-timeout", "It is.", time),
            ("Two words", "It is.", time),
            ("Programmed", "", time),
            ("Programmed", "It is.", "soon"),
        ] {
            let wrong = malformed(&condition(reason, message, time));
            assert!(wrong.is_some(), "{reason:?} {message:?} {time:?}");
        }
    }

    #[test]
    fn the_time_of_a_condition_is_that_of_its_last_turn() {
        let mut stage = Stage::plain(Layout::Single, 20_000);
        stage.create(objects::service("default", 0));
        let condition = |status: &str, time: &str| {
            json!({"type": PROGRAMMED, "status": status, "reason": "Programmed",
                "message": "It is.", "lastTransitionTime": time})
        };
        let (then, now) = ("2023-11-14T22:13:20Z", "2023-11-14T22:14:20Z");
        let held = json!({"status": {"conditions": [condition("True", then)]}});
        let object = ObjectRef::new("services", "default", "web-0");
        let patch = Patch::Strategic(held);
        let service = stage.kubernetes.patch(object, Part::Status, &patch, stage.now_ms);
        let uid = service.expect("it is there")["metadata"]["uid"].clone();
        stage.now_ms += 60_000;
        let mut wrong = |status: &str, time: &str, services: u64| {
            let sent = Sent { services, ..Sent::now(&stage) };
            let path = "/api/v1/namespaces/default/services/web-0/status".to_owned();
            let said = json!({"conditions": [condition(status, time)]});
            let body = json!({"metadata": {"uid": uid}, "status": said});
            let content_type = "application/strategic-merge-patch+json";
            let request = KubernetesCall { method: "PATCH", path, content_type, body };
            stage.check_conditions(&sent, &request);
            stage.breach.take().is_some()
        };
        let known = u64::MAX;
        assert!(!wrong("True", then, known) && !wrong("False", now, known));
        assert!(wrong("True", now, known), "the status has not changed");
        assert!(wrong("False", then, known), "the status changes now");
        assert!(!wrong("False", then, 0), "the sender may not know it as it is");
    }
    #[test]
    fn azure_refuses_one_service_and_no_other_is_told_so() {
        let mut stage = Stage::plain(Layout::Single, 20_000);
        stage.create(objects::service("default", 0));
        stage.create(objects::service("default", 1));
        stage.ledger.refused_alone = Some("default/web-0".to_owned());
        let mut blamed = |name: &str, kind: ObstacleKind| {
            let condition = json!({"type": PROGRAMMED, "status": "False", "reason": kind.reason()});
            let request = KubernetesCall {
                method: "PATCH",
                path: format!("/api/v1/namespaces/default/services/{name}/status"),
                content_type: "application/strategic-merge-patch+json",
                body: json!({"status": {"conditions": [condition]}}),
            };
            stage.check_blame(&request);
            stage.breach.take().is_some()
        };
        assert!(!blamed("web-0", ObstacleKind::Rejected));
        assert!(blamed("web-1", ObstacleKind::Rejected));
        assert!(!blamed("web-1", ObstacleKind::BackedOff), "it waits for the other one");
    }
}
