//! What each kind of Azure resource is to be, one file a kind.

pub(crate) mod address;
pub(crate) mod balancer;
pub(crate) mod bridge;
pub(crate) mod choice;
mod contest;
pub(crate) mod drain;
pub(crate) mod frontend;
pub(crate) mod holder;
pub(crate) mod limit;
mod listeners;
pub(crate) mod member;
pub(crate) mod moving;
pub(crate) mod pool;
pub(crate) mod private_link;
pub(crate) mod public_ip;
pub(crate) mod rule;
pub(crate) mod security_group;
mod share;
mod shell;
#[cfg(test)]
pub(crate) mod stage;
pub(crate) mod tags;
pub(crate) mod unread;
pub(crate) mod upgrade;
