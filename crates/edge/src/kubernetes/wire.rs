//! What the bytes of a list's page and of a watch's line say; the objects in them stay text.
//!
//! # Errors
//! One line for people: what was read, and why it is not that.

use super::watch::Change;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<'a> {
    /// The list's revision.
    pub revision: String,
    /// Where the list goes on; nothing on the last page.
    pub next: Option<String>,
    /// The objects.
    pub items: Vec<&'a str>,
}

/// A line of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// An object changed.
    Object {
        /// How.
        change: Change,
        /// As it is, or as it was last.
        object: &'a str,
        /// The revision to go on from; nothing where the object does not tell it.
        revision: Option<String>,
    },
    /// Nothing changed up to this revision.
    Bookmark {
        /// The revision to go on from; nothing where it is not told.
        revision: Option<String>,
    },
    /// The server ends the watch.
    Ended {
        /// An HTTP status.
        code: u16,
        /// Why.
        message: String,
    },
}

#[derive(Deserialize)]
struct RawPage<'a> {
    #[serde(default)]
    metadata: Metadata,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
    #[serde(rename = "continue")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct RawFrame<'a> {
    #[serde(rename = "type", borrow)]
    change: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
    metadata: Metadata,
    code: Option<u16>,
    message: Option<String>,
}

/// Reads a page of a list. Something else that is JSON (a proxy's `{}`) must not pass for a list
/// without objects, which says that all of them are gone: a list has a revision.
///
/// # Errors
/// It is no list of Kubernetes.
pub fn read_page(body: &[u8]) -> Result<Page<'_>, String> {
    let raw: RawPage<'_> =
        serde_json::from_slice(body).map_err(|e| format!("the page is no list: {e}"))?;
    let Metadata { resource_version: revision, next } = raw.metadata;
    if revision.is_empty() {
        return Err("the page is no list: metadata.resourceVersion is missing".to_owned());
    }
    let items = raw.items.unwrap_or_default().into_iter().map(RawValue::get).collect();
    Ok(Page { revision, next: next.filter(|n| !n.is_empty()), items })
}

/// Reads a line of a watch.
///
/// # Errors
/// It is no watch event.
pub fn read_frame(line: &[u8]) -> Result<Frame<'_>, String> {
    let raw: RawFrame<'_> =
        serde_json::from_slice(line).map_err(|e| format!("a line is no watch event: {e}"))?;
    let text = raw.object.get();
    // What is odd in an object is said when the object is read.
    let Object { metadata, code, message } = serde_json::from_str(text).unwrap_or_default();
    let revision = Some(metadata.resource_version).filter(|r| !r.is_empty());
    let change = match &*raw.change {
        "ADDED" | "MODIFIED" => Change::Present,
        "DELETED" => Change::Gone,
        "BOOKMARK" => return Ok(Frame::Bookmark { revision }),
        "ERROR" => {
            let message = message.unwrap_or_else(|| "no explanation".to_owned());
            return Ok(Frame::Ended { code: code.unwrap_or(500), message });
        }
        other => {
            return Err(format!(
                "a line is no watch event: its type is {other:?}, and not ADDED, MODIFIED, \
                 DELETED, BOOKMARK or ERROR"
            ));
        }
    };
    Ok(Frame::Object { change, object: text, revision })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_revision_is_no_list() {
        for body in ["{}", r#"{"items":[]}"#, r#"{"metadata":{},"items":[]}"#, "[]", "", "null"] {
            let error = read_page(body.as_bytes()).unwrap_err();
            assert!(error.starts_with("the page is no list: "), "{error}");
        }
        let page = read_page(br#"{"metadata":{"resourceVersion":"7","continue":""},"items":null}"#);
        assert_eq!(page, Ok(Page { revision: "7".to_owned(), next: None, items: Vec::new() }));
    }

    #[test]
    fn an_event_of_an_unknown_type_changes_nothing() {
        let line = br#"{"type":"ODD","object":{"metadata":{"resourceVersion":"9"}}}"#;
        let error = read_frame(line).unwrap_err();
        assert!(error.contains("\"ODD\""), "{error}");
    }
}
