//! What is wrong with manifests, and where in which file.

use crate::exit::Failure;
use crate::located::{Located, Place, objects};
use crate::manifest::{self, Manifest, Unread};
use model::report::{Finding, Severity};
use model::{Policy, ServiceName, World};
use plan::ask::annotation;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// An object that an API server would not take.
pub const INVALID_MANIFEST: &str = "InvalidManifest";

/// A file that is neither YAML nor JSON.
pub const UNREADABLE_MANIFEST: &str = "UnreadableManifest";

/// Rules about what stands in Azure and which nodes there are: no mistake of a manifest, and not
/// known to a check without a cluster and without Azure.
pub const BEYOND_MANIFESTS: [&str; 7] = [
    plan::NO_BACKENDS,
    "PinnedAddressNotFound",
    "PublicIpNotFound",
    "SecurityGroupNotFound",
    "SubnetNotFound",
    "TargetPortUnknown",
    "UnknownNodeSet",
];

/// How bad a mistake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The Service would be planned.
    Warning,
    /// The Service would be refused.
    Error,
}

/// A mistake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mistake {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
    /// How bad it is.
    pub level: Level,
    /// The rule that is broken.
    pub rule: String,
    /// Kind, namespace and name of the object.
    pub object: String,
    /// The annotation or field.
    pub key: String,
    /// Its value.
    pub value: String,
    /// What is wrong, and what is allowed.
    pub message: String,
}

/// What checking gave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lint {
    /// How many Services were checked.
    pub services: usize,
    /// In the order of the files; those of files that cannot be read come last.
    pub mistakes: Vec<Mistake>,
    /// Folders that were not looked into.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<PathBuf>,
}

impl Lint {
    /// How many there are of a level.
    #[must_use]
    pub fn count(&self, level: Level) -> usize {
        self.mistakes.iter().filter(|m| m.level == level).count()
    }

    /// Adds what was not checked: each file that cannot be read is a mistake.
    pub fn add_unchecked(&mut self, unread: Vec<Unread>, skipped: Vec<PathBuf>) {
        self.mistakes.extend(unread.into_iter().map(|file| Mistake {
            path: file.path,
            line: file.line,
            column: file.column,
            level: Level::Error,
            rule: UNREADABLE_MANIFEST.to_owned(),
            object: "file".to_owned(),
            key: String::new(),
            value: String::new(),
            message: file.why,
        }));
        self.skipped.extend(skipped);
    }
}

/// Checks objects as a cluster with this cloud config would.
///
/// # Errors
/// What a server takes alone cannot be taken together.
pub fn lint(
    manifests: &[Manifest],
    policy: &Policy,
    classes: &BTreeSet<String>,
) -> Result<Lint, Failure> {
    let mut places = Places::default();
    let mut mistakes = Vec::new();
    let mut refused = BTreeSet::new();
    for (manifest, why) in manifest::refused_by_server(manifests) {
        refused.insert((manifest.path.clone(), manifest.number));
        let key = why.split(':').next().unwrap_or_default().trim().to_owned();
        let finding = Raw { rule: INVALID_MANIFEST, key: &key, value: "", message: why.clone() };
        mistakes.push(places.mistake(manifest, Level::Error, &finding));
    }
    let sound: Vec<Manifest> = manifests
        .iter()
        .filter(|m| !refused.contains(&(m.path.clone(), m.number)))
        .cloned()
        .collect();
    let kubernetes = manifest::cluster(&sound, policy, classes)?;
    let mut world = World { kubernetes, ..World::default() };
    crate::estate::Estate::assumed(policy).fill(&mut world, policy);
    // What is wrong with a Service alone is said at once; what is wrong with it beside others, once
    // they stand.
    let forecast = explain::forecast::forecast(&world, policy);
    for report in [&forecast.report, &forecast.last] {
        let by_service = report.services.values().map(|s| ("Service", &s.name, &s.findings));
        let by_pod = report.pods.iter().map(|(name, findings)| ("Pod", name, findings));
        for (kind, name, findings) in by_service.chain(by_pod) {
            let Some(manifest) = sound.iter().find(|m| is_named(m, kind, name)) else { continue };
            for finding in findings.iter().filter(|f| !BEYOND_MANIFESTS.contains(&f.rule)) {
                mistakes.push(places.mistake(manifest, level(finding), &Raw::of(finding)));
            }
        }
    }
    let order: BTreeMap<&Path, usize> =
        manifests.iter().enumerate().rev().map(|(at, m)| (m.path.as_path(), at)).collect();
    mistakes.sort_by(|a, b| {
        let key = |m: &Mistake| (order.get(m.path.as_path()).copied(), m.line, m.column);
        key(a).cmp(&key(b)).then_with(|| (&a.rule, &a.value).cmp(&(&b.rule, &b.value)))
    });
    mistakes.dedup();
    let is_service = |m: &&Manifest| text(&m.object, "/kind") == "Service";
    let services = manifests.iter().filter(is_service).count();
    Ok(Lint { services, mistakes, skipped: Vec::new() })
}

fn level(finding: &Finding) -> Level {
    match finding.severity {
        Severity::Note | Severity::Hold => Level::Warning,
        Severity::Refusal => Level::Error,
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn namespace(object: &Value) -> &str {
    match text(object, "/metadata/namespace") {
        "" => "default",
        namespace => namespace,
    }
}

fn is_named(manifest: &Manifest, kind: &str, name: &ServiceName) -> bool {
    let object = &manifest.object;
    text(object, "/kind") == kind
        && namespace(object) == &*name.namespace
        && text(object, "/metadata/name") == &*name.name
}

/// A finding's texts.
struct Raw<'a> {
    rule: &'a str,
    key: &'a str,
    value: &'a str,
    message: String,
}

impl<'a> Raw<'a> {
    fn of(finding: &'a Finding) -> Self {
        let Finding { rule, key, value, .. } = finding;
        Self { rule, key, value, message: finding.text() }
    }
}

/// The places of all files' keys, read when they are first asked for.
#[derive(Default)]
struct Places {
    files: BTreeMap<PathBuf, Vec<Located>>,
}

impl Places {
    fn mistake(&mut self, manifest: &Manifest, level: Level, raw: &Raw<'_>) -> Mistake {
        let object = &manifest.object;
        let Place { line, column } = self.place(manifest, raw.key);
        let name = text(object, "/metadata/name");
        Mistake {
            path: manifest.path.clone(),
            line,
            column,
            level,
            rule: raw.rule.to_owned(),
            object: format!("{} {}/{name}", text(object, "/kind"), namespace(object)),
            key: raw.key.to_owned(),
            value: raw.value.to_owned(),
            message: raw.message.clone(),
        }
    }

    /// Where a key stands; where it does not, its object's name, else its first line.
    fn place(&mut self, manifest: &Manifest, key: &str) -> Place {
        let read = || objects(&manifest.text);
        let objects = self.files.entry(manifest.path.clone()).or_insert_with(read);
        let found = objects.get(manifest.number).and_then(|object| {
            let path: Vec<&str> = match annotation::short(key).is_some() {
                true => vec!["metadata", "annotations", key],
                false => key.split('.').map(|k| k.split('[').next().unwrap_or(k)).collect(),
            };
            let outer = |path: &[&str]| path.split_last().and_then(|(_, p)| object.place(p));
            object
                .place(&path)
                .or_else(|| outer(&path))
                .or_else(|| object.place(&["metadata", "name"]))
                .or_else(|| object.start())
        });
        found.unwrap_or(Place { line: 1, column: 1 })
    }
}
