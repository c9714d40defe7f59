//! The real workspace keeps the rules of the house.

use std::fs;
use std::path::{Path, PathBuf};
use tidy::Tree;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_workspace_is_tidy() {
    let tree = Tree::read(&root()).unwrap();
    assert!(tree.rust().count() > 100, "the workspace was not found");
    let problems = tidy::problems(&tree);
    let text: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert!(problems.is_empty(), "\n{}\n", text.join("\n"));
}

#[test]
fn pure_crates_have_their_own_bans() {
    for name in tidy::PURE {
        let own = fs::read_to_string(root().join("crates").join(name).join("clippy.toml"));
        let own = own.unwrap_or_default();
        for ban in ["Instant::now", "SystemTime::now", "HashMap", "thread::sleep", "env::var"] {
            assert!(own.contains(ban), "crates/{name}/clippy.toml does not forbid {ban}");
        }
        let house = fs::read_to_string(root().join("clippy.toml")).unwrap();
        for line in house.lines().filter(|l| !l.starts_with('#')) {
            assert!(own.contains(line), "crates/{name}/clippy.toml lacks `{line}` of the house");
        }
    }
}

#[test]
fn the_annotation_reference_is_the_one_in_the_code() {
    let file = root().join("docs/annotations.md");
    let made = plan::ask::annotation::reference();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &made).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    let hint = "docs/annotations.md is out of date: UPDATE_DOCS=1 cargo test -p tidy";
    assert!(kept == made, "{hint}");
}
