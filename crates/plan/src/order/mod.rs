//! What has to wait for what, where one write is not enough: nodes that drain, addresses between
//! two load balancers, pools that change their kind, load balancers that change their SKU. This
//! room never decides how a resource is to be in the end.

pub(crate) mod bridge;
pub(crate) mod drain;
pub(crate) mod moving;
pub(crate) mod upgrade;
