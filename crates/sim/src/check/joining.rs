//! S3: where several load balancers divide the nodes, a node has left the pool of one before it
//! joins that of another which is as public or internal (docs/limits.md).
//!
//! S4: a NAT gateway is detached before it is deleted.
//!
//! L4: an address is written into status only once a first machine is behind it, and once the write
//! of its frontend and rules has ended: Azure may cancel a write, and restores what was there
//! before.

use super::azure::{Write, memberships, pools};
use super::form::{is_in, parts, same};
use super::hands::Sleep;
use super::tenants::{BALANCERS, MACHINES};
use crate::happening::Sent;
use crate::scene::Layout;
use crate::stage::Stage;
use crate::tally::count;
use arm::Method;
use model::ServiceUid;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const INTERNAL: &str = "-internal";

/// A frontend or rule that a write makes or changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fresh {
    /// Which call the write is.
    call: u64,
    /// Whether it stood before.
    stood: bool,
}

impl Stage {
    /// S4: a NAT gateway is deleted once it names no Service Gateway. Whether Azure deletes an
    /// attached one is not documented; the Go controller detaches it first.
    pub(super) fn check_attached(&mut self, write: &Write<'_>) {
        if write.method != Method::Delete || !is_in(write.path, "natGateways") {
            return;
        }
        count(&mut self.tally.checks, "S4");
        let gateway = write.before.map(|nat| &nat["properties"]["serviceGateway"]["id"]);
        if gateway.is_some_and(Value::is_string) {
            let name = write.path.rsplit('/').next().unwrap_or("").to_owned();
            self.fail("S4", format!("NAT gateway {name} is deleted while it is attached"));
        }
    }

    /// S3: a write that has a node join.
    pub(super) fn check_apart(&mut self, write: &Write<'_>) {
        let several = self.scene.layout == Layout::Several && is_in(write.path, "loadBalancers");
        let Some(asked) = write.body.filter(|_| several && !self.is_rebuilding()) else { return };
        let was = write.before.map(shared).unwrap_or_default();
        let comes: BTreeSet<String> = shared(asked).difference(&was).cloned().collect();
        count(&mut self.tally.checks, "S3");
        let own = write.path.to_lowercase();
        let is_internal = own.ends_with(INTERNAL);
        let others = self.azure.resources_of(BALANCERS);
        let others = others.into_iter().filter(|other| {
            let id = other["id"].as_str().unwrap_or("").to_lowercase();
            id != own && id.ends_with(INTERNAL) == is_internal
        });
        let both = others.filter_map(|other| {
            let address = comes.intersection(&shared(&other)).next()?.clone();
            Some((address, other["name"].as_str().unwrap_or("").to_owned()))
        });
        if let Some((address, other)) = both.min() {
            let name = own.rsplit('/').next().unwrap_or("").to_owned();
            self.fail(
                "S3",
                format!("{address} joins the pool of {name} and is in that of {other}"),
            );
        }
    }

    /// Notes the frontends and rules that a load balancer's write makes or changes, and those that
    /// it had when a write found another one under way.
    pub(super) fn note_fresh(&mut self, write: &Write<'_>) {
        let Some(after) = write.after.filter(|_| is_in(write.path, "loadBalancers")) else {
            return;
        };
        let id = write.path.to_lowercase();
        let (etag, earlier) = self.ledger.fresh.remove(&id).unwrap_or_default();
        // Under another ETag it is another client's write that goes on.
        let goes_on = |before: &Value| is_updating(before) && before["etag"] == etag;
        let mut fresh = if write.before.is_some_and(goes_on) { earlier } else { BTreeMap::new() };
        for collection in ["frontendIPConfigurations", "loadBalancingRules"] {
            let was = write.before.map(|before| parts(before, collection)).unwrap_or_default();
            let is = parts(after, collection).into_iter();
            let news = is.filter(|(name, part)| !was.get(name).is_some_and(|was| same(was, part)));
            for (name, _) in news {
                let part = Fresh { call: write.sent.call, stood: was.contains_key(&name) };
                // What an earlier write makes is being made until that has ended.
                fresh.entry(name).or_insert(part);
            }
        }
        self.ledger.fresh.insert(id, (after["etag"].clone(), fresh));
    }

