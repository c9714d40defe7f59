//! S4: what is left of a Service or of an egress gateway in Azure.

use super::api::has_finalizer;
use super::azure::Write;
use super::form::{destinations, is_in, parts};
use crate::config::without_cluster;
use crate::entries::entries;
use crate::scene::objects::{OTHER_ADDRESS, OTHER_CLUSTERS, is_theirs};
use crate::scene::{self, Layout};
use crate::stage::{Sent, Stage};
use crate::tally::count;
use crate::truth::ServiceTruth;
use crate::weather::Weather;
use arm::Method;
use model::kubernetes::{EGRESS_MARKS, POD_FINALIZER};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

const BALANCERS: &str = "Microsoft.Network/loadBalancers";

impl Stage {
    /// Ids of all resources, lower case.
    #[must_use]
    pub fn ids(&self) -> BTreeSet<String> {
        self.azure.shown().map(|r| r["id"].as_str().unwrap_or("").to_lowercase()).collect()
    }

    /// Remembers where rules of Services lead from, and the addresses of their public IPs: a
    /// security rule may be there before the frontend is.
    pub(super) fn note_opened(&mut self, write: &Write<'_>) {
        let Some(after) = write.after else { return };
        if let Some(address) = after["properties"]["ipAddress"].as_str() {
            let name = after["name"].as_str().unwrap_or("");
            let name = without_cluster(name);
            let owner = self.truth.owner_of(name).map(str::to_owned);
            if let Some(uid) = owner {
                self.ledger.opened.entry(uid).or_default().insert(address.to_owned());
            }
        }
        let frontends = parts(after, "frontendIPConfigurations");
        for (name, rule) in parts(after, "loadBalancingRules") {
            let Some(uid) = self.truth.owner_of(&name).map(str::to_owned) else { continue };
            let id = rule["properties"]["frontendIPConfiguration"]["id"].as_str().unwrap_or("");
            let frontend = id.rsplit('/').next().unwrap_or("").to_lowercase();
            let frontend = frontends.iter().find(|(name, _)| name.to_lowercase() == frontend);
            if let Some(address) = frontend.and_then(|(_, value)| self.address_at(value)) {
                self.ledger.opened.entry(uid).or_default().insert(address);
            }
        }
    }

    /// The address of a frontend.
    fn address_at(&self, frontend: &Value) -> Option<String> {
        let inside = &frontend["properties"];
        let address = match inside["publicIPAddress"]["id"].as_str() {
            Some(id) => self.azure.shown_by_id(id)?["properties"]["ipAddress"].clone(),
            None => inside["privateIPAddress"].clone(),
        };
        address.as_str().map(str::to_owned)
    }

    /// What a Service has in Azure.
    pub(super) fn remains(&self, uid: &str) -> Vec<String> {
        let Some(service) = self.truth.services.get(uid) else { return Vec::new() };
        let mut left = Vec::new();
        let is_own = |name: &str| {
            let name = name.to_lowercase();
            name.contains(&service.base) || name.contains(&uid.to_lowercase())
        };
        let kinds = [BALANCERS, "Microsoft.Network/publicIPAddresses"];
        for resource in kinds.iter().flat_map(|kind| self.azure.resources_of(kind)) {
            let id = resource["id"].as_str().unwrap_or("");
            let name = id.rsplit('/').next().unwrap_or("");
            // Azure deletes no public IP that a frontend uses: one that others are on stays for
            // them, and goes with the last whom its tag names.
            let others = || self.is_others(&resource, uid, &service.name);
            if is_own(name) && !self.is_used_by_others(&resource, &is_own) && !others() {
                left.push(id.to_owned());
            }
            for rule in parts(&resource, "loadBalancingRules").into_keys() {
                if is_own(&rule) {
                    left.push(format!("{id}/loadBalancingRules/{rule}"));
                }
            }
            let frontends = parts(&resource, "frontendIPConfigurations");
            for (frontend, value) in frontends {
                // A frontend that others' rules lead to or go out by stays for them.
                let mut kinds = ["loadBalancingRules", "outboundRules"].into_iter();
                let shared = kinds.any(|kind| {
                    value["properties"][kind].as_array().is_some_and(|rules| !rules.is_empty())
                });
                if is_own(&frontend) && !shared {
                    left.push(format!("{id}/frontendIPConfigurations/{frontend}"));
                }
            }
        }
        left.extend(self.open_rules(uid, &|_| true));
        left.extend(self.private_links(&is_own));
        if self.scene.layout == Layout::Containers
            && let Some(tables) = self.azure.gateway(&scene::gateway())
            && tables["services"].get(uid.to_lowercase()).is_some()
        {
            left.push(format!("service {uid} of the Service Gateway"));
        }
        left
    }

