//! S4, S8 and L4 at each write of a Kubernetes object.

use super::form::{conditions, parts, told};
use super::hands::Sleep;
use crate::scene::{CLASS, SECRET};
use crate::stage::{Sent, Stage};
use crate::tally::count;
use control::KubernetesCall;
use model::kubernetes::{Backends, GATEWAY_FINALIZER, POD_FINALIZER, SERVICE_FINALIZER};
use model::{ObstacleKind, ServiceUid};
use plan::ask::annotation::PROTECT;
use serde_json::Value;
use std::collections::BTreeSet;

/// What is said of a Service that has what it asks for.
pub(super) const PROGRAMMED: &str = "ballast.dev/Programmed";
const BALANCERS: &str = "Microsoft.Network/loadBalancers";

/// Finalizers that we set and take off: of Services, of container load balancers, of Pods.
pub(super) const OURS: [&str; 3] = [SERVICE_FINALIZER, GATEWAY_FINALIZER, POD_FINALIZER];

impl Stage {
    /// S8: what is told or sent holds no secret.
    pub(crate) fn check_secret(&mut self, text: &str) {
        count(&mut self.tally.checks, "S8");
        if text.contains(SECRET) {
            self.fail("S8", "a secret stands in what is said".to_owned());
        }
    }

    /// Checks a write of a Kubernetes object by what it did.
    pub(crate) fn check_api_write(
        &mut self,
        sent: &Sent,
        request: &KubernetesCall,
        before: Option<&Value>,
        after: Option<&Value>,
    ) {
        self.check_secret(&request.body.to_string());
        if request.method == "POST" || request.method == "GET" {
            return;
        }
        let Some(before) = before else { return };
        if let Some(after) = after {
            self.check_class(sent, before, after);
        }
        self.check_revision(request, before);
        self.check_finalizers(before, after);
        if released(before, after, SERVICE_FINALIZER) {
            let uid = before["metadata"]["uid"].as_str().unwrap_or("");
            self.truth.released.insert(uid.to_owned());
            self.check_protection(before);
            self.check_release(before);
        }
        if released(before, after, POD_FINALIZER) {
            self.check_pod_release(sent, before);
        }
        if request.path.ends_with("/status")
            && let Some(after) = after
            && before["status"]["loadBalancer"] != after["status"]["loadBalancer"]
        {
            self.check_moving(before, after);
            self.check_first_told(before, after);
            self.check_told(sent, before, after);
            self.check_status(sent, before, after);
            self.check_untold(sent, before, after);
        }
    }

    /// S2: a patch has finalizers as a whole, others' among them: it names the version of the
    /// object that it was made on, so that one that has come since is not lost.
    fn check_revision(&mut self, request: &KubernetesCall, before: &Value) {
        let meta = &request.body["metadata"];
        if meta.get("finalizers").is_none() {
            return;
        }
        count(&mut self.tally.checks, "S2");
        if !meta["resourceVersion"].is_string() {
            let name = before["metadata"]["name"].as_str().unwrap_or("");
            let text = format!("finalizers of {name} were written whatever its version");
            self.fail("S2", text);
        }
    }

    /// S2: finalizers of others stay.
    fn check_finalizers(&mut self, before: &Value, after: Option<&Value>) {
        let all = before["metadata"]["finalizers"].as_array().into_iter().flatten();
        let others: Vec<&str> =
            all.filter_map(Value::as_str).filter(|name| !OURS.contains(name)).collect();
        if others.is_empty() {
            return;
        }
        count(&mut self.tally.checks, "S2");
        let stays = |name: &str| after.is_some_and(|after| has_finalizer(after, name));
        if let Some(lost) = others.iter().find(|name| !stays(name)) {
            let name = before["metadata"]["name"].as_str().unwrap_or("");
            self.fail("S2", format!("finalizer {lost} of {name} is not ours, and we took it off"));
        }
    }

    /// S1: a Service of another controller's class gets neither finalizer nor address from us, and
    /// keeps the finalizer that all service controllers have.
    fn check_class(&mut self, sent: &Sent, before: &Value, after: &Value) {
        let class = &before["spec"]["loadBalancerClass"];
        if before["kind"] != "Service" || class.is_null() || class == CLASS {
            return;
        }
        count(&mut self.tally.checks, "S1");
        let claimed = |service: &Value| has_finalizer(service, SERVICE_FINALIZER);
        let told = |service: &Value| !service["status"]["loadBalancer"]["ingress"].is_null();
        let uid = before["metadata"]["uid"].as_str().unwrap_or("");
        let known = self.truth.services.get(uid).is_some_and(|s| s.edited_at <= sent.services);
        let takes = !claimed(before) && claimed(after) || !told(before) && told(after);
        let strips = claimed(before) && !claimed(after);
        let name = before["metadata"]["name"].as_str().unwrap_or("");
        if known && takes {
            self.fail("S1", format!("{name} is of another controller's class, and we took it"));
        } else if known && strips {
            self.fail("S1", format!("{name} is another controller's: its finalizer is not ours"));
        }
    }

