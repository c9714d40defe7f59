//! The history file: one write a line, as JSON, so that the history outlives a restart.
//!
//! # Guarantees
//! - A line that is damaged, as the last one may be after a crash, is skipped, and no other one.
//! - The file is rewritten, through a file beside it, once it is twice as long as what is kept.
//! - Nothing that decides reads it. The log says once that the file cannot be written.
//! - A write that its process did not see the end of is read as one of unknown outcome: it is not
//!   under way any more.

use super::{UNDER_WAY, UNKNOWN, WriteEntry};
use crate::exit::{Exit, Failure};
use crate::shared::SharedController;
use control::Controller;
use control::history::{BYTES, RECORDS};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Between two looks at what ended.
const PACE: Duration = Duration::from_secs(1);
/// How long a look waits for the end of a step.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a history file holds: the last writes, the first first.
///
/// # Errors
/// The file is there and cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<WriteEntry>> {
    let text = match std::fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    let kept = last(&text);
    Ok(kept.filter_map(|line| Some(closed(serde_json::from_str(line).ok()?))).collect())
}

/// A write as it is known after the end of its process, which writes down what is under way when it
/// is stopped. No later line says how that ended.
fn closed(mut entry: WriteEntry) -> WriteEntry {
    if entry.outcome == UNDER_WAY {
        UNKNOWN.clone_into(&mut entry.outcome);
    }
    entry
}

/// The last lines, as many as are kept, in their order.
fn last(text: &str) -> impl Iterator<Item = &str> {
    let mut bytes = 0;
    let lines = text.lines().rev().take(RECORDS).take_while(move |line| {
        bytes += line.len();
        bytes <= BYTES
    });
    let lines: Vec<&str> = lines.collect();
    lines.into_iter().rev()
}

/// A history file that is written.
#[derive(Debug)]
pub struct HistoryFile {
    path: PathBuf,
    file: File,
    length: u64,
    /// Numbers of the controller's records that are in it.
    saved: BTreeSet<u64>,
    trouble: bool,
}

impl HistoryFile {
    /// Opens a file, or makes it, and reads what it holds.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub fn open(path: &Path) -> Result<(Self, Vec<WriteEntry>), Failure> {
        let failed = |e: io::Error| {
            let path = path.display();
            let text = format!(
                "--history-file {path}: {e}. Name a file that can be written, or leave it out"
            );
            Failure::new(Exit::Usage, text)
        };
        let earlier = read(path).map_err(failed)?;
        let file = append(path).and_then(|file| ended(file, path)).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let path = path.to_owned();
        Ok((Self { path, file, length, saved: BTreeSet::new(), trouble: false }, earlier))
    }

    /// Writes down what ends, until stopped.
    pub async fn follow(
        mut self,
        controller: SharedController,
        portal: Option<&'static str>,
        stop: CancellationToken,
    ) {
        loop {
            let stopped = tokio::select! {
                () = stop.cancelled() => true,
                () = tokio::time::sleep(PACE) => false,
            };
            let look = |controller: &Controller| controller.history().cloned().collect::<Vec<_>>();
            if let Some(records) = controller.look_within(PATIENCE, look).await {
                let first = records.first().map_or(0, |record| record.number);
                self.saved = self.saved.split_off(&first);
                let ended = |number: u64, end: Option<u64>| {
                    (end.is_some() || stopped) && !self.saved.contains(&number)
                };
                let new: Vec<_> =
                    records.iter().filter(|record| ended(record.number, record.ended_ms)).collect();
                let lines: Vec<String> = new
                    .iter()
                    .filter_map(|r| serde_json::to_string(&WriteEntry::of(r, portal)).ok())
                    .collect();
                self.saved.extend(new.iter().map(|record| record.number));
                let outcome = self.write(&lines);
                self.tell(outcome);
            }
            if stopped {
                return;
            }
        }
    }

    fn write(&mut self, lines: &[String]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.file.write_all(text.as_bytes())?;
        self.length += text.len() as u64;
        if self.length > 2 * BYTES as u64 { self.shorten() } else { Ok(()) }
    }

    /// Keeps only the last lines.
    fn shorten(&mut self) -> io::Result<()> {
        let text = String::from_utf8_lossy(&std::fs::read(&self.path)?).into_owned();
        let kept: String = last(&text).map(|line| format!("{line}\n")).collect();
        let beside = self.path.with_extension("new");
        // What a crash may have left there.
        match std::fs::remove_file(&beside) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        append(&beside)?.write_all(kept.as_bytes())?;
        std::fs::rename(&beside, &self.path)?;
        self.file = append(&self.path)?;
        self.length = kept.len() as u64;
        Ok(())
    }

    fn tell(&mut self, outcome: io::Result<()>) {
        match outcome {
            Ok(()) => self.trouble = false,
            Err(e) if !self.trouble => {
                self.trouble = true;
                let path = self.path.display();
                tracing::warn!("cannot write the history file {path}: {e}; the history goes on");
            }
            Err(_) => {}
        }
    }
}

