//! Kubernetes objects from files: a cluster as it would be if they were applied to an empty one.
//!
//! # Guarantees
//! The objects go through the same defaulting and checks as at an API server, and what a server
//! would make up (UIDs, node ports) is the same at every run. An object that has a UID, a status or
//! a deletion timestamp (one that was read from a cluster) keeps it.

use crate::exit::{Exit, Failure};
use edge::terminal::one_line;
use kube_emulator::{ObjectRef, Part, Patch, Store, StoreOptions};
use model::Policy;
use model::world::{Kind, Kubernetes};
use observe::apply::Listing;
use observe::{Interner, KubernetesFact, kubernetes as read};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Kinds that matter, in the order in which they are created.
const PLURALS: [(&str, &str); 5] = [
    ("Namespace", "namespaces"),
    ("Node", "nodes"),
    ("Pod", "pods"),
    ("Service", "services"),
    ("EndpointSlice", "endpointslices"),
];
/// Ends of names of files that a folder is searched for.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// An object and the file it is from.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The file.
    pub path: PathBuf,
    /// The file's text.
    pub text: Arc<str>,
    /// Which of the file's objects it is, from 0.
    pub number: usize,
    /// The object.
    pub object: Value,
}

/// Reads files and folders; `-` is standard input.
///
/// # Errors
/// One cannot be read, or is neither YAML nor JSON.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Manifest>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            for file in files(path)? {
                read_file(&file, &mut found)?;
            }
        } else {
            read_file(path, &mut found)?;
        }
    }
    Ok(found)
}

fn unreadable(path: &Path, why: impl std::fmt::Display, advice: &str) -> Failure {
    let path = path.display();
    Failure::new(Exit::Input, format!("cannot read the manifest {path}: {why}. {advice}"))
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = std::fs::read_dir(folder);
    let entries = entries.map_err(|e| unreadable(folder, e, "Check the path"))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
            path.is_file() && ENDINGS.contains(&ending)
        })
        .collect();
    files.sort();
    Ok(files)
}

/// Folders in a folder, without hidden ones and links.
fn folders(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = std::fs::read_dir(folder);
    let entries = entries.map_err(|e| unreadable(folder, e, "Check the path"))?;
    let is_shown = |entry: &std::fs::DirEntry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        is_folder && !entry.file_name().as_encoded_bytes().starts_with(b".")
    };
    let entries = entries.filter_map(Result::ok).filter(is_shown);
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.sort();
    Ok(found)
}

fn text_of(path: &Path) -> Result<String, Failure> {
    let text = if path.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    text.map_err(|e| unreadable(path, e, "Check the path"))
}

fn read_file(path: &Path, found: &mut Vec<Manifest>) -> Result<(), Failure> {
    found.extend(parse(path, text_of(path)?)?);
    Ok(())
}

/// What a check finds in files and folders.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Survey {
    /// The objects of all files that can be read.
    pub manifests: Vec<Manifest>,
    /// Files that are neither YAML nor JSON.
    pub unread: Vec<Unread>,
    /// Folders that were not looked into.
    pub skipped: Vec<PathBuf>,
}

/// A file that is neither YAML nor JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
    /// Why, and what to do.
    pub why: String,
}

/// Reads files and folders as [`read()`] does, and goes on after a file that is neither YAML nor
/// JSON. Folders in folders are read if `recursive`, and named if not.
///
/// # Errors
/// A path cannot be read at all.
pub fn survey(paths: &[PathBuf], recursive: bool) -> Result<Survey, Failure> {
    let mut survey = Survey::default();
    // The last is looked at first.
    let mut waiting: Vec<PathBuf> = paths.iter().rev().cloned().collect();
    while let Some(path) = waiting.pop() {
        if !path.is_dir() {
            survey.add(&path)?;
            continue;
        }
        for file in files(&path)? {
            survey.add(&file)?;
        }
        let inner = folders(&path)?;
        match recursive {
            true => waiting.extend(inner.into_iter().rev()),
            false => survey.skipped.extend(inner),
        }
    }
    Ok(survey)
}

impl Survey {
    fn add(&mut self, path: &Path) -> Result<(), Failure> {
        let text = text_of(path)?;
        let read: Result<Vec<Value>, _> = serde_saphyr::from_multiple(&text);
        match read {
            Ok(documents) => self.manifests.extend(of_documents(path, text, documents)),
            Err(e) => {
                let at = e.location();
                let advice = match text.contains("{{") {
                    true => {
                        "it looks like a template: check what `helm template` makes of it, as in \
                         `helm template CHART | ballast lint -f -`"
                    }
                    false => "it has to be YAML or JSON, documents separated by ---",
                };
                self.unread.push(Unread {
                    path: path.to_owned(),
                    line: at.map_or(1, |at| at.line()),
                    column: at.map_or(1, |at| at.column()),
                    why: format!("{}; {advice}", one_line(&e.without_snippet().to_string())),
                });
            }
        }
        Ok(())
    }
}

