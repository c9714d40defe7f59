//! `ballast --version` says what was built, and from what.

use std::process::Command;

#[test]
fn the_version_names_the_commit_and_every_default_feature() {
    let done = Command::new(env!("CARGO_BIN_EXE_ballast")).arg("--version").output().unwrap();
    assert!(done.status.success());
    let text = String::from_utf8(done.stdout).unwrap();
    let manifest: toml::Table = include_str!("../../Cargo.toml").parse().unwrap();
    let features = manifest["features"]["default"].as_array().unwrap();
    let features: Vec<&str> = features.iter().map(|f| f.as_str().unwrap()).collect();
    let (head, rest) = text.trim_end().split_once(" (commit ").unwrap();
    assert_eq!(head, format!("ballast {}", env!("CARGO_PKG_VERSION")));
    let (commit, built) = rest.strip_suffix(')').unwrap().split_once("; features: ").unwrap();
    assert!(!commit.is_empty() && !commit.contains(' '), "{text}");
    assert_eq!(built.split(", ").collect::<Vec<_>>(), features);
}