    /// Notes the addresses that a load balancer's write takes the rules of away. Azure goes on
    /// showing a load balancer that it is deleting.
    pub(super) fn note_taken(&mut self, write: &Write<'_>) {
        let Some(before) = write.before.filter(|_| is_in(write.path, "loadBalancers")) else {
            return;
        };
        let after = write.after.filter(|_| write.method != Method::Delete);
        let stay = after.map(|after| self.standing_on(after)).unwrap_or_default();
        let gone = self.standing_on(before).into_iter().filter(|ip| !stay.contains(ip));
        self.ledger.taken.extend(gone.map(|ip| (ip, write.sent.call)));
    }

    /// Whether the rules of an address were taken away by a write that was sent after a status.
    ///
    /// Nothing orders calls of the API server and of Azure: such a write may get there first. The
    /// status was true when it was sent, and leaves what it would have left had it come first: a
    /// Service that is being deleted keeps its status until it is gone.
    pub(super) fn was_left_since(&self, sent: &Sent, ip: &str) -> bool {
        self.ledger.taken.get(ip).is_some_and(|call| sent.call < *call)
    }

    /// The part of a Service at an address that a write is still making, of which the sender of a
    /// status had to await the end. Azure goes on serving its rules while others' rules on the
    /// frontend are written.
    ///
    /// Nothing orders calls of the API server and of Azure: a write may get there before a status
    /// that was sent before it. That status is true if the part stood when it was sent, if people
    /// had taken the part away and the sender could not have read that yet, or if the owner has
    /// asked for it since.
    pub(super) fn part_under_way(
        &self,
        sent: &Sent,
        ip: &str,
        uid: &str,
        sleep: Sleep,
    ) -> Option<String> {
        let service = self.truth.services.get(uid);
        let edited = service.is_some_and(|service| service.edited_at > sent.services);
        let early = |part: &Fresh| {
            part.call < sent.call || (!part.stood && !edited && !self.was_taken_away(ip, sleep))
        };
        let base = ServiceUid::new(uid).base_name().to_lowercase();
        let all = self.azure.resources_of(BALANCERS);
        let mut busy = all.iter().filter(|balancer| is_updating(balancer));
        busy.find_map(|balancer| {
            let id = balancer["id"].as_str().unwrap_or("").to_lowercase();
            // Another client has written since.
            let (_, fresh) =
                self.ledger.fresh.get(&id).filter(|(etag, _)| *etag == balancer["etag"])?;
            let own = self.ways_in(balancer).into_iter().filter(|way| way.address == ip);
            // All of a container load balancer is its Service's.
            let whole = id.ends_with(&uid.to_lowercase());
            let is_own = |rule: &String| whole || rule.to_lowercase().starts_with(&base);
            let mut parts = own.flat_map(|way| {
                let rules = way.rules.into_iter().filter(is_own);
                rules.chain([way.frontend]).collect::<Vec<_>>()
            });
            parts.find(|part| fresh.get(part).is_some_and(early))
        })
    }

    /// Whether the rules of an address lead to pools of NICs that no machine is in, although the
    /// sender knows of nodes that belong there.
    pub(super) fn lacks_machines(&self, sent: &Sent, ip: &str) -> bool {
        let known = self.truth.members.iter().filter(|(_, since)| **since <= sent.nodes);
        let at_home = |address: &String| self.truth.machines.values().any(|own| own == address);
        if self.scene.layout != Layout::Nics || !known.map(|(address, _)| address).any(at_home) {
            return false;
        }
        let all = self.azure.resources_of(BALANCERS);
        let mut own =
            all.iter().filter(|b| self.standing_on(b).iter().any(|address| address == ip));
        own.any(|balancer| {
            // The operator may have pools hold addresses by now.
            if pools(balancer).values().any(|held| !held.is_empty()) {
                return false;
            }
            let pools = parts(balancer, "backendAddressPools").into_values();
            let ids: BTreeSet<String> =
                pools.map(|pool| pool["id"].as_str().unwrap_or("").to_lowercase()).collect();
            let machines = MACHINES.iter().flat_map(|kind| self.azure.resources_of(kind));
            !machines.into_iter().any(|machine| !memberships(&machine).is_disjoint(&ids))
        })
    }
}

