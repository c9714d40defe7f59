//! Whether an emulated Azure forwards what clients send to its frontends.

use data_path::{Wire, WireOptions};

/// Arguments of the data path.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct DataPathArgs {
    /// Listen on loopback for each frontend and forward connections by its rules; GET /_/data-path
    /// of the emulated Azure lists the sockets
    #[arg(long)]
    pub data_path: bool,
    /// With --data-path: real time that one second of a probe interval or an idle timeout takes, in
    /// milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1_000, requires = "data_path")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub data_path_second: u32,
}

impl DataPathArgs {
    /// The data path, where one is asked for.
    #[must_use]
    pub fn wire(&self) -> Option<Wire> {
        let options = WireOptions { second_ms: self.data_path_second, ..WireOptions::default() };
        self.data_path.then(|| Wire::new(options))
    }
}
