//! Services with values at the bounds of what the annotation reference allows, and just beyond:
//! whether one is refused shows at the end of each round, for its owner mends nothing.

use super::user::key;
use super::wishes::Wish;
use super::{Company, merge};
use crate::random::Random;
use crate::scene::{Layout, objects};
use crate::stage::Stage;
use kube_emulator::{ObjectRef, Part, Patch};
use plan::ask::annotation::{PAUSE, PROTECT};
use serde_json::{Map, Value, json};
use std::ops::Range;

/// Their numbers.
const OWNERS: Range<u64> = 0..4;
/// As the owner of a wish each has a number from here on.
const WISHES: u64 = 40;
/// The first of their ports and node ports, which no other Service has.
const PORT: u64 = 6_100;
const NODE_PORT: u64 = 32_500;

/// How their names begin.
const NAME: &str = "doubt-";

/// Whether a Service may rightly be refused in the end.
#[must_use]
pub fn is_doubtful(name: &str) -> bool {
    name.starts_with("default/doubt-")
}

const INTERNAL_KEY: &str = "service.beta.kubernetes.io/azure-load-balancer-internal";

/// Keys with what may be said there. Variables: `{port}` is the Service's port, `{n}` its number,
/// `{neighbour}` the address of another Service.
const ANYWHERE: [(&str, &[&str]); 12] = [
    (
        "azure-load-balancer-tcp-idle-timeout",
        &["3", "4", "5", "29", "30", "31", "99", "100", "101", "0", "-4", "4.5", "", " 7 ", "soon"],
    ),
    (
        "azure-load-balancer-health-probe-interval",
        &["4", "5", "6", "39", "40", "59", "60", "61", "0", "-5", "x"],
    ),
    ("azure-load-balancer-health-probe-num-of-probe", &["1", "2", "3", "23", "24", "25", "0", "x"]),
    ("port_{port}_health-probe_interval", &["4", "5", "59", "60", "x"]),
    ("port_{port}_health-probe_num-of-probe", &["1", "2", "23", "24", "x"]),
    (
        "port_{port}_health-probe_port",
        &["0", "1", "65535", "65536", "http", "HTTP", "nothing", "{port}", "-1", ""],
    ),
    ("azure-load-balancer-health-probe-protocol", &["TCP", " http ", "Https", ""]),
    (
        "azure-allowed-ip-ranges",
        &[
            "10.0.0.1/8",
            "10.0.0.0/8",
            "10.0.0.0/33",
            "10.0.0.0/32",
            "10.0.0.0",
            "::/0",
            "x",
            "fd00::/8,10.0.0.0/9",
            "0.0.0.0/0",
            "192.0.2.0/25, 192.0.2.128/25",
            "",
        ],
    ),
    ("load-balancer-source-ranges", &["10.0.0.1/8", "10.1.0.0/16", "198.51.100.7/32", "x"]),
    ("azure-allowed-service-tags", &["Storage.EastUS", "Azure Cloud", "Sql", "Storage,Storage"]),
    (
        "azure-additional-public-ips",
        &[
            "0.1.2.3",
            "10.9.9.9",
            "100.64.0.1",
            "100.128.7.{n}",
            "168.63.129.16",
            "224.0.0.1",
            "240.0.0.1",
            "127.0.0.1",
            "169.254.1.1",
            "20.9.77.{n}",
            "20.9.78.{n},20.9.78.{n}",
            "fe80::1",
            "x",
            "20.9.79.{n},2603:1030:9::{n}",
            "2603:1030:9::{n}",
            "{neighbour}",
            "172.32.7.{n}",
            "172.31.7.1",
        ],
    ),
    ("azure-disable-load-balancer-floating-ip", &["true", "TRUE", " true", "yes"]),
];