    /// S4: the finalizer of a Service that is protected from deletion stays. The patch that takes
    /// it off names the revision that it was planned on, so that the annotation was known.
    fn check_protection(&mut self, service: &Value) {
        if service["metadata"]["annotations"][PROTECT] == "true" {
            count(&mut self.tally.checks, "S4");
            let name = service["metadata"]["name"].as_str().unwrap_or("");
            self.fail("S4", format!("the finalizer of {name} went, and it is protected"));
        }
    }

    /// S4: the finalizer goes only when nothing of the Service is left in Azure.
    fn check_release(&mut self, service: &Value) {
        count(&mut self.tally.checks, "S4");
        let uid = service["metadata"]["uid"].as_str().unwrap_or("").to_owned();
        // What a write of who led before makes after that is fenced off by nothing (S5): it goes
        // with the lists that show it, and is judged at the end.
        let late = |left: &String| self.ledger.made_late.contains(&left.to_lowercase());
        let mut left = self.remains(&uid);
        left.extend(self.open_for(service));
        if let Some(left) = left.iter().find(|left| !late(left)) {
            let name = service["metadata"]["name"].as_str().unwrap_or("");
            let text = format!("the finalizer of {name} went while {left} was still there");
            self.fail("S4", text);
        }
    }

    /// L4: an address is written into status only when its frontend and a rule stand. A write of
    /// our condition alone promises no address.
    ///
    /// Entries that were there are not told anew: the API server takes the list as a whole, so that
    /// who takes one out writes the others again. What stays is judged at the end.
    fn check_status(&mut self, sent: &Sent, before: &Value, service: &Value) {
        count(&mut self.tally.checks, "L4");
        let lately = sent.at_ms + 5_000 < self.now_ms;
        // What was on its way when its process died was true then; the next one may be further.
        let outlived = self.processes[sent.process].epoch != sent.epoch;
        // Who stood still has not seen what people did meanwhile.
        let asleep = self.processes[sent.process].paused_until + 5_000 > self.now_ms;
        if self.is_rebuilding() || lately || outlived {
            return;
        }
        let sleep = if asleep { Sleep::Long } else { Sleep::None };
        if !asleep {
            self.check_families(sent, before, service);
        }
        let mut standing = None;
        let told_before: BTreeSet<&str> = told(before).collect();
        for ip in told(service).filter(|ip| !told_before.contains(ip)) {
            let standing = standing.get_or_insert_with(|| self.standing_addresses());
            let uid = service["metadata"]["uid"].as_str().unwrap_or("");
            let known = self.truth.services.get(uid);
            let listed = known.is_some_and(|service| service.additional.contains(ip));
            let stands = listed || standing.iter().any(|address| address == ip);
            let stands = stands || self.was_left_since(sent, ip);
            if !stands && !self.was_taken_away(ip, sleep) {
                let name = service["metadata"]["name"].as_str().unwrap_or("").to_owned();
                let text = format!("status of {name} says {ip}, and no rule leads there");
                self.fail("L4", text);
                return;
            }
            if let Some(part) = self.part_under_way(sent, ip, uid, sleep).filter(|_| !listed) {
                let name = service["metadata"]["name"].as_str().unwrap_or("").to_owned();
                self.fail("L4", format!("status of {name} says {ip}, and {part} is being written"));
                return;
            }
            if !listed && !asleep && self.lacks_machines(sent, ip) {
                let name = service["metadata"]["name"].as_str().unwrap_or("").to_owned();
                self.fail("L4", format!("status of {name} says {ip}, and no machine is behind it"));
                return;
            }
        }
    }

    /// L4: the write of a Service's first address sets the condition to True as well: `kubectl
    /// wait` for the condition finds the address. On a move the address comes first, and the
    /// condition once the former load balancer has gone. A container load balancer leads to Pods by
    /// the address: one that Azure refuses keeps the Service from being True, and its address is
    /// told, because connections reach the other Pods.
    fn check_first_told(&mut self, before: &Value, after: &Value) {
        // A config of container load balancers says in any case how Services come from those over
        // nodes: that alone has none on its way.
        let moves =
            self.may_move() || self.is_on_both(after["metadata"]["uid"].as_str().unwrap_or(""));
        if told(before).next().is_some() || told(after).next().is_none() || moves {
            return;
        }
        count(&mut self.tally.checks, "L4");
        let to_pods = self.config.backends() == Backends::Pods;
        let mut own = conditions(after).filter(|condition| condition["type"] == PROGRAMMED);
        let done = own.any(|condition| {
            let rejected = condition["reason"] == ObstacleKind::Rejected.reason();
            condition["status"] == "True" || (to_pods && rejected && condition["status"] == "False")
        });
        if !done {
            let name = after["metadata"]["name"].as_str().unwrap_or("");
            let text =
                format!("status of {name} tells its first address, and {PROGRAMMED} is not True");
            self.fail("L4", text);
        }
    }

