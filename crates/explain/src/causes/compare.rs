//! Which part of one outcome corresponds to which part of another, and what differs.

use super::Target;
use super::sheet::{Origin, Own, Path, Step};
use crate::forecast::is_placeholder;
use model::ResourceId;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// A place in an outcome.
pub(super) type Place = (Target, Path);

/// What one outcome has that another one has not, in places of the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Effect {
    /// Resources that are not there, or under another id.
    pub targets: BTreeSet<Target>,
    /// Elements of lists that are not there.
    pub elements: BTreeSet<Place>,
    /// Fields that are not there, or differ.
    pub leaves: BTreeSet<Place>,
    /// What only the other outcome has, in places of that one.
    pub absent: BTreeSet<Place>,
}

impl Effect {
    /// Whether the two are the same.
    pub fn is_empty(&self) -> bool {
        let Self { targets, elements, leaves, absent } = self;
        targets.is_empty() && elements.is_empty() && leaves.is_empty() && absent.is_empty()
    }

    /// The same for an outcome whose places correspond to those of the first.
    pub fn seen_from(&self, alignment: &Alignment, first: &[Own]) -> Self {
        let mut seen = Self { absent: self.absent.clone(), ..Self::default() };
        for own in first {
            let Some(target) = alignment.targets.get(&own.target) else { continue };
            if self.targets.contains(target) {
                seen.targets.insert(own.target.clone());
            }
            let there = |path: &Path| (target.clone(), alignment.follow(&own.target, path));
            for path in own.elements.iter().filter(|p| self.elements.contains(&there(p))) {
                seen.elements.insert((own.target.clone(), path.clone()));
            }
            for (path, _) in own.leaves.iter().filter(|(p, _)| self.leaves.contains(&there(p))) {
                seen.leaves.insert((own.target.clone(), path.clone()));
            }
        }
        seen
    }
}

/// What corresponds to what.
#[derive(Clone, Debug, Default)]
pub(super) struct Alignment {
    /// Resources of the first outcome and of the other.
    pub targets: BTreeMap<Target, Target>,
    elements: BTreeMap<Place, Path>,
    ids: Vec<(String, String)>,
}

impl Alignment {
    /// The place in the other outcome that corresponds to a place in the first.
    pub fn follow(&self, target: &Target, path: &Path) -> Path {
        let known: Vec<Path> = path.elements().collect();
        for element in known.iter().rev() {
            if let Some(there) = self.elements.get(&(target.clone(), element.clone())) {
                let rest = path.below(element);
                return Path(there.0.iter().chain(&rest.0).cloned().collect());
            }
        }
        path.clone()
    }

    /// A value of the other outcome as the first one would have it, for comparison.
    fn translated(&self, value: &Value) -> Value {
        match value {
            // One address that Azure will choose is as good as another.
            Value::String(text) if is_unknown(text) => Value::Null,
            Value::String(text) if text.starts_with('/') => {
                let text = text.to_lowercase();
                let found = self.ids.iter().find_map(|(other, first)| {
                    let rest = text.strip_prefix(other.as_str())?;
                    (rest.is_empty() || rest.starts_with('/')).then(|| format!("{first}{rest}"))
                });
                Value::String(found.unwrap_or(text))
            }
            Value::Array(list) => list.iter().map(|v| self.translated(v)).collect(),
            value => value.clone(),
        }
    }
}

/// Whether a text is an address, or a range of one, that only Azure will know.
pub(super) fn is_unknown(text: &str) -> bool {
    let address = text.split_once('/').map_or(text, |(address, _)| address);
    let address = address.parse::<IpAddr>();
    address.is_ok_and(|a| is_placeholder(a) && !a.is_unspecified() && !a.is_loopback())
}

/// Whether a field is given the first number that is free.
pub(super) fn is_allocated(path: &Path) -> bool {
    path.last() == "priority"
}

fn folded(value: &Value) -> Value {
    Alignment::default().translated(value)
}

/// Finds what corresponds to what: by name, and else by likeness.
pub(super) fn align(first: &[Own], other: &[Own]) -> Alignment {
    let mut alignment = Alignment::default();
    let (mut left, mut right): (Vec<&Own>, Vec<&Own>) = (Vec::new(), Vec::new());
    for own in first {
        match other.iter().find(|o| o.target == own.target) {
            Some(same) => pair_targets(&mut alignment, own, same),
            None => left.push(own),
        }
    }
    right.extend(other.iter().filter(|o| first.iter().all(|f| f.target != o.target)));
    for own in left {
        let likeness = |o: &Own| {
            let same = |leaf: &&(Path, Value)| o.get(&leaf.0) == Some(&leaf.1);
            own.leaves.iter().filter(same).count()
        };
        let kind = own.target.kind();
        let best = (0..right.len())
            .filter(|at| right[*at].target.kind() == kind)
            .max_by_key(|at| (likeness(right[*at]), std::cmp::Reverse(*at)));
        if let Some(at) = best {
            let same = right.remove(at);
            pair_targets(&mut alignment, own, same);
        }
    }
    // The longest first: an element before what it is in.
    alignment.ids.sort_by_key(|(other, _)| std::cmp::Reverse(other.len()));
    alignment
}

