//! What Rust files may look like, and what may stand in them.

use crate::PURE;
use crate::module::{Scope, reached};
use crate::tree::{Problem, Tree, crate_of};

/// Lines of a file, without its tests.
pub const LINES: usize = 500;
/// Characters of a line.
pub const COLUMNS: usize = 100;

/// Fields of a struct where plans are made and carried out.
pub const FIELDS: usize = 12;
/// What is composed of parts.
const COMPOSED: [&str; 2] = ["crates/control/src/", "crates/plan/src/"];
/// Structs that have more fields, and why.
const BROAD: [(&str, &str, &str); 1] = [(
    "crates/plan/src/ask/mod.rs",
    "Intent",
    "what a Service asks, a field a subject: those that go together are structs already",
)];

/// Notes that were to be followed up. Put together here, because this file is checked, too.
const LEFTOVERS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const UNFINISHED: [&str; 2] = [concat!("to", "do!("), concat!("unimple", "mented!(")];
const UNWRAP: &str = concat!(".unwrap", "()");
/// Words that say nothing about what a thing is.
const EMPTY_WORDS: [&str; 5] = ["manager", "helper", "util", "handler", "processor"];
/// What a pure crate does without, and what it does instead.
const IMPURE: [(&str, &str); 7] = [
    ("Instant", "take the time as an argument"),
    ("SystemTime", "take the time as an argument"),
    ("HashMap", "use BTreeMap: its order is the same on every machine"),
    ("HashSet", "use BTreeSet: its order is the same on every machine"),
    ("std::fs", "take the text as an argument"),
    ("std::env", "take the value as an argument"),
    ("std::net::Tcp", "sockets belong to edge"),
];

/// The crate that decides.
const PLAN: &str = "crates/plan/src/";
/// The crates that know whose things are.
const KNOWING: [&str; 4] =
    [PLAN, "crates/plan-drift/src/", "crates/explain/src/", "crates/control/src/"];
/// What may compare names in them, and why.
const COMPARING: [(&str, &str); 3] = [
    ("crates/plan/src/own/", "it is the room that says whose a name is"),
    ("crates/plan/src/tag_keys.rs", "the keys, for own/ and for what no Service may set"),
    ("crates/plan/src/ask/", "looks up what a Service names among what the cloud config names"),
];
/// What names things of ours, and what compares it.
const NAMING: [&str; 5] = ["name", "names", "user", "users", "owner"];
/// The room that refuses, and what a verdict is made with.
const CLAIM: &str = "crates/plan/src/claim/";
const VERDICTS: [&str; 2] = ["Refusal::new(", "Frozen::new("];
const COMPARISON: &str = "eq_ignore_ascii_case(";
const FOLDING: &str = "to_lowercase(";
/// How names of ours begin and end, and how their tags' keys begin.
const MARKS: [&str; 4] = ["\"k8s-azure-", "\"kubernetes-", "\"-internal\"", "\"-IPv6\""];

/// Whether a file is a test from its first line to its last.
fn is_test(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    path.contains("/tests/") || file == "tests.rs" || file.ends_with("_tests.rs")
}

/// A file's text before the `mod tests` block at its end.
fn without_tests(text: &str) -> &str {
    let block = "#[cfg(test)]\nmod tests {";
    let end = if text.starts_with(block) { Some(0) } else { text.find(&format!("\n{block}")) };
    end.map_or(text, |end| &text[..end])
}

/// Files that are not tests, without the tests in them.
pub(crate) fn products(tree: &Tree) -> Vec<(&str, &str)> {
    let reached = reached(tree);
    let only_test = |path: &str| is_test(path) || reached.get(path) == Some(&Scope::Test);
    let files = tree.rust().filter(|(path, _)| !only_test(path));
    files.map(|(path, text)| (path, without_tests(text))).collect()
}

pub(crate) fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a word stands in a line by itself, not as a part of another.
fn has_word(line: &str, word: &str) -> bool {
    let bytes = line.as_bytes();
    line.match_indices(word).any(|(start, _)| {
        let before = start.checked_sub(1).is_none_or(|at| !is_word(bytes[at]));
        before && bytes.get(start + word.len()).is_none_or(|byte| !is_word(*byte))
    })
}

/// No file is longer than [`LINES`].
#[must_use]
pub fn lengths(tree: &Tree) -> Vec<Problem> {
    let sizes = products(tree).into_iter().map(|(path, text)| (path, text.lines().count()));
    sizes
        .filter(|(_, lines)| *lines > LINES)
        .map(|(path, lines)| {
            let text = format!("{lines} lines without tests, at most {LINES}: split it by noun");
            Problem::new(path, text)
        })
        .collect()
}

/// No line is longer than [`COLUMNS`].
#[must_use]
pub fn columns(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.rust() {
        for (at, line) in text.lines().enumerate() {
            let width = line.chars().count();
            if width > COLUMNS {
                let text = format!("{width} columns, at most {COLUMNS}: break the line");
                problems.push(Problem::at(path, at + 1, text));
            }
        }
    }
    problems
}

