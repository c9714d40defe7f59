//! What Azure says of the last write of a resource.
//!
//! What is promised: of the load balancers and public IPs that Services stand on, and of the
//! security group that is opened for them, none is left failed: it shows what was asked for, and
//! not what came of that.

use crate::Broken;
use crate::case::Case;
use crate::estate::{has_failed, last, parts, text};
use crate::security;
use std::collections::BTreeSet;

/// Judges them.
pub(crate) fn judge(case: &Case<'_>, broken: &mut Vec<Broken>) {
    let mut used: BTreeSet<&str> = BTreeSet::new();
    for place in case.places.values() {
        used.insert(text(&place.balancer["id"]));
        used.insert(text(&place.frontend["properties"]["publicIPAddress"]["id"]));
    }
    let group = case.estate.get(&case.site.security_group);
    let opened = group.filter(|group| parts(group, "securityRules").any(security::is_managed));
    let all = used.into_iter().filter_map(|id| case.estate.get(id)).chain(opened);
    let failed = all.filter(|resource| has_failed(resource)).map(|resource| {
        let text = format!("the last write of {} failed", last(text(&resource["id"])));
        Broken { service: None, promise: "state", text }
    });
    broken.extend(failed);
}
