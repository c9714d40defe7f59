//! Owners of Services: they create, edit, break, mend, delete and create again.

use super::{Company, living, merge};
use crate::fault::Fault;
use crate::random::Random;
use crate::scene::{Layout, objects};
use crate::stage::Stage;
use crate::tally::count;
use kube_emulator::{ObjectRef, Part, Patch};
use plan::ask::annotation::PAUSE;
use serde_json::{Value, json};

pub(super) fn key(suffix: &str) -> String {
    format!("service.beta.kubernetes.io/{suffix}")
}

pub(super) fn annotation(suffix: &str, value: Value) -> Value {
    let mut annotations = serde_json::Map::new();
    annotations.insert(key(suffix), value);
    json!({"metadata": {"annotations": annotations}})
}

/// A value, or its absence.
fn some(random: &mut Random, value: Value) -> Value {
    if random.permille(600) { value } else { Value::Null }
}

/// A port; its node port is its own, so that it is the same whoever comes first.
fn port(name: &str, number: u64, protocol: &str) -> Value {
    let target = if name == "http" { 8080 } else { 9090 };
    let node_port = 30_000 + number % 2_000;
    json!({"name": name, "port": number, "targetPort": target, "protocol": protocol,
        "nodePort": node_port})
}

impl Company {
    pub(super) fn user(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
        let slot = random.below(self.slots);
        let namespace = if slot % 3 == 2 { "team" } else { "default" };
        let place = (namespace.to_owned(), format!("web-{slot}"));
        if !self.services.contains_key(&place) {
            let mut manifest = objects::service(namespace, slot);
            if random.permille(300) {
                merge(&mut manifest, &self.edit(slot, random).1);
            }
            self.services.insert(place, manifest);
            self.tend(stage);
            return "create a Service";
        }
        match random.below(20) {
            0..=2 => {
                self.services.remove(&place);
                self.delete(stage, &place);
                "delete a Service"
            }
            3 => {
                self.services.insert(place.clone(), objects::service(namespace, slot));
                self.delete(stage, &place);
                self.tend(stage);
                "create a Service again under its name"
            }
            4 => {
                let suffix = match self.scene.layout {
                    Layout::Containers => "azure-load-balancer-internal",
                    _ => "azure-load-balancer-tcp-idle-timeout",
                };
                let value = if suffix.ends_with("internal") { json!("true") } else { json!("1") };
                self.apply(stage, &place, &annotation(suffix, value));
                "break a Service"
            }
            5 => {
                let kind = if random.permille(500) { "ClusterIP" } else { "LoadBalancer" };
                // Some fields go only with the type.
                let mut ports = port("http", 80 + slot, "TCP");
                if kind == "ClusterIP" {
                    merge(&mut ports, &json!({"nodePort": null}));
                }
                let spec = json!({"type": kind, "externalTrafficPolicy": null,
                    "healthCheckNodePort": null, "loadBalancerSourceRanges": null,
                    "ports": [ports]});
                self.apply(stage, &place, &json!({ "spec": spec }));
                "change a Service's type"
            }
            6 => {
                for value in ["10", "20", "10"] {
                    let suffix = "azure-load-balancer-tcp-idle-timeout";
                    self.apply(stage, &place, &annotation(suffix, json!(value)));
                }
                "flip an annotation to and fro"
            }
            7 if random.permille(300) => {
                let gone = "team";
                self.services.retain(|(namespace, _), _| namespace != gone);
                let now = stage.now_ms;
                let _ = stage.kubernetes.delete(ObjectRef::new("namespaces", "", gone), now);
                "delete a namespace"
            }
            _ => {
                let (what, patch) = self.edit(slot, random);
                self.apply(stage, &place, &patch);
                what
            }
        }
    }

