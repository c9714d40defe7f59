//! Public IPs of load balancers and egress gateways.

use crate::draft::Draft;
use crate::own::tags;
use model::azure::{Allocation, Provisioning, PublicIp, Rest, Sku};
use model::plan::{Change, Resource};
use model::report::Wait;
use model::{Family, ResourceId, ServiceUid};
use std::collections::BTreeSet;
use std::sync::Arc;

fn fresh(draft: &Draft<'_>, id: &ResourceId, family: Family) -> PublicIp {
    PublicIp {
        id: id.clone(),
        etag: None,
        location: Arc::clone(&draft.policy.location),
        edge_zone: None,
        tags: tags::configured(None, draft.policy),
        sku: Sku::StandardV2,
        zones: Vec::new(),
        family,
        allocation: Allocation::Static,
        address: None,
        ip_tags: std::collections::BTreeMap::new(),
        dns_label: None,
        fqdn: None,
        prefix: None,
        user: None,
        provisioning: Provisioning::Succeeded,
        rest: Rest::default(),
    }
}

/// Whether a public IP stands, has an address, and nothing is being done to it.
pub(super) fn is_ready(draft: &Draft<'_>, id: &ResourceId) -> bool {
    let ready =
        |ip: &Arc<PublicIp>| ip.address.is_some() && ip.provisioning != Provisioning::Failed;
    draft.public_ip(id).is_some_and(ready) && !draft.is_in_flight(id)
}

/// Makes a public IP that is not there, and mends one that failed or lacks tags of the config.
pub(super) fn ensure(
    draft: &mut Draft<'_>,
    cause: &ServiceUid,
    id: &ResourceId,
    family: Family,
    waits: Vec<Wait>,
) {
    let before = draft.public_ip(id).cloned();
    let after = match &before {
        None => fresh(draft, id, family),
        Some(ip) => {
            let tags = tags::configured(ip.tags.as_ref(), draft.policy);
            if ip.provisioning != Provisioning::Failed && tags == ip.tags {
                return;
            }
            PublicIp { tags, ..PublicIp::clone(ip) }
        }
    };
    let (before, after) = (before.map(Resource::PublicIp), Resource::PublicIp(Arc::new(after)));
    let put = Change::put(before, after, BTreeSet::from([cause.clone()]), waits);
    draft.change(Change { target: id.clone(), ..put });
}

/// Whether a public IP is ours: one of another SKU is somebody else's, whatever its name, and so is
/// one with another cluster's UID.
pub(super) fn is_ours(draft: &Draft<'_>, ip: &PublicIp) -> bool {
    ip.sku == Sku::StandardV2 && !draft.own.is_another_clusters(ip.tags.as_ref())
}

/// Deletes a public IP of ours; says whether there was one.
pub(super) fn release(
    draft: &mut Draft<'_>,
    cause: &ServiceUid,
    id: &ResourceId,
    waits: Vec<Wait>,
) -> bool {
    let Some(ip) = draft.public_ip(id).filter(|ip| is_ours(draft, ip)) else { return false };
    let before = Resource::PublicIp(Arc::clone(ip));
    let delete = Change::delete(before, BTreeSet::from([cause.clone()]), waits);
    draft.change(Change { target: id.clone(), ..delete });
    true
}
