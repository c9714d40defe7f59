//! What a Service causes, resource by resource.

use super::compare::{Alignment, Place, child_id, is_allocated, is_unknown};
use super::sheet::{self, Leaf, Own, Path, Stage};
use super::{Causes, Source, Target};
use model::plan::{Action, Change};
use model::{ResourceId, World};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How a resource stands to what the Service asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Standing {
    /// All that the Service asks of it is there.
    AsWanted,
    /// It comes into being.
    Created,
    /// It changes.
    Changed,
    /// It goes away.
    Deleted,
}

/// A resource with what the Service causes in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedResource {
    /// Which.
    pub target: Target,
    /// How it stands.
    pub standing: Standing,
    /// Where it comes from that it is there, under this id.
    pub sources: BTreeSet<Source>,
    /// Fields outside of lists.
    pub fields: Vec<Field>,
    /// Elements of its lists, as rules and probes.
    pub parts: Vec<Part>,
}

/// An element of a list of a resource.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// Where.
    pub path: Path,
    /// Whose it is.
    pub share: Share,
    /// Where it comes from that it is there, under this name.
    pub sources: BTreeSet<Source>,
    /// Its fields.
    pub fields: Vec<Field>,
}

/// Whose a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Share {
    /// The Service's own: it goes with it.
    Own,
    /// It stands without the Service, which adds these fields.
    Added,
    /// It stands without the Service, which uses it.
    Used,
}

/// A field.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Field {
    /// The whole way to it.
    pub path: Path,
    /// As it is in Azure; nothing where it is not there.
    pub now: Option<Value>,
    /// As it is to be; nothing where it is to go.
    pub wanted: Option<Value>,
    /// Where it comes from.
    pub sources: BTreeSet<Source>,
}

/// What is looked at.
pub(super) struct Sight<'a> {
    /// Everything, as it is.
    pub world: &'a World,
    /// Everything, as it is to be.
    pub settled: &'a World,
    /// Whose part is looked for.
    pub stage: &'a Stage<'a>,
    /// The Service's part, as it is to be.
    pub wanted: &'a [Own],
    /// What is known of causes.
    pub causes: &'a Causes,
    /// What is to be done.
    pub changes: &'a [Change],
}

/// Everything that a Service causes.
pub(super) fn build(sight: &Sight<'_>) -> Vec<ExplainedResource> {
    let wanted = sight.wanted.iter().map(|own| &own.target).collect();
    let now = sheet::leaves(sight.world, sight.stage, &wanted);
    let settled = sheet::leaves(sight.settled, sight.stage, &wanted);
    let used = used_parts(sight, &settled);
    let going = going(sight);
    let mut found = Vec::new();
    for own in sight.wanted {
        let there = now.get(&own.target);
        let mut resource = resource(sight, own, there);
        let gone = going.get(&own.target).map(Vec::as_slice).unwrap_or_default();
        for (path, value) in gone {
            let field = Field {
                path: path.clone(),
                now: Some(value.clone()),
                wanted: None,
                sources: BTreeSet::new(),
            };
            place(&mut resource, field, Share::Own, sight.causes);
        }
        for (path, value) in used.iter().filter(|(t, _)| *t == own.target).map(|(_, leaf)| leaf) {
            let field = Field {
                path: path.clone(),
                now: there.and_then(|leaves| standing_value(leaves, path, value)),
                wanted: Some(value.clone()),
                sources: BTreeSet::new(),
            };
            place(&mut resource, field, Share::Used, sight.causes);
        }
        resource.standing = standing(&resource, there.is_some());
        found.push(resource);
    }
    for (target, leaves) in going {
        if found.iter().all(|r| r.target != target) {
            found.push(leaving(sight, target, &leaves));
        }
    }
    found
}

