//! Dependencies that a manifest lists and no line uses.
//!
//! A text search, not a compiler: it is done in a moment, and a tool for the same would have to be
//! built first. A crate counts as used where its name starts a path (`name::`) or a `use`.

use crate::manifest::{listed, place};
use crate::source::{code, products};
use crate::tree::{Problem, Tree, crate_of};
use std::collections::BTreeMap;
use toml::{Table, Value};

/// Packages whose library has another name.
const LIBRARIES: [(&str, &str); 1] = [("md-5", "md5")];

/// What a manifest lists although no line names it, and why.
const SILENT: [(&str, &str); 2] = [
    // Its tests include a file of fuzz/ that uses it.
    ("ballast", "plan-check"),
    // kube needs one version of the Kubernetes API chosen by a feature of this package.
    ("edge", "k8s-openapi"),
];

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a line has a path or a `use` that starts with a name.
fn starts_path(line: &str, name: &str) -> bool {
    let bytes = line.as_bytes();
    line.match_indices(name).any(|(start, _)| {
        let before = &line[..start];
        let end = start + name.len();
        let own_word = start.checked_sub(1).is_none_or(|at| !is_word(bytes[at]))
            && bytes.get(end).is_none_or(|byte| !is_word(*byte));
        let below =
            before.strip_suffix("::").is_some_and(|b| b.bytes().last().is_some_and(is_word));
        let path = line[end..].starts_with("::");
        let import = before.trim_end().ends_with("use") || before.trim_end().ends_with("crate");
        own_word && !below && (path || import)
    })
}

fn library(package: &str) -> String {
    let known = LIBRARIES.iter().find(|(listed, _)| *listed == package);
    known.map_or_else(|| package.replace('-', "_"), |(_, library)| (*library).to_owned())
}

fn used(files: &[(&str, &str)], package: &str) -> bool {
    let name = library(package);
    files.iter().any(|(_, text)| code(text).any(|(_, line)| starts_path(line, &name)))
}

/// Files by the crate that they belong to.
fn by_crate<'a>(files: Vec<(&'a str, &'a str)>) -> BTreeMap<&'a str, Vec<(&'a str, &'a str)>> {
    let mut found: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for (path, text) in files {
        if let Some(name) = crate_of(path) {
            found.entry(name).or_default().push((path, text));
        }
    }
    found
}

/// Every dependency is used, and one that only tests use is listed for tests.
#[must_use]
pub fn dependencies(tree: &Tree) -> Vec<Problem> {
    let products = by_crate(products(tree));
    let all = by_crate(tree.rust().collect());
    let files = |of: &BTreeMap<_, Vec<_>>, name: &str| of.get(name).cloned().unwrap_or_default();
    let mut problems = Vec::new();
    for (name, text) in tree.manifests() {
        let (products, all) = (files(&products, name), files(&all, name));
        let silent = |package: &str| SILENT.contains(&(name, package));
        for package in listed(text, &["dependencies", "build-dependencies"]) {
            if !silent(&package) && !used(&products, &package) {
                let text = if used(&all, &package) {
                    format!("only tests use {package}: list it below [dev-dependencies]")
                } else {
                    format!("nothing uses {package}: take it out")
                };
                problems.push(Problem::new(place(name), text));
            }
        }
        for package in listed(text, &["dev-dependencies"]) {
            if !silent(&package) && !used(&all, &package) {
                let text = format!("no test uses {package}: take it out");
                problems.push(Problem::new(place(name), text));
            }
        }
    }
    problems
}

/// Every dependency of the workspace's manifest is one of a crate.
#[must_use]
pub fn workspace(tree: &Tree) -> Vec<Problem> {
    let table = tree.get("Cargo.toml").and_then(|text| text.parse::<Table>().ok());
    let table = table.as_ref().and_then(|t| t.get("workspace")?.get("dependencies")?.as_table());
    let packages = table.into_iter().flat_map(|t| t.iter().map(package));
    let sections = ["dependencies", "build-dependencies", "dev-dependencies"];
    let wanted: Vec<String> =
        tree.manifests().flat_map(|(_, text)| listed(text, &sections)).collect();
    let lost = packages.filter(|package| !wanted.contains(package));
    lost.map(|package| Problem::new("Cargo.toml", format!("no crate lists {package}: take it out")))
        .collect()
}

fn package((key, value): (&String, &Value)) -> String {
    value.get("package").and_then(Value::as_str).unwrap_or(key).to_owned()
}
