//! `ballast lint`.

use crate::cloud_config::CloudConfigArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::lint::{Level, lint};
use crate::manifest;
use crate::output::{self, ColorChoice, Paint};
use crate::render::admission::{objects, yaml};
use crate::render::lint::{render, sarif};
use clap::ValueEnum;
use model::Policy;
use observe::config;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What is assumed where there is no cloud config: a Standard load balancer for all.
const ASSUMED: &str = r#"{
    "tenantId": "tenant", "subscriptionId": "subscription", "resourceGroup": "group",
    "location": "location", "vnetName": "network", "subnetName": "subnet",
    "securityGroupName": "securityGroup", "loadBalancerSku": "standard",
    "loadBalancerBackendPoolConfigurationType": "nodeIP", "useManagedIdentityExtension": true
}"#;

/// How mistakes are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LintFormat {
    /// One line per mistake.
    #[default]
    Text,
    /// For programs.
    Json,
    /// SARIF 2.1.0, for code hosts.
    Sarif,
}

/// Arguments of `lint`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Check these manifests (YAML or JSON; files, directories, or - for standard input); required
    /// unless --admission-policy is given
    #[arg(short = 'f', long = "filename", value_name = "PATH", required_unless_present = "policy")]
    pub files: Vec<PathBuf>,
    /// Also check the files in subdirectories
    #[arg(short = 'R', long)]
    pub recursive: bool,
    /// Read the cloud config from this file: that of the Go cloud provider, JSON or YAML [default:
    /// one Standard load balancer for all Services]
    #[arg(long, value_name = "FILE")]
    pub cloud_config: Option<PathBuf>,
    /// Name of the cluster and of its load balancer: the --cluster-name of the Go cloud provider
    #[arg(long, value_name = "NAME", default_value = "kubernetes")]
    pub cluster_name: String,
    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: LintFormat,
    /// Exit with 1 on warnings, too
    #[arg(long)]
    pub strict: bool,
    /// Print ValidatingAdmissionPolicies, with which an API server (1.31 or later) rejects most of
    /// these mistakes
    #[arg(long = "admission-policy", conflicts_with = "files")]
    pub policy: bool,
    /// Also check Services of this loadBalancerClass (repeatable)
    #[arg(long, value_name = "CLASS")]
    pub load_balancer_class: Vec<String>,
}

/// Checks and prints.
///
/// # Errors
/// A file or the cloud config cannot be used.
pub async fn run(args: Args, color: ColorChoice) -> Outcome {
    let classes: BTreeSet<String> = args.load_balancer_class.iter().cloned().collect();
    let policy = policy(&args).await?;
    if args.policy {
        return print_policies(&policy, &classes);
    }
    let survey = manifest::survey(&args.files, args.recursive)?;
    let mut found = lint(&survey.manifests, &policy, &classes)?;
    found.add_unchecked(survey.unread, survey.skipped);
    match args.output {
        LintFormat::Text => output::print(&render(&found, Paint::choose(color)))?,
        LintFormat::Json => output::print_json(&found)?,
        LintFormat::Sarif => output::print_json(&sarif(&found))?,
    }
    let wrong =
        found.count(Level::Error) + if args.strict { found.count(Level::Warning) } else { 0 };
    Ok(if wrong > 0 { Exit::Failed } else { Exit::Done })
}

async fn policy(args: &Args) -> Result<Policy, Failure> {
    if args.cloud_config.is_some() {
        let config = CloudConfigArgs::of_file(args.cloud_config.clone(), &args.cluster_name);
        return Ok(config.load(None).await?.policy);
    }
    let sources = config::Sources {
        text: ASSUMED,
        cluster: &args.cluster_name,
        environment: &BTreeMap::new(),
    };
    let read = config::read(&sources);
    read.map(|config| config.policy).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Failure::new(Exit::Internal, format!("the assumed cloud config: {}", errors.join("; ")))
    })
}

fn print_policies(policy: &Policy, classes: &BTreeSet<String>) -> Outcome {
    let objects = objects(&admission_rules::policies(policy), classes);
    let text = yaml(&objects)
        .map_err(|e| Failure::new(Exit::Internal, format!("cannot write YAML: {e}")))?;
    output::print(&text)?;
    Ok(Exit::Done)
}
