//! Reads ARM's answer: the headers that matter, and the body.

use crate::retry_after::{retry_after_ms, text};
use crate::web::WebReply;
use arm::exchange::read_remaining;
use arm::{Item, Method, Page, Reply};
use bytes::Bytes;
use http::HeaderMap;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

/// The reply as the controller sees it. `now` is for `Retry-After` dates. The answer to a read
/// that is a page of a list stays text.
#[must_use]
pub fn reply(web: WebReply, method: Method, now: SystemTime) -> Reply {
    let WebReply { status, headers, body } = web;
    let headers = &headers;
    let read = method == Method::Get && status.is_success();
    let list = if read { page(&body) } else { None };
    let (page, body) = match list {
        Some(list) => (whole(list, body), None),
        None => (None, self::body(&body).map(Arc::new)),
    };
    Reply {
        status: status.as_u16(),
        async_operation: text(headers, "azure-asyncoperation"),
        location: text(headers, "location"),
        retry_after_ms: retry_after_ms(headers, now),
        error_code: text(headers, "x-ms-error-code"),
        remaining: remaining(headers),
        body,
        page,
    }
}

fn body(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice(unmarked(bytes)).ok()
}

/// A proxy or a gateway may put a byte order mark before the text.
fn unmarked(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

#[derive(Deserialize)]
struct PageText<'a> {
    #[serde(borrow)]
    value: Vec<&'a RawValue>,
    #[serde(default, rename = "nextLink")]
    next: Option<String>,
}

/// Where the items of a body are that has a list, and the next page's link; nothing of any other.
fn page(bytes: &[u8]) -> Option<(Vec<Range<usize>>, Option<String>)> {
    let text: PageText<'_> = serde_json::from_slice(unmarked(bytes)).ok()?;
    let begin = bytes.as_ptr().addr();
    let place = |item: &&RawValue| {
        let from = item.get().as_ptr().addr() - begin;
        from..from + item.get().len()
    };
    Some((text.value.iter().map(place).collect(), text.next))
}

/// The page with its text, which is not copied: some lists come in pages of many megabytes.
fn whole((items, next): (Vec<Range<usize>>, Option<String>), body: Bytes) -> Option<Page> {
    let text = Arc::new(String::from_utf8(Vec::from(body)).ok()?);
    let items = items.into_iter().map(|at| Item::Text(Arc::clone(&text), at)).collect();
    Some(Page { items, next })
}

fn remaining(headers: &HeaderMap) -> Vec<(String, u64)> {
    let texts =
        headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    texts.flat_map(|(name, value)| read_remaining(name, value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retry_after::tests::headers;

    #[test]
    fn every_remaining_limit_is_named() {
        let map = headers(&[
            ("x-ms-ratelimit-remaining-subscription-reads", "11999"),
            (
                "x-ms-ratelimit-remaining-resource",
                "Microsoft.Compute/A3Min;107, Microsoft.Compute/B;80,none",
            ),
            ("x-ms-ratelimit-remaining-subscription-writes", "many"),
            ("x-ms-request-charge", "1"),
        ]);
        let expected = [
            ("x-ms-ratelimit-remaining-subscription-reads".to_string(), 11_999),
            ("microsoft.compute/a3min".to_string(), 107),
            ("microsoft.compute/b".to_string(), 80),
        ];
        assert_eq!(remaining(&map), expected);
        assert_eq!(remaining(&HeaderMap::new()), []);
    }

    #[test]
    fn a_body_that_is_no_json_is_none() {
        assert_eq!(body(b"<html>"), None);
        assert_eq!(body(b""), None);
        assert_eq!(body(b"\xef\xbb\xbf{}"), Some(serde_json::json!({})));
    }

    #[test]
    fn a_list_stays_text_and_nothing_else_does() {
        let text = br#"{"value":[{"id":"x"}, 7],"nextLink":"/more","other":[1]}"#;
        for mark in [&b""[..], b"\xef\xbb\xbf"] {
            let bytes = [mark, text].concat();
            let found = page(&bytes).expect("it is a list");
            let found = whole(found, bytes.into()).expect("it is text");
            let text = |item: &Item| match item {
                Item::Text(page, at) => page[at.clone()].to_owned(),
                Item::Parsed(value) => panic!("it was parsed: {value}"),
            };
            let items: Vec<String> = found.items.iter().map(text).collect();
            assert_eq!(items, [r#"{"id":"x"}"#, "7"]);
            assert_eq!(found.next.as_deref(), Some("/more"));
        }
        assert_eq!(page(br#"{"value":[]}"#), Some((Vec::new(), None)));
        for other in [&br#"{"id":"x"}"#[..], br#"{"value":null}"#, br#"{"value":[1}"#, b"[]", b""] {
            assert_eq!(page(other), None);
        }
    }
}
