//! The file that says that this agent has opened its port.
//!
//! While an agent replaces another one, both share the port of their node. An answer from the port
//! does not tell which of them gave it, and a successor that listens nowhere yet would pass for
//! ready. The file is in a volume of the Pod's own.

use crate::exit::{Exit, Failure};
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The file, where one was asked for.
#[derive(Debug)]
pub(super) struct Mark(Option<PathBuf>);

impl Mark {
    /// Removes what an earlier process left.
    ///
    /// # Errors
    /// It cannot be removed.
    pub(super) fn cleared(file: Option<PathBuf>) -> Result<Self, Failure> {
        if let Some(file) = &file
            && let Err(e) = std::fs::remove_file(file)
            && e.kind() != ErrorKind::NotFound
        {
            return Err(failed("remove", file, &e));
        }
        Ok(Self(file))
    }

    /// The port is open.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn set(&self) -> Result<(), Failure> {
        let Some(file) = &self.0 else { return Ok(()) };
        std::fs::write(file, "").map_err(|e| failed("write", file, &e))
    }
}

fn failed(what: &str, file: &Path, why: &dyn Display) -> Failure {
    let file = file.display();
    Failure::new(Exit::Blocked, format!("cannot {what} {file}: {why}. Check --ready-file"))
}

/// Says whether the agent with this file has opened its port.
///
/// # Errors
/// It has not.
pub fn check(file: &Path) -> Result<Exit, Failure> {
    if file.exists() {
        return Ok(Exit::Done);
    }
    let file = file.display();
    let text = format!("{file} is not there: the agent has not listed all that it watches yet");
    Err(Failure::new(Exit::Failed, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_there_from_the_opening_of_the_port_on_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ready");
        // A process before this one has ended without a chance to remove it.
        std::fs::write(&file, "").unwrap();
        let mark = Mark::cleared(Some(file.clone())).unwrap();
        assert_eq!(check(&file).map_err(|failure| failure.exit), Err(Exit::Failed));
        mark.set().unwrap();
        assert_eq!(check(&file), Ok(Exit::Done));
        let none = Mark::cleared(None).unwrap();
        none.set().unwrap();
        let nowhere = Mark::cleared(Some(folder.path().join("no/ready"))).unwrap();
        assert_eq!(nowhere.set().map_err(|failure| failure.exit), Err(Exit::Blocked));
    }
}
