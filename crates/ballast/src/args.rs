//! The command line.

#[cfg(feature = "bench")]
use crate::command::bench;
#[cfg(feature = "sim")]
use crate::command::sim;
use crate::command::{
    adopt, azure_role, completions, console, explain, history, hold, lint, man, migrate,
    node_agent, orphans, plan, run, status,
};
#[cfg(feature = "emulators")]
use crate::command::{azure_emulator, kube_emulator, up};
use crate::exit;
use crate::output::ColorChoice;
use crate::version;
use clap::{Parser, Subcommand};

/// Reconcile Kubernetes Services of type LoadBalancer with their Azure load balancers.
#[cfg_attr(feature = "emulators", doc = "")]
#[cfg_attr(
    feature = "emulators",
    doc = "`ballast up` runs the controller with an emulated cluster and an emulated Azure."
)]
#[derive(Debug, Parser)]
#[command(name = "ballast", version = version::text(), after_help = exit::HELP)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// When to colour the output
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: ColorChoice,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start an emulated cluster, an emulated Azure and the controller, and show what happens
    #[cfg(feature = "emulators")]
    Up(up::Args),
    /// Run the controller
    Run(run::Args),
    /// Show what would be written (dry run); reads the cluster and Azure, and needs no running
    /// controller
    Plan(plan::Args),
    /// Check manifests, without a cluster or Azure, and show each mistake with file and line
    Lint(lint::Args),
    /// Show each field of one Service in Azure, and where its value comes from
    Explain(explain::Args),
    /// Migrate a cluster's load balancers: pool kind, number, SKU, or to and from container load
    /// balancers
    ///
    /// The cloud config names the target: change it (or a copy of it) and give it with
    /// --cloud-config. What Azure has now is read from Azure, so an interrupted migration goes on
    /// when the same command is run again. The command writes only while it holds the controller's
    /// Lease: stop `ballast run` first.
    Migrate(migrate::Args),
    /// Show each Service: its addresses, its load balancer, and why it is not programmed
    ///
    /// Asks a running controller. With --cloud-config or --cloud-config-secret-name it reads the
    /// cluster and Azure instead.
    Status(status::Args),
    /// Show each write to Azure: why it was made, what it changed, and what Azure answered
    History(history::Args),
    /// Pause a Service, or with --all the whole cluster: write no changes to Azure until `resume`
    ///
    /// The backends of a paused Service still follow nodes and Pods. With --all they do not.
    Pause(hold::PauseArgs),
    /// Resume a paused Service, or with --all the whole cluster
    Resume(hold::ScopeArgs),
    /// Confirm what a Service with the annotation `ballast.dev/confirm` would lose, so that the
    /// planned change is written
    Confirm(hold::Args),
    /// Retry at once what Azure rejected for a Service
    Retry(hold::Args),
    /// Hand the BYO public IPs of a Service over to Ballast, which deletes them with their last
    /// Service; with --undo, take them back
    ///
    /// Writes tags of the public IPs and nothing else. Needs the right to write public IPs in
    /// Azure.
    Adopt(adopt::Args),
    /// Open the console of the leader's Pod in a browser, through a port-forward
    Console(console::Args),
    /// List Azure resources of this cluster that belong to no Service; with --delete, delete them
    ///
    /// Looks only in the resource groups that the cloud config or a Service names, and only at
    /// resources with this cluster's names and tags. --delete writes only while it holds the
    /// controller's Lease: stop `ballast run` first.
    Orphans(orphans::Args),
    /// Run the health agent of one node, which answers Azure's health probes in place of the
    /// service proxy
    NodeAgent(node_agent::Args),
    /// Serve an emulated Kubernetes API
    #[cfg(feature = "emulators")]
    KubeEmulator(kube_emulator::Args),
    /// Serve an emulated Azure Resource Manager
    #[cfg(feature = "emulators")]
    AzureEmulator(azure_emulator::Args),
    /// Test the assumptions about Azure in a resource group, and report which do not hold
    AzureCheck(crate::command::azure_check::Args),
    /// Print the Azure role that the controller needs
    AzureRole(azure_role::Args),
    /// Measure the controller with the emulated cluster and the emulated Azure
    #[cfg(feature = "bench")]
    Bench(bench::Args),
    /// Simulate the controller under seeded faults, with both emulators, and check its behaviour
    /// against the rules of docs/dev/simulation.md
    #[cfg(feature = "sim")]
    Sim(sim::Args),
    /// Print the completion script for a shell
    Completions(completions::Args),
    /// Print the manual page, or write one for each command
    Man(man::Args),
}
