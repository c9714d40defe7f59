//! The templates that make what container load balancers stand on: read, compared, and put to the
//! emulated Azure. Neither Bicep nor Terraform is there to compile them, so they are kept plain.

use crate::common::*;
use azure_emulator::{Azure, Options, Request, SampleGateway, SampleOptions, sample_estate};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const BICEP: &str = include_str!("../../../../deploy/azure/service-gateway.bicep");
const TERRAFORM: &str = include_str!("../../../../deploy/azure/service-gateway.tf");
const EGRESS: &str = include_str!("../../../../deploy/azure/default-egress.json");

const TYPE: &str = "Microsoft.Network/";

/// A resource as a template has it: expressions are texts that begin with `=`.
#[derive(Debug, Default, PartialEq)]
struct Resource {
    kind: String,
    parent: String,
    name: Value,
    body: Map<String, Value>,
}

/// The lines of a block, each a key with its value, up to the brace or bracket that ends it.
struct Lines<'a> {
    rest: std::iter::Peekable<std::vec::IntoIter<&'a str>>,
    /// What stands between a key and its value.
    between: char,
    quote: char,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str, between: char, quote: char) -> Self {
        let all: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        Self { rest: all.into_iter().peekable(), between, quote }
    }

    fn value(&mut self, text: &str) -> Value {
        match text.trim() {
            "{" => Value::Object(self.object()),
            "[" => {
                let mut items = Vec::new();
                loop {
                    match self.rest.next().expect("a list ends") {
                        "]" => return Value::Array(items),
                        item => items.push(self.value(item)),
                    }
                }
            }
            text => match text.strip_prefix(self.quote).and_then(|t| t.strip_suffix(self.quote)) {
                Some(literal) => json!(literal),
                None => json!(format!("={}", expression(text))),
            },
        }
    }

    fn object(&mut self) -> Map<String, Value> {
        let mut found = Map::new();
        loop {
            let line = self.rest.next().expect("an object ends");
            if line == "}" {
                return found;
            }
            let (key, value) = line.split_once(self.between).expect("a key and its value");
            let value = self.value(value);
            found.insert(key.trim().to_owned(), value);
        }
    }
}

/// An expression in the words of both: `gateway_subnet.id`, `gateway_address`.
fn expression(text: &str) -> String {
    let text = text.strip_prefix("azapi_resource.").or(text.strip_prefix("var.")).unwrap_or(text);
    let mut found = String::new();
    for letter in text.chars() {
        if letter.is_ascii_uppercase() {
            found.push('_');
        }
        found.push(letter.to_ascii_lowercase());
    }
    // What is found by its name there is a variable here.
    match &*found {
        "network" | "network.id" | "virtual_network_id" => "network.id".to_owned(),
        _ => found,
    }
}

fn kind_of(text: &str) -> String {
    let (kind, version) = text.split_once('@').expect("a type has a version");
    assert_eq!(version, "2025-05-01", "what Ballast itself speaks to a Service Gateway");
    kind.strip_prefix(TYPE).expect("a network resource").to_owned()
}

/// Resources by their names in the template, in the order written.
fn bicep() -> Vec<(String, Resource)> {
    let mut lines = Lines::of(BICEP, ':', '\'');
    let mut found = Vec::new();
    while let Some(line) = lines.rest.next() {
        let Some(line) = line.strip_prefix("resource ") else { continue };
        let (symbol, rest) = line.split_once(' ').unwrap();
        let kind = kind_of(rest.split('\'').nth(1).unwrap());
        let mut body = lines.object();
        if rest.contains(" existing ") {
            continue;
        }
        let parent = body.shift_remove("parent").unwrap_or(json!("=resource_group_id"));
        let name = body.shift_remove("name").unwrap();
        let parent = parent.as_str().unwrap().to_owned();
        found.push((expression(symbol), Resource { kind, parent, name, body }));
    }
    found
}

