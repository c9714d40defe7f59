//! What stands in Azure, as far as it was read, and how it compares with what a Service asks. The
//! rooms that decide, draft and tell ask here; this room changes nothing.

pub(crate) mod balancer;
pub(crate) mod frontend;
pub(crate) mod pool;
pub(crate) mod private_link;
pub(crate) mod public_ip;
pub(crate) mod security_group;
