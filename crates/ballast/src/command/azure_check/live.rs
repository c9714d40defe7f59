//! Azure as it is, behind the controller's own transport.

use arm::{Answer, Request};
use azure_check::{Assumption, Client, Verdict};
use edge::arm::Sender;
use edge::clock::Clock;
use edge::terminal::safe;
use std::io::{self, Write as _};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// Sends from a thread that may wait.
pub(super) struct Live {
    sender: Sender,
    clock: Clock,
    stop: CancellationToken,
    runtime: Handle,
}

impl Live {
    /// Must be made on the runtime's own threads.
    pub(super) fn new(sender: Sender, clock: Clock, stop: CancellationToken) -> Self {
        Self { sender, clock, stop, runtime: Handle::current() }
    }
}

impl Client for Live {
    fn send(&mut self, request: &Request) -> Answer {
        self.runtime.block_on(self.sender.send(request))
    }

    fn wait(&mut self, ms: u64) {
        let pause = tokio::time::sleep(Duration::from_millis(ms));
        let stop = self.stop.clone();
        // Once stopped, all waits belong to the deleting, which is not to be hurried.
        let stopped = stop.is_cancelled();
        self.runtime.block_on(async move {
            tokio::select! {
                () = pause => {}
                () = stop.cancelled(), if !stopped => {}
            }
        });
    }

    fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    fn hear(&mut self, assumption: &Assumption, verdict: &Verdict) {
        let why = verdict.why().map(|why| format!(": {why}")).unwrap_or_default();
        let line = format!("  {}: {}{why}", assumption.id, verdict.name());
        // A reader that is gone stops nothing.
        let _ = writeln!(io::stderr(), "{}", safe(&line));
    }
}
