//! Packages of others: none unused, all under licences and from sources that deny.toml allows.

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tidy::licence::{Package, allowed, problems};
use tidy::{Tree, unused};

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What Cargo tells of all packages that are built here: others are not downloaded.
fn packages() -> Vec<Package> {
    let version = Command::new("rustc").arg("-vV").output().unwrap().stdout;
    let version = String::from_utf8(version).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let words = ["metadata", "--format-version", "1", "--locked", "--offline", "--all-features"];
    let mut cargo = Command::new(env!("CARGO"));
    let done = cargo.args(words).args(["--filter-platform", host]).current_dir(root());
    let done = done.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let all: Value = serde_json::from_slice(&done.stdout).unwrap();
    let text = |package: &Value, key: &str| package[key].as_str().map(str::to_owned);
    let package = |of: &Value| Package {
        name: text(of, "name").unwrap(),
        version: text(of, "version").unwrap(),
        licence: text(of, "license"),
        source: text(of, "source"),
    };
    all["packages"].as_array().unwrap().iter().map(package).collect()
}

#[test]
fn all_packages_are_as_the_rules_say() {
    let packages = packages();
    let foreign = packages.iter().filter(|package| package.source.is_some()).count();
    assert!(foreign > 100, "Cargo named {foreign} packages of others");
    let rules = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    let found = problems(&rules, &packages);
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn an_expression_of_licences_is_read_as_spdx_means_it() {
    let list = ["MIT", "BSD-3-Clause", "Apache-2.0 WITH LLVM-exception"];
    for good in [
        "MIT",
        "GPL-3.0 OR MIT",
        "MIT/Apache-2.0",
        "MIT AND BSD-3-Clause",
        "(Apache-2.0 OR MIT) AND BSD-3-Clause",
        "GPL-3.0 AND Zlib OR MIT",
        "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
    ] {
        assert!(allowed(good, &list), "{good}");
    }
    for bad in [
        "",
        "none",
        "Apache-2.0",
        "MIT AND GPL-3.0",
        "MIT AND (GPL-3.0 OR Zlib)",
        "(MIT OR GPL-3.0) AND Zlib",
        "MIT WITH LLVM-exception",
        "(MIT",
        "MIT)",
        "MIT GPL-3.0",
        "MIT OR",
    ] {
        assert!(!allowed(bad, &list), "{bad}");
    }
}

fn package(name: &str, version: &str, licence: Option<&str>, source: &str) -> Package {
    let licence = licence.map(str::to_owned);
    let source = Some(source.to_owned());
    Package { name: name.to_owned(), version: version.to_owned(), licence, source }
}

#[test]
fn each_rule_for_packages_finds_what_breaks_it() {
    let rules = "[licenses]\nallow = [\"MIT\"]\n[bans]\ndeny = [{ crate = \"openssl\" }]\n\
                 skip = [{ crate = \"old@1.0.0\" }, { crate = \"gone@1.0.0\" }]\n[sources]\n\
                 allow-registry = [\"https://github.com/rust-lang/crates.io-index\"]\n";
    let own = Package { source: None, ..package("own", "0.1.0", None, "") };
    let packages = [
        own,
        package("good", "1.0.0", Some("MIT"), CRATES_IO),
        package("sticky", "1.0.0", Some("GPL-3.0"), CRATES_IO),
        package("bare", "1.0.0", None, CRATES_IO),
        package("openssl", "1.0.0", Some("MIT"), CRATES_IO),
        package("fork", "1.0.0", Some("MIT"), "git+https://example.org/fork"),
        package("old", "1.0.0", Some("MIT"), CRATES_IO),
        package("old", "2.0.0", Some("MIT"), CRATES_IO),
        package("twice", "1.0.0", Some("MIT"), CRATES_IO),
        package("twice", "2.0.0", Some("MIT"), CRATES_IO),
    ];
    let found = problems(rules, &packages);
    let wanted =
        ["sticky 1.0.0", "bare 1.0.0", "openssl 1.0.0", "fork 1.0.0", "twice", "gone@1.0.0"];
    let subjects: Vec<&str> = found.iter().filter_map(|p| p.split(": ").next()).collect();
    assert_eq!(subjects, wanted, "{found:#?}");
    assert_eq!(problems("[", &packages).len(), 1);
}

#[test]
fn what_no_line_uses_is_found() {
    let manifest = "[dependencies]\nhttp = \"1\"\nbase64 = \"1\"\nmd-5 = \"1\"\nserde = \"1\"\n\
                    tokio-util = \"1\"\nregex = \"1\"\n[dev-dependencies]\ninsta = \"1\"\n\
                    proptest = \"1\"\n";
    let lib = "use serde::Serialize;\nuse base64 as b;\n// http::Method\nuse crate::http::Method;\n\
               use md5::Digest;\nfn a() { ::tokio_util::b(); }\n\
               #[cfg(test)]\nmod tests {\n    use regex::Regex;\n}\n";
    let tree = Tree::of(&[
        ("Cargo.toml", "[workspace.dependencies]\nhttp = \"1\"\nlost = \"1\"\n"),
        ("crates/a/Cargo.toml", manifest),
        ("crates/a/src/lib.rs", lib),
        ("crates/a/tests/it.rs", "proptest::proptest! {}\n"),
    ]);
    let found: Vec<String> = unused::dependencies(&tree).into_iter().map(|p| p.text).collect();
    assert_eq!(
        found,
        [
            "nothing uses http: take it out",
            "only tests use regex: list it below [dev-dependencies]",
            "no test uses insta: take it out",
        ]
    );
    let found: Vec<String> = unused::workspace(&tree).into_iter().map(|p| p.text).collect();
    assert_eq!(found, ["no crate lists lost: take it out"]);
}