/// No struct of the controller and of the planner has more fields than [`FIELDS`], but for those
/// that are listed with their reason.
#[must_use]
pub fn fields(tree: &Tree) -> Vec<Problem> {
    let is_field = |line: &str| {
        let name = line.split_once(": ").map(|(name, _)| name);
        let name = name.and_then(|name| name.rsplit(' ').next());
        name.is_some_and(|name| !name.is_empty() && name.bytes().all(is_word))
    };
    let composed = |path: &str| COMPOSED.iter().any(|part| path.starts_with(part));
    let is_broad = |path: &str, line: &str| {
        BROAD.iter().any(|(file, name, _)| path == *file && has_word(line, name))
    };
    let mut problems = Vec::new();
    for (path, text) in tree.rust().filter(|(path, _)| composed(path)) {
        let mut lines = code(text).map(|(at, line)| (at, line.trim()));
        while let Some((at, line)) = lines.next() {
            if !has_word(line, "struct") || line.ends_with([';', '}']) {
                continue;
            }
            let body = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "}");
            let count = body.filter(|line| is_field(line)).count();
            if count > FIELDS && !is_broad(path, line) {
                let text = format!("{count} fields, at most {FIELDS}: compose it of parts");
                problems.push(Problem::at(path, at, text));
            }
        }
    }
    problems
}

/// Nothing is unwrapped outside tests.
#[must_use]
pub fn unwraps(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in products(tree) {
        for (at, _) in code(text).filter(|(_, line)| line.contains(UNWRAP)) {
            let text = "unwrapped: return the error, or say with expect() why there is none";
            problems.push(Problem::at(path, at, text));
        }
    }
    problems
}

/// Nothing is left for later.
#[must_use]
pub fn leftovers(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.rust() {
        for (at, line) in text.lines().enumerate() {
            let noted = LEFTOVERS.iter().find(|word| has_word(line, word));
            let unfinished = UNFINISHED.iter().find(|word| line.contains(**word));
            if let Some(word) = noted.or(unfinished) {
                let text = format!("{word} is left over: do it, or open an issue and say so there");
                problems.push(Problem::at(path, at + 1, text));
            }
        }
    }
    problems
}

/// The words of a name, in lower case: `SlowHandler`, `slow_handler` and `slow-handler` alike.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in name.chars() {
        if letter.is_uppercase() || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
    }
    words
}

fn empty_word(name: &str) -> Option<&'static str> {
    let words = words(name);
    let says = |empty: &&str| words.iter().any(|w| w.trim_end_matches('s') == *empty);
    EMPTY_WORDS.into_iter().find(|empty| says(empty))
}

/// What a line of code gives a name to.
fn declared(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("pub(crate) ").or(line.strip_prefix("pub ")).unwrap_or(line);
    let kinds = ["struct ", "enum ", "trait ", "type ", "mod ", "union "];
    let rest = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
    rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()
}

/// Files and types have names that say what they are.
#[must_use]
pub fn names(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.rust() {
        if let Some(word) = empty_word(path.trim_end_matches(".rs")) {
            problems.push(Problem::new(path, format!("`{word}` says nothing: name the thing")));
        }
        for (at, line) in code(text) {
            if let Some(word) = declared(line).and_then(empty_word) {
                let text = format!("`{word}` says nothing: name the thing");
                problems.push(Problem::at(path, at, text));
            }
        }
    }
    problems
}

/// Pure crates read no clock, file or environment, and iterate in no chance order.
#[must_use]
pub fn impurities(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let pure = |path: &str| crate_of(path).is_some_and(|name| PURE.contains(&name));
    for (path, text) in products(tree).into_iter().filter(|(path, _)| pure(path)) {
        if !path.contains("/src/") {
            continue;
        }
        for (at, line) in code(text) {
            for (word, instead) in IMPURE.iter().filter(|(word, _)| has_word(line, word)) {
                let text = format!("{word} in a pure crate: {instead}");
                problems.push(Problem::at(path, at, text));
            }
        }
    }
    problems
}

/// Whose a thing is by its name or its tags is asked in `plan/src/own`: nothing else compares what
/// names it, or spells out what marks it. Base names, suffixes and keys of tags are visible only
/// there, which the compiler sees to.
#[must_use]
pub fn ownership(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let asks = |path: &str| {
        KNOWING.iter().any(|part| path.starts_with(part))
            && !COMPARING.iter().any(|(part, _)| path.starts_with(part))
    };
    for (path, text) in products(tree).into_iter().filter(|(path, _)| asks(path)) {
        for (at, line) in code(text) {
            let named = NAMING.iter().any(|word| has_word(line, word));
            let folds = path.starts_with(PLAN) && line.contains(FOLDING);
            if named && (folds || line.contains(COMPARISON)) {
                let text = "a name compared outside own/: ask own::name, own::part or own::tags";
                problems.push(Problem::at(path, at, text));
            }
            if MARKS.iter().any(|mark| line.contains(mark)) || line.contains("tag_keys::") {
                let text = "a mark of ours outside own/: ask own::name or own::tags";
                problems.push(Problem::at(path, at, text));
            }
        }
    }
    problems
}

/// Which Service gets what only one can have is decided in `plan/src/claim`: no other file of that
/// crate makes a verdict.
#[must_use]
pub fn verdicts(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let asks = |path: &str| path.starts_with(PLAN) && !path.starts_with(CLAIM);
    for (path, text) in products(tree).into_iter().filter(|(path, _)| asks(path)) {
        for (at, line) in code(text) {
            if VERDICTS.iter().any(|made| line.contains(made)) {
                let text = "a verdict made outside claim/: only that room refuses".to_owned();
                problems.push(Problem::at(path, at, text));
            }
        }
    }
    problems
}
