//! The operator sets keys of the cloud config while Services stand, and takes them out again.

use super::Play;
use crate::check::cost::snapshot;
use crate::fault::Fault;
use crate::scene::objects::service;
use crate::scene::{Layout, MACHINES};
use crate::tally::count;
use plan::ask::annotation::full;
use serde_json::{Value, json};
use std::collections::BTreeMap;

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
const SHARED_IP: &str = "byo-pip2";
/// Within so long a node would have joined its pools.
const JOINED_MS: u64 = 180_000;

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
