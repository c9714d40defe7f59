//! How many Private Link Services Azure takes.

use super::{CREATE, known, owner, refusal};
use crate::draft::Draft;
use model::azure::PrivateLinkService;
use model::plan::{Action, Resource};
use model::report::{Finding, Until, Wait};
use model::{ResourceId, ServiceUid};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Before the frontends of one load balancer.
const PER_BALANCER: usize = 8;
/// In a subscription.
const PER_SUBSCRIPTION: usize = 800;

/// Whether one more can be made.
pub(super) enum Room {
    /// It can.
    Free,
    /// It can once this one is gone.
    After(ResourceId),
    /// It cannot.
    None(Finding),
}

/// Looks for room for one more before a frontend. Those of resource groups that nobody asks for
/// are not seen and count, too.
pub(super) fn find(draft: &Draft<'_>, frontend: &ResourceId) -> Room {
    let Some(balancer) = frontend.parent() else { return Room::Free };
    let here = |link: &PrivateLinkService| {
        link.frontends.iter().any(|f| f.parent().as_ref() == Some(&balancer))
    };
    let message = |users: &str| {
        format!(
            "load balancer {} has the Private Link Services of {users}; it has at most \
             {PER_BALANCER}",
            balancer.name()
        )
    };
    match count(draft, here, PER_BALANCER, &message) {
        Room::Free => {}
        full => return full,
    }
    let message = |users: &str| {
        format!(
            "the subscription has the Private Link Services of {users}; it has at most \
             {PER_SUBSCRIPTION}"
        )
    };
    count(draft, |_| true, PER_SUBSCRIPTION, &message)
}

fn count(
    draft: &Draft<'_>,
    counts: impl Fn(&PrivateLinkService) -> bool,
    most: usize,
    message: &dyn Fn(&str) -> String,
) -> Room {
    let (going, staying): (Vec<_>, Vec<_>) =
        known(draft).filter(|link| counts(link)).partition(|link| is_going(draft, link));
    let made = draft.changes.values().filter_map(|change| match &change.action {
        Action::Put { before: None, after: Resource::PrivateLinkService(after) } => Some(after),
        _ => None,
    });
    let made: Vec<_> = made.filter(|link| counts(link)).collect();
    if staying.len() + made.len() >= most {
        let users: Vec<&Arc<PrivateLinkService>> = staying.into_iter().chain(made).collect();
        let text = message(&users_of(&users));
        return Room::None(refusal(CREATE, "", "PrivateLinkLimit", text));
    }
    // Each that is to be made takes the place of one that goes.
    let short = (staying.len() + made.len() + going.len() + 1).saturating_sub(most);
    match short.checked_sub(1).and_then(|at| going.get(at)) {
        Some(link) => Room::After(link.id.clone()),
        None => Room::Free,
    }
}

fn is_going(draft: &Draft<'_>, link: &PrivateLinkService) -> bool {
    draft.changes.get(&link.id).is_some_and(|c| matches!(c.action, Action::Delete { .. }))
}

/// Whose they are.
fn users_of(links: &[&Arc<PrivateLinkService>]) -> String {
    let name = |link: &Arc<PrivateLinkService>| {
        owner(link).map_or_else(|| link.id.name().to_owned(), str::to_owned)
    };
    let names: Vec<String> = links.iter().take(PER_BALANCER).map(|link| name(link)).collect();
    let more = links.len().saturating_sub(names.len());
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", names.join(", "))
}

/// Notes that Services wait until one is gone.
pub(super) fn wait(draft: &mut Draft<'_>, id: &ResourceId, causes: &BTreeSet<ServiceUid>) {
    let wait = Wait::Resource { id: id.clone(), until: Until::Gone };
    causes.iter().for_each(|uid| draft.wait(uid, wait.clone()));
}
