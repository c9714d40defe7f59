//! A public frontend takes a Private Link Service only where none of its rules has floating IP.

use crate::draft::Draft;
use crate::own::name;
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
    let balancer = frontend.parent().and_then(|id| draft.view(&id))?;
    let found = balancer.frontend(frontend.name())?;
    if !matches!(found.address, FrontendAddress::Public(_)) {
        return None;
    }
    let mut rules = balancer.rules_to(frontend.name());
    rules.retain(|rule| rule.floating_ip == Some(true));
    let others = rules.iter().find(|rule| !name::is_of(&rule.name, base));
    let others = others.map(|rule| Floating::Others(Arc::clone(&rule.name)));
    others.or_else(|| rules.first().map(|_| Floating::Own))
}
