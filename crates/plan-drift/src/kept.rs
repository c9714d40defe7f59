//! Drift that is left, in a form that outlives the process: a new leader leaves it, too.
//!
//! # Guarantees
//! A part is recalled only while it is to be as it was to be when it was noted. One that is to
//! become something else, because its Service, nodes or the cloud config were edited meanwhile, is
//! written.
//!
//! # Format
//! JSON: by resource, whose id is in lower case, by kind and name of the part, a mark of how the
//! part is to be.

use super::{Confirmed, Parts, overlay, parts};
use model::ResourceId;
use model::drift::{Drift, Part};
use model::ledger::DRIFT_BYTES;
use model::plan::{Action, Change, change_of};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Bytes that a part and its resource take in JSON beside their names.
const MARKS: usize = 12;
/// The mark of a part that is to be gone.
const GONE: &str = "-";

/// Parts that are left as others made them, each with a mark of how it is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept(BTreeMap<String, BTreeMap<String, String>>);

impl Kept {
    /// Reads what [`Kept::encode`] wrote; anything else is nothing.
    #[must_use]
    pub fn read(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap_or_default())
    }

    /// As text; empty where nothing is left.
    #[must_use]
    pub fn encode(&self) -> String {
        match self.0.is_empty() {
            true => String::new(),
            false => serde_json::to_string(&self.0).unwrap_or_default(),
        }
    }

    /// What to note of this drift, with the changes that would repair it, in the order of a plan.
    /// For a resource that is being written, and so not planned, the earlier note stays.
    #[must_use]
    pub fn noted<'d>(
        &self,
        drifts: impl IntoIterator<Item = &'d Drift>,
        changes: &[Arc<Change>],
    ) -> Self {
        let mut kept = Self::default();
        let mut bytes = 0;
        // Drift is sorted by resource.
        let mut wanted: Option<(&ResourceId, Parts)> = None;
        for Drift { target, part, .. } in drifts {
            let (id, name) = (target.folded(), text(part));
            let mark = match change_of(changes, target).map(|change| &change.action) {
                Some(Action::Put { after, .. }) => {
                    if wanted.as_ref().is_none_or(|(of, _)| *of != target) {
                        wanted = Some((target, parts(after)));
                    }
                    wanted.as_ref().map(|(_, wanted)| mark(wanted, part))
                }
                // Rows of the Service Gateway are not noted.
                Some(_) => None,
                None => self.0.get(&id).and_then(|known| known.get(&name)).cloned(),
            };
            let Some(mark) = mark else { continue };
            bytes += id.len() + name.len() + mark.len() + MARKS;
            if bytes > DRIFT_BYTES {
                break;
            }
            kept.0.entry(id).or_default().insert(name, mark);
        }
        kept
    }
}

/// Takes a resource of which nothing is known for left as it is to be, as far as that was noted:
/// what others made of it has drifted.
pub fn recall(confirmed: &mut Confirmed, kept: &Kept, changes: &[Arc<Change>]) {
    if kept.0.is_empty() {
        return;
    }
    for change in changes {
        let Action::Put { before, after } = &change.action else { continue };
        let Some(noted) = kept.0.get(&change.target.folded()) else { continue };
        let known = confirmed.resources.contains_key(&change.target);
        // The plan may have been made before all was read: what is noted of it is looked for again.
        if known && !confirmed.recalled.contains(&change.target) {
            continue;
        }
        let wanted = parts(after);
        let is_noted =
            |part: &Part| noted.get(&text(part)).is_some_and(|known| *known == mark(&wanted, part));
        let ours = match before {
            None if is_noted(&Part::whole()) => after.clone(),
            None => continue,
            Some(found) => {
                let there = parts(found);
                let all = there.keys().chain(wanted.keys());
                let held: BTreeSet<Part> = all.filter(|part| is_noted(part)).cloned().collect();
                if held.is_empty() {
                    continue;
                }
                overlay(found, after, &held)
            }
        };
        confirmed.composed.insert(change.target.clone());
        confirmed.recalled.insert(change.target.clone());
        confirmed.resources.insert(change.target.clone(), ours);
    }
}

fn text(part: &Part) -> String {
    format!("{} {}", part.kind, part.name)
}

fn mark(wanted: &Parts, part: &Part) -> String {
    if part.is_whole() {
        return sum(wanted.iter().map(|(part, value)| format!("{} {value}", text(part))));
    }
    wanted.get(part).map_or_else(|| GONE.to_owned(), |value| sum([value.to_string()]))
}

/// FNV-1a: a mark tells one wish from another, and protects nothing.
fn sum(texts: impl IntoIterator<Item = String>) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in texts.into_iter().flat_map(String::into_bytes) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_again_and_nothing_else_is() {
        let part = BTreeMap::from([("rule a-TCP-80".to_owned(), "00".to_owned())]);
        let kept = Kept(BTreeMap::from([("/subscriptions/s".to_owned(), part)]));
        assert_eq!(Kept::read(&kept.encode()), kept);
        assert_eq!(Kept::default().encode(), "");
        for odd in ["", "[]", "{\"a\": 1}", "what"] {
            assert_eq!(Kept::read(odd), Kept::default(), "{odd}");
        }
    }

    #[test]
    fn what_has_no_room_in_the_ledger_is_not_noted() {
        let part = Part { kind: "rule", name: Arc::from("a-TCP-80") };
        let of = |n: u32| ResourceId::new(format!("/subscriptions/s/loadBalancers/lb{n:06}"));
        let drift = |n: u32| Drift {
            target: of(n),
            part: part.clone(),
            departure: model::drift::Departure::Gone,
            services: BTreeSet::new(),
        };
        let drifts: Vec<Drift> = (0..3_000).map(drift).collect();
        let marks = BTreeMap::from([(text(&part), "00".to_owned())]);
        let noted = |n: u32| (of(n).folded(), marks.clone());
        let known = Kept((0..3_000).map(noted).collect());
        assert!(known.encode().len() > DRIFT_BYTES);
        let kept = known.noted(&drifts, &[]).encode().len();
        assert!(kept <= DRIFT_BYTES && kept > DRIFT_BYTES * 9 / 10, "{kept}");
    }

    #[test]
    fn marks_tell_wishes_apart() {
        let part = |name: &str| Part { kind: "rule", name: Arc::from(name) };
        let wanted = |minutes: u8| Parts::from([(part("a"), serde_json::json!({"idle": minutes}))]);
        assert_eq!(mark(&wanted(4), &part("a")), mark(&wanted(4), &part("a")));
        assert_ne!(mark(&wanted(4), &part("a")), mark(&wanted(9), &part("a")));
        assert_ne!(mark(&wanted(4), &Part::whole()), mark(&wanted(9), &Part::whole()));
        assert_eq!(mark(&wanted(4), &part("b")), GONE);
    }
}
