//! Writes in Kubernetes, and what is timed there.

pub mod gates;
pub(crate) mod ledger;
pub(crate) mod objects;

use crate::contested::Contested;
use gates::Gates;
use ledger::LedgerLane;
use model::ServiceUid;
use model::drain::Drainer;
use model::kubernetes::Move;
use model::ledger::SetTags;
use model::plan::Object;
use objects::ObjectLane;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is written in Kubernetes.
#[derive(Debug, Default)]
pub(crate) struct Kubernetes {
    pub objects: BTreeMap<Object, ObjectLane>,
    pub ledger: LedgerLane,
    /// Tags that annotations have set, or are about to: what the ledger is to have of them.
    pub tags: SetTags,
    /// Contested addresses, as the ledger is to have them.
    pub contested: Contested,
    /// UIDs of Pods that could not be given our finalizer.
    pub waived: BTreeSet<Arc<str>>,
    pub gates: Gates,
    /// Since when each address or machine has drained.
    pub drains: BTreeMap<Drainer, u64>,
    /// Services that move, with their stage and the time at which it is over; `None`: no time ends
    /// it.
    pub moves: BTreeMap<ServiceUid, (Move, Option<u64>)>,
}
