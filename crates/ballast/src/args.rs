//! The command line.

#[cfg(feature = "bench")]
use crate::command::bench;
#[cfg(feature = "sim")]
use crate::command::sim;
#[cfg(feature = "emulators")]
use crate::command::{azure_emulator, kube_emulator, up};
use crate::command::{
    azure_role, completions, console, explain, history, hold, lint, man, migrate, node_agent,
    orphans, plan, run, status,
};
use crate::exit;
use crate::output::ColorChoice;
use crate::version;
use clap::{Parser, Subcommand};

/// Gives Kubernetes Services of type LoadBalancer their Azure load balancers.
#[cfg_attr(feature = "emulators", doc = "")]
#[cfg_attr(
    feature = "emulators",
    doc = "`ballast up` shows it at work without a cluster and without Azure: both are emulated."
)]
#[derive(Debug, Parser)]
#[command(name = "ballast", version = version::text(), after_help = exit::HELP)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// When to colour what is printed
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
    /// Show what would be written, without writing; reads the cluster and Azure itself, and needs
    /// no running controller
    Plan(plan::Args),
    /// Check manifests without a cluster and without Azure: each mistake with file and line
    Lint(lint::Args),
    /// Show what one Service causes in Azure, field by field, and why
    Explain(explain::Args),
    /// Change pool kind, number, SKU or kind (node-based, container) of a cluster's load balancers
    Migrate(migrate::Args),
    /// Show each Service: its addresses, its load balancer, and why it is not programmed
    Status(status::Args),
    /// Show each write to Azure: why it was made, what it changed, and what Azure answered
    History(history::Args),
    /// Pause a Service: write nothing of it to Azure until `resume`
    Pause(hold::Args),
    /// Go on with a Service that is paused
    Resume(hold::Args),
    /// Confirm the interruption that a Service annotated with `ballast.dev/confirm` waits for
    Confirm(hold::Args),
    /// Retry at once what Azure rejected of a Service
    Retry(hold::Args),
    /// Open the leading pod's console in a browser, through a port-forward
    Console(console::Args),
    /// List, and with --delete delete, Azure resources of this cluster that belong to no Service
    Orphans(orphans::Args),
    /// Run the health agent of one node: answer Azure's probes apart from the service proxy
    NodeAgent(node_agent::Args),
    /// Serve an emulated Kubernetes API
    #[cfg(feature = "emulators")]
    KubeEmulator(kube_emulator::Args),
    /// Serve an emulated Azure Resource Manager
    #[cfg(feature = "emulators")]
    AzureEmulator(azure_emulator::Args),
    /// Try what is assumed of Azure in a resource group, and report what differs
    AzureCheck(crate::command::azure_check::Args),
    /// Print the Azure role that the controller needs
    AzureRole(azure_role::Args),
    /// Measure the controller between two emulators
    #[cfg(feature = "bench")]
    Bench(bench::Args),
    /// Try to break the controller: seeded faults between both emulators, and every rule checked
    #[cfg(feature = "sim")]
    Sim(sim::Args),
    /// Print the completions of a shell
    Completions(completions::Args),
    /// Print the manual page, or write one for each command
    Man(man::Args),
}