/// The same for public Services.
const OUTSIDE: [(&str, &[&str]); 6] = [
    (
        "azure-dns-label-name",
        &["ab", "ab{n}", "Ab{n}c", "1b{n}", "b{n}-", "a-{n}", "", "{63}", "{64}"],
    ),
    (
        "azure-pip-tags",
        &[
            "a=b",
            "a=b=c",
            "=x",
            "k8s-azure-service=mine",
            "Service=mine",
            "aks-managed-x=y",
            "k8s-azure-cluster-name=other",
            "ballast-cluster-uid=x",
            "a<b=c",
            "a=b,a=c",
            "x",
            "a=",
        ],
    ),
    ("azure-pip-ip-tags", &["RoutingPreference=Internet", "x", "FirstPartyUsage=/a,x=y"]),
    ("azure-pip-name", &["nothing", "-bad", "bad-", "theirs-ip", "a/b"]),
    ("azure-load-balancer-ipv4", &["10.1.2.3", "20.99.0.1", "::1", "x", "169.254.7.7"]),
    ("azure-load-balancer-resource-group", &["bad.", "RG", "a/b"]),
];

/// The same for internal Services.
const INSIDE: [(&str, &[&str]); 3] = [
    ("azure-load-balancer-internal-subnet", &["nothing", "apps", "NODES", "-x", "a/b"]),
    (
        "azure-load-balancer-ipv4",
        &[
            "10.224.0.3",
            "10.224.0.0",
            "10.224.8.{n}",
            "10.224.255.255",
            "10.224.255.254",
            "x",
            "10.230.0.9",
            "fd00::77",
            "10.223.255.255",
        ],
    ),
    ("azure-load-balancer-enable-high-availability-ports", &["true", "True", "yes"]),
];

/// What the variables in values stand for in a Service.
struct Place {
    owner: u64,
    port: String,
    neighbour: String,
}

impl Place {
    fn value(&self, text: &str) -> String {
        let letters = |count: usize| format!("d{}{}", self.owner, "x".repeat(count - 2));
        let text = text.replace("{63}", &letters(63)).replace("{64}", &letters(64));
        let text = text.replace("{n}", &(40 + self.owner).to_string());
        text.replace("{port}", &self.port).replace("{neighbour}", &self.neighbour)
    }
}

/// An address in the status of a Service. Services whose finalizer was stripped are left out:
/// nothing is promised of them.
fn neighbour(random: &mut Random, stage: &Stage) -> String {
    let services = stage.kubernetes.list("services", None);
    let told = services.iter().filter_map(|service| {
        let meta = &service["metadata"];
        let part = |key: &str| meta[key].as_str().unwrap_or("").to_owned();
        let name = format!("{}/{}", part("namespace"), part("name"));
        let address = service["status"]["loadBalancer"]["ingress"][0]["ip"].as_str();
        address.filter(|_| !stage.is_name_stripped(&name)).map(str::to_owned)
    });
    let told: Vec<String> = told.collect();
    random.choose(&told).cloned().unwrap_or_else(|| "20.9.80.1".to_owned())
}

/// Takes off a Service what holds it back.
fn release(stage: &mut Stage, (namespace, name): &(String, String)) {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {PAUSE: null, PROTECT: null}}}));
    let object = ObjectRef::new("services", namespace, name);
    let _ = stage.kubernetes.patch(object, Part::Main, &patch, stage.now_ms);
}

impl Company {
    /// The Service without its doubtful annotations, the same each time: with annotations and
    /// fields drawn from all that there are, or plain.
    fn undoubted(&self, owner: u64) -> Value {
        let mut random = Random::new(self.scene.uids).fork(&format!("doubt-{owner}"));
        let (wishes, internal) = (random.permille(600), random.permille(400));
        let mut service = if wishes {
            Wish::draw(WISHES + owner, &mut random).service(WISHES + owner, &self.scene)
        } else {
            let mut service = objects::service("default", owner);
            let port = json!({"name": "http", "protocol": "TCP", "port": PORT + owner,
                "targetPort": 8080, "nodePort": NODE_PORT + owner});
            let spec = json!({"ports": [port], "selector": {"app": "web-0"}});
            merge(&mut service, &json!({ "spec": spec, "metadata": {"annotations": {}} }));
            if internal && self.scene.layout != Layout::Containers {
                service["metadata"]["annotations"][INTERNAL_KEY] = json!("true");
            }
            service
        };
        service["metadata"]["name"] = json!(format!("{NAME}{owner}"));
        service
    }

