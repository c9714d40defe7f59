//! Writes in Azure: how far each is, and what Azure refuses.

pub(crate) mod lane;
pub mod search;
pub(crate) mod tables;

use crate::trouble::Trouble;
use lane::Lane;
use model::{ResourceId, ServiceUid};
use search::Search;
use std::collections::BTreeMap;
use tables::Touched;

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

/// A Service that Azure rejects, and for the write of which resource.
#[derive(Clone, Debug)]
pub(crate) struct Strike {
    pub target: ResourceId,
    pub trouble: Trouble,
}

impl Lanes {
    /// Whether a Service's owner has changed it after a time.
    pub fn is_changed_since(&self, uid: &ServiceUid, at_ms: u64) -> bool {
        self.asked_ms.get(uid).is_some_and(|asked_ms| *asked_ms > at_ms)
    }
}
