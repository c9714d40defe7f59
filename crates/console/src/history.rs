//! What happened, as far as memory reaches.

use crate::plan_view::FieldView;
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
    /// A finding of severity note: the Service is served, and its owner should know of it.
    Noted,
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
            Self::Noted => "noted",
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
    /// Nothing that is known: the process that sent it ended first.
    Unknown,
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
    /// Its ARM id.
    pub id: String,
    /// Services whose changes went together.
    pub services: Arc<[ServiceName]>,
    /// Egress gateways that it was for, too, or alone.
    pub gateways: Vec<String>,
    /// When it was sent, in milliseconds since the Unix epoch.
    pub sent_ms: u64,
    /// When it ended.
    pub ended_ms: Option<u64>,
    /// What came back.
    pub outcome: Outcome,
    /// The number of the attempt in a row for this resource.
    pub attempt: u32,
    /// Its correlation id.
    pub correlation: String,
    /// What it changed, field by field.
    pub fields: Vec<FieldView>,
    /// How many further fields it changed.
    pub more_fields: usize,
    /// What it was caused by, one line each.
    pub causes: Vec<String>,
    /// Where Azure's portal shows the resource, where there is a portal.
    pub portal: Option<String>,
    /// Where the portal shows the resource's activity log.
    pub activity_log: Option<String>,
}

/// What is remembered at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Entries.
    pub entries: usize,
    /// Names of Services in them.
    pub names: usize,
}

impl Default for Limits {
    /// Some megabytes: a name is a pair of shared strings.
    fn default() -> Self {
        Self { entries: 2_000, names: 50_000 }
    }
}

/// What happened; the oldest is forgotten first.
#[derive(Clone, Debug, Default)]
pub struct History {
    limits: Limits,
    entries: VecDeque<Entry>,
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
        self.entries.push_back(entry);
        while self.entries.len() > self.limits.entries
            || names(self.entries.iter().map(|e| &e.services)) > self.limits.names
        {
            self.entries.pop_front();
        }
    }

    /// How much has happened since the start, forgotten things included.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
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
    fn memory_is_bounded_by_entries_and_by_names() {
        let mut history = History::new(Limits { entries: 3, names: 10 });
        for at in 0..9 {
            history.push(entry(at, Kind::Sent, "PUT a/b for 1 Service", 1));
        }
        assert_eq!((history.entries().count(), history.seen()), (3, 9));
        history.push(entry(9, Kind::Sent, "PUT a/b for 9 Services", 9));
        history.push(entry(10, Kind::Sent, "PUT a/b for 9 Services", 9));
        assert_eq!(history.entries().count(), 1);
        assert_eq!(history.of(&ServiceName::new("default", "s8")).count(), 1);
    }
}
