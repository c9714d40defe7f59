//! What packages of others may be part of the program: licences, sources, bans, duplicates.
//!
//! `deny.toml` says it, in the form that cargo-deny reads. The checks are ours because cargo-deny
//! would have to be built from some 300 crates first, and Cargo already tells all that they need.

use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// A package as Cargo knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence expression, where it has one.
    pub licence: Option<String>,
    /// Where it comes from; nothing for the workspace's own.
    pub source: Option<String>,
}

/// Whether an SPDX expression is met by licences of a list.
///
/// `A/B` is the older way to write `A OR B`. `AND` binds closer than `OR`; `A WITH X` is one
/// licence.
#[must_use]
pub fn allowed(expression: &str, list: &[&str]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, list };
    let met = reader.either();
    met == Some(true) && reader.words.is_empty()
}

struct Reader<'a> {
    words: &'a [&'a str],
    list: &'a [&'a str],
}

impl Reader<'_> {
    fn takes(&mut self, word: &str) -> bool {
        let there = self.words.first() == Some(&word);
        if there {
            self.words = &self.words[1..];
        }
        there
    }

    fn either(&mut self) -> Option<bool> {
        let mut met = self.both()?;
        while self.takes("OR") {
            met |= self.both()?;
        }
        Some(met)
    }

    fn both(&mut self) -> Option<bool> {
        let mut met = self.one()?;
        while self.takes("AND") {
            met &= self.one()?;
        }
        Some(met)
    }

    fn one(&mut self) -> Option<bool> {
        if self.takes("(") {
            let met = self.either()?;
            return self.takes(")").then_some(met);
        }
        let (name, rest) = self.words.split_first()?;
        self.words = rest;
        if !self.takes("WITH") {
            return Some(self.list.contains(name));
        }
        let (exception, rest) = self.words.split_first()?;
        self.words = rest;
        Some(self.list.contains(&format!("{name} WITH {exception}").as_str()))
    }
}

fn texts<'a>(table: &'a Table, section: &str, key: &str) -> Vec<&'a str> {
    let list = table.get(section).and_then(|s| s.get(key)).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(name).collect()
}

/// A package in `deny.toml`: its name, or a table with it.
fn name(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("crate").and_then(Value::as_str))
}

/// What packages break of the rules in `deny.toml`, a sentence each.
#[must_use]
pub fn problems(rules: &str, packages: &[Package]) -> Vec<String> {
    let Ok(rules) = rules.parse::<Table>() else {
        return vec!["deny.toml is not TOML".to_owned()];
    };
    let mut found = Vec::new();
    let licences = texts(&rules, "licenses", "allow");
    let registries = texts(&rules, "sources", "allow-registry");
    let banned = texts(&rules, "bans", "deny");
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for Package { name, version, licence, source } in packages {
        let Some(source) = source else { continue };
        versions.entry(name).or_default().insert(version);
        let licence = licence.as_deref().unwrap_or("none");
        if !allowed(licence, &licences) {
            found.push(format!("{name} {version}: its licence is not allowed: {licence}"));
        }
        if !registries.iter().any(|registry| source == &format!("registry+{registry}")) {
            found.push(format!("{name} {version}: its source is not allowed: {source}"));
        }
        if banned.contains(&name.as_str()) {
            found.push(format!("{name} {version}: it is banned"));
        }
    }
    let mut known: BTreeSet<&str> = texts(&rules, "bans", "skip").into_iter().collect();
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        // One of them, mostly the older, is named with the reason; the others need none.
        let named = |version: &&&str| known.contains(format!("{name}@{version}").as_str());
        let unnamed = versions.iter().filter(|version| !named(version)).count();
        if unnamed > 1 {
            found.push(format!("{name}: several versions: {versions:?}"));
        }
        known.retain(|entry| !versions.iter().any(|v| *entry == format!("{name}@{v}")));
    }
    found.extend(known.iter().map(|entry| format!("{entry}: skipped, but not there twice")));
    found
}
