//! What happened, as far as memory reaches.

use model::ServiceName;
use std::collections::VecDeque;
use std::sync::Arc;

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A Service was created, changed or deleted.
    Asked,
    /// A plan was made.
    Planned,
    /// An Azure call was sent.
    Sent,
    /// An Azure call was answered.
    Answered,
    /// A Service is programmed.
    Programmed,
    /// A Service is refused or set aside.
    Refused,
    /// Something failed and will be tried again.
    Failed,
    /// Somebody else changed what is ours.
    Drifted,
}

impl Kind {
    /// The word for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Planned => "planned",
            Self::Sent => "call",
            Self::Answered => "answer",
            Self::Programmed => "done",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Drifted => "drifted",
        }
    }
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// What kind of thing.
    pub kind: Kind,
    /// The Services it is about.
    pub services: Arc<[ServiceName]>,
    /// One line.
    pub text: String,
    /// Correlation id of the Azure call it belongs to.
    pub correlation: Option<Arc<str>>,
}

/// What came back from a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing yet.
    UnderWay,
    /// It is done.
    Done,
    /// It failed, and why.
    Failed(String),
}

/// One call that writes to Azure: a batch of what had gathered for one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// HTTP method.
    pub method: String,
    /// The resource, as `loadBalancers/kubernetes`.
    pub resource: String,
    /// Services whose changes went together.
    pub services: Arc<[ServiceName]>,
    /// When it was sent.
    pub sent_ms: u64,
    /// When it ended.
    pub ended_ms: Option<u64>,
    /// What came back.
    pub outcome: Outcome,
    /// The how manyeth try in a row for this resource.
    pub attempt: u32,
    correlation: Option<Arc<str>>,
}

/// What is remembered at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Entries.
    pub entries: usize,
    /// Calls.
    pub calls: usize,
    /// Names of Services in either of them.
    pub names: usize,
}

impl Default for Limits {
    /// Some megabytes: a name is a pair of shared strings.
    fn default() -> Self {
        Self { entries: 2_000, calls: 500, names: 50_000 }
    }
}

/// What happened; the oldest is forgotten first.
#[derive(Clone, Debug, Default)]
pub struct History {
    limits: Limits,
    entries: VecDeque<Entry>,
    calls: VecDeque<Call>,
    seen: u64,
}

impl History {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Takes in what happened.
    pub fn push(&mut self, entry: Entry) {
        self.seen += 1;
        match entry.kind {
            Kind::Sent => self.start(&entry),
            Kind::Answered => self.finish(&entry, Outcome::Done),
            Kind::Failed => {
                let why = entry.text.split_once(" failed: ").map_or(&*entry.text, |(_, why)| why);
                self.finish(&entry, Outcome::Failed(why.to_owned()));
            }
            _ => {}
        }
        self.entries.push_back(entry);
        while self.entries.len() > self.limits.entries
            || names(self.entries.iter().map(|e| &e.services)) > self.limits.names
        {
            self.entries.pop_front();
        }
        while self.calls.len() > self.limits.calls
            || names(self.calls.iter().map(|c| &c.services)) > self.limits.names
        {
            self.calls.pop_front();
        }
    }

    fn start(&mut self, entry: &Entry) {
        let what = entry.text.split_once(" for ").map_or(&*entry.text, |(what, _)| what);
        let (method, resource) = what.split_once(' ').unwrap_or(("", what));
        let last = self.calls.iter().rev().find(|c| c.resource == resource);
        let attempt = match last.map(|c| (&c.outcome, c.attempt)) {
            Some((Outcome::Failed(_), attempt)) => attempt.saturating_add(1),
            _ => 1,
        };
        self.calls.push_back(Call {
            method: method.to_owned(),
            resource: resource.to_owned(),
            services: Arc::clone(&entry.services),
            sent_ms: entry.at_ms,
            ended_ms: None,
            outcome: Outcome::UnderWay,
            attempt,
            correlation: entry.correlation.clone(),
        });
    }

    fn finish(&mut self, entry: &Entry, outcome: Outcome) {
        let Some(correlation) = &entry.correlation else { return };
        let mut calls = self.calls.iter_mut().rev();
        let call = calls.find(|c| c.correlation.as_ref() == Some(correlation));
        if let Some(call) = call.filter(|c| c.ended_ms.is_none()) {
            call.ended_ms = Some(entry.at_ms);
            call.outcome = outcome;
        }
    }

    /// How much has happened since the start, forgotten things included.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Calls, the last first.
    pub fn calls(&self) -> impl DoubleEndedIterator<Item = &Call> {
        self.calls.iter().rev()
    }

    /// Everything, the last first.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().rev()
    }

    /// What happened to one Service, the last first.
    pub fn of<'a>(&'a self, service: &'a ServiceName) -> impl Iterator<Item = &'a Entry> {
        self.entries().filter(move |e| e.services.contains(service))
    }
}

fn names<'a>(lists: impl Iterator<Item = &'a Arc<[ServiceName]>>) -> usize {
    lists.map(|list| list.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at_ms: u64, kind: Kind, text: &str, services: usize) -> Entry {
        let names = (0..services).map(|n| ServiceName::new("default", format!("s{n}")));
        let correlation = matches!(kind, Kind::Sent | Kind::Answered | Kind::Failed);
        Entry {
            at_ms,
            kind,
            services: names.collect(),
            text: text.to_owned(),
            correlation: correlation.then(|| Arc::from("c")),
        }
    }

    #[test]
    fn a_call_ends_with_its_answer_and_a_failed_one_is_followed_by_a_second_try() {
        let mut history = History::new(Limits::default());
        history.push(entry(10, Kind::Sent, "PUT loadBalancers/kubernetes for 2 Services", 2));
        let failed = "loadBalancers/kubernetes for 2 Services failed: Busy: later";
        history.push(entry(30, Kind::Failed, failed, 2));
        history.push(entry(40, Kind::Sent, "PUT loadBalancers/kubernetes for 1 Service", 1));
        let calls: Vec<&Call> = history.calls().collect();
        assert_eq!((calls[0].attempt, &calls[0].outcome), (2, &Outcome::UnderWay));
        assert_eq!((calls[1].attempt, calls[1].ended_ms), (1, Some(30)));
        assert_eq!(calls[1].outcome, Outcome::Failed("Busy: later".to_owned()));
        assert_eq!(calls[1].resource, "loadBalancers/kubernetes");
        assert_eq!(history.of(&ServiceName::new("default", "s1")).count(), 2);
    }

    #[test]
    fn memory_is_bounded_by_entries_and_by_names() {
        let mut history = History::new(Limits { entries: 3, calls: 2, names: 10 });
        for at in 0..9 {
            history.push(entry(at, Kind::Sent, "PUT a/b for 1 Service", 1));
        }
        assert_eq!((history.entries().count(), history.calls().count(), history.seen()), (3, 2, 9));
        history.push(entry(9, Kind::Sent, "PUT a/b for 9 Services", 9));
        history.push(entry(10, Kind::Sent, "PUT a/b for 9 Services", 9));
        assert_eq!((history.entries().count(), history.calls().count()), (1, 1));
    }
}
