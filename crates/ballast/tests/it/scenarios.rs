//! Runs `scenarios/*.txt`: commands, and what they print.
//!
//! A scenario is text: comments (`#`), commands (`$ ballast …`), below each what it prints
//! (standard output, then standard error) and `[exit N]` unless that is 0; then the files it works
//! on, each after a line `-- NAME --`. Ports, UIDs and times stand as words.
//! `UPDATE_SCENARIOS=1 cargo test -p ballast --test it scenarios` writes what is printed now.

use regex::Regex;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What differs from run to run, and what stands for it.
const CHANGING: [(&str, &str); 3] = [
    (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UUID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
];

struct Scenario {
    path: PathBuf,
    text: String,
    files: Vec<(String, String)>,
}

fn read(path: &Path) -> Scenario {
    let whole = fs::read_to_string(path).unwrap();
    let mut text = String::new();
    let mut files: Vec<(String, String)> = Vec::new();
    for line in whole.lines() {
        if let Some(name) = line.strip_prefix("-- ").and_then(|l| l.strip_suffix(" --")) {
            files.push((name.to_owned(), String::new()));
            continue;
        }
        let part = files.last_mut().map_or(&mut text, |(_, part)| part);
        part.push_str(line);
        part.push('\n');
    }
    Scenario { path: path.to_owned(), text, files }
}

fn run(scenario: &Scenario) -> String {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in &scenario.files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let mut seen = String::new();
    let mut below_command = false;
    for line in scenario.text.lines() {
        let Some(command) = line.strip_prefix("$ ") else {
            // What stands below a command is what it printed last time.
            if !below_command || line.starts_with('#') {
                below_command = false;
                seen.push_str(&format!("{line}\n"));
            }
            continue;
        };
        below_command = true;
        seen.push_str(&format!("{line}\n{}\n", print_of(command, folder.path())));
    }
    for (name, text) in &scenario.files {
        seen.push_str(&format!("-- {name} --\n{text}"));
    }
    seen
}

fn print_of(command: &str, folder: &Path) -> String {
    let mut words = command.split_whitespace();
    assert_eq!(words.next(), Some("ballast"), "scenarios run ballast only: {command}");
    let output = Command::new(env!("CARGO_BIN_EXE_ballast"))
        .args(words)
        .current_dir(folder)
        .env_clear()
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let mut printed = String::from_utf8(output.stdout).unwrap();
    printed.push_str(&String::from_utf8(output.stderr).unwrap());
    match output.status.code() {
        Some(0) => {}
        code => printed.push_str(&format!("[exit {}]\n", code.unwrap())),
    }
    for (pattern, word) in CHANGING {
        printed = Regex::new(pattern).unwrap().replace_all(&printed, word).into_owned();
    }
    printed
}

#[test]
fn every_scenario_prints_what_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "there are scenarios");
    let update = std::env::var_os("UPDATE_SCENARIOS").is_some();
    let mut wrong = Vec::new();
    for scenario in paths.iter().map(|path| read(path)) {
        let seen = run(&scenario);
        if seen == fs::read_to_string(&scenario.path).unwrap() {
            continue;
        }
        if update {
            fs::write(&scenario.path, &seen).unwrap();
        } else {
            wrong.push(format!("{} now reads:\n{seen}", scenario.path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}\nUPDATE_SCENARIOS=1 takes it as right", wrong.join("\n"));
}
