//! `ballast man`.

use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use std::path::PathBuf;

/// Arguments of `man`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Write one page per command to this directory; without it, print the main page
    pub dir: Option<PathBuf>,
}

/// Prints or writes the pages.
///
/// # Errors
/// They cannot be written.
pub fn run(args: &Args, command: clap::Command) -> Outcome {
    match &args.dir {
        Some(dir) => {
            let failed = |e: std::io::Error| {
                let dir = dir.display();
                let advice = "Choose a folder that can be written";
                Failure::new(
                    Exit::Blocked,
                    format!("cannot write manual pages to {dir}: {e}. {advice}"),
                )
            };
            std::fs::create_dir_all(dir).map_err(failed)?;
            clap_mangen::generate_to(command, dir).map_err(failed)?;
        }
        None => {
            let mut text = Vec::new();
            clap_mangen::Man::new(command)
                .render(&mut text)
                .map_err(|e| Failure::new(Exit::Internal, format!("no manual page: {e}")))?;
            output::print(&String::from_utf8_lossy(&text))?;
        }
    }
    Ok(Exit::Done)
}
