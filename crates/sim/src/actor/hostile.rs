//! A hostile tenant: it may write Services, EndpointSlices and Pods in one namespace, and nothing
//! else. In the storm it does what must harm nobody whenever it comes. Once all is right it claims
//! what others have: who comes first to a thing keeps it, so that before then its claims could be
//! good ones.

use super::user::{annotation, key};
use super::{Company, living, merge};
use crate::check::form::told;
use crate::fault::Fault;
use crate::random::Random;
use crate::scene::{Layout, TENANT, objects, second};
use crate::stage::Stage;
use crate::tally::count;
use kube_emulator::ObjectRef;
use serde_json::{Map, Value, json};

/// Services that the tenant has in the storm.
const SERVICES: u64 = 4;
/// How the names of those begin that claim what others have.
const CLAIM: &str = "claim-";
/// The annotation by which a Service lets other namespaces share its address.
const SHARE: &str = "ballast.dev/share-with-namespaces";
/// The first of their numbers.
const FIRST: u64 = 60;

fn annotated(pairs: &[(&str, &str)]) -> Value {
    let pairs = pairs.iter().map(|(suffix, value)| (key(suffix), json!(value)));
    json!({"metadata": {"annotations": pairs.collect::<Map<_, _>>()}})
}

/// `aaa,aab,…`: a value that takes long to read for whoever compares all with all.
fn huge() -> String {
    let letter = |n: u32| char::from_u32('a' as u32 + n % 26).unwrap_or('a');
    let words = (0..5_000).map(|n| format!("{}{}{}", letter(n / 676), letter(n / 26), letter(n)));
    words.collect::<Vec<_>>().join(",")
}

fn service(name: &str, number: u64) -> Value {
    let mut service = objects::service(TENANT, FIRST + number);
    service["metadata"]["name"] = json!(name);
    service
}

fn slice(name: &str, labels: &Value, owners: &Value, addresses: &[(String, Value)]) -> Value {
    let endpoints: Vec<Value> = addresses
        .iter()
        .map(|(address, node)| {
            json!({"addresses": [address], "nodeName": node,
            "conditions": {"ready": true, "serving": true, "terminating": false}})
        })
        .collect();
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": TENANT, "labels": labels,
            "ownerReferences": owners},
        "addressType": "IPv4", "endpoints": endpoints,
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]})
}

const OTHERS_IP: &str = "name the other cluster's public IP";

/// What an attack writes into a Service of the tenant's own.
fn attack(random: &mut Random) -> (&'static str, Value) {
    match random.below(8) {
        0 => ("write a huge annotation", annotation("azure-allowed-ip-ranges", json!(huge()))),
        1 => (
            "deny everything to nodes",
            annotated(&[
                ("azure-deny-all-except-load-balancer-source-ranges", "true"),
                ("azure-allowed-ip-ranges", "203.0.113.0/24"),
                ("azure-disable-load-balancer-floating-ip", "true"),
            ]),
        ),
        2 => (
            "name other resource groups in a refused Service",
            annotated(&[
                ("azure-load-balancer-resource-group", "pip-rg"),
                ("azure-pls-resource-group", "pip-rg"),
                ("azure-load-balancer-tcp-idle-timeout", "1"),
            ]),
        ),
        3 => {
            let all = "169.254.169.254,10.224.0.4,10.244.0.10,127.0.0.1,168.63.129.16,0.0.0.0";
            ("list forbidden addresses", annotation("azure-additional-public-ips", json!(all)))
        }
        4 => (
            "write terminal escapes",
            annotated(&[
                ("azure-pip-tags", "\u{1b}[2J=red"),
                ("azure-load-balancer-health-probe-request-path", "/\u{1b}[2J"),
            ]),
        ),
        5 => {
            let ranges: Vec<String> = (0..200).map(|n| format!("198.18.{n}.0/24")).collect();
            ("allow many ranges", annotation("azure-allowed-ip-ranges", json!(ranges.join(","))))
        }
        6 => ("claim nothing", json!({"metadata": {"annotations": null}})),
        _ => (
            OTHERS_IP,
            annotation("azure-pip-name", json!("kubernetes-a11111111222243334444555555555555")),
        ),
    }
}

