//! A public frontend takes a Private Link Service only where none of its rules has floating IP.

use crate::draft::Draft;
use crate::own::{name, part};
use model::ResourceId;
use model::azure::FrontendAddress;
use std::sync::Arc;

/// Whose rule with floating IP leads to a public frontend, which then takes no Private Link
/// Service.
pub(super) enum Floating {
    /// The Service's own, until it is written.
    Own,
    /// Another's, of this name.
    Others(Arc<str>),
}

/// The rule that is in the way.
pub(super) fn find(draft: &Draft<'_>, frontend: &ResourceId, base: &str) -> Option<Floating> {
    let balancer = frontend.parent().and_then(|id| draft.balancer(&id))?;
    let found = part::named(&balancer.frontends, frontend.name())?;
    if !matches!(found.address, FrontendAddress::Public(_)) {
        return None;
    }
    let mut rules = balancer
        .rules
        .iter()
        .filter(|rule| rule.frontend.as_ref() == Some(frontend) && rule.floating_ip == Some(true));
    let own = |name: &str| name::is_of(name, base);
    let first = rules.clone().find(|rule| !own(&rule.name));
    let others = first.map(|rule| Floating::Others(Arc::clone(&rule.name)));
    others.or_else(|| rules.next().map(|_| Floating::Own))
}
