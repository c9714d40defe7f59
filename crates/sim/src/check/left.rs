//! S2 with `driftPolicy: report` (docs/drift.md): what another client changed stays until the
//! operator has it put right, whatever else of the resource is written meanwhile, and whichever
//! process writes it.

use super::azure::Write;
use super::cost::snapshot;
use super::form::{bare, parts, same};
use crate::stage::Stage;
use crate::tally::count;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Collections of parts that are looked at.
const COLLECTIONS: [&str; 3] = ["loadBalancingRules", "probes", "securityRules"];

/// Parts that another client changed, by the ids of their resources in small letters.
pub(crate) type Left = BTreeMap<String, Vec<Part>>;

/// A part as another client left it.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    collection: &'static str,
    name: String,
    /// Nothing where it was taken away.
    is: Option<Value>,
}

impl Part {
    fn stands_in(&self, resource: &Value) -> bool {
        match (parts(resource, self.collection).get(&self.name), &self.is) {
            (Some(now), Some(then)) => same(now, then),
            (now, then) => now.is_none() && then.is_none(),
        }
    }
}

/// Parts that differ between two states of a resource.
fn changed(was: &Value, is: &Value) -> Vec<Part> {
    let mut all = Vec::new();
    for collection in COLLECTIONS {
        let (was, is) = (parts(was, collection), parts(is, collection));
        let names: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
        for name in names {
            let (was, is) = (was.get(name).map(|part| bare(part)), is.get(name).map(|p| bare(p)));
            if was != is {
                all.push(Part { collection, name: name.clone(), is });
            }
        }
    }
    all
}

impl Stage {
    /// Another client has changed things since, and that is to stay.
    pub(crate) fn leave_as_it_is(&mut self, before: &BTreeMap<String, Value>) {
        let now = snapshot(self);
        let both = now.iter().filter_map(|(id, is)| Some((id, before.get(id)?, is)));
        let all = both.map(|(id, was, is)| (id.clone(), changed(was, is)));
        self.ledger.left = all.filter(|(_, parts)| !parts.is_empty()).collect();
    }

    /// A write has taken effect.
    pub(super) fn check_left(&mut self, write: &Write<'_>) {
        let (Some(left), Some(after)) =
            (self.ledger.left.get(&write.path.to_lowercase()), write.after)
        else {
            return;
        };
        let undone = left.iter().find(|part| !part.stands_in(after)).cloned();
        count(&mut self.tally.checks, "S2");
        if let Some(Part { collection, name, .. }) = undone {
            let resource = write.path.rsplit('/').next().unwrap_or("");
            let text = format!(
                "{collection}/{name} of {resource} is not as another client left it, and drift is \
                 only reported"
            );
            self.fail("S2", text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_another_client_changed_made_or_took_away_stands_as_it_left_it() {
        let balancer = |rules: Value| json!({"properties": {"loadBalancingRules": rules}});
        let rule = |name: &str, minutes: u64, etag: &str| {
            let inside = json!({ "idleTimeoutInMinutes": minutes });
            json!({"name": name, "etag": etag, "properties": inside})
        };
        let was = balancer(json!([rule("a", 4, "1"), rule("b", 4, "1"), rule("c", 4, "1")]));
        let is = balancer(json!([rule("a", 4, "2"), rule("b", 7, "2")]));
        let left = changed(&was, &is);
        let names: Vec<&str> = left.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["b", "c"]);
        let stand = |rules: Value| left.iter().all(|part| part.stands_in(&balancer(rules.clone())));
        assert!(stand(json!([rule("a", 9, "3"), rule("b", 7, "3"), rule("d", 4, "3")])));
        assert!(!stand(json!([rule("b", 4, "3")])));
        assert!(!stand(json!([rule("b", 7, "3"), rule("c", 4, "3")])));
    }
}
