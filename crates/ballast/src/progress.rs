//! How far something is, on a terminal, once it has taken two seconds.

#[cfg(feature = "bench")]
use bench::Progress;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "bench")]
const WIDTH: usize = 24;
const AFTER: Duration = Duration::from_secs(2);
const PACE: Duration = Duration::from_millis(100);

/// A line on standard error that is drawn over and over, and gone at the end.
#[derive(Debug)]
pub struct Bar {
    label: String,
    begun: Instant,
    drawn: Option<Instant>,
    terminal: bool,
}

impl Bar {
    /// Begins to wait for two seconds.
    #[must_use]
    pub fn new(label: String) -> Self {
        let terminal = io::stderr().is_terminal();
        Self { label, begun: Instant::now(), drawn: None, terminal }
    }

    /// Shows how far a simulation is. That it cannot be shown is no reason to stop.
    #[cfg(feature = "bench")]
    pub fn show(&mut self, progress: Progress) {
        self.draw(|label, _| line(label, progress));
    }

    /// Shows how much of the time that is allowed has passed.
    pub fn wait(&mut self, limit: Duration) {
        self.draw(|label, passed| waiting(label, passed, limit));
    }

    fn draw(&mut self, text: impl FnOnce(&str, Duration) -> String) {
        let fresh = self.drawn.is_some_and(|at| at.elapsed() < PACE);
        if !self.terminal || fresh || self.begun.elapsed() < AFTER {
            return;
        }
        self.drawn = Some(Instant::now());
        let _ = write!(io::stderr(), "\r{}\u{1b}[K", text(&self.label, self.begun.elapsed()));
    }
}

/// A line that is drawn while something else goes on.
#[derive(Debug)]
pub struct Following {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Following {
    /// What is waited for is there: the line goes before anything else is printed.
    pub async fn end(self) {
        self.stop.cancel();
        // That the line could not be drawn is no reason to stop.
        let _ = self.task.await;
    }
}

/// Shows how much of the time that is allowed has passed, until it is ended.
#[must_use]
pub fn follow(what: String, limit: Duration) -> Following {
    let stop = CancellationToken::new();
    let ended = stop.clone();
    let task = tokio::spawn(async move {
        let mut bar = Bar::new(what);
        while ended.run_until_cancelled(tokio::time::sleep(PACE)).await.is_some() {
            bar.wait(limit);
        }
    });
    Following { stop, task }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}

#[cfg(feature = "bench")]
fn line(label: &str, progress: Progress) -> String {
    let Progress { done, of, simulated_ms } = progress;
    let full = (done * WIDTH).checked_div(of).unwrap_or(0).min(WIDTH);
    let bar = "█".repeat(full) + &"░".repeat(WIDTH - full);
    format!("{label} {bar} {done} of {of} Services, {} simulated s", simulated_ms / 1_000)
}

fn waiting(label: &str, passed: Duration, limit: Duration) -> String {
    let (passed, limit) = (passed.as_secs(), limit.as_secs());
    format!("waiting for: {label}, {passed} s of at most {limit} s")
}

#[cfg(all(test, feature = "bench"))]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_bar_is_full_when_half_is_done() {
        let text = line("x", Progress { done: 5, of: 10, simulated_ms: 2_500 });
        let bar = "█".repeat(12) + &"░".repeat(12);
        assert_eq!(text, format!("x {bar} 5 of 10 Services, 2 simulated s"));
        assert!(line("x", Progress { done: 0, of: 0, simulated_ms: 0 }).contains("0 of 0"));
        let text = waiting("all created", Duration::from_millis(3_900), Duration::from_secs(60));
        assert_eq!(text, "waiting for: all created, 3 s of at most 60 s");
    }
}
