//! What people have touched in Azure by hand: checks leave out just that, and no more.

use super::azure::{address_of, memberships};
use super::form::{is_in, parts, text, told};
use super::pieces::changed;
use super::tenants::users;
use crate::entries::{Entry, entries};
use crate::scene;
use crate::stage::Stage;
use model::ServiceUid;
use model::policy::DriftPolicy;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How long what people have edited is still being put right.
const NEAR_MS: u64 = 200_000;
/// The longest time that a process stands still.
const PAUSE_MS: u64 = 300_000;
const BALANCERS: &str = "Microsoft.Network/loadBalancers";
const IPS: &str = "Microsoft.Network/publicIPAddresses";
/// What stands before the name of a pool in an id, lower case.
const POOLS: &str = "/backendaddresspools/";

/// Whether who writes may have stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleep {
    /// It has not.
    None,
    /// It may have, as long as processes do.
    Long,
}

/// What people took away, and when.
#[derive(Clone, Debug, Default)]
pub struct Touched {
    /// Addresses of frontends that rules led to.
    addresses: BTreeMap<String, u64>,
    /// Ids of resources, lower case.
    resources: BTreeMap<String, u64>,
    /// Rows of the table of addresses; also those that people added.
    rows: BTreeMap<Entry, u64>,
    /// Names of frontends, lower case: one that comes back may stand on another load balancer.
    frontends: BTreeMap<String, u64>,
    /// Ids of the public IPs that they stood on: one that is made anew has another address.
    ips: BTreeMap<String, u64>,
    /// Ids of resources that they changed or deleted, lower case.
    edited: BTreeMap<String, u64>,
    /// UIDs of Services whose parts they changed, or to which these lead.
    services: BTreeMap<String, u64>,
    /// Ids, lower case, of pools that they changed, that rules led to which they changed, or that
    /// machines left or joined.
    pools: BTreeMap<String, u64>,
    /// When people last touched anything.
    last_ms: Option<u64>,
    /// When load balancers were taken away by a change of their SKU, with all that stood on them.
    rebuilt_ms: Option<u64>,
}

/// How things stand before people's edits.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    standing: BTreeSet<String>,
    frontends: BTreeSet<(String, String, String)>,
    /// By id, lower case.
    resources: BTreeMap<String, Arc<Value>>,
    rows: BTreeSet<Entry>,
    /// The Service Gateway's table of services.
    registered: BTreeMap<String, Value>,
}

impl Touched {
    /// When people last changed or deleted a resource, by its id in lower case.
    pub(super) fn edited_ms(&self, id: &str) -> Option<u64> {
        self.edited.get(id).copied()
    }

    /// What people touched is put right from now on only: until now drift was reported and left.
    pub(crate) fn renew(&mut self, now_ms: u64) {
        let times = self.addresses.values_mut().chain(self.resources.values_mut());
        let times = times.chain(self.frontends.values_mut()).chain(self.ips.values_mut());
        let times = times.chain(self.services.values_mut()).chain(self.pools.values_mut());
        let times = times.chain(self.edited.values_mut());
        times.chain(self.rows.values_mut()).for_each(|at_ms| *at_ms = now_ms);
        self.last_ms = self.last_ms.map(|_| now_ms);
        self.rebuilt_ms = self.rebuilt_ms.map(|_| now_ms);
    }
}

impl Stage {
    /// How things stand.
    pub(crate) fn before_hands(&self) -> Before {
        let mut frontends = BTreeSet::new();
        for balancer in self.azure.resources_of(BALANCERS) {
            let id = balancer["id"].as_str().unwrap_or("").to_lowercase();
            for (name, part) in parts(&balancer, "frontendIPConfigurations") {
                frontends.insert((id.clone(), name, address_of(part)));
            }
        }
        let tables = self.azure.gateway(&scene::gateway());
        let registered = tables.as_ref().and_then(|tables| tables["services"].as_object());
        let registered = registered.into_iter().flatten();
        Before {
            standing: self.standing_addresses().into_iter().collect(),
            frontends,
            resources: self.azure.shown().map(|r| (text(&r["id"]).to_lowercase(), r)).collect(),
            rows: tables.as_ref().map(entries).unwrap_or_default(),
            registered: registered.map(|(name, row)| (name.clone(), row.clone())).collect(),
        }
    }

