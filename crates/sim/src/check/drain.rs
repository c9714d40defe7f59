//! S3 and L1 of nodes that go away: docs/draining.md says what they are promised.

use super::azure::{Write, memberships, pools};
use super::form::parts;
use crate::scene::objects::is_theirs;
use crate::stage::Stage;
use crate::tally::count;
use crate::truth::Stay;
use model::policy::{ClusterProbe, NodeDrain};
use serde_json::Value;
use std::collections::BTreeSet;

const BALANCERS: &str = "Microsoft.Network/loadBalancers";
/// How `promise` ends its line on a machine that is in a pool and runs no node.
const NO_NODE: &str = "and is no node";

impl Stage {
    /// S3: the address of a node that is going stays in its pools for as long as the node is there,
    /// and for the time that it is given to drain.
    pub(super) fn check_drains(&mut self, write: &Write<'_>) {
        let (Some(before), Some(after)) = (write.before, write.body) else { return };
        let Some(drain_ms) = self.drain_ms() else { return };
        if self.is_rebuilding() {
            return;
        }
        let (was, is) = (pools(before), pools(after));
        for (pool, was) in &was {
            let Some(is) = is.get(pool) else { continue };
            if !is_probed(before, pool) || !is_probed(after, pool) || self.is_left(before, pool) {
                continue;
            }
            for address in was.iter().filter(|address| !is.contains(*address)) {
                let Some(leaving) = self.truth.leaving.get(address) else { continue };
                if leaving.since > write.sent.nodes || !leaving.joined {
                    continue;
                }
                count(&mut self.tally.checks, "S3");
                let left_ms = (leaving.began_ms + drain_ms).saturating_sub(write.sent.at_ms);
                let text = match leaving.stay {
                    Stay::There => {
                        format!("{address} left pool {pool}, and its node is still there")
                    }
                    Stay::Gone if left_ms > 0 => {
                        format!("{address} left pool {pool} {left_ms} ms before it had drained")
                    }
                    Stay::Gone => continue,
                };
                self.fail("S3", text);
                return;
            }
        }
        self.check_turned_away(before, after, write.sent.nodes);
    }

    /// L1: a write by a sender who knows that a node is going, or gone, leaves its address in no
    /// pool with new connections: Azure sends them wherever the admin state does not forbid it, and
    /// to whoever is in a pool that rules without a probe lead to. Nor does it bring the address
    /// into one.
    fn check_turned_away(&mut self, before: &Value, after: &Value, known: u64) {
        let was = pools(before);
        for (pool, is) in &pools(after) {
            let Some(was) = was.get(pool) else { continue };
            // Without a node the pool stays as it is.
            let stands = |address: &String| {
                let leaving = self.truth.leaving.get(address);
                self.truth.members.contains_key(address)
                    || leaving.is_some_and(|leaving| leaving.stay == Stay::There)
            };
            if !is.iter().any(stands) || self.is_left(before, pool) {
                continue;
            }
            let led = [before, after].map(|balancer| rules_to(balancer, pool));
            if led.iter().any(Vec::is_empty) {
                // Azure sends no connections to a pool that no rule leads to.
                continue;
            }
            let probed = led.map(|rules| have_probes(&rules));
            if probed == [false, false] {
                let gone = |address: &&String| {
                    let leaving = self.truth.leaving.get(*address);
                    leaving.is_some_and(|l| l.stay == Stay::Gone && l.since <= known)
                        && !self.truth.members.contains_key(*address)
                };
                count(&mut self.tally.checks, "L1");
                if let Some(address) = is.iter().find(gone) {
                    let text = format!("{address} is gone and stays in pool {pool}, unprobed");
                    self.fail("L1", text);
                    return;
                }
                continue;
            }
            if probed != [true, true] {
                // This write gives the rules their probes, or takes them: until it, or from it on,
                // Azure does not heed the admin state.
                continue;
            }
            let open = open_members(after, pool);
            let goes = |address: &&String| {
                let leaving = self.truth.leaving.get(*address);
                leaving.is_some_and(|leaving| leaving.since <= known && leaving.joined)
                    && !self.truth.members.contains_key(*address)
            };
            let open = was.iter().filter(goes).find(|address| open.contains(*address)).cloned();
            count(&mut self.tally.checks, "L1");
            if let Some(address) = open {
                let text = format!("{address} of pool {pool} goes and takes new connections");
                self.fail("L1", text);
                return;
            }
            if let Some(address) = is.iter().filter(|at| !was.contains(*at)).find(goes) {
                self.fail("L1", format!("{address} goes and has joined pool {pool}"));
                return;
            }
        }
    }

