//! The body of a Private Link Service.

use super::{Held, Wish, addresses};
use crate::ask::ProxyProtocol;
use crate::draft::Draft;
use crate::own::{part, tags};
use model::azure::{PrivateLinkAddress, PrivateLinkService, Provisioning, Rest};
use std::collections::BTreeSet;
use std::sync::Arc;

/// One that is not there yet.
pub(super) fn fresh(draft: &Draft<'_>, held: &Held) -> PrivateLinkService {
    PrivateLinkService {
        id: held.id.clone(),
        etag: None,
        location: Arc::clone(&draft.policy.location),
        edge_zone: draft.policy.edge_zone.clone(),
        tags: None,
        frontends: vec![held.frontend.clone()],
        addresses: Vec::new(),
        proxy_protocol: None,
        fqdns: Vec::new(),
        visibility: Vec::new(),
        auto_approval: Vec::new(),
        connections: Vec::new(),
        provisioning: Provisioning::Succeeded,
        rest: Rest::default(),
    }
}

/// Fills in what the owner asks for, and who it is.
pub(super) fn fill(draft: &Draft<'_>, after: &mut PrivateLinkService, held: &Held) {
    if let Some(wish) = &held.wish {
        fill_wish(after, wish);
    }
    after.tags = tags::of_private_link(after.tags.as_ref(), draft.policy, &held.owner);
}

fn fill_wish(after: &mut PrivateLinkService, wish: &Wish) {
    let link = &wish.link;
    let mut wanted = addresses::wanted(link, &wish.name, &wish.subnet);
    // Names of IP configurations and their order say nothing.
    let shape = |all: &[PrivateLinkAddress]| {
        let mut shape: Vec<_> = all.iter().map(|a| (a.subnet.clone(), a.address, a.rank)).collect();
        shape.sort();
        shape
    };
    if shape(&after.addresses) != shape(&wanted) {
        for one in &mut wanted {
            let there = part::named(&after.addresses, &one.name);
            one.rest = there.map(|a| a.rest.clone()).unwrap_or_default();
        }
        after.addresses = wanted;
    }
    after.proxy_protocol = match (link.proxy_protocol, after.proxy_protocol) {
        (ProxyProtocol::Enabled, _) => Some(true),
        (ProxyProtocol::Disabled, None) => None,
        (ProxyProtocol::Disabled, Some(_)) => Some(false),
    };
    fill_list(&mut after.fqdns, &link.fqdns);
    fill_list(&mut after.visibility, &link.visibility);
    fill_list(&mut after.auto_approval, &link.auto_approval);
}

/// Another order is no other list.
fn fill_list(there: &mut Vec<Arc<str>>, wanted: &[Arc<str>]) {
    let set = |all: &[Arc<str>]| all.iter().cloned().collect::<BTreeSet<Arc<str>>>();
    if set(there) != set(wanted) {
        *there = wanted.to_vec();
    }
}