/// Ends a last line that a crash cut off: what is written next would be lost with it.
fn ended(mut file: File, path: &Path) -> io::Result<File> {
    if std::fs::read(path)?.last().is_some_and(|byte| *byte != b'\n') {
        file.write_all(b"\n")?;
    }
    Ok(file)
}

/// Only its owner may read it: it names resources and Services.
fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap in a test is a failed test")]

    use super::*;
    use crate::history::{HistoryDocument, Wanted};
    use crate::output::Paint;
    use crate::render::history::render;

    fn line(at: u64, pad: usize) -> String {
        let message = Some("m".repeat(pad));
        let entry = WriteEntry { sent_ms: at, message, ..WriteEntry::default() };
        serde_json::to_string(&entry).unwrap()
    }

    #[test]
    fn a_torn_line_is_skipped_and_the_others_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history");
        assert!(read(&path).unwrap().is_empty(), "no file is no history");
        let text = format!("{}\n{}\n{}", line(1, 1), line(2, 1), &line(3, 1)[..20]);
        std::fs::write(&path, text).unwrap();
        let times: Vec<u64> = read(&path).unwrap().iter().map(|entry| entry.sent_ms).collect();
        assert_eq!(times, [1, 2]);
        let (mut file, _) = HistoryFile::open(&path).unwrap();
        file.write(&[line(4, 1)]).unwrap();
        let times: Vec<u64> = read(&path).unwrap().iter().map(|entry| entry.sent_ms).collect();
        assert_eq!(times, [1, 2, 4], "what comes after a torn line is not lost with it");
    }

    #[test]
    fn a_write_that_its_process_did_not_see_the_end_of_is_not_under_way_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history");
        let entry = |sent_ms: u64, outcome: &str, ended_ms: Option<u64>| {
            let outcome = outcome.to_owned();
            WriteEntry { sent_ms, outcome, ended_ms, ..WriteEntry::default() }
        };
        let (mut file, _) = HistoryFile::open(&path).unwrap();
        let written = [entry(1_000, "underWay", None), entry(2_000, "done", Some(2_500))];
        let lines = written.map(|entry| serde_json::to_string(&entry).unwrap());
        file.write(&lines).unwrap();
        let writes = read(&path).unwrap();
        let outcomes: Vec<&str> = writes.iter().map(|write| write.outcome.as_str()).collect();
        assert_eq!(outcomes, ["unknown", "done"]);
        let mut document = HistoryDocument { now_ms: 90_000, writes, ..HistoryDocument::default() };
        let text = render(&document, Wanted::Everything, Paint::Plain);
        assert!(text.contains("outcome unknown") && !text.contains("under way"), "{text}");
        document.narrow(Wanted::Everything, 1_500);
        assert_eq!(document.writes.len(), 1, "it is not within a later span");
    }

    #[test]
    fn a_file_that_grows_keeps_the_last_writes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history");
        let (mut file, earlier) = HistoryFile::open(&path).unwrap();
        assert!(earlier.is_empty());
        for at in 0..36 {
            file.write(&[line(at, 1 << 20)]).unwrap();
        }
        assert!(std::fs::metadata(&path).unwrap().len() <= 2 * BYTES as u64);
        let times: Vec<u64> = read(&path).unwrap().iter().map(|entry| entry.sent_ms).collect();
        assert_eq!(times.last(), Some(&35));
        assert!(times.len() >= 15 && times.windows(2).all(|w| w[0] + 1 == w[1]), "{times:?}");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_refused_by_name() {
        let failure = HistoryFile::open(Path::new("/proc/history")).unwrap_err();
        assert!(failure.text.contains("--history-file /proc/history"), "{}", failure.text);
    }
}
