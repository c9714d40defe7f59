//! S3 of egress gateways: the addresses through which Pods leave stay as long as a living Pod asks
//! for the gateway (docs/container-load-balancer.md, "Egress gateways"). Others let these addresses
//! in, and do not know which Pods are behind them. The row of such a Pod stays as long as the Pod
//! does: an address without a row has no way out.

use super::api::has_finalizer;
use super::azure::Write;
use super::form::{is_in, text};
use crate::entries::Entry;
use crate::scene::objects::{gateway_of, is_theirs};
use crate::stage::{Sent, Stage};
use crate::tally::count;
use arm::Method;
use model::kubernetes::{Backends, POD_FINALIZER};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Who has put the row of a Pod into the table, and the Pod's UID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Published {
    /// Process, life and term.
    by: (usize, u64, u64),
    pod: String,
}

/// Rows of Pods that leave through egress gateways.
pub(crate) type Rows = BTreeMap<Entry, Published>;

impl Stage {
    /// S3 at a write of the Service Gateway's addresses: the row of a Pod stays while the Pod is
    /// there and asks for the gateway, whatever else is written of the Pod.
    pub(super) fn check_rows_out(
        &mut self,
        sent: &Sent,
        was: &BTreeSet<Entry>,
        is: &BTreeSet<Entry>,
    ) {
        let is_out = |row: &&Entry| self.truth.owner_of(&row.2).is_none() && !is_theirs(&row.2);
        let come: Vec<Entry> = is.difference(was).filter(is_out).cloned().collect();
        let left: Vec<Entry> = was.difference(is).filter(is_out).cloned().collect();
        let excused = self.is_way_out_excused(sent);
        for row in left {
            let stays =
                self.stays_at(sent, &row).filter(|_| !excused && !self.is_row_touched(&row));
            self.ledger.rows_out.remove(&row);
            count(&mut self.tally.checks, "S3");
            if let Some(pod) = stays {
                let (location, address, gateway) = row;
                let text = format!(
                    "{address} of egress gateway {gateway} left {location}, and Pod {pod} is there"
                );
                self.fail("S3", text);
                return;
            }
        }
        for row in come {
            let pod =
                self.pods_at(&row.1).first().map(|pod| text(&pod["metadata"]["uid"]).to_owned());
            let by = (sent.process, sent.epoch, sent.term);
            self.ledger.rows_out.insert(row, Published { by, pod: pod.unwrap_or_default() });
        }
    }

    /// The Pod that a row is of, if the sender of a write knew that it is there as it is. Where
    /// Pods share an address, or a slice lists it, the address may be another's.
    fn stays_at(&self, sent: &Sent, row: &Entry) -> Option<String> {
        let (location, address, gateway) = row;
        let mut slices = self.truth.slices.values();
        let all = self.pods_at(address);
        let [pod] = &all[..] else { return None };
        if slices.any(|slice| slice.ready.contains_key(address)) {
            return None;
        }
        let (status, meta) = (&pod["status"], &pod["metadata"]);
        let runs = status["phase"] == "Running" && text(&status["hostIP"]) == *location;
        let asks = gateway_of(pod).as_deref() == Some(&**gateway);
        // A Pod that cannot be given our finalizer is published without it, which no object tells:
        // a process that begins to lead tries first.
        let known = Published {
            by: (sent.process, sent.epoch, sent.term),
            pod: text(&meta["uid"]).to_owned(),
        };
        let may_stay =
            has_finalizer(pod, POD_FINALIZER) || self.ledger.rows_out.get(row) == Some(&known);
        let name = self.leaves_by(sent, gateway, |asking| asking["metadata"]["uid"] == meta["uid"]);
        name.filter(|_| runs && asks && may_stay)
    }

    /// Pods that have an address.
    fn pods_at(&self, address: &str) -> Vec<Arc<Value>> {
        let mut pods = self.kubernetes.list("pods", None);
        let has = |pod: &Value| {
            let mut all = pod["status"]["podIPs"].as_array().into_iter().flatten();
            pod["status"]["podIP"] == address || all.any(|ip| ip["ip"] == address)
        };
        pods.retain(|pod| has(pod));
        pods
    }

    /// S3 at a write of a NAT gateway or of the Service Gateway's services.
    pub(super) fn check_ways_out(&mut self, write: &Write<'_>) {
        let lost = lost(write);
        if lost.is_empty() || self.is_way_out_excused(write.sent) {
            return;
        }
        for (gateway, what) in lost {
            count(&mut self.tally.checks, "S3");
            if let Some(pod) = self.leaves_by(write.sent, &gateway, |_| true) {
                let text = format!("{what}, and Pod {pod} leaves through egress gateway {gateway}");
                self.fail("S3", text);
                return;
            }
        }
    }