    fn doubtful(&self, owner: u64, random: &mut Random, stage: &Stage) -> Value {
        let mut service = self.undoubted(owner);
        let internal = service["metadata"]["annotations"][INTERNAL_KEY] == "true";
        let side: &[(&str, &[&str])] = if internal { &INSIDE } else { &OUTSIDE };
        let port = service["spec"]["ports"][0]["port"].to_string();
        let place = Place { owner, port, neighbour: neighbour(random, stage) };
        let mut annotations = Map::new();
        for _ in 0..random.between(1, 2) {
            let rows: &[(&str, &[&str])] = if random.permille(500) { side } else { &ANYWHERE };
            let (name, values) = *random.pick(rows);
            let name = place.value(name);
            let text: &&str = random.pick(values);
            // Not drawn with pools of NICs: docs/dev/simulation-tables.md.
            if name.ends_with("floating-ip") && self.scene.layout.has_nics() {
                continue;
            }
            annotations.insert(key(&name), json!(place.value(text)));
        }
        merge(&mut service, &json!({"metadata": {"annotations": annotations}}));
        service
    }

    /// They come.
    pub(crate) fn doubt(&mut self, random: &mut Random, stage: &mut Stage) {
        for owner in OWNERS {
            let service = self.doubtful(owner, random, stage);
            self.services.insert(("default".to_owned(), format!("{NAME}{owner}")), service);
        }
        self.tend(stage);
    }

    /// Each says something else. Some are held back at the same time: they keep what they have.
    pub(crate) fn doubt_otherwise(
        &mut self,
        (random, holds): (&mut Random, &mut Random),
        stage: &mut Stage,
    ) {
        for owner in OWNERS {
            let place = ("default".to_owned(), format!("{NAME}{owner}"));
            let doubtful = self.doubtful(owner, random, stage);
            let hold = holds.below(6);
            let Some(standing) = self.services.get(&place) else {
                // It was protected; now it goes, and comes back.
                release(stage, &place);
                self.services.insert(place, doubtful);
                continue;
            };
            if hold == 0 {
                self.delete_protected(stage, &place);
                continue;
            }
            let mut annotations = doubtful["metadata"]["annotations"].clone();
            if hold == 1 {
                annotations[PAUSE] = json!("true");
            }
            let old = standing["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
            for key in old.keys() {
                // What is said no more is taken away.
                annotations
                    .as_object_mut()
                    .map(|new| new.entry(key.clone()).or_insert(Value::Null));
            }
            self.apply(stage, &place, &json!({"metadata": {"annotations": annotations}}));
        }
    }

    /// A protected Service is deleted: it stays until it is protected no more.
    fn delete_protected(&mut self, stage: &mut Stage, place: &(String, String)) {
        self.apply(stage, place, &json!({"metadata": {"annotations": {PROTECT: "true"}}}));
        self.services.remove(place);
        let (namespace, name) = place;
        let object = ObjectRef::new("services", namespace, name);
        let _ = stage.kubernetes.delete(object, stage.now_ms);
        stage.trace.say(stage.now_ms, || format!("user: Service {name} is deleted, protected"));
    }

    /// They go.
    pub(crate) fn doubt_no_more(&mut self, stage: &mut Stage) {
        for owner in OWNERS {
            let place = ("default".to_owned(), format!("{NAME}{owner}"));
            release(stage, &place);
            if self.services.remove(&place).is_some() {
                self.delete(stage, &place);
            }
        }
    }
}
