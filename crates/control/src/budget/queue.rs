//! Changes of the plan on their way to being sent: which nothing but other writes and the budget
//! keeps, and since when.
//!
//! There may be tens of thousands, and a step is rarely about more than a few. What is known of a
//! change goes over from one plan to the next; only one that is another value in memory is looked
//! at anew.

use crate::budget::{Limit, Urgency, limit::limits_of_path};
use crate::lanes::lane::Lane;
use crate::request::method;
use model::ResourceId;
use model::plan::{Action, Change, Resource};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What stands in the way of a change, as far as the plan says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Something has to happen first.
    Shut,
    /// Others may join it, or what it is about may have to be read again first.
    Narrow,
    /// Nothing.
    Clear,
}

/// Whether there is a lane for a change's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Track {
    /// There is none.
    None,
    /// There may be one.
    Laid,
}

/// One change of the plan.
#[derive(Clone, Copy, Debug)]
struct Place {
    way: Way,
    track: Track,
    /// Position in [`Queue::classes`].
    class: usize,
    /// It writes a table of addresses.
    is_table: bool,
    /// Since when it could have been sent.
    since_ms: Option<u64>,
}

/// Calls that count against the same limits and are worth the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub limits: Vec<Limit>,
    pub urgency: Urgency,
}

/// Changes of the plan that could be sent but for the budget.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// One for each change of the plan.
    places: Vec<Place>,
    classes: Vec<Class>,
    /// Classes for which there was no budget when changes were last sent.
    refused: BTreeSet<usize>,
    /// When there is budget for the first of them.
    pub wake_ms: Option<u64>,
    /// When changes were last sent.
    pub looked_ms: u64,
}

/// Positions of changes that are not the same values in memory as before. Both are by target.
pub(crate) fn news(before: &[Arc<Change>], now: &[Arc<Change>]) -> Vec<usize> {
    let mut new = Vec::new();
    walk(before, now, |at, _, same| {
        if !same {
            new.push(at);
        }
    });
    new
}

/// Goes through changes; each is told with the position of the one with its target before, and
/// whether that is the same value.
fn walk(
    before: &[Arc<Change>],
    now: &[Arc<Change>],
    mut tell: impl FnMut(usize, Option<usize>, bool),
) {
    let mut old = 0;
    for (at, change) in now.iter().enumerate() {
        let found = loop {
            let Some(known) = before.get(old) else { break None };
            if Arc::ptr_eq(known, change) {
                break Some(true);
            }
            match known.target.cmp(&change.target) {
                Ordering::Less => old += 1,
                Ordering::Equal => break Some(false),
                Ordering::Greater => break None,
            }
        };
        tell(at, found.map(|_| old), found == Some(true));
        old += usize::from(found.is_some());
    }
}

impl Queue {
    /// Another plan was made.
    pub fn follow(
        &mut self,
        before: &[Arc<Change>],
        now: &[Arc<Change>],
        lanes: &BTreeMap<ResourceId, Lane>,
    ) {
        let old = std::mem::take(&mut self.places);
        let mut places = Vec::with_capacity(now.len());
        walk(before, now, |at, was, same| {
            let known = was.and_then(|was| old.get(was));
            let mut place = match known.filter(|_| same) {
                Some(place) => *place,
                None => {
                    let since_ms = known.and_then(|place| place.since_ms);
                    self.place(&now[at], since_ms, lanes)
                }
            };
            if place.way == Way::Shut {
                place.since_ms = None;
            }
            places.push(place);
        });
        self.places = places;
    }

    fn place(
        &mut self,
        change: &Change,
        since_ms: Option<u64>,
        lanes: &BTreeMap<ResourceId, Lane>,
    ) -> Place {
        let clear = change.waits.is_empty() && !is_read_first(&change.action);
        let way = match (change.is_ready(), clear) {
            (false, _) => Way::Shut,
            (true, true) => Way::Clear,
            (true, false) => Way::Narrow,
        };
        let has_lane = lanes.contains_key(&change.target);
        let track = if has_lane { Track::Laid } else { Track::None };
        let is_table = matches!(change.action, Action::UpdateLocations(_));
        Place { way, track, class: self.classify(change), is_table, since_ms }
    }

    fn classify(&mut self, change: &Change) -> usize {
        let limits = limits_of_path(method(&change.action), change.target.as_str());
        let class = Class { limits, urgency: Urgency::of(&change.causes) };
        self.classes.iter().position(|known| *known == class).unwrap_or_else(|| {
            self.classes.push(class);
            self.classes.len() - 1
        })
    }