fn is_updating(resource: &Value) -> bool {
    resource["properties"]["provisioningState"] == "Updating"
}

/// Addresses in the pools that all Services of a load balancer share.
fn shared(balancer: &Value) -> BTreeSet<String> {
    let all = pools(balancer).into_iter();
    let common = all.filter(|(name, _)| name.to_lowercase().starts_with("kubernetes"));
    common.flat_map(|(_, held)| held).collect()
}

#[cfg(test)]
mod tests {
    use super::super::form::told;
    use super::*;
    use crate::happening::Rightful;
    use crate::scene::{self, objects};
    use azure_emulator::Request;
    use kube_emulator::ObjectRef;
    use serde_json::json;

    fn path() -> String {
        scene::network("loadBalancers/kubernetes")
    }

    fn sent(call: u64) -> Sent {
        // Its sender knows all that owners have asked for.
        let (nodes, services, slices, pods, rightful) = (0, u64::MAX, 0, 0, Rightful::Yes);
        let (process, epoch, at_ms, leaves_ms, term) = (0, 0, 0, 0, 0);
        Sent {
            process,
            epoch,
            call,
            at_ms,
            leaves_ms,
            nodes,
            services,
            slices,
            pods,
            term,
            rightful,
        }
    }

    /// Another client writes the load balancer, a minute later.
    fn put(stage: &mut Stage, body: &Value) {
        stage.now_ms += 60_000;
        let request = Request::new("PUT", &path()).with_body(body.clone());
        let answer = stage.azure.handle(request, stage.now_ms);
        assert!(answer.status < 300, "{} {:?}", answer.status, answer.body);
    }

    /// This call of ours writes it.
    fn write(stage: &mut Stage, call: u64, body: &Value) {
        let before = stage.azure.shown_by_id(&path());
        put(stage, body);
        let after = stage.azure.shown_by_id(&path());
        let (sent, path, method) = (sent(call), path(), Method::Put);
        let (before, after) = (before.as_deref(), after.as_deref());
        let write = Write { sent: &sent, method, path: &path, before, after, body: None };
        stage.note_fresh(&write);
    }

    #[test]
    fn a_status_awaits_the_writes_that_were_sent_before_it() {
        let mut stage = Stage::plain(Layout::Single, 20_000);
        stage.create(objects::service("default", 0));
        assert!(stage.settle(86_400_000));
        let web = stage.kubernetes.get(ObjectRef::new("services", "default", "web-0"));
        let web = web.expect("it is there");
        let uid = web["metadata"]["uid"].as_str().expect("it has one");
        let ip = told(&web).next().expect("it is served");
        let early = |stage: &Stage, call: u64| {
            stage.part_under_way(&sent(call), ip, uid, Sleep::None).is_some()
        };
        let whole = stage.azure.resource(&path()).expect("it is there");
        let (mut other, mut bare) = (whole.clone(), whole.clone());
        other["properties"]["loadBalancingRules"][0]["properties"]["idleTimeoutInMinutes"] =
            json!(9);
        bare["properties"]["loadBalancingRules"] = json!([]);
        write(&mut stage, 107, &other);
        assert!(!early(&stage, 106), "the rule stood when the status was sent");
        assert!(early(&stage, 108), "the end of the write was to be awaited");
        put(&mut stage, &bare);
        write(&mut stage, 117, &whole);
        assert!(early(&stage, 116), "no rule stood when the status was sent");
        put(&mut stage, &whole);
        let before = stage.before_hands();
        put(&mut stage, &bare);
        stage.after_hands(&before);
        write(&mut stage, 127, &whole);
        assert!(!early(&stage, 126), "people took the rule away, and that was not read yet");
        assert!(early(&stage, 128), "the end of the write was to be awaited");
    }
}
