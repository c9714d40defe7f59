//! What has to wait for what, where one write is not enough: nodes that drain, addresses between
//! two load balancers, load balancers that change their SKU, finalizers that have to be confirmed.
//! This room never decides how a resource is to be in the end.

pub(crate) mod custody;
pub(crate) mod drain;
pub(crate) mod moving;
pub(crate) mod upgrade;
