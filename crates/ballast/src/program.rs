//! From arguments to an exit code.

use crate::args::{Cli, Command};
use crate::command;
use crate::command::hold::Verb;
use crate::completion::{self, COMPLETER};
use crate::exit::{Exit, Failure, Outcome};
use crate::heap;
use crate::output;
use clap::{CommandFactory, FromArgMatches};
use edge::terminal::safe;
use std::ffi::OsString;
use std::panic;
use std::path::Path;
use std::process::ExitCode;

/// The name under which kubectl finds plugins.
const PLUGIN: &str = "kubectl-ballast";

/// The whole program.
#[must_use]
pub fn main() -> ExitCode {
    tame_panics();
    let outcome = panic::catch_unwind(|| run(std::env::args_os().collect()));
    let exit = match outcome {
        Ok(Ok(exit)) => exit,
        Ok(Err(failure)) => {
            if !failure.text.is_empty() {
                eprintln!("error: {}", safe(&failure.text));
            }
            failure.exit
        }
        Err(_) => Exit::Internal,
    };
    ExitCode::from(exit.code())
}

/// The command line as clap knows it, under the name it was called by.
#[must_use]
pub fn command_line(called_as: &str) -> clap::Command {
    let stem = stem(called_as);
    let command = Cli::command();
    if stem == PLUGIN || stem == COMPLETER {
        command.name("kubectl ballast").bin_name("kubectl ballast").display_name("kubectl-ballast")
    } else {
        command
    }
}

fn stem(called_as: &str) -> &str {
    Path::new(called_as).file_stem().and_then(|s| s.to_str()).unwrap_or("ballast")
}

fn run(words: Vec<OsString>) -> Outcome {
    let called_as = words.first().map(|w| w.to_string_lossy().into_owned()).unwrap_or_default();
    if stem(&called_as) == COMPLETER {
        output::print(&completion::propose(&command_line(&called_as), &words[1..]))?;
        return Ok(Exit::Done);
    }
    let parsed = command_line(&called_as)
        .try_get_matches_from(words)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(e) => {
            // A reader that is gone needs no help text.
            let _ = e.print();
            return Ok(if e.use_stderr() { Exit::Usage } else { Exit::Done });
        }
    };
    if matches!(cli.command, Command::Run(_)) {
        heap::spare();
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|e| {
            Failure::new(
                Exit::Failed,
                format!("cannot start threads: {e}. Raise the process limits"),
            )
        })?;
    let outcome = runtime.block_on(dispatch(cli, &called_as));
    runtime.shutdown_background();
    outcome
}

/// As a plugin of kubectl the leading pod is asked, unless flags say whom to ask.
fn ask_leader(command: &mut Command, called_as: &str) {
    if stem(called_as) != PLUGIN {
        return;
    }
    match command {
        Command::Status(args) => {
            let reads = args.config.cloud_config.is_some() || args.config.is_in_cluster();
            args.leader.leader |= args.server.is_none() && !reads;
        }
        Command::History(args) => {
            args.leader.leader |= args.server.is_none() && args.file.is_none();
        }
        _ => {}
    }
}

async fn dispatch(mut cli: Cli, called_as: &str) -> Outcome {
    let color = cli.color;
    ask_leader(&mut cli.command, called_as);
    match cli.command {
        #[cfg(feature = "emulators")]
        Command::Up(args) => command::up::run(args, color).await,
        Command::Run(args) => command::run::run(args).await,
        Command::Plan(args) => command::plan::run(args, color).await,
        Command::Lint(args) => command::lint::run(args, color).await,
        Command::Explain(args) => command::explain::run(args, color).await,
        Command::Migrate(args) => command::migrate::run(args, color).await,
        Command::Status(args) => command::status::run(args, color).await,
        Command::History(args) => command::history::run(args, color).await,
        Command::Pause(args) => command::hold::pause(args).await,
        Command::Resume(args) => command::hold::resume(args).await,
        Command::Confirm(args) => command::hold::run(args, Verb::Confirm).await,
        Command::Retry(args) => command::hold::run(args, Verb::Retry).await,
        Command::Adopt(args) => command::adopt::run(args, color).await,
        Command::Console(args) => command::console::run(args).await,
        Command::Orphans(args) => command::orphans::run(args, color).await,
        Command::NodeAgent(args) => command::node_agent::run(args).await,
        #[cfg(feature = "emulators")]
        Command::KubeEmulator(args) => command::kube_emulator::run(args).await,
        #[cfg(feature = "emulators")]
        Command::AzureEmulator(args) => command::azure_emulator::run(args).await,
        Command::AzureCheck(args) => command::azure_check::run(args, color).await,
        Command::AzureRole(args) => command::azure_role::run(&args),
        #[cfg(feature = "bench")]
        Command::Bench(args) => command::bench::run(args).await,
        #[cfg(feature = "sim")]
        Command::Sim(args) => command::sim::run(&args),
        Command::Completions(args) => command::completions::run(&args, command_line(called_as)),
        Command::Man(args) => command::man::run(&args, command_line(called_as)),
    }
}

/// A panic is one line for the report, in the form of the log, not a stack trace.
fn tame_panics() {
    panic::set_hook(Box::new(|panic| {
        let what = panic.payload();
        let what = what
            .downcast_ref::<&str>()
            .map(|s| (*s).to_owned())
            .or_else(|| what.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        eprintln!("{}", edge::log::mistake(&what, &place));
    }));
}
