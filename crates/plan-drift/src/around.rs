//! Plans as if nothing had drifted, and writes nothing of what has.

use super::{Confirmed, find, overlay, parts, tables};
use model::azure::{LoadBalancer, Rule};
use model::drift::{Drift, Part};
use model::plan::{Action, Change, Edit, Object, Resource};
use model::report::Wait;
use model::world::Azure;
use model::{Plan, Policy, Report, ResourceId, World};
use plan::Planner;
use plan::own::Base;
use plan::own::name::folded;
use plan::own::part;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// Parts that are left as others made them.
type Held = BTreeMap<ResourceId, BTreeSet<Part>>;

/// Plans around what has drifted: those parts stay as others made them, everything else is planned
/// as if they were as we left them. Drift that something else needs to be put right is taken off
/// the list, and put right.
pub fn plan_around(
    planner: &mut Planner,
    world: &mut World,
    policy: &Policy,
    confirmed: &Confirmed,
    drifts: &mut Vec<Drift>,
) -> (Plan, Report) {
    let mut settled = BTreeSet::new();
    loop {
        let mut held = Held::new();
        for drift in drifts.iter() {
            held.entry(drift.target.clone()).or_default().insert(drift.part.clone());
        }
        let real = mask(&mut world.azure, confirmed, &held);
        let (mut plan, report) = planner.plan(world, policy);
        // Behind a registration that is gone stand rows that are gone, too.
        let mut behind = match held.is_empty() {
            true => Vec::new(),
            false => find(confirmed, world, &plan),
        };
        world.azure = real;
        behind.retain(|drift| !settled.contains(&drift.place()));
        if !behind.is_empty() {
            settled.extend(behind.iter().map(Drift::place));
            drifts.append(&mut behind);
            continue;
        }
        let mut needed = unmask(&mut plan, &world.azure, confirmed, &held);
        needed.extend(left_open(&plan, world, &held));
        needed.extend(told(&plan, world, confirmed, &held));
        if needed.is_empty() {
            drifts.sort_by(|a, b| (&a.target, &a.part).cmp(&(&b.target, &b.part)));
            return (plan, report);
        }
        // Each round takes something off for good; without drift the plan needs nothing more.
        drifts.retain(|drift| !needed.contains(&drift.place()));
        settled.extend(needed);
    }
}

/// Makes Azure look as we left it, and gives back how it is.
fn mask(azure: &mut Azure, confirmed: &Confirmed, held: &Held) -> Azure {
    let real = azure.clone();
    for (id, parts) in held {
        match (confirmed.resources.get(id), azure.find(id)) {
            (Some(ours), Some(found)) => azure.put(overlay(&found, ours, parts)),
            (Some(ours), None) => azure.put(ours.clone()),
            (None, _) => parts.iter().for_each(|p| tables::restore(&confirmed.tables, azure, p)),
        }
    }
    real
}

/// Takes out of a plan what it would only write because the World was masked. Gives the drift that
/// the rest of the plan cannot do without.
fn unmask(
    plan: &mut Plan,
    real: &Azure,
    confirmed: &Confirmed,
    held: &Held,
) -> BTreeSet<(ResourceId, Part)> {
    let mut needed = BTreeSet::new();
    let mut dropped = BTreeSet::new();
    let mut kept = Vec::with_capacity(plan.changes.len());
    for mut change in std::mem::take(&mut plan.changes) {
        let Some(parts) = held.get(&change.target) else {
            kept.push(change);
            continue;
        };
        let Some(found) = real.find(&change.target) else {
            if confirmed.resources.contains_key(&change.target) {
                // It is written, so it has to be there.
                needed.extend(parts.iter().map(|part| (change.target.clone(), part.clone())));
            }
            kept.push(change);
            continue;
        };
        let lost = lost_rules(&change, &found).into_iter().filter(|part| parts.contains(part));
        needed.extend(lost.map(|part| (change.target.clone(), part)));
        if rebase(Arc::make_mut(&mut change), &found, confirmed, parts) {
            kept.push(change);
        } else {
            dropped.insert(change.target.clone());
        }
    }
    let gone = held.iter().filter(|(_, parts)| parts.iter().any(Part::is_whole));
    let gone: Vec<&ResourceId> = gone.map(|(id, _)| id).collect();
    for change in &kept {
        let waits = change.waits.iter().filter_map(|wait| match wait {
            Wait::Resource { id, .. } => Some(id),
            _ => None,
        });
        for id in waits.filter(|id| dropped.contains(*id)) {
            needed.extend(places(held, id));
        }
        for (id, parts) in held {
            let lost = match &change.action {
                Action::UpdateLocations(update) => tables::named_and_gone(real, update, parts),
                Action::UpdateServices(update) => tables::naming_who_goes(real, update, parts),
                _ => Vec::new(),
            };
            needed.extend(lost.into_iter().map(|part| (id.clone(), part)));
        }
        if !gone.is_empty() {
            // What is written may name what is gone.
            let text = format!("{:?}", change.action).to_lowercase();
            for id in gone.iter().filter(|id| text.contains(&id.folded())) {
                needed.extend(places(held, id));
            }
        }
    }
    plan.changes = kept;
    needed
}

