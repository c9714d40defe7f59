//! Mutants.

use crate::stage::Stage;
use control::{Effect, Event};

/// What is wrong with the controller on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Canary {
    /// Writes although the lease is lost.
    IgnoresLease,
}

/// A controller with something wrong.
#[derive(Debug)]
pub struct Mutant {
    canary: Canary,
}

impl Mutant {
    /// Makes one.
    #[must_use]
    pub fn new(canary: Canary) -> Self {
        Self { canary }
    }

    /// What reaches the controller.
    pub fn events(&mut self, events: Vec<Event>) -> Vec<Event> {
        events
    }

    /// What leaves it.
    pub fn effects(&mut self, effects: Vec<Effect>, _stage: &mut Stage, _number: usize) -> Vec<Effect> {
        effects
    }

    /// Whether the shell's look at the lease is left out.
    #[must_use]
    pub fn ignores_lease(&self) -> bool {
        self.canary == Canary::IgnoresLease
    }

    /// Whether waiting for nothing is not what is wrong with it.
    #[must_use]
    pub fn may_be_asleep(&self) -> bool {
        true
    }

    /// The process starts again.
    pub fn restart(&mut self) {}
}