    /// Whether a pool is as people left it. Where drift is only reported, a rule without a probe
    /// that they took away counts as there: it comes back once drift is repaired.
    fn is_left(&self, balancer: &Value, pool: &str) -> bool {
        let id = balancer["id"].as_str().unwrap_or("");
        let id = format!("{id}/backendAddressPools/{pool}");
        self.leaves_drift() && self.was_pool_touched(&id)
    }

    /// L1: who is going takes no new connections, and everybody else does.
    pub(crate) fn undrained(&self) -> Option<String> {
        self.drain_ms()?;
        for balancer in self.azure.resources_of(BALANCERS) {
            for (name, pool) in parts(&balancer, "backendAddressPools") {
                let held = pool["properties"]["loadBalancerBackendAddresses"].as_array();
                if is_theirs(&name) || !is_probed(&balancer, &name) {
                    continue;
                }
                for member in held.into_iter().flatten() {
                    let inside = &member["properties"];
                    let address = inside["ipAddress"].as_str().unwrap_or("");
                    let down = inside["adminState"] == "Down";
                    let going = self.truth.leaving.get(address);
                    let going = going.is_some_and(|leaving| leaving.stay == Stay::There);
                    let member = self.truth.members.contains_key(address);
                    if (down && !going && member) || (!down && going && !member) {
                        let what = if down { "takes no" } else { "still takes" };
                        return Some(format!("{address} of pool {name} {what} new connections"));
                    }
                }
            }
        }
        None
    }

    /// The pools that a machine is in, or the NIC of one.
    pub(crate) fn pools_of(&self, machine: &str) -> BTreeSet<String> {
        self.azure.shown_by_id(machine).map(|machine| memberships(&machine)).unwrap_or_default()
    }

    /// Whether shared probes turn new connections away from a machine once kube-proxy, or an agent,
    /// says that its node is going: every rule that leads to one of its pools has a probe.
    pub(crate) fn is_turned_away(&self, machine: &str) -> bool {
        let shared = matches!(self.config.cluster_probe, ClusterProbe::Shared { .. });
        shared
            && self.pools_of(machine).iter().all(|pool| {
                let (balancer, pool) = pool.split_once("/backendaddresspools/").unwrap_or_default();
                let balancer = self.azure.shown_by_id(balancer);
                balancer.is_some_and(|balancer| have_probes(&rules_to(&balancer, pool)))
            })
    }

    /// For how long a machine whose node is gone may still be in its pools, where one is: it drains
    /// from when a leader has found it there.
    pub(crate) fn drains_yet_ms(&self) -> Option<u64> {
        let NodeDrain::For { seconds } = self.config.node_drain else { return None };
        let left = self.unkept().iter().any(|broken| broken.text.ends_with(NO_NODE));
        left.then_some(u64::from(seconds) * 1_000)
    }

    /// For how long nodes drain, where pools hold the addresses of all.
    fn drain_ms(&self) -> Option<u64> {
        match self.config.node_drain {
            NodeDrain::For { seconds } if self.pools_hold_every_node() => {
                Some(u64::from(seconds) * 1_000)
            }
            NodeDrain::For { .. } | NodeDrain::Off => None,
        }
    }
}

/// Addresses of a pool that get new connections.
fn open_members(balancer: &Value, pool: &str) -> BTreeSet<String> {
    let pools = parts(balancer, "backendAddressPools");
    let members = pools
        .get(pool)
        .and_then(|pool| pool["properties"]["loadBalancerBackendAddresses"].as_array());
    let open = members.into_iter().flatten().map(|member| &member["properties"]);
    let open = open.filter(|inside| inside["adminState"] != "Down");
    open.filter_map(|inside| inside["ipAddress"].as_str()).map(str::to_owned).collect()
}

/// Whether rules lead to a pool, and every one of them has a probe: Azure heeds the admin state for
/// no other.
fn is_probed(balancer: &Value, pool: &str) -> bool {
    let rules = rules_to(balancer, pool);
    !rules.is_empty() && have_probes(&rules)
}

fn have_probes(rules: &[&Value]) -> bool {
    rules.iter().all(|rule| rule["properties"]["probe"]["id"].is_string())
}

fn rules_to<'b>(balancer: &'b Value, pool: &str) -> Vec<&'b Value> {
    let end = format!("/backendaddresspools/{}", pool.to_lowercase());
    let leads = |rule: &&Value| {
        let to = rule["properties"]["backendAddressPool"]["id"].as_str().unwrap_or("");
        to.to_lowercase().ends_with(&end)
    };
    parts(balancer, "loadBalancingRules").into_values().filter(leads).collect()
}
