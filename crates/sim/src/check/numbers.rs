//! S3: while the Pods of a Service give a port with a name several numbers, as in a rolling update
//! that changes it, the port's rule stays: the Pods of the old number go on serving.

use super::azure::Write;
use super::form::parts;
use crate::stage::Stage;
use crate::tally::count;
use kube_emulator::ObjectRef;
use serde_json::Value;
use std::collections::BTreeSet;

impl Stage {
    /// A write that takes a rule off a container load balancer. Judged where its sender leads and
    /// knows what the Service and its Pods say: nothing but an ETag fences off a late write, and a
    /// watch lags.
    pub(super) fn check_numbers(&mut self, write: &Write<'_>) {
        let (Some(before), Some(after)) = (write.before, write.after) else { return };
        let uid = write.path.rsplit('/').next().unwrap_or("").to_lowercase();
        let is = parts(after, "loadBalancingRules");
        let lost = parts(before, "loadBalancingRules").into_iter();
        let lost: Vec<_> = lost.filter(|(name, _)| !is.contains_key(name)).collect();
        let Some(service) = self.truth.services.get(&uid).filter(|_| !lost.is_empty()) else {
            return;
        };
        let numbered_at = self.truth.numbered.get(&uid).copied().unwrap_or(0);
        let edited = !service.wants || service.edited_at > write.sent.services;
        if edited || numbered_at > write.sent.slices || self.is_late(write.sent) {
            return;
        }
        let (namespace, name) = service.name.split_once('/').unwrap_or_default();
        let name = name.to_owned();
        let object = self.kubernetes.get(ObjectRef::new("services", namespace, &name));
        let Ok(object) = object else { return };
        count(&mut self.tally.checks, "S3");
        // Of two ports that lead to one number Azure takes the rule of one.
        let is_shared = |rule: &Value| is.values().any(|other| leads_alike(rule, other));
        let kept = lost.into_iter().find(|(_, rule)| {
            let port = port_of(&object, rule);
            port.is_some_and(|port| self.numbers(&uid, port).len() > 1) && !is_shared(rule)
        });
        if let Some((rule, _)) = kept {
            let text = format!("{rule} of {name} went while its Pods give the port two numbers");
            self.fail("S3", text);
        }
    }

    /// The numbers that ready Pods of a Service give a port.
    fn numbers(&self, uid: &str, port: &Value) -> BTreeSet<u64> {
        let own = self.truth.slices.values();
        let own = own.filter(|s| s.owner.eq_ignore_ascii_case(uid) && !s.ready.is_empty());
        let ports = own.flat_map(|slice| slice.ports.as_array().into_iter().flatten());
        ports.filter(|p| p["name"] == port["name"]).filter_map(|p| p["port"].as_u64()).collect()
    }
}

/// The port of a Service that a rule is for, where its target is a name.
fn port_of<'a>(service: &'a Value, rule: &Value) -> Option<&'a Value> {
    let rule = &rule["properties"];
    let protocol = rule["protocol"].as_str()?;
    let mut ports = service["spec"]["ports"].as_array()?.iter();
    let port = ports.find(|port| {
        let same = port["protocol"].as_str().is_some_and(|p| p.eq_ignore_ascii_case(protocol));
        same && port["port"] == rule["frontendPort"]
    })?;
    port["targetPort"].is_string().then_some(port)
}

fn leads_alike(one: &Value, other: &Value) -> bool {
    let same = |field: &str| one["properties"][field] == other["properties"][field];
    same("protocol") && same("backendPort")
}
