//! S3 while Services move between load balancers over nodes and container load balancers
//! (docs/migrations.md): the status tells the addresses of both for `keepBoth`, what serves a
//! Service at its former address stays until the status has told only others for `drainSeconds`,
//! and who is not to move stays.

use super::form::{conditions, parts, text, told};
use super::tenants::{BALANCERS, is_refused};
use crate::config::Config;
use crate::fault::Fault;
use crate::scene;
use crate::stage::Stage;
use crate::tally::count;
use kube_emulator::ObjectRef;
use model::kubernetes::{Backends, MIGRATION_CONDITION};
use model::policy::{KeepBoth, Migration};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Times of conditions are whole seconds, and are those of the sending: what counts from one may
/// end that much earlier.
const SECOND_MS: u64 = 1_000;

const IPS: &str = "Microsoft.Network/publicIPAddresses";

/// What a Service's load balancer leads to in the end, as a cloud config says.
pub(super) fn home(config: &Config, service: &str) -> Backends {
    let course = &config.written["layoutMigration"];
    let [services, namespaces] = ["services", "namespaces"].map(|key| course[key].as_array());
    let namespace = service.split_once('/').unwrap_or_default().0;
    let has = |list: Option<&Vec<Value>>, value: &str| {
        list.is_some_and(|list| list.contains(&json!(value)))
    };
    let all = services.is_none() && namespaces.is_none();
    let target = config.backends();
    if all || has(services, service) || has(namespaces, namespace) {
        target
    } else {
        target.other()
    }
}

/// What the condition of a Service says of its move: where to.
fn direction(service: &Value) -> Option<&str> {
    let told = conditions(service).find(|condition| condition["type"] == MIGRATION_CONDITION);
    told?["reason"].as_str()
}

/// What is remembered of Services that move.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moves {
    /// When each address was last taken out of a status.
    untold: BTreeMap<String, u64>,
    /// Services by their UID that tell addresses beside their former ones.
    together: BTreeMap<String, Together>,
    /// Whether the operator has said how Services move, and they may still be on their way.
    begun: bool,
}

/// A Service that has two addresses for a while.
#[derive(Clone, Debug)]
struct Together {
    /// Since when.
    since_ms: u64,
    /// The last edit of its owner's before that.
    edited_at: u64,
    /// What it told before.
    former: BTreeSet<String>,
}

impl Stage {
    /// Services move because the operator has said so: what one had where it was, it need not have
    /// on the way. A config that is set back turns them around, to the address that they had
    /// (docs/migrations.md): container load balancers take public IPs of a SKU of their own, so
    /// that no address can stay on the way there or back.
    pub(crate) fn begin_moves(&mut self, before: &Config) {
        self.ledger.settled.clear();
        self.ledger.given_up.clear();
        let services = self.kubernetes.list("services", None);
        let turned = services.iter().filter_map(|service| self.turned(before, service));
        self.ledger.moves.together = turned.collect();
        self.ledger.moves.begun = true;
    }

    /// All is settled: where every Service is to move, and none stands on a load balancer that it
    /// is to leave, none is on its way any more. What one left behind whose finalizer was taken off
    /// by hand may stay, and counts as a move that goes on.
    pub(super) fn note_moves_over(&mut self) {
        let course = &self.config.written["layoutMigration"];
        let some = ["services", "namespaces"].iter().any(|key| !course[*key].is_null());
        let goes_on = some || self.are_moving() || !self.stripped_names().is_empty();
        self.ledger.moves.begun &= goes_on;
    }

    /// Whether Services may be on their way to the other kind of load balancers.
    pub(super) fn may_move(&self) -> bool {
        self.ledger.moves.begun
    }

    /// A Service that the config turns around while it tells the addresses of both: how long it
    /// keeps both counts from then on, for it goes another way. One whose condition does not tell
    /// of the way before has not been turned: no process knew of that way, or it was over.
    fn turned(&self, before: &Config, service: &Value) -> Option<(String, Together)> {
        self.config.migration.as_ref()?;
        let uid = text(&service["metadata"]["uid"]).to_owned();
        let known = self.truth.services.get(&uid).filter(|known| known.wants)?;
        let home = home(&self.config, &known.name);
        let turns = self::home(before, &known.name) != home;
        let former = self.told_of(service, home.other());
        let both = !former.is_empty() && !self.told_of(service, home).is_empty();
        let goes = turns && both && direction(service) == Some(home.other().reason());
        let (since_ms, edited_at) = (self.now_ms, known.edited_at);
        goes.then_some((uid, Together { since_ms, edited_at, former }))
    }

