//! Reads ARM's answer: the headers that matter, and the body.

use crate::retry_after::{retry_after_ms, text};
use crate::web::WebReply;
use arm::Reply;
use arm::exchange::read_remaining;
use http::HeaderMap;
use serde_json::Value;
use std::time::SystemTime;

/// The reply as the controller sees it. `now` is for `Retry-After` dates.
#[must_use]
pub fn reply(web: &WebReply, now: SystemTime) -> Reply {
    let headers = &web.headers;
    Reply {
        status: web.status.as_u16(),
        async_operation: text(headers, "azure-asyncoperation"),
        location: text(headers, "location"),
        retry_after_ms: retry_after_ms(headers, now),
        remaining: remaining(headers),
        body: body(&web.body),
    }
}

fn body(bytes: &[u8]) -> Option<Value> {
    // A proxy or a gateway may put a byte order mark before it.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    serde_json::from_slice(bytes).ok()
}

fn remaining(headers: &HeaderMap) -> Vec<(String, u64)> {
    let texts =
        headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    texts.flat_map(|(name, value)| read_remaining(name, value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

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
}
