//! Entries of a Service Gateway's table of addresses.

use serde_json::Value;
use std::collections::BTreeSet;

/// A location, an address there, and the name of a service that the address stands for.
pub(crate) type Entry = (String, String, String);

/// All entries of the tables.
pub(crate) fn entries(tables: &Value) -> BTreeSet<Entry> {
    let mut found = BTreeSet::new();
    for (location, at) in tables["locations"].as_object().into_iter().flatten() {
        for (address, names) in at.as_object().into_iter().flatten() {
            let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
            let entry = |name: &str| (location.clone(), address.clone(), name.to_lowercase());
            found.extend(names.map(entry));
        }
    }
    found
}
