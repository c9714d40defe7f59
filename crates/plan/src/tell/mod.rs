//! What Kubernetes is told: finalizers, addresses in status, our condition, readiness gates; and
//! the report of a plan. This room never changes what is planned for Azure.

pub(crate) mod condition;
pub(crate) mod container;
pub(crate) mod gate;
pub(crate) mod kubernetes;
pub(crate) mod report;
