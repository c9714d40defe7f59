//! `ballast plan`.

use super::source::SourceArgs;
use crate::exit::{Exit, Outcome};
use crate::manifest;
use crate::output::{self, ColorChoice, Format, Paint};
use crate::render::plan::{changes, document, pace, render, render_by_service, render_summary};
use explain::forecast::{follow, held_back};

/// Arguments of `plan`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to look.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
    /// Exit with 2 if there are changes
    #[arg(long)]
    pub exit_code: bool,
    /// Show the plan by Service instead of by resource: whether anything would change, and what
    #[arg(long)]
    pub against_existing: bool,
    /// Print only the summary: counts, addresses that change, Services that are interrupted
    #[arg(long, conflicts_with = "against_existing")]
    pub summary: bool,
    /// Show only what concerns Services of this namespace
    #[arg(short, long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// Show only what concerns this Service; where NAME has no namespace, that of -n, else that of
    /// the kubeconfig's context, with -f `default`
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    pub service: Option<String>,
}

impl Args {
    /// Whether what concerns a Service, by its printed name, is asked for; `otherwise` is the
    /// namespace of names without one.
    fn concerns(&self, name: &str, otherwise: &str) -> bool {
        let namespace = self.namespace.as_deref();
        let service = self.named(otherwise);
        let own = name.split_once('/').map(|(namespace, _)| namespace);
        service.is_none_or(|service| service == name) && (namespace.is_none() || namespace == own)
    }

    /// The Service that is asked for, with its namespace.
    fn named(&self, otherwise: &str) -> Option<String> {
        let namespace = self.namespace.as_deref().unwrap_or(otherwise);
        self.service.as_ref().map(|service| match service.contains('/') {
            true => service.clone(),
            false => format!("{namespace}/{service}"),
        })
    }

    fn is_narrow(&self) -> bool {
        self.namespace.is_some() || self.service.is_some()
    }
}

/// Plans and prints; writes nothing.
///
/// # Errors
/// The input cannot be used, or the cluster or Azure cannot be read.
pub async fn run(args: Args, color: ColorChoice) -> Outcome {
    let source = args.source.read().await?;
    let (forecast, end) = follow(&source.world, &source.policy);
    let mut plan = document(&forecast, &source.world);
    plan.held_back = changes(&held_back(&end, &source.policy), &end);
    plan.limits_ms = pace::least_ms(&forecast, &source.policy);
    plan.obstacles = source.obstacles.iter().map(|obstacle| obstacle.cause()).collect();
    let assumption = args.source.assumption().map(str::to_owned);
    let pause = source
        .pause
        .as_ref()
        .map(|pause| format!("Paused by an operator until `ballast resume --all`: {pause}."));
    let notes = pause.into_iter().chain(assumption);
    plan.notes = notes.chain(manifest::stand_ins(&source.manifests)).collect();
    if args.is_narrow() {
        let others: Vec<String> = plan.services.iter().map(|s| s.name.clone()).collect();
        plan.narrow(|name| args.concerns(name, &source.namespace));
        let named = args.named(&source.namespace).filter(|_| plan.services.is_empty());
        plan.notes.extend(named.map(|named| unknown(&named, &others)));
    }
    match args.output {
        Format::Json => output::print_json(&plan)?,
        Format::Text => {
            let paint = Paint::choose(color);
            let text = match (args.summary, args.against_existing) {
                (true, _) => render_summary(&plan, paint),
                (false, true) => render_by_service(&plan, paint),
                (false, false) => render(&plan, paint),
            };
            output::print(&text)?;
        }
    }
    Ok(if args.exit_code && !plan.is_empty() { Exit::Changes } else { Exit::Done })
}

/// Says that a Service is not among those that ask for a load balancer or have one.
fn unknown(named: &str, others: &[String]) -> String {
    let name = named.rsplit('/').next().unwrap_or(named);
    let alike = others.iter().filter(|other| other.rsplit('/').next() == Some(name));
    let alike: Vec<&str> = alike.map(String::as_str).collect();
    let there = match alike.is_empty() {
        true => String::new(),
        false => format!("; there is {}", alike.join(", ")),
    };
    format!("Service {named} neither asks for a load balancer nor has one{there}.")
}
