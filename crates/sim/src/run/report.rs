//! The operator has drift reported and left (`driftPolicy: report`), and another client changes
//! what a guest has: it is shown and stays so, whatever else is written, until drift is repaired
//! again (docs/drift.md).

use super::Play;
use crate::actor::neighbour::edit;
use crate::check::form::{parts, text};
use crate::check::tenants::is_refused;
use crate::scene::Layout;
use crate::tally::count;
use azure_emulator::Switch;
use kube_emulator::ObjectRef;
use model::ServiceUid;
use serde_json::{Value, json};

/// In how many runs of a thousand.
const REPORTED: u64 = 300;
/// In how many of these the rule goes; in others its idle timeout changes.
const REMOVED: u64 = 350;
/// In how many of these the processes begin anew once the drift is noted.
const RESTARTED: u64 = 400;
/// Within so long lists are certain to show all that was written before a restart, and have shown a
/// process what it is to find later.
const SHOWN_MS: u64 = 360_000;
/// Within so long drift is noticed, and would be repaired.
const NOTICED_MS: u64 = 600_000;
/// The cloud config's key.
const POLICY: &str = "driftPolicy";
/// Who has what is changed, and who comes meanwhile.
const CHANGED: (&str, u64) = ("default", 56);
const NEXT: (&str, u64) = ("default", 58);
/// What the other client changes the idle timeout to, and the interval of the rule's own probe.
const MINUTES: u64 = 9;
const SECONDS: u64 = 17;
const BALANCERS: &str = "Microsoft.Network/loadBalancers";

/// A rule, by its load balancer's id and its name.
type Place = (String, String);

impl Play {
    /// L1: what another client has changed stays so, and nothing is written for it. L4: it is
    /// counted, and an Event tells of it. L1 again once drift is repaired.
    pub(super) fn be_reported(&mut self) {
        let mut random = self.late.fork("drift reported");
        // Azure's buckets may keep a process from reading its lists for longer than is waited here.
        let throttled = self.stage.azure.options().throttle == Switch::On;
        if self.stage.breach.is_some() || throttled || !random.permille(REPORTED) {
            return;
        }
        self.come(CHANGED);
        self.heal();
        self.judge_end();
        self.set_key(POLICY, &json!("report"));
        self.stage.advance(self.stage.now_ms + SHOWN_MS);
        self.heal();
        let place = self.rule_of_changed().filter(|_| self.stage.breach.is_none());
        if let Some(place) = place {
            let nodes = self.stage.scene.layout != Layout::Containers;
            let goes = random.permille(REMOVED) && nodes;
            // The ledger, which says what was left, is written where security rules are.
            let restarted = random.permille(RESTARTED) && nodes;
            self.leave_drift(&place, goes, restarted);
        }
        self.set_key(POLICY, &json!("repair"));
        // What the other client did is put right only now.
        self.stage.ledger.touched.renew(self.stage.now_ms);
        self.stage.advance(self.stage.now_ms + SHOWN_MS);
        self.heal();
        self.judge_end();
        self.go(CHANGED);
        self.go(NEXT);
        self.come_to_rest();
    }

    /// Another client changes the rule, or takes it away, and another Service comes.
    fn leave_drift(&mut self, place: &Place, goes: bool, restarted: bool) {
        if !self.change_rule(place, goes) {
            return;
        }
        let left = self.standing_at(place);
        let changed = left["idle timeout"] == if goes { Value::Null } else { json!(MINUTES) };
        if !changed && self.stage.breach.is_none() {
            let text = format!("{} is {left}, although drift is reported and left", place.1);
            self.stage.fail("L1", text);
        }
        self.judge_left(place, &left, "although drift is reported and left");
        if restarted && self.stage.breach.is_none() {
            for number in 0..self.stage.processes.len() {
                self.stage.kill(number, "restarted while drift is left");
            }
            self.judge_left(place, &left, "after a restart");
        }
        self.come(NEXT);
        self.heal();
        self.stage.advance(self.stage.now_ms + NOTICED_MS);
        self.judge_left(place, &left, "since another Service has come");
        let told = self.service_of(NEXT).is_some_and(|service| {
            !is_refused(&service) && !service["status"]["loadBalancer"]["ingress"].is_null()
        });
        if !told {
            self.stage.fail("L1", format!("{NEXT:?} has no address while drift is left"));
        }
    }

