//! Operators: they edit our things by hand, restart, change the config; servers go away.

use super::neighbour::edit;
use super::values::key;
use super::vandal::delete;
use super::{Company, merge, user};
use crate::fault::Fault;
use crate::random::Random;
use crate::scene::objects::{OTHER_CLUSTERS, is_theirs};
use crate::scene::{self, Layout};
use crate::stage::Stage;
use crate::tally::count;
use model::kubernetes::Backends;
use serde_json::{Value, json};

fn is_ours(part: &Value) -> bool {
    let name = part["name"].as_str().unwrap_or("");
    !is_theirs(name) && name != OTHER_CLUSTERS
}

fn drop_one(resource: &mut Value, collection: &str, random: &mut Random) {
    let items = resource["properties"][collection].as_array().cloned().unwrap_or_default();
    let ours: Vec<usize> = (0..items.len()).filter(|at| is_ours(&items[*at])).collect();
    if let Some(at) = random.choose(&ours) {
        let mut items = items;
        items.remove(*at);
        resource["properties"][collection] = Value::Array(items);
    }
}

impl Company {
    pub(super) fn hand(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
        count(&mut stage.tally.faults, Fault::HandEdits.name());
        let balancers: Vec<String> = stage
            .azure
            .resources_of("Microsoft.Network/loadBalancers")
            .iter()
            .filter_map(|r| r["id"].as_str().map(str::to_owned))
            .filter(|id| !is_theirs(id.rsplit('/').next().unwrap_or("")))
            .collect();
        let group = self.scene.security_group();
        let balancer = random.choose(&balancers).cloned();
        match (random.below(6), balancer) {
            (0, Some(id)) => {
                edit(stage, &id, |r| drop_one(r, "loadBalancingRules", random));
                "drop a rule of ours"
            }
            (1, Some(id)) => {
                edit(stage, &id, |resource| {
                    let rules = resource["properties"]["loadBalancingRules"].as_array_mut();
                    for rule in rules.into_iter().flatten() {
                        rule["properties"]["idleTimeoutInMinutes"] = json!(7);
                    }
                });
                "change rules of ours"
            }
            (2, Some(id)) => {
                edit(stage, &id, |resource| {
                    let pools = resource["properties"]["backendAddressPools"].as_array_mut();
                    for pool in pools.into_iter().flatten() {
                        if pool["properties"]["loadBalancerBackendAddresses"].is_array() {
                            pool["properties"]["loadBalancerBackendAddresses"] = json!([]);
                        }
                    }
                });
                "empty a pool of ours"
            }
            (3, Some(id)) if self.scene.outbound == scene::Outbound::None => {
                delete(stage, &id);
                "delete a load balancer of ours"
            }
            (4, _) => {
                edit(stage, &group, |resource| {
                    let rules = resource["properties"]["securityRules"].as_array_mut();
                    for rule in rules.into_iter().flatten() {
                        if is_ours(rule) {
                            rule["properties"]["destinationPortRange"].take();
                            rule["properties"]["destinationPortRanges"] = json!(["1"]);
                        }
                    }
                });
                "change security rules of ours"
            }
            _ => {
                edit(stage, &group, |r| drop_one(r, "securityRules", random));
                "drop a security rule of ours"
            }
        }
    }

    pub(super) fn config(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
        count(&mut stage.tally.faults, Fault::ConfigChanges.name());
        let has_site = self.scene.with.contains(&Fault::CloudConfig);
        let layout = self.scene.layout;
        self.scene.other_pools = false;
        let changes = match (layout, random.below(4), self.scene.other_kind_of_pools()) {
            (Layout::Containers, 1..=3, _) => {
                self.moved = true;
                let mut changes = scene::over_nodes();
                let course = &mut changes["layoutMigration"];
                let keep_both = random.choose(&["10s", "3m", "untilTold"]);
                course["keepBoth"] = json!(keep_both.unwrap_or(&"1h"));
                match random.below(3) {
                    0 => course["namespaces"] = json!(["default"]),
                    1 => course["services"] = json!(["default/web-0", "team/web-2"]),
                    _ => {}
                }
                changes
            }
            (_, 0, _) | (Layout::Containers | Layout::PerSet, ..) => json!({"tags": "owner=ops"}),
            (_, 1, _) => json!({"disableOutboundSNAT": false}),
            (_, 2, Some(pools)) => {
                self.scene.other_pools = true;
                pools
            }
            // Where the site says how the shared probe is answered, agents do not go with it.
            _ if self.scene.uids.is_multiple_of(2) && !has_site => json!({"healthCheck": "agent"}),
            _ => json!({"clusterServiceLoadBalancerHealthProbeMode": "shared"}),
        };
        stage.reconfigure(self.scene.config(&changes));
        self.changes = changes;
        "restart with another cloud config"
    }

