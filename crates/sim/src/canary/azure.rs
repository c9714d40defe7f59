//! What is wrong on the way to Azure.

use super::{Canary, Mutant};
use crate::check::form::parts;
use crate::path::bare_path;
use crate::scene;
use crate::scene::objects::{OTHER_CLUSTERS, is_theirs};
use crate::stage::Stage;
use arm::{Answer, Method, Reply, Request, Target};
use control::{CallId, Effect, Event, KubernetesCall};
use model::Etag;
use serde_json::{Value, json};

const BALANCERS: &str = "/loadBalancers/";

impl Mutant {
    /// What becomes of a PUT's body.
    fn spoil(&mut self, request: &mut Request, path: &str) {
        match self.canary {
            Canary::DropsForeignParts => each_list(request, |list| {
                list.retain(|part| !is_theirs(part["name"].as_str().unwrap_or("")));
            }),
            Canary::DropsForeignTags => {
                if let Some(tags) = tree(request).and_then(|b| b["tags"].as_object_mut()) {
                    tags.retain(|key, _| !is_theirs(key));
                }
            }
            Canary::EmptiesPoolOnError if self.failed => each_list(request, |list| {
                for part in list.iter_mut().filter(|part| !is_theirs_part(part)) {
                    let held = part.pointer_mut("/properties/loadBalancerBackendAddresses");
                    if let Some(held) = held.filter(|held| held.is_array()) {
                        *held = json!([]);
                    }
                }
            }),
            Canary::DoesNotDrain => each_list(request, |list| {
                for part in list.iter_mut().filter(|part| !is_theirs_part(part)) {
                    let held = part.pointer_mut("/properties/loadBalancerBackendAddresses");
                    if let Some(held) = held.and_then(Value::as_array_mut) {
                        held.retain(|member| member["properties"]["adminState"] != "Down");
                    }
                }
            }),
            Canary::SwapsAddress if path.contains("/loadBalancers/") => {
                swap_address(request);
            }
            Canary::ForgetsRule if path.contains("/networkSecurityGroups/") => {
                each_list(request, |list| {
                    let foreign = |part: &Value| {
                        is_theirs_part(part) || part["name"] == json!(OTHER_CLUSTERS)
                    };
                    if let Some(at) = list.iter().position(|part| !foreign(part)) {
                        list.remove(at);
                    }
                });
            }
            Canary::SpoilsRules => each_list(request, |list| {
                for part in list.iter_mut().filter(|part| !is_theirs_part(part)) {
                    let minutes = part.pointer_mut("/properties/idleTimeoutInMinutes");
                    if let Some(minutes) = minutes.filter(|minutes| minutes.is_number()) {
                        *minutes = json!(13);
                    }
                }
            }),
            _ => {}
        }
    }

    pub(super) fn azure(
        &mut self,
        call: CallId,
        mut request: Request,
        stage: &mut Stage,
        number: usize,
        out: &mut Vec<Effect>,
    ) {
        let path = bare_path(&request).to_owned();
        if request.method == Method::Put {
            self.spoil(&mut request, &path);
        }
        if let Some(reply) = self.pretended(&request, &path, stage) {
            let answer = Answer::Reply(Box::new(reply));
            stage.tell(number, Event::Azure { call, answer });
            return;
        }
        let delete = request.method == Method::Delete;
        match self.canary {
            Canary::IgnoresIfMatch => request.condition = arm::Condition::None,
            Canary::DeletesNeighbour if delete => {
                out.push(
                    self.extra(Method::Delete, &scene::network("publicIPAddresses/theirs-ip")),
                );
            }
            Canary::DeletesByoIp if delete => {
                out.push(self.extra(Method::Delete, &scene::network("publicIPAddresses/byo-pip")));
            }
            Canary::ReleasesPodsEarly if !delete && path.contains("/natGateways/") => {
                if let Some(marked) = self.marked.take() {
                    let body = super::api::without_finalizers(stage, &marked.path);
                    let request = KubernetesCall { body, ..marked };
                    out.push(Effect::Kubernetes { call: self.fresh(), request });
                }
            }
            Canary::NeverChangesTimeouts if request.method == Method::Put => {
                let standing = stage.azure.shown_by_id(&path);
                if let Some(body) = tree(&mut request).filter(|_| path.contains(BALANCERS)) {
                    self.timeouts.keep(body, standing.as_deref());
                }
            }
            Canary::SpoilsTheirRow
            | Canary::ReplacesLocations
            | Canary::RegistersEarly
            | Canary::UnregistersEarly => out.extend(self.tables(&mut request, &path, stage)),
            Canary::WritesWhenQuiet if is_list(&request) && path.contains("/loadBalancers") => {
                self.seen += 1;
                let id = stage.scene.security_group();
                // With the first list the group itself is only being read.
                let group = stage.azure.resource(&id).filter(|_| self.seen > 1);
                if let Some(group) = group {
                    let mut write = self.extra(Method::Put, &id);
                    if let Effect::Azure { request, .. } = &mut write {
                        request.body = Some(group.into());
                    }
                    out.push(write);
                }
            }
            Canary::WritesTwice if request.method.is_write() => {
                let mut twice = self.extra(request.method, &path);
                if let Effect::Azure { request: again, .. } = &mut twice {
                    again.target = request.target.clone();
                    again.body.clone_from(&request.body);
                }
                out.push(twice);
            }
            _ => {}
        }
        self.asked.insert(call, request.clone());
        out.push(Effect::Azure { call, request });
    }

