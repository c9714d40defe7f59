//! The elements of a resource's collections, as all kinds have them.

use std::collections::BTreeSet;

use crate::json::{drop_keys, list, list_mut, object, properties, text};
use crate::message::{Checked, refuse};
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
    let mut names = BTreeSet::new();
    for element in list(&entry.value, &["properties", collection]) {
        let name = text(element, &["name"]).to_lowercase();
        if name.is_empty() {
            let message = format!("An element of {collection} of {} has no name.", entry.id);
            return refuse("InvalidRequestFormat", message);
        }
        if !names.insert(name) {
            let message = format!(
                "Resource {}/{collection} has two elements named {}.",
                entry.id,
                text(element, &["name"])
            );
            return refuse("DuplicateResourceName", message);
        }
    }
    Ok(())
}
