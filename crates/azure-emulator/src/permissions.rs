//! What the caller may do: the list that Resource Manager shows, and the refusal of what is not in
//! it.
//!
//! A permission is called by Azure's rule: the type and `read`, `write` or `delete`; for a POST the
//! action's name and `action`. The code and the text are those of `AuthorizationFailed`, from which
//! clients read the permission that is missing.

use serde_json::json;

use crate::azure::Azure;
use crate::message::{Answer, Checked, refusal};
use crate::path::Route;

/// Lists what the caller may do in a resource group.
const LISTED: &str = "microsoft.authorization/permissions";

impl Azure {
    /// The answer to a GET of the caller's permissions; `None` for any other path.
    pub(crate) fn own_permissions(&self, route: &Route) -> Option<Answer> {
        let listed = route.is_collection() && route.kind() == LISTED;
        listed.then(|| {
            let own = json!({"actions": self.options.permissions, "notActions": [],
                "dataActions": [], "notDataActions": []});
            Answer::new(200, Some(json!({"value": [own]})))
        })
    }

    /// Refuses what the caller may not do.
    pub(crate) fn check_permission(&self, route: &Route, method: &str) -> Checked {
        let Some(action) = action_of(route, method) else { return Ok(()) };
        let may = |pattern: &String| covers(&pattern.to_lowercase(), &action.to_lowercase());
        if route.kind() == LISTED || self.options.permissions.iter().any(may) {
            return Ok(());
        }
        let message = format!(
            "The client 'emulated' with object id 'emulated' does not have authorization to \
             perform action '{action}' over scope '{}' or the scope is invalid. If access was \
             recently granted, please refresh your credentials.",
            route.path
        );
        Err(refusal(403, "AuthorizationFailed", message))
    }
}

/// The permission that a call needs; `None` above resource providers.
fn action_of(route: &Route, method: &str) -> Option<String> {
    if route.namespace.is_empty() || route.types.is_empty() {
        return None;
    }
    let verb = match method {
        "GET" | "HEAD" => "read",
        "PUT" | "PATCH" => "write",
        "DELETE" => "delete",
        _ => "action",
    };
    Some(format!("{}/{verb}", route.type_name()))
}

/// Whether a pattern, in which `*` stands for any letters, covers an action.
fn covers(pattern: &str, action: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == action,
        Some((head, rest)) => action.strip_prefix(head).is_some_and(|action| {
            let mut ends = action.char_indices().map(|(at, _)| at).chain([action.len()]);
            ends.any(|at| covers(rest, &action[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::covers;

    #[test]
    fn patterns() {
        for (pattern, action, yes) in [
            ("*", "a/b/read", true),
            ("*/read", "a/b/read", true),
            ("*/read", "a/b/write", false),
            ("a/*/read", "a/b/c/read", true),
            ("a/*/read", "a/read", false),
            ("a/read", "a/read", true),
            ("a/read", "a/reads", false),
        ] {
            assert_eq!(covers(pattern, action), yes, "{pattern} {action}");
        }
    }
}