    /// Pools hold the other kind of members from now on, where both kinds can stand. False where
    /// they cannot.
    pub(crate) fn turn_pools(&mut self, stage: &mut Stage) -> bool {
        const KIND: &str = "loadBalancerBackendPoolConfigurationType";
        let Some(pools) = self.scene.other_kind_of_pools() else { return false };
        // Azure takes no pool of addresses behind a Private Link Service. Without floating IP it
        // matches security rules with the address of a node, which a pool of NICs does not show:
        // not drawn with one (docs/dev/simulation-tables.md).
        let keys = [key::LINK, key::NO_FLOATING_IP].map(user::key);
        let wants = |service: &Value| {
            let annotations = &service["metadata"]["annotations"];
            keys.iter().any(|key| !annotations[key].is_null())
        };
        if self.services.values().any(wants) {
            return false;
        }
        self.scene.other_pools = !self.scene.other_pools;
        if let Some(changes) = self.changes.as_object_mut() {
            changes.shift_remove(KIND);
        }
        if self.scene.other_pools {
            self.changes[KIND] = pools[KIND].clone();
        }
        stage.reconfigure(self.scene.config(&self.changes));
        stage.ledger.settled.clear();
        true
    }

    /// The cloud config says this of a key from now on; with null nothing.
    pub(crate) fn set_key(&mut self, key: &str, value: &Value, stage: &mut Stage) {
        if let Some(changes) = self.changes.as_object_mut() {
            changes.shift_remove(key);
        }
        if !value.is_null() {
            self.changes[key] = value.clone();
        }
        stage.reconfigure(self.scene.config(&self.changes));
        stage.ledger.settled.clear();
    }

    /// The cloud config has these changes from now on.
    pub(crate) fn reconfigure(&mut self, changes: Value, stage: &mut Stage) {
        self.changes = changes;
        stage.reconfigure(self.scene.config(&self.changes));
    }

    /// Services move to load balancers of this kind, and tell the addresses of both for so long.
    /// What else the cloud config says is as usual.
    pub(crate) fn send_to(
        &mut self,
        backends: Backends,
        keep_both: &str,
        usual: &Value,
        stage: &mut Stage,
    ) {
        let mut changes = usual.clone();
        let way = match backends {
            Backends::Nodes => scene::over_nodes(),
            Backends::Pods => scene::migration(),
        };
        merge(&mut changes, &way);
        changes["layoutMigration"]["keepBoth"] = json!(keep_both);
        self.reconfigure(changes, stage);
    }

    /// The controller reads the cloud config in other letters from now on.
    pub(crate) fn rewrite_config(&mut self, stage: &mut Stage) {
        self.scene.rewritten = !self.scene.rewritten;
        stage.reconfigure(self.scene.config(&self.changes));
        stage.ledger.settled.clear();
    }

    /// Services move back to the load balancers of the scene.
    pub(super) fn come_home(&mut self, stage: &mut Stage) {
        if self.moved {
            self.reconfigure(scene::migration(), stage);
        }
    }

    /// Who only looked at drift has it repaired.
    pub(super) fn mend_policy(&mut self, stage: &mut Stage) {
        if self.scene.with.contains(&Fault::DriftReport) {
            count(&mut stage.tally.faults, Fault::DriftReport.name());
            self.changes["driftPolicy"] = json!("repair");
            stage.reconfigure(self.scene.config(&self.changes));
            // What people did during the storm is put right only now.
            stage.ledger.touched.renew(stage.now_ms);
        }
    }

    pub(super) fn outage(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
        count(&mut stage.tally.faults, Fault::ApiDown.name());
        stage.api_down_until = stage.now_ms + random.between(5_000, 300_000);
        "the API server goes away"
    }

    pub(super) fn kill(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
        count(&mut stage.tally.faults, Fault::CrashIdle.name());
        let number = usize::try_from(random.below(stage.processes.len() as u64)).unwrap_or(0);
        stage.kill(number, "killed");
        "kill a process"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::{Profile, Swarm};
    use crate::weather::Weather;
    use std::collections::BTreeSet;

    #[test]
    fn a_key_is_set_and_taken_out_again() {
        let swarm = Swarm::draw(&Random::new(7), Profile::Calm, &BTreeSet::new());
        let mut company = Company::new(&swarm);
        let mut stage = Stage::new(swarm.scene.clone(), swarm.pace, Weather::Fair, 1);
        let before = stage.config.written.clone();
        let key = "allowSharingAcrossNamespaces";
        company.set_key(key, &json!(true), &mut stage);
        assert_eq!(stage.config.written[key], true);
        company.set_key(key, &Value::Null, &mut stage);
        assert_eq!(stage.config.written, before);
    }
}
