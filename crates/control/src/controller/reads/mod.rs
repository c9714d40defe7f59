//! Reads are sent and answered, and facts from Kubernetes come in.

mod azure;
mod busy;
mod facts;
mod groups;
mod left;
mod lists;
mod tables;
