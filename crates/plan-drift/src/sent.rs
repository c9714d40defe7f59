//! What we have sent and whose outcome is not known: a part that stands as it was sent is nobody
//! else's doing, whatever the answer was.

use super::agrees;
use super::parts::parts;
use super::tables;
use model::ResourceId;
use model::drift::Part;
use model::plan::Action;
use model::world::Azure;
use serde_json::Value;
use std::collections::BTreeMap;

/// Parts as a write makes them; `None` where it takes them away.
type Made = BTreeMap<Part, Option<Value>>;

/// Parts as we have sent them, by resource.
#[derive(Clone, Debug, Default)]
pub(super) struct Sent(BTreeMap<ResourceId, BTreeMap<Part, Vec<Option<Value>>>>);

impl Sent {
    /// Notes a write that may have taken effect, or may yet.
    pub fn note(&mut self, id: &ResourceId, action: &Action, azure: &Azure) {
        let known = self.0.entry(id.clone()).or_default();
        for (part, value) in made(action, azure) {
            let values = known.entry(part).or_default();
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }

    /// Forgets what is read since a write has succeeded: all of a resource, rows of a table.
    pub fn confirm(&mut self, id: &ResourceId, action: &Action, azure: &Azure) {
        match action {
            Action::UpdateServices(_) | Action::UpdateLocations(_) => {
                let Some(known) = self.0.get_mut(id) else { return };
                made(action, azure).keys().for_each(|part| drop(known.remove(part)));
            }
            Action::Put { .. } | Action::MigratePools { .. } | Action::Delete { .. } => {
                self.0.remove(id);
            }
            Action::DeleteChild => {}
        }
    }

    /// Forgets all but these parts of resources.
    pub fn keep(&mut self, is_kept: impl Fn(&ResourceId, &Part) -> bool) {
        for (id, parts) in &mut self.0 {
            parts.retain(|part, _| is_kept(id, part));
        }
        self.0.retain(|_, parts| !parts.is_empty());
    }

    /// Whether a part stands as we have sent it.
    pub fn covers(&self, id: &ResourceId, part: &Part, found: Option<&Value>) -> bool {
        let values = self.0.get(id).and_then(|known| known.get(part));
        values.into_iter().flatten().any(|sent| match (sent, found) {
            (Some(sent), Some(found)) => agrees(sent, found),
            (sent, found) => sent.is_none() && found.is_none(),
        })
    }
}

/// What a write changes. What it leaves as it was found may be others' doing.
fn made(action: &Action, azure: &Azure) -> Made {
    match action {
        Action::Put { before, after } => {
            let was = before.as_ref().map(parts).unwrap_or_default();
            let is = parts(after);
            let gone = was.keys().filter(|part| !is.contains_key(*part));
            let gone: Vec<_> = gone.map(|part| (part.clone(), None)).collect();
            let new = is.into_iter().filter(|(part, value)| was.get(part) != Some(value));
            new.map(|(part, value)| (part, Some(value))).chain(gone).collect()
        }
        Action::Delete { .. } => BTreeMap::from([(Part::whole(), None)]),
        Action::UpdateServices(update) => tables::made_services(update),
        Action::UpdateLocations(update) => tables::made_locations(azure, update),
        // No plan compares what these are about part by part.
        Action::MigratePools { .. } | Action::DeleteChild => Made::new(),
    }
}
