//! `ballast explain`.

use super::service::ServiceArgs;
use super::source::{Source, SourceArgs};
use crate::exit::{Exit, Failure, Outcome};
use crate::manifest::{self, Manifest};
use crate::output::{self, ColorChoice, Format, Paint};
use crate::render::explain::{document, render};
use crate::wire::WIRE;
use explain::causes::{Stranger, explain};
use model::ServiceName;
use serde_json::Value;

/// Arguments of `explain`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The Service.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// Where to look.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
}

/// Explains and prints; writes nothing.
///
/// # Errors
/// The Service is none of ours, the input cannot be used, or the cluster or Azure cannot be read.
pub async fn run(args: Args, color: ColorChoice) -> Outcome {
    let source = args.source.read().await?;
    let name = args.service.name(&source.namespace);
    let explanation = explain(&source.world, &source.policy, &name, &WIRE)
        .map_err(|stranger| unexplained(&name, stranger, &source))?;
    match args.output {
        Format::Json => output::print_json(&document(&explanation))?,
        Format::Text => {
            let mut text = render(&explanation, Paint::choose(color));
            if let Some(note) = manifest::stand_ins(&source.manifests) {
                text.push_str(&format!("\n{note}\n"));
            }
            output::print(&text)?;
        }
    }
    Ok(Exit::Done)
}

/// Why there is nothing to explain.
fn unexplained(name: &ServiceName, stranger: Stranger, source: &Source) -> Failure {
    let written = source.manifests.iter().find(|m| is_named(m, name));
    let class = written.and_then(|m| text(&m.object, "/spec/loadBalancerClass"));
    let kind = written.map(|m| text(&m.object, "/spec/type").unwrap_or("ClusterIP"));
    let why = match (stranger, class, kind) {
        (_, Some(class), Some("LoadBalancer")) => format!(
            "its spec.loadBalancerClass is {class:?}, which is another controller's: all of its \
             annotations are ignored. If it is ours, say --load-balancer-class {class}"
        ),
        (Stranger::OtherClass, ..) => "its spec.loadBalancerClass is another controller's: all \
             of its annotations are ignored. If it is ours, say --load-balancer-class CLASS"
            .to_owned(),
        (Stranger::Unknown, _, Some(kind)) if kind != "LoadBalancer" => format!(
            "its spec.type is {kind}. Only Services of type LoadBalancer have anything in Azure"
        ),
        (Stranger::Unknown, ..) => missing(name, source),
    };
    Failure::new(Exit::Input, format!("cannot explain Service {name}: {why}"))
}

fn missing(name: &ServiceName, source: &Source) -> String {
    let there = source.world.kubernetes.services.values();
    let mut there: Vec<String> = there.map(|s| s.name.to_string()).collect();
    there.sort();
    let others = match there.as_slice() {
        [] => "There is no Service of type LoadBalancer at all".to_owned(),
        few if few.len() <= 8 => format!("There are: {}", few.join(", ")),
        many => format!("`ballast status` lists the {} that are there", many.len()),
    };
    let namespace = &name.namespace;
    format!(
        "namespace {namespace} has no Service of this name that is of type LoadBalancer and of \
         a class of ours. {others}"
    )
}

fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str)
}

fn is_named(manifest: &Manifest, name: &ServiceName) -> bool {
    let object = &manifest.object;
    text(object, "/kind") == Some("Service")
        && text(object, "/metadata/name") == Some(&*name.name)
        && text(object, "/metadata/namespace").unwrap_or("default") == &*name.namespace
}
