//! The operator sets keys of the cloud config while Services stand, and takes them out again.

use super::Play;
use crate::check::cost::snapshot;
use crate::fault::Fault;
use crate::random::Random;
use crate::scene::objects::service;
use crate::scene::{Layout, MACHINES};
use crate::tally::count;
use plan::ask::annotation::full;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Keys of the cloud config that are set while Services stand.
pub const SET_LATER: [&str; 3] = [SHARING, FILLED, PROBES];

/// Services of all namespaces share addresses.
const SHARING: &str = "allowSharingAcrossNamespaces";
/// Another client fills the pools of these load balancers.
const FILLED: &str = "preConfiguredBackendPoolLoadBalancerTypes";

/// Whether Services share a health probe.
pub(super) const PROBES: &str = "clusterServiceLoadBalancerHealthProbeMode";

/// In how many seeds of a thousand that each of them suits.
const SET: u64 = 500;
/// A public IP of the estate that no owner names otherwise.
pub(super) const SHARED_IP: &str = "byo-pip2";
/// Within so long a node would have joined its pools.
const JOINED_MS: u64 = 180_000;
/// The load balancers among which Services choose, and whether one of them takes new Services.
const CONFIGURATIONS: &str = "multipleStandardLoadBalancerConfigurations";
const OPEN: &str = "allowServicePlacement";
/// In how many seeds of a thousand with several load balancers some are closed.
const CLOSED: u64 = 700;
/// Within so long Services would have been written elsewhere.
const WRITTEN_MS: u64 = 120_000;
/// Within so long lists are certain to show all that was written before.
const SHOWN_MS: u64 = 180_000;
/// The Service that stands when load balancers are closed, and the one that comes after that.
const STANDING: (&str, u64) = ("default", 806);
const NEWCOMER: (&str, u64) = ("default", 807);

impl Play {
    /// L1: Services of two namespaces share a public IP while the cloud config lets all of them,
    /// and keep it afterwards.
    pub(super) fn be_shared(&mut self) {
        let scene = &self.stage.scene;
        // A hostile tenant's claims would be granted, too.
        let suits = matches!(scene.layout, Layout::Single | Layout::Nics)
            && !scene.with.contains(&Fault::Hostile);
        let on = self.late.fork("sharing of all").permille(SET);
        if self.stage.breach.is_some() || !suits || !on {
            return;
        }
        self.set_key(SHARING, &json!(true));
        let guests = [("default", 47), ("team", 48)];
        for (namespace, slot) in guests {
            let mut guest = service(namespace, slot);
            guest["metadata"]["annotations"][full("azure-pip-name")] = json!(SHARED_IP);
            let place = (namespace.to_owned(), format!("web-{slot}"));
            self.company.services.insert(place, guest);
        }
        self.stage.ledger.inputs += 1;
        self.heal();
        self.judge_end();
        self.set_key(SHARING, &Value::Null);
        self.heal();
        self.judge_end();
        guests.into_iter().for_each(|guest| self.go(guest));
        self.come_to_rest();
    }

    /// L1: pools that another client fills stay as they are when a node comes; it joins once they
    /// are Ballast's again.
    pub(super) fn be_filled(&mut self) {
        let scene = &self.stage.scene;
        // A Private Link Service is refused before pools that another client fills.
        let suits = matches!(scene.layout, Layout::Single | Layout::Nics | Layout::PerSet)
            && !scene.takes_links();
        let on = self.late.fork("filled pools").permille(SET);
        let free = (0..MACHINES).find(|index| !self.company.nodes.contains_key(index));
        let Some(index) = free.filter(|_| suits && on && self.stage.breach.is_none()) else {
            return;
        };
        self.set_key(FILLED, &json!("all"));
        self.heal();
        let before = self.backends();
        let node = self.company.scene.node(index);
        self.company.nodes.insert(index, node);
        self.stage.ledger.inputs += 1;
        self.tend();
        self.stage.advance(self.stage.now_ms + JOINED_MS);
        count(&mut self.stage.tally.checks, "L1");
        let after = self.backends();
        let changed = before.iter().find(|(id, was)| after.get(*id) != Some(*was));
        if let Some((id, _)) = changed {
            self.stage.fail("L1", format!("{id} changed, and another client fills its pools"));
        }
        self.set_key(FILLED, &Value::Null);
        // A process that begins takes no node out of a pool before lists are certain to show all
        // that the one before wrote (docs/leader.md).
        self.stage.advance(self.stage.now_ms + JOINED_MS);
        self.heal();
        self.judge_end();
    }