    /// Whether a Service has parts on load balancers over nodes and over Pods.
    fn is_on_both(&self, uid: &str) -> bool {
        let base = ServiceUid::new(uid).base_name().to_lowercase();
        let all = self.azure.resources_of(BALANCERS);
        let named = |balancer: &Value| {
            balancer["name"].as_str().is_some_and(|name| name.eq_ignore_ascii_case(uid))
        };
        let leads = |balancer: &Value| {
            let frontends = parts(balancer, "frontendIPConfigurations").into_keys();
            let mut names = frontends.chain(parts(balancer, "loadBalancingRules").into_keys());
            names.any(|name| name.to_lowercase().starts_with(&base))
        };
        all.iter().any(|b| named(b)) && all.iter().any(|b| leads(b))
    }

    /// L4: a Service of two families that had no address gets both at once. Who reads the first
    /// status, as those that write DNS do, sees all of it.
    fn check_families(&mut self, sent: &Sent, before: &Value, service: &Value) {
        let meta = &service["metadata"];
        let known = self.truth.services.get(meta["uid"].as_str().unwrap_or(""));
        let Some(known) = known.filter(|known| known.edited_at <= sent.services) else { return };
        let asked = service["spec"]["ipFamilies"].as_array().map_or(1, Vec::len);
        let own = |ip: &&str| !known.additional.contains(*ip);
        let now: Vec<&str> = told(service).filter(own).collect();
        if asked < 2 || told(before).next().is_some() || now.is_empty() {
            return;
        }
        let missing =
            !now.iter().any(|ip| ip.contains(':')) || !now.iter().any(|ip| ip.contains('.'));
        count(&mut self.tally.checks, "L4");
        if missing {
            let name = meta["name"].as_str().unwrap_or("").to_owned();
            self.fail(
                "L4",
                format!("status of {name} tells {now:?}, and two families are asked for"),
            );
        }
    }

    /// Addresses of frontends that a rule leads to.
    pub(crate) fn standing_addresses(&self) -> Vec<String> {
        let all = self.azure.resources_of(BALANCERS);
        all.iter().flat_map(|balancer| self.standing_on(balancer)).collect()
    }

    /// Addresses of a load balancer's frontends that a rule leads to.
    pub(super) fn standing_on(&self, balancer: &Value) -> Vec<String> {
        self.ways_in(balancer).into_iter().map(|way| way.address).collect()
    }

    /// The frontends of a load balancer that have an address and that a rule leads to.
    pub(super) fn ways_in(&self, balancer: &Value) -> Vec<WayIn> {
        let id = balancer["id"].as_str().unwrap_or("");
        let rules = parts(balancer, "loadBalancingRules");
        let mut found = Vec::new();
        for (name, frontend) in parts(balancer, "frontendIPConfigurations") {
            let own = format!("{id}/frontendIPConfigurations/{name}").to_lowercase();
            let led = rules.iter().filter(|(_, rule)| {
                let to = &rule["properties"]["frontendIPConfiguration"]["id"];
                to.as_str().is_some_and(|to| to.to_lowercase() == own)
            });
            let rules: Vec<String> = led.map(|(rule, _)| rule.clone()).collect();
            if rules.is_empty() {
                continue;
            }
            let inside = &frontend["properties"];
            let public = inside["publicIPAddress"]["id"].as_str();
            let public = public.and_then(|id| self.azure.shown_by_id(id));
            let address = match &public {
                Some(ip) => ip["properties"]["ipAddress"].as_str(),
                None => inside["privateIPAddress"].as_str(),
            };
            let way = |address: &str| WayIn { frontend: name, rules, address: address.to_owned() };
            found.extend(address.map(way));
        }
        found
    }
}

/// A frontend with an address, and the rules that lead to it.
pub(super) struct WayIn {
    pub frontend: String,
    pub rules: Vec<String>,
    pub address: String,
}

/// Whether a finalizer of ours was on an object and is not any more.
fn released(before: &Value, after: Option<&Value>, finalizer: &str) -> bool {
    has_finalizer(before, finalizer) && !after.is_some_and(|after| has_finalizer(after, finalizer))
}

/// Whether a finalizer is on an object.
pub(super) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    let all = object["metadata"]["finalizers"].as_array();
    all.into_iter().flatten().any(|f| f.as_str() == Some(finalizer))
}
