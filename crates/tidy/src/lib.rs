//! The rules of the house, run rather than read.
//!
//! Every rule is a function over a [`Tree`] of text files, so that its own tests can show it a bad
//! sample. `tests/workspace.rs` shows all of them the real workspace.

pub mod circle;
pub mod licence;
pub mod manifest;
pub mod module;
mod path;
pub mod source;
pub mod tree;
pub mod unused;

pub use tree::{Problem, Tree};

/// Crates without sockets, clocks and chance.
pub const PURE: [&str; 14] = [
    "admission-rules",
    "arm",
    "azure-check",
    "console",
    "control",
    "explain",
    "health",
    "lease",
    "model",
    "observe",
    "plan",
    "plan-check",
    "plan-drift",
    "promise",
];

/// Every rule.
#[must_use]
pub fn problems(tree: &Tree) -> Vec<Problem> {
    let rules = [
        circle::circles,
        manifest::direct_dependencies,
        manifest::indirect_dependencies,
        manifest::arrows,
        manifest::lints,
        module::orphans,
        module::programs,
        source::lengths,
        source::columns,
        source::fields,
        source::unwraps,
        source::leftovers,
        source::names,
        source::impurities,
        source::ownership,
        source::verdicts,
        unused::dependencies,
        unused::workspace,
    ];
    rules.iter().flat_map(|rule| rule(tree)).collect()
}
