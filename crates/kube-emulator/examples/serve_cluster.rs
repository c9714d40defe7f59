//! Runs the emulator: `serve ADDRESS [KUBECONFIG]`.

use kube_emulator::{Shared, Store, StoreOptions, kubeconfig, serve};
use std::time::{SystemTime, UNIX_EPOCH};

#[tokio::main]
#[allow(clippy::disallowed_methods, reason = "a program may read the clock")]
async fn main() -> std::io::Result<()> {
    let mut words = std::env::args().skip(1);
    let address = words.next().unwrap_or_else(|| "127.0.0.1:0".to_string());
    let listener = tokio::net::TcpListener::bind(&address).await?;
    let address = listener.local_addr()?;
    if let Some(file) = words.next() {
        std::fs::write(&file, kubeconfig(address))?;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let options = StoreOptions {
        seed: u64::try_from(since.as_nanos() & u128::from(u64::MAX)).unwrap_or_default(),
        started_ms: u64::try_from(since.as_millis()).unwrap_or_default(),
        ..StoreOptions::default()
    };
    println!("serving on http://{address}");
    let stop = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    serve(listener, Shared::new(Store::new(options)), stop).await
}
