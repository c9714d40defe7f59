//! Times as Kubernetes writes them.

/// RFC 3339, seconds, UTC.
pub(crate) fn timestamp(at_ms: u64) -> String {
    let seconds = i64::try_from(at_ms / 1_000).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).map(|t| t.to_string()).unwrap_or_default()
}
