//! Tasks without which a process would go on and know or decide less than it seems to: watches, the
//! election of a leader.
//!
//! # Guarantees
//! The end of such a task before the stop, by a panic or otherwise, stops the work that needs it
//! ([`Vital::guard`]) and is an error: the process ends, is started anew, and another process leads
//! meanwhile.

use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

/// Such tasks. They end when this is dropped.
#[derive(Debug, Default)]
pub struct Vital {
    tasks: JoinSet<()>,
    names: Vec<(Id, String)>,
}

/// A task has ended before it was stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{task} has ended: {why}; this is a mistake of Ballast, and the process has to start anew")]
pub struct Broken {
    task: String,
    why: String,
}

impl Vital {
    /// Starts a task that ends only when it is stopped.
    pub fn spawn(
        &mut self,
        name: impl Into<String>,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let task = self.tasks.spawn(work);
        self.names.push((task.id(), name.into()));
    }

    /// Does `work` until its end. When a task ends before `stop`, that is cancelled, and the work
    /// has to end of it.
    pub async fn guard<T>(
        &mut self,
        work: impl Future<Output = T>,
        stop: &CancellationToken,
    ) -> (T, Result<(), Broken>) {
        let mut work = std::pin::pin!(work);
        let broken = tokio::select! {
            biased;
            done = &mut work => return (done, Ok(())),
            broken = self.broken(stop) => broken,
        };
        stop.cancel();
        (work.await, Err(broken))
    }

    /// The first task that ends before `stop`.
    async fn broken(&mut self, stop: &CancellationToken) -> Broken {
        loop {
            let (id, why) = match self.tasks.join_next_with_id().await {
                None => return std::future::pending().await,
                Some(Ok((id, ()))) => (id, "it was not stopped".to_owned()),
                Some(Err(e)) => (e.id(), e.to_string()),
            };
            if !stop.is_cancelled() {
                let name = self.names.iter().find(|(known, _)| *known == id);
                let task = name.map_or_else(|| "a task".to_owned(), |(_, name)| name.clone());
                return Broken { task, why };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn guarded(
        task: impl Future<Output = ()> + Send + 'static,
        stop: &CancellationToken,
    ) -> Result<(), String> {
        let mut vital = Vital::default();
        vital.spawn("the other", stop.clone().cancelled_owned());
        vital.spawn("the watch", task);
        let (done, outcome) = vital.guard(stop.cancelled(), stop).await;
        assert_eq!(done, (), "the work is never cut off");
        outcome.map_err(|broken| broken.to_string())
    }

    #[tokio::test]
    async fn a_task_that_panics_or_ends_stops_the_work_and_is_named() {
        let panics = guarded(async { panic!("on order") }, &CancellationToken::new()).await;
        let why = panics.unwrap_err();
        assert!(why.starts_with("the watch has ended: ") && why.contains("on order"), "{why}");
        let ends = guarded(async {}, &CancellationToken::new()).await;
        assert!(ends.unwrap_err().starts_with("the watch has ended: it was not stopped"));
    }

    #[tokio::test]
    async fn a_task_that_is_stopped_is_no_mistake() {
        let stop = CancellationToken::new();
        let stopper = stop.clone();
        let task = async move { stopper.cancel() };
        assert_eq!(guarded(task, &stop).await, Ok(()));
    }
}
