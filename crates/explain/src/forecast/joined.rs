//! Several calls on one table of a Service Gateway as one call: a call carries what is ready, and
//! no more than Azure takes, so that one plan may need many.

use model::gateway::{LocationUpdate, LocationsUpdate, ServiceNames, ServicesUpdate, UpdateAction};
use model::plan::Action;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// What two calls on the same table do together; `None` where they are no such calls.
pub(super) fn joined(first: &Action, then: &Action) -> Option<Action> {
    match (first, then) {
        (Action::UpdateServices(first), Action::UpdateServices(then)) => {
            Some(Action::UpdateServices(services(first, then)))
        }
        (Action::UpdateLocations(first), Action::UpdateLocations(then)) => {
            Some(Action::UpdateLocations(locations(first, then)))
        }
        _ => None,
    }
}

/// Of each service the later call counts.
fn services(first: &ServicesUpdate, then: &ServicesUpdate) -> ServicesUpdate {
    let later: BTreeSet<String> = then.names().map(|name| name.to_lowercase()).collect();
    let stays = |name: &str| !later.contains(&name.to_lowercase());
    let mut all = first.clone();
    all.put.retain(|put| stays(&put.service.name));
    all.delete.retain(|(name, _)| stays(name));
    all.put.extend(then.put.iter().cloned());
    all.delete.extend(then.delete.iter().cloned());
    all
}

fn locations(first: &LocationsUpdate, then: &LocationsUpdate) -> LocationsUpdate {
    if then.action == UpdateAction::FullUpdate {
        return then.clone();
    }
    let known = first.locations.iter().map(|at| (at.location, at.clone()));
    let mut all: BTreeMap<IpAddr, LocationUpdate> = known.collect();
    for at in &then.locations {
        match all.get_mut(&at.location) {
            Some(known) => add(known, at),
            None => {
                all.insert(at.location, at.clone());
            }
        }
    }
    LocationsUpdate { action: first.action, locations: all.into_values().collect() }
}

/// Of each address the later call counts.
fn add(known: &mut LocationUpdate, then: &LocationUpdate) {
    if then.is_whole() {
        known.clone_from(then);
        return;
    }
    let whole = known.is_whole();
    let listed = known.addresses.drain(..).chain(then.addresses.iter().cloned());
    let mut addresses: BTreeMap<IpAddr, ServiceNames> = listed.collect();
    if whole {
        // What is not listed goes: nothing has to be listed to go.
        known.action = UpdateAction::FullUpdate;
        addresses.retain(|_, services| !services.is_empty());
    }
    known.addresses = addresses.into_iter().collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::merge;
    use model::gateway::{Direction, GatewayServiceUpdate};
    use model::plan::Change;
    use model::{ResourceId, ServiceUid};
    use std::sync::Arc;

    /// What a forecast shows of calls that are made one after the other.
    fn shown(calls: impl IntoIterator<Item = Action>) -> Action {
        let mut merged = BTreeMap::new();
        for (order, action) in calls.into_iter().enumerate() {
            let target = ResourceId::new("/gateway/table");
            let causes = BTreeSet::from([ServiceUid::new("u")]);
            let change = Change { target, action, guard: None, causes, waits: Vec::new() };
            merge(&mut merged, &change, order);
        }
        assert_eq!(merged.len(), 1);
        merged.into_values().next().map(|(_, change)| change.action).expect("there is one")
    }

    fn update(put: &[&str], delete: &[&str]) -> Action {
        let put = put.iter().map(|name| fixture::gateway_service(name));
        Action::UpdateServices(ServicesUpdate {
            put: put.map(|service| GatewayServiceUpdate { service, network: None }).collect(),
            delete: delete.iter().map(|name| (Arc::from(*name), Direction::Inbound)).collect(),
        })
    }

    #[test]
    fn every_registration_of_several_calls_is_shown() {
        let calls = [update(&["a", "b"], &["x", "y"]), update(&["c"], &["B"]), update(&["x"], &[])];
        assert_eq!(shown(calls), update(&["a", "c", "x"], &["y", "B"]));
    }

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn at(location: u8, action: UpdateAction, addresses: &[(u8, &[&str])]) -> LocationUpdate {
        let names = |names: &[&str]| -> ServiceNames {
            Arc::new(names.iter().map(|name| Arc::from(*name)).collect())
        };
        let addresses = addresses.iter().map(|(last, all)| (ip(*last), names(all)));
        LocationUpdate { location: ip(location), action, addresses: addresses.collect() }
    }

    #[test]
    fn every_address_of_several_calls_is_shown() {
        use UpdateAction::{FullUpdate, PartialUpdate};
        let call = |locations: Vec<LocationUpdate>| {
            Action::UpdateLocations(LocationsUpdate { action: PartialUpdate, locations })
        };
        let first = vec![
            at(1, PartialUpdate, &[(11, &["a"]), (12, &[])]),
            at(2, FullUpdate, &[(21, &["a"]), (22, &["a"])]),
            at(3, PartialUpdate, &[]),
            at(4, PartialUpdate, &[(41, &["a"])]),
        ];
        let then = vec![
            at(1, PartialUpdate, &[(12, &["b"]), (13, &["b"])]),
            at(2, PartialUpdate, &[(22, &[]), (23, &["b"])]),
            at(3, PartialUpdate, &[(31, &["b"])]),
            at(5, PartialUpdate, &[(51, &["b"])]),
        ];
        let all = vec![
            at(1, PartialUpdate, &[(11, &["a"]), (12, &["b"]), (13, &["b"])]),
            at(2, FullUpdate, &[(21, &["a"]), (23, &["b"])]),
            at(3, FullUpdate, &[(31, &["b"])]),
            at(4, PartialUpdate, &[(41, &["a"])]),
            at(5, PartialUpdate, &[(51, &["b"])]),
        ];
        assert_eq!(shown([call(first), call(then)]), call(all));
    }
}