    pub(super) fn extra(&mut self, method: Method, path: &str) -> Effect {
        // A PUT says that something stands: what it was planned on is not what is wrong with it.
        let stands = arm::Condition::Unchanged(Etag::new("*"));
        let request = Request {
            method,
            target: Target::Path(format!("{path}?api-version=2025-05-01")),
            condition: if method == Method::Put { stands } else { arm::Condition::None },
            body: None,
            correlation: "mutant".to_owned(),
        };
        Effect::Azure { call: self.fresh(), request }
    }

    /// The answer to a write that is never sent.
    fn pretended(&self, request: &Request, path: &str, stage: &Stage) -> Option<Reply> {
        let gone = Reply { status: 204, ..Reply::default() };
        let delete = request.method == Method::Delete && path.contains("/publicIPAddresses/");
        match self.canary {
            Canary::ForgetsPublicIp if delete => Some(gone),
            Canary::KeepsEgressAddress if delete && path.ends_with("-pip-v6") => Some(gone),
            Canary::KeepsOpen if request.method == Method::Put => {
                let body = request.body.as_ref()?.tree().into_owned();
                let closes = closes(stage.azure.shown_by_id(path)?.as_ref(), &body);
                closes.then(|| Reply { status: 200, body: Some(body.into()), ..Reply::default() })
            }
            Canary::WaitsForTheBroken
                if request.method.is_write() && self.refused && stage.poison.is_some() =>
            {
                let error_code = Some("AnotherOperationInProgress".to_owned());
                Some(Reply { status: 409, error_code, ..Reply::default() })
            }
            _ => None,
        }
    }
}

pub(super) fn is_list(request: &Request) -> bool {
    let path = bare_path(request);
    request.method == Method::Get
        && matches!(request.target, Target::Path(_))
        && (path.ends_with("/loadBalancers") || path.ends_with("/publicIPAddresses"))
}

fn is_theirs_part(part: &Value) -> bool {
    is_theirs(part["name"].as_str().unwrap_or(""))
}

pub(super) fn tree(request: &mut Request) -> Option<&mut Value> {
    request.body.as_mut()?.tree_mut()
}

fn each_list(request: &mut Request, mut change: impl FnMut(&mut Vec<Value>)) {
    let inside = tree(request).and_then(|body| body["properties"].as_object_mut());
    for (_, value) in inside.into_iter().flatten() {
        if let Some(list) = value.as_array_mut() {
            change(list);
        }
    }
}

/// Whether a write takes security rules of ours away.
fn closes(standing: &Value, body: &Value) -> bool {
    let (was, is) = (parts(standing, "securityRules"), parts(body, "securityRules"));
    was.keys().any(|name| !is_theirs(name) && !is.contains_key(name))
}

fn swap_address(request: &mut Request) {
    let Some(body) = tree(request) else { return };
    let frontends = body["properties"]["frontendIPConfigurations"].as_array_mut();
    let ours = frontends.into_iter().flatten().filter(|f| !is_theirs_part(f));
    let mut ours: Vec<&mut Value> =
        ours.filter(|f| f["properties"]["publicIPAddress"].is_object()).collect();
    if let [first, second, ..] = ours.as_mut_slice() {
        let one = first["properties"]["publicIPAddress"].take();
        let two = second["properties"]["publicIPAddress"].take();
        first["properties"]["publicIPAddress"] = two;
        second["properties"]["publicIPAddress"] = one;
    }
}
