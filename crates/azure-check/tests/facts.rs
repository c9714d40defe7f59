//! `docs/dev/azure-facts.md` and the table of assumptions name the same things.

use azure_check::{ASSUMPTIONS, Way};
use std::collections::BTreeSet;

const FACTS: &str = include_str!("../../../docs/dev/azure-facts.md");

/// Words of a row that say that Azure has not confirmed it.
const UNCONFIRMED: [&str; 6] = [
    "not confirmed",
    "not published",
    "has published",
    "have published",
    "not documented",
    "is not said",
];

/// Heading and row, of each row of a table.
fn rows() -> Vec<(&'static str, &'static str)> {
    let mut heading = "";
    let mut rows = Vec::new();
    for line in FACTS.lines() {
        if let Some(found) = line.strip_prefix("## ") {
            heading = found;
        }
        let ruler = line.starts_with("| ---");
        let header = ["| fact ", "| kind ", "| refused ", "| assumed "];
        if line.starts_with('|') && !ruler && !header.iter().any(|head| line.starts_with(head)) {
            rows.push((heading, line));
        }
    }
    rows
}

/// What stands in brackets and code marks.
fn names(text: &'static str) -> BTreeSet<&'static str> {
    text.split("[`")
        .skip(1)
        .filter_map(|rest| rest.split_once("`]").map(|(name, _)| name))
        .collect()
}

#[test]
fn each_row_that_is_not_confirmed_can_be_tried_or_says_why_not() {
    let unconfirmed = |(heading, row): &(&str, &str)| {
        *heading == "Assumptions" || UNCONFIRMED.iter().any(|words| row.contains(words))
    };
    let rows: Vec<_> = rows().into_iter().filter(unconfirmed).collect();
    assert!(rows.len() > 25, "{} rows were found", rows.len());
    for (heading, row) in rows {
        assert!(!names(row).is_empty(), "no assumption of azure-check for this, {heading}: {row}");
    }
}

#[test]
fn each_assumption_stands_in_the_facts_and_each_name_is_one() {
    let here: BTreeSet<&str> = ASSUMPTIONS.iter().map(|assumption| assumption.id).collect();
    assert_eq!(here.len(), ASSUMPTIONS.len(), "an id stands twice");
    assert_eq!(names(FACTS), here);
}

#[test]
fn each_assumption_links_to_the_heading_below_which_it_stands() {
    let anchor = |heading: &str| heading.to_lowercase().replace(' ', "-");
    for assumption in ASSUMPTIONS {
        let (_, wanted) = assumption.section.link().split_once('#').unwrap();
        let mut below = FACTS
            .split("\n## ")
            .filter(|section| anchor(section.lines().next().unwrap_or_default()) == wanted);
        let section = below.next().unwrap_or_else(|| panic!("no heading {wanted}"));
        assert!(names(section).contains(assumption.id), "{} is not below {wanted}", assumption.id);
    }
}

#[test]
fn what_is_not_tried_says_why() {
    let untried = ASSUMPTIONS.iter().filter_map(|assumption| match assumption.way {
        Way::Untried(why) => Some(why),
        _ => None,
    });
    let untried: Vec<&str> = untried.collect();
    assert!(untried.iter().all(|why| why.len() > 20), "{untried:?}");
    assert!(untried.len() < 6, "more and more is not tried: {untried:?}");
}
