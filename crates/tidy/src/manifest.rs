//! Who may depend on whom.

use crate::PURE;
use crate::tree::{Problem, Tree};
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// What each pure crate may list from outside the workspace.
const ALLOWED: [(&str, &[&str]); 14] = [
    ("admission-rules", &[]),
    ("arm", &["ipnet", "serde", "serde_json", "thiserror"]),
    ("azure-check", &["serde", "serde_json"]),
    ("console", &["jiff"]),
    ("control", &["jiff", "serde", "serde_json"]),
    ("explain", &["ipnet", "serde", "serde_json"]),
    ("health", &["serde_json"]),
    ("lease", &["serde_json"]),
    ("model", &["ipnet", "serde", "serde_json"]),
    ("observe", &["ipnet", "serde", "serde-saphyr", "serde_json", "thiserror"]),
    ("plan", &["ipnet", "md-5", "serde"]),
    ("plan-check", &["serde"]),
    ("plan-drift", &["serde", "serde_json"]),
    ("promise", &["ipnet", "serde_json"]),
];

/// What no pure crate may reach, however far below.
const BANNED: [&str; 20] = [
    "async-std",
    "axum",
    "chrono",
    "futures",
    "futures-util",
    "getrandom",
    "h2",
    "http",
    "hyper",
    "k8s-openapi",
    "kube",
    "kube-client",
    "mio",
    "rand",
    "rand_core",
    "reqwest",
    "rustls",
    "smol",
    "socket2",
    "tokio",
];

/// The workspace's crates, and which of them each may depend on outside its tests.
const ARROWS: [(&str, &[&str]); 23] = [
    ("model", &[]),
    ("arm", &["model"]),
    ("observe", &["arm", "model"]),
    ("plan", &["model"]),
    ("plan-check", &["model", "plan"]),
    ("plan-drift", &["model", "plan"]),
    ("admission-rules", &["model", "plan"]),
    ("explain", &["model", "plan", "plan-drift"]),
    ("fixture", &["model", "plan"]),
    ("promise", &[]),
    ("lease", &[]),
    ("health", &["model"]),
    ("console", &["model", "plan"]),
    ("control", &["arm", "model", "observe", "plan", "plan-drift"]),
    ("edge", &["arm", "control", "lease", "model", "observe"]),
    ("azure-check", &["arm", "model"]),
    ("data-path", &[]),
    ("azure-emulator", &["data-path"]),
    ("kube-emulator", &[]),
    (
        "sim",
        &[
            "arm",
            "azure-emulator",
            "control",
            "kube-emulator",
            "lease",
            "model",
            "observe",
            "plan",
            "plan-check",
            "promise",
        ],
    ),
    ("bench", &["azure-emulator", "control", "kube-emulator", "model", "sim"]),
    (
        "ballast",
        &[
            "admission-rules",
            "arm",
            "azure-check",
            "azure-emulator",
            "bench",
            "console",
            "control",
            "data-path",
            "edge",
            "explain",
            "health",
            "kube-emulator",
            "model",
            "observe",
            "plan",
            "sim",
        ],
    ),
    ("tidy", &[]),
];

pub(crate) fn place(name: &str) -> String {
    format!("crates/{name}/Cargo.toml")
}

/// The names in a section of a manifest, also below `[target.…]`.
pub(crate) fn listed(manifest: &str, sections: &[&str]) -> BTreeSet<String> {
    let Ok(table) = manifest.parse::<Table>() else { return BTreeSet::new() };
    let targets = table.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(|t| t.values()).filter_map(Value::as_table);
    let tables: Vec<&Table> = std::iter::once(&table).chain(targets).collect();
    let mut names = BTreeSet::new();
    for table in tables {
        for section in sections {
            let section = table.get(*section).and_then(Value::as_table);
            names.extend(section.into_iter().flat_map(|s| s.iter()).map(|(key, value)| {
                let package = value.get("package").and_then(Value::as_str);
                package.unwrap_or(key).to_owned()
            }));
        }
    }
    names
}

const BUILT_IN: [&str; 2] = ["dependencies", "build-dependencies"];

