//! Each rule finds what it is there to find, and leaves the rest alone.

use tidy::{Problem, Tree, manifest, module, source};

const HEAD: &str = "[lints]\nworkspace = true\n";

fn places(problems: &[Problem]) -> Vec<&str> {
    problems.iter().map(|p| p.place.as_str()).collect()
}

fn manifests(files: &[(&str, &str)], lock: &str) -> Tree {
    let files: Vec<(String, String)> = files
        .iter()
        .map(|(name, body)| (format!("crates/{name}/Cargo.toml"), format!("{body}\n{HEAD}")))
        .collect();
    let mut all: Vec<(&str, &str)> = files.iter().map(|(p, t)| (&**p, &**t)).collect();
    all.push(("Cargo.lock", lock));
    Tree::of(&all)
}

#[test]
fn a_pure_crate_that_lists_a_runtime_is_found() {
    let tree = manifests(&[("plan", "[dependencies]\ntokio = { workspace = true }")], "");
    assert_eq!(places(&manifest::direct_dependencies(&tree)), ["crates/plan/Cargo.toml"]);
    assert_eq!(places(&manifest::indirect_dependencies(&tree)), ["crates/plan/Cargo.toml"]);
}

#[test]
fn a_runtime_is_found_under_another_name_for_one_system_and_at_build_time() {
    for body in [
        "[dependencies]\nlater = { package = \"tokio\", version = \"1\" }",
        "[target.'cfg(unix)'.dependencies]\ntokio = \"1\"",
        "[build-dependencies]\ntokio = \"1\"",
        "[dev-dependencies]\ntokio = \"1\"",
        "[dependencies.tokio]\nversion = \"1\"",
    ] {
        let tree = manifests(&[("model", body)], "");
        assert_eq!(manifest::direct_dependencies(&tree).len(), 1, "{body}");
    }
}

#[test]
fn what_is_listed_for_pure_crates_passes() {
    let body = "[dependencies]\nmodel = { workspace = true }\nserde = { workspace = true }\n\
                [dev-dependencies]\nproptest = { workspace = true }";
    let tree = manifests(&[("plan", body), ("model", "")], "");
    assert!(manifest::direct_dependencies(&tree).is_empty());
    assert!(manifest::indirect_dependencies(&tree).is_empty());
}

#[test]
fn a_runtime_far_below_is_found_and_the_way_to_it_is_shown() {
    let lock = "[[package]]\nname = \"serde\"\nversion = \"1.0.0\"\ndependencies = [\"quick\"]\n\
                [[package]]\nname = \"quick\"\nversion = \"2.0.0\"\n\
                dependencies = [\"tokio 1.0.0\"]\n";
    let body = "[dependencies]\nmodel = { workspace = true }";
    let tree = manifests(&[("plan", body), ("model", "[dependencies]\nserde = \"1\"")], lock);
    let problems = manifest::indirect_dependencies(&tree);
    assert_eq!(places(&problems), ["crates/model/Cargo.toml", "crates/plan/Cargo.toml"]);
    assert!(problems[1].text.ends_with("plan -> model -> serde -> quick -> tokio"));
}

#[test]
fn what_only_tests_bring_is_not_followed() {
    let lock = "[[package]]\nname = \"plan\"\nversion = \"0.1.0\"\ndependencies = [\"proptest\"]\n\
                [[package]]\nname = \"proptest\"\nversion = \"1.0.0\"\ndependencies = [\"rand\"]\n";
    let tree = manifests(&[("plan", "[dev-dependencies]\nproptest = \"1\"")], lock);
    assert!(manifest::indirect_dependencies(&tree).is_empty());
}

#[test]
fn an_arrow_that_points_back_is_found() {
    let wrong = [("model", "arm"), ("arm", "observe"), ("plan", "arm"), ("control", "edge")];
    for (from, to) in wrong {
        let body = format!("[dependencies]\n{to} = {{ workspace = true }}");
        let tree = manifests(&[(from, &body), (to, "")], "");
        assert_eq!(places(&manifest::arrows(&tree)), [format!("crates/{from}/Cargo.toml")]);
    }
}

#[test]
fn only_the_binary_depends_on_edge() {
    let body = "[dependencies]\nedge = { workspace = true }";
    for name in ["sim", "control", "azure-emulator", "kube-emulator", "tidy"] {
        assert_eq!(manifest::arrows(&manifests(&[(name, body), ("edge", "")], "")).len(), 1);
    }
    assert!(manifest::arrows(&manifests(&[("ballast", body), ("edge", "")], "")).is_empty());
}

#[test]
fn a_crate_that_nobody_placed_is_found() {
    assert_eq!(manifest::arrows(&manifests(&[("novel", "")], "")).len(), 1);
}

