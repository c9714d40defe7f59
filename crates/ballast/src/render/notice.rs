//! What happens, one line each.

use crate::output::{Ink, Paint};
use control::{Notice, NoticeKind};

/// A notice as a line, with the time since the start.
#[must_use]
pub fn render(notice: &Notice, started_ms: u64, paint: Paint) -> String {
    let at_ms = notice.at_ms.saturating_sub(started_ms);
    let time = format!("{:>4}.{:03}", at_ms / 1_000, at_ms % 1_000);
    let (word, ink) = match notice.kind {
        NoticeKind::Asked => ("asked", Ink::Bold),
        NoticeKind::Planned => ("planned", Ink::Cyan),
        NoticeKind::Sent => ("call", Ink::Cyan),
        NoticeKind::Answered => ("answer", Ink::Dim),
        NoticeKind::Programmed => ("done", Ink::Green),
        NoticeKind::Refused => ("refused", Ink::Red),
        NoticeKind::Noted => ("noted", Ink::Yellow),
        NoticeKind::Failed => ("failed", Ink::Red),
        NoticeKind::Drifted => ("drifted", Ink::Yellow),
    };
    let word = paint.ink(ink, format!("{word:<8}"));
    let mut line = format!("{}  {word} {}", paint.ink(Ink::Dim, time), notice.text);
    let is_call = matches!(notice.kind, NoticeKind::Sent | NoticeKind::Answered);
    if is_call && !notice.services.is_empty() {
        let mut names: Vec<String> =
            notice.services.iter().take(3).map(ToString::to_string).collect();
        if notice.services.len() > 3 {
            names.push(format!("{} more", notice.services.len() - 3));
        }
        line.push_str(&paint.ink(Ink::Dim, format!("  for {}", names.join(", "))));
    }
    line.push('\n');
    line
}
