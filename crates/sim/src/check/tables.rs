//! S1, S3 and S4 at each write of a Service Gateway's tables.

use super::azure::Write;
use crate::actor::doubts::is_doubtful;
use crate::entries::{Entry, entries};
use crate::scene;
use crate::scene::objects::is_theirs;
use crate::stage::{Sent, Stage};
use crate::tally::count;
use crate::truth::SliceTruth;
use serde_json::Value;
use std::collections::BTreeSet;

impl Stage {
    /// S4: a registration is not taken away by who has put the addresses there that lead to it.
    /// Azure refuses that, so it is judged by what was asked for.
    pub(super) fn check_unregistering(&mut self, write: &Write<'_>) {
        let (Some(before), Some(body)) = (write.before, write.body) else { return };
        let asked = body["serviceRequests"].as_array().into_iter().flatten();
        let gone = asked.filter(|row| row["isDelete"] == true);
        let gone: BTreeSet<String> =
            gone.filter_map(|row| row["service"]["name"].as_str()).map(str::to_lowercase).collect();
        let writer = (write.sent.process, write.sent.epoch);
        if gone.is_empty() || self.ledger.tables_by != Some(writer) {
            return;
        }
        count(&mut self.tally.checks, "S4");
        let mut rows = entries(before).into_iter();
        let leads = rows.find(|row| gone.contains(&row.2) && !self.is_row_touched(row));
        if let Some((_, address, name)) = leads {
            let text = format!("{name} was to be unregistered while {address} leads to it");
            self.fail("S4", text);
        }
    }

    /// Checks a write of the tables by what it did.
    pub(super) fn check_tables(&mut self, write: &Write<'_>) {
        let (Some(before), Some(after)) = (write.before, write.after) else { return };
        if before == after {
            return;
        }
        let (was, is) = (entries(before), entries(after));
        self.check_others_rows(before, after, &was, &is);
        self.check_registrations(write.sent, before, after, &is);
        self.check_connected(write.sent, before, after);
        if was != is {
            self.check_rows_out(write.sent, &was, &is);
            let mut left = was.clone();
            // Who is registered without a pool of a load balancer gets no traffic.
            left.retain(|(_, _, name)| is_connected(before, name));
            self.check_published(write.sent, &left, &is);
            self.ledger.tables_by = Some((write.sent.process, write.sent.epoch));
        }
    }

    /// S1: rows of others stay as they are.
    fn check_others_rows(
        &mut self,
        before: &Value,
        after: &Value,
        was: &BTreeSet<Entry>,
        is: &BTreeSet<Entry>,
    ) {
        count(&mut self.tally.checks, "S1");
        let rows = before["services"].as_object().into_iter().flatten();
        let changed = rows.filter(|(name, _)| is_theirs(name));
        let mut changed = changed.filter(|(name, row)| after["services"][name.as_str()] != **row);
        let moved = was.symmetric_difference(is).find(|entry| is_theirs(&entry.2));
        if let Some((name, _)) = changed.next() {
            self.fail("S1", format!("row {name} of the Service Gateway is not ours"));
        } else if let Some((_, address, name)) = moved {
            self.fail("S1", format!("{address} of {name} is not ours"));
        }
    }

    /// S4: what a registration leads to is there before it, and no address outlives it.
    fn check_registrations(
        &mut self,
        sent: &Sent,
        before: &Value,
        after: &Value,
        is: &BTreeSet<Entry>,
    ) {
        let late = self.is_late(sent);
        // The table has no ETag: who takes the pools off a row that people have unregistered since
        // it was read makes one that leads nowhere, and takes it away next.
        let detached = |name: &str, row: &Value| {
            let pools = row["properties"]["loadBalancerBackendPools"].as_array();
            let owner = self.truth.owner_of(name).and_then(|uid| self.truth.services.get(uid));
            pools.is_none_or(Vec::is_empty) && owner.is_some_and(|service| !service.wants)
        };
        // An outbound row without NAT gateway refers to nothing: Azure lets one be detached and go
        // on standing. It may tell whose a public IP is to be.
        let bare = |row: &Value| {
            let inside = &row["properties"];
            inside["serviceType"] == "Outbound" && inside["publicNatGatewayId"].is_null()
        };
        let rows = after["services"].as_object().into_iter().flatten();
        let rows = rows.filter(|(name, row)| !late && !detached(name, row) && !bare(row));
        let fresh =
            rows.map(|(name, _)| name).filter(|name| before["services"].get(name).is_none());
        for name in fresh {
            count(&mut self.tally.checks, "S4");
            let owner = self.truth.owner_of(name);
            let kind = if owner.is_some() { "loadBalancers" } else { "natGateways" };
            let leads_to = scene::network(&format!("{kind}/{name}"));
            let lacks = self.azure.shown_by_id(&leads_to).is_none();
            if lacks && !is_theirs(name) && !self.was_deleted(&leads_to) {
                self.fail("S4", format!("{name} was registered before {leads_to} was there"));
                return;
            }
            if let Some(service) = owner.and_then(|uid| self.truth.services.get(uid))
                && !service.was_claimed(sent.services)
            {
                let text =
                    format!("{name} was registered for {}, which has no finalizer", service.name);
                self.fail("S4", text);
                return;
            }
        }
        let names = after["services"].as_object().into_iter().flatten();
        let names: BTreeSet<String> = names.map(|(name, _)| name.to_lowercase()).collect();
        if let Some((_, address, name)) = is.iter().find(|entry| !names.contains(&entry.2)) {
            self.fail("S4", format!("{address} leads to {name}, which is not registered"));
        }
    }

