//! L4: the history of writes tells of each why it was sent: which Services it is for, which edit of
//! an owner it follows from, and which fields it changes.

use crate::stage::Stage;
use crate::tally::count;
use control::WriteRecord;
use control::history::Cause;
use std::sync::Arc;

/// Where the history of the process that leads ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// Which life of which process.
    life: (usize, u64),
    /// The number of its last write.
    number: u64,
}

/// What one owner edits while all else stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edits<'a> {
    /// The Service, by namespace and name.
    pub(crate) service: &'a str,
    /// The annotation.
    pub(crate) key: &'a str,
    /// The field of a load balancer's that follows from it.
    pub(crate) field: &'a str,
}

impl Edits<'_> {
    /// What a record of a write does not tell as it is.
    fn untold(&self, record: &WriteRecord) -> Option<String> {
        let services: Vec<String> = record.services.iter().map(ToString::to_string).collect();
        let is_edit = |cause: &Cause| match cause {
            Cause::Edit(edit) => {
                let named = edit.service.to_string() == self.service;
                named && edit.fields.iter().any(|field| field.path.contains(self.key))
            }
            _ => false,
        };
        let (causes, fields) = (&record.causes.shown, &record.fields.shown);
        let caused = !causes.is_empty() && causes.iter().all(is_edit);
        let named = |path: &str| path.contains(self.field);
        let changed = !fields.is_empty() && fields.iter().all(|field| named(&field.path));
        let told = services == [self.service] && caused && changed;
        let (name, Self { service, key, .. }) = (record.target.name(), self);
        (!told).then(|| {
            format!(
                "{service} edits {key} alone; the history has a write of {name} for {services:?} \
                 because of {causes:?} that changes {fields:?}"
            )
        })
    }
}

impl Stage {
    /// Where the history of the process that leads ends now.
    pub(crate) fn history_end(&self) -> Option<End> {
        let mut processes = self.processes.iter().enumerate();
        let (number, leader) = processes.find(|(_, process)| process.may_write(self.now_ms))?;
        let last = leader.controller.history().next_back();
        let last = last.map_or(0, |record| record.number);
        Some(End { life: (number, leader.epoch), number: last })
    }

    /// L4: the writes of load balancers since, by the same life of the process.
    pub(crate) fn check_history(&mut self, before: Option<End>, edits: &Edits<'_>) {
        let Some(End { life: (number, epoch), number: last }) = before else { return };
        let process = self.processes.get(number).filter(|process| process.epoch == epoch);
        let Some(process) = process else { return };
        let wrong = {
            let later = process.controller.history().filter(|record| record.number > last);
            let of_balancers =
                |record: &&Arc<WriteRecord>| record.target.folded().contains("/loadbalancers/");
            later.filter(of_balancers).find_map(|record| edits.untold(record))
        };
        count(&mut self.tally.checks, "L4");
        if let Some(text) = wrong {
            self.fail("L4", text);
        }
    }
}
