//! Deleting objects.

use super::update::is_finished;
use super::{Call, Key, Run, Store, body_of, is_deleted, key_of};
use crate::events;
use crate::json::{at, child, text};
use crate::kinds::Kind;
use crate::request::{Body, Request, Response};
use crate::route::Target;
use crate::status::ApiError;
use crate::tables::Form;
use serde_json::{Value, json};
use std::sync::Arc;

/// Kinds whose deletion answers with the object and not with a `Status`.
fn answers_with_object(kind: &Kind) -> bool {
    matches!(kind.plural, "services" | "pods" | "serviceaccounts")
}

impl Store {
    pub(super) fn delete_request(
        &mut self,
        target: &Target,
        request: &Request,
        now: u64,
    ) -> Result<Response, ApiError> {
        let options = options_of(request)?;
        let call = call_of(request, &options, now)?;
        let (object, gone) = self.delete_at(target, &options, &call)?;
        if gone && !answers_with_object(target.kind) {
            let mut details = json!({"name": text(&object, "/metadata/name")});
            if !target.kind.group.is_empty() {
                details["group"] = json!(target.kind.group);
            }
            details["kind"] = json!(target.kind.plural);
            details["uid"] = at(&object, "/metadata/uid").clone();
            return Ok(Response::document(json!({"kind": "Status", "apiVersion": "v1",
                "metadata": {}, "status": "Success", "details": details})));
        }
        Ok(Response::new(200, Body::Object(events::outward(target.kind, &object))))
    }

    /// Deletes an object, or marks it if finalizers hold it; says whether it is gone.
    pub(crate) fn delete_at(
        &mut self,
        target: &Target,
        options: &Value,
        call: &Call,
    ) -> Result<(Arc<Value>, bool), ApiError> {
        let kind = target.kind;
        let live = self.find(target)?;
        check_preconditions(kind, &live, options)?;
        let name = target.key().1;
        let reserved = ["default", "kube-system", "kube-public"];
        if kind.plural == "namespaces" && reserved.contains(&name.as_str()) {
            let why = "this namespace may not be deleted";
            return Err(ApiError::forbidden(kind, &name, why, None));
        }
        if call.run == Run::Dry {
            let gone = is_finished(kind, &live);
            return Ok((live, gone));
        }
        let done = self.remove(kind, target.key(), call);
        self.settle(call.now);
        Ok(done)
    }

    /// Removes or marks one object that exists; the caller settles what follows from it.
    pub(super) fn remove(
        &mut self,
        kind: &'static Kind,
        key: Key,
        call: &Call,
    ) -> (Arc<Value>, bool) {
        let found = self.shelf(kind).objects.get(&key).cloned();
        let live = found.expect("the caller has just found this object");
        if is_finished(kind, &live) {
            return (self.commit(kind, key, None, None), true);
        }
        if is_deleted(&live) {
            return (live, false);
        }
        let mut marked = live.as_ref().clone();
        let metadata = child(&mut marked, "metadata");
        metadata.insert("deletionTimestamp".to_string(), json!(call.time()));
        metadata.insert("deletionGracePeriodSeconds".to_string(), json!(0));
        if kind.plural == "namespaces" {
            child(&mut marked, "status").insert("phase".to_string(), json!("Terminating"));
            self.ending.insert(key.1.clone());
        }
        if super::admission::has_generation(kind) {
            let generation = at(&live, "/metadata/generation").as_u64().unwrap_or(1) + 1;
            marked["metadata"]["generation"] = json!(generation);
        }
        (self.commit(kind, key, Some(marked), None), false)
    }

    pub(super) fn delete_many(
        &mut self,
        target: &Target,
        request: &Request,
        now: u64,
    ) -> Result<Response, ApiError> {
        let options = options_of(request)?;
        let call = call_of(request, &options, now)?;
        let listed = self.read_many(target, request, Form::Plain, now)?;
        let Body::List { head, items } = listed.body else {
            return Ok(listed);
        };
        for item in &items {
            let (namespace, name) = key_of(item);
            let namespace = target.kind.is_namespaced().then_some(namespace.as_str());
            let one = Target::new(target.kind, namespace, Some(&name));
            match self.delete_at(&one, &options, &call) {
                Err(error) if error.code() != 404 => return Err(error),
                _ => {}
            }
        }
        Ok(Response::new(200, Body::List { head, items }))
    }
}

fn options_of(request: &Request) -> Result<Value, ApiError> {
    match request.body.is_empty() {
        true => Ok(json!({})),
        false => body_of(request),
    }
}

fn call_of(request: &Request, options: &Value, now: u64) -> Result<Call, ApiError> {
    let mut call = Call::from_request(request, now)?;
    if at(options, "/dryRun/0") == &json!("All") {
        call.run = Run::Dry;
    }
    Ok(call)
}

fn check_preconditions(kind: &Kind, live: &Value, options: &Value) -> Result<(), ApiError> {
    for (member, word) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let wanted = text(options, &format!("/preconditions/{member}"));
        let had = text(live, &format!("/metadata/{member}"));
        if !wanted.is_empty() && wanted != had {
            let why = format!(
                "Precondition failed: {word} in precondition: {wanted}, {word} in object meta: \
                 {had}"
            );
            return Err(ApiError::conflict(kind, text(live, "/metadata/name"), &why));
        }
    }
    Ok(())
}