fn resource(sight: &Sight<'_>, own: &Own, there: Option<&Vec<Leaf>>) -> ExplainedResource {
    let mut resource = ExplainedResource {
        target: own.target.clone(),
        standing: Standing::AsWanted,
        sources: sight.causes.of(&own.target, &Path::default()),
        fields: Vec::new(),
        parts: Vec::new(),
    };
    for (path, value) in &own.leaves {
        let field = Field {
            path: path.clone(),
            now: there.and_then(|leaves| standing_value(leaves, path, value)),
            wanted: Some(value.clone()),
            sources: field_sources(sight.causes, &own.target, path),
        };
        let share = match path.elements().next() {
            Some(element) if !own.elements.contains(&element) => Share::Added,
            _ => Share::Own,
        };
        place(&mut resource, field, share, sight.causes);
    }
    resource
}

/// Where a field comes from, and the elements it is in; the outermost one says so itself.
fn field_sources(causes: &Causes, target: &Target, path: &Path) -> BTreeSet<Source> {
    let mut sources = causes.of(target, path);
    sources.extend(path.elements().skip(1).flat_map(|element| causes.of(target, &element)));
    sources
}

fn leaving(sight: &Sight<'_>, target: Target, leaves: &[Leaf]) -> ExplainedResource {
    let deleted = sight.changes.iter().any(|change| {
        let deletes = matches!(change.action, Action::Delete { .. } | Action::DeleteChild);
        deletes && target == Target::Azure(change.target.clone())
    });
    let standing = if deleted { Standing::Deleted } else { Standing::Changed };
    let mut resource = ExplainedResource {
        target,
        standing,
        sources: BTreeSet::new(),
        fields: Vec::new(),
        parts: Vec::new(),
    };
    for (path, value) in leaves {
        let now = Some(value.clone());
        let field = Field { path: path.clone(), now, wanted: None, sources: BTreeSet::new() };
        place(&mut resource, field, Share::Own, sight.causes);
    }
    resource
}

/// Puts a field where it belongs; an element's name goes into its head.
fn place(resource: &mut ExplainedResource, field: Field, share: Share, causes: &Causes) {
    let Some(element) = field.path.elements().next() else {
        resource.fields.push(field);
        return;
    };
    let at = resource.parts.iter().position(|part| part.path == element);
    let at = at.unwrap_or_else(|| {
        let sources = causes.of(&resource.target, &element);
        let fields = Vec::new();
        resource.parts.push(Part { path: element.clone(), share, sources, fields });
        resource.parts.len() - 1
    });
    let Some(part) = resource.parts.get_mut(at) else { return };
    // What the element is told from the others by stands in its head.
    let value = field.wanted.as_ref().or(field.now.as_ref()).and_then(Value::as_str);
    let is_name = field.path.below(&element).0.len() == 1 && value == Some(element.last());
    if is_name {
        let named = |s: &Source| !matches!(s, Source::Default { .. });
        part.sources.extend(field.sources.into_iter().filter(named));
    } else {
        part.fields.push(field);
    }
}

/// A value as it is now; of a list only what is the Service's.
fn standing_value(leaves: &[Leaf], path: &Path, wanted: &Value) -> Option<Value> {
    let (_, now) = leaves.iter().find(|(p, _)| p == path)?;
    match (now, wanted) {
        (Value::Array(now), Value::Array(wanted)) if wanted.iter().any(|w| now.contains(w)) => {
            Some(wanted.iter().filter(|w| now.contains(w)).cloned().collect())
        }
        (Value::Array(_), Value::Array(_)) => None,
        (now, _) => Some(now.clone()),
    }
}

fn standing(resource: &ExplainedResource, exists: bool) -> Standing {
    let own = resource.parts.iter().filter(|part| part.share != Share::Used);
    let mut fields = resource.fields.iter().chain(own.flat_map(|part| &part.fields));
    match (exists, fields.all(|f| f.now == f.wanted)) {
        (false, _) => Standing::Created,
        (true, true) => Standing::AsWanted,
        (true, false) => Standing::Changed,
    }
}