/// The first Service of another namespace, by name, that has an IPv4 address of one side, and the
/// address. One that denies all others at its address denies less where it shares it.
fn shareable(stage: &Stage, internal: bool) -> Option<(String, String)> {
    let services = stage.kubernetes.list("services", None);
    services.iter().find_map(|service| {
        let meta = &service["metadata"];
        let annotations = &meta["annotations"];
        let inside = annotations[key("azure-load-balancer-internal")] == "true";
        let denies =
            annotations[key("azure-deny-all-except-load-balancer-source-ranges")].is_string();
        if meta["namespace"] == TENANT || inside != internal || denies {
            return None;
        }
        let address = told(service).next().filter(|address| !address.contains(':'))?;
        let name = format!("{}/{}", meta["namespace"].as_str()?, meta["name"].as_str()?);
        Some((name, address.to_owned()))
    })
}

/// Whether a Service lets the tenant share its address.
pub(crate) fn consents(service: &Value) -> bool {
    service["metadata"]["annotations"][SHARE].as_str().is_some_and(|names| names == TENANT)
}

/// Whether a Service (`namespace/name`) claims what others have: Azure has each address and each
/// DNS label but once, and who comes second is refused and has none.
pub(crate) fn is_claim(service: &str) -> bool {
    let name = service.strip_prefix(TENANT).and_then(|rest| rest.strip_prefix('/'));
    name.is_some_and(|name| name.starts_with(CLAIM))
}

impl Company {
    pub(super) fn hostile(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
        count(&mut stage.tally.faults, Fault::Hostile.name());
        self.namespaces.insert(TENANT.to_owned());
        let number = random.below(SERVICES);
        let name = format!("evil-{number}");
        let place = (TENANT.to_owned(), name.clone());
        if !self.services.contains_key(&place) {
            let mut fresh = service(&name, number);
            merge(&mut fresh, &self.attack(random, stage.now_ms).1);
            self.services.insert(place, fresh);
            self.tend(stage);
            return "create a hostile Service";
        }
        let slices = matches!(self.scene.layout, Layout::Containers | Layout::Several);
        match random.below(10) {
            0 => {
                self.services.remove(&place);
                self.delete(stage, &place);
                "delete a hostile Service"
            }
            1..=3 if slices => self.strange_slice(random, stage),
            _ => {
                let (what, patch) = self.attack(random, stage.now_ms);
                self.apply(stage, &place, &patch);
                what
            }
        }
    }

    /// An attack. Without floating IP pools of NICs are not drawn (docs/dev/simulation-tables.md).
    fn attack(&self, random: &mut Random, now_ms: u64) -> (&'static str, Value) {
        let (mut what, mut patch) = attack(random);
        if what == OTHERS_IP && random.fork(&format!("namesake {now_ms}")).permille(500) {
            what = "name a namesake's public IP";
            patch = annotated(&[
                ("azure-pip-name", &second::ip_of_a_namesake(self.scene.cluster_name())),
                ("azure-load-balancer-resource-group", "pip-rg"),
            ]);
        }
        if self.scene.layout.has_nics()
            && let Some(annotations) = patch["metadata"]["annotations"].as_object_mut()
        {
            annotations.shift_remove(&key("azure-disable-load-balancer-floating-ip"));
        }
        (what, patch)
    }

    /// A slice of the tenant's that says it is a slice of another namespace's Service: with the
    /// label of its name, which is that of a Service of the tenant's own, or without.
    fn strange_slice(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
        let victims: Vec<String> = self
            .services
            .keys()
            .filter(|(namespace, _)| namespace == "default")
            .map(|(_, name)| name.clone())
            .collect();
        let node = self.nodes.values().next().map(|node| node["metadata"]["name"].clone());
        let (Some(victim), Some(node)) = (random.choose(&victims), node) else {
            return "find nobody to attack";
        };
        let uid = living(stage, "services", "default", victim)
            .map_or(Value::Null, |service| service["metadata"]["uid"].clone());
        let owners = json!([{"apiVersion": "v1", "kind": "Service", "name": victim, "uid": uid}]);
        let labelled = random.fork("labels").permille(500);
        let labels = json!({"kubernetes.io/service-name": victim});
        let labels = if labelled { labels } else { json!({}) };
        let owners = if uid.is_null() { json!([]) } else { owners };
        let number = random.below(3);
        let addresses = [(format!("10.244.9.{}", 10 + number), node)];
        self.put_slice(stage, slice(&format!("strange-{number}"), &labels, &owners, &addresses));
        "write a slice of another namespace's Service"
    }

    fn put_slice(&mut self, stage: &mut Stage, slice: Value) {
        let now = stage.now_ms;
        let name = slice["metadata"]["name"].as_str().unwrap_or("").to_owned();
        let object = ObjectRef::new("endpointslices", TENANT, &name);
        let _ = stage.kubernetes.delete(object, now);
        stage.trace.say(now, || format!("hostile: slice {name}: {slice}"));
        let _ = stage.kubernetes.create(slice, now);
        self.strange.insert(name);
        stage.follow();
    }