fn members(tree: &Tree) -> BTreeMap<&str, BTreeSet<String>> {
    tree.manifests().map(|(name, text)| (name, listed(text, &BUILT_IN))).collect()
}

/// A pure crate lists what `ALLOWED` says and nothing else; its tests have no runtime.
#[must_use]
pub fn direct_dependencies(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let members = members(tree);
    for (name, allowed) in ALLOWED {
        let foreign = members.get(name).into_iter().flatten();
        let foreign = foreign.filter(|d| !members.contains_key(d.as_str()));
        for dependency in foreign.filter(|d| !allowed.contains(&d.as_str())) {
            let text = format!(
                "{name} is pure and may not depend on {dependency}: take what it gives as an \
                 argument, or add it to the list in crates/tidy with a reason in docs/dev/decisions"
            );
            problems.push(Problem::new(place(name), text));
        }
        let manifest = tree.get(&place(name)).unwrap_or("");
        let tests = listed(manifest, &["dev-dependencies"]);
        for dependency in tests.iter().filter(|d| BANNED.contains(&d.as_str())) {
            let text = format!("the tests of a pure crate do without {dependency}");
            problems.push(Problem::new(place(name), text));
        }
    }
    problems
}

/// The packages of the lock file and what each depends on. A package in several versions is one.
fn locked(lock: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut packages: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let Ok(table) = lock.parse::<Table>() else { return packages };
    let entries = table.get("package").and_then(Value::as_array);
    for entry in entries.into_iter().flatten() {
        let Some(name) = entry.get("name").and_then(Value::as_str) else { continue };
        let below = entry.get("dependencies").and_then(Value::as_array);
        let below = below.into_iter().flatten().filter_map(Value::as_str);
        let below = below.filter_map(|d| d.split(' ').next()).map(str::to_owned);
        packages.entry(name.to_owned()).or_default().extend(below);
    }
    packages
}

/// Nothing that a pure crate depends on brings a runtime, a socket, a clock or chance with it.
///
/// The lock file does not tell a crate's tests apart, so the workspace's own crates are followed by
/// their manifests.
#[must_use]
pub fn indirect_dependencies(tree: &Tree) -> Vec<Problem> {
    let members = members(tree);
    let locked = locked(tree.get("Cargo.lock").unwrap_or(""));
    let mut problems = Vec::new();
    for name in PURE {
        let mut path: BTreeMap<&str, String> = BTreeMap::from([(name, name.to_owned())]);
        let mut open = vec![name];
        while let Some(package) = open.pop() {
            let below = members.get(package).or_else(|| locked.get(package));
            for dependency in below.into_iter().flatten() {
                if path.contains_key(dependency.as_str()) {
                    continue;
                }
                let way = format!("{} -> {dependency}", path[package]);
                if BANNED.contains(&dependency.as_str()) {
                    let text = format!("{name} is pure and must not reach {dependency}: {way}");
                    problems.push(Problem::new(place(name), text));
                }
                path.insert(dependency, way);
                open.push(dependency);
            }
        }
    }
    problems
}

/// Crates depend on each other only as `ARROWS` says.
#[must_use]
pub fn arrows(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let members = members(tree);
    for (name, listed) in &members {
        let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| known == name) else {
            let text = "a new crate: say in crates/tidy what it may depend on";
            problems.push(Problem::new(place(name), text));
            continue;
        };
        let inner = listed.iter().filter(|d| members.contains_key(d.as_str()));
        for dependency in inner.filter(|d| !allowed.contains(&d.as_str())) {
            let text = format!("{name} may not depend on {dependency}: arrows point one way");
            problems.push(Problem::new(place(name), text));
        }
    }
    problems
}

/// Every crate has the workspace's lints.
#[must_use]
pub fn lints(tree: &Tree) -> Vec<Problem> {
    let inherits = |text: &str| {
        let table = text.parse::<Table>().ok()?;
        table.get("lints")?.get("workspace")?.as_bool()
    };
    let without = tree.manifests().filter(|(_, text)| inherits(text) != Some(true));
    let text = "add [lints] workspace = true";
    without.map(|(name, _)| Problem::new(place(name), text)).collect()
}