    /// An edit that is in order.
    fn edit(&self, slot: u64, random: &mut Random) -> (&'static str, Value) {
        let containers = self.scene.layout == Layout::Containers;
        match random.below(if containers { 5 } else { 13 }) {
            0 => {
                let minutes = random.between(4, 30).to_string();
                let value = some(random, json!(minutes));
                ("set the idle timeout", annotation("azure-load-balancer-tcp-idle-timeout", value))
            }
            1 => {
                let mut ports = vec![port("http", 80 + slot, "TCP")];
                if random.permille(600) {
                    ports.push(port("more", 8_000 + slot, "TCP"));
                }
                ("change ports", json!({"spec": {"type": "LoadBalancer", "ports": ports}}))
            }
            2 => {
                let policy = if random.permille(500) { "Local" } else { "Cluster" };
                let health = if policy == "Local" { json!(32_000 + slot) } else { Value::Null };
                let ports = [port("http", 80 + slot, "TCP")];
                let spec = json!({"type": "LoadBalancer", "externalTrafficPolicy": policy,
                    "healthCheckNodePort": health, "ports": ports});
                ("set the traffic policy", json!({"spec": spec}))
            }
            3 => {
                let protocol = if random.permille(500) { "UDP" } else { "TCP" };
                let ports = [port("http", 80 + slot, protocol)];
                ("change the protocol", json!({"spec": {"type": "LoadBalancer", "ports": ports}}))
            }
            4 => {
                let label = json!(random.below(9).to_string());
                ("label a Service", json!({"metadata": {"labels": {"rank": label}}}))
            }
            choice => self.edit_outside(choice, slot, random),
        }
    }

    /// An edit that container load balancers know nothing of.
    fn edit_outside(&self, choice: u64, slot: u64, random: &mut Random) -> (&'static str, Value) {
        match choice {
            5 => {
                let value = some(random, json!("true"));
                (
                    "move between inside and outside",
                    annotation("azure-load-balancer-internal", value),
                )
            }
            6 => {
                let ranges = some(random, json!(["203.0.113.0/24"]));
                (
                    "set source ranges",
                    json!({"spec": {"type": "LoadBalancer",
                    "ports": [port("http", 80 + slot, "TCP")],
                    "loadBalancerSourceRanges": ranges}}),
                )
            }
            7 => {
                let affinity = if random.permille(500) { "ClientIP" } else { "None" };
                ("set the affinity", json!({"spec": {"sessionAffinity": affinity}}))
            }
            // A label stays on a public IP that was brought: the first Service brings one.
            8 if slot != 0 => {
                let value = some(random, json!(format!("ballast-{slot}")));
                ("set the DNS label", annotation("azure-dns-label-name", value))
            }
            9 => {
                // With the next value a key stays, another one goes, and one comes.
                let all = ["team=red,owner=us,cost=9", "team=blue,stage=two", "team=red"];
                let tags = *random.fork("tags").pick(&all);
                let value = some(random, json!(tags));
                ("tag the public IP", annotation("azure-pip-tags", value))
            }
            // Not drawn with pools of NICs: docs/dev/simulation-tables.md.
            10 if !self.scene.layout.has_nics() => {
                let value = some(random, json!("true"));
                let suffix = "azure-disable-load-balancer-floating-ip";
                ("set floating IP", annotation(suffix, value))
            }
            11 => {
                let value = some(random, json!("/ready"));
                let suffix = "azure-load-balancer-health-probe-request-path";
                ("set the probe's path", annotation(suffix, value))
            }
            _ if slot == 0 && self.scene.layout != Layout::PerSet => {
                let value = some(random, json!("byo-pip"));
                ("bring a public IP", annotation("azure-pip-name", value))
            }
            _ => {
                let value = some(random, json!("Internet"));
                ("allow a service tag", annotation("azure-allowed-service-tags", value))
            }
        }
    }

