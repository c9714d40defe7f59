//! What a migration did, one JSON object a line.
//!
//! Nothing depends on it: the way on is planned from Azure as it is. It is for people, who want to
//! see what was there before, and for the next run to say that it goes on.

use crate::exit::{Exit, Failure};
use edge::clock::Clock;
use serde_json::{Map, Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    clock: Clock,
    /// The time of the beginning of a migration that did not end, and its writes.
    open: Option<(String, usize)>,
}

fn failed(path: &Path, what: &str, why: &dyn std::fmt::Display) -> Failure {
    let path = path.display();
    let text = format!("cannot {what} the journal {path}: {why}. Choose another with --journal");
    Failure::new(Exit::Blocked, text)
}

impl Journal {
    /// Opens a journal; what stands in it stays.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub fn open(path: &Path, clock: Clock) -> Result<Self, Failure> {
        let before = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(failed(path, "read", &e)),
        };
        let open = unfinished(before.as_slice()).map_err(|e| failed(path, "read", &e))?;
        let file = OpenOptions::new().create(true).append(true).open(path);
        let mut file = file.map_err(|e| failed(path, "write", &e))?;
        // What is written next would be lost with a last line that was cut short.
        if before.last().is_some_and(|byte| *byte != b'\n') {
            file.write_all(b"\n").map_err(|e| failed(path, "write", &e))?;
        }
        Ok(Self { path: path.to_owned(), file, clock, open })
    }

    /// What the journal says of a migration that did not come to its end.
    #[must_use]
    pub fn unfinished(&self) -> Option<String> {
        let (at, writes) = self.open.as_ref()?;
        let path = self.path.display();
        Some(format!("Goes on with the migration begun at {at}: {writes} writes stand in {path}."))
    }

    /// Notes the beginning.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(&mut self, to: &[String], calls: usize) -> Result<(), Failure> {
        let event = if self.open.is_some() { "continue" } else { "begin" };
        self.note(event, json!({"to": to, "foretold": calls}))
    }

    /// Notes the end.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn end(&mut self, outcome: &str, writes: usize) -> Result<(), Failure> {
        self.note("end", json!({"outcome": outcome, "writes": writes}))
    }

    /// Writes one line and sees to it that it is on the disk.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn note(&mut self, event: &str, fields: Value) -> Result<(), Failure> {
        let mut line = Map::new();
        line.insert("at".to_owned(), json!(self.clock.utc()));
        line.insert("event".to_owned(), json!(event));
        line.extend(fields.as_object().cloned().unwrap_or_default());
        let text = format!("{}\n", Value::Object(line));
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|e| failed(&self.path, "write", &e))
    }
}

/// Looks for a beginning without an end; a last line that was cut short counts for nothing.
fn unfinished(journal: impl Read) -> std::io::Result<Option<(String, usize)>> {
    let mut open: Option<(String, usize)> = None;
    // Bytes, as a line may have been cut short within a letter.
    for line in BufReader::new(journal).split(b'\n') {
        let Ok(entry) = serde_json::from_slice::<Value>(&line?) else { continue };
        match entry["event"].as_str() {
            Some("begin") => open = Some((entry["at"].as_str().unwrap_or("").to_owned(), 0)),
            Some("write") => open.iter_mut().for_each(|(_, writes)| *writes += 1),
            Some("end") if entry["outcome"] == "done" => open = None,
            _ => {}
        }
    }
    Ok(open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_short_within_a_letter_counts_for_nothing() {
        let whole = "{\"event\":\"begin\",\"at\":\"t\"}\n{\"event\":\"write\",\"name\":\"ä\"}\n";
        let first = whole.find('\n').unwrap();
        for end in 0..whole.len() {
            let open = unfinished(&whole.as_bytes()[..end]).unwrap();
            assert_eq!(open.is_some(), end >= first, "{end}");
        }
    }

    #[test]
    fn what_follows_a_line_that_was_cut_short_is_not_lost_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        std::fs::write(&path, "{\"at\":\"t\",\"eve").unwrap();
        let mut journal = Journal::open(&path, Clock::start()).unwrap();
        assert_eq!(journal.unfinished(), None);
        journal.begin(&["to".to_owned()], 2).unwrap();
        assert!(Journal::open(&path, Clock::start()).unwrap().unfinished().is_some());
    }

    #[test]
    fn a_migration_without_an_end_is_told_of_even_where_a_line_was_cut_short() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut journal = Journal::open(&path, Clock::start()).unwrap();
        assert_eq!(journal.unfinished(), None);
        journal.begin(&["to".to_owned()], 2).unwrap();
        journal.note("write", json!({"method": "PUT"})).unwrap();
        OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"{\"event\": \"wri\n")
            .unwrap();
        let mut journal = Journal::open(&path, Clock::start()).unwrap();
        assert!(journal.unfinished().unwrap().contains("1 writes stand in"));
        journal.begin(&[], 1).unwrap();
        journal.end("done", 1).unwrap();
        assert_eq!(Journal::open(&path, Clock::start()).unwrap().unfinished(), None);
    }
}
