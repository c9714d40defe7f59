//! Runs the emulator on a port of this machine:
//!
//! ```text
//! cargo run -p azure-emulator --example serve_azure -- [--port N]
//!     [--seed FILE | --sample MACHINES] [--service-gateway] [--option NAME=VALUE]…
//! ```
//!
//! `--option` sets any field of `Options`, for example `--option lro_ms=500`.

use std::sync::{Arc, Mutex};

use azure_emulator::{Azure, Options, SampleGateway, SampleOptions, sample_estate, serve};
use serde_json::{Value, json};
use tokio::net::TcpListener;

type Failure = Box<dyn std::error::Error>;

#[derive(Default)]
struct Arguments {
    port: u16,
    seed: Option<String>,
    sample: Option<u32>,
    gateway: SampleGateway,
    options: Vec<(String, Value)>,
}

fn arguments() -> Result<Arguments, Failure> {
    let mut found = Arguments::default();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--port" => found.port = value()?.parse()?,
            "--seed" => found.seed = Some(value()?),
            "--sample" => found.sample = Some(value()?.parse()?),
            "--service-gateway" => found.gateway = SampleGateway::WithDefaultNat,
            "--option" => {
                let pair = value()?;
                let (name, text) = pair.split_once('=').ok_or("--option takes NAME=VALUE")?;
                let value = serde_json::from_str(text).unwrap_or(json!(text));
                found.options.push((name.to_owned(), value));
            }
            other => return Err(format!("there is no argument {other}").into()),
        }
    }
    Ok(found)
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments = arguments()?;
    let mut options = json!(Options::default());
    for (name, value) in arguments.options {
        options[name.as_str()] = value;
    }
    let mut azure = Azure::new(serde_json::from_value(options)?);
    if let Some(file) = &arguments.seed {
        azure.seed(serde_json::from_str(&std::fs::read_to_string(file)?)?);
    }
    if let Some(machines) = arguments.sample {
        let sample = SampleOptions { machines, gateway: arguments.gateway, ..Default::default() };
        azure.seed(sample_estate(&sample));
    }
    let listener = TcpListener::bind(("127.0.0.1", arguments.port)).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let stop = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    serve(listener, Arc::new(Mutex::new(azure)), stop).await?;
    Ok(())
}
