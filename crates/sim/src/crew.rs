//! Work that is divided among threads. Each piece is a simulation of its own, so that what comes of
//! it does not depend on the threads.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

/// Does the work of each number on so many threads, at least one, and tells the caller's thread
/// what came of it in the order in which the pieces end.
///
/// # Panics
/// A piece of work panics.
pub fn each<R: Send>(
    numbers: Range<u64>,
    jobs: usize,
    work: impl Fn(u64) -> R + Sync,
    mut tell: impl FnMut(u64, R),
) {
    let (next, work) = (AtomicU64::new(numbers.start), &work);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            let (sender, next, end) = (sender.clone(), &next, numbers.end);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= end || sender.send((number, work(number))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (number, result) in receiver {
            tell(number, result);
        }
    });
}

/// The same for a list: what came of each item, in the order of the list.
///
/// # Panics
/// A piece of work panics.
pub fn all<T: Sync, R: Send>(items: &[T], jobs: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let mut found = BTreeMap::new();
    let of = |at: u64| usize::try_from(at).ok().and_then(|at| items.get(at)).map(&work);
    each(0..items.len() as u64, jobs, of, |at, result| {
        found.insert(at, result);
    });
    found.into_values().flatten().collect()
}