fn places(held: &Held, id: &ResourceId) -> Vec<(ResourceId, Part)> {
    let parts = held.get(id).into_iter().flatten();
    parts.map(|part| (id.clone(), part.clone())).collect()
}

/// Rules that lead nowhere as the resource is, and whose frontend is to have another address. A
/// rule names its frontend and not the address, so that it would stay as it was: status would tell
/// an address that nothing leads to.
fn lost_rules(change: &Change, found: &Resource) -> Vec<Part> {
    let Action::Put { before: Some(before), after } = &change.action else { return Vec::new() };
    let (
        Resource::LoadBalancer(before),
        Resource::LoadBalancer(after),
        Resource::LoadBalancer(found),
    ) = (before, after, found)
    else {
        return Vec::new();
    };
    let address = |balancer: &LoadBalancer, id: &ResourceId| {
        let own = part::named(&balancer.frontends, id.name());
        own.map(|frontend| frontend.address.clone())
    };
    let moves = |id: &ResourceId| address(before, id) != address(after, id);
    let stands = |rule: &Rule| {
        let there = part::named(&found.rules, &rule.name);
        there.is_some_and(|there| there.frontend == rule.frontend)
    };
    let lost = after.rules.iter().filter(|rule| rule.frontend.as_ref().is_some_and(moves));
    let lost = lost.filter(|rule| !stands(rule));
    lost.map(|rule| Part { kind: "rule", name: Arc::clone(&rule.name) }).collect()
}

/// Frontends and rules that other clients deleted, of Services whose status gets a new address in
/// this plan: a rule has to lead to that address. An address that is in the status already stays
/// there.
fn told(
    plan: &Plan,
    world: &World,
    confirmed: &Confirmed,
    held: &Held,
) -> BTreeSet<(ResourceId, Part)> {
    let services = plan.writes.iter().filter_map(|write| {
        let (Object::Service { uid, .. }, Edit::Status { ingress: Some(list), .. }) =
            (&write.object, &write.edit)
        else {
            return None;
        };
        let service = world.kubernetes.services.get(uid)?;
        list.iter().any(|ip| !service.ingress.contains(ip)).then(|| Base::of_service(uid))
    });
    let bases: BTreeSet<Base> = services.collect();
    let is_its = |name: &str| Base::of(name).is_some_and(|base| bases.contains(&base));
    let mut lost = BTreeSet::new();
    for (id, parts) in held.iter().filter(|_| !bases.is_empty()) {
        let found = world.azure.find(id);
        let stands = |kind: &str, name: &str| match &found {
            Some(Resource::LoadBalancer(found)) if kind == "frontend" => {
                part::named(&found.frontends, name).is_some()
            }
            Some(Resource::LoadBalancer(found)) => part::named(&found.rules, name).is_some(),
            _ => false,
        };
        let Some(Resource::LoadBalancer(ours)) = confirmed.resources.get(id) else { continue };
        let lacks = |kind: &str, name: &str| is_its(name) && !stands(kind, name);
        let lacks_any = ours.rules.iter().any(|rule| lacks("rule", &rule.name));
        let is_lost = |part: &&Part| match part.kind {
            "rule" | "frontend" => lacks(part.kind, &part.name),
            _ => part.is_whole() && lacks_any,
        };
        lost.extend(parts.iter().filter(is_lost).map(|part| (id.clone(), part.clone())));
    }
    lost
}

/// Security rules that other clients made or changed, and that lead to an address which the plan
/// releases or drops from the ledger: Azure may give the address to another tenant.
fn left_open(plan: &Plan, world: &World, held: &Held) -> BTreeSet<(ResourceId, Part)> {
    let group = world.azure.security_group.known().and_then(Option::as_ref);
    let Some((group, parts)) = group.and_then(|group| Some((group, held.get(&group.id)?))) else {
        return BTreeSet::new();
    };
    let released = released(plan, world);
    let leads = |to: &Arc<str>| to.parse().is_ok_and(|address| released.contains(&address));
    let open = group.rules.iter().filter(|rule| rule.destinations.iter().any(leads));
    let parts = open
        .map(|rule| Part { kind: "rule", name: Arc::clone(&rule.name) })
        .filter(|part| parts.contains(part));
    parts.map(|part| (group.id.clone(), part)).collect()
}

/// Addresses that a plan releases or drops from the ledger.
fn released(plan: &Plan, world: &World) -> BTreeSet<IpAddr> {
    let mut released = BTreeSet::new();
    for change in &plan.changes {
        match &change.action {
            Action::Delete { before: Resource::PublicIp(ip) } => released.extend(ip.address),
            Action::Delete { before: Resource::LoadBalancer(before) } => {
                released.extend(before.frontends.iter().filter_map(|f| f.private()));
            }
            Action::Put {
                before: Some(Resource::LoadBalancer(before)),
                after: Resource::LoadBalancer(after),
            } => {
                let kept: BTreeSet<IpAddr> =
                    after.frontends.iter().filter_map(|f| f.private()).collect();
                let had = before.frontends.iter().filter_map(|f| f.private());
                released.extend(had.filter(|address| !kept.contains(address)));
            }
            _ => {}
        }
    }
    if let (Some(write), Some(ledger)) = (&plan.ledger, world.kubernetes.ledger.known()) {
        let recorded = ledger.destinations.keys();
        released.extend(recorded.filter(|address| !write.destinations.contains_key(*address)));
    }
    released
}