    /// Addresses that a Service tells of one kind of load balancers. The public IPs of container
    /// load balancers have a SKU of their own.
    fn told_of(&self, service: &Value, backends: Backends) -> BTreeSet<String> {
        let ips = self.azure.resources_of(IPS);
        let of_pods = |address: &str| {
            let mut ips = ips.iter().filter(|ip| ip["sku"]["name"] == "StandardV2");
            ips.any(|ip| ip["properties"]["ipAddress"] == address)
        };
        let known = self.truth.services.get(text(&service["metadata"]["uid"]));
        let own = |ip: &&str| !known.is_some_and(|known| known.additional.contains(*ip));
        let all = told(service).filter(own);
        all.filter(|ip| of_pods(ip) == (backends == Backends::Pods)).map(str::to_owned).collect()
    }

    /// L4: a Service that goes to container load balancers and tells the addresses of both, and
    /// whose condition does not say so. One that is refused stays where it is. On the way to nodes
    /// a Service waits for one that takes its traffic, and until then its condition stays as it
    /// was (docs/migrations.md).
    pub(crate) fn misdirected(&self) -> Option<String> {
        let services = self.kubernetes.list("services", None);
        services.iter().find_map(|service| {
            let known = self.truth.services.get(text(&service["metadata"]["uid"]))?;
            let (name, to) = (&known.name, Backends::Pods);
            let goes = known.wants && !is_refused(service) && home(&self.config, name) == to;
            let tells = |backends| !self.told_of(service, backends).is_empty();
            let both = goes && tells(to) && tells(to.other());
            let says = direction(service).unwrap_or("nothing");
            let wrong = both && says != to.reason();
            wrong.then(|| format!("{name} goes {}, and its condition says {says}", to.reason()))
        })
    }

    /// Services that stand on load balancers which they are to leave, by their UIDs. What belongs
    /// to a Service without its finalizer stays: Kubernetes deletes such a Service without waiting
    /// for the controller.
    pub(super) fn leaving(&self) -> BTreeSet<String> {
        if self.config.migration.is_none() {
            return BTreeSet::new();
        }
        let to_pods = self.config.backends() == Backends::Pods;
        let mut leaving = BTreeSet::new();
        for balancer in self.azure.resources_of(BALANCERS) {
            if (balancer["sku"]["name"] == "Service") == to_pods {
                continue;
            }
            let own = balancer["id"].as_str().and_then(|id| id.rsplit('/').next());
            let [frontends, rules] = ["frontendIPConfigurations", "loadBalancingRules"]
                .map(|collection| parts(&balancer, collection));
            let names = frontends.keys().chain(rules.keys()).map(String::as_str).chain(own);
            let owners = names.filter_map(|name| self.truth.owner_of(name));
            let served = owners.filter(|uid| {
                self.truth.services.get(*uid).is_some_and(|service| !service.stripped)
            });
            leaving.extend(served.map(str::to_owned));
        }
        leaving
    }

    /// Whether load balancers stand that Services are to leave.
    pub(crate) fn are_moving(&self) -> bool {
        !self.leaving().is_empty()
    }

    /// Looks at a write of a status while Services move.
    pub(super) fn check_moving(&mut self, before: &Value, after: &Value) {
        let (was, is): (BTreeSet<&str>, BTreeSet<&str>) =
            (told(before).collect(), told(after).collect());
        let lost: Vec<&str> = was.difference(&is).copied().collect();
        let gained: Vec<&str> = is.difference(&was).copied().collect();
        self.ledger.moves.untold.extend(lost.iter().map(|ip| ((*ip).to_owned(), self.now_ms)));
        let Some(migration) = self.config.migration.clone() else { return };
        let uid = after["metadata"]["uid"].as_str().unwrap_or("");
        let Some(known) = self.truth.services.get(uid) else { return };
        let (name, edited_at) = (known.name.clone(), known.edited_at);
        let listed = known.additional.clone();
        let own = |ip: &&&str| !listed.contains(**ip);
        let wants = known.wants;
        count(&mut self.tally.checks, "S3");
        if lost.iter().filter(own).any(|ip| self.is_early(&migration, uid, (edited_at, ip))) {
            self.fail("S3", format!("{name} loses an address before keepBoth is over"));
        }
        let elsewhere = |ip: &&&str| self.stays(uid, &name, (ip, &was));
        if let Some(ip) = gained.iter().filter(own).find(elsewhere) {
            self.fail("S3", format!("{name} is not to move, and its status tells {ip}"));
        }
        let begins = lost.is_empty() && gained.iter().any(|ip| own(&ip));
        if wants && !was.is_empty() && begins {
            let former = was.iter().map(|ip| (*ip).to_owned()).collect();
            let together = Together { since_ms: self.now_ms, edited_at, former };
            self.ledger.moves.together.insert(uid.to_owned(), together);
        }
    }

