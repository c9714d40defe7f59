//! What is read: lists and resources of Azure, and facts from Kubernetes.

pub(crate) mod azure;
pub(crate) mod busy;
mod facts;
mod groups;
pub(crate) mod keep;
pub(crate) mod lists;
pub(crate) mod tables;

use azure::Read;
use model::world::Need;
use observe::apply::Listing;
use observe::intern::Interner;
use std::collections::BTreeMap;

/// What was read and is to be read.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    pub store: BTreeMap<Need, Read>,
    pub listing: Listing,
    pub interner: Interner,
}
