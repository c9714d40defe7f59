//! `schema/contracts.json`, compiled once into tables that are quick to look into.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

#[derive(Deserialize)]
struct File {
    providers: Vec<FileProvider>,
}

#[derive(Deserialize)]
struct FileProvider {
    provider: String,
    versions: Vec<String>,
    contracts: Vec<FileContract>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileContract {
    api_version: String,
    kinds: BTreeMap<String, String>,
    patches: BTreeMap<String, String>,
    actions: BTreeMap<String, String>,
    types: BTreeMap<String, BTreeMap<String, String>>,
    enums: BTreeMap<String, Vec<String>>,
}

/// A resource provider.
pub(super) struct Provider {
    pub(super) name: String,
    /// All its api-versions, oldest first.
    pub(super) versions: Vec<String>,
    /// The contracts that are known, oldest first; never empty.
    contracts: Vec<Contract>,
}

impl Provider {
    pub(super) fn has(&self, version: &str) -> bool {
        self.versions.binary_search_by(|known| known.as_str().cmp(version)).is_ok()
    }

    /// The contract that a request of a version is held to; without a version, the newest.
    pub(super) fn contract(&self, version: Option<&str>) -> &Contract {
        let newest = &self.contracts[self.contracts.len() - 1];
        // Versions are dates: they sort as text.
        let of = |version: &str| self.contracts.iter().find(|known| version <= &*known.version);
        version.and_then(of).unwrap_or(newest)
    }
}

/// Which requests a table is of.
#[derive(Clone, Copy)]
pub(super) enum Table {
    Kinds,
    Patches,
    Actions,
}

/// The types of one api-version.
pub(super) struct Contract {
    version: String,
    /// Lower-case path of types, by table -> the type of the body.
    roots: [BTreeMap<String, usize>; 3],
    pub(super) shapes: Vec<Shape>,
    pub(super) enums: Vec<Enumeration>,
}

impl Contract {
    /// The type of the body of a request on this path of types.
    pub(super) fn root(&self, table: Table, types: &[String]) -> Option<usize> {
        self.roots[table as usize].get(&types.join("/").to_lowercase()).copied()
    }

    /// Whether a type has a member.
    pub(super) fn has(&self, shape: usize, member: &str) -> bool {
        self.shapes[shape].member(member).is_some()
    }
}

/// The values that an enumeration has; they are compared without regard to case.
pub(super) struct Enumeration {
    pub(super) name: String,
    pub(super) values: Vec<String>,
}

/// An object's members.
pub(super) struct Shape {
    /// As a refusal names the type.
    pub(super) name: String,
    /// By name.
    members: Vec<(String, Member)>,
    pub(super) required: Vec<String>,
    /// What only the service writes.
    pub(super) read_only: Vec<String>,
}

impl Shape {
    pub(super) fn member(&self, name: &str) -> Option<&Member> {
        let at = self.members.binary_search_by(|(known, _)| known.as_str().cmp(name));
        at.ok().map(|at| &self.members[at].1)
    }
}

/// What a member may be, and who writes it.
pub(super) struct Member {
    pub(super) form: Value,
    pub(super) writer: Writer,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Writer {
    Client,
    Service,
}

/// What a value may be.
pub(super) enum Value {
    Text,
    Whole,
    Real,
    Truth,
    Anything,
    Enumeration(usize),
    Object(usize),
    List(Box<Value>),
    Map(Box<Value>),
}

/// Security rules have codes of their own for these, as the service's answers show.
const OWN_CODES: &[&str] = &["SecurityRuleProtocol", "SecurityRuleAccess", "SecurityRuleDirection"];

/// Reads the file. Each contract of a provider holds what it does not say from the one before.
pub(super) fn compile(file: &str) -> Vec<Provider> {
    let file: File = serde_json::from_str(file).expect("a test reads the file that is built in");
    file.providers.into_iter().map(provider).collect()
}

fn provider(from: FileProvider) -> Provider {
    let (mut types, mut enums) = (BTreeMap::new(), BTreeMap::new());
    let mut contracts = Vec::new();
    for contract in from.contracts {
        types.extend(contract.types);
        enums.extend(contract.enums);
        let names = Names {
            shapes: types.keys().map(String::as_str).collect(),
            enums: enums.keys().map(String::as_str).collect(),
        };
        let roots = [&contract.kinds, &contract.patches, &contract.actions].map(|table| {
            let root = |(kind, of): (&String, &String)| (kind.to_lowercase(), names.shape(of));
            table.iter().map(root).collect()
        });
        let shapes = types.iter().map(|(name, members)| shape(&names, name, members)).collect();
        let enumeration = |(name, values): (&String, &Vec<String>)| Enumeration {
            name: name.clone(),
            values: values.clone(),
        };
        let enums = enums.iter().map(enumeration).collect();
        contracts.push(Contract { version: contract.api_version, roots, shapes, enums });
    }
    Provider { name: from.provider, versions: from.versions, contracts }
}

/// Names in order; a name's number is its place.
struct Names<'a> {
    shapes: Vec<&'a str>,
    enums: Vec<&'a str>,
}

impl Names<'_> {
    fn shape(&self, name: &str) -> usize {
        self.shapes.binary_search(&name).expect("the generator writes each type that it names")
    }

