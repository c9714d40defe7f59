//! Modules that lean on each other in a circle.
//!
//! A module is a file. It leans on the modules whose things it names: in a `use`, or by a path from
//! `crate`, `self` or `super`. What another module re-exports counts for the module that defines
//! it, as long as it is re-exported by its name. A module, those above and those below it are one
//! family, and what is compiled only for tests has no part in this.

mod standing;

use crate::path::{Named, named};
use crate::source::products;
use crate::tree::{Problem, Tree};
use standing::{STANDING, Standing};
use std::collections::{BTreeMap, BTreeSet};

/// The names from the crate's root on.
type Module<'a> = Vec<&'a str>;

/// Which module leans on which, and the lines that say so.
type Edges<'a> = BTreeMap<Module<'a>, BTreeMap<Module<'a>, Vec<String>>>;

/// Where the circles are listed that stay.
const LIST: &str = "crates/tidy/src/circle/standing.rs";

/// Re-exports of re-exports are followed so far.
const HOPS: usize = 8;

/// A crate's modules and what they name.
#[derive(Default)]
struct Crate<'a> {
    files: BTreeSet<Module<'a>>,
    /// Those in files, and those inside another's file.
    modules: BTreeSet<Module<'a>>,
    /// What a name leads to that a module re-exports.
    exports: BTreeMap<(Module<'a>, &'a str), Module<'a>>,
    /// In which module, in which file.
    named: Vec<(Module<'a>, &'a str, Named<'a>)>,
}

/// A file's crate and module.
fn module(path: &str) -> Option<(&str, Module<'_>)> {
    let (name, file) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let mut parts: Module<'_> = file.strip_suffix(".rs")?.split('/').collect();
    parts.pop_if(|part| matches!(*part, "lib" | "main" | "mod"));
    Some((name, parts))
}

fn crates(tree: &Tree) -> BTreeMap<&str, Crate<'_>> {
    let mut crates: BTreeMap<&str, Crate<'_>> = BTreeMap::new();
    for (path, text) in products(tree) {
        if let Some((name, module)) = module(path) {
            crates.entry(name).or_default().add(module, path, text);
        }
    }
    crates
}

impl<'a> Crate<'a> {
    fn add(&mut self, module: Module<'a>, path: &'a str, text: &'a str) {
        for named in named(text) {
            let here = [&module[..], &named.within[..]].concat();
            if let Some(name) = named.export {
                self.exports.insert((here.clone(), name), named.parts.clone());
            }
            self.modules.insert(here.clone());
            self.named.push((here, path, named));
        }
        self.modules.insert(module.clone());
        self.files.insert(module);
    }

    /// The file's module that a module is in.
    fn file(&self, mut module: Module<'a>) -> Module<'a> {
        while !module.is_empty() && !self.files.contains(&module) {
            module.pop();
        }
        module
    }

    /// The module that defines what a path leads to; none outside the crate.
    fn target(&self, here: &[&'a str], parts: &[&'a str], hops: usize) -> Option<Module<'a>> {
        let ups = parts.iter().take_while(|part| **part == "super").count();
        let (mut at, mut rest) = match *parts.first()? {
            "crate" => (Vec::new(), &parts[1..]),
            "self" => (here.to_vec(), &parts[1..]),
            "super" => (here[..here.len().saturating_sub(ups)].to_vec(), &parts[ups..]),
            name => {
                let below = [here, &[name]].concat();
                (self.modules.contains(&below).then_some(below)?, &parts[1..])
            }
        };
        while let Some((name, after)) = rest.split_first() {
            let below = [&at[..], &[*name]].concat();
            if !self.modules.contains(&below) {
                break;
            }
            (at, rest) = (below, after);
        }
        let export = rest.first().and_then(|name| self.exports.get(&(at.clone(), *name)));
        let defined = export.filter(|_| hops > 0).and_then(|export| {
            let parts = [&export[..], &rest[1..]].concat();
            self.target(&at, &parts, hops - 1)
        });
        Some(defined.unwrap_or_else(|| self.file(at)))
    }

    fn edges(&self) -> Edges<'a> {
        let mut edges = Edges::new();
        for (here, path, named) in &self.named {
            let from = self.file(here.clone());
            let Some(to) = self.target(here, &named.parts, HOPS) else { continue };
            if !from.starts_with(&to) && !to.starts_with(&from) {
                let line = format!("{path}:{} {}", named.line, named.parts.join("::"));
                edges.entry(from).or_default().entry(to).or_default().push(line);
            }
        }
        edges
    }
}

/// All that a module leans on, by way of others, too.
fn reach<'a, 'e>(edges: &'e Edges<'a>, from: &'e Module<'a>) -> BTreeSet<&'e Module<'a>> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        let next = edges.get(module).into_iter().flat_map(BTreeMap::keys);
        open.extend(next.filter(|to| found.insert(*to)));
    }
    found
}

/// The largest sets of modules in which each leads to every other.
fn knots<'a>(edges: &Edges<'a>) -> BTreeSet<Vec<Module<'a>>> {
    let reach: BTreeMap<_, _> = edges.keys().map(|from| (from, reach(edges, from))).collect();
    let leads =
        |from: &Module<'a>, to: &Module<'a>| reach.get(from).is_some_and(|all| all.contains(to));
    let mut knots = BTreeSet::new();
    for from in edges.keys().filter(|from| leads(from, from)) {
        let there = edges.keys().filter(|to| leads(from, to) && leads(to, from));
        knots.insert(there.cloned().collect());
    }
    knots
}

/// What to do about a circle, and below it every line by which one module leans on another.
fn described(edges: &Edges<'_>, circle: &[Module<'_>]) -> String {
    let mut text = format!(
        "modules in a circle: move what one takes from another to where both may take it from, or \
         list the circle with its reason in {LIST}"
    );
    for from in circle {
        let to = edges.get(from).into_iter().flatten();
        for (to, lines) in to.filter(|(to, _)| circle.contains(to)) {
            let lines = lines.join("\n    ");
            text += &format!("\n  {} -> {}\n    {lines}", from.join("::"), to.join("::"));
        }
    }
    text
}

/// No modules of a crate lean on each other in a circle, but for those that are listed with their
/// reason; and what is listed is there.
#[must_use]
pub fn circles(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, of) in crates(tree) {
        let edges = of.edges();
        let mut known: Vec<&Standing> = STANDING.iter().filter(|s| s.package == name).collect();
        for circle in knots(&edges) {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            if let Some(at) = known.iter().position(|standing| names == standing.modules) {
                known.remove(at);
            } else {
                problems
                    .push(Problem::new(format!("crates/{name}/src"), described(&edges, &circle)));
            }
        }
        problems.extend(known.into_iter().map(gone));
    }
    problems
}

/// A circle is listed, and is not there.
fn gone(standing: &Standing) -> Problem {
    let Standing { package, modules, reason } = standing;
    let modules = modules.join(", ");
    let text = format!("{package}: {modules} are no circle as listed ({reason}): take it out");
    Problem::new(LIST, text)
}
