//! Server-sent events: that something changed, and what is worth saying aloud.

use super::{Console, HEADERS, lock};
use crate::backends::BackendHealth;
use ::console::history::Kind;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use edge::lease::leader::Leader;
use futures_util::stream;
use serde_json::json;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// Between two looks at whether anything changed.
const PACE: Duration = Duration::from_millis(250);

/// One number for each thing that pages show.
type Stamp = (Option<[u64; 7]>, u64, u64);

struct Listener {
    console: Console,
    last: Stamp,
    _place: OwnedSemaphorePermit,
}

/// Tells a browser when to look again.
pub(super) async fn events(State(console): State<Console>) -> Response {
    let Ok(place) = std::sync::Arc::clone(&console.listeners).try_acquire_owned() else {
        let why = "too many browsers listen already; close some\n";
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    };
    let last = stamp(&console);
    let listener = Listener { console, last, _place: place };
    let events = stream::unfold(listener, |listener| listener.next());
    (HEADERS, Sse::new(events).keep_alive(KeepAlive::default())).into_response()
}

impl Listener {
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            tokio::select! {
                () = self.console.stop.cancelled() => return None,
                () = tokio::time::sleep(PACE) => {}
            }
            let mut now = stamp(&self.console);
            now.0 = now.0.or(self.last.0);
            if now == self.last {
                continue;
            }
            let said = said(&self.console, self.last.1);
            self.last = now;
            let data = json!({ "said": said }).to_string();
            return Some((Ok(Event::default().event("change").data(data)), self));
        }
    }
}

fn stamp(console: &Console) -> Stamp {
    // A controller that is busy planning is looked at next time.
    let counts = console.controller.get().and_then(|controller| {
        let turns = controller.leader().map_or(0, Leader::changes);
        let backends = controller.backends().map_or(0, BackendHealth::changes);
        controller.try_look(|c| {
            let n = c.counts();
            [n.writes, n.reads, n.kubernetes, n.plans, n.failures, turns, backends]
        })
    });
    (counts, lock(&console.history).seen(), console.kept.followed())
}

/// The last thing of consequence since `before`.
fn said(console: &Console, before: u64) -> Option<String> {
    let history = lock(&console.history);
    let new = usize::try_from(history.seen() - before).unwrap_or(usize::MAX);
    let mut new = history.entries().take(new);
    let matters = |kind: Kind| {
        use Kind::{Drifted, Failed, Noted, Programmed, Refused};
        matches!(kind, Programmed | Refused | Noted | Failed | Drifted)
    };
    new.find(|e| matters(e.kind)).map(|e| e.text.clone())
}
