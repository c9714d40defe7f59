//! Instants are milliseconds since 1970 and always come from the caller.

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;

/// The text Kubernetes uses for a `Time`: whole seconds, UTC.
pub fn format_time(now_ms: u64) -> String {
    let instant = i64::try_from(now_ms)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok())
        .unwrap_or(Timestamp::UNIX_EPOCH);
    DateTimePrinter::new().precision(Some(0)).timestamp_to_string(&instant)
}

/// The text for whole seconds since 1970, of any sign.
pub(crate) fn format_seconds(seconds: i64) -> String {
    print(seconds, 0, 0)
}

/// The text Kubernetes uses for a `MicroTime`: six decimals, UTC.
pub(crate) fn format_micro_time(seconds: i64, nanos: i64) -> String {
    print(seconds, nanos, 6)
}

fn print(seconds: i64, nanos: i64, decimals: u8) -> String {
    let nanos = i32::try_from(nanos).unwrap_or(0);
    let instant = Timestamp::new(seconds, nanos).unwrap_or(Timestamp::UNIX_EPOCH);
    DateTimePrinter::new().precision(Some(decimals)).timestamp_to_string(&instant)
}

/// Whole seconds since 1970, of any sign, and the nanoseconds after them.
pub(crate) fn parse_instant(text: &str) -> Option<(i64, i64)> {
    let nanos = text.parse::<Timestamp>().ok()?.as_nanosecond();
    let second = 1_000_000_000;
    let seconds = i64::try_from(nanos.div_euclid(second)).ok()?;
    Some((seconds, i64::try_from(nanos.rem_euclid(second)).ok()?))
}

/// Reads a Kubernetes time; `None` when it is not one.
pub fn parse_time(text: &str) -> Option<u64> {
    let instant: Timestamp = text.parse().ok()?;
    u64::try_from(instant.as_millisecond()).ok()
}

/// The age column of `kubectl get`.
pub fn format_age(since: &str, now_ms: u64) -> String {
    match parse_time(since) {
        Some(then) => format_span(now_ms.saturating_sub(then) / 1000),
        None => "<unknown>".to_string(),
    }
}

fn format_span(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |big: u64, unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{big}{unit}"),
        _ => format!("{big}{unit}{small}{small_unit}"),
    };
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => two(days, "d", hours % 24, "h"),
        () if days < 730 => format!("{days}d"),
        () if days < 365 * 8 => two(days / 365, "y", days % 365, "d"),
        () => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_both_ways() {
        let text = format_time(1_700_000_000_999);
        assert_eq!(text, "2023-11-14T22:13:20Z");
        assert_eq!(parse_time(&text), Some(1_700_000_000_000));
        assert_eq!(parse_time("2023-11-14T22:13:20.500000Z"), Some(1_700_000_000_500));
        assert_eq!(parse_time("yesterday"), None);
        assert_eq!(format_micro_time(1_700_000_000, 123_456_789), "2023-11-14T22:13:20.123456Z");
        assert_eq!(
            parse_instant("2023-11-14T22:13:20.123456Z"),
            Some((1_700_000_000, 123_456_000))
        );
        assert_eq!(parse_instant(&format_seconds(-5)), Some((-5, 0)));
        assert_eq!(parse_instant("1969-12-31T23:59:59.5Z"), Some((-1, 500_000_000)));
    }

    #[test]
    fn ages_read_like_kubectl() {
        for (seconds, want) in [
            (5, "5s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (660, "11m"),
            (3 * 3600, "3h"),
            (3 * 3600 + 300, "3h5m"),
            (30 * 3600, "30h"),
            (50 * 3600, "2d2h"),
            (30 * 86_400, "30d"),
            (800 * 86_400, "2y70d"),
        ] {
            assert_eq!(format_span(seconds), want);
        }
    }
}