    pub(super) fn delete(&self, stage: &mut Stage, (namespace, name): &(String, String)) {
        let now = stage.now_ms;
        let object = ObjectRef::new("services", namespace, name);
        let _ = stage.kubernetes.delete(object, now);
        stage.trace.say(now, || format!("user: Service {namespace}/{name} is deleted"));
        // One that is paused would stay.
        let resumed = json!({"metadata": {"annotations": {PAUSE: null}}});
        let _ = stage.kubernetes.patch(object, Part::Main, &Patch::Merge(resumed), now);
    }

    /// Changes a Service, or what it will be once it can be made.
    pub(crate) fn apply(&mut self, stage: &mut Stage, place: &(String, String), patch: &Value) {
        let Some(manifest) = self.services.get_mut(place) else { return };
        merge(manifest, patch);
        let (namespace, name) = place;
        if living(stage, "services", namespace, name).is_none() {
            return;
        }
        let now = stage.now_ms;
        let object = ObjectRef::new("services", namespace, name);
        let patched = stage.kubernetes.patch(object, Part::Main, &Patch::Merge(patch.clone()), now);
        stage.trace.say(now, || format!("user: Service {namespace}/{name}: {patch}"));
        if let Err(error) = patched {
            let text = format!("the actors' own edit is refused: {}", error.message());
            stage.fail("actors", text);
        }
        stage.follow();
    }

    /// Wrong values are put right, so that every Service can be satisfied in the end.
    pub fn mend(&mut self, stage: &mut Stage) {
        self.mend_wishes(stage);
        self.come_home(stage);
        self.mend_policy(stage);
        self.pause_attack(stage);
        self.house_all(stage);
        let places: Vec<(String, String)> = self.services.keys().cloned().collect();
        for place in places {
            let annotations = &self.services[&place]["metadata"]["annotations"];
            let wrong = annotations[key("azure-load-balancer-tcp-idle-timeout")] == "1";
            if wrong {
                let suffix = "azure-load-balancer-tcp-idle-timeout";
                self.apply(stage, &place, &annotation(suffix, Value::Null));
            }
            // Pools are of another kind by now, and no link stands before them.
            let link = "azure-pls-create";
            let wants_link = !self.services[&place]["metadata"]["annotations"][key(link)].is_null();
            if self.scene.other_pools && wants_link {
                self.apply(stage, &place, &annotation(link, Value::Null));
            }
            let internal = "azure-load-balancer-internal";
            let annotations = &self.services[&place]["metadata"]["annotations"];
            if self.scene.layout == Layout::Containers && !annotations[key(internal)].is_null() {
                self.apply(stage, &place, &annotation(internal, Value::Null));
            }
        }
    }

    /// Everybody deletes what they have.
    pub fn leave(&mut self, stage: &mut Stage) {
        self.disarm(stage);
        let places: Vec<(String, String)> = self.services.keys().cloned().collect();
        self.services.clear();
        for place in places {
            self.delete(stage, &place);
        }
        let pods: Vec<String> = self.pods.keys().cloned().collect();
        self.pods.clear();
        for name in pods {
            let now = stage.now_ms;
            let _ = stage.kubernetes.delete(ObjectRef::new("pods", "default", &name), now);
        }
        stage.follow();
    }

    pub(super) fn strip(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
        let places: Vec<(String, String)> = self.services.keys().cloned().collect();
        if let Some(place) = random.choose(&places) {
            let (namespace, name) = place;
            let now = stage.now_ms;
            let object = ObjectRef::new("services", namespace, name);
            let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            if stage.kubernetes.patch(object, Part::Main, &patch, now).is_ok() {
                count(&mut stage.tally.faults, Fault::FinalizerStripped.name());
                self.stripped = true;
            }
            if random.permille(500) {
                self.services.remove(place);
                self.delete(stage, place);
                let object = ObjectRef::new("services", namespace, name);
                let _ = stage.kubernetes.patch(object, Part::Main, &patch, now);
            }
        }
        "strip a finalizer"
    }
}
