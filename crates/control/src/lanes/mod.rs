//! Writes in Azure: sent, followed to their end, tried again, and what Azure refuses.

pub(crate) mod follow;
pub(crate) mod lane;
mod rejected;
pub mod request;
pub mod search;
mod send;

use crate::obstacles::Strike;
use crate::reads::tables::Touched;
use lane::Lane;
use model::{ResourceId, ServiceUid};
use search::Search;
use std::collections::BTreeMap;

/// What is written in Azure.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    pub all: BTreeMap<ResourceId, Lane>,
    pub touched: Touched,
    pub searches: BTreeMap<ResourceId, Search>,
    /// Services that Azure rejects, until what it refused goes through or is not asked for.
    pub strikes: BTreeMap<ServiceUid, Strike>,
    /// When Services were last changed by their owners.
    pub asked_ms: BTreeMap<ServiceUid, u64>,
    /// Writes of pool members so far: each gives a new ETag to the load balancers it is behind.
    pub member_writes: u64,
}

impl Lanes {
    /// Whether a Service's owner has changed it after a time.
    pub fn is_changed_since(&self, uid: &ServiceUid, at_ms: u64) -> bool {
        self.asked_ms.get(uid).is_some_and(|asked_ms| *asked_ms > at_ms)
    }
}
