//! What a write changes, field by field.

use super::Few;
use arm::difference::{Field, diff};
use arm::{Body, Request, body};
use model::gateway::{LocationsUpdate, NameSet, ServicesUpdate};
use model::plan::Action;
use serde_json::{Value, json};

/// Fields of one write that are kept.
const FIELDS: usize = 200;
/// Bytes of a field's value that are kept.
const VALUE: usize = 2_000;
/// Bytes that the fields of one edit of a Service take at most, about.
const EDIT: usize = 8_000;

/// Members that may carry a secret in a machine's body, which goes through every PUT as it came.
/// Lower case; from the REST reference of `Microsoft.Compute` virtual machines and scale sets.
const SECRET: [&str; 7] = [
    "adminpassword",
    "commandtoexecute",
    "customdata",
    "protectedsettings",
    "protectedsettingsfromkeyvault",
    "secrets",
    "userdata",
];
/// What stands for a value that is not kept.
const HIDDEN: &str = "\"(not kept: it may be a secret)\"";

/// A field that a write changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// Where in the body, as in `properties.probes[name].properties.port`.
    pub path: String,
    /// What it was, as JSON; absent where there was nothing.
    pub old: Option<String>,
    /// What it becomes, as JSON; absent where it goes away.
    pub new: Option<String>,
}

impl FieldChange {
    /// What it takes in memory, about.
    pub(super) fn bytes(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        size_of::<Self>() + self.path.len() + length(&self.old) + length(&self.new)
    }
}

impl From<Field> for FieldChange {
    fn from(field: Field) -> Self {
        let path = field.path;
        let secret = is_secret(&path);
        let text = |value: Option<Value>| value.map(|value| kept(&value, secret));
        Self { old: text(field.old), new: text(field.new), path }
    }
}

/// Whether a path leads to or through a member that may carry a secret.
fn is_secret(path: &str) -> bool {
    let names = path.split(['.', '[', ']']);
    names.into_iter().any(|name| SECRET.contains(&name.to_ascii_lowercase().as_str()))
}

fn kept(value: &Value, secret: bool) -> String {
    if secret {
        return HIDDEN.to_owned();
    }
    let mut value = value.clone();
    hide(&mut value);
    shortened(value.to_string())
}

fn shortened(mut text: String) -> String {
    if text.len() > VALUE {
        let more = text.len() - VALUE;
        text.truncate(text.floor_char_boundary(VALUE));
        text.push_str(&format!("… and {more} bytes more"));
    }
    text
}

/// The fields of one edit, as far as they are kept; what is left out is counted in an entry of its
/// own.
pub(super) fn of_edit(all: Vec<FieldChange>) -> Vec<FieldChange> {
    let (count, mut kept, mut bytes) = (all.len(), Vec::new(), 0);
    for FieldChange { path, old, new } in all {
        let field = FieldChange { path, old: old.map(shortened), new: new.map(shortened) };
        bytes += field.bytes();
        if bytes > EDIT && !kept.is_empty() {
            break;
        }
        kept.push(field);
    }
    if count > kept.len() {
        let path = format!("{} more fields", count - kept.len());
        kept.push(FieldChange { path, old: None, new: None });
    }
    kept
}

fn hide(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                match SECRET.contains(&key.to_ascii_lowercase().as_str()) {
                    true => *value = Value::from(HIDDEN.trim_matches('"')),
                    false => hide(value),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(hide),
        _ => {}
    }
}

/// The first fields that an action changes by its request, and how many more there are.
pub(crate) fn of_action(action: &Action, request: &Request) -> Few<FieldChange> {
    let null = Value::Null;
    let sent = || request.body.as_ref().map(Body::tree).unwrap_or_default();
    let all = match action {
        Action::Put { before: None, .. } | Action::MigratePools { .. } => diff(&null, &sent()),
        Action::Put { before: Some(before), .. } => diff(&body::write_resource(before), &sent()),
        Action::Delete { before } => diff(&body::write_resource(before), &null),
        Action::DeleteChild => Vec::new(),
        Action::UpdateServices(update) => return of_services(update),
        Action::UpdateLocations(update) => return of_locations(update),
    };
    let more = all.len().saturating_sub(FIELDS);
    Few { shown: all.into_iter().take(FIELDS).map(FieldChange::from).collect(), more }
}

fn of_services(update: &ServicesUpdate) -> Few<FieldChange> {
    let put = update.put.iter().map(|one| {
        let service = &one.service;
        let pools: Vec<&str> = service.pools.iter().map(|pool| pool.as_str()).collect();
        let gateway = service.nat_gateway.as_ref().map(|id| id.as_str());
        let new = json!({"loadBalancerBackendPools": pools, "publicNatGatewayId": gateway});
        let path = format!("services[{}]", service.name);
        FieldChange { path, old: None, new: Some(kept(&new, false)) }
    });
    let delete = update.delete.iter().map(|(name, direction)| {
        let old = Some(json!(format!("{direction:?}")).to_string());
        FieldChange { path: format!("services[{name}]"), old, new: None }
    });
    let more = (update.put.len() + update.delete.len()).saturating_sub(FIELDS);
    Few { shown: put.chain(delete).take(FIELDS).collect(), more }
}

fn of_locations(update: &LocationsUpdate) -> Few<FieldChange> {
    let all = update.locations.iter().flat_map(|at| {
        let gone = at.addresses.is_empty().then(|| FieldChange {
            path: format!("locations[{}]", at.location),
            old: Some("\"all of its addresses\"".to_owned()),
            new: None,
        });
        let own = at.addresses.iter().map(|(address, services)| FieldChange {
            path: format!("locations[{}].addresses[{address}].services", at.location),
            old: None,
            new: Some(names(services)),
        });
        gone.into_iter().chain(own)
    });
    let count: usize = update.locations.iter().map(|at| at.addresses.len().max(1)).sum();
    Few { shown: all.take(FIELDS).collect(), more: count.saturating_sub(FIELDS) }
}

fn names(services: &NameSet) -> String {
    let names: Vec<&str> = services.iter().map(AsRef::as_ref).collect();
    kept(&json!(names), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str, new: Value) -> FieldChange {
        FieldChange::from(Field { path: path.to_owned(), old: None, new: Some(new) })
    }

    #[test]
    fn values_that_may_be_secret_are_not_kept() {
        let machine = json!({"osProfile": {"adminPassword": "hunter2", "computerName": "vm"}});
        for (path, value) in [
            ("properties.osProfile.adminPassword", json!("hunter2")),
            ("properties.secrets[0]", json!({"vault": "hunter2"})),
            ("properties.virtualMachineProfile", machine),
        ] {
            let text = change(path, value).new.unwrap_or_default();
            assert!(!text.contains("hunter2") && text.contains("may be a secret"), "{text}");
        }
    }

    #[test]
    fn a_long_value_is_cut_and_says_so() {
        let text = change("tags.long", json!("ä".repeat(5_000))).new.unwrap_or_default();
        assert!(text.len() < VALUE + 40 && text.ends_with("bytes more"), "{}", text.len());
    }
}
