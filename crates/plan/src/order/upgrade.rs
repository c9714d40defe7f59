//! From Basic to Standard: a load balancer keeps its SKU for life, so another takes its place.
//!
//! Everybody leaves the Basic load balancer's pools, it is deleted, the public IPs are raised to
//! Standard (Azure does so only with static ones that nothing uses), and the Standard one is made
//! with all frontends at once.

use crate::claim::upgrade::owners;
use crate::draft::{Draft, Stance};
use model::ServiceUid;
use model::azure::{Allocation, FrontendAddress, LoadBalancer};
use model::plan::{Change, Resource};
use model::report::{Until, Wait};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Drafts the removal of Basic load balancers that go.
pub(crate) fn plan(draft: &mut Draft<'_>, basics: &[Arc<LoadBalancer>]) {
    for balancer in basics {
        let owners = owners(draft, balancer);
        let leaving = |uid: &ServiceUid| matches!(draft.cases[uid].stance, Stance::Leaving);
        let parts = balancer.frontends.iter().map(|f| &f.name);
        let abandoned = parts.into_iter().any(|name| draft.owner_of(name).is_none());
        // Who leaves leaves first: security rules close before a frontend goes.
        if !abandoned && !owners.iter().any(leaving) {
            delete(draft, balancer, owners);
        }
    }
}

fn delete(draft: &mut Draft<'_>, balancer: &Arc<LoadBalancer>, causes: BTreeSet<ServiceUid>) {
    let mut waits = Vec::new();
    for frontend in &balancer.frontends {
        let FrontendAddress::Public(id) = &frontend.address else { continue };
        let dynamic = |allocation| allocation == Allocation::Dynamic;
        // It becomes static where it is, or it is lost with the load balancer.
        if draft.public_ip(id).is_some_and(|ip| dynamic(ip.allocation)) {
            waits.push(Wait::Resource { id: id.clone(), until: Until::Written });
        }
    }
    draft.change(Change::delete(Resource::LoadBalancer(Arc::clone(balancer)), causes, waits));
}

/// Whether a Basic public IP can be raised: static, and used by nothing.
pub(crate) fn is_free(ip: &model::azure::PublicIp) -> bool {
    ip.user.is_none() && ip.allocation == Allocation::Static
}
