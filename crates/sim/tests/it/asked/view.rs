//! A stage for Services, and Azure in short words: one line a part.

use crate::support::{create, laboratory, node, patch};
use azure_emulator::Request;
use kube_emulator::ObjectRef;
use model::report::Severity;
use serde_json::{Value, json};
use sim::Laboratory;
use std::collections::{BTreeMap, BTreeSet};

const LIMIT_MS: u64 = 1_000_000;
const PREFIX: &str = "service.beta.kubernetes.io/";

/// A Service's manifest: TCP 80 with node port 30080, unless changed.
#[derive(Clone)]
pub struct Asked {
    object: Value,
}

pub fn web(name: &str) -> Asked {
    let ports = json!([{"name": "http", "port": 80, "nodePort": 30080, "protocol": "TCP"}]);
    Asked {
        object: json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": "default", "annotations": {}},
            "spec": {"type": "LoadBalancer", "selector": {"app": name}, "ports": ports}}),
    }
}

/// A key with its prefix, unless it has one.
fn whole(key: &str) -> String {
    if key.contains('/') { key.to_owned() } else { format!("{PREFIX}{key}") }
}

impl Asked {
    /// Annotations, without their prefix.
    pub fn with(mut self, annotations: &[(&str, &str)]) -> Self {
        for (key, value) in annotations {
            self.object["metadata"]["annotations"][whole(key)] = json!(value);
        }
        self
    }

    pub fn of(mut self, namespace: &str) -> Self {
        self.object["metadata"]["namespace"] = json!(namespace);
        self
    }

    pub fn internal(self) -> Self {
        self.with(&[("azure-load-balancer-internal", "true")])
    }

    /// Ports as "TCP 80 30080"; a word more is the appProtocol.
    pub fn ports(mut self, ports: &[&str]) -> Self {
        let ports = ports.iter().map(|text| {
            let words: Vec<&str> = text.split(' ').collect();
            let number = |at: usize| words[at].parse::<u16>().expect("a port");
            let name = format!("{}-{}", words[0].to_lowercase(), number(1));
            let mut port = json!({"name": name, "protocol": words[0], "port": number(1),
                "nodePort": number(2)});
            if let Some(word) = words.get(3) {
                port["appProtocol"] = json!(word);
            }
            port
        });
        self.object["spec"]["ports"] = ports.collect();
        self
    }

    pub fn families(mut self, families: &[&str]) -> Self {
        let policy = if families.len() > 1 { "RequireDualStack" } else { "SingleStack" };
        self.object["spec"]["ipFamilyPolicy"] = json!(policy);
        self.object["spec"]["ipFamilies"] = json!(families);
        self
    }

    pub fn dual(self) -> Self {
        self.families(&["IPv4", "IPv6"])
    }

    pub fn field(mut self, key: &str, value: Value) -> Self {
        self.object["spec"][key] = value;
        self
    }

    /// externalTrafficPolicy Local with this health check node port.
    pub fn local(self, port: u16) -> Self {
        self.field("externalTrafficPolicy", json!("Local"))
            .field("healthCheckNodePort", json!(port))
    }
}

/// The cluster with its cloud, and the Services that were made.
pub struct Stage {
    pub lab: Laboratory,
    before: BTreeMap<String, Value>,
    bases: BTreeMap<String, String>,
    namespaces: BTreeSet<String>,
}

pub fn stage(config: &Value) -> Stage {
    stage_with(config, Vec::new())
}

/// A stage with a Service, under the default config.
pub fn asked(service: Asked) -> Stage {
    let mut stage = stage(&json!({}));
    stage.ask(service);
    stage
}

/// With resources beside the estate.
pub fn stage_with(config: &Value, more: Vec<Value>) -> Stage {
    let mut lab = laboratory(config);
    lab.azure.seed(more);
    let before = by_id(&lab);
    lab.settle(LIMIT_MS);
    Stage { lab, before, bases: BTreeMap::new(), namespaces: BTreeSet::new() }
}

fn by_id(lab: &Laboratory) -> BTreeMap<String, Value> {
    let all = lab.azure.resources().into_iter();
    all.map(|r| (r["id"].as_str().unwrap_or("").to_lowercase(), r)).collect()
}