    /// Whether the tag of a public IP names Services that hold a finalizer, and not this one.
    fn is_others(&self, ip: &Value, uid: &str, name: &str) -> bool {
        let names = ip["tags"]["k8s-azure-service"].as_str().unwrap_or("");
        let holds = |user: &str| {
            let mut all = self.truth.services.iter();
            all.any(|(u, s)| u != uid && s.name == user && s.claimed && s.gone_at.is_none())
        };
        !names.split(',').any(|user| user == name) && names.split(',').any(holds)
    }

    /// Whether rules that are not a Service's own lead to the frontend of a public IP.
    fn is_used_by_others(&self, ip: &Value, is_own: &dyn Fn(&str) -> bool) -> bool {
        let frontend = ip["properties"]["ipConfiguration"]["id"].as_str().unwrap_or("");
        let frontend = &frontend.to_lowercase();
        let Some((balancer, _)) = frontend.split_once("/frontendipconfigurations/") else {
            return false;
        };
        let Some(balancer) = self.azure.shown_by_id(balancer) else { return false };
        parts(&balancer, "loadBalancingRules").into_iter().any(|(name, rule)| {
            let to = rule["properties"]["frontendIPConfiguration"]["id"].as_str().unwrap_or("");
            !is_own(&name) && to.eq_ignore_ascii_case(frontend)
        })
    }

    /// Security rules that still open an address that a Service had, and that no other Service for
    /// which `counts` holds has now.
    fn open_rules(&self, uid: &str, counts: &dyn Fn(&ServiceTruth) -> bool) -> Vec<String> {
        let Some(addresses) = self.ledger.opened.get(uid) else { return Vec::new() };
        let mut closed: BTreeSet<&str> = addresses.iter().map(String::as_str).collect();
        closed.remove(OTHER_ADDRESS);
        closed.retain(|address| !self.is_anothers(uid, address, counts));
        let mut left = Vec::new();
        let group = self.azure.shown_by_id(&self.scene.security_group());
        for (name, rule) in group.iter().flat_map(|group| parts(group, "securityRules")) {
            if is_theirs(&name) || name == OTHER_CLUSTERS {
                continue;
            }
            let open = destinations(rule).filter(|address| closed.contains(address));
            left.extend(open.map(|address| format!("security rule {name} to {address}")));
        }
        left
    }

    /// S4: a security rule closes before the address of a leaving Service is released: a private
    /// one with its frontend, for Azure may give it to any new frontend in the subnet, and a
    /// public one with its public IP. Its last holder may be another leaving Service, on a frontend
    /// that outlived its own Service.
    pub(super) fn check_closed(&mut self, write: &Write<'_>) {
        let Some(before) = write.before else { return };
        let goes = write.method == Method::Delete;
        let name = write.path.rsplit('/').next().unwrap_or("");
        let mut freed: Vec<(String, String)> = Vec::new();
        if is_in(write.path, "publicIPAddresses") && goes {
            let address = before["properties"]["ipAddress"].as_str().map(str::to_owned);
            freed.extend(address.map(|address| (without_cluster(name).to_owned(), address)));
        }
        let kept = write.after.filter(|_| !goes);
        let kept = kept.map(|after| parts(after, "frontendIPConfigurations")).unwrap_or_default();
        for (name, frontend) in parts(before, "frontendIPConfigurations") {
            let address = frontend["properties"]["privateIPAddress"].as_str();
            let address = address.filter(|_| !kept.contains_key(&name)).map(str::to_owned);
            freed.extend(address.map(|address| (name, address)));
        }
        for (name, address) in freed {
            let Some(uid) = self.owner_of_part(&write.path.to_lowercase(), &name) else {
                continue;
            };
            let Some(service) = self.truth.services.get(&uid) else { continue };
            if service.wants || service.edited_at > write.sent.services {
                continue;
            }
            count(&mut self.tally.checks, "S4");
            // Without faults, another leaving Service is no reason to keep a rule open.
            let stays = |other: &ServiceTruth| {
                let known = other.edited_at <= write.sent.services;
                !matches!(self.weather, Weather::Fair) || other.wants || !known
            };
            // A rule that denies opens nothing.
            let end = format!(" to {address}");
            let mut open =
                self.open_rules(&uid, &stays).into_iter().filter(|rule| rule.contains("_allow_"));
            let open = open.find(|rule| rule.ends_with(&end));
            if let Some(open) = open {
                self.fail("S4", format!("{address} of {name} was let go while {open} was there"));
                return;
            }
        }
    }

