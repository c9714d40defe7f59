//! A page made of the controller, and kept: asked for by anybody, however often, it costs little.

use crate::shared::SharedController;
use bytes::Bytes;
use control::Controller;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// A page this young is not made again: those who ask take no more than a small part of the
/// controller's time.
const FRESH: Duration = Duration::from_millis(100);
/// How long a page waits for the end of a step, before it shows what was made last.
const PATIENCE: Duration = Duration::from_millis(250);

/// A page, as it was made last.
#[derive(Debug, Default)]
pub struct Shown {
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    made: Option<(Instant, Bytes)>,
    tried: Option<Instant>,
}

impl Shown {
    /// What is shown until there is something better.
    pub fn begin_with(&self, page: String) {
        if let Ok(mut last) = self.last.try_lock() {
            last.made = Some((Instant::now(), Bytes::from(page)));
        }
    }

    /// The page and its age: made now, where no step is under way for long, else as it was made
    /// last; `None` if that never was. Only `look` holds up a step.
    pub async fn make<T: Send + 'static>(
        &self,
        controller: &SharedController,
        look: impl FnOnce(&Controller) -> T + Send + 'static,
        write: impl FnOnce(T) -> String + Send,
    ) -> Option<(Duration, Bytes)> {
        // One makes it, and those who wait for that share it.
        let mut last = self.last.lock().await;
        if last.tried.is_none_or(|tried| tried.elapsed() >= FRESH) {
            let seen = controller.look_within(PATIENCE, look).await;
            last.tried = Some(Instant::now());
            if let Some(seen) = seen {
                last.made = Some((Instant::now(), Bytes::from(write(seen))));
            }
        }
        last.made.as_ref().map(|(at, page)| (at.elapsed(), page.clone()))
    }
}