fn pair_targets(alignment: &mut Alignment, first: &Own, other: &Own) {
    alignment.targets.insert(first.target.clone(), other.target.clone());
    // What is found cannot be had under another id: to refer to it is a choice.
    let same = first.target == other.target || first.origin == Origin::Made;
    if let (Target::Azure(a), Target::Azure(b), true) = (&first.target, &other.target, same) {
        alignment.ids.push((b.folded().to_owned(), a.folded().to_owned()));
    }
    let mut lists: BTreeMap<Path, Vec<&Path>> = BTreeMap::new();
    for element in &first.elements {
        lists.entry(element.collection()).or_default().push(element);
    }
    for (list, elements) in lists {
        let there = alignment.follow(&first.target, &list);
        let theirs = other.elements.iter().filter(|e| e.collection() == there);
        let mut theirs: Vec<&Path> = theirs.collect();
        let mut open = Vec::new();
        for element in elements {
            match theirs.iter().position(|t| t.last().eq_ignore_ascii_case(element.last())) {
                Some(at) => {
                    let same = theirs.remove(at);
                    pair_elements(alignment, first, element, (other, same));
                }
                None => open.push(element),
            }
        }
        for element in open {
            let best = (0..theirs.len())
                .map(|at| (likeness(first, element, (other, theirs[at])), at))
                .max_by_key(|(count, at)| (*count, std::cmp::Reverse(*at)));
            if let Some((_, at)) = best {
                let same = theirs.remove(at);
                pair_elements(alignment, first, element, (other, same));
            }
        }
    }
}

fn pair_elements(
    alignment: &mut Alignment,
    first: &Own,
    element: &Path,
    (other, same): (&Own, &Path),
) {
    let place = (first.target.clone(), element.clone());
    alignment.elements.insert(place, same.clone());
    let a = child_id(&first.target, element);
    let b = child_id(&other.target, same);
    if let (Some(a), Some(b)) = (a, b) {
        alignment.ids.push((b.folded().to_owned(), a.folded().to_owned()));
    }
}

/// The id of an element directly below `properties`.
pub(super) fn child_id(target: &Target, element: &Path) -> Option<ResourceId> {
    let Target::Azure(id) = target else { return None };
    match element.0.as_slice() {
        [Step::Field(_), Step::Field(list), Step::Item(name)] => Some(id.child(list, name)),
        _ => None,
    }
}

/// How many fields are the same, and how many are there in both.
fn likeness(first: &Own, element: &Path, (other, same): (&Own, &Path)) -> (usize, usize) {
    let below = |own: &Own, element: &Path| -> Vec<(Path, Value)> {
        let leaves = own.leaves.iter().filter(|(path, _)| path.is_below(element));
        leaves.map(|(path, value)| (path.below(element), value.clone())).collect()
    };
    let theirs = below(other, same);
    let ours = below(first, element);
    let both = |leaf: &&(Path, Value)| theirs.iter().any(|(path, _)| *path == leaf.0);
    let same = ours.iter().filter(|leaf| theirs.contains(leaf)).count();
    (same, ours.iter().filter(both).count())
}

/// What differs between two outcomes.
pub(super) fn compare(first: &[Own], other: &[Own]) -> Effect {
    let alignment = align(first, other);
    let mut effect = Effect::default();
    for own in first {
        let found = alignment.targets.get(&own.target);
        if found.is_none() && own.origin == Origin::Found {
            for (target, path) in outline(own) {
                let is_element = own.elements.contains(&path);
                let places = if is_element { &mut effect.elements } else { &mut effect.leaves };
                places.insert((target, path));
            }
        } else if found != Some(&own.target) {
            effect.targets.insert(own.target.clone());
        }
        if let Some(there) = found.and_then(|t| other.iter().find(|o| o.target == *t)) {
            compare_own(&alignment, own, there, &mut effect);
        }
    }
    let matched: BTreeSet<&Target> = alignment.targets.values().collect();
    for own in other.iter().filter(|o| !matched.contains(&o.target)) {
        effect.absent.extend(outline(own));
    }
    effect
}

/// What a Service's part of a resource amounts to: all of it, or elements and single fields.
fn outline(own: &Own) -> Vec<Place> {
    if own.origin == Origin::Made {
        return vec![(own.target.clone(), Path::default())];
    }
    let mut places: Vec<Path> = Vec::new();
    for path in own.elements.iter().chain(own.leaves.iter().map(|(path, _)| path)) {
        if !places.iter().any(|p| path.is_below(p)) {
            places.push(path.clone());
        }
    }
    places.into_iter().map(|path| (own.target.clone(), path)).collect()
}

fn compare_own(alignment: &Alignment, own: &Own, there: &Own, effect: &mut Effect) {
    let target = &own.target;
    let mut gone: Vec<&Path> = Vec::new();
    let mut images = BTreeSet::new();
    for element in &own.elements {
        match alignment.elements.get(&(target.clone(), element.clone())) {
            Some(image) => {
                images.insert(image.clone());
            }
            None if gone.iter().any(|g| element.is_below(g)) => {}
            None => {
                gone.push(element);
                effect.elements.insert((target.clone(), element.clone()));
            }
        }
    }
    let mut seen = BTreeSet::new();
    for (path, value) in &own.leaves {
        if gone.iter().any(|g| path.is_below(g)) {
            continue;
        }
        // Which number is free depends on who came first.
        if is_allocated(path) {
            seen.insert(alignment.follow(target, path));
            continue;
        }
        let image = alignment.follow(target, path);
        let other = there.get(&image);
        if other.map(|v| alignment.translated(v)) != Some(folded(value)) {
            effect.leaves.insert((target.clone(), path.clone()));
        }
        seen.insert(image);
    }
    let mut new: Vec<&Path> = Vec::new();
    for element in there.elements.iter().filter(|e| !images.contains(e)) {
        if !new.iter().any(|n| element.is_below(n)) {
            new.push(element);
            effect.absent.insert((there.target.clone(), element.clone()));
        }
    }
    for (path, _) in &there.leaves {
        if !seen.contains(path) && !new.iter().any(|n| path.is_below(n)) {
            effect.absent.insert((there.target.clone(), path.clone()));
        }
    }
}