    /// S3: a registration keeps its load balancer, for each Service that nobody has changed.
    fn check_connected(&mut self, sent: &Sent, before: &Value, after: &Value) {
        let rows = before["services"].as_object().into_iter().flatten();
        let lost = rows.map(|(name, _)| name).filter(|name| {
            let stays = after["services"].get(name.as_str()).is_some();
            stays && is_connected(before, name) && !is_connected(after, name)
        });
        for name in lost {
            let Some(uid) = self.truth.owner_of(name) else { continue };
            let Some(service) = self.truth.services.get(uid) else { continue };
            let asked = !service.wants || service.edited_at > sent.services;
            let deleted = self.was_deleted(&scene::network(&format!("loadBalancers/{name}")));
            if asked
                || deleted
                || self.is_late(sent)
                || self.has_moved_from_container(&service.name, name)
            {
                continue;
            }
            let text = format!("{} lost its load balancer in the table unasked", service.name);
            self.fail("S3", text);
            return;
        }
    }

    /// S3: the address of a Pod that is ready stays where it is, for each Service that nobody has
    /// changed.
    fn check_published(&mut self, sent: &Sent, was: &BTreeSet<Entry>, is: &BTreeSet<Entry>) {
        if self.is_late(sent) {
            return;
        }
        let left: Vec<&Entry> =
            was.difference(is).filter(|row| !self.is_row_touched(row)).collect();
        for (location, address, name) in left {
            let Some(uid) = self.truth.owner_of(name) else { continue };
            let Some(service) = self.truth.services.get(uid) else { continue };
            if !service.wants || service.edited_at > sent.services {
                continue;
            }
            // A client reaches the Pods through an address that status tells. Once that is one over
            // nodes, the container load balancer serves no client (docs/migrations.md).
            if self.has_moved_from_container(&service.name, name) {
                continue;
            }
            count(&mut self.tally.checks, "S3");
            if !self.is_published(sent, uid, location, address) {
                continue;
            }
            // A node that is going drains while others take the traffic.
            let drains = self.truth.going.contains(location);
            if !drains || !is.iter().any(|row| row.2 == *name) {
                let text = format!("{address} of {} left {location} and is ready", service.name);
                self.fail("S3", text);
                return;
            }
        }
    }

    /// Whether a write is one of who led before. Nothing fences it off: what it makes has to go
    /// again, and what it takes away comes back.
    pub(crate) fn is_late(&self, sent: &Sent) -> bool {
        sent.term < self.lease.term
    }

    /// Addresses of ready Pods that are not in the table.
    pub(crate) fn unpublished(&self) -> Vec<String> {
        let Some(tables) = self.azure.gateway(&scene::gateway()) else { return Vec::new() };
        let listed = entries(&tables);
        let mut lacking = Vec::new();
        for slice in self.truth.slices.values() {
            let Some(service) = self.truth.services.get(&slice.owner) else { continue };
            let known = |node: &String| self.truth.hosts.get(node).map(|(host, _)| host.clone());
            // One that may be refused is judged by what was promised alone.
            let sure = service.wants && !is_doubtful(&service.name);
            for (address, (node, _)) in slice.ready.iter().filter(|_| sure) {
                let Some(host) = known(node) else { continue };
                if self.truth.going.contains(&host) || self.lags(slice, address) {
                    continue;
                }
                if !listed.contains(&(host, address.clone(), slice.owner.to_lowercase())) {
                    lacking.push(format!("{} does not lead to {address}", service.name));
                }
            }
        }
        lacking
    }

    /// Whether another slice of a Service, written later, lists an address of a slice on another
    /// node: the address is another Pod's by now.
    fn lags(&self, slice: &SliceTruth, address: &str) -> bool {
        let node = |slice: &SliceTruth| slice.ready.get(address).map(|(node, _)| node.clone());
        let mut all = self.truth.slices.values();
        all.any(|other| {
            let later = other.owner == slice.owner && other.written_at > slice.written_at;
            later && node(other).is_some_and(|there| Some(there) != node(slice))
        })
    }

    /// Whether a ready Pod of a Service was at this address on this node, as far as the sender
    /// knew, and no slice says anything else of the address.
    fn is_published(&self, sent: &Sent, uid: &str, location: &str, address: &str) -> bool {
        let at_home = |node: &str| {
            let host = self.truth.hosts.get(node);
            host.is_some_and(|(host, since)| host == location && *since <= sent.nodes)
        };
        let mut found = false;
        for slice in self.truth.slices.values() {
            let Some((node, since)) = slice.ready.get(address) else { continue };
            if !at_home(node) {
                return false;
            }
            found |= slice.owner == uid && *since <= sent.slices;
        }
        found
    }
}

/// Whether a registration names a pool of a load balancer.
fn is_connected(tables: &Value, name: &str) -> bool {
    let rows = tables["services"].as_object().into_iter().flatten();
    let mut own = rows.filter(|(key, _)| key.eq_ignore_ascii_case(name));
    own.any(|(_, row)| {
        let pools = row["properties"]["loadBalancerBackendPools"].as_array();
        pools.is_some_and(|pools| !pools.is_empty())
    })
}
