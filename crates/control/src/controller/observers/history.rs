//! Writes, their causes and their answers are noted.

use crate::controller::{Controller, Planning};
use crate::observers::history::{self, WriteOutcome, WriteRecord};
use arm::Request;
use model::ServiceName;
use model::plan::Change;
use std::sync::Arc;

impl Controller {
    /// Azure writes since the start, as far as they are held, the first first.
    pub fn history(&self) -> impl DoubleEndedIterator<Item = &Arc<WriteRecord>> {
        self.observers.history.records()
    }

    /// What has been written is no cause of what follows.
    pub(crate) fn close_causes(&mut self) {
        let Planning { plan, report, .. } = &self.planning;
        self.observers.history.causes.close(&self.world, plan, report);
    }

    /// A write is sent.
    pub(crate) fn record_sent(&mut self, change: &Change, request: &Request, now_ms: u64) {
        let lane = self.lanes.all.get(&change.target);
        let attempt = lane.map_or(0, |lane| lane.retry.failures() + lane.turned_away) + 1;
        let fields = history::of_action(&change.action, request);
        let services = &self.world.kubernetes.services;
        let drift = self.drift_of(&change.target);
        let causes = self.observers.history.causes.of(change, &fields.shown, drift, services);
        let mut services: Vec<ServiceName> = self.names_of(&change.causes).collect();
        services.sort_unstable();
        let record = WriteRecord {
            number: self.observers.history.next_number(),
            method: request.method.name(),
            target: change.target.clone(),
            correlation: Arc::from(request.correlation.as_str()),
            attempt,
            sent_ms: now_ms,
            ended_ms: None,
            outcome: WriteOutcome::UnderWay,
            services: services.into(),
            gateways: self.gateways_of(&change.causes).collect(),
            fields,
            causes,
        };
        self.observers.history.push(record);
    }
}