#[test]
fn a_crate_without_the_lints_is_found() {
    let bare = ("crates/arm/Cargo.toml", "[package]\nname = \"arm\"\n");
    let off = ("crates/model/Cargo.toml", "[lints]\nworkspace = false\n");
    let good = ("crates/plan/Cargo.toml", HEAD);
    let problems = manifest::lints(&Tree::of(&[bare, off, good]));
    assert_eq!(places(&problems), ["crates/arm/Cargo.toml", "crates/model/Cargo.toml"]);
}

#[test]
fn a_file_that_nothing_declares_is_found() {
    let tree = Tree::of(&[
        ("crates/a/src/lib.rs", "pub mod used;\n#[cfg(test)]\nmod fake;\n// mod lost;\n"),
        ("crates/a/src/used/inner_tests.rs", ""),
        ("crates/a/src/used/mod.rs", "pub(crate) mod inner;\n"),
        ("crates/a/src/used/inner.rs", "#[cfg(test)]\n#[path = \"inner_tests.rs\"]\nmod tests;\n"),
        ("crates/a/src/used/lost.rs", ""),
        ("crates/a/src/fake.rs", "mod deep;\n"),
        ("crates/a/src/fake/deep.rs", ""),
        ("crates/a/src/lost.rs", ""),
        ("crates/a/tests/any.rs", ""),
    ]);
    let problems = module::orphans(&tree);
    assert_eq!(places(&problems), ["crates/a/src/lost.rs", "crates/a/src/used/lost.rs"]);
}

#[test]
fn a_second_integration_program_is_found() {
    let tree = Tree::of(&[
        ("crates/a/tests/it/main.rs", "mod more;"),
        ("crates/a/tests/it/more.rs", ""),
        ("crates/a/tests/it/support/main.rs", ""),
        ("crates/a/tests/late.rs", ""),
        ("crates/a/src/b/tests/one.rs", ""),
        ("crates/a/src/b/tests/two.rs", ""),
        ("crates/b/tests/one.rs", ""),
        ("crates/b/tests/two/main.rs", ""),
        ("crates/observe/tests/facts/main.rs", ""),
        ("crates/observe/tests/memory.rs", ""),
    ]);
    let problems = module::programs(&tree);
    assert_eq!(places(&problems), ["crates/a/tests/late.rs", "crates/b/tests/two/main.rs"]);
    assert!(problems[0].text.ends_with("beside crates/a/tests/it/main.rs"), "{}", problems[0]);
}

#[test]
fn a_file_of_more_than_500_lines_is_found_without_its_tests() {
    let long = "fn a() {}\n".repeat(501);
    let full = "fn a() {}\n".repeat(500);
    let tested = format!("{full}\n#[cfg(test)]\nmod tests {{\n{full}}}\n");
    let tested = tested.replacen("fn a() {}\n", "", 1);
    let tree = Tree::of(&[
        ("crates/a/src/lib.rs", "mod long;\nmod full;\nmod tested;\n#[cfg(test)]\nmod fake;\n"),
        ("crates/a/src/long.rs", &long),
        ("crates/a/src/full.rs", &full),
        ("crates/a/src/tested.rs", &tested),
        ("crates/a/src/fake.rs", &long),
        ("crates/a/src/x/tests.rs", &long),
        ("crates/a/src/x_tests.rs", &long),
        ("crates/a/tests/long.rs", &long),
    ]);
    assert_eq!(places(&source::lengths(&tree)), ["crates/a/src/long.rs"]);
}

#[test]
fn a_line_of_more_than_100_columns_is_found() {
    let full = format!("// {}\n", "é".repeat(97));
    let tree = Tree::of(&[
        ("crates/a/src/full.rs", &full),
        ("crates/a/src/long.rs", &format!("\n// {}\n", "x".repeat(98))),
    ]);
    assert_eq!(places(&source::columns(&tree)), ["crates/a/src/long.rs:2"]);
}

#[test]
fn an_unwrap_is_found_outside_tests() {
    let call = format!("    x{};\n", concat!(".unwrap", "()"));
    let tested = format!("fn a() {{}}\n\n#[cfg(test)]\nmod tests {{\n{call}}}\n");
    let tree = Tree::of(&[
        ("crates/a/src/bad.rs", &format!("fn a() {{\n{call}}}\n")),
        ("crates/a/src/doc.rs", &format!("//! {call}")),
        ("crates/a/src/good.rs", &tested),
        ("crates/a/tests/good.rs", &call),
    ]);
    assert_eq!(places(&source::unwraps(&tree)), ["crates/a/src/bad.rs:2"]);
}