    fn form(&self, text: &str) -> Value {
        let inside = |open: char, close: char| text.strip_prefix(open)?.strip_suffix(close);
        if let Some(of) = inside('[', ']') {
            return Value::List(Box::new(self.form(of)));
        }
        if let Some(of) = inside('{', '}') {
            return Value::Map(Box::new(self.form(of)));
        }
        match text {
            "text" => Value::Text,
            "int" => Value::Whole,
            "float" => Value::Real,
            "bool" => Value::Truth,
            "any" => Value::Anything,
            other => match other.strip_prefix("enum ") {
                Some(name) if OWN_CODES.contains(&name) => Value::Text,
                Some(name) => {
                    self.enums.binary_search(&name).map_or(Value::Text, Value::Enumeration)
                }
                None => Value::Object(self.shape(other)),
            },
        }
    }
}

fn shape(names: &Names<'_>, name: &str, from: &BTreeMap<String, String>) -> Shape {
    let (mut required, mut read_only) = (BTreeSet::new(), BTreeSet::new());
    let mut members = Vec::new();
    for (member, text) in from {
        let writer = if text.starts_with('~') { Writer::Service } else { Writer::Client };
        if writer == Writer::Service {
            read_only.insert(member.clone());
        }
        if text.starts_with('!') {
            required.insert(member.clone());
        }
        let form = names.form(text.trim_start_matches(['~', '!']));
        members.push((member.clone(), Member { form, writer }));
    }
    let name = name.replace(".properties", "Properties").replace("PropertiesFormat", "Properties");
    Shape {
        name,
        members,
        required: required.into_iter().collect(),
        read_only: read_only.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_held_to_its_version_or_the_next_newer_one() {
        let all = compile(include_str!("../../schema/contracts.json"));
        let network = all.iter().find(|provider| provider.name == "Microsoft.Network").unwrap();
        let of = |version: &str| network.contract(Some(version)).version.as_str();
        let asked = ["2024-05-01", "2025-05-01", "2025-07-01", "2025-09-01", "2026-03-01"];
        let held = ["2025-05-01", "2025-05-01", "2025-09-01", "2025-09-01", "2026-03-01"];
        assert_eq!(asked.map(of), held);
        assert_eq!(network.contract(None).version, "2026-03-01");
        assert!(network.has("2025-05-01") && !network.has("2025-04-01"));
        assert!(network.versions.is_sorted());
    }

    #[test]
    fn what_a_newer_contract_does_not_say_is_as_before() {
        let all = compile(include_str!("../../schema/contracts.json"));
        for provider in &all {
            for contract in &provider.contracts {
                let kinds = &contract.roots[Table::Kinds as usize];
                assert!(kinds.len() >= 4, "{}: {}", provider.name, contract.version);
                for root in kinds.values() {
                    assert!(contract.has(*root, "properties"), "{}", contract.shapes[*root].name);
                }
            }
        }
    }
}