    /// Whether a write has another reason than Pods: its sender had led before, or was told of
    /// another cloud config; Services and Pods have moved to load balancers over nodes, with which
    /// egress gateways go; people have edited Azure by hand, and what is left may bear no mark.
    fn is_way_out_excused(&self, sent: &Sent) -> bool {
        self.is_late(sent)
            || self.processes[sent.process].epoch != sent.epoch
            || self.config.backends() != Backends::Pods
            || self.may_be_unseen()
    }

    /// One of these living Pods that asks for an egress gateway, and that the sender of a write
    /// knew as it is. Where Pods of several namespaces ask for one, whose it is depends on who came
    /// first.
    fn leaves_by(
        &self,
        sent: &Sent,
        gateway: &str,
        is_meant: impl Fn(&Value) -> bool,
    ) -> Option<String> {
        let mut pods = self.kubernetes.list("pods", None);
        pods.retain(|pod| gateway_of(pod).as_deref() == Some(gateway));
        let namespaces: BTreeSet<&str> = pods.iter().map(|pod| namespace(pod)).collect();
        let [namespace] = namespaces.into_iter().collect::<Vec<_>>()[..] else { return None };
        let admitted = self.is_admitted(gateway, namespace);
        let knows = |pod: &Value| {
            let version = pod["metadata"]["resourceVersion"].as_str();
            version.and_then(|v| v.parse().ok()).is_some_and(|version: u64| version <= sent.pods)
        };
        let mut asking =
            pods.iter().filter(|pod| admitted && lives(pod) && knows(pod) && is_meant(pod));
        let pod = asking.next()?;
        let claimed = if has_finalizer(pod, POD_FINALIZER) { "" } else { " (without finalizer)" };
        Some(format!("{}{claimed}", pod["metadata"]["name"].as_str().unwrap_or("")))
    }

    /// Whether the cloud config lets Pods of a namespace use the name of an egress gateway.
    fn is_admitted(&self, gateway: &str, namespace: &str) -> bool {
        let listed = self.config.written["egressGatewayNamespaces"].as_object();
        let mut listed = listed.into_iter().flatten();
        let of = listed.find(|(name, _)| name.eq_ignore_ascii_case(gateway));
        let all = of.and_then(|(_, namespaces)| namespaces.as_array());
        all.is_none_or(|all| all.iter().any(|listed| listed == namespace || listed == "*"))
    }
}

fn namespace(pod: &Value) -> &str {
    pod["metadata"]["namespace"].as_str().unwrap_or("")
}

/// Whether a Pod is there to stay, and runs or is going to.
fn lives(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str();
    pod["metadata"]["deletionTimestamp"].is_null() && matches!(phase, Some("Pending" | "Running"))
}

/// What egress gateways lose by a write: names, lower case, and what it is.
fn lost(write: &Write<'_>) -> Vec<(String, String)> {
    let Some(before) = write.before else { return Vec::new() };
    let name = write.path.rsplit('/').next().unwrap_or("").to_lowercase();
    let goes = write.method == Method::Delete;
    if write.method == Method::Post {
        return unregistered(before, write.after.unwrap_or(&Value::Null));
    }
    // Azure refuses to delete a public IP that a NAT gateway has; by another no Pod leaves.
    if !is_in(write.path, "natGateways") {
        return Vec::new();
    }
    let (was, is) = (&before["properties"], write.after.map(|after| &after["properties"]));
    let kept = |field: &str| -> BTreeSet<String> {
        let all = is.and_then(|is| is[field].as_array()).into_iter().flatten();
        all.filter_map(|ip| ip["id"].as_str()).map(str::to_lowercase).collect()
    };
    let gone = ["publicIpAddresses", "publicIpAddressesV6"].iter().find_map(|field| {
        let kept = kept(field);
        let mut had = was[*field].as_array().into_iter().flatten();
        had.find(|ip| ip["id"].as_str().is_some_and(|id| !kept.contains(&id.to_lowercase())))
    });
    let attached = |inside: &Value| inside["serviceGateway"]["id"].is_string();
    let what = if goes {
        format!("NAT gateway {name} was deleted")
    } else if gone.is_some() {
        format!("NAT gateway {name} lost a public IP")
    } else if attached(was) && !is.is_some_and(attached) {
        format!("NAT gateway {name} let go of the Service Gateway")
    } else {
        return Vec::new();
    };
    vec![(name, what)]
}

