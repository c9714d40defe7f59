//! The elements of a resource's collections, as all kinds have them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::json::{drop_keys, list, list_mut, object, properties, text};
use crate::message::{Checked, refusal, refuse};
use crate::store::Entry;

/// Takes the read-only parts out of the elements of a collection; a null collection goes.
pub(crate) fn strip_elements(entry: &mut Entry, collection: &str, derived: &[&str]) {
    if entry.value["properties"][collection].is_null() {
        properties(&mut entry.value).shift_remove(collection);
    }
    for element in list_mut(&mut entry.value, collection).into_iter().flatten() {
        if !element.is_object() {
            continue;
        }
        drop_keys(object(element), &["id", "etag", "type"]);
        let inside = properties(element);
        drop_keys(inside, &["provisioningState"]);
        drop_keys(inside, derived);
    }
}

/// Refuses a collection whose elements are not named objects, or share a name.
pub(crate) fn check_names(entry: &Entry, collection: &str) -> Checked {
    let found = &entry.value["properties"][collection];
    if !found.is_null() && !found.is_array() {
        let message = format!("Property {collection} of {} must be a list.", entry.id);
        return refuse("InvalidRequestFormat", message);
    }
    let elements = list(&entry.value, &["properties", collection]);
    if elements.iter().any(|element| text(element, &["name"]).is_empty()) {
        let message = format!("An element of {collection} of {} has no name.", entry.id);
        return refuse("InvalidRequestFormat", message);
    }
    check_siblings(&entry.id, elements)
}

/// Refuses elements of one collection that share a name, in the form that
/// kubernetes-sigs/cloud-provider-azure issue 10307 and Azure/migAz issue 181 show.
pub(crate) fn check_siblings(parent: &str, elements: &[Value]) -> Checked {
    let mut names = BTreeSet::new();
    for name in elements.iter().map(|element| text(element, &["name"])) {
        if !name.is_empty() && !names.insert(name.to_lowercase()) {
            let what =
                format!("Resource {parent} has two child resources with the same name ({name}).");
            return Err(refusal(400, "InvalidRequestFormat", "Cannot parse the request.")
                .because("DuplicateResourceName", what));
        }
    }
    Ok(())
}