    /// Notes what people have touched since.
    pub(crate) fn after_hands(&mut self, before: &Before) {
        let now_ms = self.now_ms;
        let after = self.before_hands();
        for (id, was) in &before.resources {
            let is = after.resources.get(id).map(|is| &**is);
            let changed = changed(was, is);
            let pools: BTreeSet<String> = match is_in(id, "loadBalancers") {
                true => pools_in(&changed),
                false => {
                    let is = is.map(memberships).unwrap_or_default();
                    memberships(was).symmetric_difference(&is).cloned().collect()
                }
            };
            self.touch(id, &changed, pools);
        }
        self.touch_tables(before, &after);
        let Before { standing, frontends, resources, rows, .. } = before;
        let touched = &mut self.ledger.touched;
        for (_, name, place) in frontends.difference(&after.frontends) {
            touched.frontends.insert(name.to_lowercase(), now_ms);
            touched.ips.insert(place.clone(), now_ms);
        }
        touched.last_ms = Some(now_ms);
        let gone = standing.difference(&after.standing).cloned();
        touched.addresses.extend(gone.map(|address| (address, now_ms)));
        let gone = resources.keys().filter(|id| !after.resources.contains_key(*id)).cloned();
        touched.resources.extend(gone.map(|id| (id, now_ms)));
        let changed = rows.symmetric_difference(&after.rows).cloned();
        touched.rows.extend(changed.map(|row| (row, now_ms)));
        for (balancer, name, _) in frontends.difference(&after.frontends) {
            self.ledger.addresses.remove(&(balancer.clone(), name.clone()));
        }
    }

    /// People have changed these parts of a resource, and with them these pools.
    fn touch(&mut self, id: &str, changed: &[&Value], pools: BTreeSet<String>) {
        let (now_ms, touched) = (self.now_ms, &mut self.ledger.touched);
        touched.edited.extend((!changed.is_empty()).then(|| (id.to_owned(), now_ms)));
        touched.pools.extend(pools.into_iter().map(|id| (id, now_ms)));
        let uids = self.concerned(changed);
        self.touch_services(uids);
    }

    /// People may have changed the Service Gateway's tables.
    fn touch_tables(&mut self, before: &Before, after: &Before) {
        let rows = before.rows.symmetric_difference(&after.rows).map(|row| row.2.as_str());
        let (was, is) = (&before.registered, &after.registered);
        let names = was.keys().chain(is.keys()).filter(|name| was.get(*name) != is.get(*name));
        let names = rows.chain(names.map(String::as_str));
        let uids = names.filter_map(|name| self.truth.owner_of(name)).map(str::to_owned).collect();
        self.touch_services(uids);
    }

    fn touch_services(&mut self, uids: BTreeSet<String>) {
        let now_ms = self.now_ms;
        // What they have is looked at anew once all is settled again.
        self.ledger.settled.retain(|uid, _| !uids.contains(uid));
        self.ledger.touched.services.extend(uids.into_iter().map(|uid| (uid, now_ms)));
    }