/// Parts of its resources that the Service refers to and that stand without it.
fn used_parts(sight: &Sight<'_>, settled: &BTreeMap<Target, Vec<Leaf>>) -> Vec<(Target, Leaf)> {
    let leaves = sight.wanted.iter().flat_map(|own| &own.leaves);
    let ids: BTreeSet<ResourceId> =
        leaves.filter_map(|(_, v)| reference(v)).map(ResourceId::new).collect();
    let mut found = Vec::new();
    for own in sight.wanted {
        for (path, value) in settled.get(&own.target).into_iter().flatten() {
            let Some(element) = path.elements().next() else { continue };
            let id = child_id(&own.target, &element);
            if !own.elements.contains(&element) && id.is_some_and(|id| ids.contains(&id)) {
                found.push((own.target.clone(), (path.clone(), value.clone())));
            }
        }
    }
    found
}

/// What the Service has and is to lose, by resource.
fn going(sight: &Sight<'_>) -> BTreeMap<Target, Vec<Leaf>> {
    let uid = sight.stage.uid;
    let base = uid.base_name();
    let mut found = BTreeMap::new();
    for change in sight.changes.iter().filter(|c| c.causes.contains(uid)) {
        let wire = sight.stage.wire;
        let leaves = match &change.action {
            Action::Delete { before } => sheet::leaves_of(before, wire),
            Action::Put { before: Some(before), after } => {
                let after = sheet::leaves_of(after, wire);
                let gone = |leaf: &Leaf| after.iter().all(|(path, _)| *path != leaf.0);
                let is_ours = |leaf: &Leaf| {
                    let named = |path: Path| plan::own::name::is_of(path.last(), &base);
                    change.causes.len() == 1 || leaf.0.elements().any(named)
                };
                let leaves = sheet::leaves_of(before, wire);
                leaves.into_iter().filter(|leaf| gone(leaf) && is_ours(leaf)).collect()
            }
            _ => Vec::new(),
        };
        if !leaves.is_empty() {
            found.insert(Target::Azure(change.target.clone()), leaves);
        }
    }
    found
}

/// The id that a value is.
fn reference(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| text.starts_with("/subscriptions/"))
}

fn has_placeholder(value: &Value) -> bool {
    match value {
        Value::String(text) => is_unknown(text),
        Value::Array(list) => list.iter().any(has_placeholder),
        _ => false,
    }
}

/// Says of every field that nothing was found to be the cause of why it is so.
pub(super) fn note_rest(
    causes: &mut Causes,
    wanted: &[Own],
    planned: &[Own],
    alignment: &Alignment,
    defaults: &BTreeMap<Place, Vec<String>>,
) {
    for own in wanted {
        let target = alignment.targets.get(&own.target);
        let there = target.and_then(|t| planned.iter().find(|o| o.target == *t));
        for (path, value) in &own.leaves {
            let place = (own.target.clone(), path.clone());
            let anew = there.and_then(|o| o.get(&alignment.follow(&own.target, path)));
            let named = causes.by_place.get(&place).is_some_and(|sources| !sources.is_empty());
            let changed_by = defaults.get(&place).cloned().unwrap_or_default();
            let broad = causes.broad.remove(&place);
            let source = if anew.is_some_and(has_placeholder) {
                Source::Azure { what: "chosen by Azure" }
            } else if named {
                continue;
            } else if !changed_by.is_empty() {
                Source::Default { changed_by }
            } else if let Some(broad) = broad {
                causes.by_place.insert(place, broad);
                continue;
            } else if is_allocated(path) {
                Source::FirstFree
            } else if reference(value).is_some() {
                Source::Reference
            } else if anew != Some(value) {
                Source::Azure { what: "as it is in Azure" }
            } else {
                Source::Default { changed_by }
            };
            causes.by_place.entry(place).or_default().insert(source);
        }
    }
}
