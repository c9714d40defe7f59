//! Which Ballast this is.

use std::sync::LazyLock;

/// The version of the workspace.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit, with `-dirty` where files differed from it; `unknown` where it was built without
/// git, `development` in a build for tests.
pub const COMMIT: &str = env!("BALLAST_COMMIT");

/// The optional features that were built in, by name.
pub const FEATURES: &[&str] = &[
    #[cfg(feature = "bench")]
    "bench",
    #[cfg(feature = "emulators")]
    "emulators",
    #[cfg(feature = "otel")]
    "otel",
    #[cfg(feature = "sim")]
    "sim",
];

static TEXT: LazyLock<String> = LazyLock::new(|| {
    let features = if FEATURES.is_empty() { "none".to_owned() } else { FEATURES.join(", ") };
    format!("{VERSION} (commit {COMMIT}; features: {features})")
});

/// What `--version` prints after the program's name.
#[must_use]
pub fn text() -> &'static str {
    &TEXT
}
