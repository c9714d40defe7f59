//! Which files the compiler sees, and which of them only in tests.

use crate::tree::{Problem, Tree};
use std::collections::BTreeMap;

/// When a file is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Always.
    Product,
    /// Only in tests.
    Test,
}

/// Every file below a `src/` that `mod` declarations reach.
#[must_use]
pub fn reached(tree: &Tree) -> BTreeMap<String, Scope> {
    let mut found = BTreeMap::new();
    for (path, _) in tree.rust() {
        if path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs") {
            follow(tree, path, Scope::Product, &mut found);
        }
    }
    found
}

fn follow(tree: &Tree, path: &str, scope: Scope, found: &mut BTreeMap<String, Scope>) {
    let Some(text) = tree.get(path) else { return };
    if found.get(path).is_some_and(|known| *known == Scope::Product || scope == Scope::Test) {
        return;
    }
    found.insert(path.to_owned(), scope);
    let folder = children(path);
    let beside = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    for Declaration { name, file, scope: declared } in declarations(text) {
        let scope = if scope == Scope::Test { scope } else { declared };
        if let Some(file) = file {
            follow(tree, &format!("{beside}/{file}"), scope, found);
            continue;
        }
        for child in [format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")] {
            follow(tree, &child, scope, found);
        }
    }
}

/// The folder of a file's child modules.
fn children(path: &str) -> String {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    match file {
        "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
        _ => format!("{folder}/{}", file.trim_end_matches(".rs")),
    }
}

/// `mod name;`
struct Declaration<'a> {
    name: &'a str,
    /// What `#[path = "…"]` says.
    file: Option<&'a str>,
    scope: Scope,
}

/// The declarations of a file.
fn declarations(text: &str) -> Vec<Declaration<'_>> {
    let mut declared = Vec::new();
    let mut scope = Scope::Product;
    let mut file = None;
    for line in text.lines().map(str::trim) {
        if line == "#[cfg(test)]" {
            scope = Scope::Test;
            continue;
        }
        if line.starts_with("#[") {
            let named = line.strip_prefix("#[path = \"").and_then(|l| l.strip_suffix("\"]"));
            file = named.or(file);
            continue;
        }
        let words = line.strip_suffix(';').unwrap_or("");
        let words = words.strip_prefix("pub ").or(words.strip_prefix("pub(crate) "));
        let words = words.unwrap_or(line.strip_suffix(';').unwrap_or(""));
        if let Some(name) = words.strip_prefix("mod ") {
            declared.push(Declaration { name, file, scope });
        }
        (scope, file) = (Scope::Product, None);
    }
    declared
}

/// An integration program beside its crate's first one: it counts the allocations of its whole
/// process.
const ALONE: &str = "crates/observe/tests/memory.rs";

/// The integration tests of a crate are one program: each more is linked anew, with everything that
/// it tests.
#[must_use]
pub fn programs(tree: &Tree) -> Vec<Problem> {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    let mut problems = Vec::new();
    for path in tree.rust().map(|(path, _)| path).filter(|path| *path != ALONE) {
        let Some(name) = program_of(path) else { continue };
        let other = *first.entry(name).or_insert(path);
        if other != path {
            let text = format!(
                "a second integration program of its crate: make it a module beside {other}"
            );
            problems.push(Problem::new(path, text));
        }
    }
    problems
}

/// The crate whose integration tests begin in a file.
fn program_of(path: &str) -> Option<&str> {
    let (name, rest) = path.strip_prefix("crates/")?.split_once("/tests/")?;
    let is_first = rest.split_once('/').is_none_or(|(_, file)| file == "main.rs");
    (is_first && !name.contains('/')).then_some(name)
}

/// Every file below a `src/` is part of its crate.
#[must_use]
pub fn orphans(tree: &Tree) -> Vec<Problem> {
    let reached = reached(tree);
    let inside = |path: &str| path.contains("/src/") && !path.contains("/src/bin/");
    let lost = tree.rust().filter(|(path, _)| inside(path) && !reached.contains_key(*path));
    let text = "no `mod` declaration leads here: declare it, or delete the file";
    lost.map(|(path, _)| Problem::new(path, text)).collect()
}
