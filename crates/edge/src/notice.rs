//! Where notices go: to the log, and to whoever listens.

use control::{Notice, NoticeKind};
use tokio::sync::broadcast;

/// Notices kept for a listener that lags.
const BACKLOG: usize = 1024;
/// Services and changes that a line of the log names: a write may be for thousands.
const LISTED: usize = 100;

/// Says notices. Clones say to the same listeners.
#[derive(Clone, Debug)]
pub struct NoticeSink {
    listeners: broadcast::Sender<Notice>,
}

impl Default for NoticeSink {
    fn default() -> Self {
        Self { listeners: broadcast::Sender::new(BACKLOG) }
    }
}

/// Names with commas; of many the first ones, and how many more there are.
fn listed(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(LISTED);
    let mut all: Vec<String> = names.take(LISTED).collect();
    if more > 0 {
        all.push(format!("+{more}"));
    }
    all.join(",")
}

impl NoticeSink {
    /// Everything said from now on.
    #[must_use]
    pub fn listen(&self) -> broadcast::Receiver<Notice> {
        self.listeners.subscribe()
    }

    /// Says a notice.
    pub fn say(&self, notice: Notice) {
        let services = listed(notice.services.iter().map(ToString::to_string));
        let changes = listed(notice.changes.iter().map(ToString::to_string));
        let correlation = notice.correlation.as_deref().unwrap_or("");
        let kind = notice.kind;
        match kind {
            NoticeKind::Refused | NoticeKind::Noted | NoticeKind::Failed | NoticeKind::Drifted => {
                tracing::warn!(?kind, services, changes, correlation, "{}", notice.text);
            }
            NoticeKind::Asked
            | NoticeKind::Planned
            | NoticeKind::Sent
            | NoticeKind::Answered
            | NoticeKind::Programmed => {
                tracing::info!(?kind, services, changes, correlation, "{}", notice.text);
            }
        }
        // No listener is fine.
        let _ = self.listeners.send(notice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_a_hundred_and_counts_the_rest() {
        assert_eq!(listed(["a", "b"].map(str::to_owned).into_iter()), "a,b");
        let text = listed((0..103).map(|n| n.to_string()).collect::<Vec<_>>().into_iter());
        assert!(text.starts_with("0,1,") && text.ends_with(",99,+3"), "{text}");
    }
}
