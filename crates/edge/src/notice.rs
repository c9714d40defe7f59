//! Where notices go: to the log, and to whoever listens.

use control::{Notice, NoticeKind};
use tokio::sync::broadcast;

/// Notices kept for a listener that lags.
const BACKLOG: usize = 1024;

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

impl NoticeSink {
    /// Everything said from now on.
    #[must_use]
    pub fn listen(&self) -> broadcast::Receiver<Notice> {
        self.listeners.subscribe()
    }

    /// Says a notice.
    pub fn say(&self, notice: Notice) {
        let services: Vec<String> = notice.services.iter().map(ToString::to_string).collect();
        let services = services.join(",");
        let correlation = notice.correlation.as_deref().unwrap_or("");
        let kind = notice.kind;
        match kind {
            NoticeKind::Refused | NoticeKind::Failed | NoticeKind::Drifted => {
                tracing::warn!(?kind, services, correlation, "{}", notice.text);
            }
            NoticeKind::Asked
            | NoticeKind::Planned
            | NoticeKind::Sent
            | NoticeKind::Answered
            | NoticeKind::Programmed => {
                tracing::info!(?kind, services, correlation, "{}", notice.text);
            }
        }
        // No listener is fine.
        let _ = self.listeners.send(notice);
    }
}