/// Moves a change that was planned on a masked resource onto the resource as read. Returns whether
/// it writes anything that has not drifted.
fn rebase(
    change: &mut Change,
    found: &Resource,
    confirmed: &Confirmed,
    held: &BTreeSet<Part>,
) -> bool {
    let ours = confirmed.resources.get(&change.target);
    let (before, after, ours) = match (&mut change.action, ours) {
        (Action::Delete { before }, _) => {
            *before = found.clone();
            return true;
        }
        (Action::Put { before, after }, Some(ours)) => (before, after, parts(ours)),
        _ => return true,
    };
    // A part that is to become something else after all is written.
    let wanted = parts(after);
    let mut left: BTreeSet<Part> =
        held.iter().filter(|part| wanted.get(*part) == ours.get(*part)).cloned().collect();
    let mut target = overlay(after, found, &left);
    if let (Resource::LoadBalancer(wanted), Resource::LoadBalancer(made)) = (&*after, &target) {
        let missing = missing(wanted, made);
        if !missing.is_empty() {
            left.retain(|part| !missing.contains(part));
            target = overlay(after, found, &left);
        }
    }
    if parts(&target) == parts(found) {
        return false;
    }
    *before = Some(found.clone());
    *after = target;
    true
}

/// Parts that rules refer to and that would be lacking, and rules that refer to what the plan takes
/// away: Azure takes no rule that leads nowhere.
fn missing(wanted: &LoadBalancer, made: &LoadBalancer) -> BTreeSet<Part> {
    let mut missing = BTreeSet::new();
    let lacks = |kind: &'static str, child: &str, id: Option<&ResourceId>| {
        let name = id?.name();
        (*id? == wanted.id.child(child, name)).then_some(())?;
        (!has_part(made, kind, name)).then(|| folded(name))
    };
    let mut names: BTreeSet<(&'static str, String)> = BTreeSet::new();
    for rule in &made.rules {
        let frontend = lacks("frontend", "frontendIPConfigurations", rule.frontend.as_ref());
        let pool = lacks("pool", "backendAddressPools", rule.pool.as_ref());
        let probe = lacks("probe", "probes", rule.probe.as_ref());
        let lacking = [("frontend", frontend), ("pool", pool), ("probe", probe)];
        let lacking = lacking.into_iter().filter_map(|(kind, name)| Some((kind, name?)));
        let (stays, goes): (Vec<_>, Vec<_>) =
            lacking.partition(|(kind, name)| has_part(wanted, kind, name));
        names.extend(stays);
        if !goes.is_empty() {
            missing.insert(Part { kind: "rule", name: Arc::clone(&rule.name) });
        }
    }
    let is_named = |kind: &'static str, name: &str| names.contains(&(kind, folded(name)));
    let put = |missing: &mut BTreeSet<Part>, kind: &'static str, name: &Arc<str>| {
        if is_named(kind, name) {
            missing.insert(Part { kind, name: name.clone() });
        }
    };
    wanted.frontends.iter().for_each(|f| put(&mut missing, "frontend", &f.name));
    wanted.probes.iter().for_each(|f| put(&mut missing, "probe", &f.name));
    for pool in &wanted.pools {
        put(&mut missing, "pool", &pool.name);
        if is_named("pool", &pool.name) {
            missing.extend(pool.addresses.iter().map(|a| Part {
                kind: "pool address",
                name: Arc::from(format!("{}/{}", pool.name, a.address)),
            }));
        }
    }
    missing
}

/// Whether a load balancer has such a frontend, pool or probe.
fn has_part(balancer: &LoadBalancer, kind: &str, name: &str) -> bool {
    match kind {
        "frontend" => part::named(&balancer.frontends, name).is_some(),
        "pool" => part::named(&balancer.pools, name).is_some(),
        _ => part::named(&balancer.probes, name).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule of a Service that is deleted counts as added by another client: it is not left,
    /// because its frontend goes.
    #[test]
    fn a_rule_whose_frontend_goes_is_not_left() {
        let found = fixture::balancer();
        let mut wanted = found.clone();
        wanted.frontends.clear();
        wanted.rules.clear();
        let made = LoadBalancer { rules: found.rules.clone(), ..wanted.clone() };
        let rules = found.rules.iter().map(|rule| Part { kind: "rule", name: rule.name.clone() });
        assert_eq!(missing(&wanted, &made), rules.collect());
        let kept = LoadBalancer { frontends: found.frontends.clone(), ..wanted };
        assert!(missing(&kept, &made).iter().all(|part| part.kind == "frontend"));
    }
}
