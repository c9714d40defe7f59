//! `ballast azure-check`.

mod live;

use crate::azure::AzureConnection;
use crate::cloud_config::CloudConfigArgs;
use crate::confirm;
use crate::emulated::Emulated;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, ColorChoice, Format, Paint};
use crate::render::azure_check::{ForecastDocument, render, render_forecast, render_list};
use crate::signal;
use azure_check::{
    ASSUMPTIONS, Assumption, Checked, Recording, Site, Subscription, TAG, check, find, write,
};
use edge::clock::Clock;
use edge::random;
use live::Live;
use model::Policy;
use serde_json::{Value, json};
use std::io::{self, Write as _};
use std::path::PathBuf;

/// Arguments of `azure-check`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Read the credential, the subscription and the region from this cloud config: the file of the
    /// Go cloud provider, JSON or YAML; required unless --list is given
    #[arg(long, value_name = "FILE", required_unless_present = "list")]
    pub cloud_config: Option<PathBuf>,
    /// Create resources in this resource group, which must exist; its other resources are not
    /// written; required unless --list is given
    #[arg(long, value_name = "NAME", required_unless_present = "list")]
    pub resource_group: Option<String>,
    /// Create resources in this region, in place of the cloud config's
    #[arg(long, value_name = "REGION")]
    pub location: Option<String>,
    /// Test only this assumption (repeatable)
    #[arg(long, value_name = "ID", value_parser = known)]
    pub only: Vec<String>,
    /// Do not test this assumption (repeatable)
    #[arg(long, value_name = "ID", value_parser = known)]
    pub skip: Vec<String>,
    /// List the assumptions; call nothing
    #[arg(long, conflicts_with = "dry_run")]
    pub list: bool,
    /// Show each call, and a link to the price of each kind of resource; call nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Skip the confirmation before the first call
    #[arg(long, conflicts_with = "dry_run")]
    pub yes: bool,
    /// Record each request and its answer in this file, one JSON object per line
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dry_run", "list"])]
    pub record: Option<PathBuf>,
    /// With --record: write zeros in place of the subscription ID
    #[arg(long, requires = "record")]
    pub hide_subscription: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
}

fn known(id: &str) -> Result<String, String> {
    let unknown = || "no such assumption; --list names them".to_owned();
    find(id).map(|assumption| assumption.id.to_owned()).ok_or_else(unknown)
}

impl Args {
    fn chosen(&self) -> Vec<&'static Assumption> {
        let has = |ids: &[String], id: &str| ids.iter().any(|chosen| chosen == id);
        let chosen = ASSUMPTIONS.iter().filter(|assumption| {
            (self.only.is_empty() || has(&self.only, assumption.id))
                && !has(&self.skip, assumption.id)
        });
        chosen.collect()
    }

    fn config(&self) -> CloudConfigArgs {
        CloudConfigArgs::of_file(self.cloud_config.clone(), "kubernetes")
    }

    fn site(&self, policy: &Policy) -> Site {
        let location = self.location.clone().unwrap_or_else(|| policy.location.to_string());
        Site {
            subscription: policy.subscription.to_string(),
            group: self.resource_group.clone().unwrap_or_default(),
            location,
            run: random::uuid().chars().filter(char::is_ascii_hexdigit).take(8).collect(),
        }
    }
}

/// Tries what is assumed of Azure in a resource group of the user's, and reports.
///
/// # Errors
/// The cloud config or the credential cannot be used, the run is not confirmed, or resources of the
/// run could not be deleted.
pub async fn run(args: Args, color: ColorChoice) -> Outcome {
    let chosen = args.chosen();
    if args.list {
        return list(&chosen, args.output);
    }
    let stop = signal::stop();
    let config = args.config().load(None).await?;
    let site = args.site(&config.policy);
    let paint = Paint::choose(color);
    if args.dry_run {
        let forecast = forecast(&site, &chosen);
        match args.output {
            Format::Json => output::print_json(&forecast)?,
            Format::Text => output::print(&render_forecast(&forecast, paint))?,
        }
        return Ok(Exit::Done);
    }
    let clock = Clock::start();
    let azure = AzureConnection::open(&config.settings, clock).await?;
    azure.check_credential().await?;
    if !args.yes && !agreed(&site, &chosen)? {
        return Err(Failure::new(Exit::Failed, "nothing was sent: the answer was not \"yes\""));
    }
    say(&format!(
        "Run {}: resources have the tag {TAG}={}. Ctrl-C ends the run and deletes them. If this \
         process is killed, this lists what is left:\n  {}",
        site.run,
        site.run,
        leftovers(&site)
    ));
    let mut live = Live::new(azure.sender, clock, stop);
    let place = site.clone();
    let ran = tokio::task::spawn_blocking(move || check(&mut live, &place, &chosen)).await;
    let checked =
        ran.map_err(|e| Failure::new(Exit::Internal, format!("the run ended early: {e}")))?;
    finish(&args, &site, checked, paint)
}

fn list(chosen: &[&'static Assumption], format: Format) -> Outcome {
    match format {
        Format::Json => {
            let line = |a: &&Assumption| {
                let facts = a.section.link();
                json!({"id": a.id, "assumed": a.assumed, "facts": facts})
            };
            output::print_json(&chosen.iter().map(line).collect::<Vec<Value>>())?;
        }
        Format::Text => output::print(&render_list(chosen))?,
    }
    Ok(Exit::Done)
}

/// What a run would call and make: the same run on an Azure that behaves as assumed.
fn forecast(site: &Site, chosen: &[&'static Assumption]) -> ForecastDocument {
    let Checked { report, exchanges } = check(&mut Emulated::as_assumed(site), site, chosen);
    ForecastDocument::of(site, &report, &exchanges)
}

fn agreed(site: &Site, chosen: &[&'static Assumption]) -> Result<bool, Failure> {
    let forecast = forecast(site, chosen);
    let question = format!(
        "Send about {} calls to Azure, and make and delete {} resources in the resource group {}? \
         Only \"yes\" begins",
        forecast.calls.len(),
        forecast.made(),
        site.group
    );
    confirm::is_yes(&question, "Read what --dry-run prints, then give --yes")
}

fn leftovers(site: &Site) -> String {
    format!("az resource list --resource-group {} --tag {TAG}={}", site.group, site.run)
}

/// A reader that is gone stops nothing.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{}", edge::terminal::safe(text));
}

fn finish(args: &Args, site: &Site, checked: Checked, paint: Paint) -> Outcome {
    let Checked { report, exchanges } = checked;
    let written = args.record.as_ref().map(|path| {
        let shown = if args.hide_subscription { Subscription::Hidden } else { Subscription::Shown };
        let recording = Recording { site: site.clone(), exchanges };
        let text = write(&recording, shown).map_err(|e| {
            Failure::new(Exit::Internal, format!("the recording cannot be JSON: {e}"))
        })?;
        output::write_file(path, &text)
    });
    match args.output {
        Format::Json => output::print_json(&report)?,
        Format::Text => output::print(&render(&report, paint))?,
    }
    written.transpose()?;
    if !report.left.is_empty() {
        let lines: String =
            report.left.iter().map(|left| format!("\n  {}", left.command())).collect();
        let text = format!("{} resources could not be deleted:{lines}", report.left.len());
        return Err(Failure::new(Exit::Failed, text));
    }
    if report.interrupted {
        let text = "the run was interrupted; everything that it made is deleted";
        return Err(Failure::new(Exit::Failed, text));
    }
    Ok(if report.differs > 0 { Exit::Changes } else { Exit::Done })
}
