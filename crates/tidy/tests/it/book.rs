//! The book has all its pages, and what they refer to is there.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|e| e == "md") {
            found.push(path);
        }
    }
}

fn book() -> Vec<PathBuf> {
    let mut found = Vec::new();
    pages(&root().join("docs"), &mut found);
    found.sort();
    found
}

/// Targets of links and images outside of blocks and code, without those that lead elsewhere.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        if in_block || line.starts_with("    ") {
            continue;
        }
        // Every second part is code.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
        for part in prose.split("](").skip(1) {
            let target = part.split(')').next().unwrap_or_default();
            if !target.contains("://") && !target.starts_with("mailto:") {
                found.push(target.to_owned());
            }
        }
    }
    found
}

/// The name by which a heading can be linked to.
fn anchor(heading: &str) -> String {
    let plain = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = plain.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn broken(page: &Path, text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    for link in links(text) {
        let (file, part) = link.split_once('#').unwrap_or((&link, ""));
        let target = match file {
            "" => page.to_owned(),
            _ => page.parent().unwrap().join(file),
        };
        if !target.exists() {
            broken.push(format!("{}: there is no {link}", page.display()));
        } else if !part.is_empty() && target.extension().is_some_and(|e| e == "md") {
            let there = fs::read_to_string(&target).unwrap();
            let mut headings = there.lines().filter(|l| l.starts_with('#')).map(anchor);
            if !headings.any(|heading| heading == part) {
                broken.push(format!("{}: no heading is {link}", page.display()));
            }
        }
    }
    broken
}

#[test]
fn every_page_stands_in_the_table_of_contents() {
    let docs = root().join("docs");
    let contents = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let listed = links(&contents);
    assert!(listed.len() > 15, "the table of contents was not read: {listed:?}");
    for page in book().into_iter().filter(|p| !p.ends_with("SUMMARY.md")) {
        let name = page.strip_prefix(&docs).unwrap().display().to_string();
        assert!(listed.contains(&name), "docs/SUMMARY.md does not list {name}");
    }
}

#[test]
fn every_link_leads_somewhere() {
    let own = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    let pages = book().into_iter().chain(own.map(|name| root().join(name)));
    let broken: Vec<String> =
        pages.flat_map(|page| broken(&page, &fs::read_to_string(&page).unwrap())).collect();
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn a_link_to_nothing_is_seen() {
    let page = root().join("docs/README.md");
    let text = "[a](absent.md) `[b](absent.md)` [c](#none) [d](try-it.md#1-start) [e](https://x.y)";
    let seen = broken(&page, text);
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(seen[0].ends_with("no absent.md") && seen[1].ends_with("is #none"), "{seen:?}");
}