    /// Whether an address is by now that of another Service: Azure gives addresses out again, and
    /// several Services may share one.
    fn is_anothers(
        &self,
        uid: &str,
        address: &str,
        counts: &dyn Fn(&ServiceTruth) -> bool,
    ) -> bool {
        let services = self.truth.services.iter();
        let others = services.filter(|(other, s)| *other != uid && s.gone_at.is_none());
        let mut others = others.filter(|other| counts(other.1));
        others.any(|(other, _)| self.ledger.opened.get(other).is_some_and(|a| a.contains(address)))
            || self.azure.resources_of("Microsoft.Network/publicIPAddresses").iter().any(|ip| {
                let name = ip["name"].as_str().unwrap_or("");
                let owner = self.truth.owner_of(without_cluster(name));
                ip["properties"]["ipAddress"] == address && owner.is_some_and(|owner| owner != uid)
            })
    }

    /// Private Link Services of ours that stand before a Service's frontends.
    fn private_links(&self, is_own: &dyn Fn(&str) -> bool) -> Vec<String> {
        let links = self.azure.resources_of("Microsoft.Network/privateLinkServices");
        let before = |link: &Value| {
            let all = link["properties"]["loadBalancerFrontendIpConfigurations"].as_array();
            let ids = all.into_iter().flatten().filter_map(|frontend| frontend["id"].as_str());
            ids.map(|id| id.rsplit('/').next().unwrap_or("")).any(is_own)
        };
        let ids = links.iter().filter(|link| before(link)).filter_map(|link| link["id"].as_str());
        ids.filter(|id| !is_theirs(id.rsplit('/').next().unwrap_or("")))
            .map(str::to_owned)
            .collect()
    }

    /// S4: a Pod keeps its finalizer while the table has one of its addresses for an egress
    /// gateway: what comes to that address next would leave the cluster through it. Azure's tables
    /// have no ETag, so that another process's write may come late: judged by who wrote the table
    /// last. An address that another such Pod has by now is that one's.
    fn check_pod_drained(&mut self, sent: &Sent, pod: &Value, others: &[Arc<Value>]) {
        let Some(tables) = self.azure.gateway(&scene::gateway()) else { return };
        if self.ledger.tables_by != Some((sent.process, sent.epoch)) {
            return;
        }
        count(&mut self.tally.checks, "S4");
        let held: BTreeSet<&str> = others.iter().flat_map(|other| addresses(other)).collect();
        let own: BTreeSet<&str> = addresses(pod).filter(|ip| !held.contains(ip)).collect();
        let listed = entries(&tables).into_iter().find(|row| {
            let egress = self.truth.owner_of(&row.2).is_none() && !is_theirs(&row.2);
            egress && own.contains(&*row.1) && !self.is_row_touched(row)
        });
        if let Some((_, address, gateway)) = listed {
            let name = pod["metadata"]["name"].as_str().unwrap_or("");
            let text = format!("the finalizer of Pod {name} went, and {gateway} has {address}");
            self.fail("S4", text);
        }
    }

    /// S4: until an egress gateway stands, and tells so itself, the marks of its Pods are all that
    /// says whose its public IP is.
    pub(super) fn check_pod_release(&mut self, sent: &Sent, pod: &Value) {
        let mut others = self.kubernetes.list("pods", None);
        others.retain(|other| {
            let another = other["metadata"]["uid"] != pod["metadata"]["uid"];
            another && has_finalizer(other, POD_FINALIZER)
        });
        self.check_pod_drained(sent, pod, &others);
        let marks = |pod: &Value| -> BTreeSet<String> {
            let text = pod["metadata"]["annotations"][EGRESS_MARKS].as_str().unwrap_or("");
            text.split(',').filter(|mark| !mark.is_empty()).map(str::to_owned).collect()
        };
        let held: BTreeSet<String> = others.iter().flat_map(|other| marks(other)).collect();
        let name = pod["metadata"]["name"].as_str().unwrap_or("");
        for mark in marks(pod).difference(&held) {
            count(&mut self.tally.checks, "S4");
            let ip = scene::network(&format!("publicIPAddresses/{mark}-pip"));
            let gateway = scene::network(&format!("natGateways/{mark}"));
            let tables = self.azure.gateway(&scene::gateway());
            let told = self.azure.shown_by_id(&gateway).is_some()
                || tables.is_some_and(|tables| tables["services"].get(mark).is_some());
            if self.azure.shown_by_id(&ip).is_some() && !told {
                let text = format!("the finalizer of Pod {name} went, and nothing tells of {ip}");
                self.fail("S4", text);
                return;
            }
        }
    }
}

/// The addresses of a Pod.
fn addresses(pod: &Value) -> impl Iterator<Item = &str> {
    let listed = pod["status"]["podIPs"].as_array().into_iter().flatten();
    listed.filter_map(|entry| entry["ip"].as_str())
}
