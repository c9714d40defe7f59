//! Times for people.

use crate::html::Html;

/// How long, with one unit.
#[must_use]
pub fn span(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// How long a call took.
#[must_use]
pub fn duration(ms: u64) -> String {
    match ms {
        0..=999 => format!("{ms} ms"),
        1_000..=99_999 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => span(ms),
    }
}

fn stamp(at_ms: u64) -> String {
    let at_ms = i64::try_from(at_ms).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(at_ms).map(|t| format!("{t:.3}")).unwrap_or_default()
}

/// Writes how long ago something was; the script keeps it running.
pub fn since(h: &mut Html, at_ms: u64, now_ms: u64) {
    let (at, ms) = (stamp(at_ms), at_ms.to_string());
    let attributes = [("datetime", at.as_str()), ("title", at.as_str()), ("data-since", &ms)];
    h.leaf("time", &attributes, &span(now_ms.saturating_sub(at_ms)));
}

/// Writes how long it is until something; the script keeps it running.
pub fn until(h: &mut Html, at_ms: u64, now_ms: u64) {
    let (at, ms) = (stamp(at_ms), at_ms.to_string());
    let attributes = [("datetime", at.as_str()), ("title", at.as_str()), ("data-until", &ms)];
    h.leaf("time", &attributes, &span(at_ms.saturating_sub(now_ms)));
}

/// The time of day, UTC, to the second.
#[must_use]
pub fn time_of_day(at_ms: u64) -> String {
    stamp(at_ms).get(11..19).unwrap_or_default().to_owned()
}

/// Writes the time of day, UTC.
pub fn clock(h: &mut Html, at_ms: u64) {
    let at = stamp(at_ms);
    let time = at.get(11..23).unwrap_or(&at);
    h.leaf("time", &[("datetime", at.as_str()), ("title", at.as_str())], time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let spans = [0, 119_999, 120_000, 7_200_000, 172_800_000].map(span);
        assert_eq!(spans, ["0 s", "119 s", "2 min", "2 h", "2 d"]);
        assert_eq!([12, 1_250, 100_000].map(duration), ["12 ms", "1.2 s", "100 s"]);
        let mut h = Html::default();
        clock(&mut h, 1_700_000_000_042);
        assert!(h.into_text().ends_with(">22:13:20.042</time>"));
        assert_eq!(time_of_day(1_700_000_000_042), "22:13:20");
    }
}