impl Stage {
    pub fn settle(&mut self) {
        assert!(self.lab.settle(LIMIT_MS), "it settles: {:#?}", self.lab.controller().plan());
        // Nothing is left to do for a second look, either.
        let writes = self.lab.calls().0;
        self.lab.pass(1);
        assert!(self.lab.settle(LIMIT_MS), "it stays settled");
        assert_eq!(self.lab.calls().0, writes, "it wrote again");
        // Nor for one who knows nothing but what is there.
        self.lab.restart();
        assert!(self.lab.settle(LIMIT_MS), "it settles after a restart");
        assert_eq!(self.lab.calls().0, writes, "it wrote after a restart");
    }

    pub fn ask(&mut self, asked: Asked) {
        let text = |key: &str| asked.object["metadata"][key].as_str().expect("text").to_owned();
        let (namespace, name) = (text("namespace"), text("name"));
        if namespace != "default" && !self.namespaces.contains(&namespace) {
            let metadata = json!({"name": namespace});
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
            create(&mut self.lab, object);
            self.namespaces.insert(namespace.clone());
        }
        create(&mut self.lab, asked.object);
        let object = ObjectRef::new("services", &namespace, &name);
        let made = self.lab.kubernetes.get(object).expect("it was made");
        let uid = made["metadata"]["uid"].as_str().expect("a UID").to_owned();
        self.bases.insert(model::ServiceUid::new(&uid).base_name(), format!("<{name}>"));
        self.settle();
    }

    pub fn object(&self, name: &str) -> Value {
        let object = ObjectRef::new("services", "default", name);
        self.lab.kubernetes.get(object).map(|o| Value::clone(&o)).expect("it is there")
    }

    pub fn change(&mut self, name: &str, body: Value) {
        patch(&mut self.lab, "services", "default", name, body);
        self.settle();
    }

    /// Sets annotations, or takes them away where there is no value.
    pub fn annotate(&mut self, name: &str, annotations: &[(&str, Option<&str>)]) {
        let mut all = json!({});
        for (key, value) in annotations {
            all[whole(key)] = json!(value);
        }
        self.change(name, json!({"metadata": {"annotations": all}}));
    }

    /// The id of the one public IP that a Service's name is on.
    pub fn public_ip(&self, name: &str) -> String {
        let named = |r: &&Value| {
            r["tags"]["k8s-azure-service"].as_str() == Some(&format!("default/{name}"))
        };
        let all = self.lab.azure.resources();
        let ip = all.iter().find(named).expect("it has a public IP");
        ip["id"].as_str().expect("an id").to_owned()
    }

    /// Somebody else changes a resource.
    pub fn edit(&mut self, id: &str, change: impl Fn(&mut Value)) {
        let mut resource = self.lab.azure.resource(id).expect("it is there");
        change(&mut resource);
        let now = self.lab.now_ms;
        let path = format!("{id}?api-version=2024-05-01");
        let answer = self.lab.azure.handle(Request::new("PUT", &path).with_body(resource), now);
        assert!(answer.status < 300, "{answer:?}");
    }

    /// Somebody else deletes a resource.
    pub fn forget(&mut self, id: &str) {
        let now = self.lab.now_ms;
        let request = Request::new("DELETE", &format!("{id}?api-version=2024-05-01"));
        let status = self.lab.azure.handle(request, now).status;
        assert!(status < 300, "{status}");
    }

    pub fn delete(&mut self, name: &str) {
        crate::support::delete(&mut self.lab, "default", name);
        self.settle();
    }

    pub fn add_node(&mut self, index: u32, labels: &[(&str, &str)]) {
        let mut node = node(index);
        for (key, value) in labels {
            node["metadata"]["labels"][*key] = json!(value);
        }
        create(&mut self.lab, node);
        self.settle();
    }

    /// The whole of what differs from the start.
    pub fn text(&self) -> String {
        let after = by_id(&self.lab);
        let mut lines = Vec::new();
        let shown = |resource: &Value| {
            let mut lines = Vec::new();
            show(resource, &mut lines);
            lines
        };
        for (id, resource) in &after {
            let now = shown(resource);
            if self.before.get(id).is_none_or(|before| shown(before) != now) {
                lines.extend(now);
            }
        }
        for id in self.before.keys().filter(|id| !after.contains_key(*id)) {
            lines.push(format!("gone {id}"));
        }
        for service in self.lab.kubernetes.list("services", None) {
            if service["metadata"]["name"] != "kubernetes" {
                lines.push(status(&service));
            }
        }
        let mut text = lines.join("\n");
        for (base, name) in &self.bases {
            text = text.replace(base, name);
        }
        text
    }

    /// The lines that begin with one of the words.
    pub fn lines(&self, words: &[&str]) -> String {
        let text = self.text();
        let wanted = |line: &&str| words.iter().any(|word| line.split(' ').next() == Some(word));
        text.lines().filter(wanted).collect::<Vec<_>>().join("\n")
    }

