//! What Kubernetes is told: finalizers, addresses in status, our condition, readiness gates. This
//! room never changes what is planned for Azure.

pub(crate) mod condition;
pub(crate) mod container;
pub(crate) mod gate;
pub(crate) mod kubernetes;
