//! Public IPs that frontends can be put on.

use crate::draft::Draft;
use model::ResourceId;
use model::azure::{Allocation, Provisioning, PublicIp, Sku};
use model::policy::BalancerSku;

/// Whether a frontend may be put on a public IP: it has its address, and nothing is left to be done
/// about it.
pub(crate) fn is_ready(draft: &Draft<'_>, id: &ResourceId) -> bool {
    let Some(ip) = draft.public_ip(id) else { return false };
    let standard = draft.policy.sku != BalancerSku::Basic;
    let upgraded = !standard || ip.sku != Sku::Basic;
    let settled = ip.provisioning == Provisioning::Succeeded && upgraded;
    let later = is_unaddressed(ip) && !draft.steps.changes.contains_key(id);
    settled && (ip.address.is_some() || later)
}

/// Whether Azure gives a public IP its address only with the frontend that is put on it.
pub(crate) fn is_unaddressed(ip: &PublicIp) -> bool {
    ip.address.is_none() && ip.allocation == Allocation::Dynamic
}