    /// Everything that the tenant can claim of what others have, at once.
    pub fn claim(&mut self, stage: &mut Stage) {
        let services = stage.kubernetes.list("services", None);
        let victims = services.iter().filter(|s| s["metadata"]["namespace"] != TENANT);
        let mut addresses = Vec::new();
        let mut labels = Vec::new();
        for victim in victims {
            addresses.extend(told(victim).map(str::to_owned));
            let label = &victim["metadata"]["annotations"][key("azure-dns-label-name")];
            labels.extend(label.as_str().filter(|label| !label.is_empty()).map(str::to_owned));
        }
        let all = addresses.join(",");
        let label = labels.first().cloned().unwrap_or_else(|| "wish-0".to_owned());
        let shared = [false, true].map(|internal| shareable(stage, internal));
        if self.scene.uids.is_multiple_of(2) {
            self.consent(stage, shared[1].as_ref());
        }
        let [public, private] = shared.map(|found| found.map_or_else(String::new, |(_, a)| a));
        let claims: [&[(&str, &str)]; 6] = [
            &[("azure-additional-public-ips", &all)],
            &[("azure-dns-label-name", &label)],
            &[
                ("azure-load-balancer-internal", "true"),
                ("azure-pls-create", "true"),
                ("azure-pls-name", "link-of-wish-1"),
            ],
            &[("azure-allowed-ip-ranges", &huge()), ("azure-additional-public-ips", &all)],
            &[("azure-load-balancer-ipv4", &public)],
            &[("azure-load-balancer-internal", "true"), ("azure-load-balancer-ipv4", &private)],
        ];
        self.namespaces.insert(TENANT.to_owned());
        for (number, claim) in (0..).zip(claims) {
            let name = format!("{CLAIM}{number}");
            let mut manifest = service(&name, SERVICES + number);
            merge(&mut manifest, &annotated(claim));
            // A port that nobody has: whose the address is decides alone.
            manifest["spec"]["ports"][0]["port"] = json!(7_100 + number);
            self.services.insert((TENANT.to_owned(), name), manifest);
        }
        self.tend(stage);
        if self.scene.layout == Layout::Containers {
            self.claim_pods(stage);
        }
    }

    /// A Service lets the tenant share its address.
    fn consent(&mut self, stage: &mut Stage, holder: Option<&(String, String)>) {
        let Some((holder, _)) = holder else { return };
        let Some((namespace, name)) = holder.split_once('/') else { return };
        let place = (namespace.to_owned(), name.to_owned());
        self.apply(stage, &place, &json!({"metadata": {"annotations": {SHARE: TENANT}}}));
    }

    /// Others' Pods among the tenant's own backends, at another node.
    fn claim_pods(&mut self, stage: &mut Stage) {
        let service = living(stage, "services", TENANT, "claim-0");
        let uid = service.map_or(Value::Null, |service| service["metadata"]["uid"].clone());
        let node =
            self.nodes.values().last().map_or(Value::Null, |n| n["metadata"]["name"].clone());
        let pods = stage.kubernetes.list("pods", None);
        let taken: Vec<(String, Value)> = pods
            .iter()
            .filter_map(|pod| Some((pod["status"]["podIP"].as_str()?.to_owned(), node.clone())))
            .collect();
        let labels = json!({"kubernetes.io/service-name": "claim-0"});
        let owners =
            json!([{"apiVersion": "v1", "kind": "Service", "name": "claim-0", "uid": uid}]);
        self.put_slice(stage, slice("taken", &labels, &owners, &taken));
    }

    /// What the tenant's Services ask for is put right, as everybody's is.
    pub(super) fn pause_attack(&mut self, stage: &mut Stage) {
        let own = self.services.keys().filter(|(namespace, _)| namespace == TENANT);
        for place in own.cloned().collect::<Vec<_>>() {
            self.apply(stage, &place, &json!({"metadata": {"annotations": null}}));
        }
    }

    /// The tenant's slices go; its Services go with everybody's.
    pub(super) fn disarm(&mut self, stage: &mut Stage) {
        let now = stage.now_ms;
        for name in std::mem::take(&mut self.strange) {
            let object = ObjectRef::new("endpointslices", TENANT, &name);
            let _ = stage.kubernetes.delete(object, now);
        }
    }
}
