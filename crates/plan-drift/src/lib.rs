//! Drift: what other clients changed in our parts of Azure, as distinct from what a plan changes
//! because a Service, the nodes or the cloud config have changed.
//!
//! A part is compared three times: as we left it ([`Confirmed`]), as it is in the World, and as
//! the plan makes it. It has drifted if it is not as we left it and the plan makes it so again. A
//! part that is to become something else changes because of a wish; a part that the plan leaves
//! alone is not ours.
//!
//! # Guarantees
//! - What is not ours never drifts: no plan changes it.
//! - What we have sent ourselves has not drifted, whatever the answer was.
//! - [`plan_around`] writes no part that has drifted, and plans everything else as if none had.
//!
//! # Assumptions
//! [`Confirmed`] holds what was read after a write, or what a plan left alone. A process that has
//! just begun knows nothing of that kind: what its first plan changes has not drifted, unless a
//! process before it has noted it ([`Kept`]).

mod around;
mod kept;
mod marks;
mod parts;
mod sent;
mod tables;

pub use around::plan_around;
pub use kept::{Kept, recall};
pub use parts::{Parts, parts};

pub use marks::{restore_marks, unmarked};

use model::drift::{Departure, Drift, DriftedField, Part};
use model::gateway::{GatewayServices, Locations};
use model::plan::{Action, Change, Resource};
use model::world::Azure;
use model::{Plan, ResourceId, ServiceUid, World};
use parts::overlay;
use plan::own::{Base, pod_names};
use sent::Sent;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Azure as we left it.
#[derive(Clone, Debug, Default)]
pub struct Confirmed {
    resources: BTreeMap<ResourceId, Resource>,
    /// Those of which others' parts are remembered as we left them: Azure never had them so.
    composed: BTreeSet<ResourceId>,
    /// Those of which nothing is known but what another process has noted.
    recalled: BTreeSet<ResourceId>,
    tables: Tables,
    sent: Sent,
}

/// The tables of a Service Gateway as we left them.
#[derive(Clone, Debug, Default)]
struct Tables {
    services: Option<GatewayServices>,
    locations: Option<Arc<Locations>>,
}

impl Confirmed {
    /// Notes what one write has come to. Parts that were left as others had made them are
    /// remembered as before.
    pub fn note_written(&mut self, id: &ResourceId, action: &Action, azure: &Azure, now: &[Drift]) {
        self.sent.confirm(id, action, azure);
        if !is_known(action, azure) {
            // What stands as it was sent is not others' doing, whenever it is read.
            self.sent.note(id, action, azure);
            return;
        }
        match action {
            Action::UpdateServices(u) => tables::note_services(&mut self.tables, azure, u),
            Action::UpdateLocations(u) => tables::note_locations(&mut self.tables, azure, u),
            Action::Put { .. } | Action::MigratePools { .. } => {
                if let Some(found) = azure.find(id) {
                    self.note(found, now);
                }
            }
            Action::Delete { .. } => {
                self.resources.remove(id);
            }
            Action::DeleteChild => {}
        }
    }

    /// Notes a write whose outcome is not known.
    pub fn note_sent(&mut self, id: &ResourceId, action: &Action, azure: &Azure) {
        self.sent.note(id, action, azure);
    }

    fn note(&mut self, found: Resource, now: &[Drift]) {
        self.recalled.remove(found.id());
        let held = now.iter().filter(|drift| drift.target == *found.id());
        let held: BTreeSet<Part> = held.map(|drift| drift.part.clone()).collect();
        let kept = match self.resources.get(found.id()) {
            Some(ours) if !held.is_empty() => {
                self.composed.insert(found.id().clone());
                overlay(&found, ours, &held)
            }
            _ => {
                self.composed.remove(found.id());
                found
            }
        };
        self.resources.insert(kept.id().clone(), kept);
    }

