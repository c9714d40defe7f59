//! Others who keep things of theirs in the resources that we write.

use super::Company;
use crate::fault::Fault;
use crate::random::Random;
use crate::scene::{self, Outbound, objects};
use crate::stage::Stage;
use crate::tally::count;
use azure_emulator::Request;
use serde_json::{Value, json};

impl Company {
    pub(super) fn neighbour(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
        count(&mut stage.tally.faults, Fault::TheirEdits.name());
        let number = random.below(3);
        let on_balancer = self.scene.outbound == Outbound::Theirs && random.permille(500);
        let group = self.scene.security_group();
        let balancer = scene::network("loadBalancers/kubernetes");
        let (place, what, value) = match (on_balancer, random.below(4)) {
            (false, 0 | 1) => {
                let name = format!("theirs-{number}");
                let rule = objects::their_rule(&name, 200 + number);
                (format!("{group}#securityRules/{name}"), "add a rule of theirs", Some(rule))
            }
            (false, 2) => {
                let name = format!("theirs-{number}");
                (format!("{group}#securityRules/{name}"), "take a rule of theirs away", None)
            }
            (false, _) => {
                let value = json!(random.below(100).to_string());
                (format!("{group}#tags/theirs"), "set a tag of theirs", Some(value))
            }
            (true, 0 | 1) => {
                let name = format!("theirs-probe-{number}");
                let probe = json!({"name": name, "properties": {"protocol": "Tcp",
                    "port": 1_000 + random.below(9), "intervalInSeconds": 5,
                    "numberOfProbes": 1, "noHealthyBackendsBehavior": "AllProbedUp"}});
                (format!("{balancer}#probes/{name}"), "add a probe of theirs", Some(probe))
            }
            (true, 2) => {
                let name = format!("theirs-probe-{number}");
                (format!("{balancer}#probes/{name}"), "take a probe of theirs away", None)
            }
            (true, _) => {
                let value = json!(random.below(100).to_string());
                (format!("{balancer}#tags/theirs"), "set a tag of theirs", Some(value))
            }
        };
        self.theirs.insert(place, value);
        self.tend_theirs(stage);
        what
    }

    /// Edits that Azure refused, or that came too early, are tried again.
    pub(super) fn tend_theirs(&mut self, stage: &mut Stage) {
        let mut done = Vec::new();
        for (place, value) in &self.theirs {
            let Some((id, part)) = place.split_once('#') else { continue };
            let Some((collection, name)) = part.split_once('/') else { continue };
            let changed = edit(stage, id, |resource| {
                if collection == "tags" {
                    resource["tags"][name] = value.clone().unwrap_or(Value::Null);
                    return;
                }
                let items = &mut resource["properties"][collection];
                if !items.is_array() {
                    *items = json!([]);
                }
                let items = items.as_array_mut().into_iter().flatten();
                let mut kept: Vec<Value> =
                    items.filter(|i| i["name"] != json!(name)).map(|i| i.take()).collect();
                kept.extend(value.clone());
                resource["properties"][collection] = Value::Array(kept);
            });
            if changed {
                done.push(place.clone());
            }
        }
        for place in done {
            self.theirs.remove(&place);
        }
    }
}

/// Somebody reads a resource, changes it and writes it back. True when Azure took it.
pub(crate) fn edit(stage: &mut Stage, id: &str, change: impl FnOnce(&mut Value)) -> bool {
    // What was to be deleted by now is not made anew.
    stage.azure.pass(stage.now_ms);
    let Some(mut resource) = stage.azure.resource(id) else { return false };
    change(&mut resource);
    let request = Request::new("PUT", id).with_body(resource);
    let answer = stage.azure.handle(request, stage.now_ms);
    stage.azure.clear_calls();
    let status = answer.status;
    stage.trace.say(stage.now_ms, || {
        let code = answer.code().unwrap_or("");
        format!("somebody writes {} -> {status} {code}", id.rsplit('/').next().unwrap_or(""))
    });
    matches!(status, 200..300)
}