/// Reads the text of a file.
///
/// # Errors
/// It is neither YAML nor JSON.
pub fn parse(path: &Path, text: String) -> Result<Vec<Manifest>, Failure> {
    // Without the lines around the mistake: a Secret may be among the manifests.
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).map_err(|e| {
        let why = e.without_snippet();
        unreadable(path, why, "It has to be YAML or JSON, documents separated by ---")
    })?;
    Ok(of_documents(path, text, documents))
}

fn of_documents(path: &Path, text: String, documents: Vec<Value>) -> Vec<Manifest> {
    let mut objects = Vec::new();
    for document in documents {
        flatten(document, &mut objects);
    }
    let text: Arc<str> = text.into();
    let manifest = |(number, object)| {
        let text = Arc::clone(&text);
        Manifest { path: path.to_owned(), text, number, object }
    };
    objects.into_iter().enumerate().map(manifest).collect()
}

/// A `List` is its items.
fn flatten(document: Value, found: &mut Vec<Value>) {
    let kind = document.get("kind").and_then(Value::as_str).unwrap_or_default();
    let is_list = kind.ends_with("List");
    match document {
        Value::Object(mut object) if is_list => {
            if let Some(Value::Array(items)) = object.remove("items") {
                for item in items {
                    flatten(item, found);
                }
            }
        }
        Value::Object(_) => found.push(document),
        // An empty document between two lines of ---.
        _ => {}
    }
}

/// What is made up for Services that no cluster has seen yet.
#[must_use]
pub fn stand_ins(manifests: &[Manifest]) -> Option<String> {
    let new = manifests.iter().filter(|m| {
        text(&m.object, "/kind") == "Service" && text(&m.object, "/metadata/uid").is_empty()
    });
    let names: Vec<&str> = new.map(|m| text(&m.object, "/metadata/name")).collect();
    (!names.is_empty()).then(|| {
        format!(
            "Not in a cluster yet: {}. The UID, which names in Azure are made from, and node ports \
             that are not given are placeholders.",
            names.join(", ")
        )
    })
}

/// The cluster that the objects make; kinds that do not matter are left out.
///
/// # Errors
/// An API server would refuse one.
pub fn cluster(
    manifests: &[Manifest],
    policy: &Policy,
    classes: &BTreeSet<String>,
) -> Result<Kubernetes, Failure> {
    let mut store = Store::new(StoreOptions { seed: 1, ..StoreOptions::default() });
    let mut originals: BTreeMap<(&str, String, String), &Value> = BTreeMap::new();
    for (kind, plural) in PLURALS {
        for manifest in manifests.iter().filter(|m| text(&m.object, "/kind") == kind) {
            let made = create(&mut store, plural, manifest)?;
            originals.insert((plural, made.0, made.1), &manifest.object);
        }
    }
    let mut held = Kubernetes::default();
    let mut listing = Listing::default();
    let mut interner = Interner::default();
    for (kind, plural) in PLURALS {
        let kind = kind_of(kind);
        let mut apply = |fact| observe::apply(&mut held, &mut listing, fact);
        apply(KubernetesFact::ListBegin(kind));
        for object in store.list(plural, None) {
            let mut object = Value::clone(&object);
            let place = (text(&object, "/metadata/namespace"), text(&object, "/metadata/name"));
            let original = originals.get(&(plural, place.0.to_owned(), place.1.to_owned()));
            if let Some(original) = original {
                keep_history(&mut object, original);
            }
            // What cannot be read was refused when it was created.
            if let Some(fact) = fact(kind, &object, policy, classes, &mut interner) {
                apply(fact);
            }
            let gated = read::gated_pod_from_value(&object, &mut interner).ok().flatten();
            if let Some(pod) = gated.filter(|_| kind == Kind::Pods) {
                apply(KubernetesFact::GatedPod(pod));
            }
        }
        apply(KubernetesFact::ListEnd(kind, None));
    }
    held.complete.insert(Kind::GatedPods);
    Ok(held)
}

