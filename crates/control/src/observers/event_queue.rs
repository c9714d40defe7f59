//! Events that wait to be posted, by turns.
//!
//! # Guarantees
//! - Namespaces take turns, and in a namespace its objects: one object's Events, however many, are
//!   never before more than one of each other's.
//! - Events of one object are posted in the order in which they were said.
//! - Where too many wait, an object loses its own oldest, and the namespace with the most that wait
//!   its next.

use model::ServiceName;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Events under way at a time: each takes a connection of its own.
const AT_ONCE: usize = 32;
/// Events that may wait in all: what a cluster of 10,000 Services has to say after an outage.
const WAITING: usize = 20_000;
/// Events of one object that may wait: more than one plan has to say of a Service.
const OF_ONE: usize = 64;
/// Most bytes of a message.
const MESSAGE: usize = 4_096;

/// One Event.
#[derive(Debug)]
pub(crate) struct Word {
    /// `Normal` or `Warning`.
    pub kind: &'static str,
    pub reason: String,
    pub message: String,
}

/// An Event, and the object it is about.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// Kind of the object.
    pub kind: &'static str,
    /// Its namespace and name.
    pub name: ServiceName,
    /// Its UID.
    pub uid: Arc<str>,
    /// What is said.
    pub word: Word,
    /// When it was said.
    pub at_ms: u64,
}

/// Events that are being posted or wait for it.
#[derive(Debug, Default)]
pub(crate) struct Words {
    under_way: usize,
    namespaces: BTreeMap<Arc<str>, Turns>,
    turns: VecDeque<Arc<str>>,
}

/// Events of one namespace.
#[derive(Debug, Default)]
struct Turns {
    objects: BTreeMap<Arc<str>, VecDeque<Waiting>>,
    turns: VecDeque<Arc<str>>,
    len: usize,
}

impl Words {
    pub fn push(&mut self, mut waiting: Waiting) {
        let message = &mut waiting.word.message;
        if message.len() > MESSAGE {
            message.truncate(message.floor_char_boundary(MESSAGE - "…".len()));
            message.push('…');
        }
        let namespace = Arc::clone(&waiting.name.namespace);
        let turns = self.namespaces.entry(Arc::clone(&namespace)).or_default();
        if turns.len == 0 {
            self.turns.push_back(namespace);
        }
        turns.push(waiting);
        if self.len() > WAITING {
            let most = self.namespaces.values_mut().max_by_key(|turns| turns.len);
            most.map(Turns::pop);
        }
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.namespaces.values().map(|turns| turns.len).sum()
    }

    /// The next that may be posted now: it is under way until [`Words::posted`].
    pub fn next(&mut self) -> Option<Waiting> {
        if self.under_way >= AT_ONCE {
            return None;
        }
        while let Some(namespace) = self.turns.pop_front() {
            let Some(turns) = self.namespaces.get_mut(&namespace) else { continue };
            let next = turns.pop();
            if turns.len == 0 {
                self.namespaces.remove(&namespace);
            } else {
                self.turns.push_back(namespace);
            }
            if next.is_some() {
                self.under_way += 1;
                return next;
            }
        }
        None
    }

    /// One that was under way was posted, or was not.
    pub fn posted(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// Forgets all that wait.
    pub fn clear(&mut self) {
        self.namespaces.clear();
        self.turns.clear();
    }
}

impl Turns {
    fn push(&mut self, waiting: Waiting) {
        let queue = self.objects.entry(Arc::clone(&waiting.uid)).or_default();
        if queue.is_empty() {
            self.turns.push_back(Arc::clone(&waiting.uid));
        }
        queue.push_back(waiting);
        self.len += 1;
        if queue.len() > OF_ONE {
            queue.pop_front();
            self.len -= 1;
        }
    }

    fn pop(&mut self) -> Option<Waiting> {
        let uid = self.turns.pop_front()?;
        let queue = self.objects.get_mut(&uid)?;
        let next = queue.pop_front();
        self.len -= usize::from(next.is_some());
        if queue.is_empty() {
            self.objects.remove(&uid);
        } else {
            self.turns.push_back(uid);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(namespace: &str, uid: &str, n: usize) -> Waiting {
        let message = n.to_string();
        let word = Word { kind: "Warning", reason: "Rule".to_owned(), message };
        let name = ServiceName::new(namespace, uid);
        Waiting { kind: "Service", name, uid: Arc::from(uid), word, at_ms: 0 }
    }

    fn drain(words: &mut Words) -> Vec<String> {
        let mut said = Vec::new();
        while let Some(next) = words.next() {
            said.push(format!("{} {}", next.uid, next.word.message));
            words.posted();
        }
        said
    }

    #[test]
    fn one_service_does_not_push_out_others() {
        let mut words = Words::default();
        words.push(waiting("shop", "a", 0));
        words.push(waiting("shop", "b", 0));
        for n in 0..100_000 {
            words.push(waiting("evil", &format!("e{}", n % 1_000), n));
        }
        words.push(waiting("shop", "a", 1));
        assert!(words.len() <= WAITING);
        let said = drain(&mut words);
        assert_eq!(said.len(), WAITING);
        let place = |text: &str| said.iter().position(|s| s == text);
        assert!(["a 0", "b 0", "a 1"].into_iter().all(|s| place(s).is_some_and(|at| at < 6)));
        assert_eq!(words.len(), 0);
    }

    #[test]
    fn of_one_object_the_last_wait_in_order() {
        let mut words = Words::default();
        (0..1_000).for_each(|n| words.push(waiting("evil", "e", n)));
        let last: Vec<String> = (1_000 - OF_ONE..1_000).map(|n| format!("e {n}")).collect();
        assert_eq!(drain(&mut words), last);
    }

    #[test]
    fn no_more_than_some_are_under_way() {
        let mut words = Words::default();
        (0..50).for_each(|n| words.push(waiting("shop", "a", n)));
        assert_eq!(std::iter::from_fn(|| words.next()).count(), AT_ONCE);
        words.posted();
        assert!(words.next().is_some() && words.next().is_none());
        words.clear();
        words.posted();
        assert!(words.next().is_none());
    }

    #[test]
    fn a_message_has_an_end() {
        let mut words = Words::default();
        let mut long = waiting("shop", "a", 0);
        long.word.message = "ä".repeat(MESSAGE);
        words.push(long);
        let next = words.next().expect("it waits");
        assert!(next.word.message.len() <= MESSAGE && next.word.message.ends_with("ä…"));
    }
}