fn terraform() -> Vec<(String, Resource)> {
    let mut lines = Lines::of(TERRAFORM, '=', '"');
    let mut found = Vec::new();
    while let Some(line) = lines.rest.next() {
        let Some(symbol) = line.strip_prefix("resource \"azapi_resource\" ") else { continue };
        let symbol = symbol.split('"').nth(1).unwrap().to_owned();
        let mut fields = lines.object();
        let mut take = |key: &str| fields.shift_remove(key);
        let (kind, parent, name) = (take("type"), take("parent_id"), take("name"));
        let Some(Value::Object(mut body)) = take("body") else { panic!("{symbol} has no body") };
        body.extend(take("location").map(|location| ("location".to_owned(), location)));
        assert_eq!(fields, Map::new(), "{symbol}");
        let kind = kind_of(kind.unwrap().as_str().unwrap());
        let parent = parent.unwrap().as_str().unwrap().to_owned();
        found.push((symbol, Resource { kind, parent, name: name.unwrap(), body }));
    }
    found
}

#[test]
fn both_templates_make_the_same() {
    let (bicep, terraform) = (bicep(), terraform());
    assert_eq!(bicep.len(), 5);
    assert_eq!(bicep, terraform);
}

/// What parameters are, and ids of what was made.
fn resolve(value: &Value, known: &BTreeMap<String, Value>) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix('=') {
            Some(name) => {
                known.get(name).cloned().unwrap_or_else(|| panic!("nobody says what {name} is"))
            }
            None => value.clone(),
        },
        Value::Array(items) => items.iter().map(|item| resolve(item, known)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), resolve(value, known)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

fn parameters() -> BTreeMap<String, Value> {
    let all = [
        ("location", json!("eastus")),
        ("resource_group_id", json!(GROUP)),
        ("network.id", json!(net("virtualNetworks/vnet"))),
        ("gateway_subnet_prefix", json!("10.230.0.0/24")),
        ("gateway_address", json!("10.230.0.4")),
        ("node_subnet_name", json!("nodes")),
        ("node_subnet_prefixes", json!(["10.224.0.0/16", "fd00::/64"])),
        ("security_group_id", json!(net("networkSecurityGroups/nsg"))),
        ("route_table_id", json!(net("routeTables/rt"))),
    ];
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Puts everything in the order written, which is one in which it can be made.
fn deploy(cloud: &mut Cloud) -> BTreeMap<String, Value> {
    let mut known = parameters();
    for (symbol, resource) in bicep() {
        let name = resolve(&resource.name, &known);
        let name = name.as_str().unwrap();
        let parent = resolve(&json!(resource.parent), &known);
        let id = match resource.kind.split_once('/') {
            Some((_, child)) => format!("{}/{child}/{name}", parent.as_str().unwrap()),
            None => net(&format!("{}/{name}", resource.kind)),
        };
        cloud.put(&id, resolve(&Value::Object(resource.body), &known));
        known.insert(format!("{symbol}.id"), json!(id));
    }
    let body = EGRESS.replace("NAT_GATEWAY_ID", known["egress.id"].as_str().unwrap());
    let gateway = known["gateway.id"].as_str().unwrap();
    let body = serde_json::from_str(&body).unwrap();
    assert_eq!(cloud.post(&format!("{gateway}/updateServices"), body).status, 200);
    known
}

#[test]
fn the_emulated_azure_takes_what_the_templates_make() {
    let mut cloud = Cloud::new();
    let known = deploy(&mut cloud);
    let id = |symbol: &str| known[&format!("{symbol}.id")].as_str().unwrap().to_owned();
    // As in the sample, which Ballast is tried on.
    let mut sample = Azure::new(Options::default());
    let gateway = SampleGateway::WithDefaultNat;
    sample.seed(sample_estate(&SampleOptions { gateway, ..Default::default() }));
    let services = format!("{}/services", id("gateway"));
    let of = |azure: &mut Azure| {
        let body = azure.handle(Request::new("GET", &services), 1).body.unwrap();
        let only = &body["value"][0];
        let inside = &only["properties"];
        assert_eq!(body["value"].as_array().unwrap().len(), 1, "{body:#}");
        let kind = inside["serviceType"].clone();
        (
            only["name"].clone(),
            kind,
            inside["isDefault"].clone(),
            inside["publicNatGatewayId"].clone(),
        )
    };
    assert_eq!(of(&mut cloud.azure), of(&mut sample));
    let nodes = cloud.get(&id("node_subnet"));
    assert_eq!(nodes["properties"]["serviceGateway"]["id"], id("gateway"));
    // Everything in the subnet leaves through it now.
    assert!(!cloud.azure.egress("10.244.0.9").is_empty());
}