    /// UIDs of the Services whose names, UIDs or addresses stand in parts of resources: a part of a
    /// load balancer is called after its Service, and Azure shows with it which rules lead there.
    fn concerned(&self, changed: &[&Value]) -> BTreeSet<String> {
        if changed.is_empty() {
            return BTreeSet::new();
        }
        let all: String = changed.iter().map(|part| part.to_string().to_lowercase()).collect();
        let users: BTreeSet<&str> = changed.iter().flat_map(|part| users(part)).collect();
        let services = self.kubernetes.list("services", None);
        let concerned = services.iter().filter(|service| {
            let meta = &service["metadata"];
            let uid = text(&meta["uid"]).to_lowercase();
            let name = format!("{}/{}", text(&meta["namespace"]), text(&meta["name"]));
            let base = ServiceUid::new(&uid).base_name();
            let mut told = told(service);
            all.contains(&base)
                || all.contains(&uid)
                || users.contains(name.as_str())
                || told.any(|ip| all.contains(&format!("\"{}\"", ip.to_lowercase())))
        });
        concerned.map(|service| text(&service["metadata"]["uid"]).to_owned()).collect()
    }

    /// People have a resource deleted. Azure answers 202 and goes on showing it until the operation
    /// has ended, so that what stands right after their call does not tell: what stands on it goes
    /// with it.
    pub(crate) fn note_deleted(&mut self, id: &str) {
        let now_ms = self.now_ms;
        let id = id.to_lowercase();
        let shown = self.azure.shown_by_id(&id);
        let all: Vec<&Value> = shown.iter().map(|shown| &**shown).collect();
        self.touch(&id, &all, pools_in(&all));
        let shown = shown.filter(|_| id.contains(&BALANCERS.to_lowercase()));
        let standing =
            shown.iter().flat_map(|balancer| self.standing_on(balancer)).collect::<Vec<_>>();
        let touched = &mut self.ledger.touched;
        for (name, part) in shown.iter().flat_map(|b| parts(b, "frontendIPConfigurations")) {
            touched.frontends.insert(name.to_lowercase(), now_ms);
            touched.ips.insert(address_of(part), now_ms);
        }
        touched.addresses.extend(standing.into_iter().map(|address| (address, now_ms)));
        touched.resources.insert(id, now_ms);
    }

    /// Load balancers are taken away for others of another SKU.
    pub(crate) fn rebuild(&mut self) {
        self.ledger.touched.rebuilt_ms = Some(self.now_ms);
        self.ledger.settled.clear();
    }

    /// Whether what people have touched may still be so without any process having seen it: it
    /// shows with the next look for drift, which a quota or a pause may delay.
    pub(super) fn may_be_unseen(&self) -> bool {
        self.is_near(self.ledger.touched.last_ms.as_ref(), Sleep::Long)
    }

    /// Whether people have lately changed what a Service has in Azure: a process may not have seen
    /// it yet.
    pub(super) fn was_service_touched(&self, uid: &str) -> bool {
        self.is_near(self.ledger.touched.services.get(uid), Sleep::Long)
    }

    /// All Services of which that is so, by their UIDs.
    pub(super) fn touched_services(&self) -> BTreeSet<String> {
        let all = self.ledger.touched.services.iter();
        all.filter(|(_, at)| self.is_near(Some(at), Sleep::Long))
            .map(|(uid, _)| uid.clone())
            .collect()
    }

    /// Whether people have lately changed a pool, or who is in it, and a process may not have seen
    /// it yet.
    pub(super) fn was_pool_touched(&self, id: &str) -> bool {
        self.is_near(self.ledger.touched.pools.get(&id.to_lowercase()), Sleep::Long)
    }

    /// Whether what people did at a time may not be put right yet: a process sees it with its next
    /// look for drift, and one that stood still that much later.
    fn is_near(&self, at_ms: Option<&u64>, sleep: Sleep) -> bool {
        let more = if sleep == Sleep::Long { PAUSE_MS } else { 0 };
        at_ms.is_some_and(|at| self.leaves_drift() || at + NEAR_MS + more > self.now_ms)
    }

    /// Whether drift is only reported: what people did stays.
    pub(super) fn leaves_drift(&self) -> bool {
        self.config.drift == DriftPolicy::Report
    }

