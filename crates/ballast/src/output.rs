//! Standard output: colours where a terminal wants them, and a quiet end where nobody reads.

use crate::exit::{Exit, Failure};
use clap::ValueEnum;
use edge::terminal::{one_line, safe};
use std::io::{self, IsTerminal, Write};

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// A colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// Comes into being.
    Green,
    /// Changes.
    Yellow,
    /// Goes away, or is wrong.
    Red,
    /// Names.
    Cyan,
    /// Less important.
    Dim,
    /// Headings.
    Bold,
}

/// Colours text, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// With escape sequences.
    Colored,
    /// Without.
    Plain,
}

impl Paint {
    /// What standard output gets.
    #[must_use]
    pub fn choose(choice: ColorChoice) -> Self {
        let forbidden = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        match choice {
            ColorChoice::Always => Self::Colored,
            ColorChoice::Never => Self::Plain,
            ColorChoice::Auto if forbidden || !io::stdout().is_terminal() => Self::Plain,
            ColorChoice::Auto => Self::Colored,
        }
    }

    /// One line of text in a colour; the end of a line in it does not end it ([`one_line`]).
    #[must_use]
    pub fn ink(self, ink: Ink, text: impl std::fmt::Display) -> String {
        let code = match ink {
            Ink::Green => 32,
            Ink::Yellow => 33,
            Ink::Red => 31,
            Ink::Cyan => 36,
            Ink::Dim => 2,
            Ink::Bold => 1,
        };
        let text = text.to_string();
        let text = one_line(&text);
        match self {
            Self::Colored => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            Self::Plain => text.into_owned(),
        }
    }
}

/// Writes to standard output and flushes. Whatever names and values of others do to a terminal,
/// they do not do here ([`safe`]).
///
/// # Errors
/// It cannot be written; a reader that went away ends the program with [`Exit::Done`].
pub fn print(text: &str) -> Result<(), Failure> {
    draw(&safe(text))
}

/// Writes to a terminal what moves its cursor, too: texts of others are made [`safe`] before.
///
/// # Errors
/// As [`print()`].
pub fn draw(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Failure::new(Exit::Done, "")),
        Err(e) => Err(Failure::new(Exit::Blocked, format!("cannot write to standard output: {e}"))),
    }
}

/// Writes a file.
///
/// # Errors
/// It cannot be written.
pub fn write_file(path: &std::path::Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|e| {
        let path = path.display();
        Failure::new(
            Exit::Blocked,
            format!("cannot write {path}: {e}. Choose a path that can be written"),
        )
    })
}

/// Writes a value as indented JSON.
///
/// # Errors
/// As [`print()`].
pub fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|e| Failure::new(Exit::Internal, format!("cannot write JSON: {e}")))?;
    print(&format!("{text}\n"))
}
