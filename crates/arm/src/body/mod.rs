//! Bodies of resources: JSON becomes typed facts and back.
//!
//! # Guarantees
//! - Reading takes null, an empty list and an absent field as the same, numbers as numbers or
//!   text, and words in any letter case.
//! - What is not understood (an unknown field, an unknown word in a known field) stays in `Rest`
//!   and is written as it came; where the same field is typed as well, the one in `Rest` wins.
//! - Writing what was read gives the same body, but for read-only fields.

mod compose;
mod fields;
pub mod gateway;
mod load_balancer;
mod nat_gateway;
mod pool;
mod pool_member;
mod private_link_service;
mod public_ip;
mod security_group;
mod subnet;
mod virtual_machine;

pub use fields::{BodyError, read_provisioning};
pub use gateway::{
    LocationTable, locations_update, locations_update_text, read_gateway_service, read_locations,
    services_update, write_gateway_service,
};
pub use load_balancer::{read_load_balancer, write_load_balancer};
pub use nat_gateway::{read_nat_gateway, write_nat_gateway};
pub use pool_member::{read_pool_member, write_pool_member};
pub use private_link_service::{read_private_link_service, write_private_link_service};
pub use public_ip::{read_public_ip, write_public_ip};
pub use security_group::{read_security_group, write_security_group};
pub use subnet::{read_subnet, write_subnet};
pub use virtual_machine::read_virtual_machine;

use model::plan::Resource;
use serde_json::{Value, json};
use std::sync::Arc;

/// The body of a PUT of any resource.
#[must_use]
pub fn write_resource(resource: &Resource) -> Value {
    match resource {
        Resource::PublicIp(r) => write_public_ip(r),
        Resource::LoadBalancer(r) => write_load_balancer(r),
        Resource::SecurityGroup(r) => write_security_group(r),
        Resource::Subnet(r) => write_subnet(r),
        Resource::PrivateLinkService(r) => write_private_link_service(r),
        Resource::NatGateway(r) => write_nat_gateway(r),
        Resource::PoolMember(r) => write_pool_member(r),
    }
}

/// The body of `migrateToIpBased`: names of the pools to move.
#[must_use]
pub fn migrate_pools(pools: &[Arc<str>]) -> Value {
    json!({ "pools": pools.iter().map(|p| Value::from(&**p)).collect::<Vec<_>>() })
}
