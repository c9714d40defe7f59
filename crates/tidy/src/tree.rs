//! Text files by path.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fmt, fs, io};

/// A rule that is broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The file, and the line where there is one.
    pub place: String,
    /// What is wrong, and what to do.
    pub text: String,
}

impl Problem {
    /// A problem of a file.
    pub fn new(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self { place: place.into(), text: text.into() }
    }

    /// A problem of a line, counted from 1.
    pub fn at(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self::new(format!("{path}:{line}"), text)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// Files by their path below the workspace, with `/` between its parts.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// A tree of samples.
    #[must_use]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let own = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        Self { files: files.iter().map(own).collect() }
    }

    /// The manifests, the lock file and the Rust files of a workspace.
    ///
    /// # Errors
    /// A folder or a file cannot be read.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        for name in ["Cargo.toml", "Cargo.lock"] {
            tree.files.insert(name.to_owned(), fs::read_to_string(root.join(name))?);
        }
        tree.walk(&root.join("crates"), "crates")?;
        Ok(tree)
    }

    fn walk(&mut self, folder: &Path, name: &str) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            let name = format!("{name}/{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                if !name.ends_with("/target") {
                    self.walk(&path, &name)?;
                }
            } else if name.ends_with(".rs") || name.ends_with("/Cargo.toml") {
                self.files.insert(name, fs::read_to_string(path)?);
            }
        }
        Ok(())
    }

    /// The text of a file.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Every Rust file, by path.
    pub fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.files.iter().filter(|(path, _)| path.ends_with(".rs"));
        files.map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Every crate's manifest, by the crate's folder name.
    pub fn manifests(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|(path, text)| {
            let name = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
            (!name.contains('/')).then_some((name, text.as_str()))
        })
    }
}

/// The crate a file below `crates/` belongs to.
#[must_use]
pub fn crate_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split_once('/').map(|(name, _)| name)
}