    /// Notes everything that a plan leaves alone: it is as it should be, once Azure has ended what
    /// it does with it.
    pub fn note_settled(&mut self, world: &World, plan: &Plan) {
        let azure = &world.azure;
        // What Azure is still writing shows what was asked for, and may end as it was before.
        let writing = azure.resources().filter(Resource::is_busy);
        let writing: Vec<ResourceId> = writing.map(|found| found.id().clone()).collect();
        let planned = plan.changes.iter().map(|c| &c.target).chain(world.in_flight.keys());
        let busy: BTreeSet<&ResourceId> = planned.chain(&writing).collect();
        let mut settled = BTreeMap::new();
        for found in azure.resources().filter(|found| !busy.contains(found.id())) {
            settled.insert(found.id().clone(), found);
        }
        for (id, ours) in std::mem::take(&mut self.resources) {
            if busy.contains(&id) {
                settled.insert(id, ours);
            }
        }
        self.composed.retain(|id| busy.contains(id));
        self.recalled.retain(|id| busy.contains(id));
        self.resources = settled;
        let is_free = |is_it: fn(&Action) -> bool| !plan.changes.iter().any(|c| is_it(&c.action));
        let services = is_free(|action| matches!(action, Action::UpdateServices(_)));
        // Rows of a service that is to be registered are not planned before it is.
        let addresses = services && is_free(|a| matches!(a, Action::UpdateLocations(_)));
        if services {
            self.tables.services = azure.gateway_services.known().cloned();
        }
        if addresses {
            self.tables.locations = azure.gateway_locations.known().cloned();
        }
        self.sent.keep(|id, part| {
            let noted = match tables::is_of_services(part) {
                Some(true) => services,
                Some(false) => addresses,
                None => true,
            };
            busy.contains(id) || !noted
        });
    }
}

/// Whether what a write has come to can be seen: a table may be due to be read again.
fn is_known(action: &Action, azure: &Azure) -> bool {
    match action {
        Action::UpdateServices(_) => azure.gateway_services.known().is_some(),
        Action::UpdateLocations(_) => azure.gateway_locations.known().is_some(),
        Action::Put { .. }
        | Action::MigratePools { .. }
        | Action::Delete { .. }
        | Action::DeleteChild => true,
    }
}

/// What has drifted, by resource and part.
#[must_use]
pub fn find(confirmed: &Confirmed, world: &World, plan: &Plan) -> Vec<Drift> {
    find_among(confirmed, world, plan.changes.iter().map(AsRef::as_ref))
}

/// The same, as far as these changes of a plan tell it.
#[must_use]
pub fn find_among<'p>(
    confirmed: &Confirmed,
    world: &World,
    changes: impl IntoIterator<Item = &'p Change>,
) -> Vec<Drift> {
    let mut owners = Owners { world, by_base: None };
    let mut drifts = Vec::new();
    for change in changes {
        let pairs = match &change.action {
            Action::UpdateServices(u) => tables::of_services(&confirmed.tables, &world.azure, u),
            Action::UpdateLocations(u) => tables::of_locations(&confirmed.tables, &world.azure, u),
            Action::Put { before, after } => match confirmed.resources.get(&change.target) {
                Some(ours) => {
                    let is_found = !confirmed.composed.contains(&change.target);
                    let etag = ours.etag().filter(|_| is_found);
                    if etag.is_some() && etag == before.as_ref().and_then(Resource::etag) {
                        continue;
                    }
                    of_put(ours, before.as_ref(), after)
                }
                None => continue,
            },
            Action::Delete { .. } | Action::DeleteChild | Action::MigratePools { .. } => continue,
        };
        let foreign = |(part, _, found): &tables::Pair| {
            !confirmed.sent.covers(&change.target, part, found.as_ref())
        };
        for (part, ours, found) in pairs.into_iter().filter(foreign) {
            let services = owners.of(change, &part, [ours.as_ref(), found.as_ref()]);
            let departure = departure(ours, found);
            let target = change.target.clone();
            drifts.push(Drift { target, part, departure, services });
        }
    }
    drifts.sort_by(|a, b| (&a.target, &a.part).cmp(&(&b.target, &b.part)));
    drifts
}

/// Parts that a PUT makes again as they were.
fn of_put(ours: &Resource, before: Option<&Resource>, after: &Resource) -> Vec<tables::Pair> {
    let Some(before) = before else {
        // A resource that is gone is made anew as a whole, or not.
        let (ours, after) = (parts(ours), parts(after));
        let same = |(part, value): (&Part, &Value)| {
            ours.get(part).is_some_and(|was| agrees(value, was)) || value.is_null()
        };
        let all = after.iter().all(same) && ours.keys().all(|part| after.contains_key(part));
        return if all { vec![(Part::whole(), Some(Value::Null), None)] } else { Vec::new() };
    };
    let (ours, found, after) = (parts(ours), parts(before), parts(after));
    let keys: BTreeSet<&Part> = ours.keys().chain(found.keys()).collect();
    let mut pairs = Vec::new();
    for part in keys {
        let (was, is, will) = (ours.get(part), found.get(part), after.get(part));
        let back = match (was, is, will) {
            (Some(was), None, Some(will)) => agrees(&without_priority(will), was),
            _ => was == will,
        };
        if was != is && is != will && back {
            pairs.push((part.clone(), was.cloned(), is.cloned()));
        }
    }
    pairs
}