    /// Why a Service is refused; empty where it is not.
    pub fn refusal(&self, name: &str) -> String {
        let mut services = self.lab.controller().report().services.values();
        let service = services.find(|s| &*s.name.name == name).expect("it is reported");
        let refusals = service.findings.iter().filter(|f| f.severity == Severity::Refusal);
        refusals.map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }
}

fn status(service: &Value) -> String {
    let ingress = service["status"]["loadBalancer"]["ingress"].as_array().cloned();
    let ips: Vec<String> = ingress.unwrap_or_default().iter().map(|i| text(&i["ip"])).collect();
    format!("status {} {}", text(&service["metadata"]["name"]), ips.join(","))
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

fn last(id: &Value) -> String {
    id.as_str().map_or("-".to_owned(), |id| id.rsplit('/').next().unwrap_or("").to_owned())
}

fn group(id: &Value) -> String {
    let id = id.as_str().unwrap_or("").to_lowercase();
    let group = id.split("/resourcegroups/").nth(1).and_then(|rest| rest.split('/').next());
    group.filter(|group| *group != "rg").map(|group| format!("{group}/")).unwrap_or_default()
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn joined(value: &Value) -> String {
    list(value).iter().map(text).collect::<Vec<_>>().join(",")
}

fn map(value: &Value) -> String {
    let fields = value.as_object().cloned().unwrap_or_default();
    let mut pairs: Vec<String> = fields.iter().map(|(k, v)| format!("{k}={}", text(v))).collect();
    pairs.sort();
    pairs.join(" ")
}

/// A word before what is there, nothing for what is not.
fn optional(word: &str, value: &str) -> String {
    if value.is_empty() || value == "-" { String::new() } else { format!(" {word} {value}") }
}

fn head(r: &Value) -> String {
    optional("zones", &joined(&r["zones"]))
        + &optional("edge", &text(&r["extendedLocation"]["name"]))
        + &optional("tags", &map(&r["tags"]))
}

fn show(r: &Value, lines: &mut Vec<String>) {
    let kind = last(&r["type"]).to_lowercase();
    let p = &r["properties"];
    let name = format!("{}{}", group(&r["id"]), last(&r["id"]));
    match kind.as_str() {
        "loadbalancers" => {
            lines.push(format!("lb {name} {}{}", text(&r["sku"]["name"]), head(r)));
            balancer(p, lines);
        }
        "publicipaddresses" => {
            let ip_tags = list(&p["ipTags"]);
            let ip_tags =
                ip_tags.iter().map(|t| format!("{}={}", text(&t["ipTagType"]), text(&t["tag"])));
            lines.push(format!(
                "pip {name} {} {} {} {}{}{}{}{}",
                text(&r["sku"]["name"]),
                text(&p["publicIPAddressVersion"]),
                text(&p["publicIPAllocationMethod"]),
                text(&p["ipAddress"]),
                head(r),
                optional("dns", &text(&p["dnsSettings"]["domainNameLabel"])),
                optional("iptags", &ip_tags.collect::<Vec<_>>().join(",")),
                optional("prefix", &last(&p["publicIPPrefix"]["id"])),
            ));
        }
        "networksecuritygroups" => {
            lines.push(format!("nsg {name}{}", head(r)));
            let mut rules = list(&p["securityRules"]);
            rules.sort_by_key(|rule| rule["properties"]["priority"].as_u64());
            rules.iter().for_each(|rule| security_rule(rule, lines));
        }
        "privatelinkservices" => link(r, &name, lines),
        "subnets" if p["privateLinkServiceNetworkPolicies"] == "Disabled" => {
            lines.push(format!("subnet {name} takes Private Link Services"));
        }
        _ => {}
    }
}

fn balancer(p: &Value, lines: &mut Vec<String>) {
    for f in list(&p["frontendIPConfigurations"]) {
        let q = &f["properties"];
        let place = if q["publicIPAddress"].is_null() {
            format!(
                "{} {} {} {}",
                last(&q["subnet"]["id"]),
                text(&q["privateIPAddressVersion"]),
                text(&q["privateIPAllocationMethod"]),
                text(&q["privateIPAddress"])
            )
        } else {
            let id = &q["publicIPAddress"]["id"];
            format!("pip {}{}", group(id), last(id))
        };
        let zones = optional("zones", &joined(&f["zones"]));
        lines.push(format!("frontend {} {place}{zones}", text(&f["name"])));
    }
    for b in list(&p["backendAddressPools"]) {
        let q = &b["properties"];
        let addresses = list(&q["loadBalancerBackendAddresses"]);
        let mut addresses: Vec<String> =
            addresses.iter().map(|a| text(&a["properties"]["ipAddress"])).collect();
        addresses.sort();
        lines.push(format!("pool {} {}", text(&b["name"]), addresses.join(",")));
    }
    for rule in list(&p["loadBalancingRules"]) {
        let q = &rule["properties"];
        let flag = |key: &str, word: &str| match &q[key] {
            Value::Bool(true) => format!(" {word}"),
            Value::Bool(false) => format!(" no-{word}"),
            _ => String::new(),
        };
        lines.push(format!(
            "rule {} {} {}->{} from {} to {}{} idle {} {}{}{}{}",
            text(&rule["name"]),
            text(&q["protocol"]),
            text(&q["frontendPort"]),
            text(&q["backendPort"]),
            last(&q["frontendIPConfiguration"]["id"]),
            last(&q["backendAddressPool"]["id"]),
            optional("probe", &last(&q["probe"]["id"])),
            text(&q["idleTimeoutInMinutes"]),
            text(&q["loadDistribution"]),
            flag("enableFloatingIP", "float"),
            flag("enableTcpReset", "reset"),
            if q["disableOutboundSnat"] == true { " no-snat" } else { "" },
        ));
    }
    for probe in list(&p["probes"]) {
        let q = &probe["properties"];
        lines.push(format!(
            "probe {} {}:{}{} every {} x{}",
            text(&probe["name"]),
            text(&q["protocol"]),
            text(&q["port"]),
            if q["requestPath"].is_null() { String::new() } else { text(&q["requestPath"]) },
            text(&q["intervalInSeconds"]),
            text(&q["probeThreshold"]),
        ));
    }
    for other in ["outboundRules", "inboundNatRules"] {
        for part in list(&p[other]) {
            lines.push(format!("{other} {}", text(&part["name"])));
        }
    }
}

/// The digest of a rule's name in eight letters.
fn security_rule(rule: &Value, lines: &mut Vec<String>) {
    let q = &rule["properties"];
    let name = text(&rule["name"]);
    let name = name.strip_prefix("k8s-azure-lb_").map_or(name.clone(), |rest| {
        let (head, digest) = rest.rsplit_once('_').unwrap_or((rest, ""));
        format!("{head}_{}", digest.get(..8).unwrap_or(digest))
    });
    let either = |one: &str, many: &str| {
        if q[one].is_null() { format!("[{}]", joined(&q[many])) } else { text(&q[one]) }
    };
    lines.push(format!(
        "open {} {name} {} {} {} {} -> {} {}",
        text(&q["priority"]),
        text(&q["access"]),
        text(&q["direction"]),
        text(&q["protocol"]),
        either("sourceAddressPrefix", "sourceAddressPrefixes"),
        either("destinationAddressPrefix", "destinationAddressPrefixes"),
        either("destinationPortRange", "destinationPortRanges"),
    ));
}

fn link(r: &Value, name: &str, lines: &mut Vec<String>) {
    let p = &r["properties"];
    let fronts = list(&p["loadBalancerFrontendIpConfigurations"]);
    let fronts: Vec<String> = fronts.iter().map(|f| last(&f["id"])).collect();
    lines.push(format!(
        "pls {name} before {} proxy {}{}{}{}{}",
        fronts.join(","),
        text(&p["enableProxyProtocol"]),
        optional("fqdns", &joined(&p["fqdns"])),
        optional("visible", &joined(&p["visibility"]["subscriptions"])),
        optional("approved", &joined(&p["autoApproval"]["subscriptions"])),
        head(r),
    ));
    for c in list(&p["ipConfigurations"]) {
        let q = &c["properties"];
        lines.push(format!(
            "nat {} {} {} {} {}{}",
            text(&c["name"]),
            last(&q["subnet"]["id"]),
            text(&q["privateIPAddressVersion"]),
            text(&q["privateIPAllocationMethod"]),
            text(&q["privateIPAddress"]),
            if q["primary"] == true { " primary" } else { "" },
        ));
    }
}

#[track_caller]
pub fn is(got: &str, want: &str) {
    let want: Vec<&str> = want.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let got: Vec<&str> = got.lines().map(str::trim).collect();
    assert!(got == want, "\nwanted:\n{}\n\ngot:\n{}\n", want.join("\n"), got.join("\n"));
}
