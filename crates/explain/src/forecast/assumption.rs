//! What is taken for granted where Azure has not been read.

use model::Policy;
use model::azure::{PrivateLinkPolicy, Provisioning, Rest, SecurityGroup, Subnet, WayOut};
use model::world::{Azure, Fact, Need};
use std::sync::Arc;

/// A security group without rules.
fn closed(policy: &Policy) -> SecurityGroup {
    SecurityGroup {
        id: policy.security_group_id(),
        etag: None,
        location: Arc::clone(&policy.location),
        tags: None,
        rules: Vec::new(),
        provisioning: Provisioning::Succeeded,
        rest: Rest::default(),
    }
}

/// Nothing is there but what the cloud config names: a subnet that takes every address, a security
/// group without rules.
pub(super) fn assume(azure: &mut Azure, policy: &Policy, need: &Need) {
    match need {
        Need::SecurityGroup if azure.security_group.known().is_none() => {
            azure.security_group = Fact::Known(Some(Arc::new(closed(policy))));
        }
        Need::SecurityGroup => {}
        Need::Subnet(id) => {
            let prefixes = ["0.0.0.0/0", "::/0"].iter().filter_map(|p| p.parse().ok());
            let subnet = Subnet {
                id: id.clone(),
                etag: None,
                prefixes: prefixes.collect(),
                private_link: PrivateLinkPolicy::Enabled,
                way_out: WayOut::Possible,
                provisioning: Provisioning::Succeeded,
                rest: Rest::default(),
            };
            azure.subnets.insert(id.clone(), Fact::Known(Some(Arc::new(subnet))));
        }
        _ => {
            if azure.answered(need).known().is_none() {
                azure.shelf_mut(need).clear();
            }
        }
    }
}
