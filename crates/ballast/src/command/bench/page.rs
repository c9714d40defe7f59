//! `ballast bench page`: everything in simulated time, written into a page between its markers.

use super::simulated::{self, CONVERGE, NODES, PODS, Result};
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use std::path::PathBuf;

/// Arguments of `bench page`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The page; plots go into a directory of its name beside it
    #[arg(value_name = "FILE", default_value = "docs/benchmarks.md")]
    pub file: PathBuf,
}

/// Measures, and replaces what is between the markers.
///
/// # Errors
/// The page cannot be read or written, or a marker is missing.
pub fn run(args: &Args) -> Outcome {
    let shown = args.file.display();
    let page = std::fs::read_to_string(&args.file).map_err(|e| {
        Failure::new(Exit::Input, format!("cannot read {shown}: {e}. Name the page"))
    })?;
    let mut page = page;
    let directory = args.file.with_extension("");
    type Measure = fn() -> std::result::Result<Result, Failure>;
    let sections: [(&str, Measure); 3] = [
        ("converge", || simulated::converged(&CONVERGE)),
        ("nodes", || simulated::node_changes(&NODES)),
        ("pods", || simulated::containers(&PODS)),
    ];
    for (name, measure) in sections {
        let (begin, end) = markers(name);
        let missing = || {
            let text =
                format!("{shown} has no lines {begin:?} and {end:?} in this order; add them");
            Failure::new(Exit::Input, text)
        };
        let (head, rest) = page.split_once(&begin).ok_or_else(missing)?;
        let (_, tail) = rest.split_once(&end).ok_or_else(missing)?;
        let result = measure()?;
        result.write_charts(&directory)?;
        page = format!("{head}{begin}\n\n{}\n{end}{tail}", result.table.markdown());
        output::write_file(&args.file, &page)?;
    }
    Ok(Exit::Done)
}

/// What begins and ends a section that is written by the command.
#[must_use]
pub fn markers(name: &str) -> (String, String) {
    (format!("<!-- begin {name} -->"), format!("<!-- end {name} -->"))
}
