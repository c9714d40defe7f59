//! Writes in Kubernetes, and what is timed there.

pub(crate) mod drains;
pub mod gates;
pub(crate) mod ledger;
pub(crate) mod moves;
pub(crate) mod objects;

use drains::Drains;
use gates::Gates;
use ledger::LedgerLane;
use model::plan::Object;
use moves::Moves;
use objects::ObjectLane;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is written in Kubernetes.
#[derive(Debug, Default)]
pub(crate) struct Kubernetes {
    pub objects: BTreeMap<Object, ObjectLane>,
    pub ledger: LedgerLane,
    /// UIDs of Pods that could not be given our finalizer.
    pub waived: BTreeSet<Arc<str>>,
    pub gates: Gates,
    pub drains: Drains,
    pub moves: Moves,
}
