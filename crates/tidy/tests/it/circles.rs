//! Modules in a circle are found, whatever way they are named in; others are not.

use tidy::{Problem, Tree, circle};

/// What is wrong with a crate, by its files below `src/`.
fn circles(files: &[(&str, &str)]) -> Vec<Problem> {
    let paths: Vec<String> = files.iter().map(|(path, _)| format!("crates/x/src/{path}")).collect();
    let texts = files.iter().map(|(_, text)| *text);
    let files: Vec<(&str, &str)> = paths.iter().map(String::as_str).zip(texts).collect();
    circle::circles(&Tree::of(&files))
}

/// Whether `a` leans on `b` by what it says; `b` leans on `a`.
fn leans(text: &str) -> bool {
    !circles(&[
        ("lib.rs", "mod a;\nmod b;\nmod c;\npub use b::Thing as Known;\n"),
        ("a.rs", text),
        ("b.rs", "use crate::a::A;\npub struct Thing;\n"),
        ("c.rs", ""),
        ("a/inner.rs", ""),
    ])
    .is_empty()
}

#[test]
fn two_modules_that_use_each_other_are_a_circle() {
    for text in [
        "use crate::b::Thing;",
        "use crate::b;",
        "use super::b::Thing;",
        "pub(crate) use crate::b::Thing;",
        "use crate::b as other;",
        "use crate::b::*;",
        "use crate::{b};",
        "use crate::{c::C, b::{self, Thing as T}};",
        "use crate::{\n    c,\n    b::Thing,\n};",
        "use {std::fmt, crate::{c, b}};",
        "fn a() -> super::b::Thing { todo }",
        "fn a() { let t = crate::b::Thing; }",
        "fn a() { use crate::b::Thing; }",
        "type A = Vec<crate::b::Thing>;",
        "mod deep { use super::super::b::Thing; }",
        "mod deep {}\nuse super::b;",
        "use self::inner::I;\nuse super::b;",
        "const QUOTE: char = '\"';\nuse crate::b;\nconst OTHER: char = '\"';",
        "fn a<'a>(x: &'a str) -> &'a str { x }\nuse crate::b;\nconst A: char = '\\'';",
        "const A: &str = r#\"\"use\"#;\nuse crate::b;\nconst B: &str = \"\\\"\";",
        "/* one /* two */ */ use crate::b;",
        "#[cfg(test)]\nuse crate::c;\nuse crate::b;",
        "#[cfg(test)]\n#[path = \"t.rs\"]\nmod tests;\n\nuse crate::b;",
        "#[cfg(test)]\nfn only(x: [u8; 3]) { x; }\nuse crate::b;",
        "#[cfg(not(test))]\nuse crate::b;",
    ] {
        assert!(leans(text), "{text}");
    }
}

#[test]
fn what_leads_elsewhere_is_no_circle() {
    for text in [
        "",
        "use crate::c;",
        "use b::Thing;",
        "use ::b::Thing;",
        "use super::a;",
        "use self::inner::I;",
        "use other::crate_b::b;",
        "mod deep { use super::b; }",
        "// use crate::b;",
        "/// crate::b::Thing\nfn a() {}",
        "/* use crate::b; /* use crate::b; */ use crate::b; */",
        "const A: &str = \"use crate::b;\";",
        "const A: &str = \"\\\\\"; const B: &str = \" crate::b::Thing \";",
        "const A: &str = r#\"x\" crate::b::Thing \"#;",
        "#[cfg(test)]\nuse crate::b;",
        "#[cfg(test)]\n#[allow(unused)]\nfn only() { crate::b::Thing; }",
        "#[cfg(all(test, feature = \"x\"))]\nmod deep { use crate::b; }",
        "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    use crate::b;\n}\n",
        "fn a() -> impl Sized + use<> {}",
    ] {
        assert!(!leans(text), "{text}");
    }
}

#[test]
fn a_re_export_counts_for_the_module_that_defines_the_thing() {
    assert!(leans("use crate::Known;"));
    assert!(leans("fn a(x: super::Known) {}"));
    let of = |shown: &str| {
        circles(&[
            ("lib.rs", ""),
            ("a/mod.rs", shown),
            ("a/low.rs", "use crate::b::B;\npub struct Low;\n"),
            ("b.rs", "use crate::a::Low;\npub struct B;\n"),
        ])
    };
    assert!(of("mod low;\npub struct Low;\n").is_empty(), "b leans on a, which leans on nothing");
    assert_eq!(of("mod low;\npub use low::Low;\n").len(), 1);
    assert_eq!(of("mod low;\npub(crate) use self::low::{Low};\n").len(), 1);
    assert!(of("mod low;\npub use foreign::Low;\n").is_empty());
}

#[test]
fn a_folder_and_its_parts_are_a_family() {
    let files = [
        ("lib.rs", "mod a;\nuse a::A;\npub struct Root;\n"),
        ("a/mod.rs", "mod one;\nmod two;\nuse one::One;\nuse crate::Root;\npub struct A;\n"),
        ("a/one.rs", "use super::A;\nuse super::two::Two;\npub struct One;\n"),
        ("a/two.rs", "use super::A;\npub struct Two;\n"),
    ];
    assert!(circles(&files).is_empty());
    let mut files = files;
    files[3].1 = "use super::one::One;\npub struct Two;\n";
    assert_eq!(circles(&files).len(), 1, "but its parts among themselves are not");
}

#[test]
fn a_circle_is_shown_with_every_line_that_makes_it() {
    let found = circles(&[
        ("a.rs", "use crate::b::B;\n\nfn a(x: crate::b::Other) {}\n"),
        ("b.rs", "use crate::c;\nuse crate::d;\n"),
        ("c/mod.rs", "// why\nuse crate::{\n    a::A,\n};\n"),
        ("d.rs", "use crate::e::E;\n"),
        ("e.rs", "use crate::d::D;\n"),
        ("lone.rs", "use crate::a::A;\n"),
    ]);
    assert_eq!(found.len(), 2, "two that do not meet are two: {found:?}");
    assert_eq!(found[0].place, "crates/x/src");
    let (_, lines) = found[0].text.split_once('\n').unwrap();
    assert_eq!(
        lines,
        "  a -> b\n    crates/x/src/a.rs:1 crate::b::B\n    crates/x/src/a.rs:3 crate::b::Other\n  \
         b -> c\n    crates/x/src/b.rs:1 crate::c\n  \
         c -> a\n    crates/x/src/c/mod.rs:3 crate::a::A"
    );
}

#[test]
fn crates_do_not_mix() {
    let tree = Tree::of(&[
        ("crates/x/src/a.rs", "use crate::b::B;\n"),
        ("crates/y/src/b.rs", "use crate::a::A;\n"),
        ("crates/x/tests/it/b.rs", "use crate::a::A;\n"),
    ]);
    assert!(circle::circles(&tree).is_empty());
}

#[test]
fn a_listed_circle_that_is_gone_or_has_changed_is_found() {
    // Listed for the crate `sim`; here a single file of it.
    let problems = circle::circles(&Tree::of(&[("crates/sim/src/stage.rs", "")]));
    assert!(!problems.is_empty());
    let all_gone = problems.iter().all(|problem| problem.place.ends_with("standing.rs"));
    assert!(all_gone, "{problems:?}");
}
