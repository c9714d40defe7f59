//! Whether the credential may do what the role says, and whether the role's names are Azure's.

use super::beside_the_point;
use crate::assumption::{Blocked, Tried, Verdict};
use crate::estate;
use crate::lab::Lab;
use arm::Method;
use arm::path::{Action, Contract, action_path};
use arm::permission::{Purpose, permissions};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Lists what the caller may do in a resource group.
const VERSION: &str = "2022-04-01";

/// Patterns of actions that are granted, and those that are taken from them.
type Grant = (Vec<String>, Vec<String>);

/// What the caller may do in the group.
fn granted(lab: &mut Lab<'_>) -> Result<Vec<Grant>, Blocked> {
    let (subscription, group) = (&lab.site().subscription, &lab.site().group);
    let path = format!(
        "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Authorization\
         /permissions?api-version={VERSION}"
    );
    let done = lab.ask_path(Method::Get, path, None);
    let body = done.came.body.clone().unwrap_or_default();
    if !done.came.is_taken() {
        return Err(done.blocked("GET permissions"));
    }
    let texts = |value: &Value| -> Vec<String> {
        let all = value.as_array().into_iter().flatten();
        all.filter_map(|text| text.as_str().map(str::to_lowercase)).collect()
    };
    let all = body["value"].as_array().into_iter().flatten();
    Ok(all.map(|one| (texts(&one["actions"]), texts(&one["notActions"]))).collect())
}

/// Whether a pattern with `*` covers an action; both in lower case.
fn covers(pattern: &str, action: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|head| action.strip_prefix(head)) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((tail, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.len() >= tail.len() && rest.ends_with(tail)
}

/// The credential may do all that the role lists.
pub(crate) fn role(lab: &mut Lab<'_>) -> Tried {
    let granted = granted(lab)?;
    let any = |patterns: &[String], action: &str| patterns.iter().any(|p| covers(p, action));
    let may = |action: &str| {
        let action = action.to_lowercase();
        granted.iter().any(|(some, less)| any(some, &action) && !any(less, &action))
    };
    let all = permissions(&BTreeSet::from(Purpose::ALL));
    let missing: Vec<&str> = all.iter().copied().filter(|action| !may(action)).collect();
    Ok(match missing.is_empty() {
        true => Verdict::Confirmed(Some(format!("{} of {}", all.len(), all.len()))),
        false => Verdict::Differs(format!("not granted: {}", missing.join(", "))),
    })
}

/// Calls below a Service Gateway and the permission that the role has for each.
const BELOW_GATEWAY: [(Method, Action, &str); 4] = [
    (Method::Get, Action::Services, "Microsoft.Network/serviceGateways/services/read"),
    (
        Method::Get,
        Action::AddressLocations,
        "Microsoft.Network/serviceGateways/addressLocations/read",
    ),
    (
        Method::Post,
        Action::UpdateServices,
        "Microsoft.Network/serviceGateways/updateServices/action",
    ),
    (
        Method::Post,
        Action::UpdateAddressLocations,
        "Microsoft.Network/serviceGateways/updateAddressLocations/action",
    ),
];

/// What a refusal says the caller may not do.
fn named_action(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("perform action '")?;
    rest.split('\'').next()
}

/// The names of the permissions below a Service Gateway are those that Azure asks for. A refusal
/// names the permission that is missing; where nothing is refused, only a credential that has
/// these names, and no `*`, shows that they are the right ones.
pub(crate) fn below_gateway(lab: &mut Lab<'_>) -> Tried {
    let gateway = estate::service_gateway(lab)?;
    let granted = granted(lab)?;
    let wide = |name: &str| {
        let name = name.to_lowercase();
        granted.iter().flat_map(|(some, _)| some).find(|p| **p != name && covers(p, &name))
    };
    let exact = |name: &str| {
        granted.iter().flat_map(|(some, _)| some).any(|p| p.eq_ignore_ascii_case(name))
    };
    let mut undecided = Vec::new();
    for (method, action, name) in BELOW_GATEWAY {
        let body = match action {
            Action::UpdateServices => {
                Some(json!({"action": "PartialUpdate", "serviceRequests": []}))
            }
            Action::UpdateAddressLocations => {
                Some(json!({"action": "PartialUpdate", "addressLocations": []}))
            }
            Action::MigrateToIpBased | Action::Services | Action::AddressLocations => None,
        };
        let path = action_path(Contract::Nodes, &gateway, action);
        let came = lab.ask_path(method, path, body).came;
        match named_action(came.message()).filter(|_| came.status == 403) {
            Some(asked) if asked.eq_ignore_ascii_case(name) => {}
            Some(asked) => return Ok(Verdict::Differs(format!("{name} is called {asked}"))),
            None if came.status == 403 => {
                undecided.push(format!("{name}: {}", came.short()));
            }
            None if matches!(came.status, 0 | 401 | 429 | 500..) => {
                return Ok(Verdict::NotTried(beside_the_point(&came).unwrap_or_default()));
            }
            None => match wide(name) {
                Some(wide) => undecided.push(format!("{name} is covered by \"{wide}\"")),
                None if exact(name) => {}
                None => return Ok(Verdict::Differs(format!("{name} was not needed"))),
            },
        }
    }
    Ok(match undecided.is_empty() {
        true => Verdict::AS_ASSUMED,
        false => Verdict::NotTried(undecided.join("; ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_roles() {
        for (pattern, action, yes) in [
            ("*", "microsoft.network/loadbalancers/read", true),
            ("*/read", "microsoft.network/loadbalancers/read", true),
            ("*/read", "microsoft.network/loadbalancers/write", false),
            ("microsoft.network/*", "microsoft.network/a/b/action", true),
            ("microsoft.network/*/read", "microsoft.network/a/read", true),
            ("microsoft.network/*/read", "microsoft.network/read", false),
            ("a/read", "a/read", true),
            ("a/read", "a/read/b", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(covers(pattern, action), yes, "{pattern} {action}");
        }
    }

    #[test]
    fn the_role_has_the_names_below_a_service_gateway() {
        let role = permissions(&BTreeSet::from(Purpose::ALL));
        assert!(BELOW_GATEWAY.iter().all(|(_, _, name)| role.contains(name)));
    }
}
