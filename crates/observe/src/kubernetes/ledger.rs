//! The ledger's ConfigMap.

use model::ledger::{Destinations, SetTags, decode};
use model::{Etag, Ledger};
use serde_json::Value;
use std::sync::Arc;

/// The key of a ConfigMap's data with the destinations.
pub const DESTINATIONS: &str = "destinations";
/// The key with the ETag of the security group.
pub const PLANNED_ON: &str = "securityGroupEtag";
/// The key with the tags that annotations have set.
pub const TAGS: &str = "tags";

/// Reads the ledger.
///
/// # Errors
/// It is no ConfigMap with a ledger; the text says what is wrong with it.
pub fn ledger_from_value(value: &Value) -> Result<Ledger, String> {
    let text = |at: &str| value.pointer(at).and_then(Value::as_str);
    let revision = text("/metadata/resourceVersion").filter(|revision| !revision.is_empty());
    let revision = revision.ok_or("metadata.resourceVersion is missing")?;
    let data = |key: &str| value.get("data").and_then(|data| data.get(key)?.as_str());
    let missing = || format!("data.{DESTINATIONS} is missing");
    let destinations: Destinations = decode(data(DESTINATIONS).ok_or_else(missing)?)
        .map_err(|why| format!("data.{DESTINATIONS}: {why}"))?;
    let planned_on = data(PLANNED_ON).filter(|etag| !etag.is_empty()).map(Etag::new);
    let tags = data(TAGS).map(SetTags::decode).unwrap_or_default();
    Ok(Ledger { revision: Some(Arc::from(revision)), planned_on, destinations, tags })
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
        assert_eq!(empty.expect("it is one").destinations.len(), 0);
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
