//! What Azure's metric of health probes says of the backends, for all that show it: status,
//! console, metrics, Events.

use arm::probe_status::Series;
use control::Controller;
use control::backends::{BackendLog, Read, Turn, is_usual};
use model::{Report, ResourceId, ServiceBackends, ServiceUid, World};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is known of the backends. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct BackendHealth {
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    log: BackendLog,
    /// By load balancer, as long as it cannot be read.
    troubles: BTreeMap<ResourceId, String>,
}

impl BackendHealth {
    /// What was found of a Service, as of now.
    #[must_use]
    pub fn of(&self, uid: &ServiceUid, now_ms: u64) -> Option<Arc<ServiceBackends>> {
        self.lock().log.of(uid, now_ms).cloned()
    }

    /// Why nothing new is known.
    #[must_use]
    pub fn trouble(&self) -> Option<Arc<str>> {
        let known = self.lock();
        let first = known.troubles.values().next()?;
        Some(match known.troubles.len() - 1 {
            0 => Arc::from(first.as_str()),
            more => Arc::from(format!("{first} (and {more} more load balancers)")),
        })
    }

    /// A number that grows whenever a backend is found to be otherwise.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.lock().log.changes()
    }

    /// Takes in the answer to a read; returns the Services that turned.
    pub(crate) fn learn(
        &self,
        facts: (&World, &Report),
        read: &Read,
        series: &[Series],
        now_ms: u64,
    ) -> Vec<Turn> {
        self.lock().log.learn(facts, read, series, now_ms)
    }

    /// Notes why a load balancer cannot be read, if it cannot; returns whether that is new.
    pub(crate) fn note_trouble(&self, balancer: &ResourceId, now: Option<&str>) -> bool {
        let mut known = self.lock();
        let old = known.troubles.get(balancer).map(String::as_str);
        if old == now {
            return false;
        }
        match now {
            Some(why) => known.troubles.insert(balancer.clone(), why.to_owned()),
            None => known.troubles.remove(balancer),
        };
        true
    }

    /// Forgets the troubles of load balancers that are read no more.
    pub(crate) fn keep_troubles(&self, balancers: &BTreeSet<ResourceId>) {
        self.lock().troubles.retain(|balancer, _| balancers.contains(balancer));
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether it is usual that some backends of a Service fail their probes, as far as it is known.
#[must_use]
pub fn is_usual_of(controller: &Controller, uid: &ServiceUid) -> bool {
    controller.world().kubernetes.services.get(uid).is_some_and(|service| is_usual(service))
}
