//! How each resource of Azure is to be, one file or folder a kind: what it is and what Services
//! claim become the resource to be written. This room never decides who has what.

pub(crate) mod balancer;
pub(crate) mod body;
pub(crate) mod bridge;
pub(crate) mod frontend;
pub(crate) mod member;
pub(crate) mod memory;
pub(crate) mod pool;
pub(crate) mod private_link;
pub(crate) mod public_ip;
pub(crate) mod rule;
pub(crate) mod security_group;
#[cfg(test)]
pub(crate) mod stage;
pub(crate) mod unserved;
pub(crate) mod way_out;
