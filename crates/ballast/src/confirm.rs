//! Asking before something is written.

use crate::exit::{Exit, Failure};
use std::io::{self, BufRead, IsTerminal, Write};

/// Asks a question on standard error; only the answer "yes" confirms. `advice` says what to do
/// where there is no terminal to ask on: "Read the list, then give --yes".
///
/// # Errors
/// Standard input is not a terminal, or cannot be read.
pub fn is_yes(question: &str, advice: &str) -> Result<bool, Failure> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        let text =
            format!("no confirmation is possible: standard input is not a terminal. {advice}");
        return Err(Failure::new(Exit::Usage, text));
    }
    let mut err = io::stderr();
    let asked = write!(err, "{question}: ").and_then(|()| err.flush());
    asked
        .map_err(|e| Failure::new(Exit::Blocked, format!("cannot write to standard error: {e}")))?;
    let mut line = String::new();
    stdin
        .lock()
        .read_line(&mut line)
        .map_err(|e| Failure::new(Exit::Failed, format!("cannot read the answer: {e}")))?;
    Ok(line.trim() == "yes")
}
