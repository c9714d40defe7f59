//! Asking a backend what a probe wants to know.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Wire;
use crate::{ProbeKind, Question, Verdict};

/// Enough of an answer to hold its status.
const STATUS_LINE: usize = 12;

/// Asks, and hands the answer in.
pub(super) async fn ask(wire: Wire, question: Question) {
    let target = wire.lock().hosts.find(question.backend, None, question.port);
    let patience = wire.really(question.patience_ms);
    let verdict = match target {
        None => Verdict::Bad,
        Some(target) => {
            let asked = tokio::time::timeout(patience, answers(target, &question.kind)).await;
            if asked.unwrap_or(false) { Verdict::Good } else { Verdict::Bad }
        }
    };
    let now_ms = wire.now_ms();
    let mut state = wire.lock();
    let ended = state.core.learn(&question.probe, question.backend, verdict, now_ms);
    state.end(ended);
}

async fn answers(target: SocketAddr, kind: &ProbeKind) -> bool {
    let Ok(mut stream) = TcpStream::connect(target).await else { return false };
    let ProbeKind::Http { path } = kind else { return true };
    let request = format!("GET {path} HTTP/1.1\r\nhost: {target}\r\nconnection: close\r\n\r\n");
    if stream.write_all(request.as_bytes()).await.is_err() {
        return false;
    }
    let mut head = [0; STATUS_LINE];
    stream.read_exact(&mut head).await.is_ok()
        && head.starts_with(b"HTTP/1.")
        && head.ends_with(b" 200")
}