/// A security rule that is made again gets a free priority, whichever it had.
fn without_priority(wanted: &Value) -> Value {
    let mut wanted = wanted.clone();
    if let Some(fields) = wanted.as_object_mut() {
        fields.remove("priority");
    }
    wanted
}

/// Whether what is wanted anew is what was there: what nobody asks for, Azure chose.
fn agrees(wanted: &Value, was: &Value) -> bool {
    match (wanted, was) {
        (Value::Null, _) => true,
        (Value::Object(wanted), Value::Object(was)) => wanted
            .iter()
            .all(|(key, value)| was.get(key).map_or(value.is_null(), |was| agrees(value, was))),
        (wanted, was) => wanted == was,
    }
}

fn departure(ours: Option<Value>, found: Option<Value>) -> Departure {
    match (ours, found) {
        (Some(ours), Some(found)) => {
            let mut fields = Vec::new();
            compare("", &ours, &found, &mut fields);
            Departure::Changed(fields)
        }
        (None, _) => Departure::Added,
        (Some(_), None) => Departure::Gone,
    }
}

fn compare(path: &str, ours: &Value, found: &Value, fields: &mut Vec<DriftedField>) {
    if ours == found {
        return;
    }
    let (Value::Object(a), Value::Object(b)) = (ours, found) else {
        let (ours, found) = (ours.clone(), found.clone());
        fields.push(DriftedField { field: path.to_owned(), ours, found });
        return;
    };
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    for key in keys {
        let dot = if path.is_empty() { "" } else { "." };
        let at = |all: &serde_json::Map<String, Value>| all.get(key).cloned().unwrap_or_default();
        compare(&format!("{path}{dot}{key}"), &at(a), &at(b), fields);
    }
}

/// Finds out whom a part concerns.
struct Owners<'w> {
    world: &'w World,
    by_base: Option<BTreeMap<Base, ServiceUid>>,
}

impl Owners<'_> {
    fn of(
        &mut self,
        change: &Change,
        part: &Part,
        values: [Option<&Value>; 2],
    ) -> BTreeSet<ServiceUid> {
        let services = &self.world.kubernetes.services;
        if matches!(change.action, Action::UpdateServices(_) | Action::UpdateLocations(_)) {
            let names = tables::services_of(part, values);
            let known = services.keys();
            let known = known.filter(|uid| names.iter().any(|name| pod_names::is_of(name, uid)));
            return known.cloned().collect();
        }
        let Some(base) = Base::of(&part.name) else { return change.causes.clone() };
        let by_base = self.by_base.get_or_insert_with(|| {
            services.keys().map(|uid| (Base::of_service(uid), uid.clone())).collect()
        });
        by_base.get(&base).cloned().into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::of_put;
    use fixture::{security_group, security_rule};
    use model::azure::SecurityRule;
    use model::plan::Resource;
    use std::sync::Arc;

    /// The rule that another client deleted had priority 513; made again it would get 503.
    #[test]
    fn a_deleted_security_rule_is_found_whichever_priority_it_would_get() {
        let group =
            |rules: Vec<SecurityRule>| Resource::SecurityGroup(Arc::new(security_group(rules)));
        let rule = |priority| security_rule("k8s-azure-lb_allow_IPv4_x", priority, "20.0.0.1");
        let (ours, found) = (group(vec![rule(513)]), group(Vec::new()));
        let wanted = group(vec![rule(503)]);
        let pairs = of_put(&ours, Some(&found), &wanted);
        assert_eq!(pairs.len(), 1);
        let (part, was, is) = &pairs[0];
        assert!(part.kind == "rule" && was.is_some() && is.is_none(), "{pairs:?}");
        // For another address it is wanted anew.
        let other = security_rule("k8s-azure-lb_allow_IPv4_x", 503, "20.0.0.2");
        assert!(of_put(&ours, Some(&found), &group(vec![other])).is_empty());
    }
}
