//! L4: what a process says of Services, in its log and in Events. That a Service has come or was
//! changed is said once for each time that it was: it is attempted anew then, without a pause. And
//! what the Service's condition tells already is not told again, however often the same thing is
//! found anew on the way.

use super::api::PROGRAMMED;
use super::form::{conditions, text};
use crate::stage::Stage;
use crate::tally::count;
use control::{Effect, KubernetesCall, NoticeKind};
use model::ServiceName;
use std::collections::{BTreeMap, BTreeSet};

/// What Events of failures begin with, and conditions do not.
const FAILED: &str = "Error syncing load balancer: ";

/// What each life of a process has said of Services, by namespace and name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    services: BTreeMap<(usize, u64, String), Saying>,
}

/// What was said of one Service since its owner last changed it.
#[derive(Clone, Debug, Default)]
struct Saying {
    uid: String,
    term: u64,
    /// Lines, and reasons and texts of Events.
    told: BTreeSet<(String, String)>,
}

/// What is wrong with a Service, as it is said.
struct Complaint {
    /// Namespace and name.
    name: String,
    /// The reason of an Event; nothing of a line.
    reason: String,
    text: String,
}

impl Stage {
    /// A process has taken a step, and this is to be carried out.
    pub(crate) fn check_said(&mut self, number: usize, effects: &[Effect]) {
        let edits = self.processes[number].edits.take();
        let life = (number, self.processes[number].epoch);
        let said = &mut self.ledger.said.services;
        edits.keys().for_each(|name| drop(said.remove(&(life.0, life.1, name.clone()))));
        // What a canary keeps from a process is an edit that the process has not heard of.
        if self.mutant.is_some() {
            return;
        }
        self.check_changed(edits, effects);
        // A process that may not write keeps no condition up to date.
        if self.processes[number].may_write(self.now_ms) {
            for complaint in effects.iter().flat_map(complaints) {
                self.check_told_again(life, complaint, effects);
            }
        }
    }

    /// That a Service has come or was changed.
    fn check_changed(&mut self, mut edits: BTreeMap<String, u64>, effects: &[Effect]) {
        for effect in effects {
            let Effect::Say(notice) = effect else { continue };
            if notice.kind != NoticeKind::Asked {
                continue;
            }
            count(&mut self.tally.checks, "L4");
            for name in &notice.services {
                let left = edits.entry(name.to_string()).or_default();
                if *left == 0 {
                    let text = format!("no owner did anything: {}", notice.text);
                    self.fail("L4", text);
                    return;
                }
                *left -= 1;
            }
        }
    }

    /// What is wrong with a Service. What its condition tells was taken back by no condition since,
    /// unless one is on its way, or could not be written.
    fn check_told_again(&mut self, life: (usize, u64), complaint: Complaint, effects: &[Effect]) {
        let Complaint { name, reason, text: told } = complaint;
        let Some((namespace, own)) = name.split_once('/') else { return };
        let path = format!("/api/v1/namespaces/{namespace}/services/{own}");
        let Some(service) = self.object_at(&path) else { return };
        count(&mut self.tally.checks, "L4");
        let (uid, term) = (text(&service["metadata"]["uid"]).to_owned(), self.lease.term);
        let key = (life.0, life.1, name.clone());
        let saying = self.ledger.said.services.entry(key).or_default();
        if saying.uid != uid || saying.term != term {
            *saying = Saying { uid, term, told: BTreeSet::new() };
        }
        let new = saying.told.insert((reason, told.clone()));
        let mut own = conditions(&service).filter(|c| c["type"] == PROGRAMMED);
        let stands = own.any(|c| text(&c["message"]).contains(&told));
        if new || !stands || self.ledger.paused.is_some() || self.is_written(life, &path, effects) {
            return;
        }
        self.fail("L4", format!("{name} is told again what its condition tells: {told}"));
    }

    /// Whether a process writes an object, or could not and is going to.
    fn is_written(&self, life: (usize, u64), path: &str, effects: &[Effect]) -> bool {
        let of_it = |request: &KubernetesCall| {
            request.path.strip_suffix("/status").unwrap_or(&request.path) == path
        };
        let now = effects
            .iter()
            .any(|effect| matches!(effect, Effect::Kubernetes { request, .. } if of_it(request)));
        let key = (life.0, life.1, path.to_owned());
        now || self.ledger.budget.is_under_way(&key) || self.ledger.waits.is_open(&key)
    }
}

/// What an effect says that is wrong with Services.
fn complaints(effect: &Effect) -> Vec<Complaint> {
    match effect {
        Effect::Say(notice) if matches!(notice.kind, NoticeKind::Refused | NoticeKind::Noted) => {
            let of = |name: &ServiceName| {
                let text = notice.text.strip_prefix(&format!("Service {name}: "))?.to_owned();
                Some(Complaint { name: name.to_string(), reason: String::new(), text })
            };
            notice.services.iter().filter_map(of).collect()
        }
        Effect::Kubernetes { request, .. } if request.body["kind"] == "Event" => {
            let event = &request.body;
            let about = &event["involvedObject"];
            if about["kind"] != "Service" || event["type"] != "Warning" {
                return Vec::new();
            }
            let name = format!("{}/{}", text(&about["namespace"]), text(&about["name"]));
            let message = text(&event["message"]);
            let told = message.strip_prefix(FAILED).unwrap_or(message).to_owned();
            vec![Complaint { name, reason: text(&event["reason"]).to_owned(), text: told }]
        }
        Effect::Azure { .. } | Effect::Kubernetes { .. } | Effect::Say(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Layout, objects};
    use control::Notice;
    use kube_emulator::{ObjectRef, Part, Patch};
    use serde_json::json;

    fn notice(kind: NoticeKind, text: &str) -> Effect {
        let services = vec![ServiceName::new("default", "web-0")];
        let (text, changes) = (text.to_owned(), Vec::new());
        Effect::Say(Notice { at_ms: 0, kind, services, text, changes, correlation: None })
    }

    #[test]
    fn a_service_was_changed_where_its_owner_did_something() {
        let mut stage = Stage::plain(Layout::Single, 1_500);
        let changed = [notice(NoticeKind::Asked, "Service default/web-0 was changed")];
        let wrong = |stage: &mut Stage| {
            stage.check_said(0, &changed);
            stage.breach.take().is_some()
        };
        assert!(wrong(&mut stage));
        stage.processes[0].edits.note(&objects::service("default", 0), false);
        assert!(!wrong(&mut stage));
        assert!(wrong(&mut stage), "once for each edit");
    }

    #[test]
    fn what_a_condition_tells_is_not_told_again() {
        let mut stage = Stage::plain(Layout::Single, 1_500);
        stage.create(objects::service("default", 0));
        let told = [notice(NoticeKind::Noted, "Service default/web-0: endpoints: none")];
        let wrong = |stage: &mut Stage| {
            stage.check_said(0, &told);
            stage.breach.take().is_some()
        };
        assert!(!wrong(&mut stage) && !wrong(&mut stage), "no condition tells it");
        let condition = json!({"type": PROGRAMMED, "message": "endpoints: none"});
        let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
        let object = ObjectRef::new("services", "default", "web-0");
        let _ = stage.kubernetes.patch(object, Part::Status, &patch, stage.now_ms);
        assert!(wrong(&mut stage));
        stage.processes[0].edits.note(&objects::service("default", 0), false);
        assert!(!wrong(&mut stage), "its owner has changed it");
        assert!(wrong(&mut stage));
    }
}
