//! What another Service's part in a resource costs, left out before bodies are compared.

use model::azure::{LoadBalancer, SecurityGroup};
use model::plan::Resource;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Two states of a resource without the elements that are the same in both: those say nothing about
/// what differs, and on a load balancer of many Services nearly all are.
pub(super) fn differing(with: &Resource, without: &Resource) -> (Resource, Resource) {
    match (with, without) {
        (Resource::LoadBalancer(with), Resource::LoadBalancer(without)) => {
            let (with, without) = balancers(with, without);
            (Resource::LoadBalancer(Arc::new(with)), Resource::LoadBalancer(Arc::new(without)))
        }
        (Resource::SecurityGroup(with), Resource::SecurityGroup(without)) => {
            let mut both = (SecurityGroup::clone(with), SecurityGroup::clone(without));
            drop_same(&mut both.0.rules, &mut both.1.rules, |rule| &rule.name);
            let (with, without) = both;
            (Resource::SecurityGroup(Arc::new(with)), Resource::SecurityGroup(Arc::new(without)))
        }
        (with, without) => (with.clone(), without.clone()),
    }
}

fn balancers(with: &LoadBalancer, without: &LoadBalancer) -> (LoadBalancer, LoadBalancer) {
    let (mut with, mut without) = (with.clone(), without.clone());
    drop_same(&mut with.frontends, &mut without.frontends, |f| &f.name);
    drop_same(&mut with.rules, &mut without.rules, |r| &r.name);
    drop_same(&mut with.probes, &mut without.probes, |p| &p.name);
    for pool in &mut with.pools {
        if let Some(other) = without.pools.iter_mut().find(|p| p.name == pool.name) {
            drop_same(&mut pool.addresses, &mut other.addresses, |a| &a.name);
        }
    }
    (with, without)
}

/// Takes elements out of both lists that are in both under one name and equal.
fn drop_same<T: PartialEq>(one: &mut Vec<T>, other: &mut Vec<T>, name: fn(&T) -> &Arc<str>) {
    let by_name: BTreeMap<&Arc<str>, &T> = other.iter().map(|t| (name(t), t)).collect();
    let same: BTreeSet<Arc<str>> = one
        .iter()
        .filter(|t| by_name.get(name(t)) == Some(t))
        .map(|t| Arc::clone(name(t)))
        .collect();
    one.retain(|t| !same.contains(name(t)));
    other.retain(|t| !same.contains(name(t)));
}
