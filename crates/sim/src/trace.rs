//! What happened, line by line; kept only when somebody wants to read it.

use crate::stage::START_MS;

/// Lines of a run.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Nothing is kept without a list.
    pub lines: Option<Vec<String>>,
}

impl Trace {
    /// One that keeps what is told.
    #[must_use]
    pub fn kept() -> Self {
        Self { lines: Some(Vec::new()) }
    }

    /// Tells one thing.
    pub fn say(&mut self, now_ms: u64, text: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            let ms = now_ms.saturating_sub(START_MS);
            lines.push(format!("{:>7}.{:03} {}", ms / 1_000, ms % 1_000, text()));
        }
    }
}
