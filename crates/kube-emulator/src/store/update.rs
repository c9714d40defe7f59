//! Replacing and patching objects.

use super::admission::{drop_empty, has_generation, keep_apart};
use super::create::{checked_body, writer_of};
use super::{Call, Ownership, Run, Store, body_of, is_deleted};
use crate::events;
use crate::json::{at, child, drop_key, items, text, texts};
use crate::kinds::Kind;
use crate::patch::apply::{Clash, Force, applied, record_update};
use crate::patch::{Patch, PatchFault, patched};
use crate::request::Request;
use crate::route::{Part, Target};
use crate::status::{ApiError, FieldFault};
use serde_json::{Value, json};
use std::sync::Arc;

/// Members of the metadata no update changes.
const FIXED: [&str; 7] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
    "generateName",
];

/// Who owns which field.
const MANAGED: &str = "/metadata/managedFields";

/// Whether field owners still have to be worked out for a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recording {
    Needed,
    /// Applying a configuration has done it.
    Done,
}

/// Kinds that a PUT creates when they are missing.
fn is_created_by_put(kind: &Kind) -> bool {
    matches!(kind.plural, "leases" | "events")
}

impl Store {
    /// Replaces an object: the code to answer with and the stored object.
    pub(crate) fn replace_at(
        &mut self,
        target: &Target,
        body: Value,
        call: &Call,
    ) -> Result<(u16, Arc<Value>), ApiError> {
        let object = checked_body(target, body)?;
        let key = target.key();
        if text(&object, "/metadata/name") != key.1 {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({}) does not match the name on the URL ({})",
                text(&object, "/metadata/name"),
                key.1
            )));
        }
        let live = match self.find(target) {
            Ok(live) => live,
            Err(_) if is_created_by_put(target.kind) => {
                return Ok((201, self.insert(target, object, call)?));
            }
            Err(error) => return Err(error),
        };
        if target.kind.plural == "leases" && text(&object, "/metadata/resourceVersion").is_empty() {
            let field = "metadata.resourceVersion";
            let fault = FieldFault::invalid(field, &json!(0), "must be specified for an update");
            return Err(ApiError::invalid(target.kind, &key.1, &[fault]));
        }
        Ok((200, self.update(target, &live, object, call)?))
    }

    pub(super) fn patch_request(
        &mut self,
        target: &Target,
        request: &Request,
        call: &Call,
    ) -> Result<(u16, Arc<Value>), ApiError> {
        let media = request.content_type.split(';').next().unwrap_or("").trim();
        let wrap: fn(Value) -> Patch = match media {
            "application/json-patch+json" => Patch::Json,
            "application/merge-patch+json" => Patch::Merge,
            "application/strategic-merge-patch+json" => Patch::Strategic,
            "application/apply-patch+yaml" => Patch::Apply,
            other => {
                let message = format!(
                    "the body of the request was in an unknown format - accepted media types \
                     include: application/json-patch+json, application/merge-patch+json, \
                     application/strategic-merge-patch+json, application/apply-patch+yaml \
                     (it was {other:?})"
                );
                return Err(ApiError::new(415, "UnsupportedMediaType", message));
            }
        };
        let patch = wrap(body_of(request)?);
        if matches!(patch, Patch::Apply(_)) && request.param("fieldManager").is_none() {
            let message = "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required \
                           value: is required for apply patch";
            return Err(ApiError::new(422, "Invalid", message));
        }
        let force = match request.flag("force") {
            true => Force::TakeOver,
            false => Force::Refuse,
        };
        self.patch_at(target, &patch, force, call)
    }

    /// Patches an object: the code to answer with and the stored object.
    pub(crate) fn patch_at(
        &mut self,
        target: &Target,
        patch: &Patch,
        force: Force,
        call: &Call,
    ) -> Result<(u16, Arc<Value>), ApiError> {
        if let Patch::Apply(config) = patch {
            return self.apply_at(target, config, force, call);
        }
        let live = self.find(target)?;
        let seen = events::outward(target.kind, &live);
        let name = &target.key().1;
        let next = patched(target.kind, &seen, patch).map_err(|fault| match fault {
            PatchFault::Malformed(why) => ApiError::bad_request(why),
            PatchFault::Unfit(why) => {
                let message = format!(
                    "the server rejected our request due to an error in our request: {why} \
                     ({} {name:?})",
                    target.kind.qualified_plural()
                );
                ApiError::new(422, "Invalid", message)
            }
        })?;
        let next = checked_body(target, next)?;
        Ok((200, self.update(target, &live, next, call)?))
    }

    fn apply_at(
        &mut self,
        target: &Target,
        config: &Value,
        force: Force,
        call: &Call,
    ) -> Result<(u16, Arc<Value>), ApiError> {
        let mut config = checked_body(target, config.clone())?;
        let kind = target.kind;
        let name = target.key().1;
        let said = text(&config, "/metadata/name");
        if !said.is_empty() && said != name {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({said}) does not match the name on the URL ({name})"
            )));
        }
        config["metadata"]["name"] = json!(name);
        let writer = writer_of(target, call);
        let found = self.find(target);
        let base = match &found {
            Ok(live) => live.as_ref().clone(),
            Err(error) if target.part != Part::Main => return Err(error.clone()),
            Err(_) => Value::Null,
        };
        let next = applied(kind.kind, &writer, &base, &config, force)
            .map_err(|clashes| clash_error(&clashes))?;
        match found {
            Ok(live) => {
                let how = Recording::Done;
                Ok((200, self.store_update(target, &live, (next, how), call)?))
            }
            Err(_) => Ok((201, self.insert(target, next, call)?)),
        }
    }

    /// An ordinary update: field owners follow from what changed.
    fn update(
        &mut self,
        target: &Target,
        live: &Arc<Value>,
        mut next: Value,
        call: &Call,
    ) -> Result<Arc<Value>, ApiError> {
        let sent = at(&next, MANAGED).as_array();
        let is_empty = |entry: &Value| entry.as_object().is_some_and(|map| map.is_empty());
        let base = match sent {
            Some(sent) if sent.iter().any(is_empty) => Some(Vec::new()),
            Some(_) => None,
            None => Some(items(live, MANAGED).to_vec()),
        };
        if let Some(base) = base {
            let metadata = child(&mut next, "metadata");
            metadata.insert("managedFields".to_string(), Value::Array(base));
        }
        self.store_update(target, live, (next, Recording::Needed), call)
    }

    /// Stores the next state of an object. `next` carries the field owners from before this
    /// write (or, for an applied configuration, after it).
    fn store_update(
        &mut self,
        target: &Target,
        live: &Arc<Value>,
        (mut next, how): (Value, Recording),
        call: &Call,
    ) -> Result<Arc<Value>, ApiError> {
        let kind = target.kind;
        let key = target.key();
        check_identity(kind, live, &next)?;
        keep_apart(target, live, &mut next);
        let metadata = child(&mut next, "metadata");
        for member in FIXED {
            match at(live, "/metadata").get(member) {
                Some(value) => metadata.insert(member.to_string(), value.clone()),
                None => drop_key(metadata, member),
            };
        }
        metadata.insert("name".to_string(), json!(key.1));
        let revision = text(live, "/metadata/resourceVersion");
        metadata.insert("resourceVersion".to_string(), json!(revision));
        drop_empty(metadata);
        self.admit(kind, Some(live), &mut next)?;
        if has_generation(kind) && at(live, "/spec") != at(&next, "/spec") {
            let generation = at(live, "/metadata/generation").as_u64().unwrap_or(1) + 1;
            next["metadata"]["generation"] = json!(generation);
        }
        if how == Recording::Needed {
            self.record_owners(target, live, &mut next, call);
        }
        if next == **live && !(is_deleted(live) && is_finished(kind, live)) {
            return Ok(Arc::clone(live));
        }
        if call.run == Run::Dry {
            return Ok(Arc::new(next));
        }
        let stored = match is_deleted(&next) && is_finished(kind, &next) {
            true => self.commit(kind, key, None, Some(next)),
            false => self.commit(kind, key, Some(next), None),
        };
        self.settle(call.now);
        Ok(stored)
    }

    fn record_owners(&self, target: &Target, live: &Value, next: &mut Value, call: &Call) {
        let base = items(next, MANAGED);
        let tracked = self.ownership == Ownership::Tracked
            || base.iter().any(|entry| text(entry, "/operation") == "Apply");
        let owners = tracked.then(|| {
            let writer = writer_of(target, call);
            record_update(target.kind.kind, &writer, base, (live, &*next))
        });
        let none = owners.as_ref().map_or(base.is_empty(), Vec::is_empty);
        let metadata = child(next, "metadata");
        if none {
            drop_key(metadata, "managedFields");
        } else if let Some(owners) = owners {
            metadata.insert("managedFields".to_string(), Value::Array(owners));
        }
    }
}

