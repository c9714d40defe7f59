//! What a list brought last time: an item that says the same again is not read again.

use arm::body::BodyError;
use arm::{Item, JsonItem};
use model::ResourceId;
use serde_json::Value;
use std::any::Any;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// What was read of a list's items, by what they said.
///
/// Between two looks for drift hardly anything changes: most items of a list are known by a hash of
/// their text, and neither parsed nor compared.
#[derive(Clone, Debug, Default)]
pub struct Memo {
    items: BTreeMap<Print, Remembered>,
}

/// What tells two items apart: 128 bits of hash of a text, or the place of a parsed item.
type Print = (u64, u64);

#[derive(Clone, Debug)]
struct Remembered {
    id: ResourceId,
    value: Arc<dyn Any + Send + Sync>,
    /// Kept, so that no other item comes to stand in its place.
    _item: Option<Arc<Value>>,
}

/// What a list brought last time, and what it brings now.
pub(super) struct Again<'a> {
    pub before: &'a Memo,
    pub now: &'a mut Memo,
    /// Items that could not be read.
    pub problems: &'a mut Vec<BodyError>,
}

impl<'a> Again<'a> {
    /// What was read of an item that said the same, if `is_held` still.
    pub fn find<T: Any + Send + Sync>(
        &mut self,
        item: &impl JsonItem,
        is_held: impl Fn(&ResourceId, &Arc<T>) -> bool,
    ) -> Option<(&'a ResourceId, Arc<T>)> {
        let found = self.before.items.get(&print(item.item()?))?;
        let value: Arc<T> = Arc::clone(&found.value).downcast().ok()?;
        if !is_held(&found.id, &value) {
            return None;
        }
        self.keep(item, &found.id, &value);
        Some((&found.id, value))
    }

    /// Remembers what was read of an item.
    pub fn keep<T: Any + Send + Sync>(
        &mut self,
        item: &impl JsonItem,
        id: &ResourceId,
        of: &Arc<T>,
    ) {
        let Some(item) = item.item() else { return };
        let parsed = match item {
            Item::Parsed(value) => Some(Arc::clone(value)),
            Item::Text(..) => None,
        };
        let value: Arc<dyn Any + Send + Sync> = Arc::clone(of) as _;
        let kept = Remembered { id: id.clone(), value, _item: parsed };
        self.now.items.insert(print(item), kept);
    }
}

fn print(item: &Item) -> Print {
    match item {
        Item::Text(page, at) => {
            let text = page.get(at.clone()).unwrap_or_default();
            (hash(0, text), hash(1, text))
        }
        Item::Parsed(value) => (Arc::as_ptr(value).addr() as u64, 0),
    }
}

fn hash(salt: u8, text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (salt, text).hash(&mut hasher);
    hasher.finish()
}
