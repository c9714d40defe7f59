//! A watch as a stream of lines, or of frames.

use super::{Reply, Shared, now_ms};
use crate::tables::TableHead;
use crate::watch::{Bookmarks, Continuation, WatchEvent, WatchSpec, WatchStart};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// How often a quiet watch gets a bookmark.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(30);

struct Stream {
    spec: WatchSpec,
    store: Shared,
    changes: watch::Receiver<u64>,
    ended: watch::Receiver<()>,
    revision: u64,
    pending: Vec<WatchEvent>,
    head: TableHead,
    deadline: Instant,
    next_bookmark: Instant,
    continuation: Continuation,
}

enum Wake {
    Changed,
    Bookmark,
    Deadline,
    Shutdown,
}

pub(super) fn reply(start: WatchStart, store: Shared, ended: watch::Receiver<()>) -> Reply {
    let now = Instant::now();
    let content_type = start.spec.content_type();
    let state = Stream {
        deadline: now + Duration::from_secs(start.spec.timeout_s),
        next_bookmark: now + BOOKMARK_INTERVAL,
        changes: store.revision.subscribe(),
        spec: start.spec,
        store,
        ended,
        revision: start.revision,
        pending: start.events,
        head: TableHead::Shown,
        continuation: start.continuation,
    };
    let lines = stream::unfold(state, |mut state| async move {
        let lines = state.next_lines().await?;
        Some((Ok::<_, Infallible>(Frame::data(lines)), state))
    });
    hyper::Response::builder()
        .header(http::header::CONTENT_TYPE, content_type)
        .header(http::header::CACHE_CONTROL, "no-cache, private")
        .body(BodyExt::boxed(StreamBody::new(lines)))
        .expect("constant headers are valid")
}

impl Stream {
    /// The next lines to send; `None` at the end.
    async fn next_lines(&mut self) -> Option<Bytes> {
        loop {
            if !self.pending.is_empty() {
                return Some(self.write_pending());
            }
            if self.continuation == Continuation::Ended {
                return None;
            }
            self.read();
            if !self.pending.is_empty() {
                continue;
            }
            match self.wait().await {
                Wake::Changed => {}
                Wake::Bookmark => {
                    self.next_bookmark = Instant::now() + BOOKMARK_INTERVAL;
                    self.push_bookmark();
                }
                Wake::Deadline => {
                    self.continuation = Continuation::Ended;
                    self.push_bookmark();
                }
                Wake::Shutdown => return None,
            }
        }
    }

    async fn wait(&mut self) -> Wake {
        tokio::select! {
            changed = self.changes.changed() => match changed {
                Ok(()) => Wake::Changed,
                Err(_) => Wake::Shutdown,
            },
            _ = self.ended.changed() => Wake::Shutdown,
            () = sleep_until(self.deadline) => Wake::Deadline,
            () = sleep_until(self.next_bookmark) => Wake::Bookmark,
        }
    }

    /// Takes what happened since the last look.
    fn read(&mut self) {
        self.changes.mark_unchanged();
        let (found, revision) = {
            let store = self.store.lock();
            (store.watch_from(&self.spec, self.revision), store.revision())
        };
        match found {
            Ok(events) => {
                self.pending = events;
                self.revision = revision;
            }
            Err(error) => {
                self.pending = vec![WatchEvent::error(&error)];
                self.continuation = Continuation::Ended;
            }
        }
    }

    fn push_bookmark(&mut self) {
        if self.spec.bookmarks == Bookmarks::Wanted {
            self.pending.push(self.spec.bookmark(self.revision));
        }
    }

    fn write_pending(&mut self) -> Bytes {
        let now = now_ms();
        let mut lines = Vec::new();
        for event in std::mem::take(&mut self.pending) {
            self.spec.write(&event, now, self.head, &mut lines);
            self.head = TableHead::Left;
        }
        Bytes::from(lines)
    }
}