/// Whether nothing holds a deleted object back.
pub(super) fn is_finished(kind: &Kind, object: &Value) -> bool {
    let held = kind.plural == "namespaces" && !items(object, "/spec/finalizers").is_empty();
    items(object, "/metadata/finalizers").is_empty() && !held
}

fn check_identity(kind: &Kind, live: &Value, next: &Value) -> Result<(), ApiError> {
    let name = text(live, "/metadata/name");
    let (had, has) = (text(live, "/metadata/uid"), text(next, "/metadata/uid"));
    if !has.is_empty() && has != had {
        let why =
            format!("Precondition failed: UID in precondition: {has}, UID in object meta: {had}");
        return Err(ApiError::conflict(kind, name, &why));
    }
    let wanted = text(next, "/metadata/resourceVersion");
    if !wanted.is_empty() && wanted != text(live, "/metadata/resourceVersion") {
        return Err(ApiError::stale(kind, name));
    }
    if is_deleted(live) {
        let before = texts(live, "/metadata/finalizers");
        let mut added = texts(next, "/metadata/finalizers");
        added.retain(|one| !before.contains(one));
        if !added.is_empty() {
            let quoted: Vec<String> = added.iter().map(|one| format!("{one:?}")).collect();
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{{{}}}",
                quoted.join(", ")
            );
            let fault = FieldFault::forbidden("metadata.finalizers", &why);
            return Err(ApiError::invalid(kind, name, &[fault]));
        }
    }
    Ok(())
}

fn clash_error(clashes: &[Clash]) -> ApiError {
    let count: usize = clashes.iter().map(|clash| clash.fields.len()).sum();
    let plural = if count == 1 { "conflict" } else { "conflicts" };
    let mut causes = Vec::new();
    let mut lines = Vec::new();
    for clash in clashes {
        let message = format!("conflict with {:?} using {}", clash.manager, clash.api_version);
        for field in &clash.fields {
            causes.push(json!({"reason": "FieldManagerConflict", "message": message,
                "field": field}));
        }
        lines.push(format!("{message}: {}", clash.fields.join(", ")));
    }
    let message = format!("Apply failed with {count} {plural}: {}", lines.join("; "));
    ApiError::with_details(409, "Conflict", message, json!({"causes": causes}))
}