/// Outbound services of the Service Gateway that lose their NAT gateway.
fn unregistered(before: &Value, after: &Value) -> Vec<(String, String)> {
    let nat = |row: &Value| {
        let id = row["properties"]["publicNatGatewayId"].as_str();
        id.filter(|id| !id.is_empty()).map(str::to_lowercase)
    };
    let rows = before["services"].as_object().into_iter().flatten();
    let lost = rows.filter(|(name, row)| {
        let is = after["services"].get(name.as_str()).and_then(nat);
        nat(row).is_some() && nat(row) != is
    });
    let what = |name: &str| format!("service {name} of the Service Gateway lost its NAT gateway");
    lost.map(|(name, _)| (name.to_lowercase(), what(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Layout, network, objects};
    use kube_emulator::{ObjectRef, Part, Patch};
    use serde_json::json;

    /// What is wrong with a deletion by who knows all there is.
    fn breach(stage: &mut Stage, path: &str) -> Option<String> {
        let (before, sent) = (json!({"properties": {}}), Sent::now(stage));
        let write = Write {
            sent: &sent,
            method: Method::Delete,
            path,
            before: Some(&before),
            after: None,
            body: None,
        };
        stage.check_ways_out(&write);
        stage.breach.take().map(|breach| breach.text)
    }

    #[test]
    fn a_gateway_stays_for_a_pod_that_has_no_address_yet() {
        let mut stage = Stage::plain(Layout::Containers, 0);
        let label = "kubernetes.azure.com/service-egress-gateway";
        stage.create(objects::pod("pod-7", &json!({(label): "Team-2"}), 0, "10.244.0.10"));
        let set_phase = |stage: &mut Stage, phase: &str| {
            let patch = Patch::Merge(json!({"status": {"phase": phase}}));
            let (object, now_ms) = (ObjectRef::new("pods", "default", "pod-7"), stage.now_ms);
            stage.kubernetes.patch(object, Part::Status, &patch, now_ms).expect("it is there");
        };
        set_phase(&mut stage, "Pending");
        let nat = network("natGateways/team-2");
        let text = breach(&mut stage, &nat).unwrap_or_default();
        assert!(text.contains("team-2 was deleted, and Pod pod-7"), "{text}");
        assert_eq!(breach(&mut stage, &network("natGateways/team-0")), None);
        set_phase(&mut stage, "Succeeded");
        assert_eq!(breach(&mut stage, &nat), None, "it has ended");
    }

    /// A Pod without our finalizer has a row by a process that knows why, and by no other.
    #[test]
    fn the_row_of_a_pod_stays_with_the_pod() {
        let mut stage = Stage::plain(Layout::Containers, 0);
        let label = "kubernetes.azure.com/service-egress-gateway";
        let pod = objects::pod("pod-7", &json!({(label): "Team-2"}), 0, "10.244.0.10");
        let patch = Patch::Merge(json!({"status": pod["status"]}));
        stage.create(pod);
        let object = ObjectRef::new("pods", "default", "pod-7");
        let now_ms = stage.now_ms;
        stage.kubernetes.patch(object, Part::Status, &patch, now_ms).expect("it is there");
        let row = |name: &str| {
            let location = objects::node_address("vmss", 0);
            BTreeSet::from([(location, "10.244.0.10".to_owned(), name.to_owned())])
        };
        let none = BTreeSet::new();
        let leaves = |stage: &mut Stage, rows: &BTreeSet<Entry>| {
            let sent = Sent::now(stage);
            stage.check_rows_out(&sent, rows, &none);
            stage.breach.take().map(|breach| breach.text)
        };
        assert_eq!(leaves(&mut stage, &row("team-2")), None, "another process published it");
        for name in ["team-2", "default-natgw"] {
            let sent = Sent::now(&stage);
            stage.check_rows_out(&sent, &none, &row(name));
        }
        let text = leaves(&mut stage, &row("team-2")).unwrap_or_default();
        assert!(text.contains("of egress gateway team-2 left 10.224.0.4, and Pod pod-7"), "{text}");
        assert_eq!(leaves(&mut stage, &row("default-natgw")), None, "it is no row of ours");
        let finalizers = Patch::Merge(json!({"metadata": {"finalizers": [POD_FINALIZER]}}));
        stage.kubernetes.patch(object, Part::Main, &finalizers, now_ms).expect("it is there");
        assert!(leaves(&mut stage, &row("team-2")).is_some());
        assert_eq!(leaves(&mut stage, &row("team-0")), None, "it asks for another gateway");
    }

    #[test]
    fn a_row_loses_its_nat_gateway_by_a_deletion_or_without_one() {
        let row = |nat: Value| json!({"properties": {"publicNatGatewayId": nat}});
        let tables = |rows: Value| json!({"services": rows});
        let before = tables(json!({"team-0": row(json!("/a")), "team-1": row(json!("/B")),
            "team-2": row(json!("/c")), "web": row(Value::Null)}));
        let after = tables(json!({"team-0": row(json!("/A")), "team-1": row(Value::Null)}));
        let lost = unregistered(&before, &after);
        let names: Vec<&str> = lost.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["team-1", "team-2"]);
    }
}
