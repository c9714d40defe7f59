//! UDP: one socket a client, so that answers find their way back.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::UdpSocket;
use tokio::sync::oneshot::Receiver;
use tokio::task::{AbortHandle, JoinSet};

use super::{Admitted, Wire};
use crate::{Ending, EntryPoint, Flow};

/// The largest datagram.
const DATAGRAM: usize = 65_535;

/// A client's way to its backend.
struct Line {
    socket: Arc<UdpSocket>,
    task: AbortHandle,
}

/// Forwards until it is dropped.
pub(super) async fn serve(wire: Wire, socket: UdpSocket, entry: EntryPoint) {
    let socket = Arc::new(socket);
    let mut lines: BTreeMap<SocketAddr, Line> = BTreeMap::new();
    let mut tasks = JoinSet::new();
    let mut buffer = vec![0; DATAGRAM];
    loop {
        // An error is about an earlier datagram that nobody took.
        let Ok((count, client)) = socket.recv_from(&mut buffer).await else { continue };
        while tasks.try_join_next().is_some() {}
        lines.retain(|_, line| !line.task.is_finished());
        let flow = Flow { client, entry };
        let Ok(Admitted { seat, ended }) = wire.admit(flow) else { continue };
        let Some(target) = wire.target(seat, entry) else {
            wire.miss();
            wire.close(&flow);
            continue;
        };
        wire.touch(&flow);
        if let Some(ended) = ended {
            let Ok(way) = UdpSocket::bind(near(target)).await else {
                wire.miss();
                wire.close(&flow);
                continue;
            };
            let way = Arc::new(way);
            let back = answers(wire.clone(), Arc::clone(&socket), Arc::clone(&way), flow, ended);
            let task = tasks.spawn(back);
            if let Some(old) = lines.insert(client, Line { socket: way, task }) {
                old.task.abort();
            }
        }
        let Some(line) = lines.get(&client) else { continue };
        let said = buffer.get(..count).unwrap_or_default();
        if line.socket.send_to(said, target).await.is_err() {
            wire.miss();
        }
    }
}

/// Any port of the target's loopback.
fn near(target: SocketAddr) -> SocketAddr {
    match target {
        SocketAddr::V4(_) => (Ipv4Addr::LOCALHOST, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::LOCALHOST, 0).into(),
    }
}

/// Carries answers until the flow ends.
async fn answers(
    wire: Wire,
    entry: Arc<UdpSocket>,
    way: Arc<UdpSocket>,
    flow: Flow,
    mut ended: Receiver<Ending>,
) {
    let mut buffer = vec![0; DATAGRAM];
    loop {
        let heard = tokio::select! {
            heard = way.recv_from(&mut buffer) => heard,
            _ = &mut ended => return,
        };
        // An error says that the backend does not take datagrams; it may do so later.
        let Ok((count, _)) = heard else { continue };
        wire.touch(&flow);
        let said = buffer.get(..count).unwrap_or_default();
        // The client may be gone.
        let _ = entry.send_to(said, flow.client).await;
    }
}