    /// Whether an address that leads to a Service has not been told beside the new one for as long
    /// as it is to be.
    fn is_early(&self, migration: &Migration, uid: &str, (edited_at, ip): (u64, &str)) -> bool {
        let known = self.ledger.moves.together.get(uid);
        let known = known.filter(|known| known.edited_at == edited_at && self.clocks_agree());
        let known = known.filter(|known| known.former.contains(ip));
        let early = known.is_some_and(|known| match migration.keep_both {
            KeepBoth::UntilTold => true,
            KeepBoth::For { seconds } => {
                self.now_ms + SECOND_MS < known.since_ms + u64::from(seconds) * 1_000
            }
        });
        early && self.standing_addresses().iter().any(|standing| standing == ip)
    }

    /// Whether the config lets only others move to load balancers over nodes, and this one tells
    /// nothing but its container load balancer's address, which this one is not.
    fn stays(&self, uid: &str, name: &str, (ip, was): (&str, &BTreeSet<&str>)) -> bool {
        let left_out = home(&self.config, name) != self.config.backends();
        let own = self.container_address(&uid.to_lowercase());
        let there = own.is_some_and(|own| own != ip && was.iter().all(|was| *was == own));
        left_out && there && self.config.backends() == Backends::Nodes
    }

    /// Whether no status tells this address of a Service that moves, so that what leads there may
    /// go: who has not been told it yet is not interrupted.
    pub(super) fn has_moved_from(&self, service: &str, address: &str) -> bool {
        let Some(migration) = &self.config.migration else { return false };
        let (namespace, name) = service.split_once('/').unwrap_or_default();
        let object = ObjectRef::new("services", namespace, name);
        let Ok(object) = self.kubernetes.get(object) else { return false };
        let drained = |untold: &u64| {
            let until = untold + u64::from(migration.drain_s) * 1_000;
            self.now_ms + SECOND_MS >= until || !self.clocks_agree()
        };
        let left = told(&object).all(|ip| ip != address);
        left && self.ledger.moves.untold.get(address).is_none_or(drained)
    }

    /// The same of what leads to the container load balancer of a name.
    pub(super) fn has_moved_from_container(&self, service: &str, name: &str) -> bool {
        let address = self.container_address(name);
        self.has_moved_from(service, address.as_deref().unwrap_or(""))
    }

    fn container_address(&self, name: &str) -> Option<String> {
        let ip = self.azure.shown_by_id(&scene::network(&format!("publicIPAddresses/{name}-pip")));
        ip?["properties"]["ipAddress"].as_str().map(str::to_owned)
    }

    /// Whether a condition's time, which one process writes, is the same time for another.
    fn clocks_agree(&self) -> bool {
        !self.scene.with.contains(&Fault::WrongClock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::merge;
    use crate::scene::{Layout, Scene, over_nodes};

    fn config(chosen: &Value) -> Config {
        let mut changes = over_nodes();
        merge(&mut changes["layoutMigration"], chosen);
        Scene::plain(Layout::Containers, 3, 7).config(&changes)
    }

    #[test]
    fn a_service_goes_where_the_config_has_it() {
        let names = ["default/web-0", "default/web-1", "team/web-2"];
        let homes = |chosen: Value| names.map(|name| home(&config(&chosen), name));
        let (nodes, pods) = (Backends::Nodes, Backends::Pods);
        assert_eq!(homes(json!({})), [nodes, nodes, nodes]);
        assert_eq!(homes(json!({"services": ["default/web-0"]})), [nodes, pods, pods]);
        assert_eq!(homes(json!({"namespaces": ["team"]})), [pods, pods, nodes]);
    }

    #[test]
    fn who_has_both_addresses_when_the_config_turns_has_them_anew() {
        let mut stage = Stage::plain(Layout::Containers, 1_500);
        stage.create(scene::objects::service("default", 0));
        assert!(stage.settle(3_600_000));
        let mut changes = over_nodes();
        changes["layoutMigration"]["keepBoth"] = json!("10m");
        stage.reconfigure(stage.scene.config(&changes));
        stage.advance(stage.now_ms + 300_000);
        assert_eq!(stage.misdirected(), None);
        stage.reconfigure(stage.scene.config(&scene::migration()));
        let together: Vec<&Together> = stage.ledger.moves.together.values().collect();
        assert!(matches!(together[..], [both] if both.since_ms == stage.now_ms));
        assert!(stage.misdirected().is_some(), "no process has read the config yet");
        stage.advance(stage.now_ms + 120_000);
        assert_eq!((stage.misdirected(), stage.breach), (None, None));
    }
}