/// The objects that an API server would refuse, each with why.
#[must_use]
pub fn refused_by_server(manifests: &[Manifest]) -> Vec<(&Manifest, String)> {
    let mut store = Store::new(StoreOptions { seed: 1, ..StoreOptions::default() });
    let mut refused = Vec::new();
    for (kind, plural) in PLURALS {
        for manifest in manifests.iter().filter(|m| text(&m.object, "/kind") == kind) {
            if let Err(why) = offer(&mut store, plural, manifest) {
                refused.push((manifest, why));
            }
        }
    }
    refused
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn kind_of(name: &str) -> Kind {
    match name {
        "Namespace" => Kind::Namespaces,
        "Node" => Kind::Nodes,
        "Pod" => Kind::Pods,
        "Service" => Kind::Services,
        _ => Kind::EndpointSlices,
    }
}

fn create(
    store: &mut Store,
    plural: &str,
    manifest: &Manifest,
) -> Result<(String, String), Failure> {
    offer(store, plural, manifest).map_err(|why| refused(manifest, &why))
}

/// Creates it; gives namespace and name, or why a server would refuse it.
fn offer(store: &mut Store, plural: &str, manifest: &Manifest) -> Result<(String, String), String> {
    let mut object = manifest.object.clone();
    let namespaced = !matches!(plural, "namespaces" | "nodes");
    let namespace = match text(&object, "/metadata/namespace") {
        _ if !namespaced => String::new(),
        "" => "default".to_owned(),
        namespace => namespace.to_owned(),
    };
    let name = text(&object, "/metadata/name").to_owned();
    if namespaced && store.get(ObjectRef::new("namespaces", "", &namespace)).is_err() {
        let made = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": namespace}});
        store.create(made, 0).map_err(|e| e.to_string())?;
    }
    let there = ObjectRef::new(plural, &namespace, &name);
    if !name.is_empty() && store.get(there).is_ok() && is_given(plural, &namespace, &name) {
        return Ok((namespace, name));
    }
    let status = forget_history(&mut object);
    let made = store.create(object, 0).map_err(|e| e.message().to_owned())?;
    let name = text(&made, "/metadata/name").to_owned();
    if let Some(status) = status {
        let there = ObjectRef::new(plural, &namespace, &name);
        let patch = Patch::Merge(json!({ "status": status }));
        // An old status that a server would not take any more matters as little as none.
        let _ = store.patch(there, Part::Status, &patch, 0);
    }
    Ok((namespace, name))
}

/// What every cluster has.
fn is_given(plural: &str, namespace: &str, name: &str) -> bool {
    plural == "namespaces" || (plural, namespace, name) == ("services", "default", "kubernetes")
}

/// What an API server would store if the second took the place of the first.
///
/// # Errors
/// It would refuse that, and why.
pub fn replaced(live: &Value, wanted: &Value) -> Result<Value, String> {
    let mut store = Store::new(StoreOptions { seed: 1, ..StoreOptions::default() });
    let of = |object: &Value| Manifest {
        path: PathBuf::new(),
        text: "".into(),
        number: 0,
        object: object.clone(),
    };
    let (namespace, name) = offer(&mut store, "services", &of(live))?;
    let made = store.get(ObjectRef::new("services", &namespace, &name));
    let made = made.map_err(|e| e.message().to_owned())?;
    let mut next = wanted.clone();
    forget_history(&mut next);
    next["apiVersion"] = json!("v1");
    next["kind"] = json!("Service");
    next["metadata"]["uid"] = made["metadata"]["uid"].clone();
    let next = store.replace(next, 0).map_err(|e| e.message().to_owned())?;
    let mut next = Value::clone(&next);
    keep_history(&mut next, wanted);
    Ok(next)
}

/// A manifest that an API server would refuse.
#[must_use]
pub fn refused(manifest: &Manifest, why: &str) -> Failure {
    let (path, object) = (manifest.path.display(), &manifest.object);
    let (kind, name) = (text(object, "/kind"), text(object, "/metadata/name"));
    Failure::new(
        Exit::Input,
        format!("{kind} {name:?} in {path} would be refused: {why}. Correct the manifest"),
    )
}

/// Takes out what only a server writes; gives back the status.
fn forget_history(object: &mut Value) -> Option<Value> {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        for key in ["resourceVersion", "deletionTimestamp", "managedFields"] {
            metadata.remove(key);
        }
    }
    if let Some(Value::Object(spec)) = object.get_mut("spec") {
        // The other cluster's range need not be the one here.
        let headless = spec.get("clusterIP").and_then(Value::as_str) == Some("None");
        if !headless {
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
    }
    object.as_object_mut().and_then(|o| o.remove("status"))
}

/// Puts back what an object that was read from a cluster has.
fn keep_history(object: &mut Value, original: &Value) {
    let metadata = |value: &Value| -> Map<String, Value> {
        value.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let old = metadata(original);
    for key in ["uid", "deletionTimestamp", "finalizers"] {
        if let Some(value) = old.get(key) {
            object["metadata"][key] = value.clone();
        }
    }
    if let Some(status) = original.get("status").filter(|s| s.is_object()) {
        object["status"] = status.clone();
    }
}

fn fact(
    kind: Kind,
    object: &Value,
    policy: &Policy,
    classes: &BTreeSet<String>,
    interner: &mut Interner,
) -> Option<KubernetesFact> {
    let fact = match kind {
        Kind::Services => read::service_from_value(object, classes, interner)
            .map(|service| KubernetesFact::Service(Box::new(service))),
        Kind::Nodes => {
            read::node_from_value(object, &policy.group, interner).map(KubernetesFact::Node)
        }
        Kind::EndpointSlices => read::slice_from_value(object, interner).map(KubernetesFact::Slice),
        Kind::Pods | Kind::GatedPods => {
            read::pod_from_value(object, interner).map(KubernetesFact::Pod)
        }
        Kind::Namespaces => read::namespace_from_value(object, interner)
            .map(|(name, labels)| KubernetesFact::Namespace(name, labels)),
    };
    fact.ok()
}
