//! `ballast completions`.

use crate::exit::{Exit, Outcome};
use crate::output;

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Prints them.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(args: &Args, mut command: clap::Command) -> Outcome {
    let name = command.get_display_name().unwrap_or("ballast").to_owned();
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut text);
    output::print(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Done)
}
