//! What must hold once faults and inputs have stopped: L1, L2 and L4.

use super::api::PROGRAMMED;
use super::azure::memberships;
use super::form::{is_in, parts, text, told};
use super::stripped::close;
use crate::actor::doubts::is_doubtful;
use crate::scene::machines::is_nic;
use crate::scene::objects::{OTHER_CLUSTERS, is_theirs};
use crate::scene::{self, Outbound};
use crate::stage::Stage;
use crate::truth::{additional, wants};
use plan::ask::annotation::PROTECT;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Stage {
    /// What of ours is in Azure, beside what was there in the beginning.
    #[must_use]
    pub fn left_over(&self, before: &BTreeSet<String>) -> Vec<String> {
        let mut left = Vec::new();
        let (forgotten, held) = (self.forgotten(), self.held_by_stripped());
        for resource in self.azure.shown() {
            let Some(resource) = self.without_stripped(&close(&resource, &forgotten)) else {
                continue;
            };
            let id = text(&resource["id"]).to_owned();
            // The NICs of a scale set's machine come to light with its first write.
            if is_in(&id, "virtualMachines") && is_in(&id, "networkInterfaces") {
                continue;
            }
            if !before.contains(&id.to_lowercase()) {
                left.push(id);
                continue;
            }
            for collection in
                ["frontendIPConfigurations", "loadBalancingRules", "probes", "securityRules"]
            {
                let names = parts(&resource, collection).into_keys();
                let ours = names.filter(|name| !is_theirs(name) && name != OTHER_CLUSTERS);
                left.extend(ours.map(|name| format!("{id}/{collection}/{name}")));
            }
            if self.scene.outbound == Outbound::None
                && (is_in(&id, "virtualMachines") || is_nic(&id))
                && memberships(&resource).iter().any(|pool| !held.contains(balancer_of(pool)))
            {
                left.push(format!("{id} is in a pool"));
            }
        }
        if let Some(tables) = self.azure.gateway(&scene::gateway()) {
            for name in tables["services"].as_object().into_iter().flatten().map(|(name, _)| name) {
                if !is_theirs(name) {
                    left.push(format!("service {name} of the Service Gateway"));
                }
            }
            if tables["locations"].as_object().is_some_and(|all| !all.is_empty()) {
                left.push(format!("addresses of the Service Gateway: {}", tables["locations"]));
            }
        }
        left
    }

    /// Resources that Azure has not finished with, or failed to make: written once more they are
    /// as they should be. A NIC in no pool whose last write failed is left to whoever wrote it, as
    /// the Go cloud provider leaves it.
    #[must_use]
    pub(crate) fn unfinished(&self) -> Vec<String> {
        let is_asked_for = |r: &Arc<Value>| {
            let id = text(&r["id"]).to_lowercase();
            id.contains("/microsoft.network/") && self.without_stripped(r).is_some()
        };
        let all: Vec<_> = self.azure.shown().filter(is_asked_for).collect();
        let open = all.iter().filter(|r| match text(&r["properties"]["provisioningState"]) {
            "Succeeded" | "" => false,
            "Failed" if is_nic(text(&r["id"])) => !memberships(r).is_empty(),
            _ => true,
        });
        open.map(|r| format!("{} is {}", text(&r["name"]), r["properties"]["provisioningState"]))
            .collect()
    }

    /// Whether Azure works at a write, whoever sent it.
    #[must_use]
    pub fn is_azure_busy(&self) -> bool {
        self.azure.shown().any(|r| r["properties"]["provisioningState"] == "Updating")
    }

    /// Why it has not come right, in the controller's own words.
    #[must_use]
    pub fn unsettled(&self) -> String {
        let mut text = String::from("it does not come right:");
        if !self.rests() {
            text.push_str(" something is under way;");
            self.queued().iter().for_each(|line| text.push_str(&format!(" {line};")));
        }
        self.unfinished().iter().for_each(|line| text.push_str(&format!(" {line};")));
        for process in self.processes.iter().filter(|p| p.may_write(self.now_ms)) {
            let controller = &process.controller;
            for (id, why, _) in controller.waiting() {
                text.push_str(&format!(" {}: {why};", id.name()));
            }
            for service in controller.report().services.values() {
                for wait in &service.waits {
                    text.push_str(&format!(" {} waits for {wait};", service.name));
                }
            }
            for need in controller.readings() {
                text.push_str(&format!(" reading {need} again and again;"));
            }
            for (need, why, _) in controller.unread() {
                text.push_str(&format!(" {need}: {why};"));
            }
            for (uid, hold) in &controller.world().holds {
                text.push_str(&format!(" {uid} is set aside: {};", hold.reason));
            }
            for change in &controller.plan().changes {
                text.push_str(&format!(" to be written: {};", change.target.name()));
            }
            for write in &controller.plan().writes {
                text.push_str(&format!(" to be written: {:?};", write.object));
            }
            let needs = &controller.report().needs;
            needs.iter().for_each(|need| text.push_str(&format!(" reading {need};")));
        }
        text
    }

    /// L4 at the end: Services whose status does not say what stands.
    #[must_use]
    pub fn untrue(&self) -> Vec<String> {
        let standing = self.standing_addresses();
        // Where no port leads anywhere yet, only the Pods can change that.
        let (refused, unanswered) = self.refused_and_unanswered();
        let waits = |name: &String| unanswered.contains(name);
        let mut wrong = Vec::new();
        for service in self.kubernetes.list("services", None) {
            let meta = &service["metadata"];
            let name = format!("{}/{}", text(&meta["namespace"]), text(&meta["name"]));
            let told: Vec<&str> = told(&service).collect();
            if self.is_name_stripped(&name) {
                continue;
            }
            let wants = wants(&service);
            if wants && told.is_empty() && !refused.contains(&name) && !waits(&name) {
                wrong.push(format!("{name} has no address"));
            }
            let known = self.truth.services.get(text(&meta["uid"]));
            for ip in &told {
                // A Service that is refused keeps what its status had. Azure shows nothing of an
                // additional address: kube-proxy on the nodes takes what comes there for as long
                // as the status has it.
                let once = known.is_some_and(|known| known.additional.contains(*ip));
                let kept = (once || is_doubtful(&name)) && refused.contains(&name);
                let listed = additional(&service).contains(*ip) || kept || waits(&name);
                if !listed && !standing.iter().any(|address| address == ip) {
                    wrong.push(format!("{name} says {ip}, and no rule leads there"));
                }
            }
            let protected = meta["annotations"][PROTECT] == "true";
            if let Some(ip) = told.first().filter(|_| !wants && !protected) {
                wrong.push(format!("{name} still says {ip}"));
            }
            let own = service["status"]["conditions"].as_array().into_iter().flatten();
            let own = own.filter(|c| c["type"] == PROGRAMMED).count();
            if service["spec"]["type"] != "LoadBalancer" && own > 0 {
                wrong.push(format!("{name} still has our condition"));
            }
        }
        wrong
    }
}

/// The id of the load balancer that a pool is on.
fn balancer_of(pool: &str) -> &str {
    pool.split("/backendaddresspools/").next().unwrap_or("")
}