#[test]
fn what_is_left_for_later_is_found() {
    for word in ["TO+DO", "FIX+ME", "XX+X", "to+do!()", "unimple+mented!()"] {
        let text = format!("// fine\n// {}: later\n", word.replace('+', ""));
        let tree = Tree::of(&[("crates/a/tests/b.rs", &text)]);
        assert_eq!(places(&source::leftovers(&tree)), ["crates/a/tests/b.rs:2"], "{word}");
    }
    let fine = Tree::of(&[("crates/a/src/b.rs", "const XXXL: u8 = 1;\n")]);
    assert!(source::leftovers(&fine).is_empty());
}

#[test]
fn names_that_say_nothing_are_found() {
    let tree = Tree::of(&[
        ("crates/a/src/b.rs", "struct Good;\npub struct LoadManager;\nenum EventHandlers {}\n"),
        ("crates/a/src/c.rs", "pub mod string_utils {}\ntype BatchProcessor = u8;\n"),
        ("crates/a/src/pool_helper.rs", ""),
        ("crates/a/src/utilities.rs", "struct Process;\nfn handle() {}\n"),
    ]);
    assert_eq!(
        places(&source::names(&tree)),
        [
            "crates/a/src/b.rs:2",
            "crates/a/src/b.rs:3",
            "crates/a/src/c.rs:1",
            "crates/a/src/c.rs:2",
            "crates/a/src/pool_helper.rs",
        ]
    );
}

#[test]
fn clocks_chance_and_files_are_found_in_pure_crates_only() {
    let text = "// Instant\nuse std::time::Instant;\nuse std::collections::HashMap;\n\
                struct InstantPot;\nuse std::fs;\nuse std::env::var;\n";
    let tree = Tree::of(&[("crates/plan/src/a.rs", text), ("crates/edge/src/a.rs", text)]);
    assert_eq!(
        places(&source::impurities(&tree)),
        [2, 3, 5, 6].map(|line| format!("crates/plan/src/a.rs:{line}"))
    );
}

#[test]
fn a_name_compared_outside_own_is_found() {
    let text = "// f.name.eq_ignore_ascii_case(b)\nlet a = f.name.eq_ignore_ascii_case(b);\n\
                let b = label.eq_ignore_ascii_case(b);\nlet c = tags.get(\"k8s-azure-service\");\n\
                let d = format!(\"{e}{}\", \"-internal\");\nuse crate::tag_keys::SERVICE;\n";
    let folds = ("crates/plan/src/a.rs", "let a = f.name.to_lowercase();\n");
    assert_eq!(places(&source::ownership(&Tree::of(&[folds]))), ["crates/plan/src/a.rs:1"]);
    let found = |path: &str| {
        let problems = source::ownership(&Tree::of(&[(path, text)]));
        problems.into_iter().map(|problem| problem.place).collect::<Vec<_>>()
    };
    for path in ["crates/plan/src/a.rs", "crates/explain/src/a.rs", "crates/control/src/a.rs"] {
        assert_eq!(found(path), [2, 4, 5, 6].map(|line| format!("{path}:{line}")));
    }
    for path in ["crates/plan/src/own/a.rs", "crates/plan-check/src/a.rs", "crates/sim/src/a.rs"] {
        assert_eq!(found(path), Vec::<String>::new());
    }
}

#[test]
fn a_verdict_made_outside_claim_is_found() {
    let text = "// Refusal::new(a)\nlet a = Refusal::new(finding);\nlet b = a.finding();\n\
                let c = Stance::Frozen(Frozen::new());\n";
    let tree = Tree::of(&[("crates/plan/src/a.rs", text), ("crates/plan/src/claim/a.rs", text)]);
    let found = source::verdicts(&tree);
    assert_eq!(places(&found), ["crates/plan/src/a.rs:2", "crates/plan/src/a.rs:4"]);
}

#[test]
fn a_struct_with_too_many_fields_is_found_where_parts_are_the_rule() {
    let all = |count: usize| -> String {
        (0..count).map(|n| format!("    /// One: that.\n    pub(crate) f{n}: u8,\n")).collect()
    };
    let text = |count| format!("pub struct Unit;\n\npub(crate) struct S<T> {{\n{}}}\n", all(count));
    let of = |path: &str, count| source::fields(&Tree::of(&[(path, &text(count))]));
    assert_eq!(places(&of("crates/control/src/a/b.rs", 13)), ["crates/control/src/a/b.rs:3"]);
    assert!(of("crates/control/src/a/b.rs", 12).is_empty());
    assert_eq!(places(&of("crates/plan/src/b.rs", 13)), ["crates/plan/src/b.rs:3"]);
    assert!(of("crates/edge/src/b.rs", 13).is_empty());
}
