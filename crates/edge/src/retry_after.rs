//! How long a server asks to wait.

use http::HeaderMap;
use std::time::SystemTime;

/// Longest wait taken from a header: beyond it, it is a mistake of the sender's clock.
const LONGEST_WAIT_MS: u64 = 24 * 60 * 60 * 1000;

/// `Retry-After-Ms`, `x-ms-retry-after-ms`, or `Retry-After` in seconds or as an HTTP date.
#[must_use]
pub fn retry_after_ms(headers: &HeaderMap, now: SystemTime) -> Option<u64> {
    let millis = ["retry-after-ms", "x-ms-retry-after-ms"]
        .iter()
        .find_map(|name| text(headers, name)?.parse::<u64>().ok());
    let wait = millis.or_else(|| {
        let value = text(headers, "retry-after")?;
        seconds_ms(&value).or_else(|| until_ms(&value, now))
    })?;
    Some(wait.min(LONGEST_WAIT_MS))
}

fn seconds_ms(value: &str) -> Option<u64> {
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(seconds.saturating_mul(1000));
    }
    let seconds = value.parse::<f64>().ok().filter(|s| s.is_finite() && *s >= 0.0)?;
    // A float cast saturates, and the caller caps it.
    Some((seconds * 1000.0).ceil() as u64)
}

fn until_ms(value: &str, now: SystemTime) -> Option<u64> {
    let then = jiff::fmt::rfc2822::parse(value).ok()?.timestamp().as_millisecond();
    let now = now.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_millis();
    let now = i64::try_from(now).ok()?;
    Some(u64::try_from(then.saturating_sub(now)).unwrap_or(0))
}

pub(crate) fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?.trim();
    (!value.is_empty()).then(|| value.to_string())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::time::Duration;

    pub(crate) fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, value.parse().expect("a header's value"));
        }
        map
    }

    #[test]
    fn waits_are_read_in_every_form() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        type Case<'a> = (&'a [(&'static str, &'a str)], Option<u64>);
        let cases: [Case<'_>; 9] = [
            (&[("retry-after", "17")], Some(17_000)),
            (&[("retry-after", "0.25")], Some(250)),
            (&[("retry-after", "0")], Some(0)),
            (&[("retry-after", "Sun, 06 Nov 1994 08:49:42 GMT")], Some(5_000)),
            (&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")], Some(0)),
            (&[("retry-after-ms", "40"), ("retry-after", "9")], Some(40)),
            (&[("x-ms-retry-after-ms", "41")], Some(41)),
            (&[("retry-after", "99999999999")], Some(LONGEST_WAIT_MS)),
            (&[("retry-after", "soon")], None),
        ];
        for (given, expected) in cases {
            assert_eq!(retry_after_ms(&headers(given), now), expected, "{given:?}");
        }
    }
}