    /// The operator closes some load balancers, or all, to new Services, and opens them again. S3
    /// and S9: a Service that stands there stays, also when its owner edits it, as with the Go
    /// cloud provider. L1: nothing is written for that, and no new Service comes there.
    pub(super) fn be_closed(&mut self) {
        let mut random = self.late.fork("closed load balancers");
        let on = self.stage.scene.layout == Layout::Several && random.permille(CLOSED);
        if self.stage.breach.is_some() || !on {
            return;
        }
        let (place, mut standing) = (web(STANDING), service(STANDING.0, STANDING.1));
        // A public IP goes along to another load balancer; a private address is lost on the way.
        standing["metadata"]["annotations"][full("azure-load-balancer-internal")] = json!("true");
        self.company.services.insert(place.clone(), standing);
        self.stage.ledger.inputs += 1;
        self.heal();
        self.judge_end();
        let closed = closed(&self.stage.config.written, &mut random);
        self.set_openness(&closed);
        let earlier: Vec<Arc<Value>> = self.stage.azure.shown().collect();
        self.come(NEWCOMER);
        self.heal();
        self.judge_end();
        self.judge_newcomers(&earlier);
        let edit = json!({"metadata": {"annotations": {
            (full("azure-load-balancer-tcp-idle-timeout")): "10"}}});
        self.company.apply(&mut self.stage, &place, &edit);
        self.stage.ledger.inputs += 1;
        self.heal();
        self.judge_end();
        self.set_openness(&Value::Null);
        self.heal();
        self.judge_end();
        self.go(STANDING);
        self.go(NEWCOMER);
        self.come_to_rest();
    }

    /// Whether a load balancer takes new Services changes nothing of those that stand: what they
    /// have goes on being judged. A Service that is refused may have waited for this, and is
    /// written.
    fn set_openness(&mut self, configurations: &Value) {
        if self.stage.breach.is_some() {
            return;
        }
        // A list may lack what was made last, which another process would make again.
        self.stage.advance(self.stage.now_ms + SHOWN_MS);
        self.stage.note_settled();
        let settled = self.stage.ledger.settled.clone();
        let before = self.stage.ledger.attempts;
        let waiting = !self.stage.refused().is_empty();
        self.set_key(CONFIGURATIONS, configurations);
        self.stage.ledger.settled = settled;
        self.stage.advance(self.stage.now_ms + WRITTEN_MS);
        self.stage.settle(60_000);
        let written = self.stage.ledger.attempts - before;
        if waiting {
            return;
        }
        count(&mut self.stage.tally.checks, "L1");
        if written > 0 {
            let text = format!("{written} writes for load balancers that were closed or opened");
            self.stage.fail("L1", text);
        }
    }

    pub(super) fn set_key(&mut self, key: &str, value: &Value) {
        self.stage.ledger.inputs += 1;
        self.company.set_key(key, value, &mut self.stage);
        self.stage.follow();
    }

    /// Load balancers, and what is in their pools.
    fn backends(&self) -> BTreeMap<String, Value> {
        const KINDS: [&str; 3] = ["/loadbalancers/", "/microsoft.compute/", "/networkinterfaces/"];
        let mut all = snapshot(&self.stage);
        all.retain(|id, _| KINDS.iter().any(|kind| id.contains(kind)));
        all
    }
}

fn web((namespace, slot): (&str, u64)) -> (String, String) {
    (namespace.to_owned(), format!("web-{slot}"))
}

/// The load balancers of a cloud config, of which some take no new Services: at least one.
fn closed(written: &Value, random: &mut Random) -> Value {
    let mut all = written[CONFIGURATIONS].as_array().cloned().unwrap_or_default();
    let first = usize::try_from(random.below(all.len() as u64)).unwrap_or(0);
    for (at, configuration) in all.iter_mut().enumerate() {
        if random.permille(500) || at == first {
            configuration[OPEN] = json!(false);
        }
    }
    Value::Array(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Scene;

    #[test]
    fn some_load_balancers_are_closed_and_the_config_is_in_order() {
        let scene = Scene::plain(Layout::Several, 4, 7);
        let written = scene.config(&json!({})).written;
        for seed in 0..16 {
            let closed = closed(&written, &mut Random::new(seed));
            let mut all = closed.as_array().into_iter().flatten();
            assert!(all.any(|element| element[OPEN] == false));
            let config = scene.config(&json!({ CONFIGURATIONS: closed }));
            assert_eq!(config.written[CONFIGURATIONS], closed);
        }
    }
}