    /// Whether load balancers were lately taken away for others.
    pub(crate) fn is_rebuilding(&self) -> bool {
        self.is_near(self.ledger.touched.rebuilt_ms.as_ref(), Sleep::None)
    }

    /// Whether people have lately taken away what stood at an address, or on the public IP that
    /// has the address by now: until the load balancer is read again its frontend counts as there.
    pub(crate) fn was_taken_away(&self, address: &str, sleep: Sleep) -> bool {
        let touched = &self.ledger.touched;
        let ips = self.azure.resources_of(IPS);
        let mut ips = ips.iter().filter(|ip| ip["properties"]["ipAddress"] == address);
        self.is_near(touched.addresses.get(address), sleep)
            || ips.any(|ip| {
                let id = ip["id"].as_str().unwrap_or("").to_lowercase();
                self.is_near(touched.ips.get(&id), sleep)
            })
    }

    /// Whether people have lately taken away a frontend of this name.
    pub(crate) fn was_frontend_touched(&self, name: &str) -> bool {
        self.is_near(self.ledger.touched.frontends.get(&name.to_lowercase()), Sleep::Long)
    }

    /// Whether people have lately deleted a resource.
    pub(crate) fn was_deleted(&self, id: &str) -> bool {
        self.is_near(self.ledger.touched.resources.get(&id.to_lowercase()), Sleep::None)
    }

    /// Whether people have lately added or removed a row of the table of addresses.
    pub(crate) fn is_row_touched(&self, row: &Entry) -> bool {
        self.is_near(self.ledger.touched.rows.get(row), Sleep::None)
    }

    /// Whether people have lately added or removed a row of an address in that table, and a process
    /// may not have seen it yet.
    pub(super) fn was_row_touched_at(&self, address: &str) -> bool {
        let mut rows = self.ledger.touched.rows.iter().filter(|(row, _)| row.1 == address);
        rows.any(|(_, at)| self.is_near(Some(at), Sleep::Long))
    }
}

/// Ids, lower case, of the pools that parts of a load balancer are, or name.
fn pools_in(parts: &[&Value]) -> BTreeSet<String> {
    let all: String = parts.iter().map(|part| part.to_string().to_lowercase()).collect();
    let pools = all.split('"').filter_map(|id| {
        let from = id.find(POOLS)? + POOLS.len();
        let to = id[from..].find('/').map_or(id.len(), |length| from + length);
        Some(id[..to].to_owned())
    });
    pools.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::neighbour::edit;
    use crate::scene::{Layout, objects};
    use serde_json::json;

    #[test]
    fn an_edit_is_about_the_services_whose_parts_it_changes() {
        let mut stage = Stage::plain(Layout::Single, 1_500);
        let [one, other] = [0, 1].map(|slot| {
            let service = stage.create(objects::service("default", slot));
            text(&service["metadata"]["uid"]).to_owned()
        });
        assert!(stage.settle(3_600_000));
        let balancer = scene::network("loadBalancers/kubernetes");
        let (before, base) = (stage.before_hands(), ServiceUid::new(&one).base_name());
        edit(&mut stage, &balancer, |balancer| {
            let rules = balancer["properties"]["loadBalancingRules"].as_array_mut();
            for rule in rules.into_iter().flatten() {
                if text(&rule["name"]).starts_with(&base) {
                    rule["properties"]["idleTimeoutInMinutes"] = json!(9);
                }
            }
        });
        stage.after_hands(&before);
        assert!(stage.was_service_touched(&one) && !stage.was_service_touched(&other));
        // Both lead to it.
        assert!(stage.was_pool_touched(&format!("{balancer}/backendAddressPools/kubernetes")));
        stage.now_ms += NEAR_MS + PAUSE_MS;
        assert!(!stage.was_service_touched(&one), "a process has seen it by now");
        stage.note_deleted(&balancer);
        assert!(stage.was_service_touched(&one) && stage.was_service_touched(&other));
    }
}
