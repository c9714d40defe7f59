//! Changes become requests.

use arm::path::{Action as Verb, Contract, action_path, resource_path};
use arm::{Body, Condition, Method, Request, Target, body};
use model::ResourceId;
use model::plan::{Action, Change};

/// The request that carries out a change.
#[must_use]
pub fn of_change(contract: Contract, change: &Change, correlation: String) -> Request {
    let (target, method) = (&change.target, method(&change.action));
    let (path, body) = match &change.action {
        Action::Put { after, .. } => {
            (resource_path(contract, target), Some(body::write_resource(after).into()))
        }
        Action::Delete { .. } | Action::DeleteChild => (resource_path(contract, target), None),
        Action::MigratePools { pools } => {
            let path = action_path(contract, target, Verb::MigrateToIpBased);
            (path, Some(body::migrate_pools(pools).into()))
        }
        Action::UpdateServices(update) => {
            let path = action_path(contract, &owner(target), Verb::UpdateServices);
            (path, Some(body::services_update(update).into()))
        }
        Action::UpdateLocations(update) => {
            let path = action_path(contract, &owner(target), Verb::UpdateAddressLocations);
            (path, Some(Body::Text(body::locations_update_text(update).into())))
        }
    };
    let condition = match (&change.action, &change.guard) {
        // One that stood still may come late: what another has made meanwhile stays as it is.
        (Action::Put { before: None, .. }, _) => Condition::Absent,
        (_, Some(etag)) if method != Method::Post => Condition::Unchanged(etag.clone()),
        _ => Condition::None,
    };
    Request { method, target: Target::Path(path), condition, body, correlation }
}

/// Reads one resource.
#[must_use]
pub fn of_read(contract: Contract, id: &ResourceId, correlation: String) -> Request {
    let target = Target::Path(resource_path(contract, id));
    Request { method: Method::Get, target, condition: Condition::None, body: None, correlation }
}

/// The method of the request that carries out an action.
pub(crate) fn method(action: &Action) -> Method {
    match action {
        Action::Put { .. } => Method::Put,
        Action::Delete { .. } | Action::DeleteChild => Method::Delete,
        Action::MigratePools { .. } | Action::UpdateServices(_) | Action::UpdateLocations(_) => {
            Method::Post
        }
    }
}

/// The Service Gateway whose table a target names.
fn owner(table: &ResourceId) -> ResourceId {
    let text = table.as_str();
    ResourceId::new(text.rsplit_once('/').map_or(text, |(owner, _)| owner))
}