    /// Another client changes the rule, or takes it away. False where Azure does not let them.
    fn change_rule(&mut self, (balancer, rule): &Place, goes: bool) -> bool {
        let (before, noticed) = (self.stage.before_hands(), self.stage.drift_noticed());
        self.stage.ledger.inputs += 1;
        let changed = edit(&mut self.stage, balancer, |resource| {
            let Some(rules) = resource["properties"]["loadBalancingRules"].as_array_mut() else {
                return;
            };
            if goes {
                rules.retain(|other| other["name"] != **rule);
            }
            for own in rules.iter_mut().filter(|other| other["name"] == **rule) {
                own["properties"]["idleTimeoutInMinutes"] = json!(MINUTES);
            }
            // Its own probe has the rule's name.
            let probes = resource["properties"]["probes"].as_array_mut().filter(|_| !goes);
            let own = probes.into_iter().flatten().filter(|probe| probe["name"] == **rule);
            own.for_each(|probe| probe["properties"]["intervalInSeconds"] = json!(SECONDS));
        });
        self.stage.after_hands(&before);
        if !changed {
            return false;
        }
        let written = self.stage.ledger.attempts;
        self.stage.advance(self.stage.now_ms + NOTICED_MS);
        if self.stage.ledger.attempts > written {
            let text = "drift is reported, and something is written for it".to_owned();
            self.stage.fail("L1", text);
        }
        count(&mut self.stage.tally.checks, "L4");
        let counted = match (noticed, self.stage.drift_noticed()) {
            (Some((life, was)), Some((now, is))) if life == now => is > was,
            _ => true,
        };
        if !counted || !self.is_told_of_drift() {
            let text = format!("{rule} was changed, and that is not counted, or no Event tells it");
            self.stage.fail("L4", text);
        }
        true
    }

    /// What the other client left is as it was left.
    fn judge_left(&mut self, place: &Place, left: &Value, when: &str) {
        self.stage.advance(self.stage.now_ms + SHOWN_MS);
        if self.stage.breach.is_some() {
            return;
        }
        count(&mut self.stage.tally.checks, "L1");
        let is = self.standing_at(place);
        if is != *left {
            let text = format!("{} was {left}, and is {is} {when}", place.1);
            self.stage.fail("L1", text);
        }
    }

    fn service_of(&self, (namespace, slot): (&str, u64)) -> Option<Value> {
        let name = format!("web-{slot}");
        let object = self.stage.kubernetes.get(ObjectRef::new("services", namespace, &name));
        object.ok().map(|object| Value::clone(&object))
    }

    /// The rule of the guest whose rule is changed.
    fn rule_of_changed(&self) -> Option<Place> {
        let service = self.service_of(CHANGED)?;
        let uid = text(&service["metadata"]["uid"]).to_lowercase();
        let base = ServiceUid::new(&uid).base_name();
        self.stage.azure.resources_of(BALANCERS).into_iter().find_map(|balancer| {
            let id = text(&balancer["id"]).to_owned();
            // A container load balancer is called after its Service, and has all of its rules.
            let whole = id.to_lowercase().ends_with(&uid);
            let mut rules = parts(&balancer, "loadBalancingRules").into_keys();
            let rule = rules.find(|name| whole || name.to_lowercase().starts_with(&base))?;
            Some((id, rule))
        })
    }

    /// The idle timeout of a rule and the interval of its own probe; null where there is none.
    fn standing_at(&self, (balancer, name): &Place) -> Value {
        let balancer = self.stage.azure.shown_by_id(balancer).unwrap_or_default();
        let field = |kind: &str, key: &str| {
            let part = parts(&balancer, kind).remove(name);
            part.map_or(Value::Null, |part| part["properties"][key].clone())
        };
        json!({"idle timeout": field("loadBalancingRules", "idleTimeoutInMinutes"),
            "interval": field("probes", "intervalInSeconds")})
    }

    /// Whether an Event tells the guest of drift.
    fn is_told_of_drift(&self) -> bool {
        let events = self.stage.kubernetes.list("events", None);
        let name = format!("web-{}", CHANGED.1);
        events.iter().any(|event| {
            let about = &event["involvedObject"];
            event["reason"] == "AzureDrift" && about["name"] == *name
        })
    }
}
