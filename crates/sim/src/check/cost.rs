//! L5: what differs between two moments, to be compared with what was written.

use super::form::plain;
use crate::stage::Stage;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Resources without their marks, by id; a gateway's tables as two resources.
#[must_use]
pub fn snapshot(stage: &Stage) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for resource in stage.azure.shown() {
        let id = resource["id"].as_str().unwrap_or("").to_lowercase();
        all.insert(id, plain(&resource));
    }
    if let Some(tables) = stage.azure.gateway(&crate::scene::gateway()) {
        for table in ["services", "locations"] {
            all.insert(table.to_owned(), tables[table].clone());
        }
    }
    all
}

/// Resources that differ between two moments.
#[must_use]
pub fn differences(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) -> u64 {
    let ids: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differ = ids.iter().filter(|id| before.get(**id) != after.get(**id)).count() as u64;
    // A NAT gateway has to let go of the Service Gateway before it can be deleted.
    let gone = |id: &&&String| id.contains("/natgateways/") && !after.contains_key(**id);
    differ + ids.iter().filter(gone).count() as u64
}
