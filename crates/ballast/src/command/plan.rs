//! `ballast plan`.

use super::source::SourceArgs;
use crate::exit::{Exit, Outcome};
use crate::manifest;
use crate::output::{self, ColorChoice, Format, Paint};
use crate::render::plan::{document, render, render_by_service};
use explain::forecast::forecast;

/// Arguments of `plan`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to look.
    #[command(flatten)]
    pub source: SourceArgs,
    /// How to print
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
    /// Exit with 2 where there are changes
    #[arg(long)]
    pub exit_code: bool,
    /// Say for each Service whether anything would change, and what
    #[arg(long)]
    pub against_existing: bool,
}

/// Plans and prints; writes nothing.
///
/// # Errors
/// The input cannot be used, or the cluster or Azure cannot be read.
pub async fn run(args: Args, color: ColorChoice) -> Outcome {
    let source = args.source.read().await?;
    let mut plan = document(&forecast(&source.world, &source.policy), &source.world);
    plan.obstacles = source.obstacles.iter().map(|obstacle| obstacle.cause()).collect();
    let assumption = args.source.assumption().map(str::to_owned);
    plan.notes = assumption.into_iter().chain(manifest::stand_ins(&source.manifests)).collect();
    match args.output {
        Format::Json => output::print_json(&plan)?,
        Format::Text => {
            let paint = Paint::choose(color);
            let text = match args.against_existing {
                true => render_by_service(&plan, paint),
                false => render(&plan, paint),
            };
            output::print(&text)?;
        }
    }
    Ok(if args.exit_code && !plan.is_empty() { Exit::Changes } else { Exit::Done })
}
