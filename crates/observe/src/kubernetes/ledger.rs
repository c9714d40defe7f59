//! The ledger's ConfigMap.

use model::ledger::{Destinations, Extent, SetTags, decode};
use model::{Etag, Ledger};
use serde_json::Value;
use std::sync::Arc;

/// The key of a ConfigMap's data with the destinations.
pub const DESTINATIONS: &str = "destinations";
/// The key with the ETag of the security group.
pub const PLANNED_ON: &str = "securityGroupEtag";
/// The key with the tags that annotations have set.
pub const TAGS: &str = "tags";
/// The key that marks a ledger which was made for a note, and has no destinations yet.
pub const NOTES_ALONE: &str = "notesAlone";

/// Reads the ledger.
///
/// # Errors
/// It is no ConfigMap with a ledger; the text says what is wrong with it.
pub fn ledger_from_value(value: &Value) -> Result<Ledger, String> {
    let text = |at: &str| value.pointer(at).and_then(Value::as_str);
    let revision = text("/metadata/resourceVersion").filter(|revision| !revision.is_empty());
    let revision = revision.ok_or("metadata.resourceVersion is missing")?;
    let data = |key: &str| value.get("data").and_then(|data| data.get(key)?.as_str());
    let (destinations, extent) = match data(DESTINATIONS) {
        Some(text) => {
            (decode(text).map_err(|why| format!("data.{DESTINATIONS}: {why}"))?, Extent::Whole)
        }
        None if data(NOTES_ALONE).is_some() => (Destinations::new(), Extent::NotesAlone),
        None => return Err(format!("data.{DESTINATIONS} is missing")),
    };
    let planned_on = data(PLANNED_ON).filter(|etag| !etag.is_empty()).map(Etag::new);
    let tags = data(TAGS).map(SetTags::decode).unwrap_or_default();
    Ok(Ledger { revision: Some(Arc::from(revision)), extent, planned_on, destinations, tags })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_no_ledger_is_never_an_empty_one() {
        let read = |value: Value| ledger_from_value(&value);
        let metadata = json!({"resourceVersion": "7"});
        let whole = read(json!({"metadata": metadata, "data": {"destinations": "node 10.0.0.4\n",
            "securityGroupEtag": "W/\"1\""}}));
        let whole = whole.expect("it is one");
        assert_eq!((whole.revision.as_deref(), whole.destinations.len()), (Some("7"), 1));
        assert_eq!(whole.planned_on, Some(Etag::new("W/\"1\"")));
        assert!(whole.tags.is_empty());
        let noted = read(json!({"metadata": metadata, "data": {"destinations": "",
            "tags": "{\"rg/web\": [\"team\"]}"}}));
        assert!(!noted.expect("it is one").tags.is_empty());
        let empty = read(json!({"metadata": metadata, "data": {"destinations": ""}}));
        let empty = empty.expect("it is one");
        assert_eq!((empty.destinations.len(), empty.is_absent()), (0, false));
        // Made for a note: what is open was never recorded, and then it was.
        let notes = read(json!({"metadata": metadata, "data": {"notesAlone": "true"}}));
        assert!(notes.expect("it is one").is_absent());
        let both = json!({"notesAlone": "true", "destinations": ""});
        let both = read(json!({"metadata": metadata, "data": both}));
        assert!(!both.expect("it is one").is_absent());
        for (odd, why) in [
            (json!({}), "metadata.resourceVersion is missing"),
            (json!({"metadata": metadata}), "data.destinations is missing"),
            (json!({"metadata": metadata, "data": null}), "data.destinations is missing"),
            (json!({"metadata": metadata, "data": {"destinations": 5}}), "data.destinations is"),
            (json!({"metadata": metadata, "data": {"destinations": "all"}}), "line 1 has no"),
        ] {
            let error = read(odd).expect_err("it is none");
            assert!(error.contains(why), "{error}");
        }
    }
}
