//! Every planted mistake of `crates/sim/mutants` still fits the code.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use toml::Table;

/// The part of `found` that is replaced stands between these.
const MARKS: [char; 2] = ['⟦', '⟧'];
/// As many there are at least.
const LEAST: usize = 45;
/// Where mistakes are planted.
const CRATES: [&str; 7] = ["arm", "control", "lease", "model", "observe", "plan", "plan-drift"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn mistakes() -> BTreeMap<String, Table> {
    let folder = fs::read_dir(root().join("crates/sim/mutants")).unwrap();
    let paths = folder.map(|entry| entry.unwrap().path());
    let files = paths.filter(|path| path.extension().is_some_and(|e| e == "toml"));
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    files.map(|p| (name(&p), fs::read_to_string(&p).unwrap().parse().unwrap())).collect()
}

fn text<'a>(fields: &'a Table, key: &str) -> Option<&'a str> {
    fields.get(key).and_then(|value| value.as_str())
}

/// What is wrong with a mistake's file, if anything is.
fn fault(fields: &Table) -> Option<String> {
    let known = ["mistake", "file", "found", "instead", "rule", "test", "why"];
    if let Some(key) = fields.keys().find(|key| !known.contains(&key.as_str())) {
        return Some(format!("unknown field {key}"));
    }
    let missing = known[..4].iter().find(|key| text(fields, key).is_none());
    if let Some(key) = missing {
        return Some(format!("there is no {key}"));
    }
    let tested = (text(fields, "test").is_some(), text(fields, "why").is_some());
    if !matches!(
        (text(fields, "rule").is_some(), tested),
        (true, (false, false)) | (false, (true, true))
    ) {
        return Some("name a rule, or a test and why the simulator cannot".to_owned());
    }
    let (file, found) = (text(fields, "file")?, text(fields, "found")?);
    if !CRATES.iter().any(|name| file.starts_with(&format!("crates/{name}/src/"))) {
        return Some(format!("{file} is in none of {CRATES:?}"));
    }
    let marks: Vec<char> = found.chars().filter(|c| MARKS.contains(c)).collect();
    if !marks.is_empty() && marks != MARKS {
        return Some("found holds ⟦ and ⟧ once each, or neither".to_owned());
    }
    let code = fs::read_to_string(root().join(file)).unwrap_or_default();
    let count = code.matches(&found.replace(MARKS, "")).count();
    (count != 1).then(|| format!("found occurs {count} times in {file}; adapt it to the code"))
}

#[test]
fn every_planted_mistake_fits_the_code() {
    let mistakes = mistakes();
    assert!(mistakes.len() >= LEAST, "{} planted mistakes", mistakes.len());
    let faults = mistakes.iter().filter_map(|(name, m)| Some(format!("{name}: {}", fault(m)?)));
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn what_nothing_catches_yet_is_a_planted_mistake() {
    let open = fs::read_to_string(root().join("crates/sim/mutants/open")).unwrap();
    let mistakes = mistakes();
    let strange: Vec<&str> = open.lines().filter(|name| !mistakes.contains_key(*name)).collect();
    assert!(strange.is_empty(), "{strange:?}");
}

#[test]
fn a_mistake_that_fits_no_longer_is_seen() {
    let of = |found: &str| {
        let file = "crates/plan/src/lib.rs";
        let sample = format!("mistake=''\nfile='{file}'\nfound='{found}'\ninstead=''\nrule='L1'");
        fault(&sample.parse().unwrap())
    };
    assert!(of("no such code").unwrap().contains("0 times"));
    assert!(of("use").unwrap().contains("times"));
    assert!(of("⟦mod intent").unwrap().contains("once each"));
}