    /// Positions of changes that nothing in the plan keeps, and whether that is all that can be
    /// said of each.
    pub fn open(&self) -> impl Iterator<Item = (usize, bool)> + '_ {
        let open = self.places.iter().enumerate().filter(|(_, place)| place.way != Way::Shut);
        open.map(|(at, place)| (at, place.way == Way::Clear && place.track == Track::None))
    }

    /// There is a lane for a change now.
    pub fn lay(&mut self, at: usize) {
        if let Some(place) = self.places.get_mut(at) {
            place.track = Track::Laid;
        }
    }

    /// A change could be sent; since when it could.
    pub fn ready(&mut self, at: usize, now_ms: u64) -> u64 {
        let place = self.places.get_mut(at);
        place.map_or(now_ms, |place| *place.since_ms.get_or_insert(now_ms))
    }

    /// A change cannot be sent now, or it was.
    pub fn unready(&mut self, at: usize) {
        if let Some(place) = self.places.get_mut(at) {
            place.since_ms = None;
        }
    }

    /// Whether the change of a resource waits for nothing but budget.
    pub fn is_ready(&self, changes: &[Arc<Change>], id: &ResourceId) -> bool {
        let at = changes.binary_search_by(|change| change.target.cmp(id));
        at.is_ok_and(|at| self.places.get(at).is_some_and(|place| place.since_ms.is_some()))
    }

    /// Positions of changes that write tables of addresses.
    pub fn tables(&self) -> impl Iterator<Item = usize> + '_ {
        let places = self.places.iter().enumerate();
        places.filter(|(_, place)| place.is_table).map(|(at, _)| at)
    }

    /// The class of a change.
    pub fn class_of(&self, at: usize) -> Option<usize> {
        self.places.get(at).map(|place| place.class)
    }

    /// What is called for in a class.
    pub fn class(&self, class: usize) -> Option<&Class> {
        self.classes.get(class)
    }

    /// What is called for by a change.
    pub fn class_at(&self, at: usize) -> Option<&Class> {
        self.class(self.class_of(at)?)
    }

    /// Changes are about to be sent.
    pub fn begin(&mut self, now_ms: u64) {
        self.refused.clear();
        self.wake_ms = None;
        self.looked_ms = now_ms;
    }

    /// There is no budget for changes of this class; they are looked at again at a time.
    pub fn refuse(&mut self, class: usize, wake_ms: u64) {
        self.refused.insert(class);
        self.wake_ms = Some(self.wake_ms.map_or(wake_ms, |at| at.min(wake_ms)));
    }

    /// Whether there was no budget for a class.
    pub fn is_refused(&self, class: usize) -> bool {
        self.refused.contains(&class)
    }

    /// Whether changes wait for budget.
    pub fn is_scarce(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Changes that wait for budget, and since when.
    pub fn kept(&self) -> Vec<(usize, u64)> {
        let places = self.places.iter().enumerate();
        let kept = places.filter(|(_, place)| self.refused.contains(&place.class));
        kept.filter_map(|(at, place)| Some((at, place.since_ms?))).collect()
    }
}

/// Whether what a change is about may have to be read again before it is sent.
fn is_read_first(action: &Action) -> bool {
    matches!(
        action,
        Action::Put { before: Some(Resource::LoadBalancer(_) | Resource::PublicIp(_)), .. }
            | Action::Delete { before: Resource::LoadBalancer(_) }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ServiceUid;
    use model::report::Wait;

    fn change(name: &str, waits: Vec<Wait>) -> Arc<Change> {
        let target =
            ResourceId::new(format!("/subscriptions/s/providers/Microsoft.Network/{name}"));
        let causes = BTreeSet::from([ServiceUid::new(name)]);
        let action = Action::MigratePools { pools: Vec::new() };
        Arc::new(Change { target, action, guard: None, causes, waits })
    }

    fn open(queue: &Queue) -> Vec<usize> {
        queue.open().map(|(at, _)| at).collect()
    }

    #[test]
    fn only_what_is_another_value_is_news() {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| change(name, Vec::new()));
        let other = Arc::new(Change::clone(&c));
        let before = [Arc::clone(&a), Arc::clone(&c), Arc::clone(&d)];
        assert_eq!(news(&before, &[a, b, other, d.clone()]), [1, 2]);
        assert_eq!(news(&before, &[d]), [0; 0]);
        assert_eq!(news(&before, &[]), [0; 0]);
    }

    #[test]
    fn a_change_keeps_its_place_in_line_from_one_plan_to_the_next() {
        let lanes = BTreeMap::new();
        let mut queue = Queue::default();
        let first = [change("b", Vec::new()), change("c", Vec::new())];
        queue.follow(&[], &first, &lanes);
        assert_eq!(open(&queue), [0, 1]);
        assert_eq!(queue.ready(1, 5), 5);
        // The same target with another body, and one more before it.
        let second = [change("a", vec![Wait::Finalizer]), change("c", Vec::new())];
        queue.follow(&first, &second, &lanes);
        assert_eq!(open(&queue), [1], "what waits for something else is not open");
        assert!(queue.is_ready(&second, &second[1].target));
        assert_eq!(queue.ready(1, 9), 5);
        queue.unready(1);
        assert_eq!(queue.ready(1, 9), 9);
        // What has to wait after all begins anew.
        let third = [change("c", vec![Wait::Finalizer])];
        queue.follow(&second, &third, &lanes);
        assert!(!queue.is_ready(&third, &third[0].target));
    }

    #[test]
    fn only_what_is_refused_waits_for_budget() {
        let mut queue = Queue::default();
        let all = [change("a", Vec::new()), change("b", Vec::new())];
        queue.follow(&[], &all, &BTreeMap::new());
        queue.ready(0, 3);
        assert_eq!(queue.kept(), []);
        let class = queue.class_of(0).expect("every change has one");
        assert_eq!(queue.class_of(1), Some(class), "calls of one kind are one class");
        queue.refuse(class, 40);
        queue.refuse(class, 30);
        assert_eq!((queue.kept(), queue.wake_ms), (vec![(0, 3)], Some(30)));
        queue.begin(50);
        assert_eq!((queue.is_scarce(), queue.wake_ms), (false, None));
    }
}
