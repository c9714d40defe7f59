//! Times as Kubernetes writes them.

/// RFC 3339, seconds, UTC.
pub(crate) fn timestamp(at_ms: u64) -> String {
    let seconds = i64::try_from(at_ms / 1_000).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).map(|t| t.to_string()).unwrap_or_default()
}

/// Milliseconds since 1970 of such a time.
pub(crate) fn at_ms(time: &str) -> Option<u64> {
    let at: jiff::Timestamp = time.parse().ok()?;
    u64::try_from(at.as_millisecond()).ok()
}
