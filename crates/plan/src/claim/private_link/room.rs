//! How many Private Link Services Azure takes.

use super::{Links, owner, refusal};
use crate::ask::private_link::CREATE;
use crate::draft::Draft;
use crate::standing::private_link::known;
use model::ResourceId;
use model::azure::PrivateLinkService;
use model::report::Finding;

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
pub(super) fn find(draft: &Draft<'_>, frontend: &ResourceId, links: &Links) -> Room {
    let Some(balancer) = frontend.parent() else { return Room::Free };
    let here =
        |frontends: &[ResourceId]| frontends.iter().any(|f| f.parent().as_ref() == Some(&balancer));
    let message = |users: &str| {
        format!(
            "load balancer {} has the Private Link Services of {users}; it has at most \
             {PER_BALANCER}",
            balancer.name()
        )
    };
    match count((draft, links), here, PER_BALANCER, &message) {
        Room::Free => {}
        full => return full,
    }
    let message = |users: &str| {
        format!(
            "the subscription has the Private Link Services of {users}; it has at most \
             {PER_SUBSCRIPTION}"
        )
    };
    count((draft, links), |_| true, PER_SUBSCRIPTION, &message)
}

fn count(
    (draft, links): (&Draft<'_>, &Links),
    counts: impl Fn(&[ResourceId]) -> bool,
    most: usize,
    message: &dyn Fn(&str) -> String,
) -> Room {
    let (going, staying): (Vec<_>, Vec<_>) = known(draft)
        .filter(|link| counts(&link.frontends))
        .partition(|link| links.leaving.contains_key(&link.id));
    let made = links.held.iter().filter(|held| held.there.is_none());
    let made: Vec<_> = made.filter(|held| counts(std::slice::from_ref(&held.frontend))).collect();
    if staying.len() + made.len() >= most {
        let users = staying.into_iter().map(|link| user(link));
        let users: Vec<String> =
            users.chain(made.iter().map(|held| held.owner.to_string())).collect();
        let text = message(&listed(&users));
        return Room::None(refusal(CREATE, "", "PrivateLinkLimit", text));
    }
    // Each that is to be made takes the place of one that goes.
    let short = (staying.len() + made.len() + going.len() + 1).saturating_sub(most);
    match short.checked_sub(1).and_then(|at| going.get(at)) {
        Some(link) => Room::After(link.id.clone()),
        None => Room::Free,
    }
}

/// Whose one is.
fn user(link: &PrivateLinkService) -> String {
    owner(link).map_or_else(|| link.id.name().to_owned(), str::to_owned)
}

/// The first of them, and how many more there are.
fn listed(users: &[String]) -> String {
    let first = &users[..users.len().min(PER_BALANCER)];
    let more = users.len() - first.len();
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", first.join(", "))
}
