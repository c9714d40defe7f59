//! Tells the program which commit it is of.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=BALLAST_COMMIT");
    let commit = env::var("BALLAST_COMMIT").ok().filter(|named| !named.is_empty());
    println!("cargo::rustc-env=BALLAST_COMMIT={}", commit.unwrap_or_else(of_checkout));
}

/// The checkout's commit, with `-dirty` where files differ from it.
///
/// What is built for tests does not look: each commit would build all of them again.
fn of_checkout() -> String {
    if env::var("PROFILE").as_deref() != Ok("release") {
        return "development".to_owned();
    }
    // HEAD's log grows with each commit and checkout.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).exists());
    if let Some(log) = log {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
        .unwrap_or_else(|| "unknown".to_owned())
}

/// What git prints; nothing where there is no git, or no checkout.
fn git(words: &[&str]) -> Option<String> {
    let done = Command::new("git").args(words).output().ok().filter(|o| o.status.success())?;
    let text = String::from_utf8(done.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
