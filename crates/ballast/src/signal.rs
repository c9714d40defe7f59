//! Ctrl-C and SIGTERM.

use tokio_util::sync::CancellationToken;

/// A token that is cancelled by the first Ctrl-C or SIGTERM; the second ends the program at once.
#[must_use]
pub fn stop() -> CancellationToken {
    let token = CancellationToken::new();
    let told = token.clone();
    tokio::spawn(async move {
        once().await;
        told.cancel();
        once().await;
        std::process::exit(130);
    });
    token
}

#[cfg(unix)]
async fn once() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        // Without handlers the signals keep their usual effect: they end the process.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

#[cfg(not(unix))]
async fn once() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
