//! Names of Services that went without being released, as the ledger notes them.
//!
//! # Format
//! One line per time, `TIME NAME NAME…`: when the Services went, and names by which something in
//! Azure belonged to them.

use model::ledger::GONE_BYTES;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes that a name takes at most beside itself: a space, and the line's time and end.
const LINE_BYTES: usize = "2026-01-01T00:00:00Z\n ".len();

/// Names, each with the time at which its Service went.
///
/// # Guarantees
/// It never takes more than [`GONE_BYTES`] as text: names for which there is no room are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gone {
    times: BTreeMap<Arc<str>, Arc<str>>,
    bytes: usize,
}

impl Gone {
    /// Reads what [`Gone::encode`] wrote; a line that does not begin with a time is nothing.
    pub fn read(text: &str) -> Self {
        let mut gone = Self::default();
        for line in text.lines() {
            let Some((time, names)) = line.split_once(' ') else { continue };
            if time.parse::<jiff::Timestamp>().is_ok() {
                let time = Arc::from(time);
                names.split_ascii_whitespace().for_each(|name| gone.add(&Arc::from(name), &time));
            }
        }
        gone
    }

    /// As text; empty where there are none.
    pub fn encode(&self) -> String {
        let mut lines: BTreeMap<&str, String> = BTreeMap::new();
        for (name, time) in &self.times {
            let line = lines.entry(time).or_default();
            line.push(' ');
            line.push_str(name);
        }
        lines.into_iter().map(|(time, names)| format!("{time}{names}\n")).collect()
    }

    /// Adds a name, if there is room.
    pub fn add(&mut self, name: &Arc<str>, time: &Arc<str>) {
        let more = name.len() + LINE_BYTES;
        if !self.has(name) && self.bytes + more <= GONE_BYTES {
            self.bytes += more;
            self.times.insert(Arc::clone(name), Arc::clone(time));
        }
    }

    /// Whether a name is there.
    pub fn has(&self, name: &str) -> bool {
        self.times.contains_key(name)
    }

    /// All names, each with its time.
    pub fn each(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        self.times.iter()
    }

    /// Whether every name is among these, too.
    pub fn is_within(&self, all: &Self) -> bool {
        self.times.keys().all(|name| all.has(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_again_and_nothing_else_is() {
        let text = "2026-01-01T00:00:00Z a0001 default/web\n2026-01-02T00:00:00Z default/other\n";
        let gone = Gone::read(text);
        assert_eq!(gone.encode(), text);
        assert_eq!(gone.each().count(), 3);
        assert!(gone.has("default/web") && !gone.has("default/we"));
        for odd in ["", "soon default/web", "default/web", "{\"a\": 1}", "2026-01-01T00:00:00Z"] {
            assert_eq!(Gone::read(odd), Gone::default(), "{odd}");
        }
    }

    #[test]
    fn names_without_room_are_left_out() {
        let mut gone = Gone::default();
        for n in 0..10_000_u32 {
            // Each of another time is the longest text.
            let time = format!("2026-01-01T{:02}:{:02}:{:02}Z", n / 3_600, n / 60 % 60, n % 60);
            gone.add(&Arc::from(format!("default/web-{n:06}")), &Arc::from(time));
        }
        let bytes = gone.encode().len();
        assert!(bytes <= GONE_BYTES && bytes > GONE_BYTES * 9 / 10, "{bytes}");
        assert!(gone.has("default/web-000000"), "what is there stays");
        assert_eq!(Gone::read(&gone.encode()), gone);
    }
}
